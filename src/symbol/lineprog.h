/* lineprog.h - the line number program of one unit (.debug_line, DWARF 2 to 5, section 6.2).
 *
 *	struct lineprog *p;
 *	struct lineprog_row row;
 *	int r = lineprog_read(image, code, stmt_list, deadline, &p);
 *
 *	if (!r && lineprog_lookup(p, vaddr, &row))
 *		lineprog_path(p, row.file, "/build/dir", &buf);
 *
 * Not by libdw: its reader keeps over 70 bytes for each row and sorts the rows of all sequences
 * together, so that a function which the linker threw away (address 0) hides living code. Here a row
 * takes 16 bytes and sequences stay apart; one that isn't in executable code is dropped.
 *
 * Hostile input: bounded by LINEPROG_ROWS_MAX, LINEPROG_FILES_MAX and the deadline.
 * Ownership: texts are borrowed from the image, which must live as long.
 * Cost:   about 10 ns a row, once; a look-up is two binary searches.
 * Errors: -EBADMSG (malformed before the first row), -ENOTSUP (another version, or texts in a form
 *	   that isn't known), -E2BIG (over a limit), -ETIME (the deadline), -ENOMEM. A program that
 *	   is malformed further on keeps the sequences before.
 */
#ifndef WICK_SYMBOL_LINEPROG_H
#define WICK_SYMBOL_LINEPROG_H

#include "base/buf.h"
#include "symbol/dwarfimage.h"

#define LINEPROG_ROWS_MAX  (4u << 20)	/* of a unit; 64 MiB */
#define LINEPROG_FILES_MAX (1u << 20)	/* files, and directories, of a unit */
#define LINEPROG_PATH_MAX  4096		/* bytes of a path */

struct lineprog;

struct lineprog_row {
	uint32_t file;		/* for lineprog_path */
	uint32_t line;		/* 0: of no line (compiler's own code) */
	uint32_t column;	/* from 1; 0: unknown */
};

/* code: whose executable segments tell living code. offset: DW_AT_stmt_list. deadline: of
 * clock_monotonic(). */
int must_check lineprog_read(const struct dwarfimage *image, const struct elf *code,
			     uint64_t offset, uint64_t deadline, struct lineprog **ret);
/* Only the tables of files, for a unit of which no address is wanted. */
int must_check lineprog_read_files(const struct dwarfimage *image, uint64_t offset,
				   struct lineprog **ret);
void lineprog_free(struct lineprog *p);
DEFINE_CLEANUP(lineprog, struct lineprog *, lineprog_free)

/* The row that covers an address: whether there is one. */
bool lineprog_lookup(const struct lineprog *p, uint64_t vaddr, struct lineprog_row *ret);
/* Appends the path of a file, as DW_AT_decl_file, DW_AT_call_file and rows number it, made absolute by
 * comp_dir ("": unknown) and without "//", "/./" and "dir/../". False, and nothing appended: there
 * is no such file, or its path is too long. */
bool lineprog_path(const struct lineprog *p, uint64_t file, const char *comp_dir,
		   struct buf *ret);
uint64_t lineprog_memory(const struct lineprog *p);

#endif
