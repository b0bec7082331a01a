/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* step.h - undo one call: from a frame's registers and its row to the caller's registers.
 *
 * Pure: reads memory only through WK_READ_USER(dst, len, addr), which the includer defines (0 when
 * all bytes were read). The same text runs in BPF, in the userspace walk of copied stacks, and in
 * unit tests over fake memory, for both architectures (WK_ARCH_ARM64 chooses).
 *
 * A step that fails returns why and leaves the registers as they were. A step that succeeds moves
 * the CFA strictly towards the stack's base, so that no table, however hostile, makes a loop.
 */
#ifndef WICK_BPF_STEP_H
#define WICK_BPF_STEP_H

#include "wick_rows.h"

#if !defined(WK_ARCH_ARM64) && (defined(__TARGET_ARCH_arm64) || defined(__aarch64__))
#define WK_ARCH_ARM64 1
#endif

enum {
	WK_OK = 0,			/* no outcome yet: the walk goes on; no WK_USER_* is 0 */
	WK_OTHER_STACK = 64 << 10,	/* bytes: farther below sp is another stack, nearer is an error */
};

struct wk_regs {
	__u64 pc, sp, fp;
	__u64 lr;		/* arm64 */
	__u64 pac_mask;		/* arm64: bits of a return address that hold its signature */
	__u64 gpr[16];		/* x86-64, by DWARF number; known while leaf */
	__u32 leaf;		/* the sampled frame, or one that a signal interrupted */
	__u32 exact;		/* pc is where execution stands; otherwise a return address */
};

/* pc as a frame and for row look-up: within the instruction being executed. */
static __always_inline __u64 wk_pc(const struct wk_regs *r)
{
	return r->pc - !r->exact;
}

static __always_inline __u64 wk_unsign(const struct wk_regs *r, __u64 address)
{
	return address & ~r->pac_mask;
}

/* A register by its DWARF number; false if it isn't known in this frame. */
static __always_inline int wk_register(const struct wk_regs *r, __u32 number, __u64 *ret)
{
#ifdef WK_ARCH_ARM64
	if (number == 31)
		*ret = r->sp;
	else if (number == 29)
		*ret = r->fp;
	else if (number == 30 && r->leaf)
		*ret = r->lr;
	else
		return 0;
#else
	if (number == 7)
		*ret = r->sp;
	else if (number == 6)
		*ret = r->fp;
	else if (number < 16 && r->leaf)
		*ret = r->gpr[number & 15];
	else
		return 0;
#endif
	return 1;
}

/* The registers that a signal handler's trampoline will restore. x86-64: the return from the
 * handler leaves sp at struct ucontext of struct rt_sigframe (arch/x86/include/asm/sigframe.h), its
 * sigcontext 40 bytes in (uapi/asm/sigcontext.h). arm64: sp at struct rt_sigframe
 * (arch/arm64/kernel/signal.c): 128 bytes of siginfo, then ucontext, whose sigcontext begins 176
 * bytes in with the fault address. */
static __always_inline enum wk_outcome wk_step_signal(struct wk_regs *r)
{
#ifdef WK_ARCH_ARM64
	__u64 saved[5];	/* x29, x30, sp, pc, pstate */

	if (WK_READ_USER(saved, sizeof(saved), r->sp + 128 + 176 + 8 + 29 * 8))
		return WK_USER_FAULT;
	r->fp = saved[0];
	r->lr = saved[1];
	r->sp = saved[2];
	r->pc = saved[3];
#else
	__u64 saved[17];	/* r8-r15, di, si, bp, bx, dx, ax, cx, sp, ip */

	if (WK_READ_USER(saved, sizeof(saved), r->sp + 40))
		return WK_USER_FAULT;
	r->gpr[0] = saved[13];
	r->gpr[1] = saved[12];
	r->gpr[2] = saved[14];
	r->gpr[3] = saved[11];
	r->gpr[4] = saved[9];
	r->gpr[5] = saved[8];
	for (int i = 0; i < 8; i++)
		r->gpr[8 + i] = saved[i];
	r->fp = saved[10];
	r->sp = saved[15];
	r->pc = saved[16];
#endif
	r->leaf = r->exact = 1;
	return WK_OK;
}

/* What a register rule of a side rule says; false if it can't be had. */
static __always_inline enum wk_outcome wk_recover(const struct wk_regs *r, __u32 where, __u32 reg,
						  __s32 off, __u64 cfa, __u64 same, __u64 *ret)
{
	__u64 base = cfa;

	if (where == WK_SAME) {
		*ret = same;
		return WK_OK;
	}
	if (where == WK_UNDEFINED) {
		*ret = 0;
		return WK_OK;
	}
	if (where != WK_AT_CFA && !wk_register(r, reg, &base))
		return WK_USER_BAD_RULE;
	if (where == WK_IN_REG)
		*ret = base + (__s64)off;
	else if (WK_READ_USER(ret, sizeof(*ret), base + (__s64)off))
		return WK_USER_FAULT;
	return WK_OK;
}

static __always_inline enum wk_outcome wk_step_side(struct wk_regs *r, const struct wk_side *s)
{
	__u64 cfa, index, fp, ra;
	enum wk_outcome o;

	if (!wk_register(r, s->cfa_reg, &cfa))
		return WK_USER_BAD_RULE;
	cfa += (__s64)s->cfa_off;
	if (s->cfa_kind == WK_SIDE_INDEX) {
		if (!wk_register(r, s->cfa_reg2, &index))
			return WK_USER_BAD_RULE;
		cfa += index * 8;
	}
	if (s->cfa_kind != WK_SIDE_REG) {
		if (WK_READ_USER(&cfa, sizeof(cfa), cfa))
			return WK_USER_FAULT;
		cfa += (__s64)s->cfa_add;
	}
	if (s->ra_where == WK_UNDEFINED)
		return WK_USER_ROOT;
	if (cfa & 7 || (cfa <= r->sp && !r->leaf))
		return WK_USER_BAD_FRAME;
	o = wk_recover(r, s->fp_where, s->fp_reg, s->fp_off, cfa, r->fp, &fp);
	if (o)
		return o;
	o = wk_recover(r, s->ra_where, s->ra_reg, s->ra_off, cfa, r->lr, &ra);
	if (o)
		return o;
	r->sp = cfa;
	r->fp = fp;
	r->pc = wk_unsign(r, ra);
	r->leaf = r->exact = 0;
	return WK_OK;
}

/* The return address and frame pointer of the usual rules. */
static __always_inline enum wk_outcome wk_step_saved(struct wk_regs *r, struct wk_row row, __u64 cfa)
{
	__u32 fp_rule = row.fp_ra & 15, ra_rule = row.fp_ra >> 4;
	__u64 fp = r->fp, ra, slot = cfa + 8 * (__s64)row.fp_off;

	if (ra_rule == WK_RA_LR) {
		if (!r->leaf)	/* somebody has called since: it holds his return address */
			return WK_USER_BAD_RULE;
		ra = r->lr;
	} else {
		__u64 at = ra_rule == WK_RA_CFA ? cfa - 8 : ra_rule == WK_RA_AFTER_FP ? slot + 8 : slot;

		if (WK_READ_USER(&ra, sizeof(ra), at))
			return WK_USER_FAULT;
	}
	if (fp_rule == WK_FP_UNDEFINED)
		fp = 0;
	else if (fp_rule == WK_FP_SAVED && WK_READ_USER(&fp, sizeof(fp), slot))
		return WK_USER_FAULT;
	r->sp = cfa;
	r->fp = fp;
	r->pc = wk_unsign(r, ra);
	r->leaf = r->exact = 0;
	return WK_OK;
}

/* Undoes one call by its row; side is the row's side rule when row.cfa is WK_CFA_SIDE. WK_OK: r is
 * the caller's. */
static __always_inline enum wk_outcome wk_step(struct wk_regs *r, struct wk_row row,
					       const struct wk_side *side)
{
	__u64 cfa;

	switch (row.cfa) {
	case WK_CFA_SP:
		cfa = r->sp + 8 * (__s64)row.cfa_off;
		break;
	case WK_CFA_FP:
		cfa = r->fp + 8 * (__s64)row.cfa_off;
		break;
	case WK_CFA_PLT:
		cfa = r->sp + 8 + ((wk_pc(r) & 15) >= (__u64)row.cfa_off ? 8 : 0);
		break;
	case WK_CFA_ROOT:
		return WK_USER_ROOT;
	case WK_CFA_SIGNAL:
		return wk_step_signal(r);
	case WK_CFA_SIDE:
		return wk_step_side(r, side);
	case WK_CFA_NONE:
		return WK_USER_NO_INFO;
	default:
		return WK_USER_BAD_RULE;
	}
	/* an arm64 leaf without a frame has its caller's sp */
	if (cfa & 7 || cfa < r->sp || (cfa == r->sp && !r->leaf))
		return WK_USER_BAD_FRAME;
	return wk_step_saved(r, row, cfa);
}

/* Undoes one call by the frame pointer: {saved frame pointer, return address} lies where it points
 * (x86-64 psABI 3.2.2, AAPCS64 6.4.6). A zero frame pointer marks the outermost frame. A frame that
 * doesn't lie above sp belongs to another stack (a coroutine's, Go's g0): believed, as the frame
 * count bounds the walk, if it is far away rather than just below. */
static __always_inline enum wk_outcome wk_step_fp(struct wk_regs *r)
{
	__u64 frame[2];

	if (!r->fp)
		return WK_USER_ROOT;
	if (r->fp & 7 || (r->fp < r->sp && r->sp - r->fp < WK_OTHER_STACK))
		return WK_USER_BAD_FRAME;
	if (WK_READ_USER(frame, sizeof(frame), r->fp))
		return WK_USER_FAULT;
	if (!frame[1])
		return WK_USER_ROOT;
	r->sp = r->fp + sizeof(frame);
	r->fp = frame[0];
	r->pc = wk_unsign(r, frame[1]);
	r->leaf = r->exact = 0;
	return WK_OK;
}

#endif
