/* sink_otlp_test.c - OTLP's answers and framing (sink_otlp.c); otlp_test looks into its messages. */
#include "sink_check.h"

#define URL  "otlp+http://x"
#define TYPE "application/x-protobuf"

START_TEST(encodes)
{
	struct item *it = make_item("process_cpu", NULL);
	struct sink_request r;

	encode_one(URL, it, &r);
	ck_assert_str_eq(r.url, "http://x:4318/v1development/profiles");
	ck_assert_str_eq(r.headers.data, "Content-Type: " TYPE "\nContent-Encoding: gzip\n");
	ck_assert(!memcmp(r.body.data, "\x1f\x8b", 2));
	sink_request_done(&r);
	item_unref(it);
}
END_TEST

START_TEST(judges)
{
	struct sink_answer part = { .status = 200, .type = TYPE, .body = "\x0a\x06\x08\x01\x12\x02no" };
	struct sink_answer empty = { .status = 200, .type = TYPE, .body = "\x0a\x00", .len = 2 };
	struct sink_answer error = { .status = 400, .type = TYPE, .body = "\x08\x03\x12\x03why" };

	ck_assert_int_eq(fate(URL, 200, TYPE, ""), SINK_STORED);
	ck_assert_int_eq(fate(URL, 200, "", ""), SINK_STORED);
	ck_assert_int_eq(judge(URL, empty, 0).fate, SINK_STORED);
	ck_assert_int_eq(judge(URL, part, 0).fate, SINK_REFUSED);
	ck_assert_str_eq(judge(URL, part, 0).message, "no");
	ck_assert_int_eq(fate(URL, 200, TYPE, "\xff\xff"), SINK_REFUSED);
	ck_assert_int_eq(fate(URL, 200, "text/html", ""), SINK_REFUSED);
	ck_assert_int_eq(judge(URL, error, 0).fate, SINK_REFUSED);
	ck_assert_str_eq(judge(URL, error, 0).message, "why");
	error.body = "\xff";
	ck_assert_int_eq(judge(URL, error, 0).fate, SINK_REFUSED);
	ck_assert_int_eq(fate(URL, 500, "text/plain", "bad index"), SINK_REFUSED);
	ck_assert_int_eq(fate(URL, 503, TYPE, ""), SINK_LATER);
	ck_assert_int_eq(fate(URL, 429, "", ""), SINK_LATER);
}
END_TEST

RUN_ALL("sink_otlp", encodes, judges)
