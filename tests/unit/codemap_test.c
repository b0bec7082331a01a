/* Tests of symbol/codemap.h: cuts by hand, then random ranges against addresses painted one by one. */
#include <check.h>

#include "symbol/codemap.h"

static void add(struct codemap *m, uint64_t start, uint64_t end, uint64_t where)
{
	ck_assert_int_eq(codemap_add(m, start, end, where), 0);
}

static void ck_piece(const struct codemap *m, uint64_t addr, uint64_t start, uint64_t end,
		     uint64_t where)
{
	const struct code_piece *p = codemap_find(m, addr);

	ck_assert_ptr_nonnull(p);
	ck_assert_uint_eq(p->start, start);
	ck_assert_uint_eq(p->end, end);
	ck_assert_uint_eq(p->where, where);
}

START_TEST(later_covers_earlier)
{
	struct codemap m cleanup(codemap_cleanup) = CODEMAP_INIT;

	ck_assert_ptr_null(codemap_find(&m, 0));
	add(&m, 100, 200, 1);
	ck_assert_ptr_null(codemap_find(&m, 150));	/* not in force yet */
	ck_assert_int_eq(codemap_settle(&m), 0);
	ck_piece(&m, 100, 100, 200, 1);
	ck_piece(&m, 199, 100, 200, 1);
	ck_assert_ptr_null(codemap_find(&m, 99));
	ck_assert_ptr_null(codemap_find(&m, 200));
	add(&m, 120, 130, 2);	/* in its middle */
	add(&m, 190, 300, 3);	/* over its end */
	add(&m, 50, 110, 4);	/* over its start */
	add(&m, 125, 125, 5);	/* empty */
	add(&m, 130, 125, 6);	/* inverted */
	ck_assert_int_eq(codemap_settle(&m), 0);
	ck_assert_uint_eq(m.n, 5);
	ck_piece(&m, 60, 50, 110, 4);
	ck_piece(&m, 115, 110, 120, 1);
	ck_piece(&m, 120, 120, 130, 2);
	ck_piece(&m, 135, 130, 190, 1);
	ck_piece(&m, 250, 190, 300, 3);
	add(&m, 0, UINT64_MAX, 7);
	ck_assert_int_eq(codemap_settle(&m), 0);
	ck_assert_uint_eq(m.n, 1);
	ck_piece(&m, 150, 0, UINT64_MAX, 7);
}
END_TEST

START_TEST(gone_code_leaves_a_hole)
{
	struct codemap m cleanup(codemap_cleanup) = CODEMAP_INIT;

	add(&m, 100, 200, 1);
	add(&m, 150, 160, CODEMAP_GONE);
	add(&m, 500, 600, CODEMAP_GONE);	/* nothing was there */
	ck_assert_int_eq(codemap_settle(&m), 0);
	ck_piece(&m, 149, 100, 150, 1);
	ck_assert_ptr_null(codemap_find(&m, 150));
	ck_piece(&m, 160, 160, 200, 1);
	ck_assert_ptr_null(codemap_find(&m, 550));
	codemap_clear(&m);
	ck_assert_ptr_null(codemap_find(&m, 160));
}
END_TEST

START_TEST(limit_is_counted)
{
	struct codemap m cleanup(codemap_cleanup) = CODEMAP_INIT;

	m.max = 3;
	for (uint64_t i = 0; i < 5; i++)
		add(&m, 100 * i, 100 * i + 50, i);
	ck_assert_int_eq(codemap_settle(&m), 0);
	ck_assert_uint_eq(m.n, 3);
	ck_assert_uint_eq(m.refused, 2);
	add(&m, 0, 50, CODEMAP_GONE);	/* always allowed: it makes room */
	ck_assert_int_eq(codemap_settle(&m), 0);
	add(&m, 700, 750, 7);
	ck_assert_int_eq(codemap_settle(&m), 0);
	ck_piece(&m, 720, 700, 750, 7);
	ck_assert_uint_eq(m.refused, 2);
	ck_assert_uint_gt(codemap_bytes(&m), 0);
}
END_TEST

START_TEST(many_settle_by_themselves)
{
	struct codemap m cleanup(codemap_cleanup) = CODEMAP_INIT;

	for (uint64_t i = 0; i < 3 * CODEMAP_BATCH; i++)	/* downwards */
		add(&m, 16 * (3 * CODEMAP_BATCH - i), 16 * (3 * CODEMAP_BATCH - i) + 16, i);
	ck_assert_uint_ge(m.n, 2 * CODEMAP_BATCH);
	ck_assert_int_eq(codemap_settle(&m), 0);
	ck_assert_uint_eq(m.n, 3 * CODEMAP_BATCH);
	ck_piece(&m, 16, 16, 32, 3 * CODEMAP_BATCH - 1);
}
END_TEST

static uint32_t random_below(uint32_t *state, uint32_t n)
{
	*state = *state * 1664525 + 1013904223;
	return (*state >> 8) % n;
}

START_TEST(random_ranges)
{
	enum { SPACE = 400, ROUNDS = 300 };
	struct codemap m cleanup(codemap_cleanup) = CODEMAP_INIT;
	uint64_t painted[SPACE];
	uint32_t state = (uint32_t)_i;

	for (size_t a = 0; a < SPACE; a++)
		painted[a] = CODEMAP_GONE;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		for (uint32_t k = random_below(&state, 12); k; k--) {
			uint64_t start = random_below(&state, SPACE);
			uint64_t size = random_below(&state, 60);
			uint64_t end = MIN(start + size, (uint64_t)SPACE);
			uint64_t where = random_below(&state, 5) ? round * 16 + k : CODEMAP_GONE;

			add(&m, start, end, where);
			for (uint64_t a = start; a < end; a++)
				painted[a] = where;
		}
		ck_assert_int_eq(codemap_settle(&m), 0);
		for (uint64_t a = 0; a < SPACE; a++) {
			const struct code_piece *p = codemap_find(&m, a);

			ck_assert_uint_eq(p ? p->where : CODEMAP_GONE, painted[a]);
		}
		for (size_t i = 1; i < m.n; i++)
			ck_assert_uint_le(m.v[i - 1].end, m.v[i].start);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("codemap");
	TCase *t = tcase_create("codemap");
	SRunner *r;
	int failed;

	tcase_add_test(t, later_covers_earlier);
	tcase_add_test(t, gone_code_leaves_a_hole);
	tcase_add_test(t, limit_is_counted);
	tcase_add_test(t, many_settle_by_themselves);
	tcase_add_loop_test(t, random_ranges, 0, 20);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
