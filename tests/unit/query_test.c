/* query_test.c - what callers may ask for, and what each of them is told who asks for something
 * else. */
#include <check.h>

#include "http/query.h"

static const struct query_limits limits = { .max_duration_ns = 300000000000ULL, .max_hz = 499 };
static struct profile_request q;
static struct err e;

static int parse(const char *query)
{
	e.msg[0] = '\0';
	memset(&q, 0x55, sizeof(q));
	return query_parse(query, strlen(query), &limits, &q, &e);
}

START_TEST(test_defaults)
{
	ck_assert_int_eq(parse(""), 0);
	ck_assert_uint_eq(q.duration_ns, 30000000000ULL);
	ck_assert_uint_eq(q.hz, 0);
	ck_assert_uint_eq(q.pid, 0);
	ck_assert_str_eq(q.comm, "");
	ck_assert_str_eq(q.event, "");
	ck_assert_ptr_null(q.caller);
}
END_TEST

START_TEST(test_short_limit)
{
	const struct query_limits few = { .max_duration_ns = 5000000000ULL, .max_hz = 99 };

	ck_assert_int_eq(query_parse("", 0, &few, &q, &e), 0);
	ck_assert_uint_eq(q.duration_ns, 5000000000ULL);
}
END_TEST

START_TEST(test_all)
{
	ck_assert_int_eq(parse("seconds=0.25&hz=499&pid=2147483647&comm=a+b&container=c%2fd&&pod=p&"
			       "namespace=n&unit=u.service&exe=/usr/bin/%C3%A4&event=cycles&"),
			 0);
	ck_assert_uint_eq(q.duration_ns, 250000000);
	ck_assert_uint_eq(q.hz, 499);
	ck_assert_uint_eq(q.pid, INT32_MAX);
	ck_assert_str_eq(q.comm, "a b");
	ck_assert_str_eq(q.container, "c/d");
	ck_assert_str_eq(q.pod, "p");
	ck_assert_str_eq(q.namespace, "n");
	ck_assert_str_eq(q.unit, "u.service");
	ck_assert_str_eq(q.exe, "/usr/bin/\xc3\xa4");
	ck_assert_str_eq(q.event, "cycles");
}
END_TEST

static const struct {
	const char *query, *part;
} refused[] = {
	{ "seconds=0", "seconds: '0' is not a number from 0.1 to 300" },
	{ "seconds=0.09", "from 0.1 to 300" },
	{ "seconds=300.000000001", "from 0.1 to 300" },
	{ "seconds=-1", "from 0.1" },
	{ "seconds=1e3", "from 0.1" },
	{ "seconds=1.", "from 0.1" },
	{ "seconds=.5", "from 0.1" },
	{ "seconds=1.1234567891", "from 0.1" },
	{ "seconds=99999999999999999999999", "from 0.1" },
	{ "seconds", "seconds has no value" },
	{ "seconds=", "seconds has no value" },
	{ "seconds=1&seconds=2", "seconds is given twice" },
	{ "hz=0", "hz: '0' is not a number from 1 to 499" },
	{ "hz=500", "from 1 to 499" },
	{ "hz=99x", "from 1 to 499" },
	{ "pid=0", "pid: '0' is not a number from 1 to 2147483647" },
	{ "pid=2147483648", "from 1" },
	{ "second=1", "unknown parameter 'second'; there are seconds, hz, pid, comm" },
	{ "=1", "unknown parameter ''" },
	{ "debug=1", "unknown parameter 'debug'" },
	{ "comm=%", "comm: not a text" },
	{ "comm=%4", "comm: not a text" },
	{ "comm=%zz", "comm: not a text" },
	{ "comm=a%00b", "comm: not a text" },
	{ "comm=a%0ab", "comm: not a text" },
	{ "comm=%ff", "comm: not UTF-8" },
	{ "%ff=1", "not text" },
	{ "a-name-that-is-longer-than-any-that-is-known=1", "too long" },
};

START_TEST(test_refused)
{
	char before[sizeof(q)];

	ck_assert_int_eq(parse(refused[_i].query), -EINVAL);
	ck_assert_msg(strstr(e.msg, refused[_i].part) != NULL, "'%s' is not in '%s'",
		      refused[_i].part, e.msg);
	memset(before, 0x55, sizeof(before));
	ck_assert_int_eq(memcmp(before, &q, sizeof(q)), 0);
}
END_TEST

START_TEST(test_long_value)
{
	char query[600] = "comm=";

	memset(query + 5, 'x', QUERY_TEXT_MAX - 1);
	ck_assert_int_eq(parse(query), 0);
	ck_assert_uint_eq(strlen(q.comm), QUERY_TEXT_MAX - 1);
	strcat(query, "x");
	ck_assert_int_eq(parse(query), -EINVAL);
	ck_assert_ptr_nonnull(strstr(e.msg, "255 bytes"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("query");
	TCase *t = tcase_create("query");
	SRunner *r;
	int failed;

	tcase_add_test(t, test_defaults);
	tcase_add_test(t, test_short_limit);
	tcase_add_test(t, test_all);
	tcase_add_loop_test(t, test_refused, 0, ARRAY_SIZE(refused));
	tcase_add_test(t, test_long_value);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
