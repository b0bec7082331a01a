/* sink_profefe_test.c - profefe (sink_profefe.c). */
#include "sink_check.h"

#define URL "profefe+http://x"

START_TEST(escapes_twice)
{
	static const char *const labels[] = { "service_name=a b", "h=a,b=c+d;e%f", "z=1", NULL };
	struct item *it = make_item("process_cpu", labels);
	struct sink_request r;

	encode_one(URL, it, &r);
	ck_assert_str_eq(r.url, "http://x:10100/api/0/profiles?service=a%20b&type=cpu&labels="
				"h%3Da%252Cb%253Dc%252Bd%253Be%2525f%2Cz%3D1");
	ck_assert_uint_eq(r.body.len, it->len);
	ck_assert(!memcmp(r.body.data, it->pprof, it->len));
	sink_request_done(&r);
	item_unref(it);
	it = make_item("offcpu", NULL);
	encode_one(URL, it, &r);
	ck_assert_str_eq(r.url, "http://x:10100/api/0/profiles?service=wick&type=other");
	sink_request_done(&r);
	item_unref(it);
}
END_TEST

START_TEST(judges)
{
	static const char ok[] = "{\"code\":200,\"body\":{\"id\":\"P1\",\"type\":\"cpu\"}}";
	struct sink_answer bad = { .status = 400, .type = "text/plain",
				   .body = "{\"code\":400,\"error\":\"bad request\"}" };

	ck_assert_int_eq(fate(URL, 200, "text/plain", ok), SINK_STORED);
	ck_assert_int_eq(fate(URL, 200, "", ""), SINK_REFUSED);	/* so it answers to PUT */
	ck_assert_int_eq(fate(URL, 200, "text/html", "<html>"), SINK_REFUSED);
	ck_assert_int_eq(fate(URL, 500, "text/plain", "{\"code\":500}"), SINK_LATER);
	ck_assert_str_eq(judge(URL, bad, 0).message, "bad request");
}
END_TEST

RUN_ALL("sink_profefe", escapes_twice, judges)
