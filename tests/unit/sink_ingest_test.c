/* sink_ingest_test.c - Pyroscope's /ingest (sink_ingest.c). */
#include "sink_check.h"

#define URL "pyroscope-ingest+http://x"

static void expect_url(const char *const *labels, const char *url)
{
	struct item *it = make_item("process_cpu", labels);
	struct sink_request r;

	encode_one(URL "/p", it, &r);
	ck_assert_str_eq(r.url, url);
	item_unref(it);
	sink_request_done(&r);
}

#define REST "&from=1796100000&until=1796100001&spyName=wick"

START_TEST(encodes_names)
{
	expect_url((const char *[]){ "service_name=a/b.c-d", "env=x y", NULL },
		   "http://x:4040/p/ingest?name=a%2Fb.c-d%7Benv%3Dx%20y%7D" REST);
	expect_url((const char *[]){ "service_name=a b", "v=a,b}c=d", NULL },
		   "http://x:4040/p/ingest?name=a_b%7Bservice_name%3Da%20b%2Cv%3Da_b_c%3Dd%7D" REST);
	expect_url(NULL, "http://x:4040/p/ingest?name=wick%7B%7D" REST);
}
END_TEST

START_TEST(encodes_a_form)
{
	struct item *it = make_item("process_cpu", NULL);
	struct sink_request r;
	const char *profile;

	encode_one(URL, it, &r);
	ck_assert_ptr_nonnull(strstr(r.headers.data, "multipart/form-data; boundary="));
	ck_assert_ptr_nonnull(strstr(r.body.data, "name=\"profile\""));
	profile = memmem(r.body.data, r.body.len, it->pprof, it->len);
	ck_assert_ptr_nonnull(profile);
	ck_assert(!memcmp(profile - 4, "\r\n\r\n", 4));
	ck_assert(!memcmp(profile + it->len, "\r\n--", 4));
	ck_assert(!memcmp(r.body.data + r.body.len - 4, "--\r\n", 4));
	ck_assert_ptr_null(strstr(r.url, "format"));
	item_unref(it);
	sink_request_done(&r);
}
END_TEST

START_TEST(judges)
{
	ck_assert_int_eq(fate(URL, 200, "", ""), SINK_STORED);
	ck_assert_int_eq(fate(URL, 200, "text/html", "<html>"), SINK_REFUSED);
	ck_assert_int_eq(fate(URL, 422, "application/json", "{\"message\":\"no samples\"}"),
			 SINK_REFUSED);
	ck_assert_int_eq(fate(URL, 422, "application/json",
			      "{\"message\":\"resource_exhausted: push rate limit (1 B) exceeded\"}"),
			 SINK_LATER);
	ck_assert_int_eq(fate(URL, 429, "", ""), SINK_LATER);
	ck_assert_int_eq(judge(URL, (struct sink_answer){ .status = 429 }, 3 << 20).err, -E2BIG);
}
END_TEST

RUN_ALL("sink_ingest", encodes_names, encodes_a_form, judges)
