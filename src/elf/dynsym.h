/* dynsym.h - where the symbol tables of an ELF file are.
 *
 *	struct elf_symbols s;
 *
 *	if (!elf_symbols(elf, SHT_DYNSYM, &s))
 *		... read s.count symbols of 24 bytes at s.offset
 *
 * .symtab is always a section. .dynsym is found by its section or, in a file without section
 * headers, the way ld.so finds it: PT_DYNAMIC gives DT_SYMTAB and DT_STRTAB, and the hash table
 * tells how many symbols there are (DT_HASH says so; for DT_GNU_HASH the chain of the highest
 * bucket is followed to its end).
 *
 * Errors: -ENOENT (no such table), -EBADMSG (it isn't inside the file), those of elf_read.
 * Cost:   none with sections; without, one read of .dynamic and of the hash buckets.
 */
#ifndef WICK_ELF_DYNSYM_H
#define WICK_ELF_DYNSYM_H

#include "elf/elf.h"

/* File offsets; both ranges lie inside the file. */
struct elf_symbols {
	uint64_t offset, count;		/* of Elf64_Sym */
	uint64_t strings, strings_size;	/* its string table */
};

/* type is SHT_SYMTAB or SHT_DYNSYM. */
int must_check elf_symbols(const struct elf *e, uint32_t type, struct elf_symbols *ret);

#define ELF_STRINGS_MAX (64u << 20)	/* bytes of a string table that is read for one name */

/* The value of the first symbol of a name that the file defines, of any type. Errors as above; -ENOENT: there
 * is none; -E2BIG. Reads the whole table: 10 ns a symbol. */
int must_check elf_symbol_value(const struct elf *e, uint32_t type, const char *name, uint64_t *ret);

#endif
