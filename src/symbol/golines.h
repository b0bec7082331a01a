/* golines.h - lines and inlined calls of Go code, from the table of Go's own tracebacks (gotab.h).
 *
 *	r = golines_open(elf, true, &g);
 *	r = golines_lookup(g, vaddr, &chain);
 *
 * Like a Go traceback, with names as the linker wrote them (demangle.h) and paths as the compiler saw them, and
 * with the wrappers that tracebacks leave out. There are no columns. Inlined calls since Go 1.14; before, the line
 * is that of the innermost call, under the name of the function it lies in. Compared with Go's own runtime for
 * each version from 1.15 on (make test-go).
 *
 * Ownership: borrows the elf until golines_free. A chain is borrowed until the next look-up.
 * Memory: 100 KiB. Threads: one. Cost: 5 to 50 us an address, nothing to open.
 * Errors: -ENOENT (not Go's code, nothing known of it), those of gotab.h.
 */
#ifndef WICK_SYMBOL_GOLINES_H
#define WICK_SYMBOL_GOLINES_H

#include "elf/elf.h"
#include "symbol/linechain.h"

#define GOLINES_DEPTH_MAX 128		/* calls inlined at one address */
#define GOLINES_BYTES	  (128u << 10)	/* memory of one table */

struct golines;

int must_check golines_open(const struct elf *e, bool inlines, struct golines **ret);
void golines_free(struct golines *g);
DEFINE_CLEANUP(golines, struct golines *, golines_free)

int must_check golines_lookup(struct golines *g, uint64_t vaddr, struct line_chain *ret);

#endif
