/* merge.c - see merge.h. */
#include "profile/merge.h"

#include "profile/pprof.h"

struct mapping_like {	/* what makes two mappings one */
	uint64_t pages, offset, has_functions;
	uint32_t file, build_id;	/* strings of `into`; file only without a build id */
};

_Static_assert(sizeof(struct mapping_like) == 32, "no padding");

struct merge {
	struct profile *into;
	const struct profile *src;
	struct map like;	/* mappings of `into` */
	uint32_t *like_id;
	size_t like_cap;
	/* src id to id in `into`, 0 or MAP_NONE: not copied yet */
	uint32_t *strings, *functions, *mappings, *locations;
	uint32_t *stack;
	struct profile_label *labels;
	struct profile_line *lines;
	size_t stack_cap, labels_cap, lines_cap;
};

static void merge_release(struct merge *m)
{
	map_free(&m->like);
	free(m->like_id);
	free(m->strings);
	free(m->functions);
	free(m->mappings);
	free(m->locations);
	free(m->stack);
	free(m->labels);
	free(m->lines);
}

static int copy_string(struct merge *m, uint32_t id, uint32_t *ret)
{
	int r = 0;

	if (id && !m->strings[id])	/* only "" is 0 */
		r = profile_string_n(m->into, profile_str(m->src, id),
				     strtab_len(&m->src->strings, id), &m->strings[id]);
	if (!r)
		*ret = m->strings[id];
	return r;
}

static int copy_type(struct merge *m, const struct profile_value_type *vt,
		     struct profile_value_type *ret)
{
	int r = copy_string(m, vt->type, &ret->type);

	return r ? r : copy_string(m, vt->unit, &ret->unit);
}

/* ---- header ---- */

static bool same_string(const struct merge *m, uint32_t a, uint32_t b)
{
	return !strcmp(profile_str(m->into, a), profile_str(m->src, b));
}

static bool same_type(const struct merge *m, const struct profile_value_type *a,
		      const struct profile_value_type *b)
{
	return same_string(m, a->type, b->type) && same_string(m, a->unit, b->unit);
}

static void describe(const struct profile *p, const struct profile_value_type *types, size_t n,
		     struct buf *out)
{
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%s%s/%s", i ? " " : "", profile_str(p, types[i].type),
			   profile_str(p, types[i].unit));
	if (!n)
		buf_str(out, "none");
}

static int differ(const struct merge *m, const char *what, const struct profile_value_type *a,
		  size_t na, const struct profile_value_type *b, size_t nb, struct err *e)
{
	cleanup(buf_cleanup) struct buf ta = BUF_INIT(65536), tb = BUF_INIT(65536);

	describe(m->into, a, na, &ta);
	describe(m->src, b, nb, &tb);
	return err_set(e, -EINVAL, "%s differ: %.200s and %.200s", what, ta.data ? ta.data : "",
		       tb.data ? tb.data : "");
}

static int check_types(const struct merge *m, struct err *e)
{
	const struct profile *a = m->into, *b = m->src;
	bool same = a->ntypes == b->ntypes;

	for (size_t i = 0; same && i < a->ntypes; i++)
		same = same_type(m, &a->types[i], &b->types[i]);
	if (!same)
		return differ(m, "sample types", a->types, a->ntypes, b->types, b->ntypes, e);
	if (!same_type(m, &a->period_type, &b->period_type))
		return differ(m, "period types", &a->period_type, 1, &b->period_type, 1, e);
	return 0;
}

/* `into` is new: it takes over what must be the same in all the others. */
static int take_types(struct merge *m)
{
	struct profile *a = m->into;
	const struct profile *b = m->src;
	int r = 0;

	for (size_t i = 0; !r && i < b->ntypes; i++) {
		struct profile_value_type vt = { 0 };

		r = copy_type(m, &b->types[i], &vt);
		if (!r)
			r = profile_sample_type_put(a, &vt);
	}
	if (!r)
		r = copy_type(m, &b->period_type, &a->period_type);
	if (!r)
		r = copy_string(m, b->drop_frames, &a->drop_frames);
	if (!r)
		r = copy_string(m, b->keep_frames, &a->keep_frames);
	return r;
}

static int merge_header(struct merge *m)
{
	struct profile *a = m->into;
	const struct profile *b = m->src;
	int r = 0;

	for (size_t i = 0; !r && i < b->ncomments; i++) {
		uint32_t id = 0;

		r = copy_string(m, b->comments[i], &id);
		if (!r)
			r = profile_comment_put(a, id);
	}
	if (!r && !a->default_sample_type)
		r = copy_string(m, b->default_sample_type, &a->default_sample_type);
	if (!r && !a->doc_url)
		r = copy_string(m, b->doc_url, &a->doc_url);
	if (r)
		return r;
	if (!a->time_nanos || (b->time_nanos && b->time_nanos < a->time_nanos))
		a->time_nanos = b->time_nanos;
	a->duration_nanos = profile_add(a->duration_nanos, b->duration_nanos);
	a->period = MAX(a->period, b->period);
	return 0;
}

/* ---- contents ---- */

static struct mapping_like likeness(const struct profile_mapping *pm)
{
	const uint64_t size = pm->limit - pm->start;

	return (struct mapping_like){
		.pages = size / 4096 + !!(size % 4096),
		.offset = pm->offset,
		.has_functions = pm->has & PROFILE_HAS_FUNCTIONS,
		.file = pm->build_id ? 0 : pm->file,
		.build_id = pm->build_id,
	};
}

/* The first mapping of its kind stands for it. */
static int remember(struct merge *m, const struct profile_mapping *pm, uint32_t id)
{
	const struct mapping_like like = likeness(pm);
	uint32_t n;
	bool added;
	int r = map_put(&m->like, &like, &n, &added);

	if (!r && added)
		r = array_grow(&m->like_id, &m->like_cap, n + 1, sizeof(*m->like_id));
	if (!r && added)
		m->like_id[n] = id;
	return r;
}

static int copy_mapping(struct merge *m, uint32_t id)
{
	struct profile_mapping pm = profile_mapping_get(m->src, id), first;
	struct mapping_like like;
	uint32_t n, new_id;
	int r = copy_string(m, pm.file, &pm.file);

	if (!r)
		r = copy_string(m, pm.build_id, &pm.build_id);
	if (r)
		return r;
	like = likeness(&pm);
	n = map_find(&m->like, &like);
	if (n != MAP_NONE) {
		/* Adding it once more adds up what its locations were given. */
		first = profile_mapping_get(m->into, m->like_id[n]);
		first.has |= pm.has;
		return profile_mapping(m->into, &first, &m->mappings[id]);
	}
	r = profile_mapping(m->into, &pm, &new_id);
	if (!r)
		r = remember(m, &pm, new_id);
	if (!r)
		m->mappings[id] = new_id;
	return r;
}

static int copy_function(struct merge *m, uint32_t id, uint32_t *ret)
{
	struct profile_function f;
	int r = 0;

	if (!m->functions[id]) {
		f = profile_function_get(m->src, id);
		r = copy_string(m, f.name, &f.name);
		if (!r)
			r = copy_string(m, f.system_name, &f.system_name);
		if (!r)
			r = copy_string(m, f.file, &f.file);
		if (!r)
			r = profile_function(m->into, &f, &m->functions[id]);
	}
	if (!r)
		*ret = m->functions[id];
	return r;
}

static int copy_location(struct merge *m, uint32_t id)
{
	struct profile_location l = profile_location_get(m->src, id);
	const size_t n = profile_line_count(m->src, id);
	int r = array_grow(&m->lines, &m->lines_cap, n, sizeof(*m->lines));

	if (!r && l.mapping) {
		const uint32_t to = m->mappings[l.mapping];

		l.address += profile_mapping_get(m->into, to).start -
			     profile_mapping_get(m->src, l.mapping).start;
		l.mapping = to;
	}
	for (size_t i = 0; !r && i < n; i++) {
		m->lines[i] = profile_line_get(m->src, id, i);
		r = copy_function(m, m->lines[i].function, &m->lines[i].function);
	}
	return r ? r : profile_location(m->into, &l, m->lines, n, &m->locations[id]);
}

static int copy_labels(struct merge *m, uint32_t set)
{
	const size_t n = profile_label_count(m->src, set);
	int r = array_grow(&m->labels, &m->labels_cap, n, sizeof(*m->labels));

	for (size_t i = 0; !r && i < n; i++) {
		struct profile_label *l = &m->labels[i];

		*l = profile_label_get(m->src, set, i);
		r = copy_string(m, l->key, &l->key);
		if (!r)
			r = copy_string(m, l->str, &l->str);
		if (!r)
			r = copy_string(m, l->unit, &l->unit);
	}
	return r;
}

static int copy_sample(struct merge *m, uint32_t n)
{
	const uint32_t set = profile_labels_id(m->src, n);
	const size_t depth = profile_depth(m->src, n);
	const int64_t *values = profile_values(m->src, n);
	bool zero = true;
	int r;

	for (size_t i = 0; i < m->src->ntypes; i++)
		zero = zero && !values[i];
	if (zero)
		return 0;
	r = array_grow(&m->stack, &m->stack_cap, depth, sizeof(*m->stack));
	for (size_t i = 0; !r && i < depth; i++) {
		const uint32_t id = profile_frame(m->src, n, i);

		if (!m->locations[id])
			r = copy_location(m, id);
		m->stack[i] = m->locations[id];
	}
	if (!r)
		r = copy_labels(m, set);
	if (r)
		return r;
	return profile_sample(m->into, &(struct profile_stack){ m->stack, depth }, m->labels,
			      profile_label_count(m->src, set), values, NULL);
}

/* Mappings first and all of them: that keeps their order, above all which is the main one. */
static int merge_contents(struct merge *m)
{
	const uint32_t main_id = profile_main_mapping(m->src);
	const bool has_main = profile_main_mapping(m->into);
	int r = 0;

	for (uint32_t id = 1; !r && id <= profile_mapping_count(m->into); id++) {
		const struct profile_mapping pm = profile_mapping_get(m->into, id);

		r = remember(m, &pm, id);
	}
	for (uint32_t id = 1; !r && id <= profile_mapping_count(m->src); id++)
		r = copy_mapping(m, id);
	if (!r && main_id && !has_main)
		r = profile_set_main_mapping(m->into, m->mappings[main_id]);
	for (uint32_t n = 0; !r && n < profile_sample_count(m->src); n++)
		r = copy_sample(m, n);
	return r;
}

int profile_merge(struct profile *into, const struct profile *src, struct err *e)
{
	cleanup(merge_release) struct merge m = {
		.into = into,
		.src = src,
		.like = MAP_INIT(sizeof(struct mapping_like)),
		.strings = calloc(strtab_count(&src->strings), sizeof(uint32_t)),
		.functions = calloc((size_t)profile_function_count(src) + 1, sizeof(uint32_t)),
		.mappings = calloc((size_t)profile_mapping_count(src) + 1, sizeof(uint32_t)),
		.locations = calloc((size_t)profile_location_count(src) + 1, sizeof(uint32_t)),
	};
	int r;

	if (!m.strings || !m.functions || !m.mappings || !m.locations)
		r = -ENOMEM;
	else if (into->ntypes)
		r = check_types(&m, e);
	else
		r = take_types(&m);
	if (r == -EINVAL)
		return r;
	if (!r)
		r = merge_header(&m);
	if (!r)
		r = merge_contents(&m);
	return r ? err_set(e, r, "%s", strerror(-r)) : 0;
}

int merge_files(const char *const *paths, size_t n, struct profile **ret, struct err *e)
{
	cleanup(profile_cleanup) struct profile *sum = NULL;
	struct err why = { "" };
	int r = n == 1 ? pprof_read_file(paths[0], 0, &sum, e) : profile_new(&sum);

	for (size_t i = 0; !r && n > 1 && i < n; i++) {
		cleanup(profile_cleanup) struct profile *one = NULL;

		r = pprof_read_file(paths[i], 0, &one, e);
		if (r)
			return r;
		r = profile_merge(sum, one, &why);
		if (r)
			return err_set(e, r, "%s can't be added: %.400s", paths[i], why.msg);
	}
	if (!r)
		*ret = take(sum);
	return r;
}
