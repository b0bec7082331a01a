/* map.h - one hash table: fixed-size keys to a 32-bit number, and an interner of byte strings.
 *
 * struct map is open addressing over an array of entries in insertion order: entry n is the n-th
 * key ever added, so callers keep their values in a plain array indexed by it. No deletion (what
 * is built for one window or one file is dropped whole). Keys are compared by memcmp: zero the
 * padding of structs. Hashing is seeded per process, so hostile input can't aim for collisions.
 *
 *	struct map m = MAP_INIT(sizeof(struct key));
 *	r = map_put(&m, &key, &n, &added);	// n indexes your values
 *	const struct key *k = map_key(&m, n);	// borrowed until the next map_put
 *
 * struct strtab does the same for strings of any length: equal strings get equal ids, id 0 is "".
 */
#ifndef WICK_MAP_H
#define WICK_MAP_H

#include "base/base.h"

#define MAP_NONE UINT32_MAX	/* no such key */

struct map {
	size_t key_size;
	unsigned char *keys;	/* n * key_size bytes */
	uint64_t *hashes;	/* of each key */
	uint32_t *slots;	/* entry number + 1, 0 = free */
	size_t n, cap, hash_cap, nslots;
};

#define MAP_INIT(size) { .key_size = (size) }

/* Finds or adds a key. *ret is its number, *ret_added (may be NULL) whether it is new.
 * 0, -ENOMEM, -E2BIG at 2^31 keys. Copies the key. */
int must_check map_put(struct map *m, const void *key, uint32_t *ret, bool *ret_added);
uint32_t map_find(const struct map *m, const void *key);	/* its number or MAP_NONE */
const void *map_key(const struct map *m, uint32_t n);
size_t map_bytes(const struct map *m);	/* memory */
void map_clear(struct map *m);	/* forgets the keys, keeps the memory */
void map_free(struct map *m);

struct strtab {
	struct map refs;	/* the same table; its "key" is (offset, length) in bytes */
	char *bytes;		/* each string with its NUL */
	size_t len, cap;
};

#define STRTAB_INIT { .refs = MAP_INIT(2 * sizeof(size_t)) }

/* Interns n bytes (or a C string). 0, -ENOMEM, -E2BIG. Copies. */
int must_check strtab_put(struct strtab *t, const char *s, size_t n, uint32_t *ret);
int must_check strtab_puts(struct strtab *t, const char *s, uint32_t *ret);
/* The string, NUL-terminated; borrowed until the next strtab_put. id must come from this table. */
const char *strtab_get(const struct strtab *t, uint32_t id);
size_t strtab_len(const struct strtab *t, uint32_t id);
uint32_t strtab_count(const struct strtab *t);	/* ids are 0 .. count-1 */
void strtab_free(struct strtab *t);

/* The seeded hash both use (64 bits, multiply and fold; not cryptographic). */
uint64_t hash_bytes(const void *p, size_t n);

#endif
