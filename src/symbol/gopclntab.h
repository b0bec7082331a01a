/* gopclntab.h - names of Go functions, from the table that Go programs carry for their own
 * tracebacks. Stripping can't remove it.
 *
 *	r = gopclntab_add(builder, elf);
 *
 * Section .gopclntab, or .data.rel.ro.gopclntab in older position-independent programs, as Go 1.2
 * to 1.15, 1.16, 1.18 and 1.20 or later write it (magic 0xfffffffb, fa, f0, f1): there is no
 * specification but debug/gosym and runtime/symtab.go in Go's own sources.
 *
 * Since 1.18 the table counts from runtime.text, which isn't the start of .text where C is linked
 * in. Its address is in the table's header, since 1.26 only in the module data (section
 * .go.module), and in position-independent programs there in a relocation. The module data is believed if it
 * points to this very table and agrees on the first function's address.
 *
 * Names are as Go's tracebacks have them: type arguments are "[...]".
 *
 * Hostile input: over a limit it is -EBADMSG or -E2BIG; a function outside of the code's segment is
 * left out; what is read in all is at most GOPCLNTAB_READS times the table.
 * Memory: 48 KiB while it runs, and what the builder keeps.
 * Cost:   about 100 ns a function; reads the table's names and functions, not its line numbers.
 * Errors: -ENOENT (no such table, or its text start is nowhere), -EBADMSG (not one, or malformed),
 *	   -E2BIG, -ENOMEM, those of elf_read. Names added before stay added.
 */
#ifndef WICK_SYMBOL_GOPCLNTAB_H
#define WICK_SYMBOL_GOPCLNTAB_H

#include "elf/elf.h"
#include "symbol/symtab.h"

#define GOPCLNTAB_FUNCS_MAX 2000000	/* kubelet has 100,000 */
#define GOPCLNTAB_READS	    8
#define GOPCLNTAB_SCAN_MAX  (16u << 20)	/* relocations looked at */

int must_check gopclntab_add(struct symtab_builder *b, const struct elf *e);

#endif
