/* code.h - unwind rules from x86-64 machine code itself, where nothing else describes it.
 *
 *	r = code_new(&c);
 *	r = code_add(c, vaddr, size, &bytes);		// a piece of code; fill bytes in at once
 *	r = code_function(c, symbol_value);		// where functions start
 *	r = code_root(c, entry_point);
 *	r = code_trace(c, false);
 *	while (code_next(c, &n, &start, &end))		// pieces of which something is known
 *		code_rows(c, n - 1, each_row, arg);
 *
 * Static musl, Rust with panic=abort and hand-written assembly come without call frame information. From
 * each function's start, where the caller's address is on top of the stack, the code is followed
 * along every path that its jumps show, and for each instruction it is noted how far the CFA is from
 * rsp, or from rbp while that is a frame pointer, and where the caller's rbp was saved. Where paths
 * that meet disagree, what they disagree about is unknown, and an instruction about whose CFA
 * nothing is known gets no rule: the walk then does without, as if this didn't exist.
 *
 * What makes such rules true more often than a guess would be:
 *	- a return with anything but the return address on top proves that something was
 *	  misunderstood: all that led to it is taken back;
 *	- functions that don't return are found by it, or by a jump to behind their call that
 *	  contradicts; paths through them are taken back and followed again without;
 *	- functions start at symbols, call targets, and addresses that code takes, the latter two found
 *	  on the way; in stripped files also where data points to, and where the bytes behind padding
 *	  look like a prologue. What is only likely must agree with all that is known already;
 *	- targets of jump tables are what lies unreached between blocks of a function with such a
 *	  jump: they have the jump's state, if all of the function's have one.
 * A function that clears rbp before it has saved it is the outermost one (psABI 3.4.1): musl's clone.
 *
 * Hostile input: any bytes. The work is bounded by CODE_WORK instructions a byte; code beyond
 * stays without rules. Cost: about 200 ns an instruction, 4 bytes of memory per byte of code and 6
 * more for the largest function.
 */
#ifndef WICK_UNWIND_CODE_H
#define WICK_UNWIND_CODE_H

#include "base/base.h"
#include "wick_rows.h"

#define CODE_BYTES_MAX (256u << 20)	/* of all pieces */
#define CODE_WORK      4		/* instructions followed per byte, all passes together */

struct code;

int must_check code_new(struct code **ret);
void code_free(struct code *c);
DEFINE_CLEANUP(code, struct code *, code_free)

/* Adds a piece of code, behind those added before. *ret_bytes, for the caller to fill in, is valid
 * until the next call. 0, -ENOMEM, -E2BIG (CODE_BYTES_MAX), -EINVAL (not ascending). */
int must_check code_add(struct code *c, uint64_t vaddr, size_t size, uint8_t **ret_bytes);

bool code_holds(const struct code *c, uint64_t vaddr);	/* a piece does */

/* A function starts here; it is an outermost one. Addresses outside of the pieces are passed over.
 * 0, -ENOMEM. */
int must_check code_function(struct code *c, uint64_t vaddr);
int must_check code_root(struct code *c, uint64_t vaddr);

/* Something refers to this address; perhaps a function starts there. 0, -ENOMEM. */
int must_check code_ref(struct code *c, uint64_t vaddr);

/* Follows the code. Once. stripped: not all functions were given. 0, -ENOMEM. */
int must_check code_trace(struct code *c, bool stripped);

/* The next piece with rules: [*ret_start, *ret_end) is what of it was reached, from the first to the
 * last byte. *n starts at 0 and is the piece's number + 1 afterwards. */
bool code_next(const struct code *c, size_t *n, uint64_t *ret_start, uint64_t *ret_end);
/* Calls row() for each range of piece n, ascending; a range ends where the next starts. Ranges without a
 * rule have WK_CFA_NONE. row->pc isn't set. */
typedef void code_row_fn(void *arg, uint64_t start, const struct wk_row *row);
void code_rows(const struct code *c, size_t n, code_row_fn *row, void *arg);

/* Bytes of instructions with a rule. */
uint64_t code_known_bytes(const struct code *c);
uint64_t code_bytes(const struct code *c);	/* of all pieces */

#endif
