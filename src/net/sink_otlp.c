/* sink_otlp.c - OTLP profiles over HTTP: POST /v1development/profiles, gzipped protobuf (otlp.h).
 * Answers by OTLP 1.10, "OTLP/HTTP Response". */
#include "net/connect_error.h"
#include "net/otlp.h"
#include "net/protocol.h"
#include "otlp.pb-c.h"

#define TYPE "application/x-protobuf"

static int encode(const struct sink *s, struct item *const *items, size_t n, struct buf *url,
		  struct sink_request *ret)
{
	cleanup(buf_cleanup) struct buf raw = BUF_INIT((size_t)256 << 20);
	int r = otlp_encode(items[0], s->otlp_minor, &raw);

	(void)n;
	if (r)
		return r;
	buf_str(url, "/v1development/profiles");
	request_header(ret, "Content-Type", TYPE);
	request_header(ret, "Content-Encoding", "gzip");
	return gzip_bytes(raw.data, raw.len, &ret->body);
}

/* 200 with a part that wasn't taken; we send one profile, so that is all of it. */
static void judge_partial(const struct sink *s, const struct sink_answer *a, struct sink_verdict *ret)
{
	Wick__Otlp__Response *m = wick__otlp__response__unpack(NULL, a->len, (const uint8_t *)a->body);
	const Wick__Otlp__PartialSuccess *part = m ? m->partial_success : NULL;

	if (!m) {
		judge_stray(s, a, ret);
		return;
	}
	if (part && part->rejected_profiles > 0) {
		clean_text(part->error_message, strlen(part->error_message), ret->message,
			   sizeof(ret->message));
		verdict_set(ret, s, SINK_REFUSED, -EINVAL, "accepted nothing of it: %.300s",
			    ret->message[0] ? ret->message : "it didn't say why");
	}
	wick__otlp__response__free_unpacked(m, NULL);
}

/* An error's body is a Status in protobuf; its message is what judge_http should see. */
static void judge_error(const struct sink *s, const struct sink_request *r,
			const struct sink_answer *a, struct sink_verdict *ret)
{
	struct sink_answer plain = *a;
	Wick__Otlp__Status *m = NULL;

	if (!strcmp(a->type, TYPE)) {
		m = wick__otlp__status__unpack(NULL, a->len, (const uint8_t *)a->body);
		plain.body = m ? m->message : "";
		plain.len = strlen(plain.body);
		snprintf(plain.type, sizeof(plain.type), "text/plain");
	}
	judge_http(s, r, &plain, ret);
	if (m)
		wick__otlp__status__free_unpacked(m, NULL);
}

static void judge(const struct sink *s, const struct sink_request *r, const struct sink_answer *a,
		  struct sink_verdict *ret)
{
	if (a->status != 200) {
		judge_error(s, r, a, ret);
		/* "Retryable Response Codes" are 429, 502, 503 and 504 and no other */
		if (a->status == 500)
			ret->fate = SINK_REFUSED;
		return;
	}
	if (a->too_long || (a->type[0] && strcmp(a->type, TYPE)) || (!a->type[0] && a->len))
		judge_stray(s, a, ret);
	else
		judge_partial(s, a, ret);
}

const struct protocol protocol_otlp = {
	.name = "otlp",
	.transport = TRANSPORT_HTTP,
	.port = "4318",
	.product = "an OTLP collector for profiles",
	.encode = encode,
	.judge = judge,
};
