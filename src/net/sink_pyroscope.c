/* sink_pyroscope.c - Pyroscope's Push as a Connect unary call: POST /push.v1.PusherService/Push with
 * a PushRequest (proto/push.proto). Servers of Pyroscope 1.0 and later take it.
 *
 * A request isn't atomic: of several series the good ones are stored, and the error names one. */
#include "net/connect_error.h"
#include "net/protocol.h"
#include "push.pb-c.h"

#define TYPE "application/proto"	/* exactly, else 415 */

struct series {
	Push__V1__LabelPair pairs[LABELS_MAX + 2], *p[LABELS_MAX + 2];
	Push__V1__RawProfileSeries raw;
	Push__V1__RawSample sample, *samples;
};

static void add_pair(struct series *s, char *name, char *value)
{
	Push__V1__LabelPair *pair = &s->pairs[s->raw.n_labels];

	push__v1__label_pair__init(pair);
	pair->name = name;
	pair->value = value;
	s->p[s->raw.n_labels++] = pair;
}

static void fill_series(struct series *s, const struct item *it)
{
	static char name[] = "__name__";

	push__v1__raw_profile_series__init(&s->raw);
	push__v1__raw_sample__init(&s->sample);
	s->raw.labels = s->p;
	add_pair(s, name, it->type);
	for (size_t i = 0; i < it->labels.n; i++)
		add_pair(s, it->labels.v[i].name, it->labels.v[i].value);
	s->sample.raw_profile.data = it->pprof;
	s->sample.raw_profile.len = it->len;
	s->samples = &s->sample;
	s->raw.n_samples = 1;
	s->raw.samples = &s->samples;
}

static int encode(const struct sink *s, struct item *const *items, size_t n, struct buf *url,
		  struct sink_request *ret)
{
	Push__V1__PushRequest request = PUSH__V1__PUSH_REQUEST__INIT;
	cleanup(freep_cleanup) struct series *series = calloc(n, sizeof(*series));
	cleanup(freep_cleanup) Push__V1__RawProfileSeries **ptrs = calloc(n, sizeof(*ptrs));
	cleanup(freep_cleanup) uint8_t *body = NULL;
	size_t size;

	(void)s;
	if (!series || !ptrs)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		fill_series(&series[i], items[i]);
		ptrs[i] = &series[i].raw;
	}
	request.n_series = n;
	request.series = ptrs;
	size = push__v1__push_request__get_packed_size(&request);
	body = malloc(size);
	if (!body)
		return -ENOMEM;
	push__v1__push_request__pack(&request, body);
	buf_bytes(&ret->body, body, size);
	buf_str(url, "/push.v1.PusherService/Push");
	request_header(ret, "Content-Type", TYPE);
	request_header(ret, "Connect-Protocol-Version", "1");
	return 0;
}

/* Its 500s: "unknown" is also what it says of a profile that it can't decode, now and always; but
 * while it stops, the message says "Unavailable". The other codes of 500 are its own trouble. */
static bool is_permanent_500(const struct sink_answer *a)
{
	struct connect_error ce;

	return connect_error_parse(a->body, a->len, &ce) && !strcmp(ce.code, "unknown") &&
	       !strcasestr(ce.message, "unavailable");
}

static void judge(const struct sink *s, const struct sink_request *r, const struct sink_answer *a,
		  struct sink_verdict *ret)
{
	judge_http(s, r, a, ret);
	/* A Connect server repeats the request's type; a proxy may drop it where there is no body.
	 * 200 from whatever else listens there must not pass for a stored profile. */
	if (a->status == 200 &&
	    (a->too_long || (strcmp(a->type, TYPE) && (a->type[0] || a->len))))
		judge_stray(s, a, ret);
	if (a->status == 500 && is_permanent_500(a))
		ret->fate = SINK_REFUSED;
	/* The rate limit's burst: more than that is never let in, whatever the load (servers-seen) */
	if (a->status == 429 && r->counted > SINK_PUSH_BURST)
		verdict_set(ret, s, SINK_REFUSED, -E2BIG,
			    "answered 429: profile and labels have %zu bytes before gzip, and servers "
			    "with default limits take %d%s%.150s", r->counted, SINK_PUSH_BURST,
			    ret->message[0] ? ": " : "", ret->message);
}

const struct protocol protocol_pyroscope = {
	.name = "pyroscope",
	.transport = TRANSPORT_HTTP,
	.port = "4040",
	.batches = true,
	.stores_once = true,
	.product = "Pyroscope",
	.encode = encode,
	.judge = judge,
};
