/* transfer.h - one request to a sink by libcurl, from its encoding to the verdict.
 *
 *	struct transfer t = TRANSFER_INIT;
 *	r = transfer_start(&t, sink, items, n, &e);
 *	code = curl_easy_perform(t.curl);		// or a curl_multi that t.curl is added to
 *	transfer_finish(&t, sink, code, &verdict);
 *	transfer_done(&t);				// or the next transfer_start
 *
 * Certificates are verified against the system's authorities unless the sink says otherwise,
 * proxies are taken from the environment, redirects aren't followed: they would take credentials
 * elsewhere. Answers are read up to SINK_REPLY_MAX. TLS libraries can raise SIGPIPE: whoever performs
 * blocks it.
 */
#ifndef WICK_NET_TRANSFER_H
#define WICK_NET_TRANSFER_H

#include <curl/curl.h>

#include "net/sink.h"

struct transfer {
	CURL *curl;		/* made by the first start, used again by later ones */
	struct curl_slist *headers;
	struct sink_request request;
	struct sink_answer answer;
	struct buf body;	/* the answer's */
	char error[CURL_ERROR_SIZE];
};

#define TRANSFER_INIT { .body = BUF_INIT(SINK_REPLY_MAX) }

/* Call once before any other thread may use curl. */
void transfer_global_init(void);
/* Encodes and sets up. Borrows the sink until transfer_finish; the items aren't needed any more. 0,
 * -ENOMEM, or what sink_encode says, with a sentence. */
int must_check transfer_start(struct transfer *t, struct sink *s, struct item *const *items, size_t n,
			      struct err *e);
void transfer_finish(struct transfer *t, const struct sink *s, CURLcode code,
		     struct sink_verdict *ret);
void transfer_done(struct transfer *t);

/* Takes note of one line of an answer's headers or trailers (RFC 9110 section 5, gRPC's "Responses"):
 * grpc-status and grpc-message. Trusts nothing. */
void transfer_header(struct sink_answer *a, const char *line, size_t n);

#endif
