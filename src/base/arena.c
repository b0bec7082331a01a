/* arena.c - see arena.h. */
#include "base/arena.h"

struct arena_chunk {
	struct arena_chunk *before;
	size_t size;		/* of bytes */
	_Alignas(max_align_t) unsigned char bytes[];
};

static int grow(struct arena *a, size_t need)
{
	size_t size = a->chunks ? MIN(2 * a->chunks->size, (size_t)ARENA_CHUNK_MAX) :
				  (size_t)ARENA_CHUNK_MIN;
	struct arena_chunk *c;

	size = MAX(size, need);
	if (size > SIZE_MAX / 2)
		return -ENOMEM;
	c = malloc(sizeof(*c) + size);
	if (!c)
		return -ENOMEM;
	c->before = a->chunks;
	c->size = size;
	a->chunks = c;
	a->left = size;
	a->bytes += sizeof(*c) + size;
	return 0;
}

void *arena_alloc(struct arena *a, size_t n)
{
	const size_t mask = _Alignof(max_align_t) - 1;
	void *p;

	if (n > SIZE_MAX / 2)
		return NULL;
	n = (n + mask) & ~mask;
	if (n > a->left && grow(a, n))
		return NULL;
	p = a->chunks->bytes + a->chunks->size - a->left;
	a->left -= n;
	return p;
}

char *arena_string(struct arena *a, const char *s, size_t n)
{
	char *p = n < SIZE_MAX ? arena_alloc(a, n + 1) : NULL;

	if (!p)
		return NULL;
	memcpy(p, s, n);
	p[n] = '\0';
	return p;
}

void arena_free(struct arena *a)
{
	for (struct arena_chunk *c = a->chunks, *before; c; c = before) {
		before = c->before;
		free(c);
	}
	*a = (struct arena)ARENA_INIT;
}
