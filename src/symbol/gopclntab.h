/* gopclntab.h - names of Go functions, from the table that Go programs carry for their own
 * tracebacks (elf/gotab.h): there even when the program is stripped.
 *
 *	r = gopclntab_add(builder, elf);
 *
 * Names are as Go's linker wrote them (gotab_name). Names over SYMTAB_NAME_MAX are
 * left out.
 *
 * Memory: gotab's while it runs, and what the builder keeps.
 * Cost:   about 100 ns a function.
 * Errors: gotab's, the builder's. Names added before stay added.
 */
#ifndef WICK_SYMBOL_GOPCLNTAB_H
#define WICK_SYMBOL_GOPCLNTAB_H

#include "elf/elf.h"
#include "symbol/symtab.h"

int must_check gopclntab_add(struct symtab_builder *b, const struct elf *e);

#endif
