/* random_profile.h - random but reproducible profiles, and a text form to compare them in. */
#ifndef RANDOM_PROFILE_H
#define RANDOM_PROFILE_H

#include <inttypes.h>
#include <time.h>

#include "profile/profile.h"


struct prng {
	uint64_t state;
};

/* xorshift64* */
static inline uint64_t prng_next(struct prng *r)
{
	r->state ^= r->state >> 12;
	r->state ^= r->state << 25;
	r->state ^= r->state >> 27;
	return r->state * 0x2545f4914f6cdd1d;
}

static inline uint64_t prng_below(struct prng *r, uint64_t n)
{
	return prng_next(r) % n;
}

/* WICK_SEED, or another one each second; printed, so that a failure can be repeated. */
static inline struct prng prng_new(void)
{
	const char *env = getenv("WICK_SEED");
	struct prng r = { env ? strtoull(env, NULL, 0) : (uint64_t)time(NULL) };

	if (!r.state)
		r.state = 1;
	printf("WICK_SEED=%" PRIu64 "\n", r.state);
	fflush(stdout);
	return r;
}

#define MUST(expr) ck_assert_int_eq((expr), 0)

static inline uint32_t random_string(struct profile *p, struct prng *r, const char *prefix)
{
	static const char *const tails[] = { "", " (inlined)", "\xc3\xa9", "<a, b>::c", "\"\\",
					     "\n;x", "\xff\xfe", "\x01", "\xe2\x80\xa8" };
	char s[64];
	uint32_t id;

	snprintf(s, sizeof(s), "%s%u%s", prefix, (unsigned int)prng_below(r, 50),
		 tails[prng_below(r, ARRAY_SIZE(tails))]);
	MUST(profile_string(p, s, &id));
	return id;
}

static inline uint32_t random_mapping(struct profile *p, struct prng *r)
{
	struct profile_mapping m = {
		.start = prng_below(r, 4) << 12,
		.offset = prng_below(r, 2) << 12,
		.file = prng_below(r, 8) ? random_string(p, r, "/usr/lib/lib") : 0,
		.build_id = prng_below(r, 2) ? random_string(p, r, "abcdef") : 0,
		.has = (uint32_t)prng_below(r, 16),
	};
	uint32_t id;

	m.limit = m.start + (prng_below(r, 100) << 10);
	MUST(profile_mapping(p, &m, &id));
	return id;
}

static inline uint32_t random_location(struct profile *p, struct prng *r)
{
	struct profile_location l = {
		.address = prng_below(r, 9) ? prng_below(r, 1000) : prng_next(r),
		.mapping = (uint32_t)prng_below(r, profile_mapping_count(p) + 1),
		.folded = !prng_below(r, 10),
	};
	struct profile_line lines[12];
	size_t n = prng_below(r, 4) ? prng_below(r, 3) : prng_below(r, ARRAY_SIZE(lines));
	uint32_t id;

	if (!profile_function_count(p))
		n = 0;
	for (size_t i = 0; i < n; i++)
		lines[i] = (struct profile_line){
			.line = (int64_t)prng_below(r, 1000) - 10,
			.function = (uint32_t)prng_below(r, profile_function_count(p)) + 1,
			.column = (int32_t)prng_below(r, 3),
		};
	MUST(profile_location(p, &l, lines, n, &id));
	return id;
}

static inline void random_sample(struct profile *p, struct prng *r)
{
	struct profile_label labels[20];
	const size_t nlabels = prng_below(r, 8) ? prng_below(r, 4) :
						  prng_below(r, ARRAY_SIZE(labels));
	uint32_t ids[64];
	size_t depth = prng_below(r, ARRAY_SIZE(ids));
	int64_t values[3];

	if (!profile_location_count(p))
		depth = 0;
	for (size_t i = 0; i < depth; i++)
		ids[i] = (uint32_t)prng_below(r, profile_location_count(p)) + 1;
	for (size_t i = 0; i < nlabels; i++) {
		labels[i] = (struct profile_label){ .key = random_string(p, r, "key") };
		if (prng_below(r, 2))
			labels[i].str = random_string(p, r, "value");
		else
			labels[i].num = (int64_t)prng_next(r);
		if (prng_below(r, 2))
			labels[i].unit = random_string(p, r, "unit");
	}
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		values[i] = prng_below(r, 20) ? (int64_t)prng_below(r, 100) : (int64_t)prng_next(r);
	MUST(profile_sample(p, &(struct profile_stack){ ids, depth }, labels, nlabels, values,
			    NULL));
}

static inline struct profile *random_profile(struct prng *r)
{
	struct profile *p = NULL;
	uint32_t id;

	MUST(profile_new(&p));
	MUST(profile_sample_type(p, "samples", "count"));
	MUST(profile_sample_type(p, "cpu", "nanoseconds"));
	MUST(profile_sample_type(p, "other", "bytes"));
	MUST(profile_set_period_type(p, "cpu", "nanoseconds"));
	p->period = (int64_t)prng_below(r, 1000000000);
	p->time_nanos = (int64_t)prng_next(r);
	p->duration_nanos = (int64_t)prng_next(r);
	p->default_sample_type = p->types[prng_below(r, 3)].type;
	p->drop_frames = random_string(p, r, "drop");
	p->doc_url = random_string(p, r, "url");
	for (uint64_t n = prng_below(r, 4); n; n--)
		MUST(profile_comment_put(p, random_string(p, r, "comment")));
	for (uint64_t n = prng_below(r, 10); n; n--)
		random_mapping(p, r);
	for (uint64_t n = prng_below(r, 50); n; n--) {
		struct profile_function f = {
			.name = prng_below(r, 9) ? random_string(p, r, "fn") : 0,
			.system_name = random_string(p, r, "_Zfn"),
			.file = random_string(p, r, "file.c"),
			.start_line = (int64_t)prng_below(r, 3),
		};

		MUST(profile_function(p, &f, &id));
	}
	for (uint64_t n = prng_below(r, 200); n; n--)
		random_location(p, r);
	for (uint64_t n = prng_below(r, 200); n; n--)
		random_sample(p, r);
	if (profile_mapping_count(p) && prng_below(r, 2))
		MUST(profile_set_main_mapping(
			p, (uint32_t)prng_below(r, profile_mapping_count(p)) + 1));
	return p;
}

/* ---- text: what tests/e2e/pprof.py prints for a file, byte for byte ---- */

static inline void dump_string(const struct profile *p, uint32_t id, struct buf *out)
{
	const char *s = profile_str(p, id);

	for (size_t i = 0; i < strtab_len(&p->strings, id); i++) {
		const unsigned char c = (unsigned char)s[i];

		if (c < 0x20 || c >= 0x7f || c == '\\')
			buf_printf(out, "\\x%02x", c);
		else
			buf_char(out, (char)c);
	}
}

static inline void dump_mapping(const struct profile *p, uint32_t id, struct buf *out)
{
	struct profile_mapping m = profile_mapping_get(p, id);

	buf_printf(out, "%" PRIx64 "-%" PRIx64 "@%" PRIx64 " ", m.start, m.limit, m.offset);
	dump_string(p, m.file, out);
	buf_char(out, ' ');
	dump_string(p, m.build_id, out);
	buf_printf(out, " %" PRIu32, m.has);
}

static inline void dump_location(const struct profile *p, uint32_t id, struct buf *out)
{
	struct profile_location l = profile_location_get(p, id);

	buf_printf(out, "\n\t%" PRIx64 "%s ", l.address, l.folded ? " folded" : "");
	if (l.mapping)
		dump_mapping(p, l.mapping, out);
	for (size_t i = 0; i < profile_line_count(p, id); i++) {
		struct profile_line line = profile_line_get(p, id, i);
		struct profile_function f = profile_function_get(p, line.function);

		buf_str(out, "\n\t\t");
		dump_string(p, f.name, out);
		buf_char(out, '|');
		dump_string(p, f.system_name, out);
		buf_char(out, '|');
		dump_string(p, f.file, out);
		buf_printf(out, "|%" PRId64 "|%" PRId64 "|%" PRId32, f.start_line, line.line,
			   line.column);
	}
}

static inline void dump_sample(const struct profile *p, uint32_t n, struct buf *out)
{
	const uint32_t set = profile_labels_id(p, n);

	buf_str(out, "sample");
	for (size_t i = 0; i < p->ntypes; i++)
		buf_printf(out, " %" PRId64, profile_values(p, n)[i]);
	for (size_t i = 0; i < profile_label_count(p, set); i++) {
		struct profile_label l = profile_label_get(p, set, i);

		buf_str(out, "\n\t");
		dump_string(p, l.key, out);
		buf_char(out, '=');
		if (l.str) {
			dump_string(p, l.str, out);
		} else {
			buf_printf(out, "%" PRId64 " ", l.num);
			dump_string(p, l.unit, out);
		}
	}
	for (size_t i = 0; i < profile_depth(p, n); i++)
		dump_location(p, profile_frame(p, n, i), out);
	buf_char(out, '\n');
}

static inline void dump_profile(const struct profile *p, struct buf *out)
{
	uint32_t *order = NULL;

	MUST(profile_sorted(p, profile_default_type(p), &order));
	for (size_t i = 0; i < p->ntypes; i++) {
		buf_str(out, "type ");
		dump_string(p, p->types[i].type, out);
		buf_char(out, '/');
		dump_string(p, p->types[i].unit, out);
		buf_char(out, '\n');
	}
	buf_printf(out, "time %" PRId64 " duration %" PRId64 " period %" PRId64 " ",
		   p->time_nanos, p->duration_nanos, p->period);
	dump_string(p, p->period_type.type, out);
	buf_char(out, '/');
	dump_string(p, p->period_type.unit, out);
	buf_str(out, "\ndefault ");
	dump_string(p, p->default_sample_type, out);
	buf_str(out, "\nmain ");
	if (profile_main_mapping(p))
		dump_mapping(p, profile_main_mapping(p), out);
	for (size_t i = 0; i < p->ncomments; i++) {
		buf_str(out, "\ncomment ");
		dump_string(p, p->comments[i], out);
	}
	buf_char(out, '\n');
	for (uint32_t i = 0; i < profile_sample_count(p); i++)
		dump_sample(p, order[i], out);
	free(order);
}

#endif
