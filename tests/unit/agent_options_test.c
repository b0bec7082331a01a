/* agent_options_test.c - the agent's own table: defaults, what is judged beyond a type, servers
 * that inherit, secrets, what SIGHUP can't change. */
#include <check.h>

#include "cli/agent_options.h"

static const struct command cmd = { .name = "agent", .operands = "", .help = "h",
				    .rows = agent_rows };
static struct agent_config c;
static struct err e;
static struct buf text = BUF_INIT(1 << 20);
static char file[64], secret[64];
static const char *const no_variables[] = { NULL };

static void write_file(char path[static 64], const char *content)
{
	int fd;

	strcpy(path, "/tmp/wick-agent-XXXXXX");
	fd = mkstemp(path);
	ck_assert_int_eq(write(fd, content, strlen(content)), (ssize_t)strlen(content));
	close(fd);
}

static void setup(void)
{
	write_file(secret, "correct-horse-battery\n");
	strcpy(file, "");
}

static void teardown(void)
{
	agent_config_free(&c);
	buf_free(&text);
	unlink(secret);
	if (*file)
		unlink(file);
}

/* As main() gets them; nobody writes to them. */
static char *const *words(const char *const *w)
{
	return (char *const *)(uintptr_t)w;
}

/* Flags, NULL-terminated. */
static int read_flags(const char *const *flags)
{
	const char *argv[16] = { "agent" };
	int n = 1;

	while (flags[n - 1]) {
		argv[n] = flags[n - 1];
		n++;
	}
	agent_config_free(&c);
	e.msg[0] = '\0';
	return agent_config_read(&cmd, n, words(argv), words(no_variables), &c, &e);
}

#define FLAGS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static int read_file(const char *yaml)
{
	if (*file)
		unlink(file);
	write_file(file, yaml);
	return read_flags(FLAGS("--config", file));
}

static bool told(const char *part)
{
	return strstr(e.msg, part) != NULL;
}

START_TEST(test_defaults)
{
	ck_assert_int_eq(read_flags((const char *const[]){ NULL }), 0);
	ck_assert_uint_eq(c.o.freq, 19);
	ck_assert_uint_eq(c.o.window_ns, 15000000000ULL);
	ck_assert_str_eq(c.o.event, "cpu-clock");
	ck_assert_str_eq(c.o.listen, "127.0.0.1:9425");
	ck_assert_uint_eq(c.o.kubernetes, AGENT_KUBERNETES_AUTO);
	ck_assert_uint_eq(c.o.log_level, AGENT_LOG_INFO);
	ck_assert_uint_eq(c.o.push.n, 0);
	ck_assert_ptr_null(c.o.spool_dir);
	ck_assert_uint_eq(c.o.cpu_budget, 0);
	ck_assert(!c.check);
}
END_TEST

START_TEST(test_vmlinux)
{
	ck_assert_int_eq(read_file("symbols: {lines: yes, vmlinux: /proc/self/exe}\n"), 0);
	ck_assert_str_eq(c.o.vmlinux, "/proc/self/exe");
	ck_assert_int_eq(read_file("symbols: {vmlinux: /proc/self/exe}\n"), -EINVAL);
	ck_assert(told("--lines"));
	ck_assert_int_eq(read_file("symbols: {lines: yes, vmlinux: /nonexistent}\n"), -EINVAL);
}
END_TEST

/* Asked for by any source, and refused where nobody can be asked. */
START_TEST(test_debuginfod)
{
	unsetenv("DEBUGINFOD_URLS");
	ck_assert_int_eq(read_flags((const char *const[]){ NULL }), 0);
	ck_assert(!c.o.debuginfod);
	ck_assert_int_eq(read_file("symbols: {debuginfod: yes}\n"), -EINVAL);
	ck_assert(told("DEBUGINFOD_URLS"));
	setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1", 1);
	ck_assert_int_eq(read_file("symbols:\n  debuginfod: yes\n  debuginfod_time: 5s\n"
				   "  debuginfod_bytes: 2M\n  debuginfod_cache_bytes: 3M\n"
				   "  debuginfod_queue: 7\n"), 0);
	ck_assert(c.o.debuginfod && c.o.debuginfod_queue == 7 && c.o.debuginfod_bytes == 2 << 20);
	ck_assert(c.o.debuginfod_ns == 5000000000ULL && c.o.debuginfod_cache_bytes == 3 << 20);
	unsetenv("DEBUGINFOD_URLS");
}
END_TEST

/* Every default must pass as a value, and each name is a variable that no Service of Kubernetes
 * makes. */
START_TEST(test_table)
{
	for (const struct option_row *row = agent_rows; row->type != OPT_END; row++) {
		ck_assert_msg(strncmp(row->name, "service-", 8) && strncmp(row->name, "port", 4),
			      "%s", row->name);
		for (const struct option_row *other = row + 1; other->type != OPT_END; other++)
			ck_assert_str_ne(row->name, other->name);
	}
}
END_TEST

START_TEST(test_file)
{
	char yaml[1000];

	snprintf(
	    yaml, sizeof(yaml),
	    "freq: 49\nlabels: {team: a}\nspool: {dir: /var/lib/wick, bytes: 1G}\n"
	    "targets:\n  include:\n    - {namespace: prod, comm: 'nginx*'}\n    - uid=1000\n"
	    "  exclude: [{unit: 'user@*.service'}]\n  opt_in: yes\n"
	    "kubernetes: {mode: kubelet, kubelet_url: 'https://10.0.0.1:10250', "
	    "pod_labels: [team, app]}\n"
	    "symbols: {demangle: full}\nlisten: none\nlog_level: debug\ncpu_budget: 50\n"
	    "push:\n  - pyroscope+http://one:4040\n"
	    "  - url: pyroscope+https://two\n    tenant: t\n    user: u\n    password_file: %s\n"
	    "    headers: {X-A: b}\n    insecure: yes\n    timeout: 5s\n",
	    secret);
	ck_assert_msg(!read_file(yaml), "%s", e.msg);
	ck_assert_uint_eq(c.o.freq, 49);
	ck_assert_str_eq(c.o.labels.v[0], "team=a");
	ck_assert_str_eq(c.o.spool_dir, "/var/lib/wick");
	ck_assert_uint_eq(c.o.spool_bytes, 1 << 30);
	ck_assert_uint_eq(c.o.include.n, 2);
	ck_assert_str_eq(c.o.include.v[0].namespace, "prod");
	ck_assert_str_eq(c.o.include.v[0].comm, "nginx*");
	ck_assert_ptr_null(c.o.include.v[0].pod);
	ck_assert_str_eq(c.o.include.v[1].uid, "1000");
	ck_assert_str_eq(c.o.exclude.v[0].unit, "user@*.service");
	ck_assert(c.o.opt_in);
	ck_assert_uint_eq(c.o.kubernetes, AGENT_KUBERNETES_KUBELET);
	ck_assert_uint_eq(c.o.pod_labels.n, 2);
	ck_assert_uint_eq(c.o.demangle, 2);
	ck_assert_ptr_null(c.o.listen);
	ck_assert_uint_eq(c.o.log_level, AGENT_LOG_DEBUG);
	ck_assert_uint_eq(c.o.cpu_budget, 50);
	ck_assert_uint_eq(c.o.push.n, 2);
	ck_assert_str_eq(c.o.push.v[0].url, "pyroscope+http://one:4040");
	ck_assert_uint_eq(c.o.push.v[0].timeout_ns, 30000000000ULL);
	ck_assert(!c.o.push.v[0].insecure);
	ck_assert_str_eq(c.o.push.v[1].password_file, secret);
	ck_assert_uint_eq(c.o.push.v[1].timeout_ns, 5000000000ULL);
	ck_assert(c.o.push.v[1].insecure);
}
END_TEST

START_TEST(test_servers_inherit)
{
	ck_assert_int_eq(read_file("push_tenant: all\npush_insecure: yes\npush_headers: {X: y}\n"
				   "push:\n  - pyroscope+http://one\n"
				   "  - {url: pyroscope+http://two, tenant: own, insecure: no, "
				   "headers: ['A: b']}\n"), 0);
	ck_assert_str_eq(c.o.push.v[0].tenant, "all");
	ck_assert(c.o.push.v[0].insecure);
	ck_assert_str_eq(c.o.push.v[0].headers.v[0], "X: y");
	ck_assert_str_eq(c.o.push.v[1].tenant, "own");
	ck_assert(!c.o.push.v[1].insecure);
	ck_assert_uint_eq(c.o.push.v[1].headers.n, 1);
	ck_assert_str_eq(c.o.push.v[1].headers.v[0], "A: b");
}
END_TEST

static const struct {
	const char *flag, *value, *message;
} refused[] = {
	{ "--event", "nothing", "--event: 'nothing' is not one of cpu-clock" },
	{ "--label", "a-b=c", "--label: " },
	{ "--label", "__name__=c", "reserved" },
	{ "--push", "http://host", "--push" },
	{ "--push", "gopher://host", "--push" },
	{ "--push", "pyroscope+http://u:pw@host", "everybody can read a password" },
	{ "--push-headers", "nonsense", "--push-headers: not NAME: VALUE" },
	{ "--push-headers", "A: b\r\nC: d", "control character" },
	{ "--push-headers", "authorization: Basic eA==", "bearer_token_file" },
	{ "--push-password-file", "/nonexistent", "can't be read" },
	{ "--targets-include", "colour=red", "unknown name 'colour'" },
	{ "--targets-include", "uid=root", "not a user id" },
	{ "--kubernetes-api-url", "host:6443", "is not http://HOST" },
	{ "--listen", "everywhere", "is not ADDRESS:PORT" },
	{ "--listen", "0.0.0.0:9425", "takes a token (listen-token-file)" },
	{ "--listen", ":9425", "takes a token" },
	{ "--window", "0.5", "from 1s to 10m" },
	{ "--memory-budget", "1M", "from 32M" },
	{ "--config", "/nonexistent.yaml", "'/nonexistent.yaml' can't be read" },
};

START_TEST(test_refused)
{
	ck_assert_int_eq(read_flags(FLAGS(refused[_i].flag, refused[_i].value)), -EINVAL);
	ck_assert_msg(told(refused[_i].message), "'%s' is not in '%s'", refused[_i].message, e.msg);
	ck_assert_msg(!told(":pw@") && !told("eA=="), "a secret in '%s'", e.msg);
}
END_TEST

START_TEST(test_together)
{
	char yaml[300];

	ck_assert_int_eq(read_file("push: [{url: 'pyroscope+http://h', user: u}]"), -EINVAL);
	ck_assert(told("user and password_file go together"));
	snprintf(yaml, sizeof(yaml), "push: [{url: 'pyroscope+http://h', cert_file: %s}]", secret);
	ck_assert_int_eq(read_file(yaml), -EINVAL);
	ck_assert(told("cert_file and key_file go together"));
	snprintf(yaml, sizeof(yaml),
		 "push: [{url: 'pyroscope+http://h', user: u, password_file: %s,"
		 " bearer_token_file: %s}]",
		 secret, secret);
	ck_assert_int_eq(read_file(yaml), -EINVAL);
	ck_assert(told("exclude each other"));
	snprintf(yaml, sizeof(yaml), "listen: 0.0.0.0:9425\nlisten_token_file: %s", secret);
	ck_assert_msg(!read_file(yaml), "%s", e.msg);
}
END_TEST

START_TEST(test_place_of_a_secret)
{
	char yaml[300], place[200];

	snprintf(yaml, sizeof(yaml), "push:\n  - url: pyroscope+http://h\n"
				     "    bearer_token_file: /nonexistent/token\n");
	ck_assert_int_eq(read_file(yaml), -EINVAL);
	snprintf(place, sizeof(place), "%s:3:24: bearer-token-file: '/nonexistent/token' can't be "
				       "read: No such file", file);
	ck_assert_msg(told(place), "%s", e.msg);
}
END_TEST

START_TEST(test_print_masks)
{
	ck_assert_msg(!read_file("push:\n  - {url: 'pyroscope+https://me:pw@h/x?tenant=t', "
				 "headers: {X-Key: k3y}}\npush_headers: {Y: k3y}\n"), "%s", e.msg);
	agent_config_print(&c, &text);
	ck_assert_int_eq(text.err, 0);
	ck_assert_ptr_null(strstr(text.data, "k3y"));
	ck_assert_ptr_null(strstr(text.data, ":pw@"));
	ck_assert_ptr_nonnull(strstr(text.data,
				     "  - url: \"pyroscope+https://me:********@h/x?tenant=t\"\n"
				     "    headers: [\"X-Key: ********\"]\n"));
	ck_assert_ptr_nonnull(strstr(text.data, "push_headers: [\"Y: ********\"]  # file\n"));
	ck_assert_ptr_nonnull(strstr(text.data, "freq: 19  # default\n"));
	ck_assert_ptr_null(strstr(text.data, "config:"));
}
END_TEST

START_TEST(test_environment_names_the_file)
{
	const char *const argv[] = { "agent", "-F", "7", NULL };
	char variable[100];
	const char *const variables[] = { variable, "WICK_WINDOW=30s", "WICK_FREQ=5", NULL };

	write_file(file, "freq: 3\nwindow: 20s\ngrace: 3s\n");
	snprintf(variable, sizeof(variable), "WICK_CONFIG=%s", file);
	ck_assert_int_eq(agent_config_read(&cmd, 3, words(argv), words(variables), &c, &e), 0);
	ck_assert_uint_eq(c.o.freq, 7);
	ck_assert_uint_eq(c.o.window_ns, 30000000000ULL);
	ck_assert_uint_eq(c.o.grace_ns, 3000000000ULL);
}
END_TEST

START_TEST(test_changed)
{
	struct agent_config first;

	ck_assert_int_eq(read_file("freq: 3\nwindow: 20s\nkubernetes: {pod_labels: [a]}\n"), 0);
	first = c;
	c = (struct agent_config){ 0 };
	ck_assert_int_eq(read_file("freq: 4\nwindow: 30s\nkubernetes: {pod_labels: [b]}\n"
				   "labels: {a: b}\n"), 0);
	agent_config_changed(&first, &c, &text);
	ck_assert_str_eq(text.data, "window, kubernetes-pod-labels");
	agent_config_free(&first);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("agent_options");
	TCase *t = tcase_create("agent_options");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, test_defaults);
	tcase_add_test(t, test_debuginfod);
	tcase_add_test(t, test_vmlinux);
	tcase_add_test(t, test_table);
	tcase_add_test(t, test_file);
	tcase_add_test(t, test_servers_inherit);
	tcase_add_loop_test(t, test_refused, 0, ARRAY_SIZE(refused));
	tcase_add_test(t, test_together);
	tcase_add_test(t, test_place_of_a_secret);
	tcase_add_test(t, test_print_masks);
	tcase_add_test(t, test_environment_names_the_file);
	tcase_add_test(t, test_changed);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
