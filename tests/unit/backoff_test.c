/* backoff_test.c - when a sink may be tried again (backoff.h). */
#include "sink_check.h"

#include "net/backoff.h"
#include "net/delivery.h"

#define S 1000000000ULL

START_TEST(waits_longer_each_time)
{
	struct backoff b = { 0 };
	uint64_t now = 100 * S, wait, before = 0;

	ck_assert_uint_eq(backoff_wait(&b, now), 0);
	ck_assert(!backoff_probing(&b));
	for (int i = 0; i < 20; i++) {
		backoff_fail(&b, now, now, 0, 0);
		wait = backoff_wait(&b, now);
		ck_assert_uint_ge(wait, before);
		ck_assert_uint_le(wait, DELIVERY_BACKOFF_MAX_NS);
		before = wait;
		now += wait;
		ck_assert_uint_eq(backoff_wait(&b, now), 0);
		ck_assert(backoff_probing(&b));
	}
	ck_assert_uint_eq(before, DELIVERY_BACKOFF_MAX_NS);
	backoff_ok(&b, now);
	ck_assert(!backoff_probing(&b));
	backoff_fail(&b, now, now, 0, 0);
	ck_assert_uint_eq(backoff_wait(&b, now), DELIVERY_BACKOFF_MIN_NS);
}
END_TEST

START_TEST(spreads)
{
	uint64_t low = UINT64_MAX, high = 0;

	for (uint64_t i = 0; i < 1000; i++) {
		struct backoff b = { 0 };

		backoff_fail(&b, S, S, 0, i * 0x9e3779b97f4a7c15);
		low = MIN(low, backoff_wait(&b, S));
		high = MAX(high, backoff_wait(&b, S));
	}
	ck_assert_uint_gt(low, DELIVERY_BACKOFF_MIN_NS / 2);
	ck_assert_uint_lt(low, DELIVERY_BACKOFF_MIN_NS * 6 / 10);
	ck_assert_uint_gt(high, DELIVERY_BACKOFF_MIN_NS * 9 / 10);
}
END_TEST

START_TEST(counts_what_fails_together_once)
{
	struct backoff one = { 0 }, four = { 0 };

	backoff_fail(&one, S, 2 * S, 0, 0);
	for (int i = 0; i < 4; i++)
		backoff_fail(&four, S, 2 * S, 0, 0);
	ck_assert_uint_eq(four.failures, 1);
	ck_assert_uint_eq(backoff_wait(&one, 2 * S), backoff_wait(&four, 2 * S));
	backoff_ok(&four, S);	/* it was sent before the failure */
	ck_assert(backoff_probing(&four));
	backoff_ok(&four, 3 * S);
	ck_assert(!backoff_probing(&four));
}
END_TEST

START_TEST(does_as_it_is_told)
{
	struct backoff b = { 0 };

	backoff_fail(&b, S, S, 7 * S, 0);
	ck_assert_uint_eq(backoff_wait(&b, S), 7 * S);
	backoff_fail(&b, S, S, 9 * S, 0);	/* the second of two side by side */
	ck_assert_uint_eq(backoff_wait(&b, S), 9 * S);
	backoff_fail(&b, 20 * S, 20 * S, UINT64_MAX / 2, 0);
	ck_assert_uint_eq(backoff_wait(&b, 20 * S), DELIVERY_RETRY_AFTER_MAX_NS);
}
END_TEST

RUN_ALL("backoff", waits_longer_each_time, spreads, counts_what_fails_together_once,
	does_as_it_is_told)
