/* replay_test.c - walking on over a copied stack: a capture made by hand, rows made by hand. */
#include <check.h>

#include "collect/replay.h"

#define BASE 0x7ffc00000000ULL	/* page-aligned, as BPF copies */

static struct wk_capture cap;
static enum wk_rows_state state[4];
static uint64_t words[8];
static struct wk_table table;

static uint64_t row(uint16_t pc, uint8_t cfa, uint8_t fp_ra, int16_t cfa_off, int16_t fp_off)
{
	struct wk_row r = { pc, cfa, fp_ra, cfa_off, fp_off };
	uint64_t w;

	memcpy(&w, &r, sizeof(w));
	return w;
}

static struct replay_rows source(void *ctx, uint32_t id)
{
	(void)ctx;
	return (struct replay_rows){ .state = state[id], .table = table, .words = words, .n = 3 };
}

static void put(uint64_t addr, uint64_t value)
{
	memcpy(cap.stack + (addr - BASE), &value, sizeof(value));
}

/* One file, id 2, mapped at 0x400000: offsets below 0x100 keep a frame of two words, those above
 * are the outermost frame. */
static void setup(void)
{
	memset(&cap, 0, sizeof(cap));
	cap.stack_start = BASE;
	cap.stack_bytes = 8192;
	cap.exact = cap.leaf = 1;
	cap.regs[0] = 0x400010;
	cap.regs[1] = BASE + 0x100;
	cap.nr_vmas = 1;
	cap.vmas[0] = (struct wk_capture_vma){ 0x400000, 0x401000, WK_FRAME_MAKE_FILE(2, 0) };
	table = (struct wk_table){ .base = 0, .blocks = 1, .rows = 2 };
	words[0] = 0 | 1ULL << 32;	/* index[0] = 0, index[1] = 1 */
	words[1] = row(0, WK_CFA_SP, WK_FP_SAME, 2, 0);
	words[2] = row(0x100, WK_CFA_ROOT, 0, 0, 0);
	state[2] = WK_ROWS_HERE;
}

START_TEST(walks_to_the_root)
{
	struct replay_walk w;

	put(BASE + 0x108, 0x400021);	/* return addresses, below each CFA */
	put(BASE + 0x118, 0x400151);
	ck_assert_int_eq(replay(&cap, source, NULL, false, &w), 0);
	ck_assert_uint_eq(w.outcome, WK_USER_ROOT);
	ck_assert_uint_eq(w.n, 3);
	ck_assert_uint_eq(w.frames[0], WK_FRAME_MAKE_FILE(2, 0x10));
	ck_assert_uint_eq(w.frames[1], WK_FRAME_MAKE_FILE(2, 0x20));	/* minus one */
	ck_assert_uint_eq(w.frames[2], WK_FRAME_MAKE_FILE(2, 0x150));
}
END_TEST

START_TEST(frames_walked_before_come_first)
{
	struct replay_walk w;

	cap.nr_user = 1;
	cap.user[0] = WK_FRAME_MAKE_FILE(3, 7);
	cap.regs[0] = 0x400151;
	cap.exact = 0;
	ck_assert_int_eq(replay(&cap, source, NULL, false, &w), 0);
	ck_assert_uint_eq(w.n, 2);
	ck_assert_uint_eq(w.frames[0], WK_FRAME_MAKE_FILE(3, 7));
	ck_assert_uint_eq(w.frames[1], WK_FRAME_MAKE_FILE(2, 0x150));
	ck_assert_uint_eq(w.outcome, WK_USER_ROOT);
}
END_TEST

START_TEST(rows_on_their_way_are_waited_for)
{
	struct replay_walk w;

	state[2] = WK_ROWS_COMING;
	ck_assert_int_eq(replay(&cap, source, NULL, false, &w), -EAGAIN);
	ck_assert_uint_eq(w.missing, 2);
	/* unless nobody waits any more: frame pointers, of which a leaf's 0 says nothing */
	ck_assert_int_eq(replay(&cap, source, NULL, true, &w), 0);
	ck_assert_uint_eq(w.n, 1);
	ck_assert_uint_eq(w.outcome, WK_USER_NO_INFO);
}
END_TEST

START_TEST(a_trampoline_was_not_called)
{
	struct replay_walk w;

	/* its row starts one byte early, where return addresses are looked up */
	words[2] = row(0x1ff, WK_CFA_SIGNAL, 0, 0, 0);
	table.rows = 2;
	put(BASE + 0x108, 0x400200);
	cap.regs[0] = 0x400010;
	put(BASE + 0x110 + 40 + 16 * 8, 0x400020);	/* step.h, WK_SIGFRAME_OFF: sp, pc */
	put(BASE + 0x110 + 40 + 15 * 8, BASE + 0x800);
	ck_assert_int_eq(replay(&cap, source, NULL, false, &w), 0);
	ck_assert_uint_ge(w.n, 3);
	ck_assert_uint_eq(w.frames[1], WK_FRAME_MAKE_FILE(2, 0x200));
	ck_assert_uint_eq(w.frames[2], WK_FRAME_MAKE_FILE(2, 0x20));	/* interrupted there */
}
END_TEST

START_TEST(memory_with_a_name_keeps_its_addresses)
{
	struct replay_walk w;

	state[2] = WK_ROWS_ANON;
	cap.regs[2] = BASE + 0x200;	/* a frame record, and the end of its chain */
	put(BASE + 0x200, 0);
	put(BASE + 0x208, 0x400021);
	ck_assert_int_eq(replay(&cap, source, NULL, false, &w), 0);
	ck_assert_uint_eq(w.n, 2);
	ck_assert_uint_eq(w.frames[0], 0x400010);
	ck_assert_uint_eq(w.frames[1], 0x400020);
	ck_assert_uint_eq(w.outcome, WK_USER_ROOT);
}
END_TEST

START_TEST(each_way_to_stop)
{
	struct replay_walk w;

	put(BASE + 0x108, 0x900000);	/* no mapping there */
	ck_assert_int_eq(replay(&cap, source, NULL, false, &w), 0);
	ck_assert_uint_eq(w.outcome, WK_USER_NO_MAPPING);
	ck_assert_uint_eq(w.n, 1);

	cap.missing = 1;		/* the page with the return address was never touched */
	ck_assert_int_eq(replay(&cap, source, NULL, false, &w), 0);
	ck_assert_uint_eq(w.outcome, WK_USER_FAULT);

	cap.missing = 0;
	cap.regs[1] = BASE + 8192 - 8;	/* the copy ends below the return address */
	ck_assert_int_eq(replay(&cap, source, NULL, false, &w), 0);
	ck_assert_uint_eq(w.outcome, WK_USER_FAULT);

	cap.regs[1] = BASE - 64;	/* and begins above this one */
	ck_assert_int_eq(replay(&cap, source, NULL, false, &w), 0);
	ck_assert_uint_eq(w.outcome, WK_USER_FAULT);
}
END_TEST

START_TEST(a_missing_page_between_is_no_zero)
{
	struct replay_walk w;

	cap.regs[1] = BASE + 4096 - 16;
	put(BASE + 4096 - 8, 0x400021);		/* the caller's return address lies in page 1 */
	cap.missing = 2;
	ck_assert_int_eq(replay(&cap, source, NULL, false, &w), 0);
	ck_assert_uint_eq(w.n, 2);
	ck_assert_uint_eq(w.outcome, WK_USER_FAULT);
}
END_TEST

START_TEST(endless_recursion_ends)
{
	struct replay_walk w;

	cap.stack_bytes = WK_CAPTURE_STACK;
	for (uint64_t a = BASE + 0x108; a <= BASE + WK_CAPTURE_STACK - 8; a += 16)
		put(a, 0x400021);
	ck_assert_int_eq(replay(&cap, source, NULL, false, &w), 0);
	ck_assert_uint_eq(w.outcome, w.n == REPLAY_FRAMES ? WK_USER_DEPTH : WK_USER_FAULT);
	ck_assert_uint_gt(w.n, 4000);
}
END_TEST

START_TEST(jit_code_goes_by_frame_pointers)
{
	struct replay_walk w;

	cap.vmas[1] = (struct wk_capture_vma){ 0x500000, 0x501000, 0x500000 };	/* no file */
	cap.nr_vmas = 2;
	cap.regs[0] = 0x500123;
	cap.regs[2] = BASE + 0x200;
	put(BASE + 0x200, 0);
	put(BASE + 0x208, 0x400151);
	ck_assert_int_eq(replay(&cap, source, NULL, false, &w), 0);
	ck_assert_uint_eq(w.n, 2);
	ck_assert_uint_eq(w.frames[0], 0x500123);
	ck_assert_uint_eq(w.frames[1], WK_FRAME_MAKE_FILE(2, 0x150));
	ck_assert_uint_eq(w.outcome, WK_USER_ROOT);
}
END_TEST

/* The code that BPF has seen around the leaf and before its return address. */
START_TEST(leaf_without_rows_by_its_code)
{
	struct replay_walk w;

	words[1] = row(0, WK_CFA_NONE, 0, 0, 0);
	put(BASE + 0x100, 0x400151);
	cap.code[1] = (struct wk_capture_code){ 0x40014c, { 0xe8, 0xb3, 0xfe, 0xff, 0xff } };
	ck_assert_int_eq(replay(&cap, source, NULL, false, &w), 0);
	ck_assert_uint_eq(w.n, 2);
	ck_assert_uint_eq(w.frames[1], WK_FRAME_MAKE_FILE(2, 0x150));
	ck_assert_uint_eq(w.outcome, WK_USER_ROOT);
	cap.code[1].addr = 0;
	ck_assert_int_eq(replay(&cap, source, NULL, false, &w), 0);
	ck_assert_uint_eq(w.n, 1);
	ck_assert_uint_eq(w.outcome, WK_USER_NO_INFO);
}
END_TEST

/* Code that the process has made: its rows are by address, and its frames keep their addresses. */
START_TEST(generated_code_with_rows)
{
	struct replay_walk w;

	cap.vmas[0].frame = cap.vmas[0].start;
	table = (struct wk_table){ .base = 0x400000, .blocks = 1, .rows = 2 };
	put(BASE + 0x108, 0x400021);
	put(BASE + 0x118, 0x400151);
	state[0] = WK_ROWS_HERE;
	ck_assert_int_eq(replay(&cap, source, NULL, false, &w), 0);
	ck_assert_uint_eq(w.outcome, WK_USER_ROOT);
	ck_assert_uint_eq(w.n, 3);
	ck_assert_uint_eq(w.frames[1], 0x400020);
	state[0] = WK_ROWS_NONE;
	ck_assert_int_eq(replay(&cap, source, NULL, false, &w), 0);
	ck_assert_uint_eq(w.outcome, WK_USER_NO_INFO);
}
END_TEST

START_TEST(goes_on_from_the_middle)
{
	struct replay_walk w;

	cap.exact = cap.leaf = 0;	/* a chain of frame records led here, and ends */
	cap.chained = 1;
	words[1] = row(0, WK_CFA_NONE, 0, 0, 0);
	ck_assert_int_eq(replay(&cap, source, NULL, false, &w), 0);
	ck_assert_uint_eq(w.outcome, WK_USER_ROOT);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("replay");
	TCase *tc = tcase_create("replay");
	SRunner *sr = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, walks_to_the_root);
	tcase_add_test(tc, frames_walked_before_come_first);
	tcase_add_test(tc, rows_on_their_way_are_waited_for);
	tcase_add_test(tc, a_trampoline_was_not_called);
	tcase_add_test(tc, each_way_to_stop);
	tcase_add_test(tc, memory_with_a_name_keeps_its_addresses);
	tcase_add_test(tc, a_missing_page_between_is_no_zero);
	tcase_add_test(tc, endless_recursion_ends);
	tcase_add_test(tc, jit_code_goes_by_frame_pointers);
	tcase_add_test(tc, leaf_without_rows_by_its_code);
	tcase_add_test(tc, generated_code_with_rows);
	tcase_add_test(tc, goes_on_from_the_middle);
	suite_add_tcase(suite, tc);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed != 0;
}
