/* profile.c - see profile.h.
 *
 * What has a fixed size (mapping, function, sample) is a key of a map, so that its number is its
 * id; what has not (location with lines, stack, label set) is interned as bytes in a strtab, whose
 * empty string, number 0, is at once "no location", "no frames" and "no labels". Nothing there is
 * aligned, therefore the getters copy. Compared by memcmp: the stored structs have no padding. */
#include "profile/profile.h"

struct mapping_key {
	uint64_t start, limit, offset;
	uint32_t file, build_id;
	uint64_t has_functions;
};

struct function_key {
	int64_t start_line;
	uint32_t name, system_name, file, zero;
};

struct sample_key {
	uint32_t stack, labels;
};

struct stored_location {
	uint64_t address;
	uint32_t mapping, folded;
};

struct stored_label {
	int64_t num;
	uint32_t key, str, unit, zero;
};

_Static_assert(sizeof(struct mapping_key) == 40, "no padding");
_Static_assert(sizeof(struct function_key) == 24, "no padding");
_Static_assert(sizeof(struct stored_location) == 16, "no padding");
_Static_assert(sizeof(struct stored_label) == 24, "no padding");
_Static_assert(sizeof(struct profile_line) == 16, "no padding");

int profile_new(struct profile **ret)
{
	struct profile *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->strings = p->locations = p->stacks = p->labels = (struct strtab)STRTAB_INIT;
	p->mappings = (struct map)MAP_INIT(sizeof(struct mapping_key));
	p->functions = (struct map)MAP_INIT(sizeof(struct function_key));
	p->samples = (struct map)MAP_INIT(sizeof(struct sample_key));
	*ret = p;
	return 0;
}

void profile_free(struct profile *p)
{
	if (!p)
		return;
	strtab_free(&p->strings);
	strtab_free(&p->locations);
	strtab_free(&p->stacks);
	strtab_free(&p->labels);
	map_free(&p->mappings);
	map_free(&p->functions);
	map_free(&p->samples);
	free(p->types);
	free(p->comments);
	free(p->mapping_has);
	free(p->values);
	free(p);
}

static bool valid_string(const struct profile *p, uint32_t id)
{
	return id < strtab_count(&p->strings);
}

/* ---- adding ---- */

static bool is_ascii(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] >= 0x80)
			return false;
	return true;
}

int profile_string_n(struct profile *p, const char *s, size_t n, uint32_t *ret)
{
	cleanup(buf_cleanup) struct buf clean = BUF_INIT(SIZE_MAX / 4);

	if (is_ascii(s, n))
		return strtab_put(&p->strings, s, n, ret);
	buf_utf8(&clean, s, n);
	return clean.err ? clean.err : strtab_put(&p->strings, clean.data, clean.len, ret);
}

int profile_string(struct profile *p, const char *s, uint32_t *ret)
{
	return profile_string_n(p, s, strlen(s), ret);
}

static int value_type(struct profile *p, const char *type, const char *unit,
		      struct profile_value_type *ret)
{
	struct profile_value_type vt;
	int r = profile_string(p, type, &vt.type);

	if (!r)
		r = profile_string(p, unit, &vt.unit);
	if (!r)
		*ret = vt;
	return r;
}

int profile_sample_type_put(struct profile *p, const struct profile_value_type *vt)
{
	int r;

	if (p->samples.n || !valid_string(p, vt->type) || !valid_string(p, vt->unit))
		return -EINVAL;
	r = array_grow(&p->types, &p->types_cap, p->ntypes + 1, sizeof(*p->types));
	if (!r)
		p->types[p->ntypes++] = *vt;
	return r;
}

int profile_sample_type(struct profile *p, const char *type, const char *unit)
{
	struct profile_value_type vt = { 0 };
	int r = value_type(p, type, unit, &vt);

	return r ? r : profile_sample_type_put(p, &vt);
}

int profile_set_period_type(struct profile *p, const char *type, const char *unit)
{
	return value_type(p, type, unit, &p->period_type);
}

int profile_comment_put(struct profile *p, uint32_t id)
{
	int r;

	if (!valid_string(p, id))
		return -EINVAL;
	for (size_t i = 0; i < p->ncomments; i++)
		if (p->comments[i] == id)
			return 0;
	r = array_grow(&p->comments, &p->comments_cap, p->ncomments + 1, sizeof(*p->comments));
	if (!r)
		p->comments[p->ncomments++] = id;
	return r;
}

int profile_comment(struct profile *p, const char *text)
{
	uint32_t id = 0;
	int r = profile_string(p, text, &id);

	return r ? r : profile_comment_put(p, id);
}

int profile_mapping(struct profile *p, const struct profile_mapping *m, uint32_t *ret_id)
{
	struct mapping_key key = { m->start, m->limit, m->offset, m->file, m->build_id,
				   m->has & PROFILE_HAS_FUNCTIONS };
	uint32_t n;
	bool added;
	int r;

	if (!valid_string(p, m->file) || !valid_string(p, m->build_id))
		return -EINVAL;
	r = array_grow(&p->mapping_has, &p->has_cap, p->mappings.n + 1, 1);
	if (!r)
		r = map_put(&p->mappings, &key, &n, &added);
	if (r)
		return r;
	p->mapping_has[n] = (uint8_t)((added ? 0 : p->mapping_has[n]) | m->has);
	*ret_id = n + 1;
	return 0;
}

int profile_function(struct profile *p, const struct profile_function *f, uint32_t *ret_id)
{
	struct function_key key = { f->start_line, f->name, f->system_name, f->file, 0 };
	uint32_t n;
	int r;

	if (!valid_string(p, f->name) || !valid_string(p, f->system_name) ||
	    !valid_string(p, f->file))
		return -EINVAL;
	r = map_put(&p->functions, &key, &n, NULL);
	if (!r)
		*ret_id = n + 1;
	return r;
}

int profile_location(struct profile *p, const struct profile_location *l,
		     const struct profile_line *lines, size_t n, uint32_t *ret_id)
{
	struct stored_location head = { l->address, l->mapping, l->folded };
	char few[sizeof(head) + 8 * sizeof(*lines)];
	size_t len = sizeof(head) + n * sizeof(*lines);
	cleanup(freep_cleanup) char *many = NULL;
	char *bytes = few;

	if (l->mapping > p->mappings.n || n > UINT32_MAX)
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		if (!lines[i].function || lines[i].function > p->functions.n)
			return -EINVAL;
	if (len > sizeof(few)) {
		many = bytes = malloc(len);
		if (!many)
			return -ENOMEM;
	}
	memcpy(bytes, &head, sizeof(head));
	if (n)
		memcpy(bytes + sizeof(head), lines, n * sizeof(*lines));
	return strtab_put(&p->locations, bytes, len, ret_id);
}

/* By what the labels say rather than by string ids, which depend on the order of arrival: so equal
 * sets are equal in every profile. */
static int compare_labels(const struct profile *p, const struct stored_label *a,
			  const struct stored_label *b)
{
	int r = 0;

	if (a->key != b->key)
		r = strcmp(profile_str(p, a->key), profile_str(p, b->key));
	if (!r && a->str != b->str)
		r = strcmp(profile_str(p, a->str), profile_str(p, b->str));
	if (!r && a->unit != b->unit)
		r = strcmp(profile_str(p, a->unit), profile_str(p, b->unit));
	if (!r)
		r = a->num < b->num ? -1 : a->num > b->num;
	if (!r)	/* texts that differ after a NUL only */
		r = memcmp(a, b, sizeof(*a));
	return r;
}

static int compare_labels_r(const void *a, const void *b, void *profile)
{
	return compare_labels(profile, a, b);
}

static int put_labels(struct profile *p, const struct profile_label *labels, size_t n,
		      uint32_t *ret)
{
	struct stored_label few[16], *set = few;
	cleanup(freep_cleanup) struct stored_label *many = NULL;
	bool sorted = true;

	if (n > ARRAY_SIZE(few)) {
		many = set = calloc(n, sizeof(*set));
		if (!many)
			return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		const struct profile_label *l = &labels[i];

		if (!valid_string(p, l->key) || !valid_string(p, l->str) ||
		    !valid_string(p, l->unit))
			return -EINVAL;
		set[i] = (struct stored_label){ .key = l->key, .str = l->str };
		if (!l->str) {
			set[i].num = l->num;
			set[i].unit = l->unit;
		}
		sorted = sorted && (!i || compare_labels(p, &set[i - 1], &set[i]) <= 0);
	}
	if (!sorted)
		qsort_r(set, n, sizeof(*set), compare_labels_r, p);
	return strtab_put(&p->labels, (const char *)set, n * sizeof(*set), ret);
}

int profile_sample(struct profile *p, const struct profile_stack *stack,
		   const struct profile_label *labels, size_t nlabels, const int64_t *values,
		   uint32_t *ret_id)
{
	const uint32_t nlocations = profile_location_count(p);
	struct sample_key key;
	uint32_t n;
	bool added;
	int r;

	if (!p->ntypes)
		return -EINVAL;
	for (size_t i = 0; i < stack->n; i++)
		if (!stack->ids[i] || stack->ids[i] > nlocations)
			return -EINVAL;
	r = strtab_put(&p->stacks, stack->n ? (const char *)stack->ids : "",
		       stack->n * sizeof(*stack->ids), &key.stack);
	if (!r)
		r = put_labels(p, labels, nlabels, &key.labels);
	if (!r)
		r = array_grow(&p->values, &p->values_cap, (p->samples.n + 1) * p->ntypes,
			       sizeof(*p->values));
	if (!r)
		r = map_put(&p->samples, &key, &n, &added);
	if (r)
		return r;
	for (size_t i = 0; i < p->ntypes; i++) {
		int64_t *v = &p->values[n * p->ntypes + i];

		*v = added ? values[i] : profile_add(*v, values[i]);
	}
	if (ret_id)
		*ret_id = n;
	return 0;
}

int profile_set_main_mapping(struct profile *p, uint32_t id)
{
	if (!id || id > p->mappings.n)
		return -EINVAL;
	p->main_mapping = id;
	return 0;
}

/* ---- reading ---- */

uint32_t profile_find_string(const struct profile *p, const char *s)
{
	const uint32_t n = strtab_count(&p->strings);
	const size_t len = strlen(s);

	for (uint32_t i = 0; i < n; i++)
		if (strtab_len(&p->strings, i) == len && !memcmp(profile_str(p, i), s, len))
			return i;
	return MAP_NONE;
}

size_t profile_default_type(const struct profile *p)
{
	for (size_t i = 0; p->default_sample_type && i < p->ntypes; i++)
		if (p->types[i].type == p->default_sample_type)
			return i;
	return p->ntypes ? p->ntypes - 1 : 0;
}

int profile_find_type(const struct profile *p, const char *type)
{
	for (size_t i = 0; i < p->ntypes; i++)
		if (!strcmp(profile_str(p, p->types[i].type), type))
			return (int)i;
	return -ENOENT;
}

uint32_t profile_mapping_count(const struct profile *p)
{
	return (uint32_t)p->mappings.n;
}

uint32_t profile_function_count(const struct profile *p)
{
	return (uint32_t)p->functions.n;
}

uint32_t profile_location_count(const struct profile *p)
{
	return strtab_count(&p->locations) - 1;
}

uint32_t profile_sample_count(const struct profile *p)
{
	return (uint32_t)p->samples.n;
}

uint32_t profile_main_mapping(const struct profile *p)
{
	return p->main_mapping ? p->main_mapping : p->mappings.n ? 1 : 0;
}

struct profile_mapping profile_mapping_get(const struct profile *p, uint32_t id)
{
	const struct mapping_key *k = map_key(&p->mappings, id - 1);

	return (struct profile_mapping){ k->start, k->limit, k->offset, k->file, k->build_id,
					 p->mapping_has[id - 1] };
}

struct profile_function profile_function_get(const struct profile *p, uint32_t id)
{
	const struct function_key *k = map_key(&p->functions, id - 1);

	return (struct profile_function){ k->name, k->system_name, k->file, k->start_line };
}

struct profile_location profile_location_get(const struct profile *p, uint32_t id)
{
	struct stored_location l;

	memcpy(&l, strtab_get(&p->locations, id), sizeof(l));
	return (struct profile_location){ l.address, l.mapping, l.folded };
}

size_t profile_line_count(const struct profile *p, uint32_t location)
{
	return (strtab_len(&p->locations, location) - sizeof(struct stored_location)) /
	       sizeof(struct profile_line);
}

struct profile_line profile_line_get(const struct profile *p, uint32_t location, size_t i)
{
	struct profile_line line;

	memcpy(&line, strtab_get(&p->locations, location) + sizeof(struct stored_location) +
			      i * sizeof(line), sizeof(line));
	return line;
}

uint32_t profile_stack_id(const struct profile *p, uint32_t sample)
{
	return ((const struct sample_key *)map_key(&p->samples, sample))->stack;
}

uint32_t profile_labels_id(const struct profile *p, uint32_t sample)
{
	return ((const struct sample_key *)map_key(&p->samples, sample))->labels;
}

uint32_t profile_labels_count(const struct profile *p)
{
	return strtab_count(&p->labels);
}

size_t profile_depth(const struct profile *p, uint32_t sample)
{
	return strtab_len(&p->stacks, profile_stack_id(p, sample)) / sizeof(uint32_t);
}

uint32_t profile_frame(const struct profile *p, uint32_t sample, size_t i)
{
	uint32_t id;

	memcpy(&id, strtab_get(&p->stacks, profile_stack_id(p, sample)) + i * sizeof(id),
	       sizeof(id));
	return id;
}

size_t profile_label_count(const struct profile *p, uint32_t labels_id)
{
	return strtab_len(&p->labels, labels_id) / sizeof(struct stored_label);
}

struct profile_label profile_label_get(const struct profile *p, uint32_t labels_id, size_t i)
{
	struct stored_label l;

	memcpy(&l, strtab_get(&p->labels, labels_id) + i * sizeof(l), sizeof(l));
	return (struct profile_label){ l.num, l.key, l.str, l.unit };
}

bool profile_label_find(const struct profile *p, uint32_t labels_id, uint32_t key,
			struct profile_label *ret)
{
	const size_t n = profile_label_count(p, labels_id);

	for (size_t i = 0; i < n; i++) {
		struct profile_label l = profile_label_get(p, labels_id, i);

		if (l.key == key) {
			*ret = l;
			return true;
		}
	}
	return false;
}

const int64_t *profile_values(const struct profile *p, uint32_t sample)
{
	return p->values + (size_t)sample * p->ntypes;
}

struct weighed {
	int64_t weight;
	uint32_t sample;
};

static int heavier_first(const void *pa, const void *pb)
{
	const struct weighed *a = pa, *b = pb;

	if (a->weight != b->weight)
		return a->weight < b->weight ? 1 : -1;
	return a->sample < b->sample ? -1 : a->sample > b->sample;
}

int profile_sorted(const struct profile *p, size_t type, uint32_t **ret)
{
	const size_t n = p->samples.n;
	cleanup(freep_cleanup) struct weighed *w = NULL;
	uint32_t *order;

	if (!n) {
		*ret = NULL;
		return 0;
	}
	w = calloc(n, sizeof(*w));
	order = malloc(n * sizeof(*order));
	if (!w || !order) {
		free(order);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		w[i] = (struct weighed){ profile_values(p, (uint32_t)i)[type], (uint32_t)i };
	qsort(w, n, sizeof(*w), heavier_first);
	for (size_t i = 0; i < n; i++)
		order[i] = w[i].sample;
	*ret = order;
	return 0;
}
