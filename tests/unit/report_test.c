/* report_test.c - text reports (report.h). */
#include <check.h>

#include "profile/format.h"
#include "profile/report.h"
#include "small_profile.h"

/* main calls work, which calls itself and then hash, inlined from libz, in the end the kernel. */
static struct profile *example(void)
{
	struct profile *p = small_profile();
	const uint32_t app = small_mapping(p, "/usr/bin/app", 0);
	const uint32_t libz = small_mapping(p, "/usr/lib/libz.so.1", 0x100000);
	const uint32_t root = small_location(p, app, 0x10, "main");
	const uint32_t work = small_location(p, app, 0x20, "work");
	const uint32_t again = small_location(p, app, 0x24, "work");
	const uint32_t hash = small_location(p, libz, 0x100010, "mix<hash");
	const uint32_t kernel = small_location(p, 0, 0xffffffff81000000, "do_read");
	const uint32_t bare = small_location(p, libz, 0x100099, NULL);

	small_sample(p, STACK(hash, again, work, root), "app", 7, 7, 50);
	small_sample(p, STACK(again, work, root), "worker", 7, 8, 20);
	small_sample(p, STACK(kernel, work, root), "worker", 7, 8, 20);
	small_sample(p, STACK(bare), "o\x1bther", 9, 9, 10);
	p->duration_nanos = 2000000000;
	p->time_nanos = 1700000000123456789;
	return p;
}

static void expect(const struct report_options *o, const char *want)
{
	cleanup(profile_cleanup) struct profile *p = example();
	cleanup(buf_cleanup) struct buf b = BUF_INIT(1 << 20);
	struct err e;

	ck_assert_msg(!report_write(p, o, &b, &e), "%s", e.msg);
	ck_assert_str_eq(b.data, want);
}

#define HEAD "Type: cpu (nanoseconds)\nTime: 2023-11-14 22:13:20 UTC\nDuration: 2.00s\n"      \
	     "Total: 1.00s (50.0% of one CPU) in 4 different samples\n"

START_TEST(by_function)
{
	expect(&(struct report_options){ 0 },
	       HEAD "Showing 6 of 6 functions, 100.0% of the total\n\n"
	       "      flat   flat%    sum%        cum    cum%  function\n"
	       "     500ms   50.0%   50.0%      500ms   50.0%  mix\n"
	       "     200ms   20.0%   70.0%      900ms   90.0%  work\n"
	       "     200ms   20.0%   90.0%      200ms   20.0%  do_read\n"
	       "     100ms   10.0%  100.0%      100ms   10.0%  libz.so.1+0x100099\n"
	       "         0    0.0%  100.0%      900ms   90.0%  main\n"
	       "         0    0.0%  100.0%      500ms   50.0%  hash\n");
}
END_TEST

START_TEST(limits)
{
	expect(&(struct report_options){ .limit = 2, .sample_type = "samples", .min_percent = 30 },
	       "Type: samples (count)\nTime: 2023-11-14 22:13:20 UTC\nDuration: 2.00s\n"
	       "Total: 100 in 4 different samples\n"
	       "Showing 2 of 6 functions, 70.0% of the total\n\n"
	       "      flat   flat%    sum%        cum    cum%  function\n"
	       "        50   50.0%   50.0%         50   50.0%  mix\n"
	       "        20   20.0%   70.0%         90   90.0%  work\n");
}
END_TEST

START_TEST(by_module)
{
	expect(&(struct report_options){ .by = "module" },
	       HEAD "Showing 3 of 3 modules, 100.0% of the total\n\n"
	       "      flat   flat%    sum%        cum    cum%  module\n"
	       "     600ms   60.0%   60.0%      600ms   60.0%  libz.so.1\n"
	       "     200ms   20.0%   80.0%      900ms   90.0%  app\n"
	       "     200ms   20.0%  100.0%      200ms   20.0%  [unknown]\n");
}
END_TEST

START_TEST(by_process_thread_label)
{
	expect(&(struct report_options){ .by = "process" },
	       HEAD "Showing 2 of 2 rows, 100.0% of the total\n\n"
	       "     value  value%    sum%  process\n"
	       "     900ms   90.0%   90.0%  app (7)\n"
	       "     100ms   10.0%  100.0%  o?ther (9)\n");
	expect(&(struct report_options){ .by = "thread" },
	       HEAD "Showing 3 of 3 rows, 100.0% of the total\n\n"
	       "     value  value%    sum%  thread\n"
	       "     500ms   50.0%   50.0%  app (7/7)\n"
	       "     400ms   40.0%   90.0%  worker (7/8)\n"
	       "     100ms   10.0%  100.0%  o?ther (9/9)\n");
	expect(&(struct report_options){ .by = "tid", .limit = 1 },
	       HEAD "Showing 1 of 3 rows, 50.0% of the total\n\n"
	       "     value  value%    sum%  tid\n"
	       "     500ms   50.0%   50.0%  7\n");
}
END_TEST

START_TEST(focus_and_ignore)
{
	expect(&(struct report_options){ .by = "module", .focus = "^work$", .ignore = "do_|^x" },
	       HEAD "Selected: 700ms (70.0%)\n"
	       "Showing 2 of 2 modules, 70.0% of the total\n\n"
	       "      flat   flat%    sum%        cum    cum%  module\n"
	       "     500ms   50.0%   50.0%      500ms   50.0%  libz.so.1\n"
	       "     200ms   20.0%   70.0%      700ms   70.0%  app\n");
}
END_TEST

START_TEST(tree)
{
	expect(&(struct report_options){ .tree = true, .min_percent = 15 },
	       HEAD "\n"
	       "     total  total%       self  function\n"
	       "     900ms   90.0%          .  main\n"
	       "     900ms   90.0%          .    work\n"
	       "     700ms   70.0%      200ms      work\n"
	       "     500ms   50.0%          .        hash\n"
	       "     500ms   50.0%      500ms          mix\n"
	       "     200ms   20.0%      200ms      do_read\n"
	       "\n1 smaller subtrees are not shown\n");
	expect(&(struct report_options){ .tree = true, .by = "module", .limit = 2 },
	       HEAD "\n"
	       "     total  total%       self  module\n"
	       "     900ms   90.0%      200ms  app\n"
	       "     500ms   50.0%      500ms    libz.so.1\n"
	       "\n2 smaller subtrees are not shown\n");
}
END_TEST

static void refuse(const struct report_options *o, const char *sentence)
{
	cleanup(profile_cleanup) struct profile *p = example();
	cleanup(buf_cleanup) struct buf b = BUF_INIT(1 << 20);
	struct err e = { "" };

	ck_assert_int_eq(report_write(p, o, &b, &e), -EINVAL);
	ck_assert_str_eq(e.msg, sentence);
}

START_TEST(bad_options)
{
	refuse(&(struct report_options){ .by = "container" },
	       "--by: 'container' is not function, module, process, thread or a label of this "
	       "profile (comm, pid, tid)");
	refuse(&(struct report_options){ .sample_type = "wall" },
	       "--sample-type: 'wall' is not in this profile (samples, cpu)");
	refuse(&(struct report_options){ .tree = true, .by = "pid" },
	       "--tree shows functions or modules, not --by pid");
	refuse(&(struct report_options){ .focus = "(" },
	       "--focus: '(' is not a regular expression: Unmatched ( or \\(");
}
END_TEST

START_TEST(nothing_in_it)
{
	cleanup(profile_cleanup) struct profile *p = NULL;
	cleanup(buf_cleanup) struct buf b = BUF_INIT(1 << 20);

	MUST(profile_new(&p));
	MUST(report_write(p, &(struct report_options){ .tree = true }, &b, NULL));
	MUST(report_write(p, &(struct report_options){ .by = "process" }, &b, NULL));
	MUST(format_write(p, FORMAT_TEXT, &b));
	ck_assert_ptr_nonnull(strstr(b.data, "Type: none\nTotal: 0 in 0 different samples\n"));
}
END_TEST

START_TEST(formats)
{
	static const struct { const char *path; enum format want; } t[] = {
		{ "-", FORMAT_PPROF_GZ }, { "/dev/null", FORMAT_PPROF_GZ },
		{ "a/profile.pb.gz", FORMAT_PPROF_GZ },
		{ "a.pb", FORMAT_PPROF }, { ".folded", FORMAT_FOLDED },
		{ "a.speedscope.json", FORMAT_SPEEDSCOPE }, { "a.txt", FORMAT_TEXT },
	};
	cleanup(profile_cleanup) struct profile *p = example();
	enum format f;
	struct err e;

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		cleanup(buf_cleanup) struct buf b = BUF_INIT(1 << 20);

		MUST(format_from_path(t[i].path, &f, &e));
		ck_assert_int_eq(f, t[i].want);
		MUST(format_write(p, f, &b));
		ck_assert_uint_gt(b.len, 0);
		ck_assert_ptr_nonnull(format_names[f]);
	}
	ck_assert_int_eq(format_from_path("a.json", &f, &e), -EINVAL);
	ck_assert_ptr_nonnull(strstr(e.msg, ".speedscope.json"));
}
END_TEST

START_TEST(random_ones)
{
	static const char *const by[] = { "function", "module", "process", "thread" };
	struct prng r = prng_new();

	for (int i = 0; i < 20; i++) {
		cleanup(profile_cleanup) struct profile *p = random_profile(&r);
		cleanup(buf_cleanup) struct buf b = BUF_INIT(64 << 20);

		for (size_t j = 0; j < ARRAY_SIZE(by); j++)
			MUST(report_write(p, &(struct report_options){ .by = by[j],
								       .tree = j < 2 && i % 2 },
					  &b, NULL));
		for (size_t j = 0; j < b.len; j++)
			if (b.data[j] != '\n' && (unsigned char)b.data[j] < 0x20)
				ck_abort_msg("control character at byte %zu", j);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("report");
	TCase *t = tcase_create("report");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_test(t, by_function);
	tcase_add_test(t, limits);
	tcase_add_test(t, by_module);
	tcase_add_test(t, by_process_thread_label);
	tcase_add_test(t, focus_and_ignore);
	tcase_add_test(t, tree);
	tcase_add_test(t, bad_options);
	tcase_add_test(t, nothing_in_it);
	tcase_add_test(t, formats);
	tcase_add_test(t, random_ones);
	tcase_set_timeout(t, 60);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
