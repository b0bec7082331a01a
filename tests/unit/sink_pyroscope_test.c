/* sink_pyroscope_test.c - Pyroscope's Push (sink_pyroscope.c); push_test sends whole ones. */
#include "sink_check.h"

#include "push.pb-c.h"

#define URL  "pyroscope+http://x"
#define JSON "application/json"
#define TYPE "application/proto"

START_TEST(encodes_several)
{
	static const char *const one[] = { "service_name=a", NULL }, *const two[] = { "x=y", NULL };
	struct item *items[] = { make_item("process_cpu", one), make_item("offcpu", two) };
	cleanup(sink_cleanup) struct sink *s = make_sink(URL "/p?batch=2");
	struct sink_request r;
	Push__V1__PushRequest *m;

	MUST(sink_encode(s, items, 2, &r));
	ck_assert_str_eq(r.url, "http://x:4040/p/push.v1.PusherService/Push");
	ck_assert_str_eq(r.headers.data, "Content-Type: " TYPE "\nConnect-Protocol-Version: 1\n");
	ck_assert_uint_ge(r.counted, items[0]->raw);
	m = push__v1__push_request__unpack(NULL, r.body.len, (uint8_t *)r.body.data);
	ck_assert_uint_eq(m->n_series, 2);
	ck_assert_str_eq(m->series[1]->labels[0]->name, "__name__");
	ck_assert_str_eq(m->series[1]->labels[0]->value, "offcpu");
	ck_assert_uint_eq(m->series[1]->samples[0]->raw_profile.len, items[1]->len);
	push__v1__push_request__free_unpacked(m, NULL);
	sink_request_done(&r);
	item_unref(items[0]);
	item_unref(items[1]);
}
END_TEST

START_TEST(judges)
{
	struct sink_answer burst = { .status = 429 };

	ck_assert_int_eq(fate(URL, 200, TYPE, ""), SINK_STORED);
	ck_assert_int_eq(fate(URL, 200, "", ""), SINK_STORED);
	ck_assert_int_eq(fate(URL, 200, "text/html", ""), SINK_REFUSED);
	ck_assert_int_eq(fate(URL, 200, "", "hello"), SINK_REFUSED);
	/* 500: for ever, or only now */
	ck_assert_int_eq(fate(URL, 500, JSON, "{\"code\":\"unknown\",\"message\":\"gzip\"}"),
			 SINK_REFUSED);
	ck_assert_int_eq(fate(URL, 500, JSON, "{\"code\":\"unknown\",\"message\":\"rpc error: code = "
					      "Unavailable\"}"), SINK_LATER);
	ck_assert_int_eq(fate(URL, 500, JSON, "{\"code\":\"internal\"}"), SINK_LATER);
	ck_assert_int_eq(fate(URL, 500, "text/html", "<html>"), SINK_LATER);
	/* 429: over the rate, or larger than it can ever be */
	ck_assert_int_eq(judge(URL, burst, SINK_PUSH_BURST).fate, SINK_LATER);
	ck_assert_int_eq(judge(URL, burst, SINK_PUSH_BURST + 1).fate, SINK_REFUSED);
	ck_assert_int_eq(judge(URL, burst, SINK_PUSH_BURST + 1).err, -E2BIG);
}
END_TEST

RUN_ALL("sink_pyroscope", encodes_several, judges)
