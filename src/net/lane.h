/* lane.h - one sink's part of delivery: queue, spool, requests under way, pace (delivery.h has the
 * rules).
 *
 *	r = lane_new(&options, &lane, &e);
 *	lane_put(lane, it);			// any thread
 *	lane_run(lane, multi, now, draining);	// the delivery thread: again whenever something happened
 *	lane_finished(lane, easy, code, now)	// a transfer of this lane's has ended
 *	lane_stop(lane, multi);			// the rest to the spool
 *
 * All but lane_put and lane_stats belong to the delivery thread. The mutex covers queue and counters;
 * requests and the spool are the thread's own.
 */
#ifndef WICK_NET_LANE_H
#define WICK_NET_LANE_H

#include <curl/curl.h>

#include "net/delivery.h"

struct lane;

struct lane_options {
	const struct sink_options *sink;
	const char *spool_dir;	/* of all sinks; NULL: memory only */
	uint64_t spool_bytes, age_ns, queue_bytes;
	uint32_t concurrency;
};

int must_check lane_new(const struct lane_options *o, struct lane **ret, struct err *e);
void lane_free(struct lane *l);
/* Takes a reference of its own. 0, -ENOMEM. */
int must_check lane_put(struct lane *l, struct item *it);
/* Spools what must not wait, starts requests. draining: from the queue only. Returns how many ns it can
 * be left alone if nothing happens, UINT64_MAX: for ever. */
uint64_t lane_run(struct lane *l, CURLM *multi, uint64_t now_ns, bool draining);
/* False: this isn't a transfer of this lane. */
bool lane_finished(struct lane *l, CURLM *multi, CURL *easy, CURLcode code, uint64_t now_ns);
bool lane_idle(struct lane *l);	/* nothing queued or under way; the spool doesn't count */
void lane_stop(struct lane *l, CURLM *multi);
void lane_stats(struct lane *l, uint64_t now_ns, struct sink_stats *ret);

#endif
