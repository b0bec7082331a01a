/* builder_test.c - windows become profiles of series on a thread; requests go in between. */
#include <check.h>
#include <pthread.h>
#include <time.h>
#include "agent/builder.h"

static const char kernel_text[] = "ffffffff81000000 T first\n"
				  "ffffffff81001000 T second\n"
				  "ffffffff81002000 T end\n";
#define FIRST  0xffffffff81000010ULL
#define SECOND 0xffffffff81001010ULL

static struct kallsyms *kallsyms;
static struct files *files;
static struct builder *b;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;	/* holds the thread in deliver */
static unsigned int delivered, after;
static char texts[32][512];	/* "{labels} functions ... = count" of each delivery */

static int labels_of(void *ctx, const struct samples_key *k, struct labels *ret)
{
	(void)ctx;
	if (k->pid == 9)
		return 1;
	return labels_set(ret, "service_name", k->pid % 2 ? "odd" : "even");
}

static void deliver(void *ctx, const struct labels *labels, const struct profile *p)
{
	struct buf t = BUF_INIT(512);

	(void)ctx;
	pthread_mutex_lock(&gate);
	labels_text(labels, &t);
	for (uint32_t i = 0; i < profile_sample_count(p); i++) {
		struct profile_line l = profile_line_get(p, profile_frame(p, i, 0), 0);

		buf_printf(&t, " %s=%lld", profile_str(p, profile_function_get(p, l.function).name),
			   (long long)profile_values(p, i)[1]);
	}
	ck_assert_uint_lt(delivered, ARRAY_SIZE(texts));
	snprintf(texts[delivered++], sizeof(texts[0]), "%s @%lld+%lld", t.data,
		 (long long)p->time_nanos, (long long)p->duration_nanos);
	buf_free(&t);
	pthread_mutex_unlock(&gate);
}

static void after_window(void *ctx, struct symbolizer *s)
{
	(void)ctx;
	ck_assert_ptr_nonnull(s);
	after++;
}

static void set_up(void)
{
	struct builder_options o = { .event = event_clock(), .max_series = 10, .labels = labels_of,
				     .deliver = deliver, .after = after_window };
	struct symbolizer_options so = { 0 };
	struct err e;

	ck_assert_int_eq(kallsyms_parse(kernel_text, strlen(kernel_text), NULL, &kallsyms, NULL), 0);
	so.kallsyms = kallsyms;
	ck_assert_int_eq(files_new(10, &files), 0);
	ck_assert_int_eq(symbolizer_new(&so, files, &o.symbolizer), 0);
	ck_assert_int_eq(builder_new(&o, &b, &e), 0);
	delivered = after = 0;
}

static void tear_down(void)
{
	builder_free(take(b));
	files_free(take(files));
	kallsyms_free(take(kallsyms));
}

static void add(struct samples *s, uint32_t pid, uint64_t frame, uint64_t count)
{
	struct wk_sample sample = { .count = count, .weight = 10 * count, .pid = pid,
				    .user_outcome = WK_USER_NONE };

	ck_assert_int_eq(samples_add(s, &sample, NULL, 0, &frame, 1), 0);
}

static void put(int64_t time, uint32_t pid, uint64_t count)
{
	struct window w = { .samples = SAMPLES_INIT, .time_nanos = time, .duration_nanos = 15,
			    .freq = 19 };

	add(&w.samples, pid, FIRST, count);
	builder_put(b, &w);
	ck_assert_uint_eq(samples_entries(&w.samples), 0);
}

static void finish(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	builder_finish(b, ((uint64_t)t.tv_sec + 60) * 1000000000);
}

START_TEST(series_of_a_window)
{
	struct window w = { .samples = SAMPLES_INIT, .time_nanos = 100, .duration_nanos = 15,
			    .freq = 19 };
	struct builder_stats st;

	add(&w.samples, 1, FIRST, 1);
	add(&w.samples, 3, SECOND, 2);
	add(&w.samples, 2, SECOND, 4);
	add(&w.samples, 9, SECOND, 8);
	builder_put(b, &w);
	finish();
	ck_assert_uint_eq(delivered, 2);
	ck_assert_str_eq(texts[0], "{service_name=\"odd\"} first=10 second=20 @100+15");
	ck_assert_str_eq(texts[1], "{service_name=\"even\"} second=40 @100+15");
	ck_assert_uint_eq(after, 1);
	st = builder_stats(b);
	ck_assert_uint_eq(st.windows, 1);
	ck_assert_uint_eq(st.series, 2);
	ck_assert_uint_eq(st.samples, 7);
	ck_assert_uint_eq(st.unwanted, 8);
	ck_assert_uint_eq(st.frames, 7);
	ck_assert_uint_eq(st.named, 7);
	ck_assert_int_eq(st.last_end, 115);
	ck_assert_uint_eq(st.queued, 0);
}
END_TEST

START_TEST(in_order_and_bounded)
{
	struct builder_stats st;

	pthread_mutex_lock(&gate);
	put(0, 1, 1);
	do
		st = builder_stats(b);
	while (st.queued != 1);		/* at hand, or about to be */
	for (int i = 1; i <= BUILDER_QUEUE + 3; i++)
		put(i, 1, 1);
	pthread_mutex_unlock(&gate);
	finish();
	st = builder_stats(b);
	/* the first may have still been in the queue */
	ck_assert(st.dropped == 3 || st.dropped == 4);
	ck_assert_uint_eq(st.samples + st.dropped, BUILDER_QUEUE + 4);
	ck_assert_uint_eq(delivered, st.samples);
	ck_assert_int_eq(st.last_end, BUILDER_QUEUE + 3 + 15);
	ck_assert_str_eq(texts[delivered - 1], "{service_name=\"odd\"} first=10 @7+15");
}
END_TEST

static bool is_two(void *ctx, const struct samples_key *k)
{
	ck_assert_ptr_eq(ctx, &delivered);
	return k->pid == 2;
}

START_TEST(request)
{
	struct samples s = SAMPLES_INIT;
	struct builder_request q = { .samples = &s, .wanted = is_two, .ctx = &delivered,
				     .event = event_clock(), .time_nanos = 5, .duration_nanos = 6,
				     .freq = 99 };
	struct profile *p = NULL;

	add(&s, 1, FIRST, 1);
	add(&s, 2, SECOND, 2);
	ck_assert_int_eq(builder_profile(b, &q, &p), 0);
	ck_assert_uint_eq(profile_sample_count(p), 1);
	ck_assert_int_eq(profile_values(p, 0)[0], 2);
	ck_assert_int_eq(p->time_nanos, 5);
	profile_free(p);
	samples_free(&s);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("builder");
	TCase *t = tcase_create("builder");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, series_of_a_window);
	tcase_add_test(t, in_order_and_bounded);
	tcase_add_test(t, request);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
