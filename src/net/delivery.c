/* delivery.c - see delivery.h. The thread turns the crank of all lanes (lane.h) around one curl multi. */
#include "net/delivery.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "base/clock.h"
#include "net/lane.h"
#include "net/spool.h"
#include "net/split.h"
#include "net/transfer.h"

const double delivery_bucket_seconds[DELIVERY_BUCKETS] = { 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
							    1.0 / 0.0 };

enum phase { RUNNING, DRAINING };

struct delivery {
	struct lane **lanes;
	size_t n;
	CURLM *multi;
	struct split_limits limits;
	pthread_t thread;
	bool started;
	pthread_mutex_t lock;	/* of what follows */
	enum phase phase;
	uint64_t until_ns;
	uint64_t unsendable;
	bool joined;
};

const char *delivery_drop_name(enum delivery_drop why)
{
	static const char *const names[] = { "queue_full", "expired",  "spool_full",
					     "spool_torn", "encoding", "shutdown" };

	_Static_assert(ARRAY_SIZE(names) == DELIVERY_DROPS, "each reason has a name");
	return names[why];
}

/* ---- the thread ---- */

static void finish_transfers(struct delivery *d)
{
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(d->multi, &left))) {
		CURL *easy = m->easy_handle;
		CURLcode code = m->data.result;

		if (m->msg == CURLMSG_DONE)
			for (size_t i = 0; i < d->n; i++)
				if (lane_finished(d->lanes[i], d->multi, easy, code, clock_monotonic()))
					break;
	}
}

static bool all_idle(struct delivery *d)
{
	bool idle = true;

	for (size_t i = 0; i < d->n; i++)
		idle &= lane_idle(d->lanes[i]);
	return idle;
}

static void read_phase(struct delivery *d, bool *ret_draining, uint64_t *ret_until)
{
	pthread_mutex_lock(&d->lock);
	*ret_draining = d->phase == DRAINING;
	*ret_until = d->until_ns;
	pthread_mutex_unlock(&d->lock);
}

static uint64_t run_lanes(struct delivery *d, bool draining)
{
	uint64_t wait = UINT64_MAX;

	for (size_t i = 0; i < d->n; i++)
		wait = MIN(wait, lane_run(d->lanes[i], d->multi, clock_monotonic(), draining));
	return wait;
}

static void *work(void *arg)
{
	struct delivery *d = arg;
	uint64_t until, now, wait;
	bool draining;
	int running;

	for (;;) {
		read_phase(d, &draining, &until);
		run_lanes(d, draining);
		curl_multi_perform(d->multi, &running);
		finish_transfers(d);
		wait = run_lanes(d, draining);	/* what has just ended may let the next one start */
		now = clock_monotonic();
		if (draining && (now >= until || all_idle(d)))
			break;
		if (draining)
			wait = MIN(wait, until - now);
		curl_multi_poll(d->multi, NULL, 0, (int)MIN(wait / 1000000 + 1, 60000), NULL);
	}
	for (size_t i = 0; i < d->n; i++)
		lane_stop(d->lanes[i], d->multi);
	return NULL;
}

/* Without signals: they are the process's own affair, and SIGPIPE (transfer.h) must not end it. */
static int start_thread(struct delivery *d)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&d->thread, NULL, work, d);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	d->started = !r;
	return -r;
}

/* ---- from outside ---- */

static int make_lanes(struct delivery *d, const struct delivery_options *o, struct err *e)
{
	struct lane_options lo = {
		.spool_dir = o->spool_dir,
		.spool_bytes = o->spool_bytes ? o->spool_bytes : DELIVERY_SPOOL_BYTES,
		.age_ns = o->spool_age_ns ? o->spool_age_ns : DELIVERY_SPOOL_AGE_NS,
		.queue_bytes = o->queue_bytes ? o->queue_bytes : DELIVERY_QUEUE_BYTES,
		.concurrency = MIN(o->concurrency ? o->concurrency : DELIVERY_CONCURRENCY,
				   DELIVERY_CONCURRENCY_MAX),
	};
	int r = 0;

	d->lanes = calloc(o->nsinks, sizeof(struct lane *));
	if (!d->lanes)
		return err_set(e, -ENOMEM, "out of memory");
	for (; d->n < o->nsinks && !r; d->n += !r) {
		lo.sink = &o->sinks[d->n];
		r = lane_new(&lo, &d->lanes[d->n], e);
	}
	return r;
}

int delivery_new(const struct delivery_options *o, struct delivery **ret, struct err *e)
{
	cleanup(delivery_cleanup) struct delivery *d = NULL;
	int r;

	if (!o->nsinks)
		return err_set(e, -EINVAL, "there is nowhere to deliver to");
	transfer_global_init();
	d = calloc(1, sizeof(*d));
	if (!d)
		return err_set(e, -ENOMEM, "out of memory");
	pthread_mutex_init(&d->lock, NULL);
	d->limits.raw = o->profile_bytes;
	r = make_lanes(d, o, e);
	if (r)
		return r;
	d->multi = curl_multi_init();
	if (!d->multi)
		return err_set(e, -ENOMEM, "out of memory");
	r = start_thread(d);
	if (r)
		return err_set(e, r, "can't start a thread for delivery: %s", strerror(-r));
	*ret = take(d);
	return 0;
}

struct put {
	struct delivery *d;
	const struct labels *labels;
	const char *type;
};

static int put_part(void *ctx, struct item_profile *part)
{
	struct put *p = ctx;
	cleanup(item_cleanup) struct item *it = NULL;
	int r = item_new(p->labels, p->type, part, &it);

	for (size_t i = 0; i < p->d->n && !r; i++)
		r = lane_put(p->d->lanes[i], it);
	return r;
}

int delivery_put(struct delivery *d, const struct labels *labels, const struct profile *p)
{
	struct put put = { .d = d, .labels = labels, .type = split_type(p) };
	struct split_stats st = { 0 };
	bool ended;
	int r;

	pthread_mutex_lock(&d->lock);
	ended = d->phase != RUNNING;
	pthread_mutex_unlock(&d->lock);
	if (ended)
		return -ESHUTDOWN;
	r = split_profile(p, &d->limits, put_part, &put, &st);
	pthread_mutex_lock(&d->lock);
	d->unsendable += st.unsendable;
	pthread_mutex_unlock(&d->lock);
	curl_multi_wakeup(d->multi);
	return r;
}

size_t delivery_sinks(const struct delivery *d)
{
	return d->n;
}

void delivery_stats(struct delivery *d, size_t sink, struct sink_stats *ret)
{
	lane_stats(d->lanes[sink], clock_monotonic(), ret);
}

uint64_t delivery_unsendable(struct delivery *d)
{
	uint64_t n;

	pthread_mutex_lock(&d->lock);
	n = d->unsendable;
	pthread_mutex_unlock(&d->lock);
	return n;
}

void delivery_finish(struct delivery *d, uint64_t until_ns)
{
	bool join;

	pthread_mutex_lock(&d->lock);
	if (d->phase == RUNNING)
		d->until_ns = until_ns;
	d->phase = DRAINING;
	join = d->started && !d->joined;
	d->joined = true;
	pthread_mutex_unlock(&d->lock);
	if (!join)
		return;
	curl_multi_wakeup(d->multi);
	pthread_join(d->thread, NULL);
}

void delivery_free(struct delivery *d)
{
	if (!d)
		return;
	delivery_finish(d, 0);
	for (size_t i = 0; i < d->n; i++)
		lane_free(d->lanes[i]);
	free(d->lanes);
	if (d->multi)
		curl_multi_cleanup(d->multi);
	pthread_mutex_destroy(&d->lock);
	free(d);
}
