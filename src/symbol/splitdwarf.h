/* splitdwarf.h - a unit of debug information that its compiler left in a file of its own (-gsplit-dwarf).
 *
 *	struct splitdwarf *s;
 *	int r = splitdwarf_open(&options, &skeleton_die, &s);
 *
 * The executable keeps a skeleton: addresses, lines, and the name of the .dwo file beside the object
 * file of the build. Looked for, in this order:
 *	FILE.dwp			all units in one file, beside the executable (DWARF 5 section 7.3.5)
 *	COMP_DIR/NAME			as the compiler wrote it
 *	DIR/NAME, DIR/BASENAME(NAME)	beside the executable
 * and taken if its id is the skeleton's, so that a stale or foreign file is as good as none.
 *
 * A container's file is looked for beneath the root of a process that maps it, and no link leads out of
 * there (pid.h): COMP_DIR is then the container's, too.
 *
 * Hostile input: names lead anywhere; only regular files are opened, and nothing of them is shown that
 * isn't a unit of that id. They are read like all debug information: dwarfimage.h.
 *
 * Ownership: borrows the skeleton's image until splitdwarf_free.
 * Errors: -ENOENT (no such file), -ESTALE (only one of another id), those of dwarfimage.h.
 */
#ifndef WICK_SYMBOL_SPLITDWARF_H
#define WICK_SYMBOL_SPLITDWARF_H

#include <elfutils/libdw.h>

#include "symbol/dwarfimage.h"

struct splitdwarf;

struct splitdwarf_options {
	const char *path;	/* of the executable, as its process sees it; NULL: unknown */
	int process;		/* pid_open() of one that maps it; -1: the path is this host's */
	const struct dwarfimage *image;	/* of the skeleton */
	uint64_t max;
};

/* Whether a unit is a skeleton. */
bool splitdwarf_is_skeleton(Dwarf_Die *unit);
int must_check splitdwarf_open(const struct splitdwarf_options *o, Dwarf_Die *skeleton,
			       struct splitdwarf **ret);
void splitdwarf_free(struct splitdwarf *s);
DEFINE_CLEANUP(splitdwarf, struct splitdwarf *, splitdwarf_free)

Dwarf *splitdwarf_dwarf(const struct splitdwarf *s);
/* Of the unit's first entry. */
Dwarf_Off splitdwarf_unit(const struct splitdwarf *s);
uint64_t splitdwarf_memory(const struct splitdwarf *s);

#endif
