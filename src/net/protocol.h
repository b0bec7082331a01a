/* protocol.h - what one protocol adds to sink.c: how it encodes and what its answers mean.
 *
 * A protocol is a file sink_NAME.c with one constant of struct protocol, listed in sink.c. Its
 * functions are pure: no transfers, no clocks, no global state. Helpers for them stand here.
 */
#ifndef WICK_NET_PROTOCOL_H
#define WICK_NET_PROTOCOL_H

#include "net/secret.h"
#include "net/sink.h"

enum transport {
	TRANSPORT_HTTP,	/* "+http", "+https"; over TLS HTTP/2 if the server has it */
	TRANSPORT_GRPC,	/* "+grpc", "+grpcs": HTTP/2 always */
	TRANSPORT_FILE,	/* "file:" */
};

struct protocol {
	const char *name;	/* before the '+' */
	enum transport transport;
	const char *port;	/* without TLS, if the address has none */
	bool batches;		/* several series in a request */
	bool stores_once;	/* recognises what it gets twice, by labels and time */
	const char *product;	/* in messages: "there is no Pyroscope at this address" */
	/* Appends to url, headers and body of *ret; url holds the address with its prefix. */
	int (*encode)(const struct sink *s, struct item *const *items, size_t n,
		      struct buf *url, struct sink_request *ret);
	void (*judge)(const struct sink *s, const struct sink_request *r,
		      const struct sink_answer *a, struct sink_verdict *ret);
	void (*store)(struct sink *s, const struct item *it, struct sink_verdict *ret);
};

extern const struct protocol protocol_pyroscope, protocol_ingest, protocol_profefe,
	protocol_parca, protocol_otlp, protocol_file;

struct file_sink {	/* of protocol_file */
	char *dir;
	uint64_t max_bytes, max_age_ns;	/* 0: no limit */
	uint64_t bytes;		/* in dir, as far as is known */
	int64_t looked_ns;	/* when it was last looked through; 0: not yet */
};

struct sink {
	const struct protocol *protocol;
	bool tls, insecure;
	char *name, *base;	/* base: what the protocol's paths are appended to */
	char *user;
	struct secret password, bearer;
	struct buf headers;	/* of all requests, lines */
	char *ca_file, *cert_file, *key_file;
	uint64_t timeout_ns;
	uint32_t batch;		/* 0: automatic */
	uint32_t otlp_minor;	/* of the protocol's revision 1.x */
	struct file_sink file;
};

/* ---- for encode ---- */

void request_header(struct sink_request *r, const char *name, const char *value);
/* Percent-encodes all but RFC 3986's unreserved characters. */
void url_escape(struct buf *b, const char *s);
/* Appends in gzipped. */
int must_check gzip_bytes(const void *in, size_t n, struct buf *out);

/* ---- for judge ---- */

/* By HTTP's status alone, with the server's words from the body: what the protocols share. 200 is
 * SINK_STORED here. */
void judge_http(const struct sink *s, const struct sink_request *r, const struct sink_answer *a,
		struct sink_verdict *ret);
/* A 200 that isn't what such a server answers. */
void judge_stray(const struct sink *s, const struct sink_answer *a, struct sink_verdict *ret);
void printf_like(5, 6) verdict_set(struct sink_verdict *v, const struct sink *s,
				   enum sink_fate fate, int err, const char *fmt, ...);

#endif
