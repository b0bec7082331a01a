/* httpd.h - the agent's HTTP side: metrics, health, and profiles of any process on demand.
 *
 *	struct httpd_options o = { .listen = "127.0.0.1:9425", .max_callers = 4, ... };
 *	struct httpd_handler h = { .ctx = agent, .metrics = ..., .ready = ..., .profile = ... };
 *	r = httpd_new(&o, &h, &d, &e);
 *	...
 *	httpd_free(d);
 *
 * GET (and HEAD) of
 *	/healthz		200 "ok" while the process lives
 *	/readyz			200 or 503, with the reason
 *	/metrics		Prometheus' text format
 *	/debug/pprof/		an index page as Go programs have it
 *	/debug/pprof/profile	a gzipped pprof profile; query.h has the parameters
 * so that whatever pulls from a Go program (go tool pprof, Pyroscope's scraper, kube-profefe,
 * Parca) can pull from here. Anything else is 404 with a sentence, other methods are 405.
 *
 * Access: on a loopback address everybody may ask. Beyond it httpd_new() insists on a token;
 * callers send it as "Authorization: Bearer TOKEN". Health needs none, but tells strangers no
 * reasons. The token's file is read again for each request, so it can be exchanged.
 *
 * Threads: one for all connections, and one for each profile that is being made. handler's
 * functions are called from them: metrics and ready from the first (they should be quick), profile
 * from the others, several at a time.
 *
 * Limits: max_connections (more wait in the kernel's queue), max_callers (more get 429 with
 * Retry-After), HTTPD_HEADER_MAX bytes of request line and headers (431, or 414 for the URL), no
 * bodies; a request has HTTPD_REQUEST_MS from the connection's start or the last reply to be
 * complete, a reply HTTPD_REPLY_MS to be taken, then the connection is cut. Each is counted.
 */
#ifndef WICK_HTTPD_H
#define WICK_HTTPD_H

#include "base/buf.h"
#include "http/query.h"

enum {
	HTTPD_HEADER_MAX = 16 << 10,
	HTTPD_REPLY_MAX = 64 << 20,
	HTTPD_REQUEST_MS = 10000,
	HTTPD_REPLY_MS = 60000,
	HTTPD_TOKEN_MIN = 16,		/* bytes; a shorter token is refused at the start */
	HTTPD_TOKEN_MAX = 4096,
};

struct httpd_handler {
	void *ctx;
	void (*metrics)(void *ctx, struct buf *ret);
	/* Whether data flows; ret_why gets a line or more either way. */
	bool (*ready)(void *ctx, struct buf *ret_why);
	/* Blocks for the request's time and appends the gzipped profile. Asks httpd_gone(q->caller)
	 * about once a second and ends early, with -ECANCELED, once that is true. 0, or with a
	 * sentence:
	 *	-EINVAL			400	the request can't be met (unknown event)
	 *	-ENOENT			404	nothing fits it
	 *	-EBUSY, -EAGAIN, -ESHUTDOWN	503, Retry-After
	 *	any other		500 */
	int (*profile)(void *ctx, const struct profile_request *q, struct buf *ret, struct err *e);
};

struct httpd_options {		/* all copied */
	const char *listen;	/* listen.h */
	const char *token_file;	/* NULL: none, only on loopback */
	struct query_limits limits;
	uint32_t max_callers, max_connections;
	uint32_t request_ms, reply_ms;	/* 0: as above */
};

struct httpd_stats {
	uint64_t replies[6];	/* by hundreds of their status: [2] are the 2xx */
	uint64_t unauthorized, busy;	/* of them: 401, 429 */
	uint64_t cut;		/* connections that were too slow */
	uint64_t gone;		/* callers that didn't wait for their profile */
	uint32_t connections, callers;	/* now */
};

struct httpd;

/* Listens, and starts the thread. Copies the options, borrows what handler->ctx points to until
 * httpd_free(). 0, or with a sentence: -EINVAL (address, token needed or too short), -EACCES,
 * -EADDRINUSE,
 * -EADDRNOTAVAIL ... (listening), -ENOMEM, -EAGAIN (thread). */
int must_check httpd_new(const struct httpd_options *o, const struct httpd_handler *handler,
			 struct httpd **ret, struct err *e);
/* Callers that wait are gone from now on: returns when their profile() has returned. */
void httpd_free(struct httpd *d);
DEFINE_CLEANUP(httpd, struct httpd *, httpd_free)

/* Whether nobody waits for that profile any more. Any thread, while profile() runs. One system
 * call. */
bool httpd_gone(void *caller);
uint16_t httpd_port(const struct httpd *d);	/* that it listens at */
struct httpd_stats httpd_stats(struct httpd *d);	/* any thread */

#endif
