/* recorder.h - sample for a while and keep what comes: sampler, files and samples as one.
 *
 *	r = recorder_new(&sampler_options, &(struct recorder_options){ 0 }, &rec, &e);	// BPF loaded
 *	r = recorder_start(rec, &e);
 *	while (!done)
 *		r = recorder_wait(rec, fd, timeout_ms, &e);	// opens files, drains when it must
 *	r = recorder_finish(rec, &e);			// stop and drain the rest
 *	... rec->samples, rec->files, counters ...
 *
 * Drains once a second or every rec->drain_ns (so that an interrupted recording has nearly everything), sooner at
 * first (so that what only samples tell of processes, such as that their code keeps no frame pointers, is soon
 * known), and whenever a region is half full. Opens announced files at once.
 */
#ifndef WICK_RECORDER_H
#define WICK_RECORDER_H

#include "collect/samples.h"
#include "collect/unwinder.h"
#include "kernel/sampler.h"
#include "symbol/files.h"
#include "symbol/process.h"

/* Sees every sample beside rec->samples. A non-zero result ends the drain and is returned. */
typedef int recorder_tap(void *ctx, const struct wk_sample *sample, const uint64_t *user,
			 size_t nuser, const uint64_t *kernel, size_t nkernel);

struct recorder {
	struct sampler *sampler;
	struct files *files;
	struct samples samples;
	struct unwinder *unwinder;
	struct processes *processes;	/* for symbolizer_options */
	int64_t time_nanos;		/* wall clock at the start */
	int64_t duration_nanos;		/* monotonic, set by recorder_finish */
	uint64_t counters[WK_OUTCOME_MAX];	/* as of the last drain */
	uint64_t ticks_due;
	uint32_t cpus;			/* sampled at the start */
	/* set these three after recorder_new, or leave them zero */
	recorder_tap *tap;
	int (*cgroup)(void *tap_ctx, const struct wk_cgroup_event *e);	/* as sampler_handler's */
	void *tap_ctx;
	uint64_t drain_ns;		/* between drains; RECORDER_DRAIN_NS unless changed */
	/* private */
	uint64_t started, next_drain;	/* monotonic ns */
	uint64_t pace;			/* to the drain after the next */
	uint64_t *frames;		/* of the stack at hand */
	size_t frames_cap;
};

enum {
	RECORDER_DRAIN_NS = 1000000000,
	RECORDER_FIRST_NS = 100000000,	/* to the first drain; doubles from one to the next */
	/* at most, for what runtimes say of their code: after each drain; at the end */
	RECORDER_NAMES_NS = 50000000,
	RECORDER_FINISH_NS = 2000000000,
};

struct recorder_options {	/* zero: the defaults */
	uint64_t rows_bytes;		/* limit on unwind tables */
	uint64_t copied_bytes;		/* and on copied stacks that wait for them */
	struct processes_options processes;
};

int must_check recorder_new(const struct sampler_options *o, const struct recorder_options *ro,
			    struct recorder **ret, struct err *e);
void recorder_free(struct recorder *r);
DEFINE_CLEANUP(recorder, struct recorder *, recorder_free)

int must_check recorder_start(struct recorder *r, struct err *e);
/* Waits until fd (or -1) is readable or until `until` (monotonic ns; 0: for ever), working meanwhile;
 * returns at least once per drain, for whoever shows progress. *ret_ready: fd is readable. */
int must_check recorder_wait(struct recorder *r, int fd, uint64_t until, bool *ret_ready,
			     struct err *e);
/* Drains now: what was sampled until here is in rec->samples. Stacks whose unwind rows are still being
 * compiled come later. */
int must_check recorder_drain(struct recorder *r, struct err *e);
int must_check recorder_finish(struct recorder *r, struct err *e);
/* Moves the samples out; the recorder starts over with none. The caller owns them. Their epoch ends. */
struct samples recorder_take(struct recorder *r);
/* Forgets files, and code of processes, that were last sampled before an epoch, here and in BPF; the
 * files' ids come back. No samples of an earlier epoch may be waiting to become a profile. Returns the
 * number of ids that came back. Once a window is often enough. */
uint32_t recorder_evict(struct recorder *r, uint64_t before);

uint64_t recorder_lost(const struct recorder *r);	/* sum of the losses */

#endif
