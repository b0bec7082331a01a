/* codemap.h - which piece of run-time code lies at an address now: ranges in order of arrival, where
 * a later one covers what it overlaps.
 *
 *	struct codemap m = CODEMAP_INIT;
 *	r = codemap_add(&m, 0x1000, 0x1400, 17);	// described at byte 17 of its source
 *	r = codemap_add(&m, 0x1200, 0x1300, 99);	// newer: cuts the first in two
 *	r = codemap_settle(&m);				// in force now
 *	codemap_find(&m, 0x1250)->where == 99
 *
 * Only the place of the description is kept, 24 bytes a piece: names are read where they lie, and
 * only for code that was sampled. Runtimes emit hundreds of thousands.
 * Limits: `max` pieces; what is beyond is left out and counted in `refused`.
 * Cost: adding is O(1); settling a batch of m into n pieces O(n + m log m), done by itself every
 * CODEMAP_BATCH additions; finding O(log n).
 */
#ifndef WICK_SYMBOL_CODEMAP_H
#define WICK_SYMBOL_CODEMAP_H

#include "base/base.h"

#define CODEMAP_GONE UINT64_MAX	/* as `where`: nothing is there any more */

enum { CODEMAP_BATCH = 1 << 15 };

struct code_piece {
	uint64_t start, end;	/* [start, end), not empty */
	uint64_t where;		/* the caller's: where it is described */
};

struct codemap {
	struct code_piece *v;	/* sorted, disjoint */
	size_t n, cap;
	struct code_piece *fresh;	/* not settled yet, in order of arrival */
	size_t nfresh, fresh_cap;
	size_t max;		/* pieces; 0: none at all */
	uint64_t refused;	/* additions beyond max */
};

#define CODEMAP_INIT { .max = SIZE_MAX }

/* An empty or inverted range is ignored. 0, -ENOMEM. */
int must_check codemap_add(struct codemap *m, uint64_t start, uint64_t end, uint64_t where);
/* Puts in force what was added. 0, -ENOMEM: as before, and it can be tried again. */
int must_check codemap_settle(struct codemap *m);
/* Of the settled pieces that with addr, or NULL. Borrowed until the next call. */
const struct code_piece *codemap_find(const struct codemap *m, uint64_t addr);
void codemap_clear(struct codemap *m);	/* forgets the pieces, keeps max and refused */
size_t codemap_bytes(const struct codemap *m);
void codemap_free(struct codemap *m);

static inline maybe_unused void codemap_cleanup(struct codemap *m)
{
	codemap_free(m);
}

#endif
