/* push.h - send one profile to one server, now: `wick record --push`.
 *
 *	struct labels labels = LABELS_INIT;
 *	struct push_result res;
 *
 *	r = push_parse("pyroscope+http://localhost:4040", &t, &e);
 *	r = push_label_add(&labels, "service_name=web", &e);
 *	r = push_send(t, &labels, profile, &res, &e);
 *	push_target_free(t);
 *
 * Addresses and protocols are those of sink.h. A profile that is too large for servers goes in several
 * parts (split.h), one after the other. Nothing is retried: whoever waits for the answer decides.
 *
 * Texts in struct err name the server without user and password, and quote what the server said.
 * Cost: one encoding of the profile, one connection for all parts of a push_send, which blocks until the
 * server has answered (Pyroscope: about 0.5 s, since it answers when the profile is stored) or a timeout
 * is over. One thread at a time for a target.
 */
#ifndef WICK_PUSH_H
#define WICK_PUSH_H

#include "net/sink.h"
#include "profile/profile.h"

struct push_target;

struct push_result {
	long status;		/* of HTTP, of the last part; 0: no answer, or no HTTP */
	size_t sent;		/* bytes of the requests' bodies, or of files */
	uint32_t parts;		/* that were accepted */
	uint32_t unsendable;	/* samples that are too large for any server, left out */
	char message[384];	/* the server's own words, one line; "" if it said nothing */
};

/* 0, -ENOMEM, -errno of a file that the address names, or -EINVAL with a sentence that says what is
 * accepted. Copies. */
int must_check push_parse(const char *url, struct push_target **ret, struct err *e);
void push_target_free(struct push_target *t);
DEFINE_CLEANUP(push_target, struct push_target *, push_target_free)
/* For messages. Borrowed until push_target_free. */
const char *push_name(const struct push_target *t);
/* Overwrites the password in what may be an address, for a command line that others can read. */
void push_mask(char *arg);

/* Adds "NAME=VALUE". What labels_set() would mend is an error here, since somebody typed it: a name is
 * [a-zA-Z_][a-zA-Z0-9_]* and doesn't start with "__" (the server's own); a value is valid UTF-8 and not
 * empty; LABEL_NAME_MAX, LABEL_VALUE_MAX and LABELS_MAX apply; no name comes twice. 0, -ENOMEM, or -EINVAL
 * with a sentence that says which rule is broken. */
int must_check push_label_add(struct labels *l, const char *text, struct err *e);

/* Don't send a profile without samples: there is nothing to store, so nothing is sent. *ret is filled in
 * after a failure too. 0, or with a sentence in e the errors of struct sink_verdict (sink.h); -EINVAL also
 * if the profile lacks types, period or time. After a failure the parts before it are stored. */
int must_check push_send(struct push_target *t, const struct labels *labels, const struct profile *p,
			 struct push_result *ret, struct err *e);

#endif
