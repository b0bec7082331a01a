/* codemap.c - see codemap.h. A batch is settled by merge sort whose merge lets the later half cover
 * the earlier one, and so is the whole batch laid over what there was. */
#include "symbol/codemap.h"

/* Lays `over` on top of `under`, both sorted and disjoint; out has room for both and one more piece
 * for each of `over`. Returns the number of pieces. */
static size_t overlay(const struct code_piece *under, size_t n, const struct code_piece *over,
		      size_t m, struct code_piece *out)
{
	size_t j = 0, k = 0;

	for (size_t i = 0; i < n; i++) {
		struct code_piece left = under[i];	/* of it, what isn't covered yet */

		while (j < m && over[j].end <= left.start)
			out[k++] = over[j++];
		while (j < m && over[j].start < left.end) {
			if (over[j].start > left.start)
				out[k++] = (struct code_piece){ left.start, over[j].start,
								left.where };
			left.start = MIN(over[j].end, left.end);
			if (over[j].end >= left.end)
				break;	/* it may cover the next one too */
			out[k++] = over[j++];
		}
		if (left.start < left.end)
			out[k++] = left;
	}
	while (j < m)
		out[k++] = over[j++];
	return k;
}

/* Sorts v, later over earlier, into out; out and spare have room for 2 n pieces: n ranges have 2 n
 * ends, between which lie 2 n - 1 pieces at most. Recursion: log2(CODEMAP_BATCH) deep. */
static size_t flatten(const struct code_piece *v, size_t n, struct code_piece *out,
		      struct code_piece *spare)
{
	size_t half = n / 2, a, b;

	if (n < 2) {
		memcpy(out, v, n * sizeof(*v));
		return n;
	}
	a = flatten(v, half, spare, out);
	b = flatten(v + half, n - half, spare + 2 * half, out + 2 * half);
	return overlay(spare, a, spare + 2 * half, b, out);
}

/* Gone pieces have done their work: they cover nothing any more. */
static size_t drop_gone(struct code_piece *v, size_t n)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		if (v[i].where != CODEMAP_GONE)
			v[k++] = v[i];
	return k;
}

int codemap_settle(struct codemap *m)
{
	struct code_piece *batch cleanup(freep_cleanup) = NULL;
	struct code_piece *spare cleanup(freep_cleanup) = NULL;
	struct code_piece *all;
	size_t n, cap = m->n + 4 * m->nfresh;

	if (!m->nfresh)
		return 0;
	batch = malloc(2 * m->nfresh * sizeof(*batch));
	spare = malloc(2 * m->nfresh * sizeof(*spare));
	all = malloc(cap * sizeof(*all));
	if (!batch || !spare || !all) {
		free(all);
		return -ENOMEM;
	}
	n = flatten(m->fresh, m->nfresh, batch, spare);
	n = drop_gone(all, overlay(m->v, m->n, batch, n, all));
	free(m->v);
	m->v = all;
	m->n = n;
	m->cap = cap;
	if (n && cap > n + n / 2) {	/* most batches overlap nothing */
		all = realloc(m->v, n * sizeof(*all));
		if (all) {
			m->v = all;
			m->cap = n;
		}
	}
	free(take(m->fresh));	/* runtimes write much at first, little later */
	m->nfresh = m->fresh_cap = 0;
	return 0;
}

int codemap_add(struct codemap *m, uint64_t start, uint64_t end, uint64_t where)
{
	int r;

	if (start >= end)
		return 0;
	if (m->n + m->nfresh >= m->max && where != CODEMAP_GONE) {
		m->refused++;
		return 0;
	}
	if (m->nfresh >= CODEMAP_BATCH) {
		r = codemap_settle(m);
		if (r)
			return r;
	}
	r = array_grow(&m->fresh, &m->fresh_cap, m->nfresh + 1, sizeof(*m->fresh));
	if (r)
		return r;
	m->fresh[m->nfresh++] = (struct code_piece){ start, end, where };
	return 0;
}

const struct code_piece *codemap_find(const struct codemap *m, uint64_t addr)
{
	size_t lo = 0, hi = m->n, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (m->v[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && addr < m->v[lo - 1].end ? &m->v[lo - 1] : NULL;
}

void codemap_clear(struct codemap *m)
{
	m->n = m->nfresh = 0;
}

size_t codemap_bytes(const struct codemap *m)
{
	return (m->cap + m->fresh_cap) * sizeof(*m->v);
}

void codemap_free(struct codemap *m)
{
	free(m->v);
	free(m->fresh);
	*m = (struct codemap)CODEMAP_INIT;
}
