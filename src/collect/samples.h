/* samples.h - drained samples of one recording or window, added up.
 *
 *	struct samples s = SAMPLES_INIT;
 *	r = samples_add(&s, sample, user, nuser, kernel, nkernel);	// from sampler_drain()
 *
 * The kernel de-duplicates within one CPU and one half; here the rest falls together: equal
 * process, thread name, cgroup and stack are one entry. Frames stay frame words until the profile
 * is built, so that each unique one is resolved once.
 *
 * Memory: a new stack costs 8 bytes a frame and 60, a new entry 110. Nothing is ever dropped.
 */
#ifndef WICK_SAMPLES_H
#define WICK_SAMPLES_H

#include "base/map.h"
#include "wick_abi.h"

struct samples_key {		/* what tells entries apart */
	uint64_t start_time, exec_id, cgroup_id;
	uint32_t pid, tid, global_pid, stack;
	uint32_t exe, uid;		/* of sampler_options.keep_exe, else 0 */
	char comm[WK_COMM_LEN];
};

struct samples_value {
	uint64_t count, weight;
};

struct samples {
	struct map keys;		/* struct samples_key */
	struct samples_value *values;	/* of each key */
	size_t values_cap;
	struct strtab stacks;		/* a stack is a string of frame words: kernel, then user */
	uint64_t *joined;
	size_t joined_cap;
	uint64_t count;			/* samples in all */
	uint64_t with_user, rooted;	/* those with a user half; those of them that reached its root */
	uint64_t epoch;			/* in which their files were last used (files.h); by recorder_take */
};

#define SAMPLES_INIT { .keys = MAP_INIT(sizeof(struct samples_key)), .stacks = STRTAB_INIT }

/* 0, -ENOMEM, -E2BIG. Copies. */
int must_check samples_add(struct samples *s, const struct wk_sample *sample, const uint64_t *user,
			   size_t nuser, const uint64_t *kernel, size_t nkernel);
void samples_free(struct samples *s);

/* Entries are 0 .. samples_entries - 1, in order of arrival; pointers borrowed until the next add. */
uint32_t samples_entries(const struct samples *s);
const struct samples_key *samples_key(const struct samples *s, uint32_t entry);
/* The entries for which wanted(ctx, key) is true (NULL: all), for build_options.entries. The caller frees
 * *ret, which is never NULL. 0, -ENOMEM. */
int must_check samples_select(const struct samples *s,
			      bool (*wanted)(void *ctx, const struct samples_key *key), void *ctx,
			      uint32_t **ret, size_t *ret_n);
/* Copies nothing: frame i of *ret_n, leaf first. */
uint64_t samples_frame(const struct samples *s, uint32_t stack, size_t i);
size_t samples_depth(const struct samples *s, uint32_t stack);

#endif
