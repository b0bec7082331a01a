/* split.c - see split.h. */
#include "net/split.h"

#include "profile/pprof.h"

#define BAD_IN_TYPES "-: "

struct splitter {
	const struct profile *p;
	struct split_limits limits;
	split_part_fn *each;
	void *ctx;
	struct split_stats stats;
};

/* ---- a copy of some samples ---- */

/* Ids in the copy, by ids in the original; 0: not copied yet. */
struct copier {
	const struct profile *from;
	struct profile *to;
	uint32_t *strings, *mappings, *functions, *locations;
	uint32_t *ids;			/* of a stack */
	struct profile_label *labels;
	struct profile_line *lines;
	size_t ids_cap, labels_cap, lines_cap;
	uint32_t cut;			/* location that stands for what was left out; 0: not made yet */
};

static void copier_release(struct copier *c)
{
	free(c->strings);
	free(c->mappings);
	free(c->functions);
	free(c->locations);
	free(c->ids);
	free(c->labels);
	free(c->lines);
}

static int copier_init(struct copier *c)
{
	c->strings = calloc(strtab_count(&c->from->strings), sizeof(uint32_t));
	c->mappings = calloc(profile_mapping_count(c->from) + 1, sizeof(uint32_t));
	c->functions = calloc(profile_function_count(c->from) + 1, sizeof(uint32_t));
	c->locations = calloc(profile_location_count(c->from) + 1, sizeof(uint32_t));
	return c->strings && c->mappings && c->functions && c->locations ? 0 : -ENOMEM;
}

static int copy_string(struct copier *c, uint32_t id, uint32_t *ret)
{
	int r = 0;

	if (id && !c->strings[id])
		r = profile_string_n(c->to, profile_str(c->from, id),
				     strtab_len(&c->from->strings, id), &c->strings[id]);
	*ret = c->strings[id];
	return r;
}

static int copy_mapping(struct copier *c, uint32_t id, uint32_t *ret)
{
	struct profile_mapping m;
	int r = 0;

	if (id && !c->mappings[id]) {
		m = profile_mapping_get(c->from, id);
		r = copy_string(c, m.file, &m.file);
		if (!r)
			r = copy_string(c, m.build_id, &m.build_id);
		if (!r)
			r = profile_mapping(c->to, &m, &c->mappings[id]);
		if (!r && id == profile_main_mapping(c->from))
			r = profile_set_main_mapping(c->to, c->mappings[id]);
	}
	*ret = c->mappings[id];
	return r;
}

static int copy_function(struct copier *c, uint32_t id, uint32_t *ret)
{
	struct profile_function f;
	int r = 0;

	if (id && !c->functions[id]) {
		f = profile_function_get(c->from, id);
		r = copy_string(c, f.name, &f.name);
		if (!r)
			r = copy_string(c, f.system_name, &f.system_name);
		if (!r)
			r = copy_string(c, f.file, &f.file);
		if (!r)
			r = profile_function(c->to, &f, &c->functions[id]);
	}
	*ret = c->functions[id];
	return r;
}

static int copy_location(struct copier *c, uint32_t id, uint32_t *ret)
{
	struct profile_location l = profile_location_get(c->from, id);
	size_t n = profile_line_count(c->from, id);
	int r = 0;

	*ret = c->locations[id];
	if (*ret)
		return 0;
	r = array_grow(&c->lines, &c->lines_cap, n, sizeof(*c->lines));
	for (size_t i = 0; i < n && !r; i++) {
		c->lines[i] = profile_line_get(c->from, id, i);
		r = copy_function(c, c->lines[i].function, &c->lines[i].function);
	}
	if (!r)
		r = copy_mapping(c, l.mapping, &l.mapping);
	if (!r)
		r = profile_location(c->to, &l, c->lines, n, &c->locations[id]);
	*ret = c->locations[id];
	return r;
}

static int copy_label(struct copier *c, struct profile_label *l)
{
	int r = copy_string(c, l->key, &l->key);

	if (!r)
		r = copy_string(c, l->str, &l->str);
	return r ? r : copy_string(c, l->unit, &l->unit);
}

static int make_cut(struct copier *c, uint32_t *ret)
{
	struct profile_function f = { 0 };
	struct profile_line line = { 0 };
	int r = 0;

	if (!c->cut) {
		r = profile_string(c->to, SPLIT_CUT, &f.name);
		if (!r)
			r = profile_function(c->to, &f, &line.function);
		if (!r)
			r = profile_location(c->to, &(struct profile_location){ 0 }, &line, 1,
					     &c->cut);
	}
	*ret = c->cut;
	return r;
}

/* The stack into c->ids, without its middle if it is too deep. */
static int copy_stack(struct copier *c, uint32_t n, size_t *ret_depth)
{
	const size_t whole = profile_depth(c->from, n), depth = MIN(whole, SPLIT_FRAMES);
	const size_t leaf = whole > depth ? depth - SPLIT_ROOT - 1 : depth;
	int r = array_grow(&c->ids, &c->ids_cap, depth, sizeof(*c->ids));

	for (size_t i = 0; i < leaf && !r; i++)
		r = copy_location(c, profile_frame(c->from, n, i), &c->ids[i]);
	if (!r && leaf < depth)
		r = make_cut(c, &c->ids[leaf]);
	for (size_t i = leaf + 1; i < depth && !r; i++)
		r = copy_location(c, profile_frame(c->from, n, whole - depth + i), &c->ids[i]);
	*ret_depth = depth;
	return r;
}

static int copy_sample(struct copier *c, uint32_t n)
{
	uint32_t set = profile_labels_id(c->from, n);
	size_t depth, nlabels = profile_label_count(c->from, set);
	int r = copy_stack(c, n, &depth);

	if (!r)
		r = array_grow(&c->labels, &c->labels_cap, nlabels, sizeof(*c->labels));
	for (size_t i = 0; i < nlabels && !r; i++) {
		c->labels[i] = profile_label_get(c->from, set, i);
		r = copy_label(c, &c->labels[i]);
	}
	return r ? r
		 : profile_sample(c->to, &(struct profile_stack){ c->ids, depth }, c->labels,
				  nlabels, profile_values(c->from, n), NULL);
}

static int clean_type(struct copier *c, uint32_t id, uint32_t *ret)
{
	cleanup(freep_cleanup) char *s = strdup(profile_str(c->from, id));

	if (!s)
		return -ENOMEM;
	for (char *bad = s; (bad = strpbrk(bad, BAD_IN_TYPES)); bad++)
		*bad = '_';
	return profile_string(c->to, s, ret);
}

static int clean_value_type(struct copier *c, struct profile_value_type vt,
			    struct profile_value_type *ret)
{
	int r = clean_type(c, vt.type, &ret->type);

	return r ? r : clean_type(c, vt.unit, &ret->unit);
}

static int copy_header(struct copier *c)
{
	const struct profile *p = c->from;
	struct profile *to = c->to;
	struct profile_value_type vt;
	uint32_t text;
	int r = clean_value_type(c, p->period_type, &to->period_type);

	to->time_nanos = p->time_nanos;
	to->duration_nanos = p->duration_nanos;
	to->period = p->period;
	for (size_t i = 0; i < p->ntypes && !r; i++) {
		r = clean_value_type(c, p->types[i], &vt);
		if (!r)
			r = profile_sample_type_put(to, &vt);
	}
	if (!r)
		r = clean_type(c, p->default_sample_type, &to->default_sample_type);
	for (size_t i = 0; i < p->ncomments && !r; i++) {
		r = copy_string(c, p->comments[i], &text);
		if (!r)
			r = profile_comment_put(to, text);
	}
	if (!r)
		r = copy_string(c, p->drop_frames, &to->drop_frames);
	if (!r)
		r = copy_string(c, p->keep_frames, &to->keep_frames);
	return r ? r : copy_string(c, p->doc_url, &to->doc_url);
}

static int copy_samples(const struct profile *p, uint32_t from, uint32_t to, struct profile **ret)
{
	cleanup(copier_release) struct copier c = { .from = p };
	cleanup(profile_cleanup) struct profile *copy = NULL;
	int r = profile_new(&copy);

	if (r)
		return r;
	c.to = copy;
	r = copier_init(&c);
	if (!r)
		r = copy_header(&c);
	for (uint32_t i = from; i < to && !r; i++)
		r = copy_sample(&c, i);
	if (!r)
		*ret = take(copy);
	return r;
}

/* ---- parts ---- */

/* Bytes before gzip: the last four of a gzip member (RFC 1952 section 2.3.1). */
static size_t raw_size(const struct buf *gz)
{
	const unsigned char *end = (unsigned char *)gz->data + gz->len - 4;

	return end[0] | (size_t)end[1] << 8 | (size_t)end[2] << 16 | (size_t)end[3] << 24;
}

/* Hands the profile over if it is within the limits; else *ret_fits is false. */
static int emit(struct splitter *s, const struct profile *p, bool *ret_fits)
{
	cleanup(buf_cleanup) struct buf gz = BUF_INIT(ITEM_MAX_BYTES);
	struct item_profile part = { .time_nanos = p->time_nanos };
	char *bytes;
	int r = pprof_write(p, true, &gz);

	*ret_fits = !r && raw_size(&gz) <= s->limits.raw;
	if (r == -E2BIG)
		return 0;
	if (r || !*ret_fits)
		return r;
	part.raw = raw_size(&gz);
	r = buf_take(&gz, &bytes, &part.len);
	if (r)
		return r;
	part.pprof = bytes;
	s->stats.parts++;
	return s->each(s->ctx, &part);
}

static int emit_range(struct splitter *s, uint32_t from, uint32_t to)
{
	cleanup(profile_cleanup) struct profile *copy = NULL;
	bool fits = false;
	int r = 0;

	if (to - from <= s->limits.samples) {
		r = copy_samples(s->p, from, to, &copy);
		if (r)
			return r;
		copy->time_nanos += s->stats.parts;
		r = emit(s, copy, &fits);
	}
	if (r || fits)
		return r;
	if (to - from == 1) {
		s->stats.unsendable++;
		return 0;
	}
	profile_free(take(copy));
	r = emit_range(s, from, from + (to - from) / 2);
	return r ? r : emit_range(s, from + (to - from) / 2, to);
}

static bool is_empty(const struct profile *p, struct profile_value_type vt)
{
	return !*profile_str(p, vt.type) || !*profile_str(p, vt.unit);
}

static bool is_complete(const struct profile *p)
{
	for (size_t i = 0; i < p->ntypes; i++)
		if (is_empty(p, p->types[i]))
			return false;
	return p->ntypes && !is_empty(p, p->period_type) && p->period > 0 &&
	       p->duration_nanos > 0 && p->time_nanos > 0;
}

static bool has_bad_types(const struct profile *p)
{
	bool bad = strpbrk(profile_str(p, p->period_type.type), BAD_IN_TYPES) ||
		   strpbrk(profile_str(p, p->period_type.unit), BAD_IN_TYPES);

	for (size_t i = 0; i < p->ntypes; i++)
		bad |= strpbrk(profile_str(p, p->types[i].type), BAD_IN_TYPES) ||
		       strpbrk(profile_str(p, p->types[i].unit), BAD_IN_TYPES);
	return bad;
}

static bool is_deep(const struct profile *p)
{
	for (uint32_t i = 0; i < profile_sample_count(p); i++)
		if (profile_depth(p, i) > SPLIT_FRAMES)
			return true;
	return false;
}

int split_profile(const struct profile *p, const struct split_limits *limits,
		  split_part_fn *each, void *ctx, struct split_stats *ret)
{
	struct splitter s = { .p = p, .limits = *limits, .each = each, .ctx = ctx };
	const uint32_t n = profile_sample_count(p);
	bool fits = false;
	int r = 0;

	if (!s.limits.raw)
		s.limits.raw = SPLIT_RAW_BYTES;
	if (!s.limits.samples)
		s.limits.samples = SPLIT_SAMPLES;
	if (n && !is_complete(p))
		return -EINVAL;
	if (n && n <= s.limits.samples && !has_bad_types(p) && !is_deep(p))
		r = emit(&s, p, &fits);
	if (n && !r && !fits)
		r = emit_range(&s, 0, n);
	*ret = s.stats;
	return r;
}

const char *split_type(const struct profile *p)
{
	const char *type = p->ntypes ? profile_str(p, p->types[profile_default_type(p)].type) : "";

	return !strcmp(type, "cpu") ? "process_cpu" : type;
}
