/* options_test.c - every type, every way to write an option, every sentence a user may get. */
#include <check.h>

#include "cli/options.h"

struct opts {
	bool quiet, inlines;
	uint32_t freq, format, any;
	uint64_t size, limit, duration, delay;
	char *output;
	struct str_list push;
	struct u32_list pid;
};

static const char *const formats[] = { "auto", "pprof", "folded", NULL };

#define AT(f)  offsetof(struct opts, f)
#define SECOND 1000000000ULL

static const struct option_row rows[] = {
	{ OPT_U32, 'F', "freq", "HZ", "samples per second and CPU", AT(freq), .min = 1, .max = 1000,
	  .def = "99" },
	{ OPT_FLAG, 'q', "quiet", NULL, "no summary", .offset = AT(quiet) },
	{ OPT_FLAG, 'i', "inlines", NULL, "inlined calls as frames of their own", AT(inlines),
	  .def = "yes" },
	{ OPT_CHOICE, 0, "format", "FORMAT", "instead of what the ending says", AT(format),
	  .def = "auto", .choices = formats },
	{ OPT_U32, 0, "any", "N", "any number", .offset = AT(any) },
	{ OPT_SIZE, 0, "size", "BYTES", "memory for the table, which is then shared by all of them",
	  AT(size), .min = 4096, .max = 1ULL << 30, .def = "64M" },
	{ OPT_SIZE, 0, "limit", "BYTES", "no range", .offset = AT(limit) },
	{ OPT_SECONDS, 'd', "duration", "SECONDS", "how long", AT(duration), .min = SECOND / 10,
	  .max = 24 * 3600 * SECOND },
	{ OPT_SECONDS, 0, "delay", "SECONDS", "how long before", .offset = AT(delay) },
	{ OPT_STRING, 'o', "output", "FILE", "where to", AT(output), .def = "profile.pb.gz" },
	{ OPT_LIST, 0, "push", "URL", "also there (repeatable)", .offset = AT(push) },
	{ OPT_U32_LIST, 'p', "pid", "PID,...", "these processes", AT(pid), .min = 1,
	  .max = 4194304 },
	{ .type = OPT_END }
};

static const struct command mixed = {
	.name = "mixed", .operands = "[FILE...]", .help = "options and operands mix", .rows = rows
};
static const struct command runner = { .name = "runner",
				       .operands = "[-- COMMAND [ARG...]]",
				       .help = "run something",
				       .rows = rows,
				       .runs_command = true,
				       .notes = "Notes stand at the end.\n" };
static const struct command bare = {
	.name = "bare", .operands = "", .help = "no operands", .rows = rows
};

static struct opts o;
static struct operands left;
static struct err e;
static char *words[16];

/* Parses the words after the command's name, NULL-terminated. */
#define PARSE(cmd, ...) parse(cmd, (const char *[]){ "cmd", __VA_ARGS__, NULL })

static int parse(const struct command *cmd, const char *const *argv)
{
	int argc = 0;

	options_free(rows, &o);
	o = (struct opts){ 0 };
	e.msg[0] = '\0';
	left = (struct operands){ NULL, -1 };
	for (; argv[argc]; argc++)
		words[argc] = (char *)(uintptr_t)argv[argc];
	words[argc] = NULL;
	return options_parse(cmd, &o, argc, words, &left, &e);
}

static void end(void)
{
	options_free(rows, &o);
}

/* Fails with exactly this sentence, and leaves ret alone. */
#define REFUSED(sentence, cmd, ...)                                                                \
	do {                                                                                       \
		ck_assert_int_eq(PARSE(cmd, __VA_ARGS__), -EINVAL);                                \
		ck_assert_str_eq(e.msg, sentence);                                                 \
		ck_assert_int_eq(left.n, -1);                                                      \
	} while (0)

START_TEST(defaults)
{
	ck_assert_int_eq(parse(&mixed, (const char *[]){ "mixed", NULL }), 0);
	ck_assert_uint_eq(o.freq, 99);
	ck_assert_uint_eq(o.size, 64 << 20);
	ck_assert_str_eq(o.output, "profile.pb.gz");
	ck_assert(o.inlines && !o.quiet);
	ck_assert_uint_eq(o.duration, 0);
	ck_assert_uint_eq(o.pid.n, 0);
	ck_assert_int_eq(left.n, 0);
}
END_TEST

START_TEST(four_ways_to_give_a_value)
{
	static const char *const ways[][3] = { { "-F49", NULL },      { "-F", "49", NULL },
					       { "--freq=49", NULL }, { "--freq", "49", NULL },
					       { "-qF49", NULL },     { "-F7", "-F49", NULL } };
	const char *argv[4] = { "mixed" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		argv[1] = ways[i][0];
		argv[2] = ways[i][1];
		ck_assert_int_eq(parse(&mixed, argv), 0);
		ck_assert_uint_eq(o.freq, 49);
	}
}
END_TEST

START_TEST(numbers)
{
	static const char *const bad[] = { "0",	   "1001", "-5",	 "+5",
					   "1e3",  "",	   " 5",	 "5 ",
					   "0x10", "abc",  "4294967297", "18446744073709551617",
					   "9.0",  "=99" };
	char want[128];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		snprintf(want, sizeof(want), "--freq: '%s' is not a number from 1 to 1000", bad[i]);
		REFUSED(want, &mixed, "--freq", bad[i]);
	}
	REFUSED("--freq: '' is not a number from 1 to 1000", &mixed, "--freq=");
	REFUSED("--freq: '=99' is not a number from 1 to 1000", &mixed, "-F=99");
	ck_assert_int_eq(PARSE(&mixed, "--freq=1"), 0);
	ck_assert_int_eq(PARSE(&mixed, "--freq=1000"), 0);
	ck_assert_int_eq(PARSE(&mixed, "--freq=0099"), 0);
	ck_assert_uint_eq(o.freq, 99);
	ck_assert_int_eq(PARSE(&mixed, "--any=4294967295"), 0);
	ck_assert_uint_eq(o.any, UINT32_MAX);
	ck_assert_int_eq(PARSE(&mixed, "--any=0"), 0);
	REFUSED("--any: '4294967296' is not a number from 0 to 4294967295", &mixed,
		"--any=4294967296");
}
END_TEST

START_TEST(missing_values)
{
	REFUSED("--freq: the value (HZ) is missing", &mixed, "-F");
	REFUSED("--freq: the value (HZ) is missing", &mixed, "-qF");
	REFUSED("--output: the value (FILE) is missing", &mixed, "file", "--output");
	REFUSED("--freq: '--quiet' is not a number from 1 to 1000", &mixed, "-F", "--quiet");
	REFUSED("--output: the value (FILE) is empty", &mixed, "--output=");
	REFUSED("--output: the value (FILE) is empty", &mixed, "-o", "");
	REFUSED("--push: the value (URL) is empty", &mixed, "--push=");
	REFUSED("--duration: '' is not a time from 100ms to 24h (10, 0.5, 250ms, 2m, 1h)", &mixed,
		"--duration=");
}
END_TEST

START_TEST(sizes)
{
	static const struct {
		const char *text;
		uint64_t want;
	} good[] = { { "4096", 4096 },	  { "4K", 4096 },    { "4k", 4096 },
		     { "64M", 64 << 20 }, { "1G", 1 << 30 }, { "1m", 1 << 20 } };
	static const char *const bad[] = {
		"4095", "1073741825",		"2G",		"64MB", "M", "-1", "1.5M", "",
		"64 M", "18446744073709551616", "17179869184G", "4T"
	};
	char arg[64], want[128];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		ck_assert_int_eq(PARSE(&mixed, "--size", good[i].text), 0);
		ck_assert_uint_eq(o.size, good[i].want);
	}
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		snprintf(arg, sizeof(arg), "--size=%s", bad[i]);
		snprintf(want, sizeof(want), "--size: '%s' is not a size from 4K to 1G (64M, 1G)",
			 bad[i]);
		REFUSED(want, &mixed, arg);
	}
	ck_assert_int_eq(PARSE(&mixed, "--limit=17179869183G"), 0);
	ck_assert_uint_eq(o.limit, 17179869183ULL << 30);
	REFUSED("--limit: '17179869184G' is not a size (64M, 1G)", &mixed, "--limit=17179869184G");
}
END_TEST

START_TEST(seconds)
{
	static const struct {
		const char *text;
		uint64_t want;
	} good[] = { { "10", 10 * SECOND },
		     { "10s", 10 * SECOND },
		     { "0.5", SECOND / 2 },
		     { "250ms", SECOND / 4 },
		     { "2m", 120 * SECOND },
		     { "1h", 3600 * SECOND },
		     { "1.5h", 5400 * SECOND },
		     { "0.123456789", 123456789 },
		     { "0.000000001ms", 0 },
		     { "0.999999999h", 3599999996400ULL },
		     { "0", 0 },
		     { "18446744073.709551615", UINT64_MAX } };
	static const char *const bad[] = { ".5",   "5.",    "1e3",   "-1",	    "1d",
					   "10 s", "s",	    "0.5.5", "1,5",	    "nan",
					   "inf",  "0x1p3", "1ss",   "0.1234567890" };
	char want[128];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		ck_assert_int_eq(PARSE(&mixed, "--delay", good[i].text), 0);
		ck_assert_uint_eq(o.delay, good[i].want);
	}
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		snprintf(want, sizeof(want), "--delay: '%s' is not a time (10, 0.5, 250ms, 2m, 1h)",
			 bad[i]);
		REFUSED(want, &mixed, "--delay", bad[i]);
	}
	REFUSED("--delay: '18446744073.709551616' is not a time (10, 0.5, 250ms, 2m, 1h)", &mixed,
		"--delay", "18446744073.709551616");
	REFUSED("--delay: '5124095577h' is not a time (10, 0.5, 250ms, 2m, 1h)", &mixed, "--delay",
		"5124095577h");
	REFUSED("--duration: '99ms' is not a time from 100ms to 24h (10, 0.5, 250ms, 2m, 1h)",
		&mixed, "-d99ms");
	REFUSED("--duration: '25h' is not a time from 100ms to 24h (10, 0.5, 250ms, 2m, 1h)",
		&mixed, "-d", "25h");
	ck_assert_int_eq(PARSE(&mixed, "-d", "0.1"), 0);
	ck_assert_uint_eq(o.duration, SECOND / 10);
}
END_TEST

START_TEST(flags)
{
	ck_assert_int_eq(PARSE(&mixed, "-q"), 0);
	ck_assert(o.quiet);
	ck_assert_int_eq(PARSE(&mixed, "-q", "--no-quiet", "--no-inlines"), 0);
	ck_assert(!o.quiet && !o.inlines);
	ck_assert_int_eq(PARSE(&mixed, "--no-inlines", "-qi"), 0);
	ck_assert(o.quiet && o.inlines);
	ck_assert_int_eq(PARSE(&mixed, "--quiet=yes", "--inlines=off"), 0);
	ck_assert(o.quiet && !o.inlines);
	REFUSED("--quiet: 'maybe' is not yes or no", &mixed, "--quiet=maybe");
	REFUSED("--quiet: '' is not yes or no", &mixed, "--quiet=");
	REFUSED("--no-quiet takes no value", &mixed, "--no-quiet=yes");
	REFUSED("unknown option '--no-freq'", &mixed, "--no-freq");
}
END_TEST

START_TEST(choices)
{
	ck_assert_int_eq(PARSE(&mixed, "--format=folded"), 0);
	ck_assert_uint_eq(o.format, 2);
	REFUSED("--format: 'svg' is not one of auto, pprof, folded", &mixed, "--format", "svg");
	REFUSED("--format: '' is not one of auto, pprof, folded", &mixed, "--format=");
	REFUSED("--format: 'fold' is not one of auto, pprof, folded", &mixed, "--format=fold");
}
END_TEST

START_TEST(lists)
{
	ck_assert_int_eq(PARSE(&mixed, "--push=a", "--push", "b,c", "-p1,2", "-p", "3"), 0);
	ck_assert_uint_eq(o.push.n, 2);
	ck_assert_str_eq(o.push.v[0], "a");
	ck_assert_str_eq(o.push.v[1], "b,c");
	ck_assert_uint_eq(o.pid.n, 3);
	ck_assert_uint_eq(o.pid.v[0], 1);
	ck_assert_uint_eq(o.pid.v[2], 3);
	REFUSED("--pid: '1,2,,3': element 3 is empty", &mixed, "-p", "1,2,,3");
	REFUSED("--pid: '1,': element 2 is empty", &mixed, "-p1,");
	REFUSED("--pid: ',': element 1 is empty", &mixed, "-p,");
	REFUSED("--pid: '': element 1 is empty", &mixed, "--pid=");
	REFUSED("--pid: 'x' is not a number from 1 to 4194304", &mixed, "-p1,x,3");
	REFUSED("--pid: ' 2' is not a number from 1 to 4194304", &mixed, "-p1, 2");
	REFUSED("--pid: '0' is not a number from 1 to 4194304", &mixed, "-p0");
	REFUSED("--pid: '99999999999999999999' is not a number from 1 to 4194304", &mixed,
		"-p99999999999999999999");
}
END_TEST

START_TEST(half_a_list_is_not_kept)
{
	ck_assert_int_eq(PARSE(&mixed, "-p7"), 0);
	ck_assert_int_eq(option_set(&rows[11], &o, "8,9,x", NULL), -EINVAL);
	ck_assert_uint_eq(o.pid.n, 1);
	ck_assert_int_eq(option_set(&rows[11], &o, "8,9", NULL), 0);
	ck_assert_uint_eq(o.pid.n, 3);
}
END_TEST

START_TEST(a_refused_value_changes_nothing)
{
	ck_assert_int_eq(PARSE(&mixed, "-F7", "-ox"), 0);
	ck_assert_int_eq(option_set(&rows[0], &o, "0", &e), -EINVAL);
	ck_assert_uint_eq(o.freq, 7);
	ck_assert_int_eq(option_set(&rows[9], &o, "", &e), -EINVAL);
	ck_assert_str_eq(o.output, "x");
}
END_TEST

START_TEST(unknown_options)
{
	REFUSED("unknown option '--frq' (did you mean --freq?)", &mixed, "--frq");
	REFUSED("unknown option '--ferq' (did you mean --freq?)", &mixed, "--ferq=9");
	REFUSED("unknown option '--fre' (did you mean --freq?)", &mixed, "--fre", "9");
	REFUSED("unknown option '--dur' (did you mean --duration?)", &mixed, "--dur=9");
	REFUSED("unknown option '--outptu' (did you mean --output?)", &mixed, "--outptu");
	REFUSED("unknown option '--xyzzy'", &mixed, "--xyzzy");
	REFUSED("unknown option '--F' (one letter takes one dash)", &mixed, "--F");
	REFUSED("unknown option '-f' (did you mean -F, --freq?)", &mixed, "-f9");
	REFUSED("unknown option '-Q' (did you mean -q, --quiet?)", &mixed, "-Q");
	REFUSED("unknown option '-freq' (did you mean --freq?)", &mixed, "-freq", "9");
	REFUSED("unknown option '-x'", &mixed, "-qx");
	REFUSED("unknown option '-5'", &mixed, "-5");
	REFUSED("unknown option '-?'", &mixed, "-\033[31m");
	REFUSED("unknown option '--'", &mixed, "--=x");
	REFUSED("unknown option '--aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'", &mixed,
		"--aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
}
END_TEST

START_TEST(operands_mix)
{
	ck_assert_int_eq(PARSE(&mixed, "a", "-q", "b", "-", "-F", "7", "c", "--", "-x", "--"), 0);
	ck_assert_int_eq(left.n, 6);
	ck_assert_str_eq(left.v[0], "a");
	ck_assert_str_eq(left.v[2], "-");
	ck_assert_str_eq(left.v[3], "c");
	ck_assert_str_eq(left.v[4], "-x");
	ck_assert_str_eq(left.v[5], "--");
	ck_assert(o.quiet && o.freq == 7);
	REFUSED("unexpected argument 'a'", &bare, "-q", "a");
	ck_assert_int_eq(PARSE(&bare, "-q", "--"), 0);
	ck_assert_int_eq(PARSE(&mixed, ""), 0);
	ck_assert_int_eq(left.n, 1);
}
END_TEST

START_TEST(a_command_ends_the_options)
{
	ck_assert_int_eq(PARSE(&runner, "-F7", "ls", "-q", "--", "-F9"), 0);
	ck_assert_int_eq(left.n, 4);
	ck_assert_str_eq(left.v[0], "ls");
	ck_assert_str_eq(left.v[1], "-q");
	ck_assert_str_eq(left.v[2], "--");
	ck_assert(o.freq == 7 && !o.quiet);
	ck_assert_int_eq(PARSE(&runner, "-q", "--", "-strange", "--help"), 0);
	ck_assert_int_eq(left.n, 2);
	ck_assert_str_eq(left.v[0], "-strange");
}
END_TEST

/* The help text in a buffer that the caller frees. */
static char *help_text(const struct command *cmd)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	ck_assert_ptr_nonnull(f);
	options_help(cmd, f);
	fclose(f);
	return text;
}

START_TEST(help)
{
	static const char *const parts[] = {
		"Usage: wick runner [OPTION...] [-- COMMAND [ARG...]]\nRun something.\n",
		"  -F, --freq HZ            samples per second and CPU (from 1 to 1000; default:\n"
		"                           99)\n",
		"  -q, --quiet              no summary\n",
		"(default: yes)",
		"      --format FORMAT      instead of what the ending says (one of auto, pprof,\n"
		"                           folded; default: auto)\n",
		"(from 4K to 1G;",
		"      --limit BYTES        no range\n",
		"how long (from 100ms to 24h)\n",
		"where to (default: profile.pb.gz)\n",
		"  -h, --help               this text\n",
		"\nNotes stand at the end.\n",
	};
	char *text = help_text(&runner), *line;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(parts); i++)
		ck_assert_msg(strstr(text, parts[i]), "not in the help: %s\n%s", parts[i], text);
	for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		ck_assert_msg(strlen(line) <= 80, "too wide: %s", line);
	free(text);
	ck_assert_int_eq(PARSE(&mixed, "-q", "--help", "--frq"), 1);
	ck_assert_int_eq(PARSE(&mixed, "-qh"), 1);
	ck_assert_int_eq(PARSE(&runner, "ls", "--help"), 0);
}
END_TEST

START_TEST(help_wraps_long_words)
{
	static const struct option_row long_rows[] = {
		{ OPT_STRING, 0, "a-name-that-is-too-long", "VALUE", "text", .offset = 0 },
		{ OPT_STRING, 0, "x", "VALUE",
		  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa b",
		  .offset = 0 },
		{ .type = OPT_END }
	};
	static const struct command cmd = {
		.name = "x", .operands = "", .help = "y", .rows = long_rows
	};
	char *text = help_text(&cmd);

	ck_assert_ptr_nonnull(strstr(text, "      --a-name-that-is-too-long VALUE\n"
					   "                           text\n"));
	ck_assert_ptr_nonnull(strstr(text, "aaaa\n                           b\n"));
	free(text);
}
END_TEST

START_TEST(nearest)
{
	static const char *const names[] = { "record", "report", NULL, "merge", "check" };

#define NEAREST(w) nearest_word(w, names, ARRAY_SIZE(names), sizeof(*names))
	ck_assert_str_eq(NEAREST("recrod"), "record");
	ck_assert_str_eq(NEAREST("repotr"), "report");
	ck_assert_str_eq(NEAREST("rec"), "record");
	ck_assert_str_eq(NEAREST("chekc"), "check");
	ck_assert_ptr_null(NEAREST("top"));
	ck_assert_ptr_null(NEAREST(""));
	ck_assert_ptr_null(NEAREST("a"));
}
END_TEST

START_TEST(free_is_safe_twice)
{
	ck_assert_int_eq(PARSE(&mixed, "--push=a", "-p1", "-ox"), 0);
	options_free(rows, &o);
	options_free(rows, &o);
	ck_assert_ptr_null(o.output);
	ck_assert_uint_eq(o.push.n, 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("options");
	TCase *t = tcase_create("options");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, NULL, end);
	tcase_add_test(t, defaults);
	tcase_add_test(t, four_ways_to_give_a_value);
	tcase_add_test(t, numbers);
	tcase_add_test(t, missing_values);
	tcase_add_test(t, sizes);
	tcase_add_test(t, seconds);
	tcase_add_test(t, flags);
	tcase_add_test(t, choices);
	tcase_add_test(t, lists);
	tcase_add_test(t, half_a_list_is_not_kept);
	tcase_add_test(t, a_refused_value_changes_nothing);
	tcase_add_test(t, unknown_options);
	tcase_add_test(t, operands_mix);
	tcase_add_test(t, a_command_ends_the_options);
	tcase_add_test(t, help);
	tcase_add_test(t, help_wraps_long_words);
	tcase_add_test(t, nearest);
	tcase_add_test(t, free_is_safe_twice);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
