/* lru_test.c - a cache against a plain model of it: what is found, in which order things go, how
 * much they weigh. */
#include <check.h>

#include "base/lru.h"
#include "base/map.h"

struct thing {
	struct lru_node node;
	uint32_t key;
};

enum { KEYS = 300 };
static uint32_t released[KEYS], nreleased;

static bool same(const struct lru_node *n, const void *key)
{
	return ((const struct thing *)n)->key == *(const uint32_t *)key;
}

static void release(void *ctx, struct lru_node *n)
{
	ck_assert_ptr_eq(ctx, released);
	released[nreleased++ % KEYS] = ((struct thing *)n)->key;
	free(n);
}

static struct thing *find(struct lru *l, uint32_t key)
{
	return lru_find(l, hash_bytes(&key, sizeof(key)), &key);
}

static struct thing *add(struct lru *l, uint32_t key, size_t bytes)
{
	struct thing *t = calloc(1, sizeof(*t));

	t->key = key;
	ck_assert_int_eq(lru_add(l, &t->node, hash_bytes(&key, sizeof(key)), bytes), 0);
	return t;
}

START_TEST(oldest_go_first)
{
	struct lru l = LRU_INIT(30, same, release, released);

	nreleased = 0;
	ck_assert_ptr_null(find(&l, 1));
	add(&l, 1, 10);
	add(&l, 2, 10);
	add(&l, 3, 10);
	ck_assert_ptr_nonnull(find(&l, 1)); /* used: 2 is the oldest now */
	add(&l, 4, 10);
	ck_assert_uint_eq(nreleased, 1);
	ck_assert_uint_eq(released[0], 2);
	ck_assert_ptr_null(find(&l, 2));
	lru_resize(&l, &find(&l, 3)->node, 20); /* 1 goes for it */
	ck_assert_uint_eq(released[1], 1);
	ck_assert_uint_eq(l.bytes, 30);
	ck_assert_uint_eq(l.evicted, 2);
	add(&l, 5, 100); /* too large, but last */
	ck_assert_uint_eq(l.n, 1);
	ck_assert_ptr_nonnull(find(&l, 5));
	lru_remove(&l, &find(&l, 5)->node);
	ck_assert_uint_eq(l.n + l.bytes, 0);
	ck_assert_uint_eq(l.evicted, 4);
	lru_free(&l);
	lru_free(&l);
}
END_TEST

START_TEST(trims_and_frees)
{
	struct lru l = LRU_INIT(1000, same, release, released);

	nreleased = 0;
	for (uint32_t i = 0; i < 10; i++)
		add(&l, i, 10);
	lru_trim(&l, 35);
	ck_assert_uint_eq(l.n, 3);
	ck_assert_uint_eq(released[6], 6);
	ck_assert_ptr_nonnull(find(&l, 9));
	lru_free(&l);
	ck_assert_uint_eq(nreleased, 10);
	add(&l, 1, 10); /* it can be used again */
	lru_trim(&l, 0);
	ck_assert_uint_eq(l.n, 0);
	lru_free(&l);
}
END_TEST

/* Random use, compared with times of last use in an array. */
START_TEST(like_a_model)
{
	enum { BYTES = 7, ROOM = 100 };
	struct lru l = LRU_INIT(ROOM * BYTES, same, release, released);
	uint32_t used[KEYS] = { 0 }, x = 1, inside = 0;

	for (uint32_t now = 1; now < 20000; now++) {
		uint32_t key, oldest = 0;

		x = x * 1664525 + 1013904223;
		key = (x >> 8) % KEYS;
		ck_assert_int_eq(find(&l, key) != NULL, used[key] != 0);
		if (!used[key]) {
			if (inside == ROOM) {
				for (uint32_t i = 0; i < KEYS; i++)
					if (used[i] && (!used[oldest] || used[i] < used[oldest]))
						oldest = i;
				used[oldest] = 0;
			} else {
				inside++;
			}
			add(&l, key, BYTES);
		}
		used[key] = now;
		if (!(x >> 28)) {
			lru_remove(&l, &find(&l, key)->node);
			used[key] = 0;
			inside--;
		}
		ck_assert_uint_eq(l.n, inside);
		ck_assert_uint_eq(l.bytes, inside * BYTES);
	}
	lru_free(&l);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("lru");
	TCase *t = tcase_create("lru");
	SRunner *r;
	int failed;

	tcase_add_test(t, oldest_go_first);
	tcase_add_test(t, trims_and_frees);
	tcase_add_test(t, like_a_model);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
