/* code_run.h - following code from one address. Part of code.h, for code.c alone.
 *
 * All pieces lie one behind the other in one array of bytes; "at" is an index into it. marks[at] says
 * what is known of the byte there: UNSEEN, INSIDE of an instruction, or the number of the state in
 * which the instruction that starts there is reached.
 *
 * A run is a transaction: if it ends at a contradiction, its marks are taken back and what it found is
 * forgotten.
 */
#ifndef WICK_UNWIND_CODE_RUN_H
#define WICK_UNWIND_CODE_RUN_H

#include "base/map.h"
#include "unwind/code.h"
#include "unwind/state.h"

enum {
	UNSEEN = 0,
	INSIDE = UINT16_MAX,
	ALIGNMENT = 16,			/* of functions */
	PADDING_MAX = ALIGNMENT - 1,
};
#define NOWHERE UINT32_MAX

struct piece {
	uint64_t vaddr;
	uint32_t at, n;
};

/* A way that execution may take. */
struct path {
	uint32_t at;
	uint32_t call;		/* the call that it comes back from just here, nops aside; or NOWHERE */
	uint32_t last;		/* the last call on it */
	uint32_t suspect;	/* the last behind which another function could start */
	struct code_state state;
};

struct change {
	uint32_t at;
	uint16_t was;
};

struct arrival {	/* at was first reached by coming back from call */
	uint32_t at, call;
};

struct list {		/* of addresses */
	uint32_t *v;
	size_t n, cap;
};

struct code {
	struct piece *pieces;
	size_t npieces, pieces_cap, piece;
	uint8_t *bytes;
	uint16_t *marks;
	size_t n, bytes_cap, marks_cap;
	struct map states;	/* number + 1 of struct code_state */
	uint16_t mark;		/* the last number asked for, or 0 */
	struct map functions;	/* at: in order of discovery */
	struct map returnless;	/* at of calls */
	struct list roots;
	struct list refs;	/* addresses that code takes */
	struct list jumps;	/* indirect ones, not looked at yet */
	size_t functions_done;
	uint64_t work;		/* instructions that may yet be followed */

	/* of the run */
	uint64_t patience;	/* instructions that it may yet follow */
	struct path *paths;	/* to follow */
	struct path *later;	/* when there are no more: those that come back from a call, if it does */
	struct change *changes;
	struct arrival *arrivals;
	struct list found;	/* functions */
	struct map own;		/* at: where an unproven one has been */
	size_t npaths, paths_cap, nlater, later_cap, nchanges, changes_cap, narrivals, arrivals_cap;
	bool wrong, again;	/* contradicted; contradicted and learnt from it */
	bool no_clearing;	/* rbp = 0 doesn't mean the outermost frame */
	bool guess;		/* it starts in a state that is only likely, and must agree with all else */
	bool unproven;		/* likewise, and must come out somewhere */
	bool confirmed;		/* it came to a return, or to what was known, in the right state */
	bool stripped;
};

int must_check code_list_add(struct list *l, uint32_t at);

/* The piece that an address lies in, or NULL; the one that holds at; addresses to indexes (NOWHERE: in no
 * piece) and back. */
const struct piece *code_piece_at(const struct code *c, uint64_t vaddr);
const struct piece *code_piece_of(struct code *c, uint32_t at);
uint32_t code_index_of(const struct code *c, uint64_t vaddr);
uint64_t code_vaddr_of(struct code *c, uint32_t at);

int must_check code_decode(struct code *c, uint32_t at, struct insn *ret);
bool code_is_function(const struct code *c, uint32_t at);	/* known as one by now */
bool code_is_prologue(struct code *c, uint32_t at);		/* it looks like the start of one */
const struct code_state *code_state_of(const struct code *c, uint16_t mark);

/* Follows the code from at, reached in a state. What it finds goes to functions, refs and jumps.
 * *ret_good: without contradiction; else nothing has changed. 0, -ENOMEM. */
int must_check code_run(struct code *c, uint32_t at, const struct code_state *s, bool *ret_good);

#endif
