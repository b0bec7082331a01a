/* ranges.c - see ranges.h. */
#include "symbol/ranges.h"

int ranges_add(struct ranges *t, uint64_t low, uint64_t high, uint32_t of)
{
	int r = array_grow(&t->v, &t->cap, t->n + 1, sizeof(*t->v));

	if (!r)
		t->v[t->n++] = (struct range){ .low = low, .high = high, .of = of };
	return r;
}

static int by_low(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	return (x->of > y->of) - (x->of < y->of);
}

void ranges_sort(struct ranges *t)
{
	uint64_t reach = 0;

	if (t->n)
		qsort(t->v, t->n, sizeof(*t->v), by_low);
	for (size_t i = 0; i < t->n; i++)
		t->v[i].reach = reach = MAX(reach, t->v[i].high);
}

uint32_t ranges_find(const struct ranges *t, uint64_t address, enum ranges_pick pick)
{
	size_t low = 0, high = t->n;
	uint32_t best = RANGES_NONE;

	while (low < high) {	/* the first that begins behind it */
		size_t mid = low + (high - low) / 2;

		if (t->v[mid].low > address)
			high = mid;
		else
			low = mid + 1;
	}
	while (low && t->v[low - 1].reach > address) {
		const struct range *r = &t->v[--low];

		if (r->high > address && (best == RANGES_NONE ||
					  (pick == RANGES_LAST ? r->of > best : r->of < best)))
			best = r->of;
	}
	return best;
}
