/* backoff.h - when a sink may be tried again (delivery.h has the rule).
 *
 *	started = now;  ... a request ...
 *	backoff_fail(&b, started, now, retry_after, random)	or	backoff_ok(&b, started)
 *	backoff_wait(&b, now) == 0 -> go on; backoff_probing(&b): with one request only
 *
 * Pure: times are CLOCK_MONOTONIC nanoseconds of the caller, randomness comes from it. Requests that
 * run side by side and fail for one reason count as one failure: only one that was started after the
 * last failure makes the next wait longer, and only such a one's success ends it.
 */
#ifndef WICK_NET_BACKOFF_H
#define WICK_NET_BACKOFF_H

#include "base/base.h"

struct backoff {	/* zeroed: no failure yet */
	uint32_t failures;	/* in a row */
	uint64_t failed_ns;	/* when the last one was */
	uint64_t until_ns;
};

/* retry_after_ns: what the server asked for, 0: nothing. random: any 64 bits. */
void backoff_fail(struct backoff *b, uint64_t started_ns, uint64_t now_ns, uint64_t retry_after_ns,
		  uint64_t random);
void backoff_ok(struct backoff *b, uint64_t started_ns);
uint64_t backoff_wait(const struct backoff *b, uint64_t now_ns);	/* ns, 0: none */
static inline bool backoff_probing(const struct backoff *b)
{
	return b->failures > 0;
}

#endif
