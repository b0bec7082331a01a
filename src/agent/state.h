/* state.h - the parts of a running agent, for the files that make it up: agent.c (start and end),
 * loop.c, reload.c, serve.c (the HTTP side's questions) and metrics.c.
 *
 * Threads: the loop's own are marked so; figures are copied for the others under `lock`, once a drain.
 * Everything else here is made before the threads start and locks by itself.
 */
#ifndef WICK_AGENT_STATE_H
#define WICK_AGENT_STATE_H

#include <pthread.h>

#include "agent/budget.h"
#include "agent/builder.h"
#include "agent/options.h"
#include "agent/session.h"
#include "collect/recorder.h"
#include "http/httpd.h"
#include "net/delivery.h"
#include "symbol/debuginfod.h"
#include "symbol/kallsyms.h"
#include "workload/workload.h"

struct agent_figures {		/* of the loop, as of the last drain */
	uint64_t counters[WK_OUTCOME_MAX];
	uint64_t ticks_due;
	uint32_t cpus, freq;
	uint64_t map_bytes, rows_bytes;
	struct unwinder_stats unwinder;
	uint32_t files, files_unopened;
	struct budget budget;
	struct budget_use use;		/* of the last window */
	uint64_t windows, samples;	/* closed; samples in them */
	uint64_t queued_samples;	/* of profiles that delivery has taken */
	uint64_t delivery_failed;	/* samples of profiles that delivery could not take */
	uint64_t labels_left_out;	/* of options.labels, where a series had no room for them */
	uint64_t reloads, reload_failures;
	int64_t started;		/* wall clock, ns */
};

struct sink_seen {
	bool failing;
	uint64_t refused;
};

struct agent {
	const struct agent_options *o;		/* the loop's: changes at SIGHUP */
	const struct agent_options *first;	/* what can't change is here for everybody */
	const struct agent_reread *reread;
	const struct event *event;
	uint64_t window_ns;

	struct kallsyms *kallsyms;		/* the builder's, under its lock */
	uint64_t kallsyms_read;			/* when, CLOCK_MONOTONIC ns */
	struct debuginfod *servers;		/* NULL: not wanted */
	struct vmlinux *vmlinux;		/* likewise */
	struct recorder *rec;			/* the loop's */
	struct budget budget;			/* the loop's */
	struct builder *builder;
	struct sessions *sessions;
	pthread_rwlock_t delivery_lock;		/* of the pointer: SIGHUP may bring other sinks */
	struct delivery *delivery;		/* NULL: nobody to deliver to */
	struct workloads *workloads;
	struct httpd *httpd;
	struct sampler_options sampler_options;	/* for probes */

	pthread_mutex_t lock;
	struct labels extra;			/* options.labels and node, under `lock` */
	struct agent_figures figures;		/* under `lock` */
	struct symbolizer_stats symbols;	/* under `lock`, as of the last window */
	struct lines_stats lines;		/* likewise */
	bool trim;				/* under `lock`: the builder should trim its caches */

	/* the loop's */
	struct sink_seen *seen;			/* of each sink, at the last look */
	size_t seen_n;
	bool kube_failing;
	uint64_t cgroups_unseen;	/* WK_NOTE_CGROUP_UNSEEN when the cgroups were last read */
	int signals, epoll;
	int64_t window_start;			/* wall clock, ns */
	uint64_t window_end;			/* CLOCK_MONOTONIC, ns */
	int64_t window_end_wall;
	uint64_t cpu_ns, step_ns;		/* at the last budget step */
};

/* ---- agent.c ---- */

/* A copy. */
struct agent_figures agent_figures(struct agent *a);
/* Takes the loop's figures over for the others. */
void agent_refresh_figures(struct agent *a);
int64_t agent_wall_ns(void);		/* now */
uint64_t agent_resident_bytes(void);

/* ---- loop.c: the agent's own thread ---- */

struct budget_limits loop_limits(const struct agent_options *o);
/* What is wanted now: by the budget and by whoever waits for a profile. */
int must_check loop_set_frequency(struct agent *a, struct err *e);
/* Begins the first window now. */
void loop_start(struct agent *a);
/* Until a signal asks for the end: 0. */
int must_check loop_run(struct agent *a, struct err *e);
/* Ends the window that is open, at the latest at its planned end, with what has been drained. */
void loop_last_window(struct agent *a);

/* ---- reload.c: what may change meanwhile ---- */

int must_check reload_parse_labels(const struct agent_options *o, struct labels *ret);
int must_check reload_rules(struct agent *a, const struct agent_options *o);
/* *ret is NULL if there is nobody to deliver to. */
int must_check reload_make_delivery(const struct agent_options *o, struct delivery **ret,
				    struct err *e);
/* SIGHUP: reads the configuration again and takes it over, or says why not. */
void reload(struct agent *a);

/* ---- the others ---- */

/* serve.c: what httpd asks; ctx is the struct agent. */
struct httpd_handler serve_handler(struct agent *a);
/* metrics.c: all of /metrics. */
void metrics_write(struct agent *a, struct buf *b);

/* The labels of a sample's series, as a series_labels does; key->exe is one of these files. */
int must_check agent_labels(struct agent *a, const struct files *files,
			    const struct samples_key *key, struct labels *ret);

#endif
