/* session.c - see session.h. One lock for the list and the states; the samples of a running session
 * belong to the loop, those of a finished one to its asker. */
#include "agent/session.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <time.h>

struct sessions {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int fd;
	bool shutdown;
	uint64_t cut;
	struct session *first;
};

int sessions_new(struct sessions **ret)
{
	struct sessions *s = calloc(1, sizeof(*s));
	pthread_condattr_t monotonic;

	if (!s)
		return -ENOMEM;
	s->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->fd < 0) {
		int r = -errno;

		free(s);
		return r;
	}
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	*ret = s;
	return 0;
}

static void session_free(struct session *session)
{
	samples_free(&session->samples);
	free(session);
}

void sessions_free(struct sessions *s)
{
	if (!s)
		return;
	while (s->first) {
		struct session *next = s->first->next;

		session_free(s->first);
		s->first = next;
	}
	close(s->fd);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static void wake(struct sessions *s)
{
	(void)!write(s->fd, &(uint64_t){ 1 }, sizeof(uint64_t));
}

/* ---- the asker ---- */

int sessions_begin(struct sessions *s, uint32_t freq, uint64_t duration_ns, struct session **ret)
{
	struct session *mine = calloc(1, sizeof(*mine));
	bool refused;

	if (!mine)
		return -ENOMEM;
	mine->samples = (struct samples)SAMPLES_INIT;
	mine->freq = freq;
	mine->duration_ns = duration_ns;
	pthread_mutex_lock(&s->lock);
	refused = s->shutdown;
	if (!refused) {
		mine->next = s->first;
		s->first = mine;
	}
	pthread_mutex_unlock(&s->lock);
	if (refused) {
		session_free(mine);
		return -ESHUTDOWN;
	}
	wake(s);
	*ret = mine;
	return 0;
}

static bool finished(const struct session *session)
{
	return session->state == SESSION_DONE || session->state == SESSION_FAILED;
}

int sessions_wait(struct sessions *s, struct session *mine, bool (*gone)(void *ctx), void *ctx)
{
	int r = 0;

	pthread_mutex_lock(&s->lock);
	while (!finished(mine)) {
		struct timespec until;

		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec++;
		(void)pthread_cond_timedwait(&s->changed, &s->lock, &until);
		if (!gone || finished(mine))
			continue;
		pthread_mutex_unlock(&s->lock);
		r = gone(ctx) ? -ECANCELED : 0;
		pthread_mutex_lock(&s->lock);
		if (r)
			break;
	}
	if (!r && mine->state == SESSION_FAILED)
		r = s->shutdown ? -ESHUTDOWN : -ENOMEM;
	pthread_mutex_unlock(&s->lock);
	return r;
}

void sessions_end(struct sessions *s, struct session *mine)
{
	struct session **at = &s->first;

	pthread_mutex_lock(&s->lock);
	while (*at != mine)
		at = &(*at)->next;
	*at = mine->next;
	pthread_mutex_unlock(&s->lock);
	session_free(mine);
	wake(s);	/* perhaps the frequency can go down */
}

/* ---- the loop ---- */

int sessions_fd(const struct sessions *s)
{
	return s->fd;
}

static bool due(const struct session *session, uint64_t now)
{
	return session->state == SESSION_WANTED ||
	       (session->state == SESSION_RUNNING &&
		(now >= session->end ||
		 samples_entries(&session->samples) >= SESSION_SAMPLES_MAX));
}

bool sessions_poll(struct sessions *s, uint64_t now)
{
	uint64_t ignored;
	bool yes = false;

	(void)!read(s->fd, &ignored, sizeof(ignored));
	pthread_mutex_lock(&s->lock);
	for (struct session *i = s->first; i; i = i->next)
		yes |= due(i, now);
	pthread_mutex_unlock(&s->lock);
	return yes;
}

void sessions_turn(struct sessions *s, uint64_t now, int64_t time_nanos, uint32_t freq,
		   uint64_t epoch)
{
	pthread_mutex_lock(&s->lock);
	for (struct session *i = s->first; i; i = i->next) {
		if (!due(i, now))
			continue;
		if (i->state == SESSION_WANTED) {
			i->state = SESSION_RUNNING;
			i->start = now;
			i->end = now + i->duration_ns;
			i->time_nanos = time_nanos;
			i->sampled_freq = freq;
			i->epoch = epoch;
		} else {
			i->state = SESSION_DONE;
			s->cut += now < i->end;
			i->end = now;
		}
	}
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

uint64_t sessions_next(struct sessions *s)
{
	uint64_t next = UINT64_MAX;

	pthread_mutex_lock(&s->lock);
	for (struct session *i = s->first; i; i = i->next)
		if (i->state == SESSION_RUNNING)
			next = MIN(next, i->end);
	pthread_mutex_unlock(&s->lock);
	return next;
}

uint64_t sessions_oldest_epoch(struct sessions *s)
{
	uint64_t epoch = UINT64_MAX;

	pthread_mutex_lock(&s->lock);
	for (struct session *i = s->first; i; i = i->next)
		if (i->state != SESSION_WANTED)
			epoch = MIN(epoch, i->epoch);
	pthread_mutex_unlock(&s->lock);
	return epoch;
}

uint32_t sessions_freq(struct sessions *s)
{
	uint32_t freq = 0;

	pthread_mutex_lock(&s->lock);
	for (struct session *i = s->first; i; i = i->next)
		if (!finished(i))
			freq = MAX(freq, i->freq);
	pthread_mutex_unlock(&s->lock);
	return freq;
}

void sessions_tap(struct sessions *s, uint64_t when, const struct wk_sample *sample,
		  const uint64_t *user, size_t nuser, const uint64_t *kernel, size_t nkernel)
{
	pthread_mutex_lock(&s->lock);
	for (struct session *i = s->first; i; i = i->next)
		if (i->state == SESSION_RUNNING && (!when || when >= i->start) &&
		    samples_add(&i->samples, sample, user, nuser, kernel, nkernel)) {
			i->state = SESSION_FAILED;
			pthread_cond_broadcast(&s->changed);
		}
	pthread_mutex_unlock(&s->lock);
}

void sessions_shutdown(struct sessions *s)
{
	pthread_mutex_lock(&s->lock);
	s->shutdown = true;
	for (struct session *i = s->first; i; i = i->next)
		if (!finished(i))
			i->state = SESSION_FAILED;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

uint32_t sessions_count(struct sessions *s)
{
	uint32_t n = 0;

	pthread_mutex_lock(&s->lock);
	for (struct session *i = s->first; i; i = i->next)
		n++;
	pthread_mutex_unlock(&s->lock);
	return n;
}

uint64_t sessions_cut(struct sessions *s)
{
	uint64_t n;

	pthread_mutex_lock(&s->lock);
	n = s->cut;
	pthread_mutex_unlock(&s->lock);
	return n;
}
