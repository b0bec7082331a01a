/* debuginfo.h - lines and inlined calls of one file, from its DWARF (versions 2 to 5), by libdw.
 *
 *	struct debuginfo *d;
 *	struct line_chain c = { 0 };
 *	int r = debuginfo_open(&options, &d);
 *
 *	if (!r)
 *		r = debuginfo_lookup(d, vaddr, deadline, &c);
 *	for (size_t i = 0; !r && i < c.n; i++)
 *		printf("%s %s:%u\n", c.v[i].name, c.v[i].file, c.v[i].line);
 *
 * Everything is done when it is first needed: opening finds which code belongs to which unit; the
 * first address of a unit reads its line program (lineprog.h) and lists its functions without
 * looking into them; the first address of a function looks for the calls that were inlined there.
 * So the cost follows what was sampled, not the size of the file.
 *
 * Which of several answers: the deepest call whose code holds the address, the last one in the file's
 * order where two of one depth do; of two functions with the same code (identical code folding)
 * the last one; of two units with the same code the first.
 *
 * Hostile input: all reading is within the image (dwarfimage.h), steps through entries look at the
 * deadline, and the growth of this process's memory meanwhile is bounded too, since libdw's own
 * structures are made from what the file says.
 *
 * Ownership: borrows the files until debuginfo_free. A chain's texts are borrowed until
 *	      debuginfo_free, its array until the next look-up.
 * Threads:   one.
 * Cost:      opening about 2 us a unit; then 50 ns an entry of a sampled unit, 10 ns a row of its
 *	      line program; an address of a function that was looked into 1 us.
 * Errors:    those of dwarfimage.h for opening, -ETIME (the deadline), -E2BIG (a limit), -ENOMEM.
 */
#ifndef WICK_SYMBOL_DEBUGINFO_H
#define WICK_SYMBOL_DEBUGINFO_H

#include "elf/elf.h"
#include "symbol/linechain.h"

#define DEBUGINFO_UNITS_MAX  65536	/* what lies behind has no lines */
#define DEBUGINFO_DEPTH_MAX  128	/* nested scopes, blocks and calls */
#define DEBUGINFO_CALLS_MAX  (1u << 20)	/* ranges of inlined calls of one function */

struct debuginfo;

struct debuginfo_options {
	const struct elf *elf;	/* with the DWARF: the file itself or its debug file */
	const struct elf *code;	/* the file that was running: its segments tell what is code */
	uint64_t max_bytes;	/* of the debug sections, and of what is made from them */
	bool inlines;		/* false: only the function itself, at the line of the address */
	/* Of the code, for its split units (splitdwarf.h): its path, NULL if unknown, and a process in whose
	 * root that is, -1 for this host's. Both are copied. */
	const char *path;
	int process;
	/* The file of what several share, .gnu_debugaltlink (debugfile_alt); NULL: none. */
	const struct elf *alt;
	uint64_t deadline;	/* of opening, clock_monotonic() */
};

int must_check debuginfo_open(const struct debuginfo_options *o, struct debuginfo **ret);
void debuginfo_free(struct debuginfo *d);
DEFINE_CLEANUP(debuginfo, struct debuginfo *, debuginfo_free)

/* What stands at an address. -ENOENT: nothing is known of it. */
int must_check debuginfo_lookup(struct debuginfo *d, uint64_t vaddr, uint64_t deadline,
				struct line_chain *ret);
/* Sampled units whose split files weren't at hand. */
uint64_t debuginfo_split_missing(const struct debuginfo *d);
/* Bytes of memory, libdw's own structures left out. */
uint64_t debuginfo_memory(const struct debuginfo *d);

#endif
