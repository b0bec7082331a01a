/* suffix.h - what compilers append to a function's symbol: ".cold", ".part.0", ".constprop.0", ".isra.0",
 * ".lto_priv.0", ".llvm.123". Part of demangle.h, which says what becomes of it.
 *
 *	suffix_at("_Z3foov.part.0.cold", true)	// 7
 *	suffix_at("foo.part.0.cold", false)	// 3
 *
 * The rule, for all languages:
 *  - Mangled names of C++, Rust and D have no dot of their own: all from the first one on is suffix. (Legacy
 *    Rust has dots, and ends with its hash.)
 *  - Other names (C, OCaml, Ada, Swift) may have dots. Suffix is what their end has of the words that gcc and
 *    LLVM append: part, constprop, isra, lto_priv, llvm and __uniq with a number behind them, cold and
 *    localalias with or without.
 *  - Functions of Go are called package.function, which may be "x.cold". So words without a number count only
 *    behind a C identifier, and ".cold" alone isn't taken from main: "main.cold" stays.
 *
 * Symbol versions ("@@GLIBC_2.34") are no part of a name: symtab.h drops them.
 *
 * Cost: tens of ns.
 */
#ifndef WICK_SYMBOL_SUFFIX_H
#define WICK_SYMBOL_SUFFIX_H

#include "base/buf.h"

/* Bytes before the suffix; the length without any. */
size_t suffix_at(const char *name, bool is_mangled);
/* Appends " [clone .part.0]" for each part of a suffix. */
void suffix_clones(struct buf *to, const char *suffix);

#endif
