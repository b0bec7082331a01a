/* probe.c - see probe.h. */
#include "agent/probe.h"

#include <pthread.h>

#include "base/clock.h"
#include "collect/build.h"

static pthread_mutex_t running = PTHREAD_MUTEX_INITIALIZER;

struct selection {
	const struct probe_options *o;
	const struct files *files;
};

static bool is_wanted(void *ctx, const struct samples_key *key)
{
	const struct selection *s = ctx;

	return !s->o->wanted || s->o->wanted(s->o->wanted_ctx, s->files, key);
}

static int build(const struct probe_options *o, const struct recorder *rec, struct profile **ret)
{
	struct symbolizer *sym cleanup(symbolizer_cleanup) = NULL;
	cleanup(freep_cleanup) uint32_t *entries = NULL;
	struct selection selection = { o, rec->files };
	struct build_options bo = {
		.event = sampler_event(rec->sampler),
		.freq = o->sampler.freq,
		.time_nanos = rec->time_nanos,
		.duration_nanos = rec->duration_nanos,
	};
	struct symbolizer_options so = o->symbols;
	struct build_stats stats;
	int r = samples_select(&rec->samples, is_wanted, &selection, &entries, &bo.nentries);

	so.processes = rec->processes;
	if (!r)
		r = symbolizer_new(&so, rec->files, &sym);
	if (r)
		return r;
	bo.entries = entries;
	return build_profile(&rec->samples, sym, &bo, ret, &stats);
}

static int record(const struct probe_options *o, struct recorder *rec, struct err *e)
{
	int r = recorder_start(rec, e);
	uint64_t until = clock_monotonic() + o->duration_ns;
	bool ignored;

	while (!r && clock_monotonic() < until) {
		r = recorder_wait(rec, -1, until, &ignored, e);
		if (!r && o->gone && o->gone(o->gone_ctx))
			r = err_set(e, -ECANCELED, "the caller has gone");
	}
	return r ? r : recorder_finish(rec, e);
}

int probe_run(const struct probe_options *o, struct profile **ret, struct err *e)
{
	struct recorder_options ro = { .rows_bytes = o->rows_bytes, .copied_bytes = o->copied_bytes };
	struct recorder *rec = NULL;
	int r;

	if (pthread_mutex_trylock(&running))
		return err_set(e, -EBUSY, "another profile by an event of its own is being made");
	r = recorder_new(&o->sampler, &ro, &rec, e);
	if (!r)
		r = record(o, rec, e);
	if (!r) {
		r = build(o, rec, ret);
		if (r)
			err_set(e, r, "can't make the profile: %s", strerror(-r));
	}
	recorder_free(rec);
	pthread_mutex_unlock(&running);
	return r;
}
