/* small_profile.h - builds the few small profiles that the tests of outputs look at. */
#ifndef SMALL_PROFILE_H
#define SMALL_PROFILE_H

#include "profile/profile.h"
#include "random_profile.h"

static inline struct profile *small_profile(void)
{
	struct profile *p = NULL;

	MUST(profile_new(&p));
	MUST(profile_sample_type(p, "samples", "count"));
	MUST(profile_sample_type(p, "cpu", "nanoseconds"));
	MUST(profile_set_period_type(p, "cpu", "nanoseconds"));
	p->period = 10000000;
	return p;
}

static inline uint32_t small_string(struct profile *p, const char *s)
{
	uint32_t id;

	MUST(profile_string(p, s, &id));
	return id;
}

static inline uint32_t small_mapping(struct profile *p, const char *file, uint64_t start)
{
	struct profile_mapping m = { .start = start, .limit = start + 0x10000,
				     .file = small_string(p, file) };
	uint32_t id;

	MUST(profile_mapping(p, &m, &id));
	return id;
}

/* One frame. "a<b" is a inlined into b; NULL has no name. Line numbers are 1 for the innermost. */
static inline uint32_t small_location(struct profile *p, uint32_t mapping, uint64_t address,
				      const char *names)
{
	struct profile_line lines[8];
	struct profile_function f = { .file = small_string(p, "src.c") };
	uint32_t id, n = 0;

	while (names && *names) {
		const size_t len = strcspn(names, "<");

		MUST(profile_string_n(p, names, len, &f.name));
		lines[n] = (struct profile_line){ .line = n + 1 };
		MUST(profile_function(p, &f, &lines[n].function));
		n++;
		names += len + (names[len] == '<');
	}
	MUST(profile_location(p, &(struct profile_location){ address, mapping, false }, lines, n,
			      &id));
	return id;
}

/* count samples of 10 ms; ids leaf first, ended by 0; comm may be NULL, pid and tid 0. */
static inline void small_sample(struct profile *p, const uint32_t *ids, const char *comm,
				int64_t pid, int64_t tid, int64_t count)
{
	struct profile_label labels[3];
	size_t n = 0, depth = 0;

	while (ids[depth])
		depth++;
	if (comm)
		labels[n++] = (struct profile_label){ .key = small_string(p, "comm"),
						      .str = small_string(p, comm) };
	if (pid)
		labels[n++] = (struct profile_label){ .key = small_string(p, "pid"), .num = pid };
	if (tid)
		labels[n++] = (struct profile_label){ .key = small_string(p, "tid"), .num = tid };
	MUST(profile_sample(p, &(struct profile_stack){ ids, depth }, labels, n,
			    (int64_t[]){ count, count * 10000000 }, NULL));
}

#define STACK(...) ((const uint32_t[]){ __VA_ARGS__ __VA_OPT__(, ) 0 })

#endif
