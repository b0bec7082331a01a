/* arena.h - many small things that are freed together.
 *
 *	struct arena a = ARENA_INIT;
 *	char *name = arena_string(&a, "main", 4);	// stays where it is until arena_free
 *	arena_free(&a);
 *
 * Bytes come from chunks that double from ARENA_CHUNK_MIN to ARENA_CHUNK_MAX, so an arena that holds a
 * few names costs little. Not cleared; aligned for any type. Threads: one.
 */
#ifndef WICK_BASE_ARENA_H
#define WICK_BASE_ARENA_H

#include "base/base.h"

enum { ARENA_CHUNK_MIN = 512, ARENA_CHUNK_MAX = 64 << 10 };

struct arena {
	struct arena_chunk *chunks;	/* the last one first */
	size_t left;			/* bytes free in it */
	size_t bytes;			/* memory */
};

#define ARENA_INIT { 0 }

/* n bytes, or NULL without memory. */
void *arena_alloc(struct arena *a, size_t n);
/* A copy of n bytes with a NUL behind them, or NULL. */
char *arena_string(struct arena *a, const char *s, size_t n);
/* Frees all of it; the arena is empty again. */
void arena_free(struct arena *a);

#endif
