/* lru.c - see lru.h. Chained buckets over a doubly linked list from newest to oldest. */
#include "base/lru.h"

enum { FIRST_BUCKETS = 64 };

static struct lru_node **bucket(struct lru *l, uint64_t hash)
{
	return &l->buckets[hash & (l->nbuckets - 1)];
}

static void unlink_node(struct lru *l, struct lru_node *n)
{
	*(n->newer ? &n->newer->older : &l->newest) = n->older;
	*(n->older ? &n->older->newer : &l->oldest) = n->newer;
}

static void link_newest(struct lru *l, struct lru_node *n)
{
	n->newer = NULL;
	n->older = l->newest;
	*(l->newest ? &l->newest->newer : &l->oldest) = n;
	l->newest = n;
}

void *lru_find(struct lru *l, uint64_t hash, const void *key)
{
	struct lru_node *n = l->nbuckets ? *bucket(l, hash) : NULL;

	while (n && (n->hash != hash || !l->same(n, key)))
		n = n->chain;
	if (n && n != l->newest) {
		unlink_node(l, n);
		link_newest(l, n);
	}
	return n;
}

static int grow(struct lru *l)
{
	size_t n = l->nbuckets ? 2 * l->nbuckets : FIRST_BUCKETS;
	struct lru_node **buckets = calloc(n, sizeof(*buckets));

	if (!buckets)
		return -ENOMEM;
	free(l->buckets);
	l->buckets = buckets;
	l->nbuckets = n;
	for (struct lru_node *node = l->newest; node; node = node->older) {
		node->chain = *bucket(l, node->hash);
		*bucket(l, node->hash) = node;
	}
	return 0;
}

void lru_remove(struct lru *l, struct lru_node *n)
{
	struct lru_node **at = bucket(l, n->hash);

	while (*at != n)
		at = &(*at)->chain;
	*at = n->chain;
	unlink_node(l, n);
	l->n--;
	l->bytes -= n->bytes;
	l->release(l->ctx, n);
}

static void evict(struct lru *l, size_t max_bytes, const struct lru_node *keep)
{
	while (l->bytes > max_bytes && l->oldest && l->oldest != keep) {
		l->evicted++;
		lru_remove(l, l->oldest);
	}
}

int lru_add(struct lru *l, struct lru_node *n, uint64_t hash, size_t bytes)
{
	if (l->n >= l->nbuckets && grow(l) && !l->nbuckets) {
		l->release(l->ctx, n);
		return -ENOMEM; /* later failures only make the chains longer */
	}
	n->hash = hash;
	n->bytes = bytes;
	n->chain = *bucket(l, hash);
	*bucket(l, hash) = n;
	link_newest(l, n);
	l->n++;
	l->bytes += bytes;
	evict(l, l->max_bytes, n);
	return 0;
}

void lru_resize(struct lru *l, struct lru_node *n, size_t bytes)
{
	l->bytes += bytes - n->bytes;
	n->bytes = bytes;
	evict(l, l->max_bytes, n);
}

void lru_trim(struct lru *l, size_t max_bytes)
{
	evict(l, max_bytes, NULL);
}

void lru_free(struct lru *l)
{
	while (l->newest)
		lru_remove(l, l->newest);
	free(l->buckets);
	l->buckets = NULL;
	l->nbuckets = 0;
}
