/* gorows.h - rows for Go's code, from the stack sizes that Go keeps for its own tracebacks.
 *
 *	struct gorows *g;
 *	struct gorows_func f;
 *	int r = gorows_open(elf, &g);
 *
 *	while (!r && !(r = gorows_next(g, &f)))
 *		r = gorows_run(g, &f, to_offset, row, arg);
 *	gorows_free(g);
 *
 * Go has no .eh_frame, and what .debug_frame it has doesn't survive strip and is silent about saved
 * frame pointers. But for each address of each function, assembly included, there is a list of how far
 * sp is below the return address (elf/gotab.h, pcsp): an exact CFA. Functions with a frame save the
 * caller's frame pointer beside the return address; where they do is seen from their code.
 *
 * Some functions move sp to another stack, of which the list knows nothing (flag SPWRITE): these keep
 * the frame pointer, and it leads back (WK_CFA_CHAIN). Outermost are goexit, which goroutines return to,
 * rt0_go, which the kernel has started, and clone, as the caller of a new thread's first function.
 *
 * x86-64, Go 1.18 and later: -ENOTSUP for others.
 * Errors: those of gotab.h. Cost: about 300 ns a function, 4 to 6 rows each.
 */
#ifndef WICK_UNWIND_GOROWS_H
#define WICK_UNWIND_GOROWS_H

#include "elf/elf.h"
#include "wick_rows.h"

struct gorows;

enum gorows_kind {
	GOROWS_PLAIN,
	GOROWS_SWITCH,	/* moves sp to another stack */
	GOROWS_THREAD,	/* calls the first function of a thread */
	GOROWS_ROOT,
};

struct gorows_func {
	uint64_t start, end;	/* addresses of the file */
	uint32_t list;
	uint32_t kind;		/* enum gorows_kind */
};

int must_check gorows_open(const struct elf *e, struct gorows **ret);
void gorows_free(struct gorows *g);

/* Functions in order; -ENOENT at the end. */
int must_check gorows_next(struct gorows *g, struct gorows_func *ret);

/* Calls row() for each range of a function's code, ascending from its start, each up to the next and the
 * last up to the end. Code is read at its address + to_offset in the file. */
typedef void gorows_row_fn(void *arg, uint64_t start, struct wk_row row);
int must_check gorows_run(struct gorows *g, const struct gorows_func *f, uint64_t to_offset,
			  gorows_row_fn *row, void *arg);

DEFINE_CLEANUP(gorows, struct gorows *, gorows_free)

#endif
