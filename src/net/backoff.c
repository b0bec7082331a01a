/* backoff.c - see backoff.h. */
#include "net/backoff.h"

#include "net/delivery.h"

void backoff_fail(struct backoff *b, uint64_t started_ns, uint64_t now_ns, uint64_t retry_after_ns,
		  uint64_t random)
{
	uint64_t wait = DELIVERY_BACKOFF_MIN_NS;

	if (!b->failures || started_ns > b->failed_ns) {
		b->failures++;
		for (uint32_t i = 1; i < b->failures && wait < DELIVERY_BACKOFF_MAX_NS; i++)
			wait *= 2;
		wait = MIN(wait, DELIVERY_BACKOFF_MAX_NS);
		/* many agents that lost one server must not come back to it at once */
		wait -= random % (wait / 2);
		b->failed_ns = now_ns;
		b->until_ns = now_ns + wait;
	}
	retry_after_ns = MIN(retry_after_ns, DELIVERY_RETRY_AFTER_MAX_NS);
	b->until_ns = MAX(b->until_ns, now_ns + retry_after_ns);
}

void backoff_ok(struct backoff *b, uint64_t started_ns)
{
	if (!b->failures || started_ns > b->failed_ns)
		*b = (struct backoff){ 0 };
}

uint64_t backoff_wait(const struct backoff *b, uint64_t now_ns)
{
	return b->failures && b->until_ns > now_ns ? b->until_ns - now_ns : 0;
}
