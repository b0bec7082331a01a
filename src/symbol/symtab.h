/* symtab.h - the functions of one ELF file, by address.
 *
 *	struct symtab *t;
 *	struct symbol s;
 *	int r = symtab_build(elf, NULL, &t);		// .symtab and .dynsym, merged
 *
 *	if (!r && symtab_lookup(t, vaddr, &s))
 *		printf("%s+0x%llx", s.name, vaddr - s.start);
 *	symtab_free(t);
 *
 * With more sources (a debug file, mini debug info, PLT stubs, ...) the same in steps:
 *
 *	r = symtab_builder_new(elf, NULL, &b);
 *	r = symtab_builder_add_elf(b, elf);
 *	r = symtab_builder_add_elf(b, debug_elf);
 *	r = symtab_builder_add(b, "read@plt", 8, 0x1030, 16, 0);
 *	r = symtab_builder_finish(b, &t);		// takes b
 *
 * The rules, in the order in which they matter:
 *  - Symbols count when they are code: STT_FUNC, STT_GNU_IFUNC, and STT_NOTYPE labels, defined in
 *    an executable section. Not: mapping symbols ("$x", "$d.7"; ELF for the Arm 64-bit
 *    Architecture, "Mapping symbols"), labels that begin with a dot (assembler and annobin
 *    leftovers), absolute, undefined, data and TLS symbols.
 *  - No name is better than a wrong name. A symbol with a size names exactly its bytes (cut off
 *    at the end of its section); between symbols there is nothing, never the nearest neighbour.
 *  - A symbol without a size never wins over one with. In .symtab it is hand-written assembly and
 *    reaches to the next symbol or the end of its section; inside a sized symbol it is a jump
 *    target and is left out. In .dynsym, where the local symbols between are missing, it stands
 *    only for its own address: cgo and OpenSSL exports would swallow their neighbours.
 *  - Where sized symbols overlap, the innermost wins: the one that starts last, of those that
 *    start together the shortest. Outside the inner ones the outer one is back.
 *  - For the same start and size one name is shown: alias.h has the rule.
 *  - Symbol versions ("@GLIBC_2.34", "@@...") aren't part of the name.
 *
 * Names of large string tables (SYMTAB_PACK_MAX) stay in their files and are read when they are asked
 * for, which of several is shown is decided then (symnames.h). The table keeps a descriptor for each.
 *
 * Memory: 12 bytes per function (16 where symbols overlap), 4 per alias, the names of small tables;
 *	   while building 40 bytes per candidate.
 * Cost:   building is linear (a radix sort), 100 ns a symbol; a lookup is a binary search, and 2 us for a
 *	   name that is in a file.
 * Limits: what doesn't fit is left out and counted, the rest works.
 * Threads: one.
 * Errors: -ENOMEM, -ENOTSUP (ET_REL: its symbols have no addresses), those of elf_read.
 */
#ifndef WICK_SYMBOL_SYMTAB_H
#define WICK_SYMBOL_SYMTAB_H

#include "base/base.h"
#include "elf/elf.h"

#define SYMTAB_NAME_MAX	   8191		/* longer names are left out */
#define SYMTAB_SCAN_MAX	   (16u << 20)	/* entries read of one .symtab or .dynsym */
#define SYMTAB_NESTING_MAX 64		/* enclosing symbols that a lookup tries */
#define SYMTAB_ALIASES_MAX 256		/* names of one function that are compared */
#define SYMTAB_PACK_MAX	   (64u << 10)	/* bytes of a string table whose names are copied */

struct symtab;
struct symtab_builder;

struct symtab_limits {
	uint32_t symbols;	/* candidates, aliases included */
	uint32_t strings;	/* bytes of each string table that are looked at */
	uint32_t names;		/* bytes of names copied */
	uint64_t deadline;	/* clock_monotonic(): no more symbols are read; 0: none */
};

#define SYMTAB_LIMITS_DEFAULT { .symbols = 2000000, .strings = 128u << 20, .names = 64u << 20, .deadline = 0 }

struct symbol {
	const char *name;	/* as in the file, mangled; borrowed until the next call */
	uint64_t start;
	uint64_t size;		/* never 0; of an unsized symbol: as far as it is taken to reach */
};

/* Builds the table of one file. limits may be NULL (the defaults). A file without any symbols
 * yields an empty table. */
int must_check symtab_build(const struct elf *e, const struct symtab_limits *limits,
			    struct symtab **ret);
void symtab_free(struct symtab *t);

/* The symbol that covers an address. Look up return addresses minus one. */
bool symtab_lookup(struct symtab *t, uint64_t vaddr, struct symbol *ret);
size_t symtab_count(const struct symtab *t);	/* functions; aliases count once */
size_t symtab_bytes(const struct symtab *t);	/* memory */
/* Symbols left out by a limit or because their entry is malformed. */
size_t symtab_dropped(const struct symtab *t);
/* 0; -E2BIG, -ETIME: a limit, or the deadline, has cost symbols. */
int symtab_limited(const struct symtab *t);
size_t symtab_files(const struct symtab *t);	/* descriptors it holds */
/* The n-th function by address, 0 .. symtab_count - 1. Its name is "" if it can't be read. */
void symtab_get(struct symtab *t, size_t n, struct symbol *ret);

enum symtab_flags {
	SYMTAB_LABEL = 1,	/* not declared a function */
	SYMTAB_LOCAL = 2,	/* not exported */
	SYMTAB_OPEN = 4,	/* no size: reaches to the next symbol, at most `size` bytes */
};

/* A builder for the code of one file. Addresses are those of `of`, which is read only now and
 * may be closed afterwards: they are kept relative to its lowest executable address, in 32
 * bits, so 4 GiB of code from there can have names. */
int must_check symtab_builder_new(const struct elf *of, const struct symtab_limits *limits,
				  struct symtab_builder **ret);
void symtab_builder_free(struct symtab_builder *b);
/* Adds .symtab and .dynsym of a file with the same addresses: `of` itself or a debug file. */
int must_check symtab_builder_add_elf(struct symtab_builder *b, const struct elf *e);
/* Adds one symbol; copies the name. A size of 0 (flags without SYMTAB_OPEN) stands for the
 * address alone. Over a limit it is counted and left out: only -ENOMEM fails. */
int must_check symtab_builder_add(struct symtab_builder *b, const char *name, size_t len,
				  uint64_t start, uint64_t size, unsigned int flags);
size_t symtab_builder_count(const struct symtab_builder *b);	/* symbols added */
/* Takes b, also on failure. */
int must_check symtab_builder_finish(struct symtab_builder *b, struct symtab **ret);

DEFINE_CLEANUP(symtab, struct symtab *, symtab_free)
DEFINE_CLEANUP(symtab_builder, struct symtab_builder *, symtab_builder_free)

#endif
