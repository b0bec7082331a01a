/* Tests of collect/samples.h. */
#include <check.h>

#include "collect/samples.h"

static const uint64_t user[] = { 0x1000000000000123, 0x1000000000000456, 0x1000000000000789 };
static const uint64_t kernel[] = { 0xffffffff81000010, 0xffffffff81000020 };

static struct wk_sample sample(void)
{
	return (struct wk_sample){
		.count = 1,
		.weight = 10,
		.start_time = 1000,
		.exec_id = 2,
		.cgroup_id = 3,
		.pid = 4,
		.tid = 5,
		.global_pid = 6,
		.user_outcome = WK_USER_ROOT,
		.user_stack = 7,	/* places in the region: no part of the key */
		.kernel_stack = 8,
		.comm = "worker",
	};
}

static void add(struct samples *s, const struct wk_sample *sm, size_t nuser, size_t nkernel)
{
	ck_assert_int_eq(samples_add(s, sm, nuser ? user : NULL, nuser, nkernel ? kernel : NULL,
				     nkernel), 0);
}

START_TEST(same_samples_add_up)
{
	struct samples s = SAMPLES_INIT;
	struct wk_sample a = sample(), b = sample();
	const struct samples_key *k;

	b.count = 5;
	b.weight = 70;
	b.user_stack = 1234;
	b.kernel_stack = WK_NO_STACK;
	add(&s, &a, 3, 2);
	add(&s, &b, 3, 2);
	ck_assert_uint_eq(samples_entries(&s), 1);
	ck_assert_uint_eq(s.values[0].count, 6);
	ck_assert_uint_eq(s.values[0].weight, 80);
	ck_assert_uint_eq(s.count, 6);
	k = samples_key(&s, 0);
	ck_assert_uint_eq(k->start_time, 1000);
	ck_assert_uint_eq(k->exec_id, 2);
	ck_assert_uint_eq(k->cgroup_id, 3);
	ck_assert_uint_eq(k->pid, 4);
	ck_assert_uint_eq(k->tid, 5);
	ck_assert_uint_eq(k->global_pid, 6);
	ck_assert_str_eq(k->comm, "worker");
	samples_free(&s);
	ck_assert_uint_eq(samples_entries(&s), 0);
	ck_assert_uint_eq(s.count, 0);
	add(&s, &a, 3, 2);	/* usable again */
	ck_assert_uint_eq(s.values[0].count, 1);
	samples_free(&s);
}
END_TEST

/* Leaf first: the kernel's half before the user's. */
START_TEST(stacks_joined)
{
	struct samples s = SAMPLES_INIT;
	struct wk_sample a = sample();
	uint32_t stack;

	add(&s, &a, 3, 2);
	add(&s, &a, 3, 0);
	add(&s, &a, 0, 2);
	add(&s, &a, 0, 0);
	add(&s, &a, 0, 0);
	ck_assert_uint_eq(samples_entries(&s), 4);
	stack = samples_key(&s, 0)->stack;
	ck_assert_uint_eq(samples_depth(&s, stack), 5);
	for (size_t i = 0; i < 2; i++)
		ck_assert_uint_eq(samples_frame(&s, stack, i), kernel[i]);
	for (size_t i = 0; i < 3; i++)
		ck_assert_uint_eq(samples_frame(&s, stack, 2 + i), user[i]);
	stack = samples_key(&s, 1)->stack;
	ck_assert_uint_eq(samples_depth(&s, stack), 3);
	ck_assert_uint_eq(samples_frame(&s, stack, 0), user[0]);
	stack = samples_key(&s, 2)->stack;
	ck_assert_uint_eq(samples_depth(&s, stack), 2);
	ck_assert_uint_eq(samples_frame(&s, stack, 1), kernel[1]);
	ck_assert_uint_eq(samples_depth(&s, samples_key(&s, 3)->stack), 0);
	ck_assert_uint_eq(s.values[3].count, 2);
	samples_free(&s);
}
END_TEST

START_TEST(first_sample_without_frames)
{
	struct samples s = SAMPLES_INIT;
	struct wk_sample a = sample();

	add(&s, &a, 0, 0);
	ck_assert_uint_eq(samples_depth(&s, samples_key(&s, 0)->stack), 0);
	samples_free(&s);
}
END_TEST

/* Each part of the key tells entries apart, alone. */
START_TEST(keys)
{
	struct samples s = SAMPLES_INIT;
	struct wk_sample v[8];

	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		v[i] = sample();
	v[1].start_time++;
	v[2].exec_id++;
	v[3].cgroup_id++;
	v[4].pid++;
	v[5].tid++;
	v[6].global_pid++;
	v[7].comm[0] = 'W';
	for (unsigned int round = 0; round < 2; round++)
		for (size_t i = 0; i < ARRAY_SIZE(v); i++)
			add(&s, &v[i], 3, 2);
	ck_assert_uint_eq(samples_entries(&s), ARRAY_SIZE(v));
	for (uint32_t i = 0; i < ARRAY_SIZE(v); i++) {
		ck_assert_uint_eq(s.values[i].count, 2);
		ck_assert_uint_eq(samples_key(&s, i)->stack, samples_key(&s, 0)->stack);
	}
	ck_assert_str_eq(samples_key(&s, 7)->comm, "Worker");
	samples_free(&s);
}
END_TEST

START_TEST(comm_ends_at_its_nul)
{
	struct samples s = SAMPLES_INIT;
	struct wk_sample a = sample(), b = sample(), c = sample();
	static const char zeros[WK_COMM_LEN];

	memcpy(a.comm, "sh\0left-over-xx", WK_COMM_LEN);
	memcpy(b.comm, "sh\0other-bytes", WK_COMM_LEN - 1);
	memcpy(c.comm, "0123456789abcdef", WK_COMM_LEN);	/* no NUL at all */
	add(&s, &a, 1, 0);
	add(&s, &b, 1, 0);
	add(&s, &c, 1, 0);
	ck_assert_uint_eq(samples_entries(&s), 2);
	ck_assert_str_eq(samples_key(&s, 0)->comm, "sh");
	ck_assert_mem_eq(samples_key(&s, 0)->comm + 2, zeros, WK_COMM_LEN - 2);
	ck_assert_str_eq(samples_key(&s, 1)->comm, "0123456789abcde");
	samples_free(&s);
}
END_TEST

START_TEST(how_stacks_ended)
{
	static const struct {
		uint16_t outcome;
		uint64_t count;
	} v[] = {
		{ WK_USER_ROOT, 10 }, { WK_USER_NONE, 200 }, { WK_USER_NO_INFO, 3000 },
		{ WK_USER_FAULT, 40000 }, { WK_USER_ROOT, 500000 },
	};
	struct samples s = SAMPLES_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		struct wk_sample a = sample();

		a.user_outcome = v[i].outcome;
		a.count = v[i].count;
		add(&s, &a, v[i].outcome == WK_USER_NONE ? 0 : 3, 2);
	}
	ck_assert_uint_eq(s.count, 543210);
	ck_assert_uint_eq(s.with_user, 543010);
	ck_assert_uint_eq(s.rooted, 500010);
	samples_free(&s);
}
END_TEST

/* Many stacks of every depth: none is confused with another, whatever moves meanwhile. */
START_TEST(many_stacks)
{
	enum { DEPTH = 200, ROUNDS = 2 };
	struct samples s = SAMPLES_INIT;
	struct wk_sample a = sample();
	uint64_t frames[DEPTH];

	for (unsigned int round = 0; round < ROUNDS; round++)
		for (uint64_t d = 1; d <= DEPTH; d++) {
			for (uint64_t i = 0; i < d; i++)
				frames[i] = d << 32 | i;
			ck_assert_int_eq(samples_add(&s, &a, frames + d / 2, d - d / 2, frames,
						     d / 2), 0);
		}
	ck_assert_uint_eq(samples_entries(&s), DEPTH);
	for (uint32_t n = 0; n < DEPTH; n++) {
		uint32_t stack = samples_key(&s, n)->stack;

		ck_assert_uint_eq(s.values[n].count, ROUNDS);
		ck_assert_uint_eq(samples_depth(&s, stack), n + 1);
		for (uint64_t i = 0; i <= n; i++)
			ck_assert_uint_eq(samples_frame(&s, stack, i), (n + 1ull) << 32 | i);
	}
	samples_free(&s);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("samples");
	TCase *t = tcase_create("samples");
	SRunner *runner;
	int failed;

	tcase_add_test(t, same_samples_add_up);
	tcase_add_test(t, stacks_joined);
	tcase_add_test(t, first_sample_without_frames);
	tcase_add_test(t, keys);
	tcase_add_test(t, comm_ends_at_its_nul);
	tcase_add_test(t, how_stacks_ended);
	tcase_add_test(t, many_stacks);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
