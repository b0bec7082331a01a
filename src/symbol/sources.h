/* sources.h - every name that a host has for the functions of one ELF file, as one table.
 *
 *	struct symtab *t;
 *	enum symbol_source source;
 *	struct debugfile_where w = { .path = "/usr/bin/perl", .on_host = true, .process = -1 };
 *	int r = sources_build(elf, &w, &t, &source);
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
 * where: the file is, for its debug file, and until when it may take; NULL: that isn't known. What a limit
 * or the deadline has cost is in symtab_limited(). *ret_source: the best source there was; from
 * SYMBOLS_SYMTAB on, the functions of the file itself have names, not just those it exports. The caller
 * frees *ret with symtab_free.
 * Errors: -ENOMEM, those of symtab.h.
 */
#ifndef WICK_SYMBOL_SOURCES_H
#define WICK_SYMBOL_SOURCES_H

#include "elf/elf.h"
#include "symbol/debugfile.h"
#include "symbol/symtab.h"

/* X(constant, label): the label is for metrics. */
#define SYMBOL_SOURCES(X)                                                                          \
	X(SYMBOLS_NONE, "none")                                                                     \
	X(SYMBOLS_DYNSYM, "dynsym")                                                                 \
	X(SYMBOLS_SYMTAB, "symtab")                                                                 \
	X(SYMBOLS_DEBUGFILE, "debug_file")                                                          \
	X(SYMBOLS_MINIDEBUG, "mini_debug_info")                                                     \
	X(SYMBOLS_GO, "gopclntab")

enum symbol_source {
#define SOURCE_ENUM(constant, label) constant,
	SYMBOL_SOURCES(SOURCE_ENUM)
#undef SOURCE_ENUM
	SYMBOLS_COUNT
};

const char *symbol_source_label(enum symbol_source source);

int must_check sources_build(const struct elf *e, const struct debugfile_where *where,
			     struct symtab **ret, enum symbol_source *ret_source);

#endif
