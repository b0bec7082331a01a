/* linechain.h - what stands at one address of the source: the calls that were inlined there, and
 * where each was. Made by debuginfo.h and golines.h, handed out by lines.h. */
#ifndef WICK_SYMBOL_LINECHAIN_H
#define WICK_SYMBOL_LINECHAIN_H

#include "base/base.h"

struct line_frame {
	const char *name;	/* mangled where the language mangles; NULL: unknown */
	const char *scope;	/* of a name that isn't mangled: "ns::type"; "" */
	const char *file;	/* absolute if the file says so; "": unknown */
	uint32_t line, column;	/* from 1; 0: unknown */
	uint32_t start_line;	/* of the function, in the same file; 0: unknown */
};

struct line_chain {
	struct line_frame *v;	/* innermost inlined call first, the function itself last */
	size_t n;
};

#endif
