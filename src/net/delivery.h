/* delivery.h - gets profiles to all sinks, from a thread of its own, while the next are being made.
 *
 *	struct sink_options sinks[] = { { .url = "pyroscope+http://pyroscope:4040" } };
 *	struct delivery_options o = { .sinks = sinks, .nsinks = 1, .spool_dir = "/var/lib/wick" };
 *	r = delivery_new(&o, &d, &e);
 *	for each window and series:
 *		r = delivery_put(d, &labels, profile);		// never waits for a server
 *	delivery_finish(d, clock_monotonic() + 10 s);
 *	delivery_free(d);
 *
 * Each sink has a queue, connections that are used again, and a pace of its own: a server that is
 * slow or away holds up no other. A profile is its own request, so one that is refused costs no other;
 * when more wait than requests that can be under way, a few may share one (sink_batch), and of a batch
 * that is refused each is sent once more alone. Pyroscope takes 0.5 s for a request, whatever is in it: four
 * at a time keep up with 120 series in a window of 15 s by ones, with 1,200 by tens.
 *
 * Retries: only what may succeed later is sent again, unchanged, so that servers can tell
 * (time_nanos). After a failure the whole sink waits: 0.5 s, doubled each time up to 1 min, less a
 * random part of up to half of it, or what Retry-After says if that is longer (up to 15 min); then
 * one request tries the ground before the others follow. A profile that fails DELIVERY_GIVE_UP times
 * while others get through is refused in all but name, and counted so.
 *
 * Spool: with a spool_dir, what can't be sent now goes to disk (spool.h): after a failure, while the
 * sink waits, and whenever something has been here for DELIVERY_SPOOL_AFTER_NS, even if it is being
 * sent; so kill -9 loses at most what is younger than that, the current window. What is spooled is
 * sent oldest first, after all that is fresh and never on the last free connection. Without a spool
 * or when the disk is full it stays in the queue, whose oldest go when it is over queue_bytes.
 *
 * Accounting, exact at any time for each sink:
 *	put = sent + refused + sum(dropped) + queued + spooled - those found in the spool at the start
 *
 * Threads: all functions may be called from any thread, delivery_free from the last one.
 * Cost of delivery_put: one pprof encoding for all sinks together, and no copy for each.
 */
#ifndef WICK_NET_DELIVERY_H
#define WICK_NET_DELIVERY_H

#include "net/sink.h"
#include "profile/profile.h"

#define DELIVERY_GIVE_UP	5
#define DELIVERY_SPOOL_AFTER_NS 10000000000ULL
#define DELIVERY_BACKOFF_MIN_NS 500000000ULL
#define DELIVERY_BACKOFF_MAX_NS 60000000000ULL
#define DELIVERY_RETRY_AFTER_MAX_NS 900000000000ULL

/* Defaults, for whoever shows them. */
#define DELIVERY_QUEUE_BYTES  (16ULL << 20)
#define DELIVERY_SPOOL_BYTES  (64ULL << 20)
#define DELIVERY_SPOOL_AGE_NS 3600000000000ULL	/* Pyroscope refuses what is older */
#define DELIVERY_CONCURRENCY  4
#define DELIVERY_CONCURRENCY_MAX 64

struct delivery_options {
	const struct sink_options *sinks;
	size_t nsinks;
	const char *spool_dir;	/* made if its parent exists; NULL: memory only */
	uint64_t spool_bytes;	/* of each sink; 0: DELIVERY_SPOOL_BYTES */
	uint64_t spool_age_ns;	/* also of what is queued; 0: DELIVERY_SPOOL_AGE_NS */
	uint64_t queue_bytes;	/* of each sink; 0: DELIVERY_QUEUE_BYTES */
	uint32_t concurrency;	/* requests at a time to a sink; 0: DELIVERY_CONCURRENCY */
	uint64_t profile_bytes;	/* before gzip, larger ones are split; 0: SPLIT_RAW_BYTES */
};

enum delivery_drop {	/* why a profile was given up without a server's word */
	DELIVERY_QUEUE_FULL,
	DELIVERY_EXPIRED,	/* older than spool_age_ns */
	DELIVERY_SPOOL_FULL,	/* the oldest of a spool over spool_bytes */
	DELIVERY_SPOOL_TORN,	/* unreadable there */
	DELIVERY_ENCODING,	/* no memory, or this protocol can't express it */
	DELIVERY_SHUTDOWN,	/* the grace period was over and there is no spool */
	DELIVERY_DROPS
};

enum { DELIVERY_BUCKETS = 10 };
extern const double delivery_bucket_seconds[DELIVERY_BUCKETS];	/* upper bounds; the last: infinity */

struct sink_stats {
	const char *name;	/* borrowed until delivery_free */
	uint64_t put, sent, refused, dropped[DELIVERY_DROPS];	/* profiles */
	uint64_t sent_bytes;	/* bodies of requests that were accepted */
	uint64_t requests, retried;	/* requests; those among them that aren't a profile's first */
	uint64_t queued, queued_bytes;	/* profiles now in memory, those on their way included */
	uint64_t in_flight;	/* requests */
	uint64_t spooled, spool_bytes;	/* profiles and bytes now on disk */
	uint64_t spool_found;	/* profiles that were there at the start */
	uint64_t spool_errors;	/* writes that failed: disk full, ... */
	uint64_t backoff_ns;	/* what the sink still waits; 0: it doesn't */
	int64_t last_ok;	/* nanoseconds since 1970; 0: never */
	uint64_t latency[DELIVERY_BUCKETS];	/* of answered requests; not cumulative */
	double latency_seconds;	/* their sum */
	char last_error[512];	/* a sentence, "" if there was none yet */
};

struct delivery;

/* The word for metrics and messages: "queue_full", ... */
const char *delivery_drop_name(enum delivery_drop why);

/* Starts the thread. 0, or with a sentence: what sink_new() and spool_open() say, -EINVAL without
 * sinks, -ENOMEM, -EAGAIN (no thread). */
int must_check delivery_new(const struct delivery_options *o, struct delivery **ret, struct err *e);

/* Queues the profile for every sink, split if it is too large (split.h). Copies. A profile without
 * samples is none. service_name is ITEM_DEFAULT_SERVICE if the labels have none. 0, -EINVAL: it lacks
 * types, period or time; -ENOMEM: some parts may be queued; -ESHUTDOWN after delivery_finish. */
int must_check delivery_put(struct delivery *d, const struct labels *labels,
			    const struct profile *p);

size_t delivery_sinks(const struct delivery *d);
void delivery_stats(struct delivery *d, size_t sink, struct sink_stats *ret);
/* Samples that no server would take, in a profile of their own above profile_bytes: not sent. */
uint64_t delivery_unsendable(struct delivery *d);

/* Sends what is queued until the time is over (CLOCK_MONOTONIC, ns); the rest goes to the spool, or is
 * dropped without one. Returns when that is done and the thread has ended. */
void delivery_finish(struct delivery *d, uint64_t until_ns);
/* delivery_finish() without a grace period, unless that was called. */
void delivery_free(struct delivery *d);
DEFINE_CLEANUP(delivery, struct delivery *, delivery_free)

#endif
