/* sampler.h - the BPF object and its perf events: from options to drained samples.
 *
 *	struct sampler *s;
 *	r = sampler_open(&options, &s, &e);		// load and verify; nothing runs yet
 *	r = sampler_start(s, &e);			// one perf event per online CPU
 *	for (;;) {					// poll(sampler_fd(s)), a timer, ...
 *		r = sampler_events(s, &handler);	// files met -> handler.file, at once
 *		r = sampler_drain(s, &handler);		// flip halves, each sample -> handler.sample
 *		r = sampler_refresh_cpus(s, &e);	// CPUs that came online
 *	}
 *	sampler_stop(s);				// then one more drain gets the rest
 *	sampler_free(s);
 *
 * Accounting: sampler_counters() is exact once the sampler is stopped and drained; while it runs,
 * counters and samples differ by what lies in the windows.
 * Threads: one.
 */
#ifndef WICK_SAMPLER_H
#define WICK_SAMPLER_H

#include "base/base.h"
#include "kernel/event.h"
#include "wick_file.h"

struct sampler;

struct sampler_options {
	const struct event *event;	/* what to sample by */
	uint32_t freq;			/* samples per second and CPU */
	bool by_pid, by_tid;		/* only targets given to sampler_add_target */
	bool keep_tid;			/* tell threads apart by id */
	bool keep_idle;			/* the idle loop is a sample too */
	bool no_rows;			/* nobody compiles unwind rows: frame pointers only */
	bool announce_cgroups;		/* handler.cgroup gets each cgroup that is made */
	bool keep_exe;			/* samples name their executable and user (wk_sample.exe, .uid) */
	bool skip;			/* sampler_skip_cgroup and sampler_skip_process will be used */
	bool ground_truth;		/* tests: handler.capture also gets every stack walked, see
					 * wick_abi.h, copied stacks */
	uint64_t cgroup_id;		/* only this cgroup and below; 0: all */
	const char *cgroup_controller;	/* v1 controller whose hierarchy counts; NULL: cgroup v2 */
	uint64_t window_bytes;		/* of a CPU's region in one half; 0: by frequency */
	uint32_t max_files;		/* files known at a time; 0: SAMPLER_FILES_DEFAULT */
	struct wk_marks marks;		/* from kallsyms; may also be set later */
};

enum {
	SAMPLER_FILES_DEFAULT = 4096,
	SAMPLER_FILES_MAX = 1 << 20,
	SAMPLER_WINDOW_MIN = 64 << 10,	/* smaller ones could not hold one deep stack */
	SAMPLER_WINDOW_MAX = 4 << 20,	/* the kernel's limit for an array value on 5.10 */
	SAMPLER_SKIP_CGROUPS = 8192,	/* 0.6 MiB */
	SAMPLER_SKIP_PROCESSES = 8192,	/* 1 MiB */
};

/* What the caller does with what arrives. ctx is passed through; all pointers are borrowed for the
 * call. A non-zero result ends the drain and is returned. */
struct sampler_handler {
	void *ctx;
	int (*file)(void *ctx, const struct wk_file_event *event);
	/* A cgroup was made (announce_cgroups; else may be NULL). */
	int (*cgroup)(void *ctx, const struct wk_cgroup_event *event);
	/* A stack that userspace has to walk on (replay.h); size bytes of it are there. */
	int (*capture)(void *ctx, const struct wk_capture *capture, size_t size);
	/* Frames leaf first; a user stack whose middle was cut has a WK_CUT mark there, and one that
	 * didn't reach its root ends with the mark of its reason. */
	int (*sample)(void *ctx, const struct wk_sample *sample, const uint64_t *user,
		      size_t nuser, const uint64_t *kernel, size_t nkernel);
};

/* Loads the object. -EPERM, -EACCES (privileges: host_explain() has the sentence), -ENOTSUP (this
 * kernel can't), -ENOMEM; e says what to do. */
int must_check sampler_open(const struct sampler_options *o, struct sampler **ret, struct err *e);
void sampler_free(struct sampler *s);

/* A process (by_pid) or thread (by_tid) id of our pid namespace to sample; before or after the
 * start. inherit: what it forks too; after_exec: only once it has executed a program.
 * -E2BIG at 32,768 targets. */
int must_check sampler_add_target(struct sampler *s, uint32_t id, bool inherit, bool after_exec);

/* Whether samples of a cgroup (not of those below it), or of a process under one thread name, are left
 * out: decided before a stack is walked, counted as WK_UNSELECTED. In force for the ticks that begin
 * after the return. Any thread, also while another one drains. 0, also when nothing changes;
 * -E2BIG at SAMPLER_SKIP_CGROUPS or SAMPLER_SKIP_PROCESSES of them, or without sampler_options.skip. */
int must_check sampler_skip_cgroup(struct sampler *s, uint64_t id, bool skip);
int must_check sampler_skip_process(struct sampler *s, const struct wk_process_key *key, bool skip);

/* Where interrupt code lies, if the options didn't have it. Before the start. */
void sampler_set_marks(struct sampler *s, const struct wk_marks *marks);

/* Opens and enables the events. Also attaches the fork and exit programs when there are targets. */
int must_check sampler_start(struct sampler *s, struct err *e);
/* Follows CPUs that went on- or offline since the last call; cheap enough for once a second. */
int must_check sampler_refresh_cpus(struct sampler *s, struct err *e);
/* Another frequency from now on, by new events: a tick's weight is its own event's period, so values
 * stay right across the change. The windows keep the size that the first frequency gave them. */
int must_check sampler_set_frequency(struct sampler *s, uint32_t freq, struct err *e);
void sampler_stop(struct sampler *s);	/* closes the events; in-flight ticks end first */

int sampler_fd(const struct sampler *s);	/* readable when sampler_events() has work */
/* Handles announcements. *ret_pressure: a region is half full, drain now. */
int must_check sampler_events(struct sampler *s, const struct sampler_handler *h, bool *ret_pressure);
/* Hands over the samples until now, after the announcements until now. */
int must_check sampler_drain(struct sampler *s, const struct sampler_handler *h);
/* Whether the half that is active now has become half full during a drain: drain again. Until
 * sampler_events() has told it. */
bool sampler_pressure(const struct sampler *s);

/* Lets BPF announce the file again at its next sight, with a new id (it could not be opened). */
void sampler_forget_file(struct sampler *s, const struct wk_file_key *key);
/* The same for a file that goes for good, if the key still has this id. Samples on their way may have the
 * id; when the caller knows of no more, it gives the id back for another file. */
void sampler_evict_file(struct sampler *s, const struct wk_file_key *key, uint32_t id);
void sampler_release_id(struct sampler *s, uint32_t id);

/* Gives BPF the unwind rows of a file (words as wick_rows.h lays them out; copied), or says that it
 * has none (words NULL): f->rows says whether it is WK_ROWS_NONE or WK_ROWS_ANON. At once in force. f->id
 * and f->table are the caller's. -ENOMEM, -E2BIG (over 4 GiB), -errno of the bpf calls. */
int must_check sampler_set_rows(struct sampler *s, const struct wk_file_key *key,
				const struct wk_file *f, const uint64_t *words, size_t n);
/* Takes the rows away again: the file's frames are walked as if they were still coming. */
void sampler_drop_rows(struct sampler *s, const struct wk_file_key *key, uint32_t id);

/* The same for code that a process has made: key has WK_DEV_GENERATED, and f->id is one that sampler_take_id()
 * gave. words NULL: no more rows, and the id is free again. */
int must_check sampler_take_id(struct sampler *s, uint32_t *ret);	/* -ENOENT: all are in use */
int must_check sampler_set_generated(struct sampler *s, const struct wk_file_key *key,
				     const struct wk_file *f, const uint64_t *words, size_t n);

/* A table that was given to BPF, as mapped memory: NULL if there is none now. Borrowed until the rows
 * are set anew or dropped, or sampler_unmap_rows(). */
const uint64_t *sampler_rows(struct sampler *s, uint32_t id, struct wk_table *ret,
			     size_t *ret_n);
/* Done with sampler_rows() for now: mapped tables count as our resident memory. */
void sampler_unmap_rows(struct sampler *s);
uint64_t sampler_rows_bytes(const struct sampler *s);	/* memory of all tables */

void sampler_counters(const struct sampler *s, uint64_t ret[WK_OUTCOME_MAX]);
uint64_t sampler_ticks_due(const struct sampler *s);	/* time x frequency, over all CPUs; clocks only */
uint64_t sampler_map_bytes(const struct sampler *s);	/* memory of all maps */
uint32_t sampler_cpus(const struct sampler *s);		/* CPUs sampled now */
const struct event *sampler_event(const struct sampler *s);	/* after a fall-back: what it became */

DEFINE_CLEANUP(sampler, struct sampler *, sampler_free)

#endif
