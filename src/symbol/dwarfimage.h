/* dwarfimage.h - the debug sections of one file that lines and inlined calls need, in memory.
 *
 *	struct dwarfimage *image;
 *	int r = dwarfimage_new(elf, 256 << 20, &image);
 *
 *	if (!r)
 *		elf = elf_memory(dwarfimage_bytes(image, &size), size);	// for libdw
 *
 * libdw never sees the foreign file. It gets an ELF file that is made here, of sections that were
 * read by our own bounds-checked reader, decompressed (zlib, zstd, .zdebug_*) under a cap, and nothing else: no
 * symbol tables, no location lists, no .gnu_debugaltlink that would make libdw open files.
 *
 * .debug_info, the largest section, is read piece by piece: a piece is all zeros until
 * dwarfimage_need has asked for it. Zeros are a null entry to every DWARF reader, so a forgotten
 * dwarfimage_need costs a name and no more. A compressed .debug_info is read whole. What hasn't been read
 * costs address space, no memory, and doesn't count against max: a kernel's has 200 MiB.
 *
 * Ownership: the image borrows the elf until dwarfimage_free.
 * Memory: the sections but .debug_info, and of that the pieces that were needed (16 KiB each).
 * Threads: one.
 * Errors: -ENOENT (no .debug_info or .debug_abbrev), -E2BIG (together over max, or
 *	   abbreviations over DWARFIMAGE_ABBREV_MAX), -ENOTSUP (a compression that we can't read),
 *	   -EBADMSG (malformed), -ENOMEM, those of elf_read.
 */
#ifndef WICK_SYMBOL_DWARFIMAGE_H
#define WICK_SYMBOL_DWARFIMAGE_H

#include "elf/elf.h"

/* libdw keeps 56 bytes for each abbreviation of 5 bytes and more, once a unit. */
#define DWARFIMAGE_ABBREV_MAX (32u << 20)
#define DWARFIMAGE_INFO_MAX   (4ULL << 30)	/* bytes of a .debug_info that is read in pieces */

enum dwarf_section {
	DWARF_INFO,
	DWARF_ABBREV,
	DWARF_LINE,
	DWARF_LINE_STR,
	DWARF_STR,
	DWARF_STR_OFFSETS,
	DWARF_ADDR,
	DWARF_RANGES,
	DWARF_RNGLISTS,
	DWARF_SECTIONS,
};

struct dwarfimage;

int must_check dwarfimage_new(const struct elf *e, uint64_t max, struct dwarfimage **ret);

/* The same of a unit that was split off into another file (DWARF 5 section 7.3.2, and GNU's way of
 * DWARF 4): its sections are called .debug_info.dwo and so on, and lose that ending here. Units claim
 * to be skeletons, so that libdw takes them as they are and looks for no others. What they need of the
 * file they were split from is copied from its image: addresses and ranges, from the bases on that the
 * skeleton gives, since the unit itself has none. All of it is read at once. */
struct dwarfimage_split {
	const struct elf *elf;		/* .dwo, or .dwp */
	/* Of a .dwp: which bytes of each section are the unit's (7.3.5.3); NULL: all of it. */
	const struct dwarfimage_slice {
		uint64_t offset, size;
	} *slices;
	const struct dwarfimage *from;
	uint64_t addr_base, ranges_base;
	uint64_t max;
};
int must_check dwarfimage_new_split(const struct dwarfimage_split *split, struct dwarfimage **ret);
void dwarfimage_free(struct dwarfimage *d);
DEFINE_CLEANUP(dwarfimage, struct dwarfimage *, dwarfimage_free)

/* The made ELF file; borrowed until dwarfimage_free. */
char *dwarfimage_bytes(struct dwarfimage *d, size_t *ret_size);
/* The content of a section, of size 0 if the file hasn't got it. */
const uint8_t *dwarfimage_section(const struct dwarfimage *d, enum dwarf_section s,
				  size_t *ret_size);
/* Makes n bytes of .debug_info at an offset real, as far as they exist. 0; -E2BIG; errors of elf_read. */
int must_check dwarfimage_need(struct dwarfimage *d, uint64_t offset, uint64_t n);
/* Bytes of memory in use. */
uint64_t dwarfimage_memory(const struct dwarfimage *d);

#endif
