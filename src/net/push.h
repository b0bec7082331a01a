/* push.h - send a profile to a Pyroscope server.
 *
 *	struct push_target *t;
 *	struct push_label label;
 *	struct push_result res;
 *
 *	r = push_parse("pyroscope+http://localhost:4040", &t, &e);
 *	r = push_label_parse("service_name=web", &label, &e);
 *	r = push_send(t, &label, 1, gz.data, gz.len, &res, &e);
 *	push_label_free(&label);
 *	push_target_free(t);
 *
 * The push is a Connect unary call over HTTP/1.1 or 2: POST /push.v1.PusherService/Push with a
 * PushRequest (proto/push.proto) of one series with one profile. Servers of Pyroscope 1.0 and
 * later take it. Proxies are taken from the environment, as curl(1) does; redirects aren't
 * followed; certificates are verified against the system's authorities.
 *
 * Texts in struct err name the server without user and password, and quote what the server said.
 * Cost: one copy of the profile, one connection for each push_send, which blocks until the server
 * has answered (Pyroscope: about 0.5 s, since it answers when the profile is stored) or a timeout
 * is over. Threads may share a target.
 */
#ifndef WICK_PUSH_H
#define WICK_PUSH_H

#include "base/base.h"

enum {
	/* What servers accept unless they are configured otherwise. push_labels_check() sees to
	 * the first three. */
	PUSH_LABELS_MAX = 30,  /* __name__ and service_name included */
	PUSH_NAME_MAX = 1024,  /* bytes of a label's name */
	PUSH_VALUE_MAX = 2048, /* bytes of its value */
	/* The rest is up to who makes the profile. A larger one must be split by samples into
	 * several with the same labels and each a time_nanos of its own: to the server, labels and
	 * time are a profile's identity. */
	PUSH_SAMPLES_MAX = 16000, /* more: refused, 400 */
	PUSH_RAW_MAX = 2 << 20,	  /* bytes before gzip, labels counted too; more: 429 at any load */

	PUSH_CONNECT_MS = 5000,
	PUSH_TOTAL_MS = 30000,
	PUSH_REPLY_MAX = 64 << 10, /* bytes of an answer's body */
};

#define PUSH_DEFAULT_SERVICE "wick" /* service_name unless a label says otherwise */

struct push_target {
	char *name;		   /* the address as in --push, without user and password */
	char *url;		   /* what is posted to */
	char *user, *password;	   /* HTTP Basic; NULL: none */
	long connect_ms, total_ms; /* timeouts; may be changed */
};

struct push_label {
	char *name, *value;
};

struct push_result {
	long status;	   /* of HTTP; 0: no answer */
	size_t sent;	   /* bytes of the request's body */
	char message[384]; /* the server's own words, one line; "" if it said nothing */
};

/* The address of a server: pyroscope+http://[USER:PASSWORD@]HOST[:PORT][/PREFIX] (the port is
 * 4040 if not given) or pyroscope+https://... (443). User and password may hold %XX escapes.
 * 0, -ENOMEM, or -EINVAL with a sentence that says what is accepted. Copies. */
int must_check push_parse(const char *url, struct push_target **ret, struct err *e);
void push_target_free(struct push_target *t);
DEFINE_CLEANUP(push_target, struct push_target *, push_target_free)
/* For messages. Borrowed until push_target_free. */
const char *push_name(const struct push_target *t);

/* "NAME=VALUE". A name is [a-zA-Z_][a-zA-Z0-9_]* and doesn't start with "__" (the server's own);
 * a value is valid UTF-8 and not empty; PUSH_NAME_MAX and PUSH_VALUE_MAX apply. 0, -ENOMEM, or
 * -EINVAL with a sentence that says which rule is broken. Copies. */
int must_check push_label_parse(const char *text, struct push_label *ret, struct err *e);
void push_label_free(struct push_label *l); /* its two strings */
/* The same rules for labels from elsewhere; and together they must be distinct and leave room for
 * __name__ and service_name among PUSH_LABELS_MAX. 0, -ENOMEM or -EINVAL with a sentence. */
int must_check push_labels_check(const struct push_label *labels, size_t n, struct err *e);

/* Sends a gzipped pprof profile under __name__ process_cpu and the labels. Don't send one without
 * samples: servers say yes and store nothing. *ret is filled in after a failure too. 0, or with a
 * sentence in e
 *
 *	-EINVAL		push_labels_check() fails (nothing is sent), or the server refuses the
 *			profile or its labels (400, 413, 422): no retry helps
 *	-E2BIG		429 for a profile that is over PUSH_RAW_MAX with its labels: split it
 *	-EACCES		401, 403: user and password are wrong or missing
 *	-ENOENT		404, 405: no Pyroscope at this address
 *	-EAGAIN		408, 429, 502, 503, 504: the same bytes may be taken later
 *	-EREMOTEIO	any other status. Pyroscope answers 500 also to what it can't decode
 *	-EHOSTUNREACH, -ECONNREFUSED, -ECONNRESET, -ETIMEDOUT
 *			no answer: name not known, no connection, broken off, too slow
 *	-EPROTO		TLS failed, or the answer isn't that of a Pyroscope server
 *	-ENOMEM
 */
int must_check push_send(const struct push_target *t, const struct push_label *labels, size_t n,
			 const void *pprof_gz, size_t len, struct push_result *ret, struct err *e);

#endif
