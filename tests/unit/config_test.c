/* config_test.c - a file and the environment as sources of options: every form, every mistake with
 * its place, precedence, and what is printed. */
#include <check.h>

#include "cli/config.h"

struct server {
	uint32_t given;
	char *url, *key;
	struct str_list headers;
	uint64_t timeout;
};

struct opts {
	uint32_t freq, mode;
	uint64_t bytes, age;
	bool quiet, check;
	char *name, *token;
	struct str_list labels, plain;
	struct u32_list pids;
	struct { struct server *v; size_t n, cap; } push, rules;
};

static int check_name(const char *text, struct err *e)
{
	return strcmp(text, "bad") ? 0 : err_set(e, -EINVAL, "'bad' is no name");
}

static void mask(const char *text, struct buf *ret)
{
	buf_bytes(ret, text, strcspn(text, ":"));
	buf_str(ret, ": ***");
}

#define AT(f) offsetof(struct opts, f)

static const char *const modes[] = { "off", "auto", NULL };

static const struct option_row server_rows[] = {
	{ OPT_STRING, 0, "url", "URL", "", offsetof(struct server, url) },
	{ OPT_FILE, 0, "key-file", "FILE", "", offsetof(struct server, key) },
	{ OPT_LIST, 0, "headers", "H", "", offsetof(struct server, headers), .joint = ": ",
	  .mask = mask },
	{ OPT_SECONDS, 0, "timeout", "S", "", offsetof(struct server, timeout) },
	{ .type = OPT_END },
};

static const struct option_row rows[] = {
	{ OPT_FLAG, 0, "check", NULL, "", AT(check), .no_key = true },
	{ OPT_U32, 'F', "freq", "HZ", "", AT(freq), .min = 1, .max = 1000, .def = "19" },
	{ OPT_CHOICE, 0, "kube-mode", "MODE", "", AT(mode), .choices = modes, .def = "auto" },
	{ OPT_SIZE, 0, "spool-bytes", "BYTES", "", AT(bytes), .def = "1M" },
	{ OPT_SECONDS, 0, "spool-age", "SECONDS", "", AT(age) },
	{ OPT_FLAG, 0, "quiet", NULL, "", AT(quiet) },
	{ OPT_STRING, 0, "node-name", "NAME", "", AT(name), .check = check_name },
	{ OPT_FILE, 0, "token-file", "FILE", "", AT(token) },
	{ OPT_LIST, 0, "label", "N=V", "", AT(labels), .key = "labels", .joint = "=" },
	{ OPT_LIST, 0, "plain", "TEXT", "", AT(plain) },
	{ OPT_U32_LIST, 0, "pid", "PID,...", "", AT(pids), .min = 1 },
	{ OPT_STRUCTS, 0, "push", "URL", "", AT(push), .rows = server_rows,
	  .size = sizeof(struct server) },
	{ OPT_STRUCTS, 0, "rules", "NAME=VALUE,...", "", AT(rules), .rows = server_rows,
	  .size = sizeof(struct server), .pairs = true },
	{ .type = OPT_END },
};

static const struct command cmd = { .name = "test", .operands = "", .help = "h", .rows = rows };
static struct opts o;
static uint8_t sources[ARRAY_SIZE(rows)];
static const struct option_values v = { .rows = rows, .opts = &o, .sources = sources };
static struct err e;
static struct buf text = BUF_INIT(1 << 20);

/* As main() gets them; nobody writes to them. */
static char *const *words(const char *const *w)
{
	return (char *const *)(uintptr_t)w;
}

static void setup(void)
{
	memset(&o, 0, sizeof(o));
	memset(sources, 0, sizeof(sources));
	ck_assert_int_eq(options_defaults(&v, &e), 0);
}

static void teardown(void)
{
	options_free(rows, &o);
	buf_free(&text);
}

static int read_text(const char *yaml)
{
	e.msg[0] = '\0';
	return config_text(&v, "f.yaml", yaml, strlen(yaml), &e);
}

static void read_well(const char *yaml)
{
	int r = read_text(yaml);

	ck_assert_msg(r == 0, "%s", e.msg);
}

START_TEST(test_scalars)
{
	read_well("# comment\nfreq: 49\nkube: {mode: \"off\"}\nspool:\n  bytes: 64M\n  age: 1.5h\n"
		  "quiet: yes\nnode_name: 'it''s \xc3\xa4'\n");
	ck_assert_uint_eq(o.freq, 49);
	ck_assert_uint_eq(o.mode, 0);
	ck_assert_uint_eq(o.bytes, 64 << 20);
	ck_assert_uint_eq(o.age, 5400000000000ULL);
	ck_assert(o.quiet);
	ck_assert_str_eq(o.name, "it's \xc3\xa4");
	ck_assert_uint_eq(sources[1], SOURCE_FILE);
	ck_assert_uint_eq(sources[7], SOURCE_NONE);
}
END_TEST

static const char *const spellings[] = {
	"spool-bytes: 2M", "spool_bytes: 2M", "spool.bytes: 2M", "spool: {bytes: 2M}",
	"\"spool_bytes\": \"2M\"", "{spool: {bytes: 2M}}", "---\nspool_bytes: 2M\n...\n",
};

START_TEST(test_spelling)
{
	read_well(spellings[_i]);
	ck_assert_uint_eq(o.bytes, 2 << 20);
}
END_TEST

static const char *const nothing[] = { "", "# only a comment\n", "---\n", "{}", "push: []\n" };

START_TEST(test_nothing)
{
	read_well(nothing[_i]);
	ck_assert_uint_eq(o.freq, 19);
	ck_assert_uint_eq(o.push.n, 0);
}
END_TEST

START_TEST(test_lists)
{
	read_well("labels: {a: b, \"c\": d e}\nplain: [x, y]\npid: [1, 2,3]\n");
	ck_assert_uint_eq(o.labels.n, 2);
	ck_assert_str_eq(o.labels.v[0], "a=b");
	ck_assert_str_eq(o.labels.v[1], "c=d e");
	ck_assert_uint_eq(o.plain.n, 2);
	ck_assert_str_eq(o.plain.v[1], "y");
	ck_assert_uint_eq(o.pids.n, 3);
	ck_assert_uint_eq(o.pids.v[2], 3);
}
END_TEST

START_TEST(test_list_forms)
{
	read_well("labels:\n  - a=b\n  - c=d\nplain: one\n");
	ck_assert_uint_eq(o.labels.n, 2);
	ck_assert_str_eq(o.labels.v[1], "c=d");
	ck_assert_uint_eq(o.plain.n, 1);
	ck_assert_str_eq(o.plain.v[0], "one");
}
END_TEST

START_TEST(test_structs)
{
	read_well("push:\n  - http://one\n"
		  "  - url: http://two\n    headers: {X-A: b}\n    timeout: 2s\n"
		  "  - {url: http://three, headers: ['A: 1', 'B: 2']}\n"
		  "rules: {url: a, timeout: 1}\n");
	ck_assert_uint_eq(o.push.n, 3);
	ck_assert_str_eq(o.push.v[0].url, "http://one");
	ck_assert_uint_eq(o.push.v[0].given, 1);
	ck_assert_str_eq(o.push.v[1].headers.v[0], "X-A: b");
	ck_assert_uint_eq(o.push.v[1].timeout, 2000000000);
	ck_assert_uint_eq(o.push.v[1].given, 1 | 4 | 8);
	ck_assert_uint_eq(o.push.v[2].headers.n, 2);
	ck_assert_uint_eq(o.rules.n, 1);
	ck_assert_uint_eq(o.rules.v[0].given, 1 | 8);
}
END_TEST

START_TEST(test_pairs)
{
	ck_assert_int_eq(option_set(&rows[12], &o, "url=a*,timeout=3", &e), 0);
	ck_assert_str_eq(o.rules.v[0].url, "a*");
	ck_assert_uint_eq(o.rules.v[0].timeout, 3000000000);
	ck_assert_int_eq(option_set(&rows[12], &o, "url=b,colour=red", &e), -EINVAL);
	ck_assert_str_eq(e.msg, "--rules: unknown name 'colour'");
	ck_assert_int_eq(option_set(&rows[12], &o, "url", &e), -EINVAL);
	ck_assert_str_eq(e.msg, "--rules: 'url' is not NAME=VALUE,...");
	ck_assert_int_eq(option_set(&rows[12], &o, "", &e), -EINVAL);
	ck_assert_uint_eq(o.rules.n, 1);
}
END_TEST

static const struct {
	const char *yaml, *message;
} mistakes[] = {
	{ "freq: 0", "f.yaml:1:7: freq: '0' is not a number from 1 to 1000" },
	{ "\n\n  freq: x", "f.yaml:3:9: freq: 'x' is not a number" },
	{ "frek: 1", "f.yaml:1:1: unknown key 'frek' (did you mean freq?)" },
	{ "spool: {bites: 1}",
	  "f.yaml:1:9: unknown key 'spool-bites' (did you mean spool-bytes?)" },
	{ "spool: 1", "f.yaml:1:1: spool is a section, with keys below it" },
	{ "spool: [1]", "spool is a section" },
	{ "freq: 1\nfreq: 2", "f.yaml:2:1: freq stands twice" },
	{ "spool: {bytes: 1M}\nspool_bytes: 2M", "f.yaml:2:1: spool-bytes stands twice" },
	{ "labels: {a: b}\nlabel: [c=d]", "label stands twice" },
	{ "freq: [1]", "f.yaml:1:7: freq is one value, not a list" },
	{ "freq: {a: 1}", "f.yaml:1:7: freq is one value, not a mapping" },
	{ "freq:", "freq has no value" },
	{ "node_name: ~", "f.yaml:1:12: node-name has no value" },
	{ "node_name: ''", "node-name: the value (NAME) is empty" },
	{ "node_name: bad", "f.yaml:1:12: node-name: 'bad' is no name" },
	{ "node_name: \"a\\0b\"", "zero byte" },
	{ "token_file: /nonexistent/t",
	  "f.yaml:1:13: token-file: '/nonexistent/t' can't be read: No such" },
	{ "token_file: /dev", "'/dev' is not a regular file" },
	{ "token_file: /dev/null", "'/dev/null' is not a regular file" },
	{ "check: yes", "check: only on the command line" },
	{ "kube_mode: maybe", "kube-mode: 'maybe' is not one of off, auto" },
	{ "quiet: 2", "quiet: '2' is not yes or no" },
	{ "plain: [[a]]", "plain is one value, not a list" },
	{ "plain: [{a: b}]", "plain is one value, not a mapping" },
	{ "labels: {a: [b]}", "label is one value, not a list" },
	{ "pid: [1, x]", "f.yaml:1:10: pid: 'x' is not a number" },
	{ "push: [{key_file: /etc/passwd}]", "f.yaml:1:8: push: url is missing" },
	{ "push: [{}]", "push: url is missing" },
	{ "rules: [{}]", "rules: nothing is given" },
	{ "push: [{url: a, url: b}]", "f.yaml:1:17: url stands twice" },
	{ "push: [{url: a, uri: b}]", "f.yaml:1:17: unknown key 'uri' (did you mean url?)" },
	{ "push: [{url: a, timeout: soon}]", "f.yaml:1:26: timeout: 'soon' is not a time" },
	{ "push: [{url: {a: b}}]", "url is one value, not a mapping" },
	{ "push: [{url: a, headers: {b: {}}}]", "headers is one value, not a mapping" },
	{ "freq: &x 1", "anchors and tags are not accepted" },
	{ "freq: !!int 1", "anchors and tags are not accepted" },
	{ "spool: &x {bytes: 1M}", "anchors and tags are not accepted" },
	{ "freq: *x", "aliases are not accepted" },
	{ "<<: {freq: 1}", "unknown key '<<'" },
	{ "[freq]", "f.yaml:1:1: expected keys and values" },
	{ "freq", "f.yaml:1:1: expected keys and values" },
	{ "freq: 1\n---\nfreq: 2", "f.yaml:2:1: a second document" },
	{ "freq: 1\n\tspool: 2", "f.yaml:2:1: " },
	{ "freq: 'a", "f.yaml:1:9: " },
	{ "freq: {", "f.yaml:2:1: while parsing" },
	{ "freq: \xff", "f.yaml: byte 6: " },
	{ "? [a]\n: b", "a key is one value, not a list" },
};

START_TEST(test_mistakes)
{
	ck_assert_int_eq(read_text(mistakes[_i].yaml), -EINVAL);
	ck_assert_msg(strstr(e.msg, mistakes[_i].message) != NULL, "'%s' is not in '%s'",
		      mistakes[_i].message, e.msg);
	ck_assert_msg(!strncmp(e.msg, "f.yaml:", 7), "no place in '%s'", e.msg);
}
END_TEST

START_TEST(test_file)
{
	char path[] = "/tmp/wick-config-XXXXXX", *big;
	int fd = mkstemp(path);

	ck_assert_int_eq(write(fd, "freq: 7\n", 8), 8);
	ck_assert_int_eq(config_file(&v, path, &e), 0);
	ck_assert_uint_eq(o.freq, 7);
	big = calloc(1, CONFIG_MAX_BYTES);
	memset(big, '#', CONFIG_MAX_BYTES);
	ck_assert_int_eq(write(fd, big, CONFIG_MAX_BYTES), CONFIG_MAX_BYTES);
	ck_assert_int_eq(config_file(&v, path, &e), -EINVAL);
	ck_assert_ptr_nonnull(strstr(e.msg, "more than 1048576 bytes"));
	ck_assert_int_eq(config_file(&v, "/nonexistent.yaml", &e), -EINVAL);
	ck_assert_str_eq(e.msg, "/nonexistent.yaml: No such file or directory");
	ck_assert_int_eq(config_file(&v, "/tmp", &e), -EINVAL);
	close(fd);
	unlink(path);
	free(big);
}
END_TEST

START_TEST(test_environment)
{
	const char *const variables[] = { "WICK_FREQ=33",
					  "PATH=/bin",
					  "WICK_SPOOL_BYTES=3M",
					  "WICKED=1",
					  "WICK_LABEL= a=b ;c=d\n",
					  "WICK_PUSH=http://one",
					  "WICK_QUIET=on",
					  "WICK_FERQ=1",
					  "WICK_PORT=tcp://10.0.0.1:80",
					  "WICK_",
					  "WICK_X",
					  "WICK_SERVICE_HOST=10.0.0.1",
					  "WICK_PORT_80_TCP_ADDR=10.0.0.1",
					  "WICK_AGENT_SERVICE_PORT=1",
					  "WICK_PID=4,5;6",
					  NULL };

	ck_assert_int_eq(config_environment(&v, words(variables), &text, &e), 0);
	ck_assert_uint_eq(o.freq, 33);
	ck_assert_uint_eq(o.bytes, 3 << 20);
	ck_assert(o.quiet);
	ck_assert_uint_eq(o.labels.n, 2);
	ck_assert_str_eq(o.labels.v[0], "a=b");
	ck_assert_str_eq(o.labels.v[1], "c=d");
	ck_assert_str_eq(o.push.v[0].url, "http://one");
	ck_assert_uint_eq(o.pids.n, 3);
	ck_assert_str_eq(text.data, "WICK_FERQ\n");
}
END_TEST

static const struct {
	const char *variable, *message;
} bad_variables[] = {
	{ "WICK_FREQ=0", "WICK_FREQ: '0' is not a number from 1 to 1000" },
	{ "WICK_NODE_NAME=", "WICK_NODE_NAME: the value (NAME) is empty" },
	{ "WICK_LABEL= ; ", "WICK_LABEL: the value (N=V) is empty" },
	{ "WICK_TOKEN_FILE=/nonexistent", "WICK_TOKEN_FILE: '/nonexistent' can't be read" },
	{ "WICK_RULES=a", "WICK_RULES: 'a' is not NAME=VALUE,..." },
};

START_TEST(test_bad_variable)
{
	const char *const variables[] = { bad_variables[_i].variable, NULL };

	ck_assert_int_eq(config_environment(&v, words(variables), NULL, &e), -EINVAL);
	ck_assert_msg(!strncmp(e.msg, bad_variables[_i].message, strlen(bad_variables[_i].message)),
		      "'%s'", e.msg);
}
END_TEST

START_TEST(test_precedence)
{
	const char *const variables[] = { "WICK_FREQ=2", "WICK_SPOOL_BYTES=2M",
					  "WICK_LABEL=e=1;f=1", NULL };
	const char *const argv[] = { "test", "-F3", "--plain", "z", NULL };

	read_well("freq: 1\nspool_bytes: 1M\nspool_age: 1\nlabels: {a: b}\nplain: [x, y]\n");
	ck_assert_int_eq(config_environment(&v, words(variables), NULL, &e), 0);
	ck_assert_int_eq(options_flags(&cmd, &v, 4, words(argv), &e), 0);
	ck_assert_uint_eq(o.freq, 3);
	ck_assert_uint_eq(o.bytes, 2 << 20);
	ck_assert_uint_eq(o.age, 1000000000);
	ck_assert_uint_eq(o.labels.n, 2);
	ck_assert_str_eq(o.labels.v[0], "e=1");
	ck_assert_uint_eq(o.plain.n, 1);
	ck_assert_str_eq(o.plain.v[0], "z");
	ck_assert_str_eq(argv[1], "-F3");	/* argv is as it was */
	ck_assert_uint_eq(sources[1], SOURCE_FLAG);
	ck_assert_uint_eq(sources[3], SOURCE_ENVIRONMENT);
	ck_assert_uint_eq(sources[4], SOURCE_FILE);
	ck_assert_uint_eq(sources[2], SOURCE_DEFAULT);
}
END_TEST

START_TEST(test_print)
{
	read_well(
	    "freq: 5\nnode_name: \"a\\\"b\\\\c\\n\\x01\\N\\L\xc3\xa4\"\nlabels: {a: b}\n"
	    "pid: [1, 2]\nplain: 'x: {y}'\npush:\n  - {url: http://one, headers: {X: secret}}\n"
	    "  - http://two\n");
	config_print(&v, &text);
	ck_assert_int_eq(text.err, 0);
	ck_assert_str_eq(text.data,
			 "freq: 5  # file\n"
			 "kube_mode: auto  # default\n"
			 "spool_bytes: 1M  # default\n"
			 "# spool_age: not set\n"
			 "quiet: no  # not set\n"
			 "node_name: \"a\\\"b\\\\c\\x0a\\x01\\N\\L\xc3\xa4\"  # file\n"
			 "# token_file: not set\n"
			 "labels: [\"a=b\"]  # file\n"
			 "plain: [\"x: {y}\"]  # file\n"
			 "pid: 1,2  # file\n"
			 "push: # file\n"
			 "  - url: \"http://one\"\n"
			 "    headers: [\"X: ***\"]\n"
			 "  - url: \"http://two\"\n"
			 "# rules: not set\n");
}
END_TEST

START_TEST(test_print_reads_back)
{
	struct opts first;
	uint8_t first_sources[ARRAY_SIZE(rows)];

	read_well("freq: 5\nnode_name: \"a\\\"b\\\\c\\n\\x01\\N\\L\xc3\xa4\"\nlabels: {a: b}\n"
		  "pid: [1, 2]\nspool_age: 90ms\npush: [{url: http://one, timeout: 1m}]\n"
		  "rules: [{url: 'a,b'}]\n");
	config_print(&v, &text);
	first = o;
	memcpy(first_sources, sources, sizeof(sources));
	setup();
	read_well(text.data);
	for (size_t i = 0; rows[i].type != OPT_END; i++)
		ck_assert_msg(config_same(&rows[i], &first, &o), "%s differs", rows[i].name);
	ck_assert(!config_same(&rows[1], &first, &(struct opts){ .freq = 6 }));
	options_free(rows, &first);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("config");
	TCase *t = tcase_create("config");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, test_scalars);
	tcase_add_loop_test(t, test_spelling, 0, ARRAY_SIZE(spellings));
	tcase_add_loop_test(t, test_nothing, 0, ARRAY_SIZE(nothing));
	tcase_add_test(t, test_lists);
	tcase_add_test(t, test_list_forms);
	tcase_add_test(t, test_structs);
	tcase_add_test(t, test_pairs);
	tcase_add_loop_test(t, test_mistakes, 0, ARRAY_SIZE(mistakes));
	tcase_add_test(t, test_file);
	tcase_add_test(t, test_environment);
	tcase_add_loop_test(t, test_bad_variable, 0, ARRAY_SIZE(bad_variables));
	tcase_add_test(t, test_precedence);
	tcase_add_test(t, test_print);
	tcase_add_test(t, test_print_reads_back);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
