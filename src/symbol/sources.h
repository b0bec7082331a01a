/* sources.h - every name that a host has for the functions of one ELF file, as one table.
 *
 *	struct symtab *t;
 *	bool own;
 *	int r = sources_build(elf, "/usr/bin/perl", &t, &own);
 *
 * In this order; what comes later adds to it, symtab.h says which of two names is shown:
 *  1. .symtab and .dynsym of the file;
 *  2. without .symtab, the first of these that is there:
 *	its separate debug file (debugfile.h),
 *	its mini debug info (minidebug.h),
 *	its Go function table (gopclntab.h);
 *  3. name@plt for the stubs through which it calls other files (plt.h).
 *
 * A broken or missing source is as if it weren't there: the others count.
 *
 * path: of the file on this host, NULL if unknown. *ret_own: the functions of the file itself have
 * names, not just those it exports. The caller frees *ret with symtab_free.
 * Errors: -ENOMEM, those of symtab.h.
 */
#ifndef WICK_SYMBOL_SOURCES_H
#define WICK_SYMBOL_SOURCES_H

#include "elf/elf.h"
#include "symbol/symtab.h"

int must_check sources_build(const struct elf *e, const char *path, struct symtab **ret,
			     bool *ret_own);

#endif
