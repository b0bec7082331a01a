/* Tests of unwind/state.h: meeting, contradicting, and the rows of states at their limits. code_test has
 * what instructions do. */
#include <check.h>

#include "unwind/state.h"

static const struct code_state states[] = {
	STATE_AT_ENTRY,
	{ .sp = 16, .slot = 16, .same = 1 },
	{ .sp = 48, .frame = 16, .slot = 16 },
	{ .sp = STATE_UNKNOWN, .frame = 16, .slot = 16 },
	{ .sp = 48 },
	{ .sp = STATE_UNKNOWN },
	{ .sp = STATE_UNKNOWN, .root = STATE_ENTRY },
	{ .sp = STATE_UNKNOWN, .root = STATE_CLEARED },
};

START_TEST(test_meet)
{
	const struct code_state *a = &states[_i];

	for (size_t k = 0; k < ARRAY_SIZE(states); k++) {
		const struct code_state *b = &states[k];
		struct code_state ab = state_meet(a, b), ba = state_meet(b, a), again = state_meet(&ab, b);

		ck_assert(state_equal(&ab, &ba));
		ck_assert(state_equal(&ab, &again));
		ck_assert_int_eq(state_contradict(a, b), state_contradict(b, a));
		if (a == b)
			ck_assert(state_equal(&ab, a) && !state_contradict(a, b));
		/* what is left never says more, or other, than both */
		ck_assert(ab.sp == STATE_UNKNOWN || (ab.sp == a->sp && ab.sp == b->sp));
		ck_assert(!ab.frame || (ab.frame == a->frame && ab.frame == b->frame));
		ck_assert(!ab.slot || (ab.slot == a->slot && ab.slot == b->slot));
		ck_assert(!ab.same || (a->same && b->same));
		ck_assert(!ab.root || (ab.root == a->root && ab.root == b->root));
	}
}
END_TEST

START_TEST(test_contradictions)
{
	ck_assert(state_contradict(&states[0], &states[1]));
	ck_assert(!state_contradict(&states[2], &states[3]));
	ck_assert(!state_contradict(&states[4], &states[5]));
	ck_assert(state_contradict(&states[5], &states[6]));
}
END_TEST

static struct wk_row row(int32_t sp, int32_t frame, int32_t slot)
{
	const struct code_state s = { .sp = sp, .frame = frame, .slot = slot };

	return state_row(&s);
}

START_TEST(test_rows)
{
	ck_assert_int_eq(row(STATE_OFFSET_MAX, 0, 0).cfa_off, INT16_MAX);
	ck_assert_int_eq(row(12, 0, 0).cfa, WK_CFA_NONE);
	ck_assert_int_eq(row(0, 0, 0).cfa, WK_CFA_NONE);
	ck_assert_int_eq(row(-8, 0, 0).cfa, WK_CFA_NONE);
	ck_assert_int_eq(row(STATE_UNKNOWN, 0, 16).cfa, WK_CFA_NONE);
	ck_assert_int_eq(row(12, 16, 16).cfa, WK_CFA_FP);
	ck_assert_int_eq(row(24, 0, 16).fp_off, -2);
	ck_assert_int_eq(WK_ROW_FP(row(24, 0, 12)), WK_FP_UNDEFINED);
}
END_TEST

/* Changes that don't fit are unknown, not wrapped. */
START_TEST(test_overflow)
{
	struct code_state s = { .sp = STATE_OFFSET_MAX - 8, .same = 1 };
	const struct insn push = { .stack = INSN_ADD_SP, .n = -8 };
	const struct insn huge = { .stack = INSN_ADD_SP, .n = INT32_MIN };
	const struct insn far = { .stack = INSN_SET_FP, .n = INT32_MAX };

	state_apply(&s, &push, true);
	ck_assert_int_eq(s.sp, STATE_OFFSET_MAX);
	state_apply(&s, &far, true);
	ck_assert_int_eq(s.frame, 0);
	state_apply(&s, &push, true);
	ck_assert_int_eq(s.sp, STATE_UNKNOWN);
	s.sp = 8;
	state_apply(&s, &huge, true);
	ck_assert_int_eq(s.sp, STATE_UNKNOWN);
	state_apply(&s, &push, true);
	ck_assert_int_eq(s.sp, STATE_UNKNOWN);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("state");
	TCase *t = tcase_create("state");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_loop_test(t, test_meet, 0, ARRAY_SIZE(states));
	tcase_add_test(t, test_contradictions);
	tcase_add_test(t, test_rows);
	tcase_add_test(t, test_overflow);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
