/* demangle.h - names as people write them: C++, Rust and D by GNU libiberty, OCaml, Ada and Go by langnames.h.
 *
 *	char *text;
 *	int r = demangle("_ZNSt6vectorIiSaIiEE9push_backERKi", DEMANGLE_SIMPLE, &text);
 *
 *	if (!r)			// "std::vector::push_back"; free(text)
 *
 * Modes:
 *
 *   NONE	never demangles.
 *   SIMPLE	the name that finds the function in the source. C++: without return type,
 *		parameters, template arguments and qualifiers of `this`. Template instances fall
 *		together, as in pprof's own simple mode (only "X<int>::operator float" keeps them,
 *		where the target of the conversion is a template parameter). Rust: as in a Rust
 *		backtrace, generic arguments kept, the hash ("::h0123456789abcdef", "[0123abcd]")
 *		dropped. Others: langnames.h.
 *   FULL	everything: parameters, template arguments, Rust hashes.
 *
 * Suffixes of compilers (".cold", ".part.0", ".constprop.0", ".isra.0", ".lto_priv.0", ".llvm.123") are one rule
 * for all languages, C too, in suffix.h: SIMPLE drops them, the clones of one function are one function; FULL
 * shows each as " [clone .part.0]".
 *
 * Swift's names stay as they are: no library for them is to be had in distributions.
 *
 * A name may come from a hostile file. Over DEMANGLE_MAX_MANGLED bytes, or when it would expand
 * to more than DEMANGLE_MAX_TEXT (back-references grow exponentially) or need too much stack or
 * time, it counts as "not mangled" and is shown as it is.
 *
 * Cost:    1 to 10 us; at worst a few ms and 1 MiB of stack (the test runs in a small thread).
 * Threads: any number.
 * Errors:  -ENOENT (not mangled, or over a limit: show the name itself), -ENOMEM.
 */
#ifndef WICK_SYMBOL_DEMANGLE_H
#define WICK_SYMBOL_DEMANGLE_H

#include "base/base.h"

#define DEMANGLE_MAX_MANGLED 4096
#define DEMANGLE_MAX_TEXT    16384

enum demangle_mode {
	DEMANGLE_NONE,
	DEMANGLE_SIMPLE,
	DEMANGLE_FULL,
};

/* *ret is NUL-terminated and freed by the caller. */
int must_check demangle(const char *mangled, enum demangle_mode mode, char **ret);

#endif
