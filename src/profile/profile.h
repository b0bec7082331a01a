/* profile.h - a profile in memory: pprof's data model, without repetition, in few bytes.
 *
 * Everything that makes, reads, merges or prints a profile meets here. Strings, mappings,
 * functions, locations and samples are interned: adding the same thing twice yields the same id,
 * and adding the same sample (stack and labels) twice adds its values up.
 *
 *	cleanup(profile_cleanup) struct profile *p = NULL;
 *	r = profile_new(&p);
 *	r = profile_sample_type(p, "samples", "count");		// before the first sample
 *	r = profile_sample_type(p, "cpu", "nanoseconds");
 *	r = profile_string(p, "main", &name);
 *	r = profile_function(p, &(struct profile_function){ .name = name }, &fn);
 *	r = profile_location(p, &(struct profile_location){ .mapping = m, .address = 0x1139 },
 *			     &(struct profile_line){ .function = fn, .line = 7 }, 1, &loc);
 *	r = profile_sample(p, &(struct profile_stack){ .ids = &loc, .n = 1 },
 *			   labels, nlabels, (int64_t[]){ 1, 10101010 }, NULL);
 *
 * Ids:       strings from 0 (the empty string), mappings, functions and locations from 1 in order
 *            of arrival without gaps (0: none); samples are numbered from 0 in order of arrival.
 *            An id stays valid as long as the profile.
 * Strings:   valid UTF-8 always: profile_string() replaces every other byte by U+FFFD. They may
 *            hold any control character, NUL too; whoever prints them takes care.
 * Values:    sums that leave int64 stop at INT64_MIN or INT64_MAX.
 * Errors:    adders return 0, -EINVAL (an id that doesn't exist, a sample before its types, too
 *            late a sample type: mistakes of the caller), -ENOMEM, -E2BIG (2^31 entries). What
 *            failed was not added; the profile stays usable.
 * Ownership: the profile copies everything; pointers it returns are borrowed until the next add.
 * Threads:   no locks; one writer, or any number of readers.
 * Cost:      adding is a hash look-up. A sample of 30 frames takes about 200 bytes if its stack is
 *            new and 45 if only its labels are; a location of one line about 70.
 */
#ifndef WICK_PROFILE_PROFILE_H
#define WICK_PROFILE_PROFILE_H

#include "base/buf.h"
#include "base/map.h"

struct profile_value_type {
	uint32_t type, unit;	/* strings */
};

enum {	/* what the locations of a mapping were given; bits of profile_mapping.has */
	PROFILE_HAS_FUNCTIONS = 1,
	PROFILE_HAS_FILENAMES = 2,
	PROFILE_HAS_LINE_NUMBERS = 4,
	PROFILE_HAS_INLINE_FRAMES = 8,
};

struct profile_mapping {
	uint64_t start, limit, offset;	/* addresses [start, limit), file offset of start */
	uint32_t file, build_id;	/* strings */
	uint32_t has;
};

struct profile_function {
	uint32_t name, system_name, file;	/* strings */
	int64_t start_line;
};

struct profile_line {
	int64_t line;
	uint32_t function;
	int32_t column;
};

struct profile_location {
	uint64_t address;
	uint32_t mapping;	/* 0: none */
	bool folded;		/* identical code folding: the name is one of several */
};

struct profile_label {
	int64_t num;		/* if str is 0 */
	uint32_t key, str;	/* strings */
	uint32_t unit;		/* string, of num */
};

struct profile_stack {
	const uint32_t *ids;	/* locations, leaf first */
	size_t n;
};

struct profile {
	/* Set and read these directly. Texts are string ids, 0: none. */
	int64_t time_nanos, duration_nanos, period;
	struct profile_value_type period_type;
	uint32_t default_sample_type;	/* the type of one sample type */
	uint32_t drop_frames, keep_frames, doc_url;

	/* The rest belongs to profile.c. */
	struct strtab strings;
	struct profile_value_type *types;
	uint32_t *comments;
	struct map mappings, functions, samples;
	uint8_t *mapping_has;		/* of each mapping */
	struct strtab locations;	/* a location with its lines is a string of bytes ... */
	struct strtab stacks, labels;	/* ... and so are a stack and a set of labels */
	int64_t *values;		/* ntypes for each sample */
	size_t ntypes, types_cap, ncomments, comments_cap, values_cap, has_cap;
	uint32_t main_mapping;
};

int must_check profile_new(struct profile **ret);
void profile_free(struct profile *p);
DEFINE_CLEANUP(profile, struct profile *, profile_free)

/* ---- adding ---- */

/* s must not lie in this profile (the table moves as it grows): pass ids around, not texts. */
int must_check profile_string_n(struct profile *p, const char *s, size_t n, uint32_t *ret);
int must_check profile_string(struct profile *p, const char *s, uint32_t *ret);
/* Appends a sample type. -EINVAL once there is a sample. */
int must_check profile_sample_type(struct profile *p, const char *type, const char *unit);
int must_check profile_sample_type_put(struct profile *p, const struct profile_value_type *vt);
int must_check profile_set_period_type(struct profile *p, const char *type, const char *unit);
/* Appends a line of comment, unless it is there already. */
int must_check profile_comment(struct profile *p, const char *text);
int must_check profile_comment_put(struct profile *p, uint32_t string);

/* Two mappings are one if they agree in everything but the three lesser bits of `has`, which add
 * up: symbolised and unsymbolised code of a file stay apart, so that the latter can be named
 * later, and the resolver may report what it found bit by bit. */
int must_check profile_mapping(struct profile *p, const struct profile_mapping *m,
			       uint32_t *ret_id);
int must_check profile_function(struct profile *p, const struct profile_function *f,
				uint32_t *ret_id);
/* lines: innermost inlined function first; n may be 0 (a frame without a name). */
int must_check profile_location(struct profile *p, const struct profile_location *l,
				const struct profile_line *lines, size_t n, uint32_t *ret_id);
/* Labels are a set: their order doesn't count. values has one entry for each sample type. ret_id
 * may be NULL. */
int must_check profile_sample(struct profile *p, const struct profile_stack *stack,
			      const struct profile_label *labels, size_t nlabels,
			      const int64_t *values, uint32_t *ret_id);

/* Makes a mapping the one that is written first, "the main binary" of viewers; it keeps its id
 * here. Without this it is mapping 1. -EINVAL: no such mapping. */
int must_check profile_set_main_mapping(struct profile *p, uint32_t id);

/* ---- reading; ids and indices must be in range ---- */

static inline const char *profile_str(const struct profile *p, uint32_t id)
{
	return strtab_get(&p->strings, id);
}
/* The id of a string or MAP_NONE; looks at every string, so ask once. */
uint32_t profile_find_string(const struct profile *p, const char *s);

/* Index of the sample type that weighs: default_sample_type, else the last. 0 without types. */
size_t profile_default_type(const struct profile *p);
/* Index of the sample type of that name, or -ENOENT. */
int profile_find_type(const struct profile *p, const char *type);

uint32_t profile_mapping_count(const struct profile *p);
uint32_t profile_function_count(const struct profile *p);
uint32_t profile_location_count(const struct profile *p);
uint32_t profile_sample_count(const struct profile *p);
uint32_t profile_main_mapping(const struct profile *p);	/* 0: there are no mappings */

struct profile_mapping profile_mapping_get(const struct profile *p, uint32_t id);
struct profile_function profile_function_get(const struct profile *p, uint32_t id);
struct profile_location profile_location_get(const struct profile *p, uint32_t id);
size_t profile_line_count(const struct profile *p, uint32_t location);
struct profile_line profile_line_get(const struct profile *p, uint32_t location, size_t i);

/* Samples. Equal stacks have equal profile_stack_id() (0: no frames), equal label sets equal
 * profile_labels_id() (0: no labels): what depends on one alone can be cached by it. */
uint32_t profile_stack_id(const struct profile *p, uint32_t sample);
uint32_t profile_labels_id(const struct profile *p, uint32_t sample);
uint32_t profile_labels_count(const struct profile *p);	/* labels ids are 0 .. count-1 */
size_t profile_depth(const struct profile *p, uint32_t sample);
uint32_t profile_frame(const struct profile *p, uint32_t sample, size_t i);	/* 0 is the leaf */
size_t profile_label_count(const struct profile *p, uint32_t labels_id);
struct profile_label profile_label_get(const struct profile *p, uint32_t labels_id, size_t i);
/* The label with that key string: whether there is one. */
bool profile_label_find(const struct profile *p, uint32_t labels_id, uint32_t key,
			struct profile_label *ret);
const int64_t *profile_values(const struct profile *p, uint32_t sample);

/* a + b, stopping at the limits of int64. */
static inline int64_t profile_add(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? (b < 0 ? INT64_MIN : INT64_MAX) : sum;
}

/* Sample numbers, heaviest first by sample type `type`, equal ones in order of arrival: the order
 * of every output. The caller frees *ret (NULL without samples). 0, -ENOMEM. */
int must_check profile_sorted(const struct profile *p, size_t type, uint32_t **ret);

#endif
