/* workload_test.c - labels and verdicts for the cgroups and processes of a made-up machine. */
#include "machine.h"

#include "base/buf.h"
#include "workload/workload.h"

#define ID "3f2a9c0d1e4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1"

static struct workloads *w;
static struct err e;

/* What BPF was told. */
static uint64_t skipped[64];
static size_t nskipped, nprocesses, room;

static int skip_cgroup(void *ctx, uint64_t id, bool skip)
{
	ck_assert_ptr_eq(ctx, skipped);
	for (size_t i = 0; i < nskipped; i++) {
		if (skipped[i] != id)
			continue;
		ck_assert(!skip);
		skipped[i] = skipped[--nskipped];
		return 0;
	}
	ck_assert(skip);
	if (nskipped == room)
		return -E2BIG;
	skipped[nskipped++] = id;
	return 0;
}

static int skip_process(void *ctx, const struct wk_process_key *key, bool skip)
{
	ck_assert_ptr_eq(ctx, skipped);
	ck_assert_str_eq(key->comm, "evil");
	ck_assert_uint_eq(key->exec_id, 3);
	nprocesses += skip ? 1 : -1;
	return 0;
}

static struct workload_options options(void)
{
	return (struct workload_options){
		.root = root,
		.node_name = "n1",
		.skip_cgroup = skip_cgroup,
		.skip_process = skip_process,
		.ctx = skipped,
	};
}

static void open_workloads(const struct workload_options *o)
{
	workloads_free(w);
	nskipped = nprocesses = 0;
	room = ARRAY_SIZE(skipped);
	ck_assert_int_eq(workloads_new(o, &w, &e), 0);
	ck_assert_int_eq(workloads_start(w), 0);
}

static void setup(void)
{
	struct workload_options o = options();

	machine_setup();
	make_dir("/cg/system.slice/nginx.service");
	make_dir("/cg/user.slice/user-7.slice/user@7.service/app.slice/mail.service");
	make_dir("/cg/user.slice/user-7.slice/session-3.scope");
	make_dir("/cg/docker/" ID "/inner");
	make_dir("/cg/lxc.payload.web");
	open_workloads(&o);
}

static void teardown(void)
{
	workloads_free(w);
	w = NULL;
	machine_teardown();
}

static struct workload_key key(uint64_t cgroup)
{
	return (struct workload_key){
		.cgroup_id = cgroup,
		.start_time = 120000000,
		.exec_id = 3,
		.pid = 0,
		.global_pid = 7,
		.comm = "evil",
		.exe_path = "/usr/bin/app",
	};
}

static const char *labels_of(const struct workload_key *k)
{
	static char text[4096];
	struct labels l;
	struct buf b = BUF_INIT(sizeof(text));

	ck_assert_int_eq(workloads_labels(w, k, &l), 0);
	labels_text(&l, &b);
	snprintf(text, sizeof(text), "%s", b.data);
	buf_free(&b);
	labels_free(&l);
	return text;
}

static const char *labels_in(const char *cgroup)
{
	struct workload_key k = key(inode_of(cgroup));

	return labels_of(&k);
}

START_TEST(labels_of_cgroups)
{
	ck_assert_str_eq(labels_in("/cg/system.slice/nginx.service"),
			 "{node=\"n1\",service_name=\"nginx\",unit=\"nginx.service\"}");
	ck_assert_str_eq(
	    labels_in("/cg/user.slice/user-7.slice/user@7.service/app.slice/mail.service"),
	    "{node=\"n1\",service_name=\"mail\",unit=\"user@7.service\",user_unit=\"mail."
	    "service\"}");
	ck_assert_str_eq(
	    labels_in("/cg/user.slice/user-7.slice/session-3.scope"),
	    "{exe=\"/usr/bin/app\",node=\"n1\",service_name=\"app\",unit=\"session-3.scope\"}");
	ck_assert_str_eq(labels_in("/cg/docker/" ID "/inner"),
			 "{container=\"3f2a9c0d1e4b\",container_id=\"" ID
			 "\",node=\"n1\",service_name=\"3f2a9c0d1e4b\"}");
	ck_assert_str_eq(
	    labels_in("/cg/lxc.payload.web"),
	    "{container=\"web\",container_id=\"web\",node=\"n1\",service_name=\"web\"}");
	ck_assert_str_eq(labels_in("/cg"),
			 "{exe=\"/usr/bin/app\",node=\"n1\",service_name=\"app\"}");
}
END_TEST

START_TEST(labels_of_processes)
{
	struct workload_key k = key(inode_of("/cg"));
	char text[1024];

	k.exe_path = NULL;
	ck_assert_str_eq(labels_of(&k), "{node=\"n1\",service_name=\"unknown\"}");
	k.kernel = true;
	ck_assert_str_eq(labels_of(&k), "{node=\"n1\",service_name=\"kernel\"}");
	k.kernel = false;
	k.pid = (uint32_t)getpid();
	k.start_time = own_start_time();
	snprintf(text, sizeof(text), "%s", labels_of(&k));
	ck_assert_ptr_nonnull(
	    strstr(text, "workload_test\",node=\"n1\",service_name=\"workload_test\""));
	k.pid = 0; /* what was learned stays when the process has gone */
	ck_assert_str_eq(labels_of(&k), text);
	k.exec_id++;
	ck_assert_str_eq(labels_of(&k), "{node=\"n1\",service_name=\"unknown\"}");
	/* what its samples said, too */
	k.exec_id++;
	k.exe_path = "/usr/bin/app";
	ck_assert_ptr_nonnull(strstr(labels_of(&k), "service_name=\"app\""));
	k.exe_path = NULL;
	ck_assert_ptr_nonnull(strstr(labels_of(&k), "service_name=\"app\""));
}
END_TEST

static int announce(uint64_t id, const char *path)
{
	struct wk_cgroup_event event = { .type = WK_EVENT_CGROUP, .id = id };

	event.path_len = (uint32_t)snprintf(event.path, sizeof(event.path), "%s", path) + 1;
	return workloads_cgroup(w, &event);
}

/* Known from its making, gone long before its labels are asked for. */
START_TEST(short_lives)
{
	struct wk_cgroup_event bad = { .type = WK_EVENT_CGROUP };
	struct workload_key k = key(1ULL << 40);
	struct workloads_stats st;

	ck_assert_int_eq(announce(k.cgroup_id, "/docker/" ID), 0);
	ck_assert_ptr_nonnull(strstr(labels_of(&k), "container_id=\"" ID "\""));
	/* one that nothing was known of when it was met first */
	k.cgroup_id++;
	ck_assert_str_eq(labels_of(&k), "{exe=\"/usr/bin/app\",node=\"n1\",service_name=\"app\"}");
	workloads_stats(w, &st);
	ck_assert_uint_eq(st.cgroups_unknown, 1);
	ck_assert_int_eq(announce(k.cgroup_id, "/lxc.payload.late"), 0);
	ck_assert_ptr_nonnull(strstr(labels_of(&k), "container=\"late\""));
	memset(bad.path, 'x', sizeof(bad.path));
	ck_assert_int_eq(workloads_cgroup(w, &bad), -EINVAL);
	bad = (struct wk_cgroup_event){ .type = WK_EVENT_FILE };
	ck_assert_int_eq(workloads_cgroup(w, &bad), -EINVAL);
}
END_TEST

START_TEST(verdicts_on_cgroups)
{
	const struct workload_rule nginx = { .unit = "nginx.*" };
	struct workload_options o = options();
	struct workload_key k = key(inode_of("/cg/system.slice/nginx.service"));
	struct workload_key other = key(inode_of("/cg/lxc.payload.web"));
	struct workloads_stats st;

	o.rules.exclude = &nginx;
	o.rules.nexclude = 1;
	open_workloads(&o);
	ck_assert_uint_eq(nskipped, 1); /* told at once, by the scan */
	ck_assert_uint_eq(skipped[0], k.cgroup_id);
	ck_assert(!workloads_wanted(w, &k));
	ck_assert(workloads_wanted(w, &other));
	ck_assert_int_eq(announce(1, "/system.slice/nginx.service"), 0);
	ck_assert_uint_eq(nskipped, 2);
	workloads_stats(w, &st);
	ck_assert_uint_eq(st.cgroups_skipped, 2);

	o.rules = (struct workload_rules){ 0 };
	ck_assert_int_eq(workloads_set_rules(w, &o.rules), 0);
	ck_assert_uint_eq(nskipped, 0);
	ck_assert(workloads_wanted(w, &k));

	room = 1; /* BPF's map is full: the verdict still holds here */
	o.rules.opt_in = true;
	ck_assert_int_eq(workloads_set_rules(w, &o.rules), 0);
	ck_assert_uint_eq(nskipped, 1);
	ck_assert(!workloads_wanted(w, &k) && !workloads_wanted(w, &other));
	workloads_stats(w, &st);
	ck_assert_uint_gt(st.skips_refused, 3);
	ck_assert_uint_eq(st.cgroups_skipped, 1);
}
END_TEST

START_TEST(verdicts_on_processes)
{
	const struct workload_rule rules[] = { { .exe = "app", .comm = "ev*" }, { .uid = "33" } };
	struct workload_options o = options();
	struct workload_key k = key(inode_of("/cg/system.slice/nginx.service")), other = k;
	struct workloads_stats st;

	o.rules.exclude = rules;
	o.rules.nexclude = 2;
	open_workloads(&o);
	ck_assert_uint_eq(nskipped, 0);
	other.comm = "good";
	ck_assert(workloads_wanted(w, &other));
	ck_assert_uint_eq(nprocesses, 0);
	ck_assert(!workloads_wanted(w, &k));
	ck_assert(!workloads_wanted(w, &k));
	ck_assert_uint_eq(nprocesses, 1);
	k.exe_path = "/bin/other";
	k.uid = 33;
	ck_assert(!workloads_wanted(w, &k));
	ck_assert_uint_eq(nprocesses, 2);
	workloads_stats(w, &st);
	ck_assert_uint_eq(st.processes_skipped, 2);
	workloads_trim(w); /* what isn't remembered is not skipped */
	workloads_trim(w);
	workloads_trim(w);
	ck_assert_uint_eq(nprocesses, 0);
	ck_assert(!workloads_wanted(w, &k));
	o.rules = (struct workload_rules){ 0 };
	ck_assert_int_eq(workloads_set_rules(w, &o.rules), 0);
	ck_assert_uint_eq(nprocesses, 0);
	ck_assert(workloads_wanted(w, &k));
}
END_TEST

/* 20,000 processes in as many cgroups, within the bytes that were given. */
START_TEST(bounded)
{
	const struct workload_rule rule = { .comm = "evil" };
	struct workload_options o = options();
	struct workload_key k = key(0);
	struct workloads_stats st;
	char path[256];

	o.cache_bytes = 1 << 20;
	o.rules.exclude = &rule;
	o.rules.nexclude = 1;
	open_workloads(&o);
	for (uint32_t i = 0; i < 20000; i++) {
		k.cgroup_id = i + (1ULL << 40);
		k.global_pid = i + 1;
		k.exe_path = NULL;
		snprintf(path, sizeof(path), "/system.slice/unit%u.service", i);
		ck_assert_int_eq(announce(k.cgroup_id, path), 0);
		ck_assert(!workloads_wanted(w, &k));
		ck_assert_ptr_nonnull(strstr(labels_of(&k), "unit="));
		workloads_stats(w, &st);
		ck_assert_uint_le(st.bytes, o.cache_bytes / 2);
		ck_assert_uint_eq(st.processes_skipped, nprocesses);
	}
	ck_assert_uint_gt(st.evicted, 10000);
	ck_assert_uint_gt(st.cgroups, 100);
}
END_TEST

START_TEST(without_cgroups)
{
	struct workload_options o = options();
	struct workload_key k = key(5);

	make_file("/proc/self/mountinfo", "");
	open_workloads(&o);
	ck_assert_ptr_null(workloads_controller(w));
	ck_assert_str_eq(labels_of(&k), "{exe=\"/usr/bin/app\",node=\"n1\",service_name=\"app\"}");
	workloads_free(w);
	w = NULL;
	o.root = "/nonexistent";
	ck_assert_int_eq(workloads_new(&o, &w, &e), -ENOENT);
	ck_assert_ptr_nonnull(strstr(e.msg, "cgroup"));
}
END_TEST

START_TEST(node_names)
{
	struct workload_options o = options();
	struct workload_key k = key(5);

	o.node_name = NULL;
	setenv("NODE_NAME", "from-env", 1);
	open_workloads(&o);
	ck_assert_ptr_nonnull(strstr(labels_of(&k), "node=\"from-env\""));
	unsetenv("NODE_NAME");
	open_workloads(&o);
	ck_assert_ptr_nonnull(strstr(labels_of(&k), "node=\""));
	ck_assert_ptr_null(strstr(labels_of(&k), "from-env"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("workload");
	TCase *t = tcase_create("workload");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, labels_of_cgroups);
	tcase_add_test(t, labels_of_processes);
	tcase_add_test(t, short_lives);
	tcase_add_test(t, verdicts_on_cgroups);
	tcase_add_test(t, verdicts_on_processes);
	tcase_add_test(t, bounded);
	tcase_add_test(t, without_cgroups);
	tcase_add_test(t, node_names);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
