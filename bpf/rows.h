/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* rows.h - find the row in force at a file offset. The layout is described in wick_rows.h.
 *
 * Pure: the includer provides ROWS_WORD(table, n), the n-th word of a table (0 when there is none),
 * so the same text runs in BPF and on the host. Costs one index word and a binary search in the
 * rows of one block: two or three cache lines.
 */
#ifndef WICK_BPF_ROWS_H
#define WICK_BPF_ROWS_H

#include "wick_rows.h"

enum { ROWS_STEPS = WK_BLOCK_SHIFT + 1 };	/* a block has at most 2^9 rows */

static __always_inline __u32 rows_index(__u32 table, __u32 n)
{
	__u64 pair = ROWS_WORD(table, n / 2);

	return n & 1 ? (__u32)(pair >> 32) : (__u32)pair;
}

/* The row as its word, 0 (WK_CFA_NONE) outside of the table. */
static __always_inline __u64 rows_find(const struct wk_file *f, __u64 offset)
{
	__u32 block = (__u32)((offset - f->base) >> WK_BLOCK_SHIFT);
	__u32 pc = (__u32)offset & (WK_BLOCK - 1), lo, hi;
	__u64 row;

	if (offset < f->base || (offset - f->base) >> WK_BLOCK_SHIFT >= f->blocks)
		return 0;
	lo = rows_index(f->id, block);
	hi = rows_index(f->id, block + 1);
	/* Row lo was in force when the block began. Those behind it start inside the block, but the
	 * last may start the next block: then its pc is 0. The answer lies in [lo, hi]. */
	for (int i = 0; i < ROWS_STEPS && lo < hi; i++) {
		__u32 mid = lo + (hi - lo + 1) / 2, start;

		start = (__u16)ROWS_WORD(f->id, f->row_word + mid);
		if (start && start <= pc)
			lo = mid;
		else
			hi = mid - 1;
	}
	row = ROWS_WORD(f->id, f->row_word + lo);
	return row;
}

#endif
