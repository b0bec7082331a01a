/* builder.h - from a window of samples to named profiles, one a series, on a thread of its own.
 *
 *	r = builder_new(&options, &b, &e);		// starts the thread
 *	builder_put(b, &window);			// takes the samples; never waits
 *	... the thread: series_split(), build_profile(), options.deliver() for each series ...
 *	r = builder_profile(b, &request, &profile);	// any thread: one profile, now
 *	builder_finish(b, deadline);			// what is queued, then no more
 *	builder_free(b);
 *
 * Naming can take seconds when programs are met for the first time; sampling must not wait for it. So
 * windows queue up, BUILDER_QUEUE of them at most; beyond that the oldest goes, and its samples are
 * counted (`dropped`). One symbolizer serves the thread and the requests, under a lock: a request
 * waits for the series at hand, not for the window.
 *
 * The thread runs at a slightly lower priority (nice BUILDER_NICE).
 */
#ifndef WICK_AGENT_BUILDER_H
#define WICK_AGENT_BUILDER_H

#include "agent/series.h"
#include "collect/build.h"
#include "symbol/symbolizer.h"

struct builder;

enum {
	BUILDER_QUEUE = 4,
	BUILDER_NICE = 1,
};

struct window {
	struct samples samples;
	int64_t time_nanos, duration_nanos;
	uint32_t freq;
};

struct builder_options {
	struct symbolizer *symbolizer;	/* taken, also on failure */
	const struct event *event;
	uint32_t max_series;
	series_labels *labels;		/* called by the thread */
	/* Gets each series of a window; profile and labels are borrowed for the call. A failure is the
	 * callee's to count. */
	void (*deliver)(void *ctx, const struct labels *labels, const struct profile *profile);
	/* Called on the thread before each window, under the lock, with its samples; and after it: time to
	 * trim caches. May be NULL. */
	void (*before)(void *ctx, const struct samples *samples, struct symbolizer *symbolizer);
	void (*after)(void *ctx, struct symbolizer *symbolizer);
	void *ctx;
};

struct builder_stats {
	uint64_t windows, samples;	/* built */
	uint64_t series;		/* profiles handed to deliver, ever */
	uint64_t unwanted;		/* samples whose labels said: not to be profiled */
	uint64_t other;			/* samples that joined SERIES_OTHER */
	uint64_t dropped;		/* samples of windows that didn't fit in the queue */
	uint64_t failed;		/* samples of windows that could not be built (memory) */
	uint64_t frames, named;
	uint64_t build_ns;		/* spent */
	uint32_t queued;		/* windows now */
	uint64_t oldest_epoch;		/* of the samples in windows not built yet; UINT64_MAX: none */
	int64_t last_end;		/* time_nanos + duration_nanos of the last one built; 0: none */
};

/* A profile of some entries. */
struct builder_request {
	const struct samples *samples;
	/* Whether an entry belongs to it; NULL: all. */
	bool (*wanted)(void *ctx, const struct samples_key *key);
	void *ctx;
	const struct event *event;
	int64_t time_nanos, duration_nanos;
	uint32_t freq;
};

/* 0; -ENOMEM, -EAGAIN (no thread) with a sentence. */
int must_check builder_new(const struct builder_options *o, struct builder **ret, struct err *e);
void builder_free(struct builder *b);
DEFINE_CLEANUP(builder, struct builder *, builder_free)

/* Takes w->samples and leaves none there. */
void builder_put(struct builder *b, struct window *w);
/* 0, -ENOMEM. */
int must_check builder_profile(struct builder *b, const struct builder_request *q,
			       struct profile **ret);
/* Waits until everything is built or until the deadline (CLOCK_MONOTONIC, ns). */
void builder_finish(struct builder *b, uint64_t deadline);
struct builder_stats builder_stats(struct builder *b);

/* Calls fn with the symbolizer while nobody else uses it, for figures. */
void builder_look(struct builder *b, void (*fn)(void *ctx, struct symbolizer *s), void *ctx);

#endif
