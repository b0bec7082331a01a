/* lru.h - a cache of things of any kind, found by key, bounded in bytes: the least recently used
 * go.
 *
 *	struct thing { struct lru_node node; ... };	// the node first
 *	struct lru cache = LRU_INIT(4 << 20, same_thing, free_thing, NULL);
 *	struct thing *t = lru_find(&cache, hash, &key);	// used now
 *	if (!t)
 *		r = lru_add(&cache, &(t = make(...))->node, hash, bytes);
 *	lru_free(&cache);
 *
 * The caller hashes (hash_bytes() of map.h is seeded) and says what a thing weighs: all of its
 * memory, the node's too. What was added last stays even if it alone is over the limit. Not
 * thread-safe. Cost: one chain of a hash table that is at most as long as the nodes are many;
 * amortised O(1).
 */
#ifndef WICK_BASE_LRU_H
#define WICK_BASE_LRU_H

#include "base/base.h"

struct lru_node {
	struct lru_node *chain; /* next of the same bucket */
	struct lru_node *newer, *older;
	uint64_t hash;
	size_t bytes;
};

struct lru {
	/* settings */
	size_t max_bytes;
	bool (*same)(const struct lru_node *n, const void *key);
	void (*release)(void *ctx, struct lru_node *n); /* out of the cache; the callee frees */
	void *ctx;
	/* private, but for reading */
	struct lru_node **buckets, *newest, *oldest;
	size_t nbuckets, n, bytes;
	uint64_t evicted; /* ever, for want of room */
};

#define LRU_INIT(max, same_fn, release_fn, context)                                                \
	{                                                                                          \
		.max_bytes = (max), .same = (same_fn), .release = (release_fn), .ctx = (context)   \
	}

/* NULL, or what has that key, which becomes the newest. Borrowed until it is released. */
void *lru_find(struct lru *l, uint64_t hash, const void *key);
/* Takes n, whose key must not be there yet, and releases the oldest others until the bytes fit. 0,
 * or -ENOMEM: then n is released. */
int must_check lru_add(struct lru *l, struct lru_node *n, uint64_t hash, size_t bytes);
/* n weighs something else now; may release others that are older than n. */
void lru_resize(struct lru *l, struct lru_node *n, size_t bytes);
void lru_remove(struct lru *l, struct lru_node *n); /* and release it */
void lru_trim(struct lru *l, size_t max_bytes);	    /* down to so much, once */
void lru_free(struct lru *l);			    /* releases all; the settings stay */

#endif
