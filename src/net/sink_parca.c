/* sink_parca.c - Parca's WriteRaw: one gRPC call over HTTP/2 with a WriteRawRequest (proto/parca.proto)
 * for each request. A call is POST /SERVICE/METHOD with a message behind five bytes (compressed or not,
 * length), and its outcome is in the trailers (gRPC over HTTP/2, "Requests" and "Responses"). */
#include "net/protocol.h"
#include "parca.pb-c.h"

#define METHOD "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw"

struct series {
	Parca__Profilestore__V1alpha1__RawProfileSeries raw;
	Parca__Profilestore__V1alpha1__LabelSet set;
	Parca__Profilestore__V1alpha1__Label labels[LABELS_MAX + 2], *ptrs[LABELS_MAX + 2];
	Parca__Profilestore__V1alpha1__RawSample sample, *samples;
};

static void add_label(struct series *s, char *name, char *value)
{
	Parca__Profilestore__V1alpha1__Label *l = &s->labels[s->set.n_labels];

	parca__profilestore__v1alpha1__label__init(l);
	l->name = name;
	l->value = value;
	s->ptrs[s->set.n_labels++] = l;
}

static void fill_series(struct series *s, const struct item *it)
{
	static char name[] = "__name__";

	parca__profilestore__v1alpha1__raw_profile_series__init(&s->raw);
	parca__profilestore__v1alpha1__label_set__init(&s->set);
	parca__profilestore__v1alpha1__raw_sample__init(&s->sample);
	s->set.labels = s->ptrs;
	add_label(s, name, it->type);
	for (size_t i = 0; i < it->labels.n; i++)
		add_label(s, it->labels.v[i].name, it->labels.v[i].value);
	s->sample.raw_profile.data = it->pprof;
	s->sample.raw_profile.len = it->len;
	s->samples = &s->sample;
	s->raw.labels = &s->set;
	s->raw.n_samples = 1;
	s->raw.samples = &s->samples;
}

static int encode(const struct sink *s, struct item *const *items, size_t n, struct buf *url,
		  struct sink_request *ret)
{
	Parca__Profilestore__V1alpha1__WriteRawRequest request =
		PARCA__PROFILESTORE__V1ALPHA1__WRITE_RAW_REQUEST__INIT;
	cleanup(freep_cleanup) struct series *series = calloc(n, sizeof(*series));
	cleanup(freep_cleanup) Parca__Profilestore__V1alpha1__RawProfileSeries **ptrs =
		calloc(n, sizeof(*ptrs));
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
	request.normalized = true;
	size = parca__profilestore__v1alpha1__write_raw_request__get_packed_size(&request);
	body = size > INT32_MAX ? NULL : malloc(5 + size);
	if (!body)
		return size > INT32_MAX ? -E2BIG : -ENOMEM;
	body[0] = 0;	/* not compressed: the profile is */
	for (int i = 0; i < 4; i++)
		body[1 + i] = (uint8_t)(size >> (24 - 8 * i));
	parca__profilestore__v1alpha1__write_raw_request__pack(&request, body + 5);
	buf_bytes(&ret->body, body, 5 + size);
	buf_str(url, METHOD);
	request_header(ret, "Content-Type", "application/grpc+proto");
	request_header(ret, "TE", "trailers");
	return 0;
}

static const struct meaning {
	int err;
	enum sink_fate fate;
	const char *name;
} meanings[] = {	/* by gRPC's status codes */
	[1] = { -EAGAIN, SINK_LATER, "CANCELLED" },
	[2] = { -EINVAL, SINK_REFUSED, "UNKNOWN" },	/* a name or type it can't parse */
	[3] = { -EINVAL, SINK_REFUSED, "INVALID_ARGUMENT" },
	[4] = { -EAGAIN, SINK_LATER, "DEADLINE_EXCEEDED" },
	[5] = { -ENOENT, SINK_REFUSED, "NOT_FOUND" },
	[6] = { -EINVAL, SINK_REFUSED, "ALREADY_EXISTS" },
	[7] = { -EACCES, SINK_REFUSED, "PERMISSION_DENIED" },
	[8] = { -EAGAIN, SINK_LATER, "RESOURCE_EXHAUSTED" },
	[9] = { -EINVAL, SINK_REFUSED, "FAILED_PRECONDITION" },
	[10] = { -EAGAIN, SINK_LATER, "ABORTED" },
	[11] = { -EINVAL, SINK_REFUSED, "OUT_OF_RANGE" },
	[12] = { -ENOENT, SINK_REFUSED, "UNIMPLEMENTED" },
	[13] = { -EREMOTEIO, SINK_LATER, "INTERNAL" },
	[14] = { -EAGAIN, SINK_LATER, "UNAVAILABLE" },
	[15] = { -EREMOTEIO, SINK_REFUSED, "DATA_LOSS" },
	[16] = { -EACCES, SINK_REFUSED, "UNAUTHENTICATED" },
};

static void judge(const struct sink *s, const struct sink_request *r, const struct sink_answer *a,
		  struct sink_verdict *ret)
{
	const int status = a->grpc_status;
	struct meaning m = { -EREMOTEIO, SINK_REFUSED, "unknown status" };

	judge_http(s, r, a, ret);
	if (a->status != 200)
		return;
	if (status == 0)
		return;
	if (status < 0) {	/* an answer that broke off is no answer */
		judge_stray(s, a, ret);
		if (!strncmp(a->type, "application/grpc", 16))
			ret->fate = SINK_LATER;
		return;
	}
	if (status < (int)ARRAY_SIZE(meanings))
		m = meanings[status];
	memcpy(ret->message, a->grpc_message, sizeof(ret->message));
	if (status == 8 && strstr(a->grpc_message, "larger than max")) {
		m.err = -E2BIG;		/* grpc-go's word for a message over its limit */
		m.fate = SINK_REFUSED;
	}
	verdict_set(ret, s, m.fate, m.err, "answered %s (%d): %.300s", m.name, status,
		    a->grpc_message[0] ? a->grpc_message : "it didn't say why");
}

const struct protocol protocol_parca = {
	.name = "parca",
	.transport = TRANSPORT_GRPC,
	.port = "7070",
	.batches = true,
	.product = "Parca",
	.encode = encode,
	.judge = judge,
};
