/* dwarfdie.h - what wick asks of a debugging information entry (DIE) of libdw.
 *
 * libdw's own helpers that follow references do so without asking: into pieces of .debug_info that
 * aren't in memory yet (dwarfimage.h). These follow them one by one, with `need` called before an
 * entry is read.
 */
#ifndef WICK_SYMBOL_DWARFDIE_H
#define WICK_SYMBOL_DWARFDIE_H

#include <elfutils/libdw.h>

#include "base/base.h"

struct die_reader {
	/* Makes the unit of an entry real. 0 or negative errno. */
	int (*need)(void *ctx, Dwarf_Die *die);
	void *ctx;
};

struct die_function {
	const char *linkage;	/* mangled; NULL: it has none, or it is not mangled */
	const char *name;	/* as in the source; NULL: none */
	Dwarf_Die named;	/* the entry that has the name: its parents are the scope */
	Dwarf_Die declared;	/* the entry whose unit numbers decl_file */
	uint64_t decl_file;	/* 0 is a file, too, since DWARF 5 */
	uint32_t decl_line;	/* 0: unknown, and so are these two */
};

/* An unsigned number; 0 if the entry hasn't got it. */
uint64_t die_number(Dwarf_Die *die, unsigned int attribute);
const char *die_string(Dwarf_Die *die, unsigned int attribute);	/* NULL: none */
/* The entry that an attribute refers to, made real: whether there is one. */
bool die_reference(const struct die_reader *r, Dwarf_Die *die, unsigned int attribute,
		   Dwarf_Die *ret);
/* Whether an entry has code of its own, by its attributes. */
bool die_has_code(Dwarf_Die *die);

/* Names and place of a function, through DW_AT_abstract_origin and DW_AT_specification. */
void die_describe(const struct die_reader *r, Dwarf_Die *die, struct die_function *ret);
/* The name that an entry gives to what lies in it ("ns", "(anonymous namespace)"); NULL: it isn't a scope,
 * or has no name. */
const char *die_scope_name(Dwarf_Die *die);
/* Whether functions of a language lie in scopes: C++, Rust, ... */
bool die_language_has_scopes(uint64_t language);

#endif
