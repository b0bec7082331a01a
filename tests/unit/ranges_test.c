/* Tests of symbol/ranges.h against looking at every range. */
#include "made_elf.h"

#include "symbol/ranges.h"

START_TEST(overlaps)
{
	struct ranges t = { 0 };

	ck_assert_uint_eq(ranges_find(&t, 5, RANGES_LAST), RANGES_NONE);
	ck_assert_int_eq(ranges_add(&t, 10, 100, 0), 0);
	ck_assert_int_eq(ranges_add(&t, 20, 30, 1), 0);
	ck_assert_int_eq(ranges_add(&t, 40, 50, 1), 0);
	ck_assert_int_eq(ranges_add(&t, 10, 100, 2), 0);
	ranges_sort(&t);
	ck_assert_uint_eq(ranges_find(&t, 9, RANGES_LAST), RANGES_NONE);
	ck_assert_uint_eq(ranges_find(&t, 25, RANGES_LAST), 2);
	ck_assert_uint_eq(ranges_find(&t, 25, RANGES_FIRST), 0);
	ck_assert_uint_eq(ranges_find(&t, 99, RANGES_LAST), 2);
	ck_assert_uint_eq(ranges_find(&t, 100, RANGES_LAST), RANGES_NONE);
	free(t.v);
}
END_TEST

START_TEST(random_ranges)
{
	unsigned int seed = 1;

	for (int round = 0; round < 200; round++) {
		struct ranges t = { 0 };
		struct range v[40];

		for (uint32_t i = 0; i < ARRAY_SIZE(v); i++) {
			v[i].low = (uint64_t)rand_r(&seed) % 100;
			v[i].high = v[i].low + 1 + (uint64_t)rand_r(&seed) % 30;
			ck_assert_int_eq(ranges_add(&t, v[i].low, v[i].high, i), 0);
		}
		ranges_sort(&t);
		for (uint64_t at = 0; at < 140; at++) {
			uint32_t first = RANGES_NONE, last = RANGES_NONE;

			for (uint32_t i = 0; i < ARRAY_SIZE(v); i++)
				if (v[i].low <= at && at < v[i].high) {
					first = first == RANGES_NONE ? i : first;
					last = i;
				}
			ck_assert_uint_eq(ranges_find(&t, at, RANGES_FIRST), first);
			ck_assert_uint_eq(ranges_find(&t, at, RANGES_LAST), last);
		}
		free(t.v);
	}
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { overlaps, random_ranges };

	return made_run("ranges", tests, ARRAY_SIZE(tests));
}
