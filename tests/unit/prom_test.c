/* prom_test.c - the text format, byte by byte. */
#include <check.h>
#include <math.h>

#include "base/prom.h"

static struct buf b = BUF_INIT(1 << 20);

static void fresh(void)
{
	buf_free(&b);
}

START_TEST(test_metric)
{
	prom_metric(&b, "wick_ticks_total", PROM_COUNTER, "Ticks\nof a \\ clock \"x\".");
	prom_count(&b, "wick_ticks_total", UINT64_MAX, NULL);
	prom_metric(&b, "wick_up", PROM_GAUGE, "Up.");
	prom_number(&b, "wick_up", 0.5, "a", "1", "b", "2", NULL);
	ck_assert_str_eq(b.data, "# HELP wick_ticks_total Ticks\\nof a \\\\ clock \"x\".\n"
				 "# TYPE wick_ticks_total counter\n"
				 "wick_ticks_total 18446744073709551615\n"
				 "# HELP wick_up Up.\n"
				 "# TYPE wick_up gauge\n"
				 "wick_up{a=\"1\",b=\"2\"} 0.5\n");
}
END_TEST

START_TEST(test_values)
{
	prom_count(&b, "m", 1, "l", "a\"b\\c\nd\xff\xc3\xa4", NULL);
	prom_number(&b, "m", INFINITY, NULL);
	prom_number(&b, "m", -INFINITY, NULL);
	prom_number(&b, "m", NAN, NULL);
	prom_number(&b, "m", 1e300, NULL);
	ck_assert_str_eq(b.data, "m{l=\"a\\\"b\\\\c\\nd\xef\xbf\xbd\xc3\xa4\"} 1\n"
				 "m +Inf\nm -Inf\nm NaN\nm 1.0000000000000001e+300\n");
}
END_TEST

START_TEST(test_histogram)
{
	static const double bounds[] = { 0.1, 2.5 };
	static const uint64_t counts[] = { 3, 0, 4 };
	struct prom_histogram h = { .bounds = bounds, .counts = counts, .n = 2, .sum = 12.25 };

	prom_metric(&b, "h", PROM_HISTOGRAM, "H.");
	prom_histogram(&b, "h", &h, "sink", "a", NULL);
	prom_histogram(&b, "h", &h, NULL);
	ck_assert_str_eq(b.data, "# HELP h H.\n# TYPE h histogram\n"
				 "h_bucket{sink=\"a\",le=\"0.1\"} 3\n"
				 "h_bucket{sink=\"a\",le=\"2.5\"} 3\n"
				 "h_bucket{sink=\"a\",le=\"+Inf\"} 7\n"
				 "h_sum{sink=\"a\"} 12.25\n"
				 "h_count{sink=\"a\"} 7\n"
				 "h_bucket{le=\"0.1\"} 3\n"
				 "h_bucket{le=\"2.5\"} 3\n"
				 "h_bucket{le=\"+Inf\"} 7\n"
				 "h_sum 12.25\n"
				 "h_count 7\n");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("prom");
	TCase *t = tcase_create("prom");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, NULL, fresh);
	tcase_add_test(t, test_metric);
	tcase_add_test(t, test_values);
	tcase_add_test(t, test_histogram);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
