/* builder.c - see builder.h. Two locks: `queue` for the windows and figures, held for moments;
 * `naming` for the symbolizer, held for one series. */
#include "agent/builder.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/clock.h"

struct builder {
	struct builder_options o;
	pthread_t thread;
	bool started;
	pthread_mutex_t queue, naming;
	pthread_cond_t work, idle;
	struct window windows[BUILDER_QUEUE];	/* oldest first */
	uint32_t nwindows;
	bool stop, busy;
	uint64_t busy_epoch;			/* of the window at hand */
	struct builder_stats stats;
};

/* ---- one window ---- */

static int build_series(struct builder *b, const struct window *w, const struct series *s,
			struct profile **ret)
{
	struct build_options bo = {
		.event = b->o.event,
		.freq = w->freq,
		.time_nanos = w->time_nanos,
		.duration_nanos = w->duration_nanos,
		.entries = s->entries,
		.nentries = s->n,
	};
	struct build_stats stats = { 0 };
	int r;

	pthread_mutex_lock(&b->naming);
	r = build_profile(&w->samples, b->o.symbolizer, &bo, ret, &stats);
	pthread_mutex_unlock(&b->naming);
	pthread_mutex_lock(&b->queue);
	b->stats.frames += stats.frames;
	b->stats.named += stats.named;
	pthread_mutex_unlock(&b->queue);
	return r;
}

/* Samples that became part of a series; failed ones are counted here. */
static uint64_t build_all(struct builder *b, const struct window *w, const struct series_set *set)
{
	uint64_t samples = 0, failed = 0;

	for (size_t i = 0; i < set->n; i++) {
		struct profile *p cleanup(profile_cleanup) = NULL;

		samples += set->v[i].samples;
		if (build_series(b, w, &set->v[i], &p))
			failed += set->v[i].samples;
		else
			b->o.deliver(b->o.ctx, &set->v[i].labels, p);
	}
	pthread_mutex_lock(&b->queue);
	b->stats.failed += failed;
	b->stats.samples += samples - failed;
	b->stats.series += set->n;
	b->stats.other += set->joined;
	pthread_mutex_unlock(&b->queue);
	return samples;
}

static void build_window(struct builder *b, const struct window *w)
{
	cleanup(series_cleanup) struct series_set set = { 0 };
	uint64_t start = clock_monotonic(), samples = 0;
	int r;

	if (b->o.before) {
		pthread_mutex_lock(&b->naming);
		b->o.before(b->o.ctx, &w->samples, b->o.symbolizer);
		pthread_mutex_unlock(&b->naming);
	}
	r = series_split(&w->samples, b->o.labels, b->o.ctx, b->o.max_series, &set);

	if (!r)
		samples = build_all(b, w, &set);
	if (b->o.after) {
		pthread_mutex_lock(&b->naming);
		b->o.after(b->o.ctx, b->o.symbolizer);
		pthread_mutex_unlock(&b->naming);
	}
	pthread_mutex_lock(&b->queue);
	if (r)
		b->stats.failed += w->samples.count;
	else
		b->stats.unwanted += w->samples.count - samples;
	b->stats.windows++;
	b->stats.build_ns += clock_monotonic() - start;
	b->stats.last_end = w->time_nanos + w->duration_nanos;
	pthread_mutex_unlock(&b->queue);
}

/* ---- the thread ---- */

static void take_first(struct builder *b, struct window *ret)
{
	*ret = b->windows[0];
	b->nwindows--;
	memmove(b->windows, b->windows + 1, b->nwindows * sizeof(*b->windows));
}

static void *work(void *arg)
{
	struct builder *b = arg;
	struct window w;

	(void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), BUILDER_NICE);
	pthread_mutex_lock(&b->queue);
	while (!b->stop || b->nwindows) {
		if (!b->nwindows) {
			pthread_cond_wait(&b->work, &b->queue);
			continue;
		}
		take_first(b, &w);
		b->busy = true;
		b->busy_epoch = w.samples.epoch;
		pthread_mutex_unlock(&b->queue);
		build_window(b, &w);
		samples_free(&w.samples);
		pthread_mutex_lock(&b->queue);
		b->busy = false;
		pthread_cond_broadcast(&b->idle);
	}
	pthread_mutex_unlock(&b->queue);
	return NULL;
}

static void init_locks(struct builder *b)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&b->queue, NULL);
	pthread_mutex_init(&b->naming, NULL);
	pthread_cond_init(&b->work, &monotonic);
	pthread_cond_init(&b->idle, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

int builder_new(const struct builder_options *o, struct builder **ret, struct err *e)
{
	struct builder *b = calloc(1, sizeof(*b));
	int r;

	if (!b) {
		symbolizer_free(o->symbolizer);
		return err_set(e, -ENOMEM, "out of memory");
	}
	b->o = *o;
	init_locks(b);
	r = pthread_create(&b->thread, NULL, work, b);
	b->started = !r;
	if (r) {
		builder_free(b);
		return err_set(e, -r, "can't start the thread that builds profiles: %s",
			       strerror(r));
	}
	*ret = b;
	return 0;
}

void builder_free(struct builder *b)
{
	if (!b)
		return;
	pthread_mutex_lock(&b->queue);
	while (b->nwindows)	/* whoever wanted them built has called builder_finish */
		samples_free(&b->windows[--b->nwindows].samples);
	b->stop = true;
	pthread_cond_signal(&b->work);
	pthread_mutex_unlock(&b->queue);
	if (b->started)
		pthread_join(b->thread, NULL);
	pthread_cond_destroy(&b->work);
	pthread_cond_destroy(&b->idle);
	pthread_mutex_destroy(&b->queue);
	pthread_mutex_destroy(&b->naming);
	symbolizer_free(b->o.symbolizer);
	free(b);
}

void builder_put(struct builder *b, struct window *w)
{
	struct window old = { .samples = SAMPLES_INIT };

	pthread_mutex_lock(&b->queue);
	if (b->nwindows == BUILDER_QUEUE) {
		take_first(b, &old);
		b->stats.dropped += old.samples.count;
	}
	b->windows[b->nwindows++] = *w;
	w->samples = (struct samples)SAMPLES_INIT;
	pthread_cond_signal(&b->work);
	pthread_mutex_unlock(&b->queue);
	samples_free(&old.samples);
}

void builder_finish(struct builder *b, uint64_t deadline)
{
	struct timespec until = { .tv_sec = (time_t)(deadline / 1000000000),
				  .tv_nsec = (long)(deadline % 1000000000) };

	pthread_mutex_lock(&b->queue);
	while (b->nwindows || b->busy)
		if (pthread_cond_timedwait(&b->idle, &b->queue, &until))
			break;
	pthread_mutex_unlock(&b->queue);
}

/* ---- requests ---- */

int builder_profile(struct builder *b, const struct builder_request *q, struct profile **ret)
{
	cleanup(freep_cleanup) uint32_t *entries = NULL;
	struct build_options bo = {
		.event = q->event,
		.freq = q->freq,
		.time_nanos = q->time_nanos,
		.duration_nanos = q->duration_nanos,
	};
	struct build_stats stats;
	int r = samples_select(q->samples, q->wanted, q->ctx, &entries, &bo.nentries);

	if (r)
		return r;
	bo.entries = entries;
	pthread_mutex_lock(&b->naming);
	r = build_profile(q->samples, b->o.symbolizer, &bo, ret, &stats);
	pthread_mutex_unlock(&b->naming);
	return r;
}

struct builder_stats builder_stats(struct builder *b)
{
	struct builder_stats s;

	pthread_mutex_lock(&b->queue);
	s = b->stats;
	s.queued = b->nwindows + b->busy;
	s.oldest_epoch = b->busy	 ? b->busy_epoch :
			 b->nwindows ? b->windows[0].samples.epoch :
				       UINT64_MAX;
	pthread_mutex_unlock(&b->queue);
	return s;
}

void builder_look(struct builder *b, void (*fn)(void *ctx, struct symbolizer *s), void *ctx)
{
	pthread_mutex_lock(&b->naming);
	fn(ctx, b->o.symbolizer);
	pthread_mutex_unlock(&b->naming);
}
