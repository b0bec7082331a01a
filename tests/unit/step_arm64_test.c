/* Tests of bpf/step.h as arm64: what differs from x86-64, over fake memory. */
#define WK_ARCH_ARM64
#include "fake_stack.h"
#include "step.h"

#define PAC UINT64_C(0x007f000000000000)

static struct wk_regs leaf_at(size_t sp_word, size_t fp_word)
{
	return (struct wk_regs){ .pc = 0x401000,
				 .sp = at(sp_word),
				 .fp = at(fp_word),
				 .lr = 0x402000,
				 .pac_mask = PAC,
				 .exact = 1,
				 .leaf = 1 };
}

static struct wk_row row_of(enum wk_cfa cfa, int16_t cfa_off, enum wk_fp fp, enum wk_ra ra,
			    int16_t fp_off)
{
	return (struct wk_row){ .cfa = (uint8_t)cfa,
				.cfa_off = cfa_off,
				.fp_off = fp_off,
				.fp_ra = (uint8_t)(fp | ra << 4) };
}

static void ck_caller(const struct wk_regs *r, uint64_t pc, uint64_t sp, uint64_t fp)
{
	ck_assert_uint_eq(r->pc, pc);
	ck_assert_uint_eq(r->sp, sp);
	ck_assert_uint_eq(r->fp, fp);
	ck_assert_uint_eq(r->exact, 0);
	ck_assert_uint_eq(r->leaf, 0);
}

START_TEST(leaf_without_a_frame)
{
	struct wk_row row = row_of(WK_CFA_SP, 0, WK_FP_SAME, WK_RA_LR, 0);
	struct wk_regs r = leaf_at(10, 20);

	fake_reset();
	ck_assert_int_eq(wk_step(&r, row, NULL), 0);
	ck_caller(&r, 0x402000, at(10), at(20));
	ck_assert_uint_eq(reads, 0);
	/* Its caller's lr is gone: the rule can't be believed a second time. */
	ck_assert_int_eq(wk_step(&r, row, NULL), WK_USER_BAD_RULE);
	ck_caller(&r, 0x402000, at(10), at(20));
}
END_TEST

START_TEST(frame_record)
{
	struct wk_regs r = leaf_at(10, 20);

	fake_reset();
	stack[13] |= PAC & 0x0055000000000000; /* signed */
	ck_assert_int_eq(wk_step(&r, row_of(WK_CFA_SP, 6, WK_FP_SAVED, WK_RA_AFTER_FP, -4), NULL),
			 0);
	ck_caller(&r, content(13), at(16), content(12));
	ck_assert_uint_eq(reads, 1);
}
END_TEST

START_TEST(lr_saved_alone)
{
	struct wk_regs r = leaf_at(10, 20);

	fake_reset();
	ck_assert_int_eq(wk_step(&r, row_of(WK_CFA_SP, 2, WK_FP_SAME, WK_RA_SAVED, -2), NULL), 0);
	ck_caller(&r, content(10), at(12), at(20));
}
END_TEST

START_TEST(signed_lr)
{
	struct wk_regs r = leaf_at(10, 20);

	fake_reset();
	r.lr |= PAC;
	ck_assert_int_eq(wk_step(&r, row_of(WK_CFA_SP, 4, WK_FP_SAME, WK_RA_LR, 0), NULL), 0);
	ck_caller(&r, 0x402000, at(14), at(20));
}
END_TEST

START_TEST(same_sp_needs_a_leaf)
{
	struct wk_regs r = leaf_at(10, 20);
	struct wk_row saved = row_of(WK_CFA_SP, 0, WK_FP_SAME, WK_RA_SAVED, -2);

	fake_reset();
	ck_assert_int_eq(wk_step(&r, saved, NULL), WK_USER_BAD_FRAME);
	r.leaf = 0;
	ck_assert_int_eq(wk_step(&r, saved, NULL), WK_USER_BAD_FRAME);
	ck_assert_uint_eq(r.sp, at(10));
}
END_TEST

/* sp at siginfo (16 words); ucontext, its sigcontext 22 words in: fault address, x0..x30, sp, pc */
START_TEST(signal_frame)
{
	struct wk_row row = row_of(WK_CFA_SIGNAL, 0, 0, 0, 0);
	struct wk_regs r = leaf_at(10, 20);
	size_t x0 = 10 + 16 + 22 + 1;

	fake_reset();
	r.leaf = r.exact = 0;
	ck_assert_int_eq(wk_step(&r, row, NULL), 0);
	ck_assert_uint_eq(r.fp, content(x0 + 29));
	ck_assert_uint_eq(r.lr, content(x0 + 30));
	ck_assert_uint_eq(r.sp, content(x0 + 31));
	ck_assert_uint_eq(r.pc, content(x0 + 32));
	ck_assert_uint_eq(r.exact, 1);
	ck_assert_uint_eq(r.leaf, 1);
	ck_assert_uint_eq(r.pac_mask, PAC);

	r = leaf_at(STACK_WORDS - 40, 20);
	ck_assert_int_eq(wk_step(&r, row, NULL), WK_USER_FAULT);
	ck_assert_uint_eq(r.sp, at(STACK_WORDS - 40));
}
END_TEST

START_TEST(frame_pointers)
{
	struct wk_regs r = leaf_at(10, 20);

	fake_reset();
	stack[20] = 0;
	stack[21] |= PAC;
	ck_assert_int_eq(wk_fp_step(&r, 0), 0);
	ck_caller(&r, content(21), at(22), 0);
	ck_assert_int_eq(wk_fp_step(&r, 0), WK_USER_ROOT);
}
END_TEST

/* bl to just before pc, at text[0x100]. */
START_TEST(leaf_by_its_code)
{
	struct wk_regs r = leaf_at(10, 20);
	uint32_t bl = 0x94000000 | 0x40;

	fake_reset();
	memcpy(text + 0x100, &bl, sizeof(bl));
	r.pc = CODE + 0x208;
	r.lr = (CODE + 0x104) | PAC;
	ck_assert_int_eq(wk_find_caller(&r, 0, (struct wk_row){ 0 }, NULL), 0);
	ck_caller(&r, CODE + 0x104, at(10), at(20));
	/* no call of this function */
	r = leaf_at(10, 20);
	r.pc = CODE + 0x80;
	r.lr = CODE + 0x104;
	ck_assert_int_eq(wk_find_caller(&r, 0, (struct wk_row){ 0 }, NULL), 0);
	ck_caller(&r, content(21), at(22), content(20));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("step, arm64");
	TCase *t = tcase_create("step");
	SRunner *runner;
	int failed;

	tcase_add_test(t, leaf_without_a_frame);
	tcase_add_test(t, frame_record);
	tcase_add_test(t, lr_saved_alone);
	tcase_add_test(t, signed_lr);
	tcase_add_test(t, same_sp_needs_a_leaf);
	tcase_add_test(t, signal_frame);
	tcase_add_test(t, frame_pointers);
	tcase_add_test(t, leaf_by_its_code);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
