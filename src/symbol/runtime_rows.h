/* runtime_rows.h - unwind rows of the code that a runtime lists, for runtimes that leave frame pointers out.
 *
 *	struct runtime_rows *rr = NULL;			// made when it turns out to be needed
 *	if (runtime_rows_needed(rt, addr) > 0) r = runtime_rows_new(&rr);
 *	r = runtime_rows_update(rr, rt, deadline, &table);	// again when the runtime has listed more
 *
 * The functions are read from the process's memory where its list says that they are, each once as long as
 * the list has it there, and are followed by genrows.h. One table by address holds them all; where they lie
 * far apart (RUNTIME_ROWS_SPAN), it holds the cluster with most code.
 *
 * Memory that can't be read (memory.h), functions that can't be followed: no rows there. x86-64 only; elsewhere none are
 * ever needed.
 * Cost: 5 us a function, once; updating 50 ns for each function in the list, and 8 bytes of memory for
 * each row in the table, here 12 for each rule and 32 for each function: max_bytes at most, twice that
 * while updating. Functions beyond have no rows.
 */
#ifndef WICK_SYMBOL_RUNTIME_ROWS_H
#define WICK_SYMBOL_RUNTIME_ROWS_H

#include "symbol/runtime.h"
#include "unwind/unwtab.h"

struct runtime_rows;

#define RUNTIME_ROWS_SPAN (256ULL << 20)	/* from the first function with rows to the last */

/* Whether the function at addr calls others without a frame pointer of its own: reads it. 1, 0; -ETIMEDOUT: the
 * process's memory can't be read in time. */
int must_check runtime_rows_needed(const struct runtime *rt, uint64_t addr);

int must_check runtime_rows_new(struct runtime_rows **ret);
void runtime_rows_free(struct runtime_rows *rr);
/* *ret: the table, the caller's; NULL: nothing has changed since the last, or there are no rows. 0; -EAGAIN:
 * the deadline (CLOCK_MONOTONIC ns) came before all was followed, the table has what was, or there was no descriptor
 * to be had; -ETIMEDOUT: the process's
 * memory can't be read in time (memory.h), don't try again; -ENOMEM. */
int must_check runtime_rows_update(struct runtime_rows *rr, const struct runtime *rt, uint64_t max_bytes,
				   uint64_t deadline, struct unwtab **ret);
uint64_t runtime_rows_bytes(const struct runtime_rows *rr);	/* rr NULL: 0 */
/* Functions that the last table doesn't have, over max_bytes or RUNTIME_ROWS_SPAN. rr NULL: 0. */
uint64_t runtime_rows_left_out(const struct runtime_rows *rr);

#endif
