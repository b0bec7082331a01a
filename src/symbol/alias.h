/* alias.h - which of several names for the same code is shown.
 *
 * libc has malloc, __malloc and __libc_malloc at one address, a C++ constructor has two names, a
 * linker folds equal functions. wick shows one, always the same one, and the one that a reader
 * of the source is likeliest to know. The first rule that tells two names apart decides:
 *
 *	1. a declared function before a bare label: labels are assembler and linker-script marks
 *	2. an exported name (global or weak) before a local one: it is in the documentation.
 *	   Global and weak count the same: in libc the public name is usually the weak one
 *	3. fewer leading underscores: "puts" before "_IO_puts"
 *	4. no dot: "foo" before the compiler's "foo.localalias" or "foo.part.0"
 *	5. the shorter one
 *	6. byte order, so that the choice never depends on the order of a table
 *
 * Rules 1 to 5 are packed into one number, computed once per name; the smaller is the better.
 */
#ifndef WICK_SYMBOL_ALIAS_H
#define WICK_SYMBOL_ALIAS_H

#include "base/base.h"

#define ALIAS_NAME_MAX 16383	/* bytes of a name that alias_rank accepts */

/* Ranks a name of len <= ALIAS_NAME_MAX bytes. */
uint32_t alias_rank(const char *name, size_t len, bool label, bool local);

/* The length that a rank was made from, so that nobody stores it twice. */
static inline size_t alias_length(uint32_t rank)
{
	return rank & ALIAS_NAME_MAX;
}

/* <0 when a is the better name, >0 when b is, 0 when they are equal. */
int alias_compare(uint32_t rank_a, const char *a, uint32_t rank_b, const char *b);

#endif
