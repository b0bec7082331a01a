/* answers.h - what was found out about the addresses of one module, kept until it is let go of.
 *
 *	struct answers a = ANSWERS_INIT;
 *	const struct answer *known = answers_find(&a, offset);
 *
 *	if (!known) {
 *		r = answers_name(&a, &symbol, DEMANGLE_SIMPLE, &fresh.name);	// copies
 *		r = answers_add(&a, offset, &fresh, &known);
 *	}
 *
 * The names are owned here, once per function, so that the symbol table they come from can be freed
 * while its answers stay: a program that is sampled for months has few hot functions.
 *
 * Names stay where they are until answers_free; a struct answer until the next answers_add.
 * Memory: about 60 bytes an address, 60 and the texts a function. Threads: one.
 * Errors: -ENOMEM.
 */
#ifndef WICK_SYMBOL_ANSWERS_H
#define WICK_SYMBOL_ANSWERS_H

#include "base/arena.h"
#include "base/map.h"
#include "symbol/chains.h"
#include "symbol/demangle.h"
#include "symbol/symtab.h"

struct answer_name {
	const char *text;	/* demangled */
	const char *system_name;/* as in the symbol table; text itself if that is the same */
};

struct answer {
	uint64_t address;	/* as symbol_frame has them */
	uint64_t function;
	const struct answer_name *name;	/* NULL: none known */
	uint32_t module;
	struct chain_ref lines;	/* n 0: none known */
};

struct answers {
	struct map keys;	/* uint64_t -> values[] */
	struct answer *values;
	size_t values_cap;
	struct map functions;	/* start and size of a symbol -> names[] */
	const struct answer_name **names;
	size_t names_cap;
	struct arena arena;
};

#define ANSWERS_INIT                                                                               \
	{                                                                                          \
		.keys = MAP_INIT(sizeof(uint64_t)), .functions = MAP_INIT(2 * sizeof(uint64_t)),   \
	}

const struct answer *answers_find(const struct answers *a, uint64_t key);
int must_check answers_add(struct answers *a, uint64_t key, const struct answer *answer,
			   const struct answer **ret);
/* The name of a symbol, demangled as asked when it is new. Copies. */
int must_check answers_name(struct answers *a, const struct symbol *symbol, enum demangle_mode mode,
			    const struct answer_name **ret);
size_t answers_bytes(const struct answers *a);	/* memory */
void answers_free(struct answers *a);		/* empty again, ready to be used */

#endif
