/* dwpindex.h - which bytes of a .dwp file belong to one unit.
 *
 *	struct dwarfimage_slice slices[DWARF_SECTIONS] = { 0 };
 *	int r = dwpindex_find(bytes, size, id, slices);	// of its .debug_cu_index
 *
 * A hash table of the units' ids, then a table of offsets and one of sizes with a column for each section
 * (DWARF 5 section 7.3.5.3), or GNU's version 2 of it before there was a standard. Columns that dwarfimage.h
 * has no use for are skipped, and so are those of version 2 whose number means another section there.
 *
 * Hostile input: whatever the numbers say, reading stays within `size` bytes, and the search ends after as
 * many steps as the table has slots. What the slices say of other sections is for dwarfimage.h to check.
 *
 * Cost: a few cache lines.
 * Errors: -ESTALE (no unit has the id), -EBADMSG (malformed, or of an unknown version).
 */
#ifndef WICK_SYMBOL_DWPINDEX_H
#define WICK_SYMBOL_DWPINDEX_H

#include "symbol/dwarfimage.h"

/* Sections without a column get an empty slice. */
int must_check dwpindex_find(const void *bytes, size_t size, uint64_t id,
			     struct dwarfimage_slice ret[static DWARF_SECTIONS]);

#endif
