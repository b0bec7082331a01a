/* genrows.h - unwind rules of one function that a runtime has made, from its instructions alone.
 *
 *	struct genrows g = GENROWS_INIT;
 *
 *	r = genrows_trace(&g, bytes, n);	// one function, whole
 *	if (!r && g.frameless)
 *		... a walk by frame pointers would miss its caller ...
 *	genrows_each(&g, row, arg);
 *
 * Runtimes leave frame pointers out of what is small (.NET, Mono) or of everything (HotSpot). Their lists
 * say where functions start and end, which code.h has to find out; so this is simpler, and refuses more:
 * a function counts only if a return is reached, each with nothing but the return address on top, and
 * no two ways that meet disagree, but behind a call that then doesn't return. Code that jumps away without returning (PHP's, which runs in the
 * interpreter's frame) has no rules, unless it has saved and restored rbp before; nor has an endless loop,
 * unless it begins by saving rbp.
 *
 * A function that takes over the frame of a slower version of itself (.NET's on-stack replacement) returns
 * at another depth than it begins at. If all of its returns agree about how much it takes over, that is
 * taken for a frame with a frame pointer.
 *
 * What isn't reached lies behind a jump by table, and is followed in the state of that jump, or is
 * called by the runtime (handlers of exceptions), and must then return by itself.
 *
 * Hostile input: any bytes. Cost: 10 to 150 ns an instruction, 18 bytes of memory per byte of the largest
 * function. x86-64 only.
 */
#ifndef WICK_UNWIND_GENROWS_H
#define WICK_UNWIND_GENROWS_H

#include "base/base.h"
#include "unwind/state.h"

enum {
	GENROWS_BYTES_MAX = 256 << 10,	/* of a function */
	GENROWS_GAPS_MAX = 64,		/* unreached parts that are tried */
};

struct genrows_path;

struct genrows {		/* of the function traced last; memory is used again */
	bool frameless;		/* it calls others while rbp isn't its frame pointer, or has a frame of its own
				 * and never such a pointer */
	/* private */
	const uint8_t *code;
	uint32_t n;
	uint16_t *seen;		/* by byte: in which pass */
	struct code_state *states;
	size_t seen_cap, states_cap;
	struct genrows_path *paths, *later;
	size_t npaths, paths_cap, nlater, later_cap;
	uint16_t pass;
	bool first, wrong, returned, jumps, framed, moved, leaves, saved;
	int32_t depth;		/* bytes at its returns, if that isn't a return address; else 0 */
	struct code_state jump;	/* of the jump by table */
	uint64_t work;		/* instructions that may yet be followed */
};
#define GENROWS_INIT { 0 }

void genrows_free(struct genrows *g);
static inline maybe_unused void genrows_cleanup(struct genrows *g)
{
	genrows_free(g);
}

/* 0; -ENOENT: nothing is known of this function; -E2BIG (over GENROWS_BYTES_MAX, or none); -ENOMEM.
 * code is borrowed for the call. */
int must_check genrows_trace(struct genrows *g, const uint8_t *code, size_t n);

/* Calls row() for each range, ascending from 0, after genrows_trace() has returned 0; a range ends where
 * the next starts. Ranges without a rule have WK_CFA_NONE. row->pc isn't set. */
typedef int genrows_row_fn(void *arg, uint32_t offset, const struct wk_row *row);
int must_check genrows_each(const struct genrows *g, genrows_row_fn *row, void *arg);

#endif
