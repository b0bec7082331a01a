/* samples.c - see samples.h. */
#include "collect/samples.h"

static int join(struct samples *s, const uint64_t *user, size_t nuser, const uint64_t *kernel,
		size_t nkernel)
{
	/* at least one, so that a stack without frames has an address too */
	int r = array_grow(&s->joined, &s->joined_cap, MAX(nuser + nkernel, (size_t)1),
			   sizeof(*s->joined));

	if (r)
		return r;
	if (nkernel)
		memcpy(s->joined, kernel, nkernel * sizeof(*kernel));
	if (nuser)
		memcpy(s->joined + nkernel, user, nuser * sizeof(*user));
	return 0;
}

static void count_outcome(struct samples *s, const struct wk_sample *sample)
{
	s->count += sample->count;
	if (sample->user_outcome != WK_USER_NONE)
		s->with_user += sample->count;
	if (sample->user_outcome == WK_USER_ROOT)
		s->rooted += sample->count;
}

int samples_add(struct samples *s, const struct wk_sample *sample, const uint64_t *user,
		size_t nuser, const uint64_t *kernel, size_t nkernel)
{
	struct samples_key key = {
		.start_time = sample->start_time,
		.exec_id = sample->exec_id,
		.cgroup_id = sample->cgroup_id,
		.pid = sample->pid,
		.tid = sample->tid,
		.global_pid = sample->global_pid,
		.exe = sample->exe,
		.uid = sample->uid,
	};
	uint32_t n;
	bool added;
	int r = join(s, user, nuser, kernel, nkernel);

	if (!r)
		r = strtab_put(&s->stacks, (const char *)s->joined,
			       (nuser + nkernel) * sizeof(*s->joined), &key.stack);
	if (r)
		return r;
	/* what follows the NUL in the kernel's comm is left over from longer names */
	memcpy(key.comm, sample->comm, strnlen(sample->comm, WK_COMM_LEN - 1));
	r = array_grow(&s->values, &s->values_cap, s->keys.n + 1, sizeof(*s->values));
	if (!r)
		r = map_put(&s->keys, &key, &n, &added);
	if (r)
		return r;
	if (added)
		s->values[n] = (struct samples_value){ 0, 0 };
	s->values[n].count += sample->count;
	s->values[n].weight += sample->weight;
	count_outcome(s, sample);
	return 0;
}

void samples_free(struct samples *s)
{
	map_free(&s->keys);
	strtab_free(&s->stacks);
	free(s->values);
	free(s->joined);
	*s = (struct samples)SAMPLES_INIT;
}

uint32_t samples_entries(const struct samples *s)
{
	return (uint32_t)s->keys.n;
}

const struct samples_key *samples_key(const struct samples *s, uint32_t entry)
{
	return map_key(&s->keys, entry);
}

int samples_select(const struct samples *s,
		   bool (*wanted)(void *ctx, const struct samples_key *key), void *ctx,
		   uint32_t **ret, size_t *ret_n)
{
	uint32_t total = samples_entries(s), *entries = calloc((size_t)total + 1, sizeof(*entries));
	size_t n = 0;

	if (!entries)
		return -ENOMEM;
	for (uint32_t i = 0; i < total; i++)
		if (!wanted || wanted(ctx, samples_key(s, i)))
			entries[n++] = i;
	*ret = entries;
	*ret_n = n;
	return 0;
}

uint64_t samples_frame(const struct samples *s, uint32_t stack, size_t i)
{
	uint64_t frame;		/* strings aren't aligned */

	memcpy(&frame, strtab_get(&s->stacks, stack) + i * sizeof(frame), sizeof(frame));
	return frame;
}

size_t samples_depth(const struct samples *s, uint32_t stack)
{
	return strtab_len(&s->stacks, stack) / sizeof(uint64_t);
}
