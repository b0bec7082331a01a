/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* wick_rows.h - unwind tables as the BPF walker reads them: .eh_frame compiled to 8-byte rows.
 *
 * A table belongs to one version of one file and is keyed by file offset, so it needs no load
 * bias and is shared by every process that maps the file. Row n says how to find the caller's
 * frame for every offset from its own start up to the start of row n+1.
 *
 * Layout, in 64-bit words (one BPF array of exactly this size per file):
 *	u32 index[blocks + 1], padded to a word   index[b] = number of the row in force at the start
 *	                                          of text block b; index[blocks] = rows - 1
 *	struct wk_row rows[rows]                  in order of offset; the last is WK_CFA_NONE
 *	struct wk_side sides[]                    what eight bytes can't say, WK_SIDE_WORDS each
 * Block b covers file offsets [base + b * WK_BLOCK, base + (b+1) * WK_BLOCK). A look-up reads two
 * neighbouring index entries and searches the rows between them: WK_BLOCK at most, a dozen in
 * dense code, so two or three cache lines. rows.h is that look-up.
 */
#ifndef WICK_ROWS_H
#define WICK_ROWS_H

#include "wick_abi.h"

enum {
	WK_BLOCK_SHIFT = 9,
	WK_BLOCK = 1 << WK_BLOCK_SHIFT,
	WK_BLOCK_STEPS = WK_BLOCK_SHIFT + 1,	/* a row starts at a byte: halvings for WK_BLOCK */
};

/* How to read one table; travels beside its words. */
struct wk_table {
	__u64 base;		/* file offset of block 0, a multiple of WK_BLOCK */
	__u32 blocks, rows;	/* blocks 0: no rows, every look-up fails */
};
#define WK_TABLE_ROWS(t)  (((t)->blocks + 2) / 2)	/* word of rows[0] */
#define WK_TABLE_SIDES(t) (WK_TABLE_ROWS(t) + (__u64)(t)->rows)

/* How the CFA (DWARF 5 section 6.4: the value of sp before the call) is found. */
enum wk_cfa {
	WK_CFA_NONE,	/* no unwind info here: gap between FDEs */
	WK_CFA_SP,	/* sp + 8 * cfa_off */
	WK_CFA_FP,	/* frame pointer + 8 * cfa_off */
	WK_CFA_ROOT,	/* return address undefined: outermost frame */
	WK_CFA_PLT,	/* x86-64 .plt entry: sp + 8 + ((pc & 15) >= cfa_off ? 8 : 0) */
	WK_CFA_SIGNAL,	/* signal trampoline: the interrupted registers lie in the frame at sp */
	WK_CFA_SIDE,	/* sides[WK_ROW_SIDE(row)] */
	WK_CFA_BAD,	/* CFI says something that no rule here can: stop, don't guess */
	WK_CFA_LEAF,	/* in a leaf sp + 8, the frame pointer unchanged; else as cfa_off says, enum
			 * wk_caller. Go's functions without a frame that move to another stack, and
			 * old Go, whose tables don't follow the frame pointers that functions keep */
	WK_CFA_CHAIN,	/* the frame record at the frame pointer, certainly: zero is the outermost frame.
			 * Go's functions that move sp to another stack and keep the frame pointer */
	WK_CFA_LANDS,	/* in a leaf frame pointer + 16, in a caller sp + 8 * cfa_off; the frame pointer at
			 * CFA - 16. x86-64: a function that ends by __builtin_eh_return: what it has saved
			 * may be the registers of the frame that it will return to (step.h) */
	WK_CFA_CLONE,	/* x86-64, behind the system call of clone and clone3: where rax is 0 the outermost
			 * frame, the child's on its new stack; else sp + 8 */
};

enum wk_caller {
	WK_CALLER_NONE,		/* WK_CFA_NONE */
	WK_CALLER_CHAIN,	/* WK_CFA_CHAIN */
	WK_CALLER_ROOT,		/* WK_CFA_ROOT: what it calls is a new thread */
};

enum wk_fp {		/* the caller's frame pointer */
	WK_FP_SAME,
	WK_FP_SAVED,	/* *(cfa + 8 * fp_off) */
	WK_FP_UNDEFINED,/* lost: WK_FP_LOST from here on */
};
/* No frame pointer, and not zero, which would claim the outermost frame: it is misaligned, so every
 * later use of it stops. */
#define WK_FP_LOST 1

enum wk_ra {		/* the return address */
	WK_RA_CFA,	/* *(cfa - 8): x86-64 */
	WK_RA_LR,	/* in the link register: arm64, in the sampled or post-signal frame only */
	WK_RA_AFTER_FP,	/* *(cfa + 8 * fp_off + 8): arm64 frame record {x29, x30} */
	WK_RA_SAVED,	/* *(cfa + 8 * fp_off), not with WK_FP_SAVED: arm64 saved x30 alone */
};

/* x86-64: the caller's rbx, which a few rules need in the middle of a stack (glibc's lazy binding has
 * CFA = rbx + 16). 1 to WK_BX_FAR: *(cfa - 8 * (n + 1)). */
enum wk_bx {
	WK_BX_SAME,
	WK_BX_FAR = 13,
	WK_BX_LOST,
};

struct wk_row {
	__u16 pc;	/* start, low 16 bits of the file offset: the distance from a block's start
			 * tells the rows of that block from the first of the next */
	__u8 cfa;	/* enum wk_cfa */
	__u8 fp_ra;	/* enum wk_fp | (arm64: enum wk_ra, x86-64: enum wk_bx) << 4 */
	__s16 cfa_off;
	__s16 fp_off;
};
#define WK_ROW_FP(r)	((r).fp_ra & 15)
#define WK_ROW_RA(r)	((r).fp_ra >> 4)
#define WK_ROW_BX(r)	((r).fp_ra >> 4)
#define WK_ROW_SIDE(r)	((__u16)(r).cfa_off | (__u32)(__u16)(r).fp_off << 16)

/* A full rule. Registers are DWARF numbers (psABI: x86-64 7 = rsp, 6 = rbp, 3 = rbx, 16 = return
 * address; arm64 31 = sp, 29 = fp, 30 = lr). Others than sp, fp and rbx are known only in a leaf. Where
 * rbx is saved the row's fp_ra says. */
enum wk_side_cfa {
	WK_SIDE_REG,	/* reg + cfa_off */
	WK_SIDE_DEREF,	/* *(reg + cfa_off) + cfa_add */
	WK_SIDE_INDEX,	/* *(reg + reg2 * 8 + cfa_off) + cfa_add */
};
enum wk_side_where {
	WK_AT_CFA,	/* *(cfa + off) */
	WK_AT_REG,	/* *(register + off), registers of this frame, not the caller's */
	WK_IN_REG,	/* the register's value (return address in a register: vfork) */
	WK_SAME,	/* unchanged */
	WK_UNDEFINED,
};
struct wk_side {
	__u8 cfa_kind, cfa_reg, cfa_reg2;
	__u8 fp_where, fp_reg;	/* enum wk_side_where */
	__u8 ra_where, ra_reg;	/* AT_CFA, AT_REG or IN_REG */
	__u8 exact;		/* signal frame of its own making: the pc found was interrupted,
				 * it is no return address */
	__s32 cfa_off, cfa_add;
	__s32 fp_off, ra_off;
};
enum { WK_SIDE_WORDS = 3 };

WK_ASSERT(sizeof(struct wk_table) == 16, "no hidden padding");
WK_ASSERT(sizeof(struct wk_row) == 8, "a row is one word");
WK_ASSERT(sizeof(struct wk_side) == 8 * WK_SIDE_WORDS, "a side rule is whole words");

#endif
