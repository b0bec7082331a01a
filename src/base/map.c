/* map.c - see map.h. Linear probing at a load of at most 1/2; hashes are kept, so growing and
 * comparing touch keys only when the hashes agree. */
#include "base/map.h"

#include <sys/random.h>

static uint64_t fold_multiply(uint64_t a, uint64_t b)
{
	__extension__ unsigned __int128 p = (unsigned __int128)a * b;

	return (uint64_t)p ^ (uint64_t)(p >> 64);
}

static uint64_t seed(void)
{
	static uint64_t s;

	if (!s) {
		if (getrandom(&s, sizeof(s), GRND_NONBLOCK) != sizeof(s))
			s = (uint64_t)(uintptr_t)&s ^ (uint64_t)getpid() << 32;
		s |= 1;
	}
	return s;
}

uint64_t hash_bytes(const void *p, size_t n)
{
	const unsigned char *c = p;
	uint64_t h = seed() ^ n, w;

	for (; n >= 8; c += 8, n -= 8) {
		memcpy(&w, c, 8);
		h = fold_multiply(h ^ w, 0x9e3779b97f4a7c15);
	}
	if (n) {
		w = 0;
		memcpy(&w, c, n);
		h = fold_multiply(h ^ w, 0xd6e8feb86659fd93);
	}
	return fold_multiply(h, 0xa0761d6478bd642f);
}

static int grow_slots(struct map *m)
{
	size_t n = m->nslots ? 2 * m->nslots : 64;
	uint32_t *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < m->n; i++) {
		size_t s = m->hashes[i] & (n - 1);

		while (slots[s])
			s = (s + 1) & (n - 1);
		slots[s] = (uint32_t)i + 1;
	}
	free(m->slots);
	m->slots = slots;
	m->nslots = n;
	return 0;
}

/* Room for one more entry: keys, hashes, and a slot table at most half full. */
static int make_room(struct map *m)
{
	int r;

	if (m->n >= INT32_MAX)
		return -E2BIG;
	r = array_grow(&m->keys, &m->cap, m->n + 1, m->key_size);
	if (!r)
		r = array_grow(&m->hashes, &m->hash_cap, m->n + 1, sizeof(*m->hashes));
	if (!r && 2 * (m->n + 1) > m->nslots)
		r = grow_slots(m);
	return r;
}

static uint32_t append(struct map *m, const void *key, uint64_t h, size_t slot)
{
	memcpy(m->keys + m->n * m->key_size, key, m->key_size);
	m->hashes[m->n] = h;
	m->slots[slot] = (uint32_t)m->n + 1;
	return (uint32_t)m->n++;
}

int map_put(struct map *m, const void *key, uint32_t *ret, bool *ret_added)
{
	uint64_t h = hash_bytes(key, m->key_size);
	size_t s;
	int r = make_room(m);

	if (r)
		return r;
	for (s = h & (m->nslots - 1); m->slots[s]; s = (s + 1) & (m->nslots - 1)) {
		uint32_t n = m->slots[s] - 1;

		if (m->hashes[n] == h && !memcmp(map_key(m, n), key, m->key_size)) {
			*ret = n;
			if (ret_added)
				*ret_added = false;
			return 0;
		}
	}
	*ret = append(m, key, h, s);
	if (ret_added)
		*ret_added = true;
	return 0;
}

uint32_t map_find(const struct map *m, const void *key)
{
	uint64_t h;

	if (!m->nslots)
		return MAP_NONE;
	h = hash_bytes(key, m->key_size);
	for (size_t s = h & (m->nslots - 1); m->slots[s]; s = (s + 1) & (m->nslots - 1)) {
		uint32_t n = m->slots[s] - 1;

		if (m->hashes[n] == h && !memcmp(map_key(m, n), key, m->key_size))
			return n;
	}
	return MAP_NONE;
}

const void *map_key(const struct map *m, uint32_t n)
{
	return m->keys + (size_t)n * m->key_size;
}

size_t map_bytes(const struct map *m)
{
	return m->cap * m->key_size + m->hash_cap * sizeof(*m->hashes) +
	       m->nslots * sizeof(*m->slots);
}

void map_clear(struct map *m)
{
	m->n = 0;
	if (m->slots)
		memset(m->slots, 0, m->nslots * sizeof(*m->slots));
}

void map_free(struct map *m)
{
	free(m->keys);
	free(m->hashes);
	free(m->slots);
	*m = (struct map)MAP_INIT(m->key_size);
}

/* ---- strings: an entry's key is where its bytes lie; equality looks at the bytes ---- */

struct ref {
	size_t off, len;
};

static const struct ref *ref_of(const struct strtab *t, uint32_t id)
{
	return map_key(&t->refs, id);
}

static int put(struct strtab *t, const char *s, size_t n, uint32_t *ret)
{
	struct map *m = &t->refs;
	uint64_t h = hash_bytes(s, n);
	struct ref ref = { .off = t->len, .len = n };
	size_t slot;
	int r = make_room(m);

	if (r)
		return r;
	for (slot = h & (m->nslots - 1); m->slots[slot]; slot = (slot + 1) & (m->nslots - 1)) {
		uint32_t i = m->slots[slot] - 1;
		const struct ref *k = ref_of(t, i);

		if (m->hashes[i] == h && k->len == n && !memcmp(t->bytes + k->off, s, n)) {
			*ret = i;
			return 0;
		}
	}
	r = array_grow(&t->bytes, &t->cap, t->len + n + 1, 1);
	if (r)
		return r;
	memcpy(t->bytes + t->len, s, n);
	t->bytes[t->len + n] = '\0';
	t->len += n + 1;
	*ret = append(m, &ref, h, slot);
	return 0;
}

int strtab_put(struct strtab *t, const char *s, size_t n, uint32_t *ret)
{
	uint32_t zero;
	int r = t->refs.n ? 0 : put(t, "", 0, &zero);

	return r ? r : put(t, s, n, ret);
}

int strtab_puts(struct strtab *t, const char *s, uint32_t *ret)
{
	return strtab_put(t, s, strlen(s), ret);
}

const char *strtab_get(const struct strtab *t, uint32_t id)
{
	return t->refs.n ? t->bytes + ref_of(t, id)->off : "";
}

size_t strtab_len(const struct strtab *t, uint32_t id)
{
	return t->refs.n ? ref_of(t, id)->len : 0;
}

uint32_t strtab_count(const struct strtab *t)
{
	return t->refs.n ? (uint32_t)t->refs.n : 1;
}

void strtab_free(struct strtab *t)
{
	map_free(&t->refs);
	free(t->bytes);
	*t = (struct strtab)STRTAB_INIT;
}
