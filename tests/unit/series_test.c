/* series_test.c - samples are split by labels; too many series become one. */
#include <check.h>
#include "agent/series.h"

static struct samples samples;
static unsigned int asked;

static void add(uint32_t pid, const char *comm, uint64_t frame, uint64_t count)
{
	struct wk_sample s = { .count = count, .pid = pid, .user_outcome = WK_USER_ROOT };

	memcpy(s.comm, comm, strnlen(comm, WK_COMM_LEN));
	ck_assert_int_eq(samples_add(&samples, &s, &frame, 1, NULL, 0), 0);
}

/* pid modulo 10 is the service; 9 isn't wanted; 8 fails. */
static int labels_of(void *ctx, const struct samples_key *k, struct labels *ret)
{
	char name[16];

	ck_assert_ptr_null(ctx);
	asked++;
	if (k->pid % 10 == 9)
		return 1;
	if (k->pid % 10 == 8)
		return -ENOMEM;
	snprintf(name, sizeof(name), "s%u", k->pid % 10);
	ck_assert_int_eq(labels_set(ret, "service_name", name), 0);
	return labels_set(ret, "node", "n1");
}

static void set_up(void)
{
	samples = (struct samples)SAMPLES_INIT;
	asked = 0;
}

static void tear_down(void)
{
	samples_free(&samples);
}

START_TEST(splits)
{
	cleanup(series_cleanup) struct series_set set = { 0 };

	add(1, "a", 100, 1);
	add(11, "a", 100, 2);	/* the same service, another process */
	add(2, "a", 100, 4);
	add(1, "a", 101, 8);
	add(9, "a", 100, 16);
	ck_assert_int_eq(series_split(&samples, labels_of, NULL, 100, &set), 0);
	ck_assert_uint_eq(set.n, 2);
	ck_assert_str_eq(labels_get(&set.v[0].labels, "service_name"), "s1");
	ck_assert_uint_eq(set.v[0].n, 3);
	ck_assert_uint_eq(set.v[0].samples, 11);
	ck_assert_uint_eq(set.v[1].n, 1);
	ck_assert_uint_eq(set.v[1].samples, 4);
	ck_assert_uint_eq(set.joined, 0);
	ck_assert_uint_eq(asked, 4);	/* once a process */
}
END_TEST

START_TEST(too_many)
{
	cleanup(series_cleanup) struct series_set set = { 0 };

	for (uint32_t pid = 1; pid <= 7; pid++)
		add(pid, "a", 100, pid);
	add(11, "a", 100, 100);
	ck_assert_int_eq(series_split(&samples, labels_of, NULL, 3, &set), 0);
	ck_assert_uint_eq(set.n, 4);
	ck_assert_str_eq(labels_get(&set.v[3].labels, "service_name"), SERIES_OTHER);
	ck_assert_str_eq(labels_get(&set.v[3].labels, "node"), "n1");
	ck_assert_uint_eq(set.v[3].n, 4);
	ck_assert_uint_eq(set.v[3].samples, 4 + 5 + 6 + 7);
	ck_assert_uint_eq(set.joined, 22);
	ck_assert_uint_eq(set.v[0].samples, 101);	/* one that is known still gets its own */
}
END_TEST

START_TEST(failure)
{
	struct series_set set = { .joined = 7 };

	add(1, "a", 100, 1);
	add(8, "a", 100, 1);
	ck_assert_int_eq(series_split(&samples, labels_of, NULL, 3, &set), -ENOMEM);
	ck_assert_uint_eq(set.joined, 7);
}
END_TEST

START_TEST(nothing)
{
	cleanup(series_cleanup) struct series_set set = { 0 };

	ck_assert_int_eq(series_split(&samples, labels_of, NULL, 3, &set), 0);
	ck_assert_uint_eq(set.n, 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("series");
	TCase *t = tcase_create("series");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, splits);
	tcase_add_test(t, too_many);
	tcase_add_test(t, failure);
	tcase_add_test(t, nothing);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
