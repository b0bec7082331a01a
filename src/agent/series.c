/* series.c - see series.h. */
#include "agent/series.h"

#define UNWANTED UINT32_MAX	/* in place of a series */

enum {
	TEXT_MAX = LABELS_MAX * (LABEL_NAME_MAX + 2 * LABEL_VALUE_MAX),
};

/* What decides labels: entries that agree in it are in one series, so that they are asked for once. */
struct owner {
	uint64_t start_time, exec_id, cgroup_id;
	uint32_t pid, global_pid, exe, uid;
	char comm[WK_COMM_LEN];
};

struct split {
	struct series_set set;
	struct map owners;	/* struct owner -> series[] */
	uint32_t *series;
	size_t series_cap;
	struct strtab texts;	/* of label sets ... */
	uint32_t *of_text;	/* ... and the series of each, + 1; 0: none */
	size_t of_text_cap;
	series_labels *labels;
	void *ctx;
	uint32_t max;
};

static bool is_other(const struct labels *l)
{
	const char *service = labels_get(l, "service_name");

	return service && !strcmp(service, SERIES_OTHER);
}

static int other_labels(struct labels *l)
{
	struct labels other = LABELS_INIT;
	const char *node = labels_get(l, "node");
	int r = labels_set(&other, "service_name", SERIES_OTHER);

	if (!r && node)
		r = labels_set(&other, "node", node);
	if (r) {
		labels_free(&other);
		return r;
	}
	labels_free(l);
	*l = other;
	return 0;
}

static int grow_zeroed(uint32_t **array, size_t *cap, size_t need)
{
	size_t old = *cap;
	int r = array_grow(array, cap, need, sizeof(**array));

	if (!r)
		memset(*array + old, 0, (*cap - old) * sizeof(**array));
	return r;
}

/* The series with these labels; takes them when it succeeds. */
static int intern(struct split *s, struct labels *l, uint32_t *ret)
{
	cleanup(buf_cleanup) struct buf text = BUF_INIT(TEXT_MAX);
	uint32_t id;
	int r;

	labels_text(l, &text);
	r = text.err ? text.err : strtab_put(&s->texts, text.data, text.len, &id);
	if (!r)
		r = grow_zeroed(&s->of_text, &s->of_text_cap, (size_t)id + 1);
	if (r)
		return r;
	if (!s->of_text[id]) {
		if (s->set.n >= s->max && !is_other(l)) {
			r = other_labels(l);
			return r ? r : intern(s, l, ret);
		}
		r = array_grow(&s->set.v, &s->set.cap, s->set.n + 1, sizeof(*s->set.v));
		if (r)
			return r;
		s->set.v[s->set.n++] = (struct series){ .labels = *l };
		s->of_text[id] = (uint32_t)s->set.n;
	} else {
		labels_free(l);
	}
	*ret = s->of_text[id] - 1;
	return 0;
}

static int series_of(struct split *s, const struct samples_key *k, uint32_t *ret)
{
	struct labels l = LABELS_INIT;
	int r = s->labels(s->ctx, k, &l);

	if (r) {
		*ret = UNWANTED;
		return r < 0 ? r : 0;
	}
	r = intern(s, &l, ret);
	if (r)
		labels_free(&l);
	return r;
}

static int owner_series(struct split *s, const struct samples_key *k, uint32_t *ret)
{
	struct owner o = { .start_time = k->start_time, .exec_id = k->exec_id,
			   .cgroup_id = k->cgroup_id, .pid = k->pid, .global_pid = k->global_pid,
			   .exe = k->exe, .uid = k->uid };
	uint32_t n;
	bool added;
	int r;

	memcpy(o.comm, k->comm, sizeof(o.comm));
	r = array_grow(&s->series, &s->series_cap, s->owners.n + 1, sizeof(*s->series));
	if (!r)
		r = map_put(&s->owners, &o, &n, &added);
	if (!r && added)
		r = series_of(s, k, &s->series[n]);
	if (!r)
		*ret = s->series[n];
	return r;
}

static int add(struct split *s, const struct samples *samples, uint32_t entry)
{
	struct series *v;
	uint32_t n;
	int r = owner_series(s, samples_key(samples, entry), &n);

	if (r || n == UNWANTED)
		return r;
	v = &s->set.v[n];
	r = array_grow(&v->entries, &v->cap, v->n + 1, sizeof(*v->entries));
	if (r)
		return r;
	v->entries[v->n++] = entry;
	v->samples += samples->values[entry].count;
	return 0;
}

int series_split(const struct samples *samples, series_labels *labels, void *ctx,
		 uint32_t max_series, struct series_set *ret)
{
	struct split s = { .owners = MAP_INIT(sizeof(struct owner)), .texts = STRTAB_INIT,
			   .labels = labels, .ctx = ctx, .max = max_series };
	int r = 0;

	for (uint32_t i = 0; i < samples_entries(samples) && !r; i++)
		r = add(&s, samples, i);
	for (size_t i = 0; i < s.set.n; i++)
		if (is_other(&s.set.v[i].labels))
			s.set.joined += s.set.v[i].samples;
	map_free(&s.owners);
	strtab_free(&s.texts);
	free(s.of_text);
	free(s.series);
	if (r)
		series_free(&s.set);
	else
		*ret = s.set;
	return r;
}

void series_free(struct series_set *set)
{
	for (size_t i = 0; i < set->n; i++) {
		labels_free(&set->v[i].labels);
		free(set->v[i].entries);
	}
	free(set->v);
	*set = (struct series_set){ 0 };
}
