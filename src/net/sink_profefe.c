/* sink_profefe.c - profefe: POST /api/0/profiles with a pprof profile, everything else in the query.
 *
 * Labels are unescaped twice there: first the parameter, then each key and value in it. */
#include "net/protocol.h"

static void put_labels(struct buf *b, const struct item *it)
{
	bool first = true;

	for (size_t i = 0; i < it->labels.n; i++) {
		const struct label *l = &it->labels.v[i];

		if (!strcmp(l->name, LABELS_SERVICE))
			continue;
		buf_str(b, first ? "" : ",");
		url_escape(b, l->name);
		buf_char(b, '=');
		url_escape(b, l->value);
		first = false;
	}
}

static int encode(const struct sink *s, struct item *const *items, size_t n, struct buf *url,
		  struct sink_request *ret)
{
	cleanup(buf_cleanup) struct buf labels = BUF_INIT(1 << 20);
	const struct item *it = items[0];
	const char *service = labels_get(&it->labels, LABELS_SERVICE);

	(void)s;
	(void)n;
	put_labels(&labels, it);
	if (labels.err)
		return labels.err;
	buf_str(url, "/api/0/profiles?service=");
	url_escape(url, service ? service : ITEM_DEFAULT_SERVICE);
	/* it knows the types of Go's own profiles, and "other" */
	buf_printf(url, "&type=%s", !strcmp(it->type, "process_cpu") ? "cpu" : "other");
	if (labels.len) {
		buf_str(url, "&labels=");
		url_escape(url, labels.data);
	}
	request_header(ret, "Content-Type", "application/octet-stream");
	buf_bytes(&ret->body, it->pprof, it->len);
	return 0;
}

/* It answers 200 to much, also without storing anything; a stored profile has got an id. */
static void judge(const struct sink *s, const struct sink_request *r, const struct sink_answer *a,
		  struct sink_verdict *ret)
{
	judge_http(s, r, a, ret);
	if (a->status == 200 && (a->too_long || !a->len || !memmem(a->body, a->len, "\"id\"", 4)))
		judge_stray(s, a, ret);
}

const struct protocol protocol_profefe = {
	.name = "profefe",
	.transport = TRANSPORT_HTTP,
	.port = "10100",
	.product = "profefe",
	.encode = encode,
	.judge = judge,
};
