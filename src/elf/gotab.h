/* gotab.h - the table that Go programs carry for their own tracebacks: functions, and values by
 * address within them. Stripping can't remove it.
 *
 *	struct gotab *t;
 *	struct gotab_func f;
 *	int r = gotab_open(elf, &t);
 *
 *	while (!r && !(r = gotab_next(t, &f)))
 *		if (!gotab_name(t, &f, &name, &n))
 *			...
 *	gotab_free(t);
 *
 * Section .gopclntab, or .data.rel.ro.gopclntab in older position-independent programs, as Go 1.2
 * to 1.15, 1.16, 1.18 and 1.20 or later write it (magic 0xfffffffb, fa, f0, f1): there is no
 * specification but debug/gosym and runtime/symtab.go in Go's own sources.
 *
 * Since 1.18 the table counts from runtime.text, which isn't the start of .text where C is linked
 * in. Its address is in the table's header, since 1.26 only in the module data (section
 * .go.module), and in position-independent programs there in a relocation. The module data is
 * believed if it points to this very table and agrees on the first function's address.
 *
 * In a program without section headers (sstrip, some packers), and in one with .go.buildinfo but without such a
 * section (position-independent ones with cgo, of Go before 1.26: GNU ld makes the table a part of .data.rel.ro),
 * the table is looked for by its first bytes, the module data by its pointer to the table. Cost: up to a
 * millisecond a MiB, in such files only.
 *
 * Hostile input: over a limit it is -EBADMSG or -E2BIG; what is read in all is at most GOTAB_READS
 * times the table, the steps through lists of values GOTAB_STEPS_MAX.
 * Ownership: borrows the elf until gotab_free. What gotab_name gives is borrowed until the next call.
 * Threads:   one at a time.
 * Memory:    64 KiB.
 * Cost:      20 ns a function, 5 ns a value, each part of the table read once from front to back.
 * Errors:    -ENOENT (no such table, or its text start is nowhere; the end of a list), -EBADMSG (not
 *	      one, or malformed), -E2BIG, -ENOMEM, those of elf_read.
 */
#ifndef WICK_ELF_GOTAB_H
#define WICK_ELF_GOTAB_H

#include "elf/elf.h"

#define GOTAB_FUNCS_MAX 2000000		/* kubelet has 100,000 */
#define GOTAB_READS	8
#define GOTAB_SCAN_MAX	(16u << 20)	/* words of data looked at for the module data */
#define GOTAB_PASSES_MAX 32		/* through all relocations or all data, to open a table; 1 to 8 are normal */
#define GOTAB_SEARCH_MAX (256u << 20)	/* bytes looked through for a table without a section */
#define GOTAB_NAME_MAX	8191		/* bytes; longer ones are -ENOENT */
#define GOTAB_STEPS_MAX (64u << 20)

struct gotab;

int must_check gotab_open(const struct elf *e, struct gotab **ret);
void gotab_free(struct gotab *t);

/* Functions in order of address, those outside of the code's segment left out. */
struct gotab_func {
	uint64_t start, end;	/* addresses of the file */
	uint64_t record, name;	/* where in the table */
};
int must_check gotab_next(struct gotab *t, struct gotab_func *ret);

/* As the linker wrote it: until 1.20 type arguments are "[...]", as tracebacks show them; since then they are
 * there (langnames.h). Not terminated. */
int must_check gotab_name(struct gotab *t, const struct gotab_func *f, const char **ret,
			  size_t *ret_n);

/* Whether the flags below are there: not before Go 1.18. */
bool gotab_has_flags(const struct gotab *t);
enum gotab_flags {	/* internal/abi/symtab.go, FuncFlag */
	GOTAB_TOPFRAME = 1,	/* tracebacks end here */
	GOTAB_SPWRITE = 2,	/* sets the stack pointer in ways that the table doesn't follow */
	GOTAB_ASM = 4,
};
struct gotab_info {
	uint32_t pcsp;	/* lists of values, for gotab_value: bytes below the return address, */
	uint32_t pcfile, pcln;	/* file number, line; 0: none */
	uint32_t unit;		/* what file numbers count from */
	uint32_t start_line;	/* since 1.20; 0: unknown */
	uint8_t flags;
	uint32_t npcdata;	/* more lists, */
	uint8_t nfuncdata;	/* and more tables */
	uint64_t more;		/* where in the table they are listed */
};
int must_check gotab_info(struct gotab *t, const struct gotab_func *f, struct gotab_info *ret);

/* The next range of a list and its value. Starts with { .list = info.pcsp, .end = f.start }. Ranges
 * follow each other without gaps. */
struct gotab_value {
	uint32_t list, read;	/* bytes of the list read */
	uint64_t start, end;
	int32_t value;
};
int must_check gotab_value(struct gotab *t, struct gotab_value *v);

/* ---- by address ---- */

/* The function that holds an address; -ENOENT. May be mixed with gotab_next. Each call may read
 * GOTAB_FIND_READS bytes and take GOTAB_FIND_STEPS steps, those with its function after it
 * included. 1 to 20 us. */
#define GOTAB_FIND_READS (4u << 20)
#define GOTAB_FIND_STEPS (1u << 20)
int must_check gotab_find(struct gotab *t, uint64_t vaddr, struct gotab_func *ret);

/* The value of a list at an address of the function; -1: it has none there. */
int must_check gotab_value_at(struct gotab *t, const struct gotab_func *f, uint32_t list,
			      uint64_t vaddr, int32_t *ret);
/* The path of a file by its number in the function's pcfile. ret has `size` bytes, -ENOENT if it is
 * longer. */
int must_check gotab_file(struct gotab *t, const struct gotab_info *info, int32_t number, char *ret,
			  size_t size);

/* The innermost call that was inlined at an address of the function, and an address of the function
 * that stands for the place of the call: ask again with that one until -ENOENT. */
struct gotab_call {
	struct gotab_func callee;	/* only its name */
	uint64_t at;
	uint32_t start_line;		/* of the callee; 0: unknown */
};
int must_check gotab_inlined(struct gotab *t, const struct gotab_func *f,
			     const struct gotab_info *info, uint64_t vaddr, struct gotab_call *ret);

DEFINE_CLEANUP(gotab, struct gotab *, gotab_free)

#endif
