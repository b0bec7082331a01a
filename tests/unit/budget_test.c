/* budget_test.c - the agent lowers its frequency when it costs too much, and recovers. */
#include <check.h>
#include "agent/budget.h"

static const struct budget_limits limits = { .freq = 19, .cpu = 0.02, .memory = 100 };

static unsigned int step(struct budget *b, double share, uint64_t memory)
{
	return budget_step(b, &(struct budget_use){ .cpu_ns = (uint64_t)(share * 1e9),
						    .wall_ns = 1000000000, .memory = memory });
}

START_TEST(within)
{
	struct budget b;

	budget_init(&b, &limits);
	for (int i = 0; i < 20; i++)
		ck_assert_uint_eq(step(&b, 0.01, 50), 0);
	ck_assert_uint_eq(b.freq, 19);
}
END_TEST

START_TEST(one_dear_window_is_forgiven)
{
	struct budget b;

	budget_init(&b, &limits);
	for (int i = 0; i < 10; i++)
		ck_assert_uint_eq(step(&b, i % 2 ? 0.5 : 0.001, 50), 0);
	ck_assert_uint_eq(b.freq, 19);
	ck_assert_uint_eq(b.cpu_exceeded, 5);
}
END_TEST

START_TEST(down_and_up)
{
	struct budget b;

	budget_init(&b, &limits);
	for (int i = 1; i < BUDGET_PATIENCE; i++)
		ck_assert_uint_eq(step(&b, 0.5, 50), 0);
	ck_assert_uint_eq(step(&b, 0.5, 50), BUDGET_FREQ);
	ck_assert_uint_eq(b.freq, 9);
	for (int i = 0; i < 4 * BUDGET_PATIENCE; i++)
		step(&b, 0.5, 50);
	ck_assert_uint_eq(b.freq, 1);
	/* below the budget, but twice as much wouldn't fit: stays */
	for (int i = 0; i < 20; i++)
		ck_assert_uint_eq(step(&b, 0.015, 50), 0);
	for (int i = 0; i < BUDGET_CALM - 1; i++)
		ck_assert_uint_eq(step(&b, 0.001, 50), 0);
	ck_assert_uint_eq(step(&b, 0.001, 50), BUDGET_FREQ);
	ck_assert_uint_eq(b.freq, 2);
	for (int i = 0; i < 40; i++)
		step(&b, 0.001, 50);
	ck_assert_uint_eq(b.freq, 19);
}
END_TEST

START_TEST(memory_trims_first)
{
	struct budget b;

	budget_init(&b, &limits);
	ck_assert_uint_eq(step(&b, 0.001, 101), BUDGET_TRIM);
	ck_assert_uint_eq(step(&b, 0.001, 90), 0);
	for (int i = 0; i < BUDGET_PATIENCE; i++)
		ck_assert_uint_eq(step(&b, 0.001, 101), BUDGET_TRIM);
	ck_assert_uint_eq(step(&b, 0.001, 101), BUDGET_TRIM | BUDGET_FREQ);
	ck_assert_uint_eq(b.freq, 9);
	ck_assert_uint_eq(b.memory_exceeded, BUDGET_PATIENCE + 2);
}
END_TEST

START_TEST(without_limits)
{
	struct budget b;

	budget_init(&b, &(struct budget_limits){ .freq = 99 });
	for (int i = 0; i < 10; i++)
		ck_assert_uint_eq(step(&b, 5, UINT64_MAX), 0);
}
END_TEST

START_TEST(changed)
{
	struct budget b;

	budget_init(&b, &limits);
	budget_change(&b, &(struct budget_limits){ .freq = 50, .cpu = 0.02 });
	ck_assert_uint_eq(b.freq, 50);
	for (int i = 0; i < BUDGET_PATIENCE; i++)
		step(&b, 1, 0);
	ck_assert_uint_eq(b.freq, 25);
	budget_change(&b, &limits);	/* still under pressure: not above what it had fallen to */
	ck_assert_uint_eq(b.freq, 19);
	budget_change(&b, &(struct budget_limits){ .freq = 5, .cpu = 0.02 });
	ck_assert_uint_eq(b.freq, 5);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("budget");
	TCase *t = tcase_create("budget");
	SRunner *runner;
	int failed;

	tcase_add_test(t, within);
	tcase_add_test(t, one_dear_window_is_forgiven);
	tcase_add_test(t, down_and_up);
	tcase_add_test(t, memory_trims_first);
	tcase_add_test(t, without_limits);
	tcase_add_test(t, changed);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
