/* symnames.h - the names of a symbol table: packed in memory, or read where they lie.
 *
 *	struct symnames n = SYMNAMES_INIT;
 *	uint32_t ref, base;
 *	const char *name;
 *	size_t len;
 *
 *	r = symnames_add(&n, "read@plt", 8, &ref);	// copies
 *	r = symnames_add_table(&n, elf, strings, size, &base);	// base + st_name is a ref
 *	if (symnames_get(&n, ref, &name, &len))
 *		...
 *
 * The string table of a browser has a hundred MB, of which a profile shows some thousand names. So
 * it stays in its file, and a name is read when somebody asks for it.
 *
 * A reference is a number below SYMNAMES_REF_MAX. A file that has changed since its table was added has
 * no names any more.
 *
 * Ownership: the table holds a descriptor of its own for each file until symnames_free.
 * Memory: the names added; with a file also a window of SYMNAMES_WINDOW bytes.
 * Cost:   a name of a file that isn't in the window is an fstat(2) and a pread(2), 2 us.
 * Threads: one.
 */
#ifndef WICK_SYMBOL_SYMNAMES_H
#define WICK_SYMBOL_SYMNAMES_H

#include <sys/stat.h>

#include "elf/elf.h"

#define SYMNAMES_MAX	 8191		/* bytes of a name; longer ones are none */
#define SYMNAMES_WINDOW	 8192
#define SYMNAMES_SPACE	 (1u << 27)	/* bytes of names added, and of string tables in files */
#define SYMNAMES_REF_MAX (2 * SYMNAMES_SPACE)

struct symnames_table {		/* a string table in a file */
	uint32_t base, size;
	uint64_t offset;
	int fd;
	struct timespec mtime;
};

struct symnames {
	char *packed;		/* each name with its NUL */
	size_t packed_size, packed_cap;
	struct symnames_table *tables;
	size_t ntables, tables_cap;
	uint32_t tables_size;	/* bytes of all of them */
	char *window;		/* bytes of one table, from window_at on, and a NUL */
	uint32_t window_at, window_size;
};

#define SYMNAMES_INIT { 0 }

/* Copies len bytes, none of them NUL. 0; -E2BIG (no room for the reference), -ENOMEM. */
int must_check symnames_add(struct symnames *n, const char *name, size_t len, uint32_t *ret);
/* The string table at a file offset of e, which may be closed afterwards. 0; -E2BIG, -ENOMEM, -EBADF (e
 * is in memory), -errno of fstat and fcntl. */
int must_check symnames_add_table(struct symnames *n, const struct elf *e, uint64_t offset,
				  uint64_t size, uint32_t *ret_base);
/* The name, and its length without a version ("@GLIBC_2.34"); false if it is empty or too long or can't
 * be read. Borrowed until the next call. A packed one stays. */
bool symnames_get(struct symnames *n, uint32_t ref, const char **ret, size_t *ret_len);
size_t symnames_bytes(const struct symnames *n);	/* memory */
void symnames_shrink(struct symnames *n);	/* gives back what was allocated for more */
void symnames_free(struct symnames *n);

#endif
