/* bounds.h - where the functions of a file begin and end, by .eh_frame: no names.
 *
 *	struct bounds *b;
 *	uint64_t start;
 *	int r = bounds_build(elf, &b);
 *
 *	if (!r && bounds_lookup(b, vaddr, &start))
 *		printf("%s+0x%llx", module, start);	// the same for all of the function
 *	bounds_free(b);
 *
 * Stripping removes symbols, not unwind tables. Each FDE describes one function (or the cold part
 * of one), so code without a symbol is still told apart by function, and a report shows one row
 * per function instead of one per sampled address.
 *
 * FDEs of one start count once, the longest. Where they overlap, which no compiler does, the one
 * that starts last is asked. FDEs outside of executable memory are left out, malformed ones are
 * passed over.
 *
 * Addresses are the file's own. Ownership: the elf is read only now; free with bounds_free.
 * Memory:  8 bytes a function; while building also .eh_frame itself.
 * Cost:    about 30 ns a function to build; a look-up is a binary search.
 * Threads: finished bounds never change.
 * Errors:  -ENOENT (no .eh_frame, or it holds nothing of use), -E2BIG (over BOUNDS_SECTION_MAX),
 *	    -ENOMEM, those of elf_section_read.
 */
#ifndef WICK_SYMBOL_BOUNDS_H
#define WICK_SYMBOL_BOUNDS_H

#include "base/base.h"
#include "elf/elf.h"

#define BOUNDS_SECTION_MAX (128u << 20)	/* bytes of .eh_frame; a browser's has 20 MiB */

struct bounds;

int must_check bounds_build(const struct elf *e, struct bounds **ret);
void bounds_free(struct bounds *b);
DEFINE_CLEANUP(bounds, struct bounds *, bounds_free)

/* The start of the function that an address lies in. Look up return addresses minus one. */
bool bounds_lookup(const struct bounds *b, uint64_t vaddr, uint64_t *ret_start);
size_t bounds_count(const struct bounds *b);
size_t bounds_bytes(const struct bounds *b);	/* memory */

#endif
