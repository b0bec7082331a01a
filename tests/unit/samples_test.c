/* samples_test.c - equal process, thread name, cgroup and stack fall together; nothing else does. */
#include <check.h>

#include "collect/samples.h"

static const uint64_t user[] = { WK_FRAME_MAKE_FILE(2, 0x10), WK_FRAME_MAKE_FILE(3, 0x20) };
static const uint64_t kernel[] = { 0xffffffff81000010 };

static struct wk_sample sample(const char *comm)
{
	struct wk_sample s = { .count = 1, .weight = 7, .pid = 10, .start_time = 5, .exec_id = 1,
			       .user_outcome = WK_USER_ROOT };

	snprintf(s.comm, sizeof(s.comm), "%s", comm);
	return s;
}

static void add(struct samples *s, struct wk_sample sample_)
{
	ck_assert_int_eq(samples_add(s, &sample_, user, 2, kernel, 1), 0);
}

START_TEST(equal_ones_add_up)
{
	struct samples s = SAMPLES_INIT;

	for (int i = 0; i < 3; i++)
		add(&s, sample("a"));
	ck_assert_uint_eq(samples_entries(&s), 1);
	ck_assert_uint_eq(s.values[0].count, 3);
	ck_assert_uint_eq(s.values[0].weight, 21);
	ck_assert_uint_eq(s.count, 3);
	ck_assert_uint_eq(s.rooted, 3);
	samples_free(&s);
}
END_TEST

START_TEST(kernel_frames_are_the_leaf_side)
{
	struct samples s = SAMPLES_INIT;
	uint32_t stack;

	add(&s, sample("a"));
	stack = samples_key(&s, 0)->stack;
	ck_assert_uint_eq(samples_depth(&s, stack), 3);
	ck_assert_uint_eq(samples_frame(&s, stack, 0), kernel[0]);
	ck_assert_uint_eq(samples_frame(&s, stack, 1), user[0]);
	ck_assert_uint_eq(samples_frame(&s, stack, 2), user[1]);
	samples_free(&s);
}
END_TEST

START_TEST(each_part_of_the_key_tells_apart)
{
	struct samples s = SAMPLES_INIT;
	struct wk_sample other;

	add(&s, sample("a"));
	add(&s, sample("b"));
	other = sample("a");
	other.exec_id = 2;	/* exec in place keeps pid and start time */
	add(&s, other);
	other = sample("a");
	other.start_time = 6;	/* the pid was given to another process */
	add(&s, other);
	other = sample("a");
	other.tid = 11;
	add(&s, other);
	other = sample("a");
	other.cgroup_id = 99;
	add(&s, other);
	ck_assert_uint_eq(samples_entries(&s), 6);
	ck_assert_int_eq(samples_add(&s, &(struct wk_sample){ .count = 1, .pid = 10 }, user, 1, NULL, 0),
			 0);
	ck_assert_uint_eq(samples_entries(&s), 7);
	samples_free(&s);
}
END_TEST

START_TEST(what_follows_the_name_is_not_looked_at)
{
	struct samples s = SAMPLES_INIT;
	struct wk_sample junk = sample("sh");

	add(&s, junk);
	memcpy(junk.comm + 3, "leftover", 8);	/* comm[2] is the NUL */
	add(&s, junk);
	ck_assert_uint_eq(samples_entries(&s), 1);
	ck_assert_str_eq(samples_key(&s, 0)->comm, "sh");
	samples_free(&s);
}
END_TEST

START_TEST(a_kernel_thread_has_no_user_half)
{
	struct samples s = SAMPLES_INIT;
	struct wk_sample k = sample("kworker");

	k.user_outcome = WK_USER_NONE;
	ck_assert_int_eq(samples_add(&s, &k, NULL, 0, kernel, 1), 0);
	ck_assert_uint_eq(s.with_user, 0);
	ck_assert_uint_eq(s.rooted, 0);
	ck_assert_uint_eq(s.count, 1);
	samples_free(&s);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("samples");
	TCase *tc = tcase_create("samples");
	SRunner *sr = srunner_create(suite);
	int failed;

	tcase_add_test(tc, equal_ones_add_up);
	tcase_add_test(tc, kernel_frames_are_the_leaf_side);
	tcase_add_test(tc, each_part_of_the_key_tells_apart);
	tcase_add_test(tc, what_follows_the_name_is_not_looked_at);
	tcase_add_test(tc, a_kernel_thread_has_no_user_half);
	suite_add_tcase(suite, tc);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed != 0;
}
