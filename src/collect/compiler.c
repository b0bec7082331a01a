/* compiler.c - see compiler.h. One mutex guards both lists; files are compiled outside of it. */
#include "collect/compiler.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include "elf/elf.h"
#include "unwind/unwtab.h"

struct job {
	uint32_t id;
	int fd;
	uint64_t wanted;	/* samples */
};

struct compiler {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t work;
	bool started, stop;
	int event;		/* eventfd: something is in done[] */
	struct job *jobs;
	struct compiled *done;
	size_t njobs, jobs_cap, ndone, done_cap;
	uint32_t pending;
};

static void compile(const struct job *j, struct compiled *ret)
{
	cleanup(elf_cleanup) struct elf *elf = NULL;

	*ret = (struct compiled){ .id = j->id };
	ret->error = elf_open_fd(j->fd, &elf, NULL);
	if (!ret->error)
		ret->error = unwtab_compile(elf, NULL, &UNWTAB_LIMITS_DEFAULT, &ret->table);
}

/* The most wanted job; the lock is held and there is one. */
static struct job next_job(struct compiler *c)
{
	size_t best = 0;
	struct job j;

	for (size_t i = 1; i < c->njobs; i++)
		if (c->jobs[i].wanted > c->jobs[best].wanted)
			best = i;
	j = c->jobs[best];
	c->jobs[best] = c->jobs[--c->njobs];
	return j;
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
	struct compiler *c = arg;
	struct compiled d;
	struct job j;

	(void)setpriority(PRIO_PROCESS, 0, COMPILER_NICE);	/* of this thread alone, on Linux */
	for (;;) {
		pthread_mutex_lock(&c->lock);
		while (!c->stop && !c->njobs)
			pthread_cond_wait(&c->work, &c->lock);
		if (c->stop) {
			pthread_mutex_unlock(&c->lock);
			return NULL;
		}
		j = next_job(c);
		pthread_mutex_unlock(&c->lock);
		compile(&j, &d);
		close(j.fd);
		finish(c, &d);
	}
}

int compiler_new(struct compiler **ret)
{
	cleanup(compiler_cleanup) struct compiler *c = calloc(1, sizeof(*c));
	sigset_t all, old;
	int r;

	if (!c)
		return -ENOMEM;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->work, NULL);
	c->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->event < 0)
		return -errno;
	sigfillset(&all);	/* signals are the main thread's */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&c->thread, NULL, work, c);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r)
		return -r;
	c->started = true;
	*ret = take(c);
	return 0;
}

void compiler_free(struct compiler *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->stop = true;
	pthread_cond_signal(&c->work);
	pthread_mutex_unlock(&c->lock);
	if (c->started)
		pthread_join(c->thread, NULL);
	for (size_t i = 0; i < c->njobs; i++)
		close(c->jobs[i].fd);
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

int compiler_submit(struct compiler *c, uint32_t id, int fd)
{
	int r, copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	if (copy < 0)
		return -errno;
	pthread_mutex_lock(&c->lock);
	r = array_grow(&c->jobs, &c->jobs_cap, c->njobs + 1, sizeof(*c->jobs));
	if (!r)
		r = array_grow(&c->done, &c->done_cap, (size_t)c->pending + 1, sizeof(*c->done));
	if (!r) {
		c->jobs[c->njobs++] = (struct job){ .id = id, .fd = copy };
		c->pending++;
		pthread_cond_signal(&c->work);
	}
	pthread_mutex_unlock(&c->lock);
	if (r)
		close(copy);
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
