/* query.h - what a caller of /debug/pprof/profile asks for: the query of its URL, checked.
 *
 *	seconds=10&hz=99&container=api
 *
 * seconds (default 30, as Go's handler has it) and hz are decimal numbers; pid is a process; comm,
 * container, pod, namespace, unit and exe are what the samples are chosen by, all of which must
 * match; event is what to sample by. Each at most once; anything else is refused, since a misspelt
 * filter would otherwise give the profile of the whole node.
 *
 * The bytes come from the network: bounded, percent-decoded (RFC 3986, 2.1; '+' is a space, as
 * forms have it), refused if they aren't UTF-8 or hold control characters.
 */
#ifndef WICK_QUERY_H
#define WICK_QUERY_H

#include "base/base.h"

enum {
	QUERY_TEXT_MAX = 256,	/* bytes of a value, NUL included */
	QUERY_SECONDS = 30,	/* unless asked otherwise, and allowed */
};

struct profile_request {
	uint64_t duration_ns;
	uint32_t hz;			/* 0: what the agent samples at anyway */
	uint32_t pid;			/* 0: any */
	/* "": any */
	char comm[QUERY_TEXT_MAX], container[QUERY_TEXT_MAX], pod[QUERY_TEXT_MAX];
	char namespace[QUERY_TEXT_MAX], unit[QUERY_TEXT_MAX], exe[QUERY_TEXT_MAX];
	char event[QUERY_TEXT_MAX];	/* "": the agent's own */
	void *caller;			/* for httpd_gone() */
};

struct query_limits {
	uint64_t max_duration_ns;	/* at least QUERY_MIN_NS */
	uint32_t max_hz;
};

#define QUERY_MIN_NS 100000000ULL	/* 0.1 s */

/* query is what follows '?', n bytes; caller is set to NULL. 0, or -EINVAL with a sentence that
 * names the parameter and what is accepted. Cost: one pass. */
int must_check query_parse(const char *query, size_t n, const struct query_limits *limits,
			   struct profile_request *ret, struct err *e);

#endif
