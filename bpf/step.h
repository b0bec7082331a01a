/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* step.h - undoes one call: from the registers of a frame to those of its caller.
 *
 * Pure: no maps, no helpers. The kernel's walker, userspace's walker and the tests compile this
 * text; the one thing they differ in they define before including it:
 *
 *	WK_READ_USER(dst, len, addr)	len bytes of the walked thread's memory; 0, or not 0
 *	WK_READ_CODE(dst, len, addr)	likewise of its code
 *
 *	addr = regs->pc - !regs->exact;		// always inside the instruction being executed
 *	... the file's row for addr (rows.h) ...
 *	r = wk_find_caller(regs, found, row, &side);	// 0: regs is the caller now; else why
 *							// the walk ends
 *
 * Where there is no row or it says WK_CFA_NONE, wk_find_caller goes by the code around a leaf, then by
 * frame pointers. A stop leaves pc, sp, fp, lr, exact and leaf as they were. Steps move sp up.
 * Exceptions: a leaf whose return address is still in a register leaves it (once: registers are used
 * up then); a signal frame and a frame pointer may lead to another stack, which may be anywhere but
 * within WK_OTHER_STACK below. Hostile stacks can use the latter to go round in circles, so the walker
 * bounds the number of steps.
 *
 * A root is never guessed: a rule says so, or a return address of zero that rules alone have led to, or
 * a chain of frame records has an end. A frame pointer that just happens to be zero is WK_USER_NO_INFO.
 *
 * Stops: WK_USER_ROOT      outermost frame
 *	  WK_USER_NO_INFO   no rule for this address
 *	  WK_USER_BAD_RULE  rule not understood, or it needs a register that isn't known in this frame
 *	  WK_USER_BAD_FRAME the CFA is misaligned or just below sp; frame pointer likewise; or
 *			    guesses have led to a return address of zero
 *	  WK_USER_FAULT     stack not readable
 *
 * Architecture: WK_ARCH_ARM64 when set (by the includer, or here from the target), else x86-64.
 * Cost: one read of 16 bytes for a usual frame on either, two reads of 8 where the frame pointer
 * isn't saved beside the return address, one of 136 (x86-64) or 264 (arm64) at a signal. A function
 * that lands exceptions: up to WK_LAND_READS more.
 */
#ifndef WICK_BPF_STEP_H
#define WICK_BPF_STEP_H

#include "wick_rows.h"

#ifndef __noinline
#define __noinline __attribute__((noinline))
#endif

#if !defined(WK_ARCH_ARM64) && !defined(WK_ARCH_X86_64)
#if defined(__TARGET_ARCH_arm64) || (!defined(__bpf__) && defined(__aarch64__))
#define WK_ARCH_ARM64
#else
#define WK_ARCH_X86_64
#endif
#endif

/* DWARF register numbers: System V psABI for x86-64, figure 3.36; DWARF for the Arm 64-bit
 * Architecture, section 4.1. SIGFRAME_*: words of a signal frame from the first saved register. */
#ifdef WK_ARCH_ARM64
enum {
	WK_REG_FP = 29, WK_REG_LR = 30, WK_REG_SP = 31,
	WK_SIGFRAME_WORDS = 33,	/* x0..x30, sp, pc */
};
/* arch/arm64/kernel/signal.c, struct rt_sigframe: sp -> siginfo (128 bytes), then ucontext, whose
 * uc_mcontext is at 176; in it fault_address, then regs[31], sp, pc (uapi/asm/sigcontext.h). */
#define WK_SIGFRAME_OFF (128 + 176 + 8)
#else
enum {
	WK_REG_BX = 3, WK_REG_FP = 6, WK_REG_SP = 7,
	WK_SIGFRAME_WORDS = 17,
};
/* arch/x86/include/asm/sigframe.h, struct rt_sigframe: pretcode, which the handler's ret popped,
 * then ucontext: uc_flags, uc_link, uc_stack (24 bytes), uc_mcontext (uapi/asm/sigcontext.h). */
#define WK_SIGFRAME_OFF (8 + 8 + 24)
#endif

enum {
	WK_GENERAL = 16,	/* a power of two: one less is a mask */
	WK_OTHER_STACK = 64 << 10, /* bytes: so far below sp is another stack, nearer is an error */
	WK_LAND_READS = 16,	/* of WK_LAND_WORDS words each: how far above an exception may land */
	WK_LAND_WORDS = 16,
	WK_LEAF_BYTES = 4096,	/* functions without a frame are small */
};
#define WK_BX_UNKNOWN 1		/* no address of a word */

struct wk_regs {
	__u64 pc, sp, fp;
	__u64 lr;		/* arm64, while leaf */
	__u64 pac_mask;		/* arm64: bits of a return address that may hold its signature */
	__u32 exact;		/* pc is where execution stands; 0: return address, look up - 1 */
	__u32 leaf;		/* general[] and lr are this frame's: sampled, or cut by a signal */
	__u32 kept;		/* general[] is this frame's too, if it relies on a register: what it
				 * called and what is the leaf saves nothing on the stack */
	__u32 chained;		/* fp was found in the frame record that pc was found in */
	__u32 guessed;		/* this frame, or one below, was found without a rule */
	__u32 pad;
	__u64 bx_at;		/* x86-64: where this frame's rbx is saved; 0: it is in general[] */
	__u64 general[WK_GENERAL]; /* x86-64: by DWARF number, but sp and fp; arm64: unused */
	__u64 scratch[WK_SIGFRAME_WORDS];
};

/* A rule with the registers filled in. */
struct wk_rule {
	__u64 cfa;
	__u64 fp, ra;		/* values, or addresses to read them from: */
	__u32 fp_saved, ra_saved;
	__u32 from_sp;		/* the CFA is sp + something */
	__u32 exact;
	__u32 bx;		/* enum wk_bx */
	__u32 lands;		/* WK_CFA_LANDS */
};

/* The value of a register by DWARF number; not 0 when it is unknown in this frame. */
static __always_inline int wk_reg(const struct wk_regs *r, __u8 n, __u64 *ret)
{
	if (n == WK_REG_SP)
		*ret = r->sp;
	else if (n == WK_REG_FP)
		*ret = r->fp;
#ifdef WK_ARCH_ARM64
	else if (n == WK_REG_LR && r->leaf)
		*ret = r->lr;
#else
	else if (n == WK_REG_BX && r->bx_at)
		return r->bx_at == WK_BX_UNKNOWN || WK_READ_USER(ret, sizeof(*ret), r->bx_at);
	else if (n < WK_GENERAL && (r->leaf || r->kept || n == WK_REG_BX))
		*ret = r->general[n & (WK_GENERAL - 1)];
#endif
	else
		return -1;
	return 0;
}

/* Whether a rule's CFA can be that of the frame at sp: higher on the same stack. Without a frame it
 * is sp itself, and then the return address can't be on the stack. Found otherwise than from sp it
 * may lie on another stack (Go's goroutine under its system stack, coroutines, split stacks). */
static __always_inline int wk_is_cfa(const struct wk_regs *r, const struct wk_rule *rule)
{
	if (rule->cfa & 7)
		return 0;
	if (rule->cfa > r->sp)
		return 1;
	if (rule->cfa == r->sp)
		return r->leaf && !rule->ra_saved;
	return !rule->from_sp && rule->cfa >= WK_OTHER_STACK && r->sp - rule->cfa >= WK_OTHER_STACK;
}

#ifndef WK_ARCH_ARM64
/* The caller's rbx is an address until somebody needs it: most frames save it, few rules use it. */
static __always_inline void wk_move_bx(struct wk_regs *r, const struct wk_rule *rule)
{
	if (rule->bx > WK_BX_FAR)
		r->bx_at = WK_BX_UNKNOWN;
	else if (rule->bx != WK_BX_SAME)
		r->bx_at = rule->cfa - 8 * (rule->bx + 1ULL);
}

/* An exception lands (_Unwind_RaiseException and its like): before the function returns straight into
 * the frame of the handler it overwrites all that it has saved by what that frame needs. The return
 * address comes last; it is then the handler's, too, copied from where the handler's callee has it:
 * further up, and there the frame lies. sp of the frame that is returned to, or 0: not (yet) landed. */
static __noinline __u64 wk_landed(struct wk_regs *r, __u64 cfa, __u64 ra)
{
	for (__u32 i = 0; i < WK_LAND_READS; i++) {
		__u64 at = cfa + i * WK_LAND_WORDS * sizeof(ra);

		if (WK_READ_USER(r->scratch, WK_LAND_WORDS * sizeof(ra), at))
			return 0;
		for (__u32 j = 0; j < WK_LAND_WORDS; j++)
			if (r->scratch[j] == ra)
				return at + (j + 1) * sizeof(ra);
	}
	return 0;
}
#endif

/* Moves to the caller that a rule describes. */
static __always_inline enum wk_outcome wk_move(struct wk_regs *r, const struct wk_rule *rule)
{
	__u64 pair[2] = { rule->fp, rule->ra };

	if (!wk_is_cfa(r, rule))
		return WK_USER_BAD_FRAME;
	if (rule->fp_saved && rule->ra_saved && rule->ra == rule->fp + 8) {
		if (WK_READ_USER(pair, sizeof(pair), rule->fp))
			return WK_USER_FAULT;
	} else {
		if (rule->ra_saved && WK_READ_USER(&pair[1], sizeof(pair[1]), rule->ra))
			return WK_USER_FAULT;
		if (rule->fp_saved && WK_READ_USER(&pair[0], sizeof(pair[0]), rule->fp))
			return WK_USER_FAULT;
	}
#ifdef WK_ARCH_ARM64
	pair[1] &= ~r->pac_mask;
#endif
	/* clone, makecontext and bare entry code leave 0 above the first frame; memory is full of 0 */
	if (!pair[1])
		return r->guessed ? WK_USER_BAD_FRAME : WK_USER_ROOT;
	r->kept = r->leaf && rule->cfa == r->sp + 8;
	r->sp = rule->cfa;
#ifndef WK_ARCH_ARM64
	wk_move_bx(r, rule);
	if (rule->lands) {
		__u64 landed = wk_landed(r, rule->cfa, pair[1]);

		if (landed)
			r->sp = landed;
	}
#endif
	r->pc = pair[1];
	r->fp = pair[0];
	r->exact = rule->exact;
	r->leaf = r->chained = 0;
	return 0;
}

/* At a signal trampoline: back to where the kernel interrupted the thread. */
static __always_inline enum wk_outcome wk_signal_step(struct wk_regs *r)
{
	const __u64 *s = r->scratch;

	if (WK_READ_USER(r->scratch, sizeof(r->scratch), r->sp + WK_SIGFRAME_OFF))
		return WK_USER_FAULT;
#ifdef WK_ARCH_ARM64
	if (!s[32])
		return WK_USER_ROOT;
	r->fp = s[29];
	r->lr = s[30];
	r->sp = s[31];
	r->pc = s[32];
#else
	/* r8..r15 di si bp bx dx ax cx sp ip */
	if (!s[16])
		return WK_USER_ROOT;
	r->general[0] = s[13];
	r->general[1] = s[12];
	r->general[2] = s[14];
	r->general[3] = s[11];
	r->general[4] = s[9];
	r->general[5] = s[8];
	__builtin_memcpy(&r->general[8], s, 8 * sizeof(*s));
	r->fp = s[10];
	r->sp = s[15];
	r->pc = s[16];
#endif
	r->exact = 1;
	r->leaf = 1;
	r->kept = r->chained = 0;
	r->bx_at = 0;
	return 0;
}

static __always_inline enum wk_outcome wk_side_step(struct wk_regs *r, struct wk_row row,
						    const struct wk_side *side)
{
	struct wk_rule rule = { .fp = r->fp, .exact = side->exact, .bx = WK_ROW_BX(row) };
	__u64 base, index = 0;

	if (wk_reg(r, side->cfa_reg, &base))
		return WK_USER_BAD_RULE;
	if (side->cfa_kind == WK_SIDE_INDEX && wk_reg(r, side->cfa_reg2, &index))
		return WK_USER_BAD_RULE;
	rule.cfa = base + index * 8 + side->cfa_off;
	rule.from_sp = side->cfa_reg == WK_REG_SP && side->cfa_kind == WK_SIDE_REG;
	if (side->cfa_kind != WK_SIDE_REG) {
		if (WK_READ_USER(&base, sizeof(base), rule.cfa))
			return WK_USER_FAULT;
		rule.cfa = base + side->cfa_add;
	}
	if (side->ra_where == WK_AT_CFA)
		rule.ra = rule.cfa;
	else if (wk_reg(r, side->ra_reg, &rule.ra))
		return WK_USER_BAD_RULE;
	rule.ra_saved = side->ra_where != WK_IN_REG;
	if (rule.ra_saved)
		rule.ra += side->ra_off;
	if (side->fp_where == WK_UNDEFINED) {
		rule.fp = WK_FP_LOST;
	} else if (side->fp_where != WK_SAME) {
		if (side->fp_where == WK_AT_CFA)
			rule.fp = rule.cfa;
		else if (wk_reg(r, side->fp_reg, &rule.fp))
			return WK_USER_BAD_RULE;
		rule.fp_saved = side->fp_where != WK_IN_REG;
		if (rule.fp_saved)
			rule.fp += side->fp_off;
	}
	return wk_move(r, &rule);
}

/* By the frame record {saved frame pointer, return address} that fp points to: code without tables
 * that keeps frame pointers (JIT), or whose tables say so. fp 0 marks the outermost frame (x86-64
 * psABI 3.4.1, AAPCS64 6.4.6), but only of code that is known to keep frame pointers: others use
 * the register as they like. The saved frame pointer isn't judged here: the caller may have tables
 * and use it likewise. Whoever needs it next finds out: it must be aligned, and not below sp unless
 * on another stack. */
static __always_inline enum wk_outcome wk_fp_step(struct wk_regs *r, __u32 certain)
{
	struct wk_rule rule = {
		.cfa = r->fp + 16, .fp = r->fp, .ra = r->fp + 8, .fp_saved = 1, .ra_saved = 1,
		.bx = WK_BX_LOST,
	};
	enum wk_outcome stop;

	if (!r->fp)
		return certain || r->chained ? WK_USER_ROOT : WK_USER_NO_INFO;
	if (rule.cfa < r->fp || (r->fp < r->sp && rule.cfa >= r->sp))
		return WK_USER_BAD_FRAME;
	r->guessed |= !certain;
	stop = wk_move(r, &rule);
	r->chained |= !stop;
	return stop;
}

/* side is read only when row.cfa is WK_CFA_SIDE. */
static __always_inline enum wk_outcome wk_step(struct wk_regs *r, struct wk_row row,
					       const struct wk_side *side)
{
	struct wk_rule rule = { .cfa = r->sp, .fp = r->fp, .from_sp = row.cfa != WK_CFA_FP,
				.bx = WK_ROW_BX(row), .lands = row.cfa == WK_CFA_LANDS };
	__u64 fp_at;

	if (row.cfa == WK_CFA_LEAF && !r->leaf)
		row.cfa = row.cfa_off == WK_CALLER_CHAIN ? WK_CFA_CHAIN :
			  row.cfa_off == WK_CALLER_ROOT	 ? WK_CFA_ROOT : WK_CFA_NONE;
	if (row.cfa == WK_CFA_NONE)
		return WK_USER_NO_INFO;
	if (row.cfa == WK_CFA_ROOT || (row.cfa == WK_CFA_CLONE && r->leaf && !r->general[0]))
		return WK_USER_ROOT;
	if (row.cfa == WK_CFA_CHAIN)
		return wk_fp_step(r, 1);
	if (row.cfa == WK_CFA_SIGNAL)
		return wk_signal_step(r);
	if (row.cfa == WK_CFA_SIDE)
		return wk_side_step(r, row, side);
	if (row.cfa == WK_CFA_SP)
		rule.cfa += 8 * (__s64)row.cfa_off;
	else if (row.cfa == WK_CFA_LEAF || row.cfa == WK_CFA_CLONE)
		rule.cfa += 8;
	else if (row.cfa == WK_CFA_FP)
		rule.cfa = r->fp + 8 * (__s64)row.cfa_off;
	else if (row.cfa == WK_CFA_LANDS)
		rule.cfa = r->leaf ? r->fp + 16 : r->sp + 8 * (__s64)row.cfa_off;
	else if (row.cfa == WK_CFA_PLT)
		rule.cfa += (r->pc & 15) >= (__u64)row.cfa_off ? 16 : 8;
	else
		return WK_USER_BAD_RULE;

	fp_at = rule.cfa + 8 * (__s64)row.fp_off;
	if (WK_ROW_FP(row) == WK_FP_SAVED) {
		rule.fp = fp_at;
		rule.fp_saved = 1;
	} else if (WK_ROW_FP(row) == WK_FP_UNDEFINED) {
		rule.fp = WK_FP_LOST;
	}
	rule.ra_saved = 1;
#ifdef WK_ARCH_ARM64
	if (WK_ROW_RA(row) == WK_RA_LR) {
		if (!r->leaf)	/* lr is the callee's return address by now: this very frame */
			return WK_USER_BAD_RULE;
		rule.ra = r->lr;
		rule.ra_saved = 0;
	} else {
		rule.ra = WK_ROW_RA(row) == WK_RA_AFTER_FP ? fp_at + 8 : fp_at;
	}
#else
	rule.ra = rule.cfa - 8;
#endif
	return wk_move(r, &rule);
}

/* ---- code without rows ---------------------------------------------------------------------- */

/* Whether a direct call to just where we are stands before a return address: a stale one in a local
 * variable wouldn't have it. */
static __always_inline int wk_called_from(__u64 ra, __u64 pc)
{
#ifdef WK_ARCH_ARM64
	__u32 insn;

	if (WK_READ_CODE(&insn, sizeof(insn), ra - 4) || insn >> 26 != 0x25)
		return 0;	/* bl: Arm ARM C6.2 */
	return pc - (ra - 4 + ((__s64)((__u64)insn << 38) >> 36)) < WK_LEAF_BYTES;
#else
	__u8 code[5];
	__s32 distance;

	if (WK_READ_CODE(code, sizeof(code), ra - sizeof(code)) || code[0] != 0xe8)
		return 0;	/* call rel32: Intel SDM volume 2 */
	__builtin_memcpy(&distance, code + 1, sizeof(distance));
	return pc - (ra + (__s64)distance) < WK_LEAF_BYTES;
#endif
}

/* A leaf without rows may have no frame of its own (hand-written code; any prologue's first
 * instruction): then the frame pointer is its caller's, and by it alone the caller would be missing.
 * Its return address is still in lr or at the top of the stack. Not 0 if it went there. */
static __always_inline int wk_leaf_step(struct wk_regs *r)
{
#ifdef WK_ARCH_ARM64
	__u64 ra = r->lr & ~r->pac_mask;

	if (!wk_called_from(ra, r->pc))
		return 0;
#else
	__u64 ra, at = r->sp;
	__u32 code = 0;
	/* between push %rbp and mov %rsp, %rbp it is above what was pushed, without any doubt */
	int pushed = !WK_READ_CODE(&code, sizeof(code), r->pc - 1) && code == 0xe5894855;

	if (pushed)
		at += sizeof(ra);
	if (WK_READ_USER(&ra, sizeof(ra), at) || (!pushed && !wk_called_from(ra, r->pc)))
		return 0;
	r->sp = at + sizeof(ra);
	r->bx_at = WK_BX_UNKNOWN;
#endif
	r->pc = ra;
	r->exact = r->leaf = r->kept = r->chained = 0;
	r->guessed = 1;
	return 1;
}

#ifndef WK_ARCH_ARM64
/* A return address without rows whose code does nothing but return: add $n, %rsp; ret. The trampolines
 * that CPython makes to have names (python -X perf, Python/asm_trampoline.S) keep no frame pointer. That
 * isn't guessed: it is what will be executed. Not 0 if it went there. */
static __always_inline int wk_epilogue_step(struct wk_regs *r)
{
	__u64 *code = &r->scratch[0], *ra = &r->scratch[1], at;	/* verifier: the stack is small */

	if (WK_READ_CODE(code, sizeof(*code), r->pc) || (*code & 0xff80ffffffULL) != 0xc300c48348ULL)
		return 0;
	at = r->sp + (*code >> 24 & 0x7f);
	if (at & 7 || WK_READ_USER(ra, sizeof(*ra), at) || !*ra)
		return 0;
	r->pc = *ra;
	r->sp = at + sizeof(*ra);
	r->exact = r->leaf = r->kept = r->chained = 0;
	return 1;
}
#endif

/* ---- all of it ------------------------------------------------------------------------------ */

/* found: there is a row. */
static __always_inline enum wk_outcome wk_find_caller(struct wk_regs *r, int found,
						      struct wk_row row, const struct wk_side *side)
{
	enum wk_outcome stop = found ? wk_step(r, row, side) : WK_USER_NO_INFO;

	if (stop != WK_USER_NO_INFO)
		return stop;
	if (r->leaf && wk_leaf_step(r))
		return 0;
#ifndef WK_ARCH_ARM64
	if (!r->leaf && !r->exact && wk_epilogue_step(r))
		return 0;
#endif
	return wk_fp_step(r, 0);
}

#endif
