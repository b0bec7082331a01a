/* chains.h - lines and inlined calls of the addresses of one module, kept as long as its answers
 * (answers.h), in few bytes: each text once, each frame 24 bytes.
 *
 *	struct chains c = CHAINS_INIT;
 *	struct chain_ref ref;
 *	r = chains_add(&c, &line_chain, DEMANGLE_SIMPLE, &ref);	// copies
 *	for (size_t i = 0; i < ref.n; i++)
 *		chains_get(&c, ref, i, &line);
 *
 * Texts that chains_get gives are borrowed until the next chains_add. Threads: one. Errors: -ENOMEM,
 * -E2BIG (2^31 frames).
 */
#ifndef WICK_SYMBOL_CHAINS_H
#define WICK_SYMBOL_CHAINS_H

#include "base/map.h"
#include "symbol/demangle.h"
#include "symbol/linechain.h"

/* A call that was inlined at an address, or the function itself. */
struct symbol_line {
	const char *name;	/* demangled, in its scope; "": unknown */
	const char *system_name;/* mangled where the language mangles; "": unknown */
	const char *file;	/* "": unknown */
	uint32_t line, column;	/* from 1; 0: unknown */
	uint32_t start_line;	/* of the function, in the same file; 0: unknown */
};

struct chain_ref {
	uint32_t first, n;
};

struct chain_frame;

struct chains {
	struct strtab texts;
	struct map mangled;	/* a text -> ... */
	uint32_t *readable;	/* ... the text for people */
	struct chain_frame *frames;
	size_t n, cap, readable_cap;
};

#define CHAINS_INIT                                                                                \
	{                                                                                          \
		.texts = STRTAB_INIT, .mangled = MAP_INIT(sizeof(uint32_t)),                       \
	}

int must_check chains_add(struct chains *c, const struct line_chain *chain, enum demangle_mode mode,
			  struct chain_ref *ret);
void chains_get(const struct chains *c, struct chain_ref ref, size_t i, struct symbol_line *ret);
size_t chains_bytes(const struct chains *c);	/* memory */
void chains_free(struct chains *c);		/* empty again, ready to be used */

#endif
