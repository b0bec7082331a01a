/* Tests of base/arena.h. */
#include <check.h>

#include "base/arena.h"

START_TEST(strings_stay)
{
	struct arena a = ARENA_INIT;
	char *kept[5000], text[32];

	for (int i = 0; i < 5000; i++) {
		int n = snprintf(text, sizeof(text), "name %d", i);

		kept[i] = arena_string(&a, text, (size_t)n);
		ck_assert_ptr_nonnull(kept[i]);
	}
	for (int i = 0; i < 5000; i++) {
		snprintf(text, sizeof(text), "name %d", i);
		ck_assert_str_eq(kept[i], text);
	}
	ck_assert_uint_ge(a.bytes, 5000 * 7);
	ck_assert_uint_le(a.bytes, 5000 * 16 + 2 * ARENA_CHUNK_MAX);
	arena_free(&a);
	ck_assert_uint_eq(a.bytes, 0);
	ck_assert_ptr_nonnull(arena_string(&a, "", 0));	/* usable again */
	arena_free(&a);
	arena_free(&a);
}
END_TEST

START_TEST(sizes)
{
	struct arena a = ARENA_INIT;
	char *big;

	ck_assert_uint_eq((uintptr_t)arena_alloc(&a, 1) % _Alignof(max_align_t), 0);
	ck_assert_uint_eq((uintptr_t)arena_alloc(&a, 3) % _Alignof(max_align_t), 0);
	ck_assert_ptr_nonnull(arena_alloc(&a, 0));
	ck_assert_uint_le(a.bytes, ARENA_CHUNK_MIN + 64);
	big = arena_alloc(&a, 1 << 20);		/* larger than a chunk */
	ck_assert_ptr_nonnull(big);
	memset(big, 1, 1 << 20);
	ck_assert_ptr_null(arena_alloc(&a, SIZE_MAX));
	ck_assert_ptr_null(arena_string(&a, "", SIZE_MAX));
	arena_free(&a);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("arena");
	TCase *t = tcase_create("arena");
	SRunner *runner;
	int failed;

	tcase_add_test(t, strings_stay);
	tcase_add_test(t, sizes);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
