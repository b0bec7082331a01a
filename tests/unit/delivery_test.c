/* delivery_test.c - putting, counting and ending (delivery.h). What servers do to it is tested end to
 * end: tests/e2e/test_delivery*.py. */
#include "sink_check.h"

#include <sys/stat.h>
#include <time.h>

#include "net/delivery.h"

static char base[64], file_url[128], nobody[] = "pyroscope+http://127.0.0.1:1";
static struct err e;

static void begin(void)
{
	snprintf(base, sizeof(base), "/tmp/wick-delivery-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(base));
	snprintf(file_url, sizeof(file_url), "file://%s/out", base);
	setenv("no_proxy", "*", 1);
}

static void end(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", base);
	ck_assert_int_eq(system(command), 0);
}

static uint64_t in_seconds(uint64_t n)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ((uint64_t)ts.tv_sec + n) * 1000000000;
}

static struct sink_stats stats(struct delivery *d, size_t i)
{
	struct sink_stats s;
	uint64_t fates;

	delivery_stats(d, i, &s);
	fates = s.sent + s.refused + s.queued + s.spooled;
	for (int j = 0; j < DELIVERY_DROPS; j++)
		fates += s.dropped[j];
	ck_assert_uint_eq(s.put + s.spool_found, fates);
	return s;
}

static void put(struct delivery *d, uint32_t samples)
{
	cleanup(profile_cleanup) struct profile *p = sendable(samples);
	cleanup(labels_cleanup) struct labels l = LABELS_INIT;

	MUST(labels_set(&l, "service_name", "web"));
	MUST(delivery_put(d, &l, p));
}

START_TEST(delivers)
{
	struct sink_options sinks[2];
	struct delivery_options o = { .sinks = sinks, .nsinks = 2, .profile_bytes = 20000 };
	struct delivery *d;
	struct sink_stats s;

	begin();
	sinks[0] = (struct sink_options){ .url = file_url };
	sinks[1] = (struct sink_options){ .url = nobody };
	MUST(delivery_new(&o, &d, &e));
	ck_assert_uint_eq(delivery_sinks(d), 2);
	put(d, 0);
	put(d, 10);
	put(d, 1000);	/* in parts */
	delivery_finish(d, in_seconds(1));
	s = stats(d, 0);
	ck_assert_uint_gt(s.sent, 2);
	ck_assert_uint_eq(s.sent, s.put);
	ck_assert_uint_gt(s.sent_bytes, 0);
	ck_assert_int_gt(s.last_ok, 1700000000000000000);
	s = stats(d, 1);
	ck_assert_uint_eq(s.dropped[DELIVERY_SHUTDOWN], s.put);
	ck_assert_int_eq(s.last_ok, 0);
	ck_assert(strstr(s.last_error, nobody));
	ck_assert_uint_gt(s.backoff_ns, 0);
	{
		cleanup(profile_cleanup) struct profile *p = sendable(1);
		struct labels none = LABELS_INIT;

		ck_assert_int_eq(delivery_put(d, &none, p), -ESHUTDOWN);
	}
	delivery_free(d);
	end();
}
END_TEST

START_TEST(spools)
{
	struct sink_options sink = { .url = nobody };
	struct delivery_options o = { .sinks = &sink, .nsinks = 1 };
	struct delivery *d;
	struct sink_stats s;
	char dir[128];

	begin();
	snprintf(dir, sizeof(dir), "%s/spool", base);
	o.spool_dir = dir;
	for (uint64_t round = 0; round < 3; round++) {
		MUST(delivery_new(&o, &d, &e));
		put(d, 5);
		put(d, 5);
		delivery_finish(d, 0);
		s = stats(d, 0);
		ck_assert_uint_eq(s.spool_found, 2 * round);
		ck_assert_uint_eq(s.spooled, 2 * round + 2);
		ck_assert_uint_gt(s.spool_bytes, 0);
		delivery_free(d);
	}
	o.spool_age_ns = 1;
	MUST(delivery_new(&o, &d, &e));
	delivery_finish(d, in_seconds(1));
	stats(d, 0);
	delivery_free(d);
	end();
}
END_TEST

START_TEST(keeps_the_queue_within_bytes)
{
	struct sink_options sink = { .url = nobody };
	struct delivery_options o = { .sinks = &sink, .nsinks = 1, .queue_bytes = 5000 };
	struct delivery *d;
	struct sink_stats s;

	begin();
	MUST(delivery_new(&o, &d, &e));
	for (int i = 0; i < 50; i++)
		put(d, 5);
	s = stats(d, 0);
	ck_assert_uint_gt(s.dropped[DELIVERY_QUEUE_FULL], 0);
	/* what is under way is in memory as well */
	ck_assert_uint_le(s.queued_bytes, 5000 + DELIVERY_CONCURRENCY * 2000);
	delivery_free(d);
	end();
}
END_TEST

START_TEST(says_what_is_wrong)
{
	char bad[] = "pyroscope+http://me:secret@h?x=y";
	struct sink_options sinks[2] = { { .url = nobody }, { .url = bad } };
	struct delivery_options o = { .sinks = sinks };
	struct delivery *d = NULL;

	ck_assert_int_eq(delivery_new(&o, &d, &e), -EINVAL);
	o.nsinks = 2;
	ck_assert_int_eq(delivery_new(&o, &d, &e), -EINVAL);
	ck_assert(strstr(e.msg, "no option 'x'") && !strstr(e.msg, "secret"));
	sinks[1].url = nobody;	/* two of one name can't share a spool */
	begin();
	o.spool_dir = base;
	ck_assert_int_eq(delivery_new(&o, &d, &e), -EBUSY);
	ck_assert_ptr_null(d);
	delivery_free(d);
	for (int i = 0; i < DELIVERY_DROPS; i++)
		ck_assert_ptr_nonnull(delivery_drop_name((enum delivery_drop)i));
	end();
}
END_TEST

RUN_ALL("delivery", delivers, spools, keeps_the_queue_within_bytes, says_what_is_wrong)
