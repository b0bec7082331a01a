/* demangle.h - names as people write them: C++ and Rust by GNU libiberty; D, OCaml and Ada in langnames.h.
 *
 *	char *text;
 *	int r = demangle("_ZNSt6vectorIiSaIiEE9push_backERKi", DEMANGLE_SIMPLE, &text);
 *
 *	if (!r)			// "std::vector::push_back"; free(text)
 *
 * Modes, for the manglings of Itanium C++, Rust v0 and legacy Rust:
 *
 *   NONE	never demangles.
 *   SIMPLE	the name that finds the function in the source. C++: without return type,
 *		parameters, template arguments, qualifiers of `this` and compiler suffixes
 *		(".cold", ".part.0", ".isra.0", ".constprop.0", ".llvm.123"): the clones of one
 *		function are one function. Template instances fall together too, as in pprof's
 *		own simple mode (only "X<int>::operator float" keeps them, where the target of
 *		the conversion is a template parameter). Rust: as in a Rust backtrace, generic
 *		arguments kept, the hash ("::h0123456789abcdef", "[0123abcd]") and compiler
 *		suffixes dropped.
 *   FULL	everything: parameters, template arguments, Rust hashes, and each suffix as
 *		" [clone .cold]".
 *
 * Swift's names stay as they are: no library for them is to be had in distributions.
 *
 * Names that aren't mangled are left alone in every mode, "foo.part.0" of a C file too: Go has
 * functions that are called main.cold.
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
