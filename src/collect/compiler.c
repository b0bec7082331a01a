/* compiler.c - see compiler.h. One mutex guards both lists; files are compiled outside of it. */
#include "collect/compiler.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "elf/elf.h"
#include "symbol/debugfile.h"
#include "symbol/foreign.h"
#include "unwind/unwtab.h"

struct job {
	uint32_t id;
	int fd;
	char *path;		/* or NULL */
	uint64_t wanted;	/* samples that lay in it */
	uint64_t size;		/* bytes of the file */
	bool named;		/* fd only names it: reading it may take a while */
};

/* The first takes any file, the second only small ones that lie here, so that libc never waits for a browser, nor
 * for a server. */
enum { WORKERS = 2, SMALL_FILE = 4 << 20 };

struct worker {
	struct compiler *c;
	pthread_t thread;
	bool small_only, started;
};

struct compiler {
	struct worker workers[WORKERS];
	pthread_mutex_t lock;
	pthread_cond_t work;
	bool stop;
	int event;		/* eventfd: something is in done[] */
	struct job *jobs;
	struct compiled *done;
	size_t njobs, jobs_cap, ndone, done_cap;
	uint32_t pending;
};

static void free_job(const struct job *j)
{
	close(j->fd);
	free(j->path);
}

/* For unwtab.h: the debug file of the job at hand. */
struct debug_search {
	const struct elf *elf;
	const char *path;
	struct debugfile found;
};

static const struct elf *open_debug(void *arg)
{
	struct debug_search *s = arg;

	if (debugfile_open(s->elf, s->path, DEBUGFILE_DIR, &s->found))
		return NULL;
	return s->found.elf;
}

int compile_file(int held, const char *path, struct unwtab **ret)
{
	cleanup(fd_cleanup) int fd = foreign_readable(held);
	cleanup(elf_cleanup) struct elf *elf = NULL;
	struct debug_search search = { .path = path };
	const struct unwtab_debug debug = { open_debug, &search };
	int r = fd < 0 ? fd : elf_open_fd(fd, &elf, NULL);

	if (r)
		return r;
	search.elf = elf;
	r = unwtab_compile(elf, &debug, &UNWTAB_LIMITS_DEFAULT, ret);
	if (search.found.elf)
		debugfile_close(&search.found);
	return r;
}

/* What is gained by a job for its cost: samples per 64 KiB of file. */
static double worth(const struct job *j)
{
	return (double)(j->wanted + 1) / (double)((j->size >> 16) + 1);
}

/* Takes the job most worth doing; the lock is held. False: nothing for this worker. */
static bool next_job(struct worker *w, struct job *ret)
{
	struct compiler *c = w->c;
	size_t best = c->njobs;

	for (size_t i = 0; i < c->njobs; i++) {
		if (w->small_only && (c->jobs[i].size > SMALL_FILE || c->jobs[i].named))
			continue;
		if (best == c->njobs || worth(&c->jobs[i]) > worth(&c->jobs[best]))
			best = i;
	}
	if (best == c->njobs)
		return false;
	*ret = c->jobs[best];
	c->jobs[best] = c->jobs[--c->njobs];
	return true;
}

static void finish(struct compiler *c, const struct compiled *d)
{
	uint64_t one = 1;

	pthread_mutex_lock(&c->lock);
	/* room was made when the job was submitted */
	c->done[c->ndone++] = *d;
	pthread_mutex_unlock(&c->lock);
	(void)!write(c->event, &one, sizeof(one));
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct compiler *c = w->c;
	struct compiled d;
	struct job j = { .fd = -1 };
	bool stop;

	(void)setpriority(PRIO_PROCESS, 0, COMPILER_NICE);	/* of this thread alone, on Linux */
	for (;;) {
		pthread_mutex_lock(&c->lock);
		while (!c->stop && !next_job(w, &j))
			pthread_cond_wait(&c->work, &c->lock);
		stop = c->stop;
		pthread_mutex_unlock(&c->lock);
		if (stop)
			return NULL;
		d = (struct compiled){ .id = j.id };
		d.error = compile_file(j.fd, j.path, &d.table);
		free_job(&j);
		finish(c, &d);
	}
}

int compiler_new(struct compiler **ret)
{
	cleanup(compiler_cleanup) struct compiler *c = calloc(1, sizeof(*c));
	sigset_t all, old;
	bool started = true;

	if (!c)
		return -ENOMEM;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->work, NULL);
	c->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->event < 0)
		return -errno;
	sigfillset(&all);	/* signals are the main thread's */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	for (size_t i = 0; i < WORKERS; i++) {
		struct worker *w = &c->workers[i];

		*w = (struct worker){ .c = c, .small_only = i > 0 };
		w->started = !pthread_create(&w->thread, NULL, work, w);
		started &= w->started;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!started)
		return -EAGAIN;
	*ret = take(c);
	return 0;
}

void compiler_free(struct compiler *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->stop = true;
	pthread_cond_broadcast(&c->work);
	pthread_mutex_unlock(&c->lock);
	for (size_t i = 0; i < WORKERS; i++)
		if (c->workers[i].started)
			pthread_join(c->workers[i].thread, NULL);
	for (size_t i = 0; i < c->njobs; i++)
		free_job(&c->jobs[i]);
	for (size_t i = 0; i < c->ndone; i++)
		unwtab_free(c->done[i].table);
	if (c->event >= 0)
		close(c->event);
	pthread_cond_destroy(&c->work);
	pthread_mutex_destroy(&c->lock);
	free(c->jobs);
	free(c->done);
	free(c);
}

int compiler_submit(struct compiler *c, uint32_t id, int fd, const char *path)
{
	struct job j = { .id = id, .fd = fcntl(fd, F_DUPFD_CLOEXEC, 3) };
	struct stat st;
	int r = 0;

	if (j.fd < 0)
		return -errno;
	j.named = foreign_is_name(j.fd);
	if (!foreign_stat(j.fd, &st))
		j.size = (uint64_t)st.st_size;
	if (path) {
		j.path = strdup(path);
		r = j.path ? 0 : -ENOMEM;
	}
	pthread_mutex_lock(&c->lock);
	if (!r)
		r = array_grow(&c->jobs, &c->jobs_cap, c->njobs + 1, sizeof(*c->jobs));
	if (!r)
		r = array_grow(&c->done, &c->done_cap, (size_t)c->pending + 1, sizeof(*c->done));
	if (!r) {
		c->jobs[c->njobs++] = j;
		c->pending++;
		pthread_cond_broadcast(&c->work);	/* either may be the one for it */
	}
	pthread_mutex_unlock(&c->lock);
	if (r)
		free_job(&j);
	return r;
}

void compiler_want(struct compiler *c, uint32_t id, uint64_t samples)
{
	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < c->njobs; i++)
		if (c->jobs[i].id == id)
			c->jobs[i].wanted += samples;
	pthread_mutex_unlock(&c->lock);
}

int compiler_fd(const struct compiler *c)
{
	return c->event;
}

bool compiler_take(struct compiler *c, struct compiled *ret)
{
	uint64_t n;
	bool some;

	(void)!read(c->event, &n, sizeof(n));
	pthread_mutex_lock(&c->lock);
	some = c->ndone > 0;
	if (some) {
		*ret = c->done[--c->ndone];
		c->pending--;
	}
	pthread_mutex_unlock(&c->lock);
	return some;
}

uint32_t compiler_pending(struct compiler *c)
{
	uint32_t n;

	pthread_mutex_lock(&c->lock);
	n = c->pending;
	pthread_mutex_unlock(&c->lock);
	return n;
}
