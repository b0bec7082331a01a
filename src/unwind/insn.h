/* insn.h - what one x86-64 instruction does to the stack and where execution goes from it.
 *
 *	struct insn i;
 *
 *	for (at = 0; !insn_decode(code + at, size - at, &i); at += i.size)
 *		if (i.stack == INSN_ADD_SP)
 *			depth -= i.n;
 *
 * Decoding is libZydis' business; this reduces an instruction to the few facts that code.h follows:
 * every change of rsp and rbp, and nothing of other registers. A change that has no word below is
 * INSN_LOSE_SP or INSN_LOSE_FP, so none is overlooked: the decoder names each register that an
 * instruction writes, implicitly too.
 *
 * Hostile input: any bytes; nothing is read outside of them. No allocation, no state.
 * Cost: about 10 ns for the commonest instructions, which are known by their bytes, 150 for others.
 */
#ifndef WICK_UNWIND_INSN_H
#define WICK_UNWIND_INSN_H

#include "base/base.h"

#define INSN_SIZE_MAX 15	/* bytes of an instruction (Intel SDM volume 2, section 2.3.11) */

enum insn_flow {
	INSN_NEXT,		/* on to the next instruction */
	INSN_CALL,		/* there and back; to `target` if has_target */
	INSN_JUMP,		/* to `target` */
	INSN_JUMP_INDIRECT,	/* to where a register or memory says */
	INSN_BRANCH,		/* to `target` or the next instruction */
	INSN_RETURN,
	INSN_STOP,		/* int3, ud2, hlt, iret: execution doesn't come out behind it */
};

/* In the order in which the comments have it. n is in bytes. */
enum insn_stack {
	INSN_KEEP,		/* neither register changes */
	INSN_ADD_SP,		/* rsp += n: push, pop, sub, lea */
	INSN_PUSH_FP,		/* rsp -= 8, *rsp = rbp */
	INSN_POP_FP,		/* rbp = *rsp, rsp += 8 */
	INSN_STORE_FP,		/* *(rsp + n) = rbp */
	INSN_LOAD_FP,		/* rbp = *(rsp + n) */
	INSN_SET_FP,		/* rbp = rsp + n */
	INSN_SET_SP,		/* rsp = rbp + n */
	INSN_LEAVE,		/* rsp = rbp, rbp = *rsp, rsp += 8 */
	INSN_CLEAR_FP,		/* rbp = 0 */
	INSN_LOSE_FP,		/* rbp = something else */
	INSN_LOSE_SP,		/* rsp = something else */
	INSN_LOSE_BOTH,		/* xchg, enter */
};

struct insn {
	uint8_t size;		/* bytes */
	uint8_t flow;		/* enum insn_flow */
	uint8_t stack;		/* enum insn_stack */
	bool nop;		/* does nothing: padding, if it stands between blocks */
	bool has_target;	/* of INSN_CALL; a jump or branch always has one */
	bool has_ref;		/* takes the address `target`: lea x(%rip) */
	int64_t n;
	int64_t target;		/* from the first byte of this instruction */
};

/* The instruction at p, of which size bytes are there. 0; -EBADMSG: none, or a part of one. */
int must_check insn_decode(const uint8_t *p, size_t size, struct insn *ret);

/* The two halves of it. insn_full knows every instruction; insn_quick only the commonest, and of those
 * the same. False: not one of them, or a part of one. */
int must_check insn_full(const uint8_t *p, size_t size, struct insn *ret);
bool insn_quick(const uint8_t *p, size_t size, struct insn *ret);

#endif
