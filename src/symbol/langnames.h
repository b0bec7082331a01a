/* langnames.h - names of D, OCaml, Ada and Go as people write them. Part of demangle.h, which has the modes.
 *
 * D	(D ABI, "Name Mangling"; by libiberty) "_D3app4showFiZv": "app.show". FULL: "app.show(int)".
 *	SIMPLE drops parameters and template arguments, as for C++.
 * OCaml	(asmcomp/compilenv.ml: make_symbol) "camlStdlib__List__map_287", since 5.1
 *	"camlStdlib__List.map_287": "Stdlib.List.map". FULL keeps the number that makes it unique.
 *	"$3b" is the character 0x3b. Functions of the runtime, written in C, are caml_name.
 * Ada	(GNAT's exp_dbug.ads) "_ada_hello": "hello". What lies in packages is called package__name,
 *	which nothing tells from C: it stays.
 * Go	(runtime/symtab.go: funcNameForPrint) "slices.Max[go.shape.int]": "slices.Max[...]", as tracebacks and
 *	Go's own profiles have it. FULL keeps the arguments. The "[" must be behind a dot, and there no space or
 *	colon: names of Java's, .NET's and V8's code ("a.b[] c.d(int[])", "RegExp:a.[b-c]") aren't Go's.
 *
 * Hostile input: the caller bounds the length. libiberty's D demangler writes a type again for each
 * reference to it, references to references too: names with more than LANGNAMES_D_BACKREFS letters Q aren't
 * for it, nor those over LANGNAMES_D_MAX bytes, so that a text has some hundred kB at most.
 * Cost: microseconds. Errors: -ENOENT (none of these; show the name itself), -ENOMEM.
 */
#ifndef WICK_SYMBOL_LANGNAMES_H
#define WICK_SYMBOL_LANGNAMES_H

#include "symbol/demangle.h"

#define LANGNAMES_D_MAX	     1024
#define LANGNAMES_D_BACKREFS 12

/* As demangle(). mode is SIMPLE or FULL. */
int must_check langnames(const char *mangled, enum demangle_mode mode, char **ret);

#endif
