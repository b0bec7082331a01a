/* sink_ingest.c - Pyroscope's older way in: POST /ingest with a form that holds a pprof file.
 *
 * The name of the series is APP{LABEL=VALUE,...}, without any escaping: a value ends at ',' or '}'. The
 * parameter "format" must be left out, else the form is taken for the profile itself. */
#include <inttypes.h>

#include "net/protocol.h"

/* Sixteen random bytes: gzip won't contain them by chance. */
#define BOUNDARY      "wick-b81e6c94f02d4a7f8e53c07a1d96f24b"

static bool is_app_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("_.-/", c));
}

static void put_app(struct buf *b, const char *service, bool *ret_same)
{
	*ret_same = true;
	for (; *service; service++) {
		*ret_same &= is_app_char(*service);
		buf_char(b, is_app_char(*service) ? *service : '_');
	}
}

static void put_value(struct buf *b, const char *value)
{
	for (; *value; value++)
		buf_char(b, strchr(",{}", *value) ? '_' : *value);
}

/* The app becomes service_name as it is; what it can't hold goes into a label of that name. */
static void put_name(struct buf *b, const struct item *it)
{
	const char *service = labels_get(&it->labels, LABELS_SERVICE);
	bool same, first = true;

	put_app(b, service ? service : ITEM_DEFAULT_SERVICE, &same);
	buf_char(b, '{');
	for (size_t i = 0; i < it->labels.n; i++) {
		const struct label *l = &it->labels.v[i];

		if (same && !strcmp(l->name, LABELS_SERVICE))
			continue;
		buf_printf(b, "%s%s=", first ? "" : ",", l->name);
		put_value(b, l->value);
		first = false;
	}
	buf_char(b, '}');
}

static int encode(const struct sink *s, struct item *const *items, size_t n, struct buf *url,
		  struct sink_request *ret)
{
	cleanup(buf_cleanup) struct buf name = BUF_INIT(1 << 20);
	const struct item *it = items[0];

	(void)s;
	(void)n;
	put_name(&name, it);
	if (name.err)
		return name.err;
	buf_str(url, "/ingest?name=");
	url_escape(url, name.data);
	buf_printf(url, "&from=%" PRId64 "&until=%" PRId64 "&spyName=wick",
		   it->time_nanos / 1000000000, it->time_nanos / 1000000000 + 1);
	request_header(ret, "Content-Type", "multipart/form-data; boundary=" BOUNDARY);
	buf_str(&ret->body, "--" BOUNDARY "\r\n"
			    "Content-Disposition: form-data; name=\"profile\"; "
			    "filename=\"profile.pprof\"\r\n"
			    "Content-Type: application/octet-stream\r\n\r\n");
	buf_bytes(&ret->body, it->pprof, it->len);
	buf_str(&ret->body, "\r\n--" BOUNDARY "--\r\n");
	return 0;
}

static void judge(const struct sink *s, const struct sink_request *r, const struct sink_answer *a,
		  struct sink_verdict *ret)
{
	judge_http(s, r, a, ret);
	if (a->status == 200 && (a->len || a->too_long))
		judge_stray(s, a, ret);
	/* Servers before 1.0 say 422 to what is over their rate, too */
	if (a->status == 422 && strstr(ret->message, "rate limit"))
		ret->fate = SINK_LATER;
	if (a->status == 429 && r->counted > SINK_PUSH_BURST) {
		ret->fate = SINK_REFUSED;
		ret->err = -E2BIG;
	}
}

const struct protocol protocol_ingest = {
	.name = "pyroscope-ingest",
	.transport = TRANSPORT_HTTP,
	.port = "4040",
	.product = "Pyroscope",
	.encode = encode,
	.judge = judge,
};
