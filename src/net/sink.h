/* sink.h - one place that profiles are sent to: its address, its protocol, its credentials.
 *
 *	struct sink_options o = { .url = "pyroscope+https://push.example/", .bearer_file = path };
 *	r = sink_new(&o, &sink, &e);
 *	r = sink_encode(sink, &item, 1, &request);	// what to send
 *	... curl (transfer.h) ...
 *	sink_judge(sink, &request, &answer, &verdict);	// what the answer means
 *
 * Addresses are PROTOCOL+TRANSPORT://[USER:PASSWORD@]HOST[:PORT][/PREFIX][?OPTION=VALUE&...]:
 *
 *	pyroscope+http://HOST:4040	Push: Connect unary, protobuf; +https too
 *	pyroscope-ingest+http://...	the older /ingest: a form with a pprof file
 *	profefe+http://HOST:10100	POST /api/0/profiles
 *	parca+grpc://HOST:7070		WriteRaw over HTTP/2 without TLS; parca+grpcs with it
 *	otlp+http://HOST:4318		profiles, v1development; ?proto=1.9 for collectors before 1.10
 *	file:///DIR			.pb.gz files; ?max-bytes=1G, ?max-age=7d: the oldest go then
 *
 * Options are the fields of struct sink_options, so that one address says it all: tenant,
 * password-file, bearer-file, ca-file, cert-file, key-file, insecure=yes, timeout (30s) and, of
 * protocols that can, batch: series in one request. What the address says counts.
 *
 * Encoding and judging are functions of their arguments; nothing here waits for anything, but a
 * file sink stores in sink_store. Texts never hold a secret: names are without user and password,
 * and what a server says is quoted as valid UTF-8 on one line.
 * A sink doesn't change once it is made, but for its secrets, which are read again when their files
 * change (secret.h): one thread at a time.
 */
#ifndef WICK_NET_SINK_H
#define WICK_NET_SINK_H

#include "net/item.h"

enum {
	SINK_TIMEOUT_MS = 30000,	/* of a request, connecting included */
	SINK_CONNECT_MS = 5000,
	SINK_BATCH_MAX = 100,
	SINK_BATCH_AUTO = 10,
	SINK_REPLY_MAX = 64 << 10,	/* bytes of an answer's body */
	SINK_PUSH_BURST = 2 << 20,	/* bytes before gzip that Pyroscope never takes at a time */
};

struct sink_headers {
	char **v;	/* "Name: value" */
	size_t n;
};

/* All are optional but url, all are copied. Files are opened at sink_new for the first time. */
struct sink_options {
	char *url;
	char *tenant;		/* X-Scope-OrgID */
	char *user, *password, *password_file;	/* HTTP Basic */
	char *bearer_token, *bearer_file;
	struct sink_headers headers;
	char *ca_file, *cert_file, *key_file;	/* PEM; of TLS */
	bool insecure;		/* certificates aren't verified */
	uint64_t timeout_ns;	/* 0: SINK_TIMEOUT_MS */
	uint32_t batch;		/* series in a request, 0: what sink_batch() says */
};

struct sink;

/* 0, -ENOMEM; -EINVAL, -errno of a file: with a sentence that says what is accepted. */
int must_check sink_new(const struct sink_options *o, struct sink **ret, struct err *e);
void sink_free(struct sink *s);
DEFINE_CLEANUP(sink, struct sink *, sink_free)

/* The address without secrets and options. Borrowed until sink_free. */
const char *sink_name(const struct sink *s);
/* How many series a request should have, when so many wait for each of the requests that can be under
 * way: what was asked for; else one, and up to SINK_BATCH_AUTO when many wait at a server that stores
 * only once what it gets twice, since a refused batch is repeated one by one. */
uint32_t sink_batch(const struct sink *s, uint64_t waiting);

/* An address for messages: without what may be user and password or an option's value, whatever
 * else is wrong with it. Clean text, cut to size bytes. */
void sink_redact(const char *url, char *ret, size_t size);

/* ---- a request and its answer ---- */

struct sink_request {
	char *url;
	struct buf headers;	/* lines "Name: value\n" */
	struct buf body;
	size_t counted;		/* bytes that the server counts of the largest item */
};

struct sink_answer {
	long status;		/* of HTTP */
	char type[64];		/* Content-Type */
	char redirect[120];	/* where a 3xx sends us */
	const char *body;
	size_t len;
	bool too_long;		/* the body was cut */
	int grpc_status;	/* -1: none */
	char grpc_message[384];
	uint64_t retry_after_ns;	/* 0: not said */
};

enum sink_fate {
	SINK_STORED,	/* the server has them */
	SINK_LATER,	/* the same bytes may be taken later */
	SINK_REFUSED,	/* no retry helps */
};

struct sink_verdict {
	enum sink_fate fate;
	/* 0 if stored. Else:
	 *	-EINVAL		the server refuses the profile or its labels
	 *	-E2BIG		it is too large for it
	 *	-EACCES		credentials are wrong or missing
	 *	-ENOENT		no such server at this address
	 *	-EAGAIN		not now
	 *	-EREMOTEIO	an error of the server
	 *	-EPROTO		the answer isn't one of such a server, or TLS failed
	 *	-EHOSTUNREACH, -ECONNREFUSED, -ECONNRESET, -ETIMEDOUT, -ENOMEM, file errors */
	int err;
	uint64_t retry_after_ns;
	char message[384];	/* the server's own words, "" if it said nothing */
	struct err why;		/* a sentence that names the sink */
};

/* Items to one request; n is at least 1, and 1 unless the protocol batches. 0, -ENOMEM, -E2BIG, or -EBADMSG:
 * an item that this protocol can't express. *ret is empty before. */
int must_check sink_encode(struct sink *s, struct item *const *items, size_t n,
			   struct sink_request *ret);
void sink_request_done(struct sink_request *r);
void sink_judge(const struct sink *s, const struct sink_request *r, const struct sink_answer *a,
		struct sink_verdict *ret);

/* Whether it stores by itself instead (file). */
bool sink_is_local(const struct sink *s);
void sink_store(struct sink *s, const struct item *it, struct sink_verdict *ret);

#endif
