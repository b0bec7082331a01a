/* loop.c - the agent's own thread: windows, sessions, frequency and budget. */
#include "agent/state.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/sysinfo.h>

#include "base/clock.h"
#include "agent/log.h"

enum {
	KEEP = 40, KEEP_CROWDED = 2,	/* windows that a file outlives its last sample */
	CLOCK_JUMP_NS = 1000000000,	/* the wall clock was set */
};

/* ---- frequency ---- */

int loop_set_frequency(struct agent *a, struct err *e)
{
	return sampler_set_frequency(a->rec->sampler,
				     MAX(a->budget.freq, sessions_freq(a->sessions)), e);
}

struct budget_limits loop_limits(const struct agent_options *o)
{
	double cpu = o->cpu_budget ? o->cpu_budget / 1000.0 : get_nprocs() / 100.0;

	return (struct budget_limits){ .freq = o->freq, .cpu = cpu, .memory = o->memory_budget };
}

static uint64_t own_cpu_ns(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000 +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

/* Once a window: what the last one cost, and what follows from it. */
static int keep_budget(struct agent *a, struct err *e)
{
	uint64_t cpu = own_cpu_ns(), now = clock_monotonic();
	struct budget_use use = {
		.cpu_ns = cpu - a->cpu_ns,
		.wall_ns = now - a->step_ns,
		.memory = agent_resident_bytes() + sampler_map_bytes(a->rec->sampler) +
			  sampler_rows_bytes(a->rec->sampler),
	};
	uint32_t before = a->budget.freq;
	unsigned int what = budget_step(&a->budget, &use);

	a->cpu_ns = cpu;
	a->step_ns = now;
	pthread_mutex_lock(&a->lock);
	a->figures.use = use;
	a->trim = what & BUDGET_TRIM;
	pthread_mutex_unlock(&a->lock);
	if (!(what & BUDGET_FREQ))
		return 0;
	log_warning("sampling at %u Hz instead of %u: the last window took %.2f %% of a CPU (budget "
		    "%.2f %%) and %llu MiB (budget %llu MiB)", a->budget.freq, before,
		    100.0 * (double)use.cpu_ns / (double)MAX(use.wall_ns, 1u),
		    100.0 * a->budget.limits.cpu, (unsigned long long)(use.memory >> 20),
		    (unsigned long long)(a->budget.limits.memory >> 20));
	return loop_set_frequency(a, e);
}

/* ---- what has changed for whoever reads the journal ---- */

static void report_sink(struct sink_seen *seen, const struct sink_stats *st)
{
	bool failing = st->backoff_ns > 0;

	if (failing && !seen->failing)
		log_warning("%s: %s; profiles wait (%llu queued, %llu on disk)", st->name,
			    st->last_error, (unsigned long long)st->queued,
			    (unsigned long long)st->spooled);
	else if (!failing && seen->failing)
		log_info("%s: takes profiles again", st->name);
	if (st->refused > seen->refused)
		log_warning("%s: refused %llu profiles: %s", st->name,
			    (unsigned long long)(st->refused - seen->refused), st->last_error);
	seen->failing = failing;
	seen->refused = st->refused;
}

static void report_sinks(struct agent *a)
{
	size_t n = a->delivery ? delivery_sinks(a->delivery) : 0;
	struct sink_seen *seen = n == a->seen_n ? a->seen : calloc(n + 1, sizeof(*seen));

	if (!seen)
		return;
	if (seen != a->seen)
		free(a->seen);
	a->seen = seen;
	a->seen_n = n;
	for (size_t i = 0; i < n; i++) {
		struct sink_stats st;

		delivery_stats(a->delivery, i, &st);
		report_sink(&seen[i], &st);
	}
}

static void report_kubernetes(struct agent *a)
{
	struct workloads_stats st;

	workloads_stats(a->workloads, &st);
	if (*st.kube.error && !a->kube_failing)
		log_warning("kubernetes: %s", st.kube.error);
	else if (!*st.kube.error && a->kube_failing)
		log_info("kubernetes: the pods of this node are known again");
	a->kube_failing = *st.kube.error;
}

/* An announcement that was lost leaves cgroups that nobody has heard of. */
static void look_for_cgroups(struct agent *a)
{
	uint64_t unseen = a->rec->counters[WK_NOTE_CGROUP_UNSEEN];

	if (unseen != a->cgroups_unseen && workloads_start(a->workloads))
		log_warning("can't read the cgroups of this machine");
	a->cgroups_unseen = unseen;
}

/* ---- windows ---- */

/* Files that nobody has run for a while go, and their ids come back: at once those of programs that
 * exist for seconds when the table fills up. */
static void evict_files(struct agent *a)
{
	uint64_t epoch = files_epoch(a->rec->files), before;
	uint64_t keep = files_count(a->rec->files) > a->o->max_files / 4 * 3 ? KEEP_CROWDED : KEEP;

	if (epoch <= keep)
		return;
	before = MIN(epoch - keep, builder_stats(a->builder).oldest_epoch);
	before = MIN(before, sessions_oldest_epoch(a->sessions));
	recorder_evict(a->rec, before);
	files_close_idle(a->rec->files, before);
}

static void open_window(struct agent *a, int64_t start)
{
	int64_t length = (int64_t)a->o->window_ns, now = agent_wall_ns();

	a->window_start = start;
	a->window_end_wall = (start / length + 1) * length;
	a->window_end = clock_monotonic() + (uint64_t)MAX(a->window_end_wall - now, (int64_t)0);
}

/* Ends the window at `end` (wall clock) and hands it to the builder. */
static void close_window(struct agent *a, int64_t end)
{
	struct window w = {
		.samples = recorder_take(a->rec),
		.time_nanos = a->window_start,
		.duration_nanos = MAX(end - a->window_start, (int64_t)1),
		.freq = a->budget.freq,
	};

	pthread_mutex_lock(&a->lock);
	a->figures.windows++;
	a->figures.samples += w.samples.count;
	pthread_mutex_unlock(&a->lock);
	builder_put(a->builder, &w);
}

void loop_start(struct agent *a)
{
	a->cpu_ns = own_cpu_ns();
	a->step_ns = clock_monotonic();
	open_window(a, agent_wall_ns());
}

void loop_last_window(struct agent *a)
{
	close_window(a, MIN(agent_wall_ns(), a->window_end_wall));
}

/* Where the window that is open ends: as planned; or, if we come late by whole windows, at the last
 * multiple that is over; or, if the clock was set meanwhile, now. */
static int64_t window_ends(struct agent *a, int64_t *ret_next)
{
	int64_t length = (int64_t)a->window_ns, now = agent_wall_ns();
	int64_t expected = a->window_end_wall + (int64_t)(clock_monotonic() - a->window_end);

	if (now < expected - CLOCK_JUMP_NS || now > expected + CLOCK_JUMP_NS) {
		log_info("the clock was set: windows start anew");
		*ret_next = now;
		return MAX(now, a->window_start + 1);
	}
	return *ret_next = MAX(now / length * length, a->window_end_wall);
}

static int turn_window(struct agent *a, struct err *e)
{
	int64_t next, end;
	int r;

	r = recorder_drain(a->rec, e);
	if (r)
		return r;
	end = window_ends(a, &next);
	close_window(a, end);
	open_window(a, next);
	evict_files(a);
	look_for_cgroups(a);
	workloads_refresh(a->workloads);
	report_sinks(a);
	report_kubernetes(a);
	return keep_budget(a, e);
}

/* ---- the loop ---- */

/* 1: asked to stop. */
static int take_signals(struct agent *a)
{
	struct signalfd_siginfo si;
	int stop = 0;

	while (read(a->signals, &si, sizeof(si)) == sizeof(si)) {
		if (si.ssi_signo == SIGHUP)
			reload(a);
		else
			stop = 1;
	}
	return stop;
}

static int turn_sessions(struct agent *a, struct err *e)
{
	int r;

	if (!sessions_poll(a->sessions, clock_monotonic()))
		return loop_set_frequency(a, e);	/* one may have gone early */
	r = recorder_drain(a->rec, e);
	if (!r)
		r = loop_set_frequency(a, e);
	if (r)
		return r;
	sessions_turn(a->sessions, clock_monotonic(), agent_wall_ns(),
		      MAX(a->budget.freq, sessions_freq(a->sessions)), files_epoch(a->rec->files));
	return loop_set_frequency(a, e);
}

int loop_run(struct agent *a, struct err *e)
{
	for (;;) {
		uint64_t until = MIN(a->window_end, sessions_next(a->sessions));
		bool ready;
		int r = recorder_wait(a->rec, a->epoll, until, &ready, e);

		if (!r && ready && take_signals(a))
			return 0;
		if (!r)
			r = turn_sessions(a, e);
		if (!r && clock_monotonic() >= a->window_end)
			r = turn_window(a, e);
		if (r)
			return r;
		agent_refresh_figures(a);
	}
}

