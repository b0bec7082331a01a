/* pod_test.c - pods as the API describes them and as it doesn't; the table of them; the API's
 * answers. */
#include <check.h>

#include "workload/kube_answer.h"
#include "workload/pods.h"

#define UID  "b2d8b1a0-5f0e-4b8e-9d57-2f0d1c8e7a11"
#define META "\"name\":\"web-7d9-x\",\"namespace\":\"shop\",\"uid\":\"" UID "\""

static struct pod *pod;
static char version_label[] = "app.kubernetes.io/version", tier[] = "tier", missing[] = "missing";
static char team[] = "team", *wished_labels[] = { version_label, tier, missing };
static char *wished_annotations[] = { team };
static const struct str_list labels = { wished_labels, ARRAY_SIZE(wished_labels), 0 };
static const struct str_list annotations = { wished_annotations, ARRAY_SIZE(wished_annotations),
					     0 };
static const struct pod_wishes wishes = { &labels, &annotations }, none;

static int parse_with(const char *json, const struct pod_wishes *w)
{
	json_t *object = json_loads(json, 0, NULL);
	int r;

	ck_assert_msg(object != NULL, "%s", json);
	pod_free(pod);
	pod = NULL;
	r = pod_parse(object, w, &pod);
	json_decref(object);
	return r;
}

static void parse(const char *json)
{
	ck_assert_msg(!parse_with(json, &none), "%s", json);
}

static void teardown(void)
{
	pod_free(pod);
	pod = NULL;
}

START_TEST(whole_pod)
{
	ck_assert_int_eq(
	    parse_with(
		"{\"metadata\":{" META ",\"labels\":{\"app\":\"web\",\"tier\":\"front\","
		"\"app.kubernetes.io/version\":\"1.2\",\"pod-template-hash\":\"7d9\"},"
		"\"annotations\":{\"team\":\"a b\"},\"ownerReferences\":["
		"{\"kind\":\"Node\",\"name\":\"n\"},"
		"{\"kind\":\"ReplicaSet\",\"name\":\"web-front-7d9\",\"controller\":true}]},"
		"\"status\":{\"containerStatuses\":[{\"name\":\"api\",\"containerID\":"
		"\"containerd://aaa\",\"lastState\":{\"terminated\":{\"containerID\":"
		"\"containerd://before\"}}},{\"name\":\"starting\"}],"
		"\"initContainerStatuses\":[{\"name\":\"init\",\"containerID\":\"cri-o://bbb\","
		"\"state\":{\"terminated\":{\"containerID\":\"cri-o://bbb\"}}}],"
		"\"ephemeralContainerStatuses\":[{\"name\":\"debug\",\"containerID\":\"ccc\"}]}}",
		&wishes),
	    0);
	ck_assert_str_eq(pod->uid, UID);
	ck_assert_str_eq(pod->name, "web-7d9-x");
	ck_assert_str_eq(pod->namespace, "shop");
	ck_assert_str_eq(pod->workload, "web-front");
	ck_assert_str_eq(pod->workload_kind, "Deployment");
	ck_assert_str_eq(pod->service, "web");
	ck_assert_str_eq(pod_container(pod, "aaa"), "api");
	ck_assert_str_eq(pod_container(pod, "before"), "api");
	ck_assert_str_eq(pod_container(pod, "bbb"), "init");
	ck_assert_str_eq(pod_container(pod, "ccc"), "debug");
	ck_assert_ptr_null(pod_container(pod, "ddd"));
	ck_assert_uint_eq(pod->ncontainers, 4);
	ck_assert_uint_eq(pod->extra.n, 3);
	ck_assert_str_eq(labels_get(&pod->extra, "app_kubernetes_io_version"), "1.2");
	ck_assert_str_eq(labels_get(&pod->extra, "team"), "a b");
	ck_assert_uint_gt(pod->bytes, sizeof(*pod));
}
END_TEST

START_TEST(owners)
{
	static const struct {
		const char *kind, *name, *hash, *want_kind, *want;
	} cases[] = {
		{ "ReplicaSet", "web-7d9", "7d9", "Deployment", "web" },
		{ "ReplicaSet", "web-7d9", "8e0", "ReplicaSet", "web-7d9" },
		{ "ReplicaSet", "-7d9", "7d9", "ReplicaSet", "-7d9" },
		{ "ReplicaSet", "7d9", "7d9", "ReplicaSet", "7d9" },
		{ "ReplicaSet", "web7d9", "7d9", "ReplicaSet", "web7d9" },
		{ "ReplicaSet", "web", "", "ReplicaSet", "web" },
		{ "StatefulSet", "db", "x", "StatefulSet", "db" },
		{ "DaemonSet", "agent", "x", "DaemonSet", "agent" },
		{ "Job", "backup-28912345", "x", "CronJob", "backup" },
		{ "Job", "backup-2891234", "x", "Job", "backup-2891234" },
		{ "Job", "backup-2891234x", "x", "Job", "backup-2891234x" },
		{ "Job", "once", "x", "Job", "once" },
		{ "Rollout", "canary", "x", "Rollout", "canary" },
	};
	char json[1024];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		snprintf(
		    json, sizeof(json),
		    "{\"metadata\":{" META ",\"labels\":{\"pod-template-hash\":\"%s\"},"
		    "\"ownerReferences\":[{\"kind\":\"%s\",\"name\":\"%s\",\"controller\":true}]}}",
		    cases[i].hash, cases[i].kind, cases[i].name);
		parse(json);
		ck_assert_str_eq(pod->workload, cases[i].want);
		ck_assert_str_eq(pod->workload_kind, cases[i].want_kind);
		ck_assert_str_eq(pod->service, cases[i].want);
	}
	parse("{\"metadata\":{" META ",\"ownerReferences\":[{\"kind\":\"X\",\"name\":\"y\"}]}}");
	ck_assert_ptr_null(pod->workload); /* doesn't control it */
	ck_assert_ptr_null(pod->service);
}
END_TEST

START_TEST(service_names)
{
	static const char *const annotations_[] = {
		"\"profiles.grafana.com/service_name\":\"first\"",
		"\"pyroscope.io/service_name\":\"second\"",
	};
	static const char *const labels_[] = {
		"\"app.kubernetes.io/name\":\"third\"",
		"\"app\":\"fourth\"",
	};
	static const char *const want[] = { "first", "second", "third", "fourth", "db" };
	char json[1024];

	for (size_t from = 0; from < ARRAY_SIZE(want); from++) {
		snprintf(json, sizeof(json),
			 "{\"metadata\":{" META ",\"annotations\":{%s%s%s},\"labels\":{%s%s%s},"
			 "\"ownerReferences\":[{\"kind\":\"StatefulSet\",\"name\":\"db\","
			 "\"controller\":true}]}}",
			 from < 1 ? annotations_[0] : "", from < 1 ? "," : "",
			 from < 2 ? annotations_[1] : "", from < 3 ? labels_[0] : "",
			 from < 3 ? "," : "", from < 4 ? labels_[1] : "");
		parse(json);
		ck_assert_str_eq(pod->service, want[from]);
	}
}
END_TEST

START_TEST(what_it_asks_for)
{
	static const struct {
		const char *annotations;
		int asks;
	} cases[] = {
		{ "", 0 },
		{ "\"profiles.grafana.com/cpu.ebpf.enabled\":\"true\"", 1 },
		{ "\"profiles.grafana.com/cpu.ebpf.enabled\":\"False\"", -1 },
		{ "\"profiles.grafana.com/cpu.ebpf.enabled\":\"yes\"", 0 },
		{ "\"profiles.grafana.com/cpu.ebpf.enabled\":true", 0 }, /* values are strings */
		{ "\"pyroscope.io/profile-cpu-enabled\":\"false\"", -1 },
		{ "\"pyroscope.io/scrape\":\"true\"", 1 },
		{ "\"profefe.com/enable\":\"true\"", 1 },
		{ "\"pyroscope.io/scrape\":\"true\",\"pyroscope.io/profile-cpu-enabled\":\"false\"",
		  -1 },
		{ "\"profiles.grafana.com/cpu.ebpf.enabled\":\"true\",\"pyroscope.io/"
		  "scrape\":\"false\"",
		  1 },
	};
	char json[1024];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		snprintf(json, sizeof(json), "{\"metadata\":{" META ",\"annotations\":{%s}}}",
			 cases[i].annotations);
		parse(json);
		ck_assert_msg(pod->asks == cases[i].asks, "%s", cases[i].annotations);
	}
}
END_TEST

START_TEST(static_pods)
{
	parse("{\"metadata\":{" META ",\"annotations\":{\"kubernetes.io/config.hash\":"
	      "\"0123456789abcdef0123456789abcdef\",\"kubernetes.io/config.mirror\":\"x\"}}}");
	ck_assert_str_eq(pod->uid, "0123456789abcdef0123456789abcdef");
	parse("{\"metadata\":{" META ",\"annotations\":{\"kubernetes.io/config.hash\":\"012\"}}}");
	ck_assert_str_eq(pod->uid, UID);
}
END_TEST

START_TEST(not_pods)
{
	static const char *const bad[] = {
		"{}",
		"[]",
		"{\"metadata\":[]}",
		"{\"metadata\":{}}",
		"{\"metadata\":\"x\"}",
		"{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\"}}",
		"{\"metadata\":{\"name\":\"a\",\"uid\":\"b\"}}",
		"{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\",\"uid\":\"../x\"}}",
		"{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\",\"uid\":\"\"}}",
		"{\"metadata\":{\"name\":1,\"namespace\":\"b\",\"uid\":\"c\"}}",
		"{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\",\"uid\":"
		"\"0123456789012345678901234567890123456789012345678901234567890123\"}}",
	};
	/* one field wrong, the rest used */
	static const char *const odd[] = {
		"{\"metadata\":{" META ",\"labels\":[],\"annotations\":3,\"ownerReferences\":{}},"
		"\"status\":[]}",
		"{\"metadata\":{" META ",\"ownerReferences\":[1,null,{\"controller\":true},"
		"{\"controller\":true,\"kind\":1,\"name\":\"x\"}]}}",
		"{\"metadata\":{" META "},\"status\":{\"containerStatuses\":[1,{},[],"
		"{\"name\":\"x\"},{\"containerID\":\"y\"},{\"name\":\"x\",\"containerID\":\"a://"
		"\"},"
		"{\"name\":\"x\",\"containerID\":7,\"state\":3,\"lastState\":{\"terminated\":[]}}]}"
		"}",
		"{\"metadata\":{" META "},\"status\":{\"containerStatuses\":{\"0\":{}}}}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		ck_assert_msg(parse_with(bad[i], &none) == -EINVAL, "%s", bad[i]);
		ck_assert_ptr_null(pod);
	}
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
		parse(odd[i]);
		ck_assert_ptr_null(pod->workload);
		ck_assert_uint_eq(pod->ncontainers, 0);
	}
}
END_TEST

START_TEST(caps)
{
	struct buf b = BUF_INIT(1 << 20);

	buf_str(&b, "{\"metadata\":{" META ",\"labels\":{\"app\":\"");
	for (int i = 0; i < 10000; i++)
		buf_char(&b, 'x');
	buf_str(&b, "\"}},\"status\":{\"containerStatuses\":[");
	for (int i = 0; i < 1000; i++)
		buf_printf(&b, "%s{\"name\":\"c\",\"containerID\":\"x://id%d\"}", i ? "," : "", i);
	buf_str(&b, "]}}");
	parse(b.data);
	buf_free(&b);
	ck_assert_uint_eq(strlen(pod->service), POD_TEXT_MAX - 1);
	ck_assert_uint_eq(pod->ncontainers, POD_CONTAINERS_MAX);
	ck_assert_uint_lt(pod->bytes, 64 << 10);
}
END_TEST

/* ---- the table ---- */

static struct pods pods;

static void put(const char *uid, const char *name, const char *container)
{
	char json[512];

	snprintf(json, sizeof(json),
		 "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"%s\"},\"status\":"
		 "{\"containerStatuses\":[{\"name\":\"main\",\"containerID\":\"x://%s\"}]}}",
		 name, uid, container);
	parse(json);
	ck_assert_int_eq(pods_put(&pods, take(pod)), 0);
}

START_TEST(table)
{
	const struct pod *p;
	const char *name;

	pods_init(&pods, 1 << 20);
	put("u1", "one", "c1");
	put("u2", "two", "c2");
	ck_assert_uint_eq(pods.generation, 2);
	p = pods_find(&pods, "u1", "c1", &name);
	ck_assert_str_eq(p->name, "one");
	ck_assert_str_eq(name, "main");
	p = pods_find(&pods, "u1", "c2", &name); /* the uid is certain */
	ck_assert_str_eq(p->name, "one");
	ck_assert_ptr_null(name);
	p = pods_find(&pods, "", "c2", &name);
	ck_assert_str_eq(p->name, "two");
	p = pods_find(&pods, "u1", NULL, &name);
	ck_assert_str_eq(p->name, "one");
	ck_assert_ptr_null(pods_find(&pods, "u3", NULL, &name));
	ck_assert_ptr_null(pods_find(&pods, "", NULL, &name));
	ck_assert_ptr_null(pods_find(&pods, "", "c3", &name));
	put("u1", "one", "c1"); /* as it was */
	ck_assert_uint_eq(pods.generation, 2);
	put("u1", "renamed", "c3");
	ck_assert_uint_eq(pods.generation, 3);
	ck_assert_uint_eq(pods.lru.n, 2);
	ck_assert_str_eq(pods_find(&pods, "", "c3", &name)->name, "renamed");
	ck_assert_ptr_null(pods_find(&pods, "", "c1", &name));
	pods_free(&pods);
}
END_TEST

START_TEST(table_is_bounded)
{
	const char *name;
	char uid[32];

	pods_init(&pods, 64 << 10);
	for (int i = 0; i < 5000; i++) {
		snprintf(uid, sizeof(uid), "u%d", i);
		put(uid, "pod", uid);
		ck_assert_ptr_nonnull(pods_find(&pods, "u0", NULL, &name)); /* in use */
		ck_assert_uint_le(pods.lru.bytes, 64 << 10);
	}
	ck_assert_uint_gt(pods.lru.evicted, 4000);
	pods_free(&pods);
}
END_TEST

/* ---- answers ---- */

static size_t npods;
static char last[64];

static void on_pod(void *ctx, const json_t *object)
{
	const json_t *name = json_object_get(json_object_get(object, "metadata"), "name");

	ck_assert_ptr_eq(ctx, &npods);
	npods++;
	snprintf(last, sizeof(last), "%s", json_is_string(name) ? json_string_value(name) : "");
}

static const struct kube_reader to = { on_pod, &npods };

START_TEST(lists)
{
	static const char full[] =
	    "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"7\","
	    "\"continue\":\"abc\"},\"items\":[{\"metadata\":{\"name\":\"a\"}},3,"
	    "{\"metadata\":{\"name\":\"b\"}}]}";
	static const char *const bad[] = {
		"",
		"x",
		"[]",
		"{}",
		"{\"items\":{}}",
		"{\"items\":[]",
		"{\"items\":[]}x",
		"{\"kind\":\"Status\",\"code\":403}",
		"{\"items\":[\"\\ud800\"]}",
		"{\"items\":[\"\x01\"]}",
	};
	char version[KUBE_VERSION_MAX] = "old", next[KUBE_CONTINUE_MAX] = "old";

	npods = 0;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ck_assert_int_eq(kube_read_list(bad[i], strlen(bad[i]), &to, version, next),
				 -EBADMSG);
	for (size_t cut = 0; cut < sizeof(full) - 1; cut++)
		ck_assert_int_eq(kube_read_list(full, cut, &to, version, next), -EBADMSG);
	ck_assert_uint_eq(npods, 0);
	ck_assert_str_eq(version, "old");
	ck_assert_int_eq(kube_read_list(full, sizeof(full) - 1, &to, version, next), 0);
	ck_assert_uint_eq(npods, 3);
	ck_assert_str_eq(version, "7");
	ck_assert_str_eq(next, "abc");
	ck_assert_int_eq(kube_read_list("{\"items\":null}", 14, &to, version, next), 0);
	ck_assert_str_eq(version, "");
	ck_assert_str_eq(next, "");
}
END_TEST

START_TEST(events)
{
	static const struct {
		const char *line;
		int r;
		size_t pods;
		const char *version;
	} cases[] = {
		{ "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\","
		  "\"resourceVersion\":"
		  "\"8\"}}}",
		  0, 1, "8" },
		{ "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}", 0, 1, "7" },
		{ "{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"resourceVersion\":\"9\"}}}", 0,
		  0, "9" },
		{ "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"10\"}}}",
		  0, 0, "10" },
		{ "{\"type\":\"NEW\",\"object\":{}}", 0, 0, "7" }, /* of a later API: no pod */
		{ "{\"type\":\"ERROR\",\"object\":{\"code\":410}}", -ESTALE, 0, "7" },
		{ "{\"type\":\"ERROR\",\"object\":{\"code\":500}}", -EBADMSG, 0, "7" },
		{ "{\"type\":\"ERROR\"}", -EBADMSG, 0, "7" },
		{ "{\"type\":\"ADDED\",\"object\":7}", -EBADMSG, 0, "7" },
		{ "{\"type\":1,\"object\":{}}", -EBADMSG, 0, "7" },
		{ "{\"type\":\"ADDED\"", -EBADMSG, 0, "7" },
		{ "null", -EBADMSG, 0, "7" },
	};
	char version[KUBE_VERSION_MAX], line[2 * KUBE_VERSION_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		npods = 0;
		strcpy(version, "7");
		ck_assert_int_eq(
		    kube_read_event(cases[i].line, strlen(cases[i].line), &to, version),
		    cases[i].r);
		ck_assert_msg(npods == cases[i].pods, "%s", cases[i].line);
		ck_assert_str_eq(version, cases[i].version);
	}
	snprintf(
	    line, sizeof(line),
	    "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"%0300d\"}}}",
	    1);
	ck_assert_int_eq(kube_read_event(line, strlen(line), &to, version), 0);
	ck_assert_str_eq(version, "7");
}
END_TEST

START_TEST(messages)
{
	char text[KUBE_MESSAGE_MAX], json[1024] = "{\"message\":\"no\\nway \\u00e9\"}";

	kube_read_message(json, strlen(json), text);
	ck_assert_str_eq(text, "no?way ??");
	kube_read_message("<html>", 6, text);
	ck_assert_str_eq(text, "");
	snprintf(json, sizeof(json), "{\"message\":\"%0500d\"}", 1);
	kube_read_message(json, strlen(json), text);
	ck_assert_uint_eq(strlen(text), KUBE_MESSAGE_MAX - 1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("pod");
	TCase *t = tcase_create("pod");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, NULL, teardown);
	tcase_add_test(t, whole_pod);
	tcase_add_test(t, owners);
	tcase_add_test(t, service_names);
	tcase_add_test(t, what_it_asks_for);
	tcase_add_test(t, static_pods);
	tcase_add_test(t, not_pods);
	tcase_add_test(t, caps);
	tcase_add_test(t, table);
	tcase_add_test(t, table_is_bounded);
	tcase_add_test(t, lists);
	tcase_add_test(t, events);
	tcase_add_test(t, messages);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
