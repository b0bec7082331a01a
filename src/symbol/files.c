/* files.c - see files.h. The lock guards the table and the descriptors; files are opened outside of
 * it. What only the sampling thread writes, it reads without. */
#include "symbol/files.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>

#include "proc/pid.h"
#include "symbol/fileopen.h"
#include "symbol/foreign.h"

enum entry_state {
	ENTRY_HERE,		/* BPF knows it */
	ENTRY_LEAVING,		/* BPF doesn't; samples on their way may */
};

struct entry {
	struct file f;		/* first: files_get hands it out */
	enum entry_state state;
	uint64_t last_used;	/* epoch of the last sample, or of the announcement */
	uint64_t left;		/* epoch in which it was taken away from BPF */
	/* to open it again: where it was mapped, and its path within its file system */
	uint64_t vm_start, vm_end, pgoff;
	uint32_t pid, tid;
	uint64_t start_time;
	char *names;		/* as in wk_file_event.path */
	uint32_t names_len;
};

struct files {
	pthread_mutex_t lock;
	struct entry **by_id;
	size_t cap;
	uint64_t epoch;
	uint32_t max_fds;
	struct files_stats stats;
};

int files_new(uint32_t max_fds, struct files **ret)
{
	struct files *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	pthread_mutex_init(&f->lock, NULL);
	f->max_fds = max_fds;
	f->epoch = 1;
	*ret = f;
	return 0;
}

/* What is no copy of a file's code isn't missed. */
static bool is_unopened(const struct entry *e)
{
	return e->f.open_error && e->f.key.dev != WK_DEV_COPIED;
}

static void entry_free(struct entry *e)
{
	if (!e)
		return;
	if (e->f.fd >= 0)
		close(e->f.fd);
	free(e->f.path);
	free(e->names);
	free(e);
}

DEFINE_CLEANUP(entry, struct entry *, entry_free)

void files_free(struct files *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->cap; i++)
		entry_free(f->by_id[i]);
	free(f->by_id);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

static struct entry *get(const struct files *f, uint32_t id)
{
	return id < f->cap ? f->by_id[id] : NULL;
}

static uint64_t entry_bytes(const struct entry *e)
{
	return sizeof(*e) + strlen(e->f.path) + 1 + e->names_len;
}

/* ---- opening ---- */

static int remember(struct entry *e, const struct wk_file_event *event)
{
	uint32_t n = MIN(event->path_len, (uint32_t)WK_PATH_BYTES);

	e->vm_start = event->vm_start;
	e->vm_end = event->vm_end;
	e->pid = event->pid;
	e->tid = event->tid;
	e->pgoff = event->pgoff;
	e->start_time = event->start_time;
	e->names_len = n;
	e->names = malloc(n + 1);
	if (!e->names)
		return -ENOMEM;
	memcpy(e->names, event->path, n);
	return 0;
}

/* The announcement once more, as far as fileopen() needs it. */
static void recall(const struct entry *e, struct wk_file_event *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->key = e->f.key;
	ret->vm_start = e->vm_start;
	ret->vm_end = e->vm_end;
	ret->pgoff = e->pgoff;
	ret->pid = e->pid;
	ret->tid = e->tid;
	ret->path_len = e->names_len;
	memcpy(ret->path, e->names, e->names_len);
}

static int open_entry(const struct wk_file_event *event, struct entry **ret)
{
	struct entry *e cleanup(entry_cleanup) = calloc(1, sizeof(*e));
	char path[PATH_MAX];
	struct stat st;
	bool opened;
	int r;

	if (!e)
		return -ENOMEM;
	e->f.key = event->key;
	e->f.fd = fileopen(event, path, sizeof(path));
	if (e->f.fd < 0) {
		e->f.open_error = e->f.fd;
		e->f.fd = -1;
	}
	opened = e->f.fd >= 0 && !foreign_stat(e->f.fd, &st);
	e->f.deleted = fileopen_deleted(event, opened ? &st : NULL, path);
	e->f.on_host = !e->f.deleted && fileopen_on_host(&event->key, opened ? &st : NULL, path);
	e->f.path = strdup(path[0] ? path : "[unknown]");
	r = e->f.path ? remember(e, event) : -ENOMEM;
	if (!r)
		*ret = take(e);
	return r;
}

/* The open file to close for another: not used for longest, first among those whose path leads to
 * them still. The lock is held. */
static struct entry *least_needed(const struct files *f)
{
	struct entry *best = NULL;

	for (size_t i = 0; i < f->cap; i++) {
		struct entry *e = f->by_id[i];

		if (!e || e->f.fd < 0)
			continue;
		if (!best || (e->f.on_host && !best->f.on_host) ||
		    (e->f.on_host == best->f.on_host && e->last_used < best->last_used))
			best = e;
	}
	return best;
}

static void close_fd(struct files *f, struct entry *e)
{
	close(e->f.fd);
	e->f.fd = -1;
	f->stats.fds--;
}

static void make_room(struct files *f)
{
	while (f->stats.fds >= MAX(f->max_fds, 1u)) {
		close_fd(f, least_needed(f));
		f->stats.closed++;
	}
}

/* ---- the table ---- */

/* The lock is held. */
static void remove_entry(struct files *f, uint32_t id)
{
	struct entry *e = get(f, id);

	if (!e)
		return;
	f->stats.known--;
	f->stats.fds -= e->f.fd >= 0;
	f->stats.unopened -= is_unopened(e);
	f->stats.bytes -= entry_bytes(e);
	f->by_id[id] = NULL;
	entry_free(e);
}

int files_announce(struct files *f, const struct wk_file_event *event, const struct file **ret)
{
	struct entry *e = NULL;
	size_t old;
	int r;

	if (event->id < WK_FILE_FIRST || event->id > WK_FILE_ID_MAX)
		return -EINVAL;
	r = open_entry(event, &e);
	if (r)
		return r;
	pthread_mutex_lock(&f->lock);
	old = f->cap;
	r = array_grow(&f->by_id, &f->cap, (size_t)event->id + 1, sizeof(*f->by_id));
	if (!r) {
		memset(f->by_id + old, 0, (f->cap - old) * sizeof(*f->by_id));
		remove_entry(f, event->id);	/* given back because the ring was full */
		if (e->f.fd >= 0)
			make_room(f);
		e->last_used = f->epoch;
		f->by_id[event->id] = e;
		f->stats.known++;
		f->stats.fds += e->f.fd >= 0;
		f->stats.unopened += is_unopened(e);
		f->stats.bytes += entry_bytes(e);
	}
	pthread_mutex_unlock(&f->lock);
	if (r) {
		entry_free(e);
		return r;
	}
	*ret = &e->f;
	return 0;
}

void files_touch(struct files *f, uint32_t id)
{
	struct entry *e = get(f, id);

	if (e)
		e->last_used = f->epoch;
}

static void leave(struct files *f, struct entry *e)
{
	e->state = ENTRY_LEAVING;
	e->left = f->epoch;
}

void files_forgotten(struct files *f, uint32_t id)
{
	struct entry *e = get(f, id);

	if (e)
		leave(f, e);
}

uint64_t files_next_epoch(struct files *f)
{
	return f->epoch++;
}

uint64_t files_epoch(const struct files *f)
{
	return f->epoch;
}

/* BPF may have been storing a frame while the file was taken away: that is drained in the epoch of the
 * leave or in the next one. */
static bool is_unreferenced(const struct entry *e, uint64_t before)
{
	return e->state == ENTRY_LEAVING && e->last_used < before && e->left + 1 < before;
}

uint32_t files_evict(struct files *f, uint64_t before, const struct files_evictor *how)
{
	uint32_t released = 0;

	for (size_t id = WK_FILE_FIRST; id < f->cap; id++) {
		struct entry *e = f->by_id[id];

		if (!e || e->last_used >= before)
			continue;
		if (is_unreferenced(e, before)) {
			pthread_mutex_lock(&f->lock);
			remove_entry(f, (uint32_t)id);
			f->stats.evicted++;
			pthread_mutex_unlock(&f->lock);
			how->release(how->ctx, (uint32_t)id);
			released++;
		} else if (e->state == ENTRY_HERE &&
			   how->leave(how->ctx, (uint32_t)id, &e->f.key)) {
			leave(f, e);
		}
	}
	return released;
}

void files_close_idle(struct files *f, uint64_t before)
{
	pthread_mutex_lock(&f->lock);
	for (size_t id = WK_FILE_FIRST; id < f->cap; id++) {
		struct entry *e = f->by_id[id];

		if (e && e->f.fd >= 0 && e->last_used < before)
			close_fd(f, e);
	}
	pthread_mutex_unlock(&f->lock);
}

/* ---- for any thread ---- */

const struct file *files_get(const struct files *f, uint32_t id)
{
	pthread_mutex_t *lock = (pthread_mutex_t *)&f->lock;	/* guards, and isn't part of, the value */
	const struct entry *e;

	pthread_mutex_lock(lock);
	e = get(f, id);
	pthread_mutex_unlock(lock);
	return e ? &e->f : NULL;
}

int files_hold(struct files *f, uint32_t id)
{
	struct wk_file_event event;
	char path[PATH_MAX];
	struct entry *e;
	int r = 0;

	pthread_mutex_lock(&f->lock);
	e = get(f, id);
	if (!e) {
		r = -ENOENT;
	} else if (e->f.open_error) {
		r = e->f.open_error;
	} else if (e->f.fd >= 0) {
		r = fcntl(e->f.fd, F_DUPFD_CLOEXEC, 3);
		r = r < 0 ? -errno : r;
	} else {
		recall(e, &event);
	}
	pthread_mutex_unlock(&f->lock);
	return r ? r : fileopen(&event, path, sizeof(path));
}

int files_open(struct files *f, uint32_t id)
{
	cleanup(fd_cleanup) int held = files_hold(f, id);
	int fd = held;

	if (held < 0)
		return held;
	if (foreign_is_name(held))
		return foreign_readable(held);
	held = -1;
	return fd;
}

int files_process(struct files *f, uint32_t id)
{
	uint64_t start_time = 0;
	uint32_t pid = 0;
	struct entry *e;

	pthread_mutex_lock(&f->lock);
	e = get(f, id);
	if (e) {
		pid = e->pid;
		start_time = e->start_time;
	}
	pthread_mutex_unlock(&f->lock);
	if (!e)
		return -ENOENT;
	return pid ? pid_open(pid, start_time) : -ESRCH;
}

struct files_stats files_stats(const struct files *f)
{
	pthread_mutex_t *lock = (pthread_mutex_t *)&f->lock;
	struct files_stats s;

	pthread_mutex_lock(lock);
	s = f->stats;
	s.bytes += f->cap * sizeof(*f->by_id);
	pthread_mutex_unlock(lock);
	return s;
}

uint32_t files_count(const struct files *f)
{
	return files_stats(f).known;
}

uint32_t files_unopened(const struct files *f)
{
	return files_stats(f).unopened;
}
