/* state.h - what is known of the stack before an instruction, and how instructions change it (code.h).
 *
 *	struct code_state s = STATE_AT_ENTRY;
 *
 *	state_apply(&s, &insn, true);			// behind the instruction
 *	row = state_row(&s);				// how a walk finds the caller from here
 *	s = state_meet(&s, &other);			// two ways lead here
 *
 * Values, compared whole (state_equal). Meeting only ever forgets: at most five times until nothing is
 * known.
 */
#ifndef WICK_UNWIND_STATE_H
#define WICK_UNWIND_STATE_H

#include "unwind/insn.h"
#include "wick_rows.h"

enum {
	STATE_WORD = 8,
	STATE_UNKNOWN = INT32_MIN,
	STATE_OFFSET_MAX = STATE_WORD * INT16_MAX,	/* bytes that a row can say */
};

enum state_root {
	STATE_INNER,
	STATE_ENTRY,	/* so we were told */
	STATE_CLEARED,	/* it has cleared rbp without having saved it. Then it never returns */
};

/* Distances are in bytes from the CFA down. */
struct code_state {
	int32_t sp;	/* of rsp, or STATE_UNKNOWN */
	int32_t frame;	/* of what rbp points to, if that is in this frame; else 0 */
	int32_t slot;	/* of where the caller's rbp was saved, 0 if it wasn't */
	uint16_t same;	/* rbp is the caller's */
	uint16_t root;	/* enum state_root: the outermost function, then nothing else matters */
};
#define STATE_AT_ENTRY ((struct code_state){ .sp = STATE_WORD, .same = 1 })

static inline bool state_equal(const struct code_state *a, const struct code_state *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* Behind an instruction. may_be_root: clearing rbp first of all means that there is no caller (psABI
 * 3.4.1), not just a zero. */
void state_apply(struct code_state *s, const struct insn *i, bool may_be_root);
/* What holds in both. */
struct code_state state_meet(const struct code_state *a, const struct code_state *b);
/* Both can't be true at one instruction. */
bool state_contradict(const struct code_state *a, const struct code_state *b);
/* The rule; WK_CFA_NONE if too little is known. pc isn't set. */
struct wk_row state_row(const struct code_state *s);

#endif
