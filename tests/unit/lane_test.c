/* lane_test.c - one sink's queue, requests and pace, driven by hand (lane.h). */
#include "sink_check.h"

#include "net/lane.h"

#define S 1000000000ULL

static char nobody[] = "pyroscope+http://127.0.0.1:1";
static struct lane *lane;
static CURLM *multi;

static void begin(char *url, uint32_t concurrency)
{
	static struct sink_options sink;
	struct lane_options o = { .sink = &sink, .age_ns = 3600 * S, .queue_bytes = 1 << 20,
				  .concurrency = concurrency };
	struct err e;

	setenv("no_proxy", "*", 1);
	curl_global_init(CURL_GLOBAL_DEFAULT);
	multi = curl_multi_init();
	sink.url = url;
	ck_assert_msg(!lane_new(&o, &lane, &e), "%s", e.msg);
}

static void end(void)
{
	lane_stop(lane, multi);
	lane_free(lane);
	curl_multi_cleanup(multi);
}

static void put(int n)
{
	for (int i = 0; i < n; i++) {
		cleanup(item_cleanup) struct item *it = make_item("process_cpu", NULL);

		MUST(lane_put(lane, it));
	}
}

static struct sink_stats stats(uint64_t now)
{
	struct sink_stats s;

	lane_stats(lane, now, &s);
	return s;
}

/* Until no request is under way; each ends at this time. */
static void let_end(uint64_t now)
{
	int running, left;
	CURLMsg *m;

	while (stats(now).in_flight) {
		curl_multi_perform(multi, &running);
		while ((m = curl_multi_info_read(multi, &left)))
			ck_assert(lane_finished(lane, multi, m->easy_handle, m->data.result, now));
		curl_multi_poll(multi, NULL, 0, 10, NULL);
	}
}

START_TEST(sends_side_by_side_then_probes)
{
	uint64_t wait, now = 1000000 * S;

	begin(nobody, 3);
	ck_assert(lane_idle(lane));
	ck_assert_uint_eq(lane_run(lane, multi, now, false), UINT64_MAX);
	put(5);
	lane_run(lane, multi, now, false);
	ck_assert_uint_eq(stats(now).in_flight, 3);
	ck_assert_uint_eq(stats(now).queued, 5);
	ck_assert(!lane_idle(lane));
	let_end(now);

	wait = lane_run(lane, multi, now, false);
	ck_assert_uint_gt(wait, 0);
	ck_assert_uint_le(wait, DELIVERY_BACKOFF_MIN_NS);
	ck_assert_uint_eq(stats(now).in_flight, 0);
	ck_assert_uint_eq(stats(now).backoff_ns, wait);

	now += wait;
	lane_run(lane, multi, now, false);
	ck_assert_uint_eq(stats(now).in_flight, 1);
	let_end(now);
	ck_assert_uint_eq(stats(now).requests, 4);
	ck_assert_uint_eq(stats(now).queued, 5);
	end();
}
END_TEST

START_TEST(does_not_know_foreign_transfers)
{
	CURL *c = curl_easy_init();

	begin(nobody, 1);
	ck_assert(!lane_finished(lane, multi, c, CURLE_OK, 1));
	curl_easy_cleanup(c);
	end();
}
END_TEST

START_TEST(drops_the_rest_at_the_end)
{
	struct sink_stats s;

	begin(nobody, 2);
	put(4);
	lane_run(lane, multi, S, false);
	lane_stop(lane, multi);
	s = stats(S);
	ck_assert_uint_eq(s.dropped[DELIVERY_SHUTDOWN], 4);
	ck_assert_uint_eq(s.queued + s.queued_bytes + s.in_flight, 0);
	ck_assert(lane_idle(lane));
	end();
}
END_TEST

START_TEST(stores_in_a_directory_at_once)
{
	char dir[] = "/tmp/wick-lane-XXXXXX", url[64], command[64];

	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(url, sizeof(url), "file://%s", dir);
	begin(url, 1);
	put(3);
	ck_assert_uint_eq(lane_run(lane, multi, S, false), UINT64_MAX);
	ck_assert_uint_eq(stats(S).sent, 3);
	end();
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ck_assert_int_eq(system(command), 0);
}
END_TEST

RUN_ALL("lane", sends_side_by_side_then_probes, does_not_know_foreign_transfers,
	drops_the_rest_at_the_end, stores_in_a_directory_at_once)
