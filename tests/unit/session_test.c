/* session_test.c - profiles on demand share one stream of samples. */
#include <check.h>
#include <poll.h>
#include <pthread.h>
#include "agent/session.h"

static struct sessions *s;

static void set_up(void)
{
	ck_assert_int_eq(sessions_new(&s), 0);
}

static void tear_down(void)
{
	sessions_free(take(s));
}

static bool woken(void)
{
	struct pollfd p = { .fd = sessions_fd(s), .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static uint64_t when;

static void tick(uint32_t pid)
{
	struct wk_sample sample = { .count = 1, .weight = 10, .pid = pid };

	sessions_tap(s, when, &sample, &(uint64_t){ 100 }, 1, NULL, 0);
}

START_TEST(two_share)
{
	struct session *a, *b;

	ck_assert(!sessions_poll(s, 1000));
	ck_assert_uint_eq(sessions_freq(s), 0);
	ck_assert_uint_eq(sessions_next(s), UINT64_MAX);
	ck_assert_int_eq(sessions_begin(s, 99, 500, &a), 0);
	ck_assert(woken());
	tick(1);			/* before it runs: none of its business */
	ck_assert(sessions_poll(s, 1000));
	ck_assert(!woken());
	ck_assert_uint_eq(sessions_freq(s), 99);
	sessions_turn(s, 1000, 7777, 99, 40 + 1000 / 100);
	ck_assert(!sessions_poll(s, 1001));
	ck_assert_uint_eq(sessions_next(s), 1500);
	tick(2);
	when = 999;			/* a stack that was copied before */
	tick(5);
	when = 0;
	ck_assert_int_eq(sessions_begin(s, 49, 100, &b), 0);
	ck_assert(sessions_poll(s, 1100));
	sessions_turn(s, 1100, 8888, 99, 40 + 1100 / 100);
	ck_assert_uint_eq(sessions_next(s), 1200);
	tick(3);
	ck_assert(sessions_poll(s, 1200));
	sessions_turn(s, 1200, 9999, 99, 40 + 1200 / 100);
	ck_assert_int_eq(sessions_wait(s, b, NULL, NULL), 0);
	tick(4);
	ck_assert(sessions_poll(s, 1600));
	sessions_turn(s, 1600, 9999, 99, 40 + 1600 / 100);
	ck_assert_int_eq(sessions_wait(s, a, NULL, NULL), 0);
	ck_assert_uint_eq(a->samples.count, 3);
	ck_assert_uint_eq(b->samples.count, 1);
	ck_assert_uint_eq(samples_key(&b->samples, 0)->pid, 3);
	ck_assert_int_eq(a->time_nanos, 7777);
	ck_assert_uint_eq(a->end - a->start, 600);
	ck_assert_uint_eq(b->sampled_freq, 99);
	ck_assert_uint_eq(sessions_freq(s), 0);
	ck_assert_uint_eq(sessions_count(s), 2);
	ck_assert_uint_eq(sessions_oldest_epoch(s), 50);
	sessions_end(s, a);
	sessions_end(s, b);
	ck_assert_uint_eq(sessions_count(s), 0);
	ck_assert_uint_eq(sessions_oldest_epoch(s), UINT64_MAX);
}
END_TEST

static bool gone(void *ctx)
{
	return ++*(int *)ctx > 0;
}

START_TEST(given_up)
{
	struct session *a;
	int asked = 0;

	ck_assert_int_eq(sessions_begin(s, 99, 1000000000000, &a), 0);
	ck_assert(sessions_poll(s, 0));
	sessions_turn(s, 0, 0, 99, 40 + 0 / 100);
	tick(1);
	ck_assert_int_eq(sessions_wait(s, a, gone, &asked), -ECANCELED);
	ck_assert_int_eq(asked, 1);
	sessions_end(s, a);
	ck_assert(woken());
	tick(2);
}
END_TEST

static void *waiting(void *arg)
{
	return (void *)(intptr_t)sessions_wait(s, arg, NULL, NULL);
}

START_TEST(shut_down)
{
	struct session *a, *b;
	pthread_t thread;
	void *result;

	ck_assert_int_eq(sessions_begin(s, 99, 1000, &a), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, waiting, a), 0);
	sessions_shutdown(s);
	pthread_join(thread, &result);
	ck_assert_int_eq((intptr_t)result, -ESHUTDOWN);
	ck_assert_int_eq(sessions_begin(s, 99, 1000, &b), -ESHUTDOWN);
	sessions_end(s, a);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("session");
	TCase *t = tcase_create("session");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, two_share);
	tcase_add_test(t, given_up);
	tcase_add_test(t, shut_down);
	suite_add_tcase(suite, t);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
