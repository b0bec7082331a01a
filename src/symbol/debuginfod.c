/* debuginfod.c - see debuginfod.h. The lock is held for moments, never while a server is asked. */
#include "symbol/debuginfod.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/map.h"
#include "symbol/debugcache.h"

#define LIBRARY "libdebuginfod.so.1"
#define NICE	10

enum state { UNKNOWN, QUEUED, HERE, REFUSED };

struct key {
	unsigned char id[ELF_BUILD_ID_MAX];
	uint64_t size;
};

struct wanted {			/* a build id */
	enum state state;
	uint64_t again;		/* REFUSED: until then, CLOCK_MONOTONIC */
};

struct debuginfod {
	struct debuginfod_options o;
	char cache[PATH_MAX];
	struct debuginfod_library lib;
	pthread_mutex_t lock;
	pthread_cond_t work, idle;
	pthread_t thread;
	struct map ids;		/* -> wanted[] */
	struct wanted *wanted;
	size_t wanted_cap;
	uint32_t *queue;	/* a ring of o.queue numbers of ids */
	uint32_t first, n;
	bool busy, stop, ended, orphaned;
	struct debuginfod_stats stats;
	/* the thread's, while a server is asked */
	uint64_t deadline;
	bool late, large, given_up;
};

/* ---- the library ---- */

static int load_library(struct debuginfod_library *ret, struct err *e)
{
	static const char *const names[] = {
		"debuginfod_begin", "debuginfod_end", "debuginfod_find_debuginfo",
		"debuginfod_set_progressfn",
	};
	void **const to[] = { (void **)&ret->begin, (void **)&ret->end, (void **)&ret->find,
			      (void **)&ret->set_progress };
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);	/* stays until the end */

	if (!library)
		return err_set(e, -ENOENT, "debuginfod: %.200s; the package is libdebuginfod1 (Debian) or "
					   "elfutils-debuginfod-client (Fedora)", dlerror());
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		*to[i] = dlsym(library, names[i]);
		if (!*to[i])
			return err_set(e, -ENOENT, "debuginfod: " LIBRARY " is too old: it has no %s",
				       names[i]);
	}
	return 0;
}

int debuginfod_check_urls(struct err *e)
{
	const char *urls = getenv("DEBUGINFOD_URLS");

	if (urls && urls[strspn(urls, " ")])
		return 0;
	return err_set(e, -EINVAL, "debuginfod: DEBUGINFOD_URLS isn't set: it names the servers that are "
				   "asked, such as https://debuginfod.debian.net");
}

/* Whose request this thread makes. */
static _Thread_local struct debuginfod *asking;

/* Called by the library while it waits, at least once a second. Not 0: give up. b is the size, where the
 * server has told it; a what has arrived, or before that a small number. */
static int on_progress(void *client, long a, long b)
{
	struct debuginfod *d = asking;
	bool stop;

	(void)client;
	pthread_mutex_lock(&d->lock);
	stop = d->stop;
	pthread_mutex_unlock(&d->lock);
	d->late |= clock_monotonic() > d->deadline;
	d->large |= (a > 0 && (uint64_t)a > d->o.file_bytes) || (b > 0 && (uint64_t)b > d->o.file_bytes);
	d->given_up = stop || d->late || d->large;
	return d->given_up;
}

/* ---- the thread ---- */

static bool has_id(const struct key *k, const struct elf *e)
{
	unsigned char id[ELF_BUILD_ID_MAX];
	size_t n;

	return !elf_build_id(e, id, &n) && n == k->size && !memcmp(id, k->id, n);
}

/* What a file is that is said to be the one of a build id. */
static enum debuginfod_result judge(const struct debuginfod *d, const struct key *k, int fd)
{
	struct elf *e cleanup(elf_cleanup) = NULL;
	struct stat st;

	if (fstat(fd, &st))
		return DEBUGINFOD_FAILED;
	if ((uint64_t)st.st_size > d->o.file_bytes)
		return DEBUGINFOD_TOO_LARGE;
	return !elf_open_fd(fd, &e, NULL) && has_id(k, e) ? DEBUGINFOD_FETCHED : DEBUGINFOD_WRONG;
}

static enum debuginfod_result result_of(const struct debuginfod *d, int error)
{
	if (d->large || error == -EFBIG)
		return DEBUGINFOD_TOO_LARGE;
	if (d->late || error == -ETIME)
		return DEBUGINFOD_TIMED_OUT;
	return error == -ENOENT ? DEBUGINFOD_NOT_FOUND : DEBUGINFOD_FAILED;
}

/* Asks the servers. *ret_error says why it failed. */
static enum debuginfod_result fetch(struct debuginfod *d, void *client, const struct key *k,
				    int *ret_error, uint64_t *ret_bytes, uint64_t *ret_cache)
{
	char hex[ELF_BUILD_ID_HEX], *path cleanup(freep_cleanup) = NULL;
	int fd cleanup(fd_cleanup) = -1;
	enum debuginfod_result r;
	struct stat st;

	elf_build_id_hex(k->id, k->size, hex);
	d->deadline = clock_monotonic() + d->o.file_ns;
	d->late = d->large = d->given_up = false;
	fd = d->lib.find(client, k->id, (int)k->size, &path);
	*ret_error = fd < 0 ? fd : 0;
	r = fd < 0 ? result_of(d, fd) : judge(d, k, fd);
	if (r == DEBUGINFOD_FETCHED && !fstat(fd, &st))
		*ret_bytes = (uint64_t)st.st_size;
	else if (d->given_up || r != DEBUGINFOD_NOT_FOUND)	/* libdebuginfod would note that it isn't there */
		debugcache_drop(d->cache, hex);
	*ret_cache = debugcache_limit(d->cache, d->o.cache_bytes, hex);
	return r;
}

static void answered(struct debuginfod *d, uint32_t n, enum debuginfod_result r, int error)
{
	struct wanted *w = &d->wanted[n];
	uint64_t pause = r == DEBUGINFOD_FAILED || r == DEBUGINFOD_TIMED_OUT ? DEBUGINFOD_FAILED_NS :
									       DEBUGINFOD_AGAIN_NS;

	d->stats.results[r]++;
	w->state = r == DEBUGINFOD_FETCHED ? HERE : REFUSED;
	w->again = clock_monotonic() + pause;
	if (r == DEBUGINFOD_FAILED)
		snprintf(d->stats.error, sizeof(d->stats.error), "%s", strerror(-error));
}

static uint32_t next(struct debuginfod *d)
{
	uint32_t n = d->queue[d->first];

	d->first = (d->first + 1) % d->o.queue;
	d->n--;
	return n;
}

static void serve(struct debuginfod *d, void *client)
{
	enum debuginfod_result r = DEBUGINFOD_FAILED;
	uint32_t n = next(d);
	struct key k = *(const struct key *)map_key(&d->ids, n);
	uint64_t bytes = 0, cache = 0;
	int error = -ENOMEM;
	bool stopped;

	d->busy = true;
	pthread_mutex_unlock(&d->lock);
	if (client)
		r = fetch(d, client, &k, &error, &bytes, &cache);
	pthread_mutex_lock(&d->lock);
	d->busy = false;
	stopped = d->stop && r != DEBUGINFOD_FETCHED;	/* nobody's failure */
	if (!stopped)
		answered(d, n, r, error);
	d->stats.bytes += bytes;
	d->stats.cache_bytes = cache;
	pthread_cond_broadcast(&d->idle);
}

static void release(struct debuginfod *d)
{
	pthread_cond_destroy(&d->work);
	pthread_cond_destroy(&d->idle);
	pthread_mutex_destroy(&d->lock);
	map_free(&d->ids);
	free(d->wanted);
	free(d->queue);
	free(d);
}

static void *work(void *arg)
{
	struct debuginfod *d = asking = arg;
	void *client = d->lib.begin();
	bool orphaned;

	(void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICE);
	if (client)
		d->lib.set_progress(client, on_progress);
	pthread_mutex_lock(&d->lock);
	while (!d->stop) {
		if (d->n)
			serve(d, client);
		else
			pthread_cond_wait(&d->work, &d->lock);
	}
	pthread_mutex_unlock(&d->lock);
	if (client)
		d->lib.end(client);
	pthread_mutex_lock(&d->lock);
	d->ended = true;
	orphaned = d->orphaned;
	pthread_cond_broadcast(&d->idle);
	pthread_mutex_unlock(&d->lock);
	if (orphaned)
		release(d);
	return NULL;
}

/* ---- start and end ---- */

/* What libdebuginfod reads of our limits. */
static int set_environment(const struct debuginfod *d)
{
	char bytes[32], seconds[32];

	snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)d->o.file_bytes);
	snprintf(seconds, sizeof(seconds), "%llu", (unsigned long long)(d->o.file_ns / 1000000000 + 1));
	return setenv("DEBUGINFOD_CACHE_PATH", d->cache, 1) || setenv("DEBUGINFOD_MAXSIZE", bytes, 1) ||
			       setenv("DEBUGINFOD_MAXTIME", seconds, 1) ?
		       -ENOMEM :
		       0;
}

static void init_locks(struct debuginfod *d)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->work, &monotonic);
	pthread_cond_init(&d->idle, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

/* Without signals: they are the process's own affair, and SIGPIPE (TLS libraries) must not end it. */
static int start_thread(struct debuginfod *d)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&d->thread, NULL, work, d);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -r;
}

int debuginfod_new(const struct debuginfod_options *o, struct debuginfod **ret, struct err *e)
{
	struct debuginfod *d;
	int r = debuginfod_check_urls(e);

	if (r)
		return r;
	d = calloc(1, sizeof(*d));
	if (!d)
		return err_set(e, -ENOMEM, "out of memory");
	d->o = *o;
	d->ids = (struct map)MAP_INIT(sizeof(struct key));
	d->queue = calloc(MAX(o->queue, 1u), sizeof(*d->queue));
	init_locks(d);
	r = debugcache_directory(o->cache, d->cache, sizeof(d->cache), e);
	if (!r && o->library)
		d->lib = *o->library;
	else if (!r)
		r = load_library(&d->lib, e);
	if (!r && (!d->queue || set_environment(d)))
		r = err_set(e, -ENOMEM, "out of memory");
	if (!r)
		r = start_thread(d);
	if (r) {
		release(d);
		return r;
	}
	*ret = d;
	return 0;
}

static struct timespec timespec_of(uint64_t t)
{
	return (struct timespec){ .tv_sec = (time_t)(t / 1000000000),
				  .tv_nsec = (long)(t % 1000000000) };
}

void debuginfod_free(struct debuginfod *d)
{
	struct timespec until = timespec_of(clock_monotonic() + DEBUGINFOD_STOP_NS);
	bool ended;

	if (!d)
		return;
	pthread_mutex_lock(&d->lock);
	d->stop = true;
	pthread_cond_broadcast(&d->work);
	while (!d->ended && !pthread_cond_timedwait(&d->idle, &d->lock, &until))
		;
	ended = d->ended;
	d->orphaned = !ended;
	if (!ended)
		pthread_detach(d->thread);
	pthread_mutex_unlock(&d->lock);
	if (!ended)
		return;
	pthread_join(d->thread, NULL);
	release(d);
}

/* ---- questions ---- */

/* From the cache; the lock is held. */
static int open_cached(struct debuginfod *d, const struct key *k)
{
	char hex[ELF_BUILD_ID_HEX];
	int fd;

	elf_build_id_hex(k->id, k->size, hex);
	fd = debugcache_open(d->cache, hex);
	if (fd < 0 || judge(d, k, fd) == DEBUGINFOD_FETCHED)
		return fd;
	close(fd);
	debugcache_drop(d->cache, hex);
	return -ENOENT;
}

static int enqueue(struct debuginfod *d, uint32_t n)
{
	if (d->n == d->o.queue) {
		d->stats.results[DEBUGINFOD_QUEUE_FULL]++;
		return -EAGAIN;
	}
	d->queue[(d->first + d->n++) % d->o.queue] = n;
	d->wanted[n].state = QUEUED;
	pthread_cond_signal(&d->work);
	return -EAGAIN;
}

/* The number of an id; the lock is held. */
static int number_of(struct debuginfod *d, const struct key *k, uint32_t *ret)
{
	bool added = false;
	int r;

	if (d->ids.n >= DEBUGINFOD_IDS_MAX && !d->n && !d->busy)	/* numbers are in use meanwhile */
		map_clear(&d->ids);
	if (d->ids.n >= 2 * DEBUGINFOD_IDS_MAX)
		return -E2BIG;
	r = array_grow(&d->wanted, &d->wanted_cap, d->ids.n + 1, sizeof(*d->wanted));
	if (!r)
		r = map_put(&d->ids, k, ret, &added);
	if (!r && added)
		d->wanted[*ret] = (struct wanted){ UNKNOWN, 0 };
	return r;
}

static int ask(struct debuginfod *d, const struct key *k)
{
	struct wanted *w;
	uint32_t n;
	int fd;

	if (number_of(d, k, &n))
		return -ENOENT;
	w = &d->wanted[n];
	if (w->state == QUEUED)
		return -EAGAIN;
	if (w->state == REFUSED && clock_monotonic() < w->again)
		return -ENOENT;
	fd = open_cached(d, k);
	if (fd >= 0) {
		d->stats.results[DEBUGINFOD_CACHED] += w->state != HERE;
		w->state = HERE;
		return fd;
	}
	w->state = UNKNOWN;	/* it may have been removed */
	return enqueue(d, n);
}

int debuginfod_open(struct debuginfod *d, const unsigned char *id, size_t size)
{
	struct key k = { .size = size };
	int r;

	if (size < DEBUGINFOD_ID_MIN || size > sizeof(k.id))
		return -ENOENT;
	memcpy(k.id, id, size);
	pthread_mutex_lock(&d->lock);
	r = ask(d, &k);
	pthread_mutex_unlock(&d->lock);
	return r;
}

int debuginfod_ask(struct debuginfod *d, const unsigned char *id, size_t size)
{
	int fd = debuginfod_open(d, id, size);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

bool debuginfod_wait(struct debuginfod *d, uint64_t deadline)
{
	struct timespec until = timespec_of(deadline);
	bool idle;

	pthread_mutex_lock(&d->lock);
	while ((d->n || d->busy) && !pthread_cond_timedwait(&d->idle, &d->lock, &until))
		;
	idle = !d->n && !d->busy;
	pthread_mutex_unlock(&d->lock);
	return idle;
}

struct debuginfod_stats debuginfod_stats(struct debuginfod *d)
{
	struct debuginfod_stats s;

	pthread_mutex_lock(&d->lock);
	s = d->stats;
	s.waiting = d->n + d->busy;
	pthread_mutex_unlock(&d->lock);
	return s;
}

const char *debuginfod_result_label(enum debuginfod_result r)
{
	static const char *const labels[] = {
#define DEBUGINFOD_LABEL(constant, label) [constant] = label,
		DEBUGINFOD_RESULTS(DEBUGINFOD_LABEL)
#undef DEBUGINFOD_LABEL
	};

	return labels[r];
}
