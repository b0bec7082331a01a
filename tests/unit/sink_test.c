/* sink_test.c - options of sinks, and what HTTP's answers mean for all of them (sink.h). */
#include "sink_check.h"

#include "net/protocol.h"

static struct err e;

static void named(const char *url, const char *name)
{
	cleanup(sink_cleanup) struct sink *s = make_sink(url);

	ck_assert_str_eq(sink_name(s), name);
}

START_TEST(names)
{
	named("pyroscope+http://me:secret@host/a/", "pyroscope+http://host:4040/a");
	named("pyroscope+https://host?tenant=t1", "pyroscope+https://host?tenant=t1");
	named("pyroscope-ingest+http://host", "pyroscope-ingest+http://host:4040");
	named("profefe+http://host", "profefe+http://host:10100");
	named("parca+grpc://host", "parca+grpc://host:7070");
	named("parca+grpcs://host", "parca+grpcs://host");
	named("otlp+http://host?timeout=5s", "otlp+http://host:4318");
	named("file:///a/b/?max-bytes=1G", "file:///a/b");
}
END_TEST

static void refused(const char *url, const char *why)
{
	char copy[256];
	struct sink *s = NULL;

	snprintf(copy, sizeof(copy), "%s", url);
	ck_assert_int_eq(sink_new(&(struct sink_options){ .url = copy }, &s, &e), -EINVAL);
	ck_assert_ptr_null(s);
	ck_assert_msg(strstr(e.msg, why), "%s: %s", url, e.msg);
	ck_assert_msg(!strstr(e.msg, "secret"), "%s", e.msg);
}

START_TEST(refuses)
{
	refused("http://x", "'http://x' has no protocol: use pyroscope+http://HOST:4040");
	refused("me:secret@x", "'x' has no protocol");
	refused("gopher+http://x", "isn't supported");
	refused("parca+http://x", "isn't supported");
	refused("pyroscope+grpc://x", "isn't supported");
	refused("file+http://x", "isn't supported");
	refused("pyroscope+http://", "is not a URL");
	refused("file://x/y", "directory");
	refused("pyroscope+http://x?x=secret", "no option");
	refused("pyroscope+http://x?proto=1.9", "there is no option 'proto' for pyroscope");
	refused("otlp+http://x?proto=1.7", "'proto' doesn't accept");
	refused("otlp+http://x?batch=2", "'batch' doesn't accept");
	refused("parca+grpc://x?batch=101", "'batch' doesn't accept");
	refused("pyroscope+http://x?insecure=maybe", "'insecure' doesn't accept");
	refused("pyroscope+http://x?timeout=secret", "'timeout' doesn't accept");
	refused("file:///x?max-bytes=0", "'max-bytes' doesn't accept");
	refused("file:///x?tenant=a", "no option 'tenant' for file");
	refused("pyroscope+http://x?tenant=a%20b", "tenant");
	refused("pyroscope+https://x?cert-file=/dev/null", "go together");
	refused("pyroscope+https://me:secret@x?bearer-file=/etc/hostname", "exclude each other");
}
END_TEST

START_TEST(reads_options)
{
	struct sink *s = make_sink("pyroscope+http://x?timeout=1500ms&batch=7&insecure=yes");

	ck_assert_uint_eq(s->timeout_ns, 1500000000);
	ck_assert_uint_eq(sink_batch(s, 1), 7);
	ck_assert_uint_eq(sink_batch(s, 1000), 7);
	ck_assert(s->insecure && !s->tls && !sink_is_local(s));
	sink_free(s);
	s = make_sink("otlp+https://x?proto=1.9&timeout=2");
	ck_assert_uint_eq(s->otlp_minor, 9);
	ck_assert_uint_eq(s->timeout_ns, 2000000000);
	ck_assert_uint_eq(sink_batch(s, 1000), 1);
	ck_assert(s->tls);
	sink_free(s);
	s = make_sink("file:///x?max-bytes=3M&max-age=2d");
	ck_assert_uint_eq(s->file.max_bytes, 3 << 20);
	ck_assert_uint_eq(s->file.max_age_ns, 172800000000000);
	ck_assert(sink_is_local(s));
	sink_free(s);
}
END_TEST

START_TEST(batches_when_many_wait)
{
	struct sink *s = make_sink("pyroscope+http://x"), *parca = make_sink("parca+grpc://x");

	ck_assert_uint_eq(sink_batch(s, 0), 1);
	ck_assert_uint_eq(sink_batch(s, 7), 1);
	ck_assert_uint_eq(sink_batch(s, 8), 2);
	ck_assert_uint_eq(sink_batch(s, 1000), SINK_BATCH_AUTO);
	ck_assert_uint_eq(sink_batch(parca, 1000), 1);	/* counts twice what it gets twice */
	sink_free(s);
	sink_free(parca);
}
END_TEST

START_TEST(takes_options_beside_the_address)
{
	char url[] = "pyroscope+http://x", tenant[] = "t", bearer[] = "token", good[] = "X-A: b";
	char injected[] = "X-A: b\r\nX-C: d", nameless[] = ": b";
	char *headers[] = { good };
	struct sink_options o = { .url = url, .tenant = tenant, .bearer_token = bearer,
				  .headers = { headers, 1 } };
	struct sink *s;

	MUST(sink_new(&o, &s, &e));
	ck_assert_str_eq(s->headers.data, "X-Scope-OrgID: t\nX-A: b\n");
	ck_assert_str_eq(secret_value(&s->bearer), "token");
	sink_free(s);
	headers[0] = injected;
	ck_assert_int_eq(sink_new(&o, &s, &e), -EINVAL);
	ck_assert(strstr(e.msg, "header 1") && !strstr(e.msg, "X-C"));
	headers[0] = nameless;
	ck_assert_int_eq(sink_new(&o, &s, &e), -EINVAL);
}
END_TEST

START_TEST(missing_files)
{
	char url[] = "pyroscope+https://x?ca-file=/nonexistent/ca";
	char token[] = "pyroscope+https://x?bearer-file=/nonexistent/token";
	struct sink *s;

	ck_assert_int_eq(sink_new(&(struct sink_options){ .url = url }, &s, &e), -ENOENT);
	ck_assert(strstr(e.msg, "/nonexistent/ca"));
	ck_assert_int_eq(sink_new(&(struct sink_options){ .url = token }, &s, &e), -ENOENT);
}
END_TEST

START_TEST(judges_status)
{
	static const struct {
		long status;
		enum sink_fate fate;
		int err;
	} table[] = {
		{ 400, SINK_REFUSED, -EINVAL },	 { 401, SINK_REFUSED, -EACCES },
		{ 403, SINK_REFUSED, -EACCES },	 { 404, SINK_REFUSED, -ENOENT },
		{ 405, SINK_REFUSED, -ENOENT },	 { 408, SINK_LATER, -EAGAIN },
		{ 413, SINK_REFUSED, -E2BIG },	 { 415, SINK_REFUSED, -EREMOTEIO },
		{ 418, SINK_REFUSED, -EREMOTEIO }, { 422, SINK_REFUSED, -EINVAL },
		{ 429, SINK_LATER, -EAGAIN },	 { 500, SINK_LATER, -EREMOTEIO },
		{ 502, SINK_LATER, -EAGAIN },	 { 503, SINK_LATER, -EAGAIN },
		{ 504, SINK_LATER, -EAGAIN },	 { 599, SINK_LATER, -EREMOTEIO },
		{ 302, SINK_REFUSED, -EREMOTEIO }, { 204, SINK_REFUSED, -EREMOTEIO },
		{ 501, SINK_LATER, -EREMOTEIO },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct sink_answer a = { .status = table[i].status, .body = "why\nnot",
					 .type = "text/plain", .retry_after_ns = 3 };
		struct sink_verdict v = judge("profefe+http://x", a, 0);

		ck_assert_int_eq(v.fate, table[i].fate);
		ck_assert_int_eq(v.err, table[i].err);
		ck_assert_str_eq(v.message, "why not");
		ck_assert_uint_eq(v.retry_after_ns, 3);
	}
}
END_TEST

START_TEST(escapes)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(1000);

	url_escape(&b, "aZ09-._~ %+,=\u00e9/");
	ck_assert_str_eq(b.data, "aZ09-._~%20%25%2B%2C%3D%C3%A9%2F");
}
END_TEST

RUN_ALL("sink", names, refuses, reads_options, batches_when_many_wait, takes_options_beside_the_address, missing_files,
	judges_status, escapes)
