/* lane.c - see lane.h. Top to bottom: making one, queue, spooling, starting requests, their ends. */
#include "net/lane.h"

#include <pthread.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <zlib.h>

#include "base/clock.h"
#include "net/backoff.h"
#include "net/spool.h"
#include "net/transfer.h"

#define LOOK_AGAIN_NS	1000000000ULL	/* while there is something to grow old */
#define SPOOL_RETRY_NS	10000000000ULL	/* after a write that failed */

struct entry {
	struct entry *next;
	struct item *item;
	uint64_t queued_ns;
	uint64_t seen_ok;	/* successes of the lane when it failed first */
	uint32_t tries, blamed;
	bool alone;		/* in no batch: one with it was refused, or failed again */
	bool spooled;		/* on disk too, at pos, and held there */
	struct spool_pos pos;
};

struct queue {
	struct entry *head, **tail;
};

struct slot {
	struct transfer transfer;
	struct entry *entries;	/* NULL: free */
	uint64_t started_ns;
	bool from_spool;
};

struct lane {
	struct sink *sink;
	struct spool *spool;	/* NULL: none */
	struct lane_options o;	/* its pointers aren't valid any more */
	struct slot *slots;
	struct backoff backoff;
	uint64_t ok;		/* requests that were accepted */
	uint64_t spool_after_ns;	/* no writes to it before */

	pthread_mutex_t lock;	/* of what follows */
	struct queue queue;
	struct sink_stats stats;
	struct spool_stats spool_stats;
	uint64_t waits_until_ns;
};

static int64_t realtime_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* ---- making one ---- */

/* Letters of the name that are safe in a file name, and a checksum that tells all names apart. */
static void spool_name(const char *name, char ret[static 96])
{
	uLong crc = crc32(0, (const Bytef *)name, (uInt)strlen(name));
	size_t n = 0;

	for (; *name && n < 64; name++)
		ret[n++] = strchr("/:[]@?&= ", *name) || (signed char)*name < 0x20 ? '_' : *name;
	snprintf(ret + n, 96 - n, "-%08lx", crc);
}

static int open_spool(struct lane *l, struct err *e)
{
	struct spool_options so = { .max_bytes = l->o.spool_bytes, .max_age_ns = l->o.age_ns };
	cleanup(freep_cleanup) char *dir = NULL;
	char name[96];
	int r;

	if (!l->o.spool_dir || sink_is_local(l->sink))
		return 0;	/* a second copy beside the first on a disk that fails helps nobody */
	spool_name(sink_name(l->sink), name);
	if (asprintf(&dir, "%s/%s", l->o.spool_dir, name) < 0)
		return err_set(e, -ENOMEM, "out of memory");
	if (mkdir(l->o.spool_dir, 0700) < 0 && errno != EEXIST)
		return err_set(e, -errno, "can't make the spool %.200s: %s", l->o.spool_dir,
			       strerror(errno));
	so.dir = dir;
	r = spool_open(&so, &l->spool, e);
	if (!r)
		l->spool_stats = spool_get_stats(l->spool);
	return r;
}

int lane_new(const struct lane_options *o, struct lane **ret, struct err *e)
{
	struct lane *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return err_set(e, -ENOMEM, "out of memory");
	pthread_mutex_init(&l->lock, NULL);
	l->queue.tail = &l->queue.head;
	l->o = *o;
	r = sink_new(o->sink, &l->sink, e);
	if (!r)
		r = open_spool(l, e);
	l->slots = r ? NULL : calloc(o->concurrency, sizeof(*l->slots));
	if (!r && !l->slots)
		r = err_set(e, -ENOMEM, "out of memory");
	if (r) {
		lane_free(l);
		return r;
	}
	for (uint32_t i = 0; i < o->concurrency; i++)
		l->slots[i].transfer = (struct transfer)TRANSFER_INIT;
	*ret = l;
	return 0;
}

static void entry_free(struct entry *e)
{
	item_unref(e->item);
	free(e);
}

void lane_free(struct lane *l)
{
	struct entry *e;

	if (!l)
		return;
	while ((e = l->queue.head)) {
		l->queue.head = e->next;
		entry_free(e);
	}
	for (uint32_t i = 0; l->slots && i < l->o.concurrency; i++)
		transfer_done(&l->slots[i].transfer);
	free(l->slots);
	spool_close(l->spool);
	sink_free(l->sink);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

/* ---- the queue; with the lock held ---- */

static void push(struct lane *l, struct entry *e, bool front)
{
	e->next = front ? l->queue.head : NULL;
	if (front) {
		if (!l->queue.head)
			l->queue.tail = &e->next;
		l->queue.head = e;
	} else {
		*l->queue.tail = e;
		l->queue.tail = &e->next;
	}
}

static struct entry *pop(struct lane *l)
{
	struct entry *e = l->queue.head;

	if (!e)
		return NULL;
	l->queue.head = e->next;
	if (!e->next)
		l->queue.tail = &l->queue.head;
	e->next = NULL;
	return e;
}

/* What is on disk is counted there. */
static void count_in(struct lane *l, const struct entry *e)
{
	if (e->spooled)
		return;
	l->stats.queued++;
	l->stats.queued_bytes += item_bytes(e->item);
}

static void count_out(struct lane *l, const struct entry *e)
{
	if (e->spooled)
		return;
	l->stats.queued--;
	l->stats.queued_bytes -= item_bytes(e->item);
}

static void drop(struct lane *l, struct entry *e, enum delivery_drop why)
{
	count_out(l, e);
	l->stats.dropped[why]++;
	entry_free(e);
}

/* The oldest that is in memory only. */
static struct entry *pop_unspooled(struct lane *l)
{
	struct entry **at = &l->queue.head, *e;

	while (*at && (*at)->spooled)
		at = &(*at)->next;
	e = *at;
	if (!e)
		return NULL;
	*at = e->next;
	if (!e->next)
		l->queue.tail = at;
	e->next = NULL;
	return e;
}

/* Over its bytes the oldest go; what is under way can't. */
static void keep_within_bytes(struct lane *l)
{
	struct entry *e;

	while (l->stats.queued_bytes > l->o.queue_bytes && (e = pop_unspooled(l)))
		drop(l, e, DELIVERY_QUEUE_FULL);
}

int lane_put(struct lane *l, struct item *it)
{
	struct entry *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->item = item_ref(it);
	e->queued_ns = clock_monotonic();
	pthread_mutex_lock(&l->lock);
	push(l, e, false);
	count_in(l, e);
	l->stats.put++;
	keep_within_bytes(l);
	pthread_mutex_unlock(&l->lock);
	return 0;
}

static struct entry *pop_locked(struct lane *l)
{
	struct entry *e;

	pthread_mutex_lock(&l->lock);
	e = pop(l);
	pthread_mutex_unlock(&l->lock);
	return e;
}

static void push_locked(struct lane *l, struct entry *e, bool front)
{
	pthread_mutex_lock(&l->lock);
	push(l, e, front);
	keep_within_bytes(l);
	pthread_mutex_unlock(&l->lock);
}

static void drop_locked(struct lane *l, struct entry *e, enum delivery_drop why)
{
	pthread_mutex_lock(&l->lock);
	drop(l, e, why);
	pthread_mutex_unlock(&l->lock);
}

static bool is_expired(const struct lane *l, const struct entry *e)
{
	return realtime_ns() - e->item->put_nanos > (int64_t)l->o.age_ns;
}

static void drop_expired(struct lane *l)
{
	pthread_mutex_lock(&l->lock);
	while (l->queue.head && !l->queue.head->spooled && is_expired(l, l->queue.head))
		drop(l, pop(l), DELIVERY_EXPIRED);
	pthread_mutex_unlock(&l->lock);
}

/* ---- spooling ---- */

static void note_error(struct lane *l, const char *text)
{
	pthread_mutex_lock(&l->lock);
	snprintf(l->stats.last_error, sizeof(l->stats.last_error), "%s", text);
	pthread_mutex_unlock(&l->lock);
}

static void copy_spool_stats(struct lane *l)
{
	if (!l->spool)
		return;
	pthread_mutex_lock(&l->lock);
	l->spool_stats = spool_get_stats(l->spool);
	pthread_mutex_unlock(&l->lock);
}

/* Puts an entry on disk and holds it there. False: there is no spool, or it can't be written to. */
static bool spool_entry(struct lane *l, struct entry *e, uint64_t now_ns)
{
	struct err why;
	int r;

	if (e->spooled)
		return true;
	if (!l->spool || now_ns < l->spool_after_ns)
		return false;
	r = spool_append(l->spool, e->item, true, &e->pos);
	pthread_mutex_lock(&l->lock);
	if (r) {
		l->stats.spool_errors++;
	} else {
		count_out(l, e);
		e->spooled = true;
	}
	pthread_mutex_unlock(&l->lock);
	if (!r)
		return true;
	l->spool_after_ns = now_ns + SPOOL_RETRY_NS;
	err_set(&why, r, "can't write to the spool of %.200s: %s", sink_name(l->sink), strerror(-r));
	note_error(l, why.msg);
	return false;
}

/* From memory to disk, for whoever asks next. */
static bool spool_away(struct lane *l, struct entry *e, uint64_t now_ns)
{
	if (!spool_entry(l, e, now_ns))
		return false;
	e->pos.seen_ok = e->seen_ok;
	e->pos.blamed = e->blamed;
	spool_release(l->spool, &e->pos);
	entry_free(e);
	return true;
}

static bool is_old(const struct entry *e, uint64_t now_ns)
{
	return now_ns >= e->queued_ns + DELIVERY_SPOOL_AFTER_NS;
}

static bool head_must_go(struct lane *l, uint64_t now_ns)
{
	bool must;

	pthread_mutex_lock(&l->lock);
	must = l->queue.head && (backoff_wait(&l->backoff, now_ns) || is_old(l->queue.head, now_ns));
	pthread_mutex_unlock(&l->lock);
	return must;
}

static void spool_what_must_not_wait(struct lane *l, uint64_t now_ns)
{
	struct entry *e;

	if (!l->spool || now_ns < l->spool_after_ns)
		return;
	while (head_must_go(l, now_ns) && (e = pop_locked(l)))
		if (!spool_away(l, e, now_ns)) {
			push_locked(l, e, true);
			return;
		}
	for (uint32_t i = 0; i < l->o.concurrency; i++)
		for (e = l->slots[i].entries; e; e = e->next)
			if (is_old(e, now_ns) && !spool_entry(l, e, now_ns))
				return;
}

/* ---- the ends of requests ---- */

static void count_latency(struct lane *l, double seconds)
{
	size_t i = 0;

	while (i < DELIVERY_BUCKETS - 1 && seconds > delivery_bucket_seconds[i])
		i++;
	l->stats.latency[i]++;
	l->stats.latency_seconds += seconds;
}

static void entry_settled(struct lane *l, struct entry *e, bool stored)
{
	if (e->spooled)
		spool_done(l->spool, &e->pos);
	pthread_mutex_lock(&l->lock);
	count_out(l, e);
	if (stored)
		l->stats.sent++;
	else
		l->stats.refused++;
	pthread_mutex_unlock(&l->lock);
	entry_free(e);
}

/* A profile that fails again and again while others get through is itself what is wrong. */
static bool is_hopeless(struct lane *l, struct entry *e)
{
	if (!e->blamed && !e->seen_ok)
		e->seen_ok = l->ok + 1;	/* counts from 1: 0 is "never failed" */
	else if (e->seen_ok != l->ok + 1) {
		e->seen_ok = l->ok + 1;
		e->blamed++;
	}
	return e->blamed >= DELIVERY_GIVE_UP;
}

static void entry_failed(struct lane *l, struct entry *e, const struct sink_verdict *v, bool batch,
			 uint64_t now_ns)
{
	if (v->fate == SINK_REFUSED && !batch) {
		entry_settled(l, e, false);
	} else if (v->fate == SINK_REFUSED) {
		e->alone = true;
		push_locked(l, e, true);
	} else if (is_hopeless(l, e)) {
		entry_settled(l, e, false);
	} else {
		e->alone |= e->blamed > 0;	/* it may be the one, or suffer for it */
		if (!spool_away(l, e, now_ns))
			push_locked(l, e, false);
	}
}

static void settle(struct lane *l, struct entry *entries, const struct sink_verdict *v,
		   uint64_t now_ns)
{
	const bool batch = entries && entries->next;
	struct entry *next;

	for (struct entry *e = entries; e; e = next) {
		next = e->next;
		e->next = NULL;
		if (v->fate == SINK_STORED)
			entry_settled(l, e, true);
		else
			entry_failed(l, e, v, batch, now_ns);
	}
}

static void pace(struct lane *l, const struct sink_verdict *v, uint64_t started_ns, uint64_t now_ns)
{
	uint64_t random = 0;

	if (v->fate == SINK_LATER) {
		if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
			random = now_ns;
		backoff_fail(&l->backoff, started_ns, now_ns, v->retry_after_ns, random);
	} else {	/* whoever refuses is there */
		backoff_ok(&l->backoff, started_ns);
	}
	pthread_mutex_lock(&l->lock);
	l->waits_until_ns = backoff_probing(&l->backoff) ? l->backoff.until_ns : 0;
	if (v->fate != SINK_STORED)
		snprintf(l->stats.last_error, sizeof(l->stats.last_error), "%s", v->why.msg);
	else
		l->stats.last_ok = realtime_ns();
	pthread_mutex_unlock(&l->lock);
}

static void slot_ended(struct lane *l, struct slot *s, CURLcode code, uint64_t now_ns)
{
	struct entry *entries = take(s->entries);
	struct sink_verdict v;

	transfer_finish(&s->transfer, l->sink, code, &v);
	pthread_mutex_lock(&l->lock);
	l->stats.in_flight--;
	if (s->transfer.answer.status)
		count_latency(l, (double)(now_ns - s->started_ns) / 1e9);
	if (v.fate == SINK_STORED)
		l->stats.sent_bytes += s->transfer.request.body.len;
	pthread_mutex_unlock(&l->lock);
	l->ok += v.fate == SINK_STORED;
	pace(l, &v, s->started_ns, now_ns);
	settle(l, entries, &v, now_ns);
	copy_spool_stats(l);
}

bool lane_finished(struct lane *l, CURLM *multi, CURL *easy, CURLcode code, uint64_t now_ns)
{
	for (uint32_t i = 0; i < l->o.concurrency; i++) {
		struct slot *s = &l->slots[i];

		if (!s->entries || s->transfer.curl != easy)
			continue;
		curl_multi_remove_handle(multi, easy);
		slot_ended(l, s, code, now_ns);
		return true;
	}
	return false;
}

/* ---- their starts ---- */

static struct slot *free_slot(struct lane *l, uint32_t *ret_busy, uint32_t *ret_from_spool)
{
	struct slot *found = NULL;

	*ret_busy = *ret_from_spool = 0;
	for (uint32_t i = 0; i < l->o.concurrency; i++) {
		struct slot *s = &l->slots[i];

		*ret_busy += !!s->entries;
		*ret_from_spool += s->entries && s->from_spool;
		if (!s->entries)
			found = s;
	}
	return found;
}

static struct entry *from_spool(struct lane *l, uint64_t now_ns)
{
	struct entry *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	if (spool_next(l->spool, realtime_ns(), &e->item, &e->pos)) {
		free(e);
		return NULL;
	}
	e->queued_ns = now_ns;
	e->seen_ok = e->pos.seen_ok;
	e->blamed = e->pos.blamed;
	e->alone = e->blamed > 0;
	e->tries = 1;	/* it is here because it was tried, or would have been */
	e->spooled = true;
	return e;
}

/* How many series the next request has. */
static uint32_t batch_size(struct lane *l, bool spool)
{
	uint64_t waiting;

	pthread_mutex_lock(&l->lock);
	waiting = spool ? l->spool_stats.items : l->stats.queued;
	pthread_mutex_unlock(&l->lock);
	return sink_batch(l->sink, waiting / l->o.concurrency);
}

/* The next entry, or a few in a list. NULL: nothing to do. */
static struct entry *pick(struct lane *l, bool spool, bool *ret_from_spool, uint64_t now_ns)
{
	struct entry *first = pop_locked(l), **end, *e;
	uint32_t size;

	*ret_from_spool = !first;
	if (!first && spool)
		first = from_spool(l, now_ns);
	if (!first)
		return NULL;
	end = &first->next;
	size = first->alone ? 1 : batch_size(l, *ret_from_spool);
	for (uint32_t n = 1; n < size; n++) {
		e = *ret_from_spool ? from_spool(l, now_ns) : pop_locked(l);
		if (!e)
			break;
		if (e->alone) {
			push_locked(l, e, true);
			break;
		}
		*end = e;
		end = &e->next;
	}
	return first;
}

static size_t collect(struct entry *entries, struct item *items[static SINK_BATCH_MAX],
		      bool *ret_retry)
{
	size_t n = 0;

	*ret_retry = false;
	for (struct entry *e = entries; e; e = e->next) {
		*ret_retry |= e->tries++ > 0;
		items[n++] = e->item;
	}
	return n;
}

static void not_encoded(struct lane *l, struct entry *entries, const struct err *why)
{
	struct entry *next;

	note_error(l, why->msg);
	for (struct entry *e = entries; e; e = next) {
		next = e->next;
		if (e->spooled) {
			spool_done(l->spool, &e->pos);
			pthread_mutex_lock(&l->lock);
			l->stats.dropped[DELIVERY_ENCODING]++;
			pthread_mutex_unlock(&l->lock);
			entry_free(e);
		} else {
			drop_locked(l, e, DELIVERY_ENCODING);
		}
	}
}

static void start(struct lane *l, struct slot *s, CURLM *multi, struct entry *entries,
		  uint64_t now_ns)
{
	struct item *items[SINK_BATCH_MAX] = { NULL };
	struct err why = { "" };
	bool retry;
	size_t n = collect(entries, items, &retry);

	if (transfer_start(&s->transfer, l->sink, items, n, &why) ||
	    curl_multi_add_handle(multi, s->transfer.curl)) {
		not_encoded(l, entries, &why);
		return;
	}
	s->entries = entries;
	s->started_ns = now_ns;
	pthread_mutex_lock(&l->lock);
	l->stats.in_flight++;
	l->stats.requests++;
	l->stats.retried += retry;
	pthread_mutex_unlock(&l->lock);
}

static void start_requests(struct lane *l, CURLM *multi, uint64_t now_ns, bool draining)
{
	uint32_t busy, spooled;
	struct slot *s;

	while (!backoff_wait(&l->backoff, now_ns) && (s = free_slot(l, &busy, &spooled))) {
		bool spool = l->spool && !draining && spooled < MAX(l->o.concurrency, 2) - 1;
		struct entry *entries;

		if (backoff_probing(&l->backoff) && busy)
			return;
		entries = pick(l, spool, &s->from_spool, now_ns);
		if (!entries)
			return;
		start(l, s, multi, entries, now_ns);
	}
}

static void store_all(struct lane *l, uint64_t now_ns)
{
	struct entry *e;

	while (!backoff_wait(&l->backoff, now_ns) && (e = pop_locked(l))) {
		struct sink_verdict v;
		size_t len = e->item->len;

		sink_store(l->sink, e->item, &v);
		pthread_mutex_lock(&l->lock);
		l->stats.requests++;
		l->stats.retried += e->tries++ > 0;
		l->stats.sent_bytes += v.fate == SINK_STORED ? len : 0;
		pthread_mutex_unlock(&l->lock);
		l->ok += v.fate == SINK_STORED;
		pace(l, &v, now_ns, now_ns);
		settle(l, e, &v, now_ns);
	}
}

static uint64_t next_look(struct lane *l, uint64_t now_ns)
{
	uint64_t wait = backoff_wait(&l->backoff, now_ns), queued;

	pthread_mutex_lock(&l->lock);
	queued = l->stats.queued;
	pthread_mutex_unlock(&l->lock);
	if (wait && (queued || (l->spool && spool_get_stats(l->spool).items)))
		return queued ? MIN(wait, LOOK_AGAIN_NS) : wait;
	return queued ? LOOK_AGAIN_NS : UINT64_MAX;
}

uint64_t lane_run(struct lane *l, CURLM *multi, uint64_t now_ns, bool draining)
{
	drop_expired(l);
	if (sink_is_local(l->sink)) {
		store_all(l, now_ns);
	} else {
		spool_what_must_not_wait(l, now_ns);
		start_requests(l, multi, now_ns, draining);
		copy_spool_stats(l);
	}
	return next_look(l, now_ns);
}

bool lane_idle(struct lane *l)
{
	uint32_t busy, spooled;
	bool empty;

	pthread_mutex_lock(&l->lock);
	empty = !l->queue.head;
	pthread_mutex_unlock(&l->lock);
	free_slot(l, &busy, &spooled);
	return empty && !busy;
}

void lane_stop(struct lane *l, CURLM *multi)
{
	struct entry *e, *next;

	for (uint32_t i = 0; i < l->o.concurrency; i++) {
		struct slot *s = &l->slots[i];

		if (s->entries)
			curl_multi_remove_handle(multi, s->transfer.curl);
		for (e = take(s->entries); e; e = next) {
			next = e->next;
			push_locked(l, e, false);
		}
	}
	l->spool_after_ns = 0;
	while ((e = pop_locked(l)))
		if (!spool_away(l, e, 0))
			drop_locked(l, e, DELIVERY_SHUTDOWN);
	copy_spool_stats(l);
	pthread_mutex_lock(&l->lock);
	l->stats.in_flight = 0;
	pthread_mutex_unlock(&l->lock);
}

void lane_stats(struct lane *l, uint64_t now_ns, struct sink_stats *ret)
{
	pthread_mutex_lock(&l->lock);
	*ret = l->stats;
	ret->spooled = l->spool_stats.items;
	ret->spool_bytes = l->spool_stats.bytes;
	ret->spool_found = l->spool_stats.found;
	ret->dropped[DELIVERY_EXPIRED] += l->spool_stats.expired;
	ret->dropped[DELIVERY_SPOOL_FULL] += l->spool_stats.evicted;
	ret->dropped[DELIVERY_SPOOL_TORN] += l->spool_stats.torn;
	ret->backoff_ns = l->waits_until_ns > now_ns ? l->waits_until_ns - now_ns : 0;
	pthread_mutex_unlock(&l->lock);
	ret->name = sink_name(l->sink);
}
