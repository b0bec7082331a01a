/* recorder.c - see recorder.h. */
#include "collect/recorder.h"

#include <poll.h>
#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"

enum {
	SPARE_FDS = 128,	/* for everything but sampled files */
};

/* How many files we may hold open: the hard limit is ours to use. Processes' own lists of their code
 * get an eighth of it at most. */
static uint32_t descriptors(const struct processes_options *po)
{
	uint32_t processes = po->max_processes ? po->max_processes : PROCESSES_DEFAULT;
	struct rlimit l;
	rlim_t spare;

	if (getrlimit(RLIMIT_NOFILE, &l))
		return 512;
	l.rlim_cur = l.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &l);
	(void)getrlimit(RLIMIT_NOFILE, &l);
	/* a sampled file has one, its table another */
	spare = SPARE_FDS + MIN((rlim_t)processes, l.rlim_cur / 8);
	return l.rlim_cur > 2 * spare ? (uint32_t)MIN((l.rlim_cur - spare) / 2, 1u << 20) :
					(uint32_t)l.rlim_cur / 4;
}

int recorder_new(const struct sampler_options *o, const struct recorder_options *ro,
		 struct recorder **ret, struct err *e)
{
	cleanup(recorder_cleanup) struct recorder *rec = calloc(1, sizeof(*rec));
	int r;

	if (!rec)
		return err_set(e, -ENOMEM, "out of memory");
	rec->samples = (struct samples)SAMPLES_INIT;
	rec->drain_ns = RECORDER_DRAIN_NS;
	r = files_new(descriptors(&ro->processes), &rec->files);
	if (!r)
		r = processes_new(&ro->processes, &rec->processes);
	if (r)
		return err_set(e, r, "out of memory");
	r = sampler_open(o, &rec->sampler, e);
	if (r)
		return r;
	r = unwinder_new(rec->sampler, rec->files, ro->rows_bytes, ro->copied_bytes, &rec->unwinder);
	if (r)
		return err_set(e, r, "can't start the thread that compiles unwind tables: %s",
			       strerror(-r));
	*ret = take(rec);
	return 0;
}

void recorder_free(struct recorder *rec)
{
	if (!rec)
		return;
	unwinder_free(rec->unwinder);
	sampler_free(rec->sampler);
	files_free(rec->files);
	processes_free(rec->processes);
	free(rec->frames);
	samples_free(&rec->samples);
	free(rec);
}

static int on_file(void *ctx, const struct wk_file_event *event)
{
	struct recorder *rec = ctx;
	const struct file *f;
	int r = files_announce(rec->files, event, &f);

	/* Perhaps the next process that runs it lives long enough, or nobody holds us up. What may be a copy is of
	 * this one only. */
	if (!r && f->open_error && f->open_error != -EMFILE && f->open_error != -ETIMEDOUT &&
	    event->key.dev != WK_DEV_COPIED) {
		sampler_forget_file(rec->sampler, &event->key);
		files_forgotten(rec->files, event->id);
	}
	return r ? r : unwinder_file(rec->unwinder, event->id);
}

static int on_cgroup(void *ctx, const struct wk_cgroup_event *event)
{
	struct recorder *rec = ctx;

	return rec->cgroup ? rec->cgroup(rec->tap_ctx, event) : 0;
}

static int on_capture(void *ctx, const struct wk_capture *c, size_t size)
{
	struct recorder *rec = ctx;

	return unwinder_capture(rec->unwinder, c, size);
}

static void touch(void *ctx, uint64_t frame)
{
	struct recorder *rec = ctx;

	if (!WK_FRAME_IS_KERNEL(frame) && WK_FRAME_TAG(frame) == WK_FRAME_FILE)
		files_touch(rec->files, WK_FRAME_FILE_ID(frame));
}

static bool is_raw(uint64_t frame)
{
	return !WK_FRAME_IS_KERNEL(frame) && WK_FRAME_TAG(frame) == WK_FRAME_RAW;
}

/* Exchanges raw addresses for words that mean the same everywhere. *user becomes a copy if there are
 * any, borrowed until the next call. */
static int know_code(struct recorder *rec, const struct wk_sample *sample, const uint64_t **user,
		     size_t n)
{
	struct process_key key = {
		.start_time = sample->start_time,
		.exec_id = sample->exec_id,
		.pid = sample->pid,
	};
	size_t first = 0;
	int r;

	while (first < n && !is_raw((*user)[first]))
		first++;
	if (first == n)
		return 0;
	r = array_grow(&rec->frames, &rec->frames_cap, n, sizeof(*rec->frames));
	if (r)
		return r;
	memcpy(rec->frames, *user, n * sizeof(**user));
	for (size_t i = first; i < n && !r; i++)
		if (is_raw((*user)[i]))
			r = processes_frame(rec->processes, &key, (*user)[i], &rec->frames[i]);
	*user = rec->frames;
	return r;
}

static int on_sample(void *ctx, const struct wk_sample *sample, const uint64_t *user, size_t nuser,
		     const uint64_t *kernel, size_t nkernel)
{
	struct recorder *rec = ctx;
	int r = know_code(rec, sample, &user, nuser);

	if (r)
		return r;
	for (size_t i = 0; i < nuser; i++) {
		unwinder_used(rec->unwinder, user[i], sample->count);
		touch(rec, user[i]);
	}
	if (sample->exe)
		files_touch(rec->files, sample->exe);
	if (rec->tap)
		r = rec->tap(rec->tap_ctx, sample, user, nuser, kernel, nkernel);
	return r ? r : samples_add(&rec->samples, sample, user, nuser, kernel, nkernel);
}

static struct sampler_handler handler(struct recorder *rec)
{
	return (struct sampler_handler){
		.ctx = rec, .file = on_file, .cgroup = on_cgroup, .capture = on_capture,
		.sample = on_sample,
	};
}

static int on_rows(void *ctx, const struct process_key *p, const struct unwtab *table)
{
	struct recorder *rec = ctx;
	const struct wk_file_key key = { .ino = p->start_time, .mtime_ns = p->exec_id,
					 .dev = WK_DEV_GENERATED, .generation = p->pid };

	return unwinder_generated(rec->unwinder, &key, table);
}

/* Counters of BPF, and the outcomes of the stacks that were walked here. */
static void refresh_counters(struct recorder *rec)
{
	const struct unwinder_stats *u = unwinder_stats(rec->unwinder);

	sampler_counters(rec->sampler, rec->counters);
	for (unsigned int i = 0; i < WK_OUTCOME_MAX; i++)
		rec->counters[i] += u->outcomes[i];
}

int recorder_drain(struct recorder *rec, struct err *e)
{
	struct sampler_handler h = handler(rec);
	int r = sampler_drain(rec->sampler, &h);

	if (r)
		return err_set(e, r, "can't read the samples: %s", strerror(-r));
	rec->pace = MIN(2 * rec->pace, rec->drain_ns);
	rec->next_drain = clock_monotonic() + rec->pace;
	refresh_counters(rec);
	r = processes_refresh(rec->processes, clock_monotonic() + RECORDER_NAMES_NS);
	if (!r)
		r = processes_rows(rec->processes, clock_monotonic() + RECORDER_NAMES_NS, on_rows, rec);
	return r ? err_set(e, r, "out of memory") : 0;
}

static int events(struct recorder *rec, bool *ret_pressure, struct err *e)
{
	struct sampler_handler h = handler(rec);
	int r = sampler_events(rec->sampler, &h, ret_pressure);

	if (!r)
		r = unwinder_work(rec->unwinder, &h);
	return r ? err_set(e, r, "can't read the event ring: %s", strerror(-r)) : 0;
}

int recorder_start(struct recorder *rec, struct err *e)
{
	struct timespec t;
	int r = sampler_start(rec->sampler, e);

	if (r)
		return r;
	clock_gettime(CLOCK_REALTIME, &t);
	rec->cpus = sampler_cpus(rec->sampler);
	rec->time_nanos = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
	rec->started = clock_monotonic();
	rec->pace = MIN((uint64_t)RECORDER_FIRST_NS, rec->drain_ns);
	rec->next_drain = rec->started + rec->pace;
	return 0;
}

int recorder_wait(struct recorder *rec, int fd, uint64_t until, bool *ret_ready, struct err *e)
{
	struct pollfd p[3] = {
		{ .fd = sampler_fd(rec->sampler), .events = POLLIN },
		{ .fd = unwinder_fd(rec->unwinder), .events = POLLIN },
		{ .fd = fd, .events = POLLIN },
	};
	uint64_t now = clock_monotonic();
	uint64_t next = until ? MIN(until, rec->next_drain) : rec->next_drain;
	bool again = sampler_pressure(rec->sampler), pressure = false;
	int r = 0;

	*ret_ready = false;
	if (poll(p, ARRAY_SIZE(p), next > now && !again ? (int)((next - now + 999999) / 1000000) : 0) < 0 && errno != EINTR)
		return err_set(e, -errno, "poll: %s", strerror(errno));
	if (p[0].revents || p[1].revents || again)
		r = events(rec, &pressure, e);
	if (!r && (pressure || clock_monotonic() >= rec->next_drain)) {
		r = recorder_drain(rec, e);
		if (!r)
			r = sampler_refresh_cpus(rec->sampler, e);
	}
	*ret_ready = p[2].revents != 0;
	return r;
}

int recorder_finish(struct recorder *rec, struct err *e)
{
	struct sampler_handler h = handler(rec);
	bool pressure;
	int r;

	rec->duration_nanos = (int64_t)(clock_monotonic() - rec->started);
	sampler_stop(rec->sampler);
	rec->ticks_due = sampler_ticks_due(rec->sampler);
	r = events(rec, &pressure, e);
	if (!r)
		r = recorder_drain(rec, e);
	if (r)
		return r;
	r = unwinder_finish(rec->unwinder, &h);
	if (!r)
		r = processes_finish(rec->processes, clock_monotonic() + RECORDER_FINISH_NS);
	refresh_counters(rec);
	return r ? err_set(e, r, "can't finish the stacks: %s", strerror(-r)) : 0;
}

struct samples recorder_take(struct recorder *rec)
{
	struct samples s = rec->samples;

	rec->samples = (struct samples)SAMPLES_INIT;
	s.epoch = files_next_epoch(rec->files);
	processes_epoch(rec->processes, files_epoch(rec->files));
	return s;
}

static bool file_leave(void *ctx, uint32_t id, const struct wk_file_key *key)
{
	struct recorder *rec = ctx;

	if (!unwinder_may_forget(rec->unwinder, id))
		return false;
	sampler_evict_file(rec->sampler, key, id);
	unwinder_forget(rec->unwinder, id);
	return true;
}

static void file_release(void *ctx, uint32_t id)
{
	struct recorder *rec = ctx;

	sampler_release_id(rec->sampler, id);
}

uint32_t recorder_evict(struct recorder *rec, uint64_t before)
{
	struct files_evictor how = { .ctx = rec, .leave = file_leave, .release = file_release };

	unwinder_waiting(rec->unwinder, touch, rec);
	(void)processes_forget(rec->processes, before);	/* no memory to do so: the next time */
	return files_evict(rec->files, before, &how);
}

uint64_t recorder_lost(const struct recorder *rec)
{
	uint64_t n = 0;

	for (unsigned int i = WK_LOST_FIRST; i <= WK_LOST_LAST; i++)
		n += rec->counters[i];
	return n;
}
