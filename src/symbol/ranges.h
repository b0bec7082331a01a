/* ranges.h - which of many things, each with some ranges of addresses, an address lies in.
 *
 *	struct ranges t = { 0 };
 *	r = ranges_add(&t, 0x1000, 0x1040, unit);
 *	ranges_sort(&t);
 *	ranges_find(&t, 0x1010, RANGES_LAST);	// the highest number, of several
 *	free(t.v);
 *
 * Ranges may overlap: functions lie in units, inlined calls in each other. Cost: a look-up is a binary search,
 * and a step for each range that begins before the address while any of those reaches behind it.
 * Errors: -ENOMEM.
 */
#ifndef WICK_SYMBOL_RANGES_H
#define WICK_SYMBOL_RANGES_H

#include "base/base.h"

#define RANGES_NONE UINT32_MAX

struct range {
	uint64_t low, high;	/* [low, high) */
	uint64_t reach;		/* the highest `high` up to here, in order of low */
	uint32_t of;
};

struct ranges {
	struct range *v;
	size_t n, cap;
};

enum ranges_pick { RANGES_FIRST, RANGES_LAST };	/* the lowest, or highest, of several numbers */

int must_check ranges_add(struct ranges *t, uint64_t low, uint64_t high, uint32_t of);
/* After the last ranges_add, before the first ranges_find. */
void ranges_sort(struct ranges *t);
/* RANGES_NONE: in nothing. */
uint32_t ranges_find(const struct ranges *t, uint64_t address, enum ranges_pick pick);

#endif
