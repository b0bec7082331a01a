/* gaps.h - rules for the code of an ELF file that no call frame information covers, from the code.
 *
 *	struct gap gaps[] = { { offset, vaddr, size }, ... };	// ascending
 *	r = gaps_trace(elf, debug, entry, gaps, n, max, &code, &left);
 *
 * Reads the gaps, tells code.h where functions start (symbols of both tables, and of the separate debug
 * file; without any, whatever data and code of the file point to), and follows the code.
 *
 * Hostile input: as code.h; symbols are read in pieces, at most GAPS_SYMBOLS_MAX of them.
 */
#ifndef WICK_UNWIND_GAPS_H
#define WICK_UNWIND_GAPS_H

#include "elf/elf.h"
#include "unwind/code.h"

#define GAPS_MIN	 16		/* bytes; smaller ones are taken for padding */
#define GAPS_SYMBOLS_MAX (4u << 20)	/* of one table; chrome has 1.2 M */
#define GAPS_SEARCH_MAX	 (1u << 20)	/* bytes of a stripped file that is searched in any case */
#define GAPS_SEARCH_SHARE 64		/* of a larger one the gaps are so much, or it isn't */

struct gap {
	uint64_t offset, vaddr, size;	/* file offset, address, bytes */
};

/* x86-64 only. debug may be NULL. entry: the address of the outermost function, or 0. Gaps of GAPS_MIN
 * bytes or more are read, up to max bytes in all; *ret_left is increased by those of the others.
 *	0
 *	-ENOENT		nothing is worth looking at, or nothing was found
 *	-ENOMEM, and what pread says; what is malformed is passed over */
int must_check gaps_trace(const struct elf *elf, const struct elf *debug, uint64_t entry,
			  const struct gap *gaps, size_t n, uint64_t max, struct code **ret,
			  uint64_t *ret_left);

#endif
