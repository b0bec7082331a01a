/* item.c - see item.h. */
#include "net/item.h"

#include <time.h>

#include "spool.pb-c.h"

static int64_t realtime_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* A metric name: what isn't allowed in one becomes '_', as in names of labels. */
static int clean_type(const char *type, char **ret)
{
	cleanup(labels_cleanup) struct labels one = LABELS_INIT;
	int r = labels_set(&one, *type ? type : "profile", "x");

	if (r)
		return r;
	*ret = strdup(one.v[0].name);
	return *ret ? 0 : -ENOMEM;
}

int item_new(const struct labels *labels, const char *type, const struct item_profile *profile,
	     struct item **ret)
{
	cleanup(item_cleanup) struct item *it = calloc(1, sizeof(*it));
	int r;

	if (!it) {
		free(profile->pprof);
		return -ENOMEM;
	}
	atomic_init(&it->refs, 1);
	it->pprof = profile->pprof;
	it->len = profile->len;
	it->raw = profile->raw;
	it->time_nanos = profile->time_nanos;
	it->put_nanos = realtime_ns();
	r = labels_copy(labels, &it->labels);
	if (!r)
		r = labels_default(&it->labels, LABELS_SERVICE, ITEM_DEFAULT_SERVICE);
	if (!r)
		r = clean_type(type, &it->type);
	if (!r)
		*ret = take(it);
	return r;
}

struct item *item_ref(struct item *it)
{
	atomic_fetch_add_explicit(&it->refs, 1, memory_order_relaxed);
	return it;
}

void item_unref(struct item *it)
{
	if (!it || atomic_fetch_sub_explicit(&it->refs, 1, memory_order_acq_rel) != 1)
		return;
	labels_free(&it->labels);
	free(it->type);
	free(it->pprof);
	free(it);
}

static size_t label_bytes(const struct item *it)
{
	size_t n = strlen("__name__") + strlen(it->type);

	for (size_t i = 0; i < it->labels.n; i++)
		n += strlen(it->labels.v[i].name) + strlen(it->labels.v[i].value);
	return n;
}

size_t item_bytes(const struct item *it)
{
	return sizeof(*it) + it->len + label_bytes(it) + it->labels.n * 2 * sizeof(void *);
}

size_t item_counted_bytes(const struct item *it)
{
	return it->raw + label_bytes(it);
}

void item_encode(const struct item *it, struct buf *out)
{
	Wick__SpooledItem m = WICK__SPOOLED_ITEM__INIT;
	Wick__SpooledLabel labels[LABELS_MAX + 1], *ptrs[LABELS_MAX + 1];
	cleanup(freep_cleanup) uint8_t *bytes = NULL;
	size_t n;

	for (size_t i = 0; i < it->labels.n; i++) {
		wick__spooled_label__init(&labels[i]);
		labels[i].name = it->labels.v[i].name;
		labels[i].value = it->labels.v[i].value;
		ptrs[i] = &labels[i];
	}
	m.type = it->type;
	m.n_labels = it->labels.n;
	m.labels = ptrs;
	m.pprof.data = it->pprof;
	m.pprof.len = it->len;
	m.time_nanos = it->time_nanos;
	m.put_nanos = it->put_nanos;
	m.raw = (uint32_t)MIN(it->raw, UINT32_MAX);
	n = wick__spooled_item__get_packed_size(&m);
	bytes = n > ITEM_MAX_BYTES ? NULL : malloc(n);
	if (!bytes) {
		out->err = out->err ? out->err : n > ITEM_MAX_BYTES ? -E2BIG : -ENOMEM;
		return;
	}
	wick__spooled_item__pack(&m, bytes);
	buf_bytes(out, bytes, n);
}

static int from_message(const Wick__SpooledItem *m, struct item **ret)
{
	cleanup(labels_cleanup) struct labels l = LABELS_INIT;
	struct item_profile p = { .len = m->pprof.len, .raw = m->raw, .time_nanos = m->time_nanos };
	int r = 0;

	for (size_t i = 0; i < m->n_labels && !r; i++)
		r = labels_set(&l, m->labels[i]->name, m->labels[i]->value);
	if (r)
		return r == -ENOMEM ? r : -EBADMSG;
	p.pprof = malloc(p.len ? p.len : 1);
	if (!p.pprof)
		return -ENOMEM;
	if (p.len)
		memcpy(p.pprof, m->pprof.data, p.len);
	r = item_new(&l, m->type, &p, ret);
	if (!r)
		(*ret)->put_nanos = m->put_nanos;
	return r == -E2BIG ? -EBADMSG : r;
}

static void message_cleanup(Wick__SpooledItem **m)
{
	if (*m)
		wick__spooled_item__free_unpacked(*m, NULL);
}

int item_decode(const void *bytes, size_t n, struct item **ret)
{
	cleanup(message_cleanup) Wick__SpooledItem *m =
		n > ITEM_MAX_BYTES ? NULL : wick__spooled_item__unpack(NULL, n, bytes);

	return m ? from_message(m, ret) : -EBADMSG;
}
