/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* rows.h - the look-up in an unwind table (wick_rows.h), for the kernel and for userspace.
 *
 * The includer defines, before including, how a word of a table is read:
 *
 *	WK_ROW_WORD(words, n, dst)	word n of the table into *dst (u64); 0, or not 0 on failure
 *
 * `words` is whatever the caller passed: the array's map in BPF, a plain array on the host.
 *
 *	if (wk_rows_find(t, words, offset, &row))
 *		return WK_USER_NO_INFO;
 *	if (row.cfa == WK_CFA_SIDE && wk_rows_side(t, words, row, &side))
 *		return WK_USER_INTERNAL;
 *	r = wk_step(&regs, row, &side);
 *
 * Cost: one or two words of the index, then a binary search among the rows of one text block: 3 or
 * 4 words in dense code, WK_BLOCK_STEPS + 1 at most. The table is userspace's own, but a wrong one can
 * do no more than give a wrong row: every word is read through WK_ROW_WORD, which checks n.
 */
#ifndef WICK_BPF_ROWS_H
#define WICK_BPF_ROWS_H

#include "wick_rows.h"

static __always_inline struct wk_row wk_row_unpack(__u64 word)
{
	struct wk_row row = {
		.pc = word, .cfa = word >> 16, .fp_ra = word >> 24,
		.cfa_off = word >> 32, .fp_off = word >> 48,
	};

	return row;
}

/* The row in force at a file offset. 0; not 0 when the table doesn't reach there. */
static __always_inline int wk_rows_find(const struct wk_table *t, const void *words, __u64 offset,
					struct wk_row *ret)
{
	__u64 b = (offset - t->base) >> WK_BLOCK_SHIFT, rows = WK_TABLE_ROWS(t), w, next, at_lo = 0;
	__u32 lo, hi, mid, within = offset & (WK_BLOCK - 1), known = 0;
	__u16 block_pc = offset - within;

	if (offset < t->base || b >= t->blocks || WK_ROW_WORD(words, b / 2, &w))
		return -1;
	if (b & 1) {
		if (WK_ROW_WORD(words, b / 2 + 1, &next))
			return -1;
		lo = w >> 32;
		hi = next;
	} else {
		lo = w;
		hi = w >> 32;
	}
	/* Row lo is in force when the block starts; the last later one that starts no later than
	 * offset takes over. */
	for (int i = 0; i < WK_BLOCK_STEPS && lo < hi; i++) {
		mid = lo + (hi - lo + 1) / 2;
		if (WK_ROW_WORD(words, rows + mid, &w))
			return -1;
		if ((__u16)((__u16)w - block_pc) <= within) {
			lo = mid;
			at_lo = w;
			known = 1;
		} else {
			hi = mid - 1;
		}
	}
	if (!known && WK_ROW_WORD(words, rows + lo, &at_lo))
		return -1;
	*ret = wk_row_unpack(at_lo);
	return 0;
}

/* The full rule of a WK_CFA_SIDE row. 0; not 0 when the table doesn't have it. */
static __always_inline int wk_rows_side(const struct wk_table *t, const void *words,
					struct wk_row row, struct wk_side *ret)
{
	__u64 n = WK_TABLE_SIDES(t) + (__u64)WK_ROW_SIDE(row) * WK_SIDE_WORDS, w[WK_SIDE_WORDS];

	if (WK_ROW_WORD(words, n, &w[0]) || WK_ROW_WORD(words, n + 1, &w[1]) ||
	    WK_ROW_WORD(words, n + 2, &w[2]))
		return -1;
	__builtin_memcpy(ret, w, sizeof(*ret));
	return 0;
}

#endif
