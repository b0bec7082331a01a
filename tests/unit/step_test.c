/* Tests of bpf/step.h as x86-64: every rule and every way to stop, over fake memory. */
#define WK_ARCH_X86_64
#include "fake_stack.h"
#include "step.h"

static struct wk_regs leaf_at(size_t sp_word, size_t fp_word)
{
	struct wk_regs r = {
		.pc = 0x401000, .sp = at(sp_word), .fp = at(fp_word), .exact = 1, .leaf = 1
	};

	for (uint64_t i = 0; i < WK_GENERAL; i++)
		r.general[i] = 0x1000 + i;
	return r;
}

static struct wk_row row_of(enum wk_cfa cfa, int16_t cfa_off, enum wk_fp fp, int16_t fp_off)
{
	return (struct wk_row){ .cfa = (uint8_t)cfa,
				.cfa_off = cfa_off,
				.fp_off = fp_off,
				.fp_ra = (uint8_t)fp };
}

static void ck_caller(const struct wk_regs *r, uint64_t pc, uint64_t sp, uint64_t fp)
{
	ck_assert_uint_eq(r->pc, pc);
	ck_assert_uint_eq(r->sp, sp);
	ck_assert_uint_eq(r->fp, fp);
	ck_assert_uint_eq(r->exact, 0);
	ck_assert_uint_eq(r->leaf, 0);
}

/* It stops with this outcome, and nothing that counts has moved. */
static void ck_stop(struct wk_regs *r, struct wk_row row, const struct wk_side *side,
		    enum wk_outcome outcome)
{
	struct wk_regs before = *r;

	ck_assert_int_eq(wk_step(r, row, side), outcome);
	ck_assert_uint_eq(r->pc, before.pc);
	ck_assert_uint_eq(r->sp, before.sp);
	ck_assert_uint_eq(r->fp, before.fp);
	ck_assert_uint_eq(r->exact, before.exact);
	ck_assert_uint_eq(r->leaf, before.leaf);
}

START_TEST(by_sp)
{
	struct wk_regs r = leaf_at(10, 99);

	fake_reset();
	ck_assert_int_eq(wk_step(&r, row_of(WK_CFA_SP, 4, WK_FP_SAME, 0), NULL), 0);
	ck_caller(&r, content(13), at(14), at(99));
	ck_assert_uint_eq(reads, 1);
}
END_TEST

START_TEST(leaf_rule)
{
	struct wk_regs r = leaf_at(10, 99);

	fake_reset();
	ck_assert_int_eq(wk_step(&r, row_of(WK_CFA_LEAF, 0, WK_FP_SAME, 0), NULL), 0);
	ck_caller(&r, content(10), at(11), at(99));
	ck_stop(&r, row_of(WK_CFA_LEAF, 0, WK_FP_SAME, 0), NULL, WK_USER_NO_INFO);
}
END_TEST

START_TEST(by_fp_with_the_pair_in_one_read)
{
	struct wk_regs r = leaf_at(10, 20);

	fake_reset();
	ck_assert_int_eq(wk_step(&r, row_of(WK_CFA_FP, 2, WK_FP_SAVED, -2), NULL), 0);
	ck_caller(&r, content(21), at(22), content(20));
	ck_assert_uint_eq(reads, 1);
}
END_TEST

START_TEST(fp_saved_apart)
{
	struct wk_regs r = leaf_at(10, 99);

	fake_reset();
	ck_assert_int_eq(wk_step(&r, row_of(WK_CFA_SP, 7, WK_FP_SAVED, -6), NULL), 0);
	ck_caller(&r, content(16), at(17), content(11));
	ck_assert_uint_eq(reads, 2);
}
END_TEST

START_TEST(lost_fp_is_never_used)
{
	struct wk_regs r = leaf_at(10, 20);

	fake_reset();
	ck_assert_int_eq(wk_step(&r, row_of(WK_CFA_SP, 1, WK_FP_UNDEFINED, 0), NULL), 0);
	ck_caller(&r, content(10), at(11), WK_FP_LOST);
	ck_stop(&r, row_of(WK_CFA_FP, 2, WK_FP_SAVED, -2), NULL, WK_USER_BAD_FRAME);
	ck_assert_int_eq(wk_fp_step(&r, 0), WK_USER_BAD_FRAME);
}
END_TEST

START_TEST(plt_entry)
{
	/* A lazy .plt entry pushes at its offset 6: from 11 on there is one more word. */
	static const struct {
		uint64_t pc;
		size_t cfa;
	} cases[] = { { 0x401020, 11 }, { 0x40102a, 11 }, { 0x40102b, 12 }, { 0x40102f, 12 } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct wk_regs r = leaf_at(10, 99);

		fake_reset();
		r.pc = cases[i].pc;
		ck_assert_int_eq(wk_step(&r, row_of(WK_CFA_PLT, 11, WK_FP_SAME, 0), NULL), 0);
		ck_caller(&r, content(cases[i].cfa - 1), at(cases[i].cfa), at(99));
	}
}
END_TEST

START_TEST(stops)
{
	struct wk_regs r = leaf_at(10, 20);
	struct wk_regs high = leaf_at(STACK_WORDS - 1, 20);

	fake_reset();
	ck_stop(&r, row_of(WK_CFA_NONE, 0, 0, 0), NULL, WK_USER_NO_INFO);
	ck_stop(&r, row_of(WK_CFA_ROOT, 0, 0, 0), NULL, WK_USER_ROOT);
	ck_stop(&r, row_of(WK_CFA_BAD, 0, 0, 0), NULL, WK_USER_BAD_RULE);
	ck_stop(&r, row_of(200, 0, 0, 0), NULL, WK_USER_BAD_RULE);
	/* a CFA at sp or below it */
	ck_stop(&r, row_of(WK_CFA_SP, 0, 0, 0), NULL, WK_USER_BAD_FRAME);
	ck_stop(&r, row_of(WK_CFA_SP, -1, 0, 0), NULL, WK_USER_BAD_FRAME);
	ck_stop(&r, row_of(WK_CFA_FP, -10, 0, 0), NULL, WK_USER_BAD_FRAME);
	/* nothing to read */
	ck_stop(&high, row_of(WK_CFA_SP, 2, 0, 0), NULL, WK_USER_FAULT);
	ck_stop(&high, row_of(WK_CFA_SP, 1, WK_FP_SAVED, 100), NULL, WK_USER_FAULT);
	/* misaligned, at the edges of the address space */
	r.fp = at(20) + 1;
	ck_stop(&r, row_of(WK_CFA_FP, 2, WK_FP_SAVED, -2), NULL, WK_USER_BAD_FRAME);
	r.fp = UINT64_MAX - 7;
	ck_stop(&r, row_of(WK_CFA_FP, 2, WK_FP_SAVED, -2), NULL, WK_USER_BAD_FRAME);
	r.fp = UINT64_MAX - 31;
	ck_stop(&r, row_of(WK_CFA_FP, 2, WK_FP_SAVED, -2), NULL, WK_USER_FAULT);
}
END_TEST

START_TEST(zero_return_address_is_the_root)
{
	struct wk_regs r = leaf_at(10, 20);

	fake_reset();
	stack[10] = 0;
	ck_stop(&r, row_of(WK_CFA_SP, 1, WK_FP_SAME, 0), NULL, WK_USER_ROOT);
}
END_TEST

START_TEST(side_register)
{
	struct wk_side side = { .cfa_kind = WK_SIDE_REG,
				.cfa_reg = 11,
				.cfa_off = 16,
				.fp_where = WK_AT_CFA,
				.fp_off = -24,
				.ra_where = WK_AT_CFA,
				.ra_off = -8 };
	struct wk_row row = { .cfa = WK_CFA_SIDE };
	struct wk_regs r = leaf_at(10, 99);

	fake_reset();
	r.general[11] = at(30);
	ck_assert_int_eq(wk_step(&r, row, &side), 0);
	ck_caller(&r, content(31), at(32), content(29));
	/* The caller's r11 isn't known. */
	ck_stop(&r, row, &side, WK_USER_BAD_RULE);
	side.cfa_reg = 16;
	r = leaf_at(10, 99);
	ck_stop(&r, row, &side, WK_USER_BAD_RULE);
}
END_TEST

START_TEST(side_deref_and_index)
{
	struct wk_side side = { .cfa_kind = WK_SIDE_DEREF,
				.cfa_reg = 7,
				.cfa_off = 40,
				.cfa_add = 8,
				.fp_where = WK_SAME,
				.ra_where = WK_AT_CFA,
				.ra_off = -8 };
	struct wk_row row = { .cfa = WK_CFA_SIDE };
	struct wk_regs r = leaf_at(10, 99);

	fake_reset();
	stack[15] = at(50);
	ck_assert_int_eq(wk_step(&r, row, &side), 0);
	ck_caller(&r, content(50), at(51), at(99));

	side = (struct wk_side){ .cfa_kind = WK_SIDE_INDEX,
				 .cfa_reg = 7,
				 .cfa_reg2 = 9,
				 .cfa_off = -8,
				 .cfa_add = 8,
				 .fp_where = WK_UNDEFINED,
				 .ra_where = WK_AT_CFA,
				 .ra_off = -8 };
	r = leaf_at(10, 99);
	r.general[9] = 6;
	ck_assert_int_eq(wk_step(&r, row, &side), 0);
	ck_caller(&r, content(50), at(51), WK_FP_LOST);

	r = leaf_at(10, 99);
	r.general[9] = 1000000;
	ck_stop(&r, row, &side, WK_USER_FAULT);
	r.leaf = 0;
	ck_stop(&r, row, &side, WK_USER_BAD_RULE);
	r = leaf_at(10, 99);
	r.general[9] = 6;
	stack[15] = at(5); /* a CFA below sp, straight from memory */
	ck_stop(&r, row, &side, WK_USER_BAD_FRAME);
}
END_TEST

/* A realigned stack: the CFA is kept at fp - 8, the old frame pointer lies at fp. */
START_TEST(side_realigned)
{
	struct wk_side side = { .cfa_kind = WK_SIDE_DEREF,
				.cfa_reg = 6,
				.cfa_off = -8,
				.fp_where = WK_AT_REG,
				.fp_reg = 6,
				.fp_off = 0,
				.ra_where = WK_AT_CFA,
				.ra_off = -8 };
	struct wk_regs r = leaf_at(10, 40);

	fake_reset();
	r.leaf = r.exact = 0; /* needs no general register */
	stack[39] = at(60);
	ck_assert_int_eq(wk_step(&r, (struct wk_row){ .cfa = WK_CFA_SIDE }, &side), 0);
	ck_caller(&r, content(59), at(60), content(40));
}
END_TEST

/* vfork keeps the return address in a register while the child runs on the parent's stack. */
START_TEST(side_register_kept_by_a_leaf_without_frame)
{
	struct wk_side side = { .cfa_kind = WK_SIDE_REG, .cfa_reg = 0, .cfa_off = 8,
				.ra_where = WK_AT_CFA, .ra_off = -8, .fp_where = WK_SAME };
	struct wk_row row = { .cfa = WK_CFA_SIDE };
	struct wk_regs r = leaf_at(10, 99);

	/* as in libcrypto: CFA is rax + 8 in a function whose helpers have their own convention */
	fake_reset();
	r.general[0] = at(20);
	ck_assert_int_eq(wk_step(&r, row_of(WK_CFA_SP, 1, WK_FP_SAME, 0), NULL), 0);
	ck_assert_int_eq(wk_step(&r, row, &side), 0);
	ck_caller(&r, content(20), at(21), at(99));
	/* a second frame further up, it is anybody's */
	ck_stop(&r, row, &side, WK_USER_BAD_RULE);

	r = leaf_at(10, 99);
	r.general[0] = at(20);
	ck_assert_int_eq(wk_step(&r, row_of(WK_CFA_SP, 2, WK_FP_SAME, 0), NULL), 0);
	ck_stop(&r, row, &side, WK_USER_BAD_RULE);
}
END_TEST

START_TEST(side_return_address_in_register)
{
	struct wk_side side = { .cfa_kind = WK_SIDE_REG,
				.cfa_reg = 7,
				.fp_where = WK_SAME,
				.ra_where = WK_IN_REG,
				.ra_reg = 5 };
	struct wk_row row = { .cfa = WK_CFA_SIDE };
	struct wk_regs r = leaf_at(10, 99);

	fake_reset();
	r.general[5] = 0x402345;
	ck_assert_int_eq(wk_step(&r, row, &side), 0);
	ck_caller(&r, 0x402345, at(10), at(99));
	ck_stop(&r, row, &side, WK_USER_BAD_RULE);
}
END_TEST

START_TEST(signal_frame)
{
	struct wk_row row = row_of(WK_CFA_SIGNAL, 0, 0, 0);
	struct wk_regs r = leaf_at(10, 99);
	/* ucontext at sp; 5 words on, r8 .. r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip */
	static const uint8_t order[] = { 8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2 };

	fake_reset();
	r.leaf = r.exact = 0;
	ck_assert_int_eq(wk_step(&r, row, NULL), 0);
	ck_assert_uint_eq(r.pc, content(31));
	ck_assert_uint_eq(r.sp, content(30)); /* may be anywhere: alternate stacks */
	ck_assert_uint_eq(r.fp, content(25));
	ck_assert_uint_eq(r.exact, 1);
	ck_assert_uint_eq(r.leaf, 1);
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		if (order[i] != 6)
			ck_assert_uint_eq(r.general[order[i]], content(15 + i));

	r = leaf_at(STACK_WORDS - 21, 99);
	ck_stop(&r, row, NULL, WK_USER_FAULT);
}
END_TEST

/* A signal frame of somebody's own making: its pc was interrupted, not called from. */
START_TEST(side_exact)
{
	struct wk_side side = { .cfa_kind = WK_SIDE_REG,
				.cfa_reg = 7,
				.cfa_off = 32,
				.exact = 1,
				.fp_where = WK_SAME,
				.ra_where = WK_AT_CFA,
				.ra_off = -8 };
	struct wk_regs r = leaf_at(10, 99);

	fake_reset();
	ck_assert_int_eq(wk_step(&r, (struct wk_row){ .cfa = WK_CFA_SIDE }, &side), 0);
	ck_assert_uint_eq(r.pc, content(13));
	ck_assert_uint_eq(r.exact, 1);
	ck_assert_uint_eq(r.leaf, 0);
}
END_TEST

START_TEST(frame_pointers)
{
	struct wk_regs r = leaf_at(10, 20);

	fake_reset();
	stack[20] = at(30);
	stack[30] = 0;
	ck_assert_int_eq(wk_fp_step(&r, 0), 0);
	ck_caller(&r, content(21), at(22), at(30));
	ck_assert_int_eq(wk_fp_step(&r, 0), 0);
	ck_caller(&r, content(31), at(32), 0);
	ck_assert_int_eq(wk_fp_step(&r, 0), WK_USER_ROOT);
	ck_caller(&r, content(31), at(32), 0);
}
END_TEST

START_TEST(broken_frame_pointers)
{
	struct wk_regs r = leaf_at(10, 20);

	fake_reset();
	r.fp = at(20) + 4;
	ck_assert_int_eq(wk_fp_step(&r, 0), WK_USER_BAD_FRAME);
	r.fp = at(9);
	ck_assert_int_eq(wk_fp_step(&r, 0), WK_USER_BAD_FRAME);
	r.fp = at(STACK_WORDS);
	ck_assert_int_eq(wk_fp_step(&r, 0), WK_USER_FAULT);
	r.fp = UINT64_MAX - 7;
	ck_assert_int_eq(wk_fp_step(&r, 0), WK_USER_BAD_FRAME);
	ck_assert_uint_eq(r.sp, at(10));
}
END_TEST

/* Zero is the end of a chain; where no chain led it may be anything. */
START_TEST(zero_frame_pointer)
{
	const struct wk_row chain = { .cfa = WK_CFA_CHAIN };
	struct wk_regs r = leaf_at(10, 20);

	fake_reset();
	r.fp = 0;
	ck_assert_int_eq(wk_fp_step(&r, 0), WK_USER_NO_INFO);
	ck_stop(&r, chain, NULL, WK_USER_ROOT);
	stack[20] = 0;
	r = leaf_at(10, 20);
	ck_assert_int_eq(wk_step(&r, row_of(WK_CFA_FP, 2, WK_FP_SAVED, -2), NULL), 0);
	ck_assert_uint_eq(r.fp, 0);
	ck_assert_int_eq(wk_fp_step(&r, 0), WK_USER_NO_INFO);
	/* nor is a return address of zero in the first record */
	r = leaf_at(10, 20);
	stack[21] = 0;
	ck_stop(&r, chain, NULL, WK_USER_ROOT);
	ck_assert_int_eq(wk_fp_step(&r, 0), WK_USER_BAD_FRAME);
	ck_stop(&r, chain, NULL, WK_USER_BAD_FRAME);	/* what the guess led to is none either */
}
END_TEST

/* Go's functions that move between stacks. */
START_TEST(chain_and_leaf_rows)
{
	struct wk_row leaf = { .cfa = WK_CFA_LEAF, .fp_ra = WK_BX_LOST << 4 };
	struct wk_regs r = leaf_at(10, 20);

	fake_reset();
	ck_assert_int_eq(wk_step(&r, leaf, NULL), 0);
	ck_caller(&r, content(10), at(11), at(20));
	ck_stop(&r, leaf, NULL, WK_USER_NO_INFO);
	leaf.cfa_off = WK_CALLER_ROOT;
	ck_stop(&r, leaf, NULL, WK_USER_ROOT);
	leaf.cfa_off = WK_CALLER_CHAIN;
	ck_assert_int_eq(wk_step(&r, leaf, NULL), 0);
	ck_caller(&r, content(21), at(22), content(20));
	ck_assert_uint_eq(r.bx_at, WK_BX_UNKNOWN);
}
END_TEST

/* rbx is followed through the frames that save it, and read when a rule needs it. */
START_TEST(rbx)
{
	const struct wk_side by_bx = { .cfa_kind = WK_SIDE_REG, .cfa_reg = 3, .cfa_off = 16,
				       .fp_where = WK_SAME, .ra_where = WK_AT_CFA, .ra_off = -8 };
	const struct wk_row side = { .cfa = WK_CFA_SIDE, .fp_ra = 1 << 4 };
	struct wk_row saved = row_of(WK_CFA_SP, 4, WK_FP_SAME, 0);
	struct wk_regs r = leaf_at(10, 20);

	fake_reset();
	r.general[3] = at(40);
	ck_assert_int_eq(wk_step(&r, row_of(WK_CFA_SP, 2, WK_FP_SAME, 0), NULL), 0);
	ck_assert_uint_eq(r.bx_at, 0);		/* still in the register */
	saved.fp_ra |= 2 << 4;
	ck_assert_int_eq(wk_step(&r, saved, NULL), 0);
	ck_assert_uint_eq(r.bx_at, at(12 + 4 - 3));
	reads = 0;
	ck_assert_int_eq(wk_step(&r, row_of(WK_CFA_SP, 2, WK_FP_SAME, 0), NULL), 0);
	ck_assert_uint_eq(reads, 1);
	stack[13] = at(50);
	ck_assert_int_eq(wk_step(&r, side, &by_bx), 0);
	ck_caller(&r, content(51), at(52), at(20));
	ck_assert_uint_eq(r.bx_at, at(50));	/* saved beside the return address */
	stack[50] = at(60);
	saved.fp_ra = WK_BX_LOST << 4;
	ck_assert_int_eq(wk_step(&r, saved, NULL), 0);
	ck_stop(&r, side, &by_bx, WK_USER_BAD_RULE);
	r.bx_at = at(STACK_WORDS);
	ck_stop(&r, side, &by_bx, WK_USER_BAD_RULE);
}
END_TEST

START_TEST(clone_has_two_ends)
{
	const struct wk_row row = { .cfa = WK_CFA_CLONE };
	struct wk_regs r = leaf_at(10, 20);

	fake_reset();
	r.general[0] = (uint64_t)-ENOSYS;	/* the parent, still in the kernel */
	ck_assert_int_eq(wk_step(&r, row, NULL), 0);
	ck_caller(&r, content(10), at(11), at(20));
	r = leaf_at(10, 20);
	r.general[0] = 0;
	ck_stop(&r, row, NULL, WK_USER_ROOT);
}
END_TEST

START_TEST(exception_lands)
{
	const struct wk_row row = { .cfa = WK_CFA_LANDS, .cfa_off = 6, .fp_off = -2,
				    .fp_ra = WK_FP_SAVED | WK_BX_LOST << 4 };
	struct wk_regs r = leaf_at(10, 20);

	fake_reset();
	ck_assert_int_eq(wk_step(&r, row, NULL), 0);	/* the leaf: by its frame pointer */
	ck_caller(&r, content(21), at(22), content(20));
	r = leaf_at(10, 200);				/* a caller: its frame has a size */
	r.leaf = r.exact = 0;
	ck_assert_int_eq(wk_step(&r, row, NULL), 0);
	ck_caller(&r, content(15), at(16), content(14));
	/* all that it has saved is the handler's: its frame lies above the same return address */
	for (size_t where = 16; where < 16 + WK_LAND_READS * WK_LAND_WORDS; where += 37) {
		fake_reset();
		if (where >= STACK_WORDS - WK_LAND_WORDS)
			break;
		r = leaf_at(10, 200);
		r.leaf = r.exact = 0;
		stack[14] = at(33);
		stack[15] = content(where);
		ck_assert_int_eq(wk_step(&r, row, NULL), 0);
		ck_caller(&r, content(where), at(where + 1), at(33));
	}
}
END_TEST

/* A trampoline that keeps no frame pointer: what stands at the return address tells. */
START_TEST(epilogue_by_its_code)
{
	static const uint8_t end[] = { 0x48, 0x83, 0xc4, 0x18, 0xc3 };	/* add $24, %rsp; ret */
	const struct wk_row none = { 0 };
	struct wk_regs r = leaf_at(10, 20);

	fake_reset();
	memcpy(text + 0x100, end, sizeof(end));
	r.pc = CODE + 0x100;
	r.exact = r.leaf = 0;
	ck_assert_int_eq(wk_find_caller(&r, 0, none, NULL), 0);
	ck_caller(&r, content(13), at(14), at(20));
	ck_assert_uint_eq(r.guessed, 0);

	r = leaf_at(10, 20);		/* at which execution stands: no call has returned there */
	r.pc = CODE + 0x100;
	ck_assert_int_eq(wk_find_caller(&r, 0, none, NULL), 0);
	ck_caller(&r, content(21), at(22), content(20));

	text[0x103] = 0x80;		/* sub $-128 in disguise */
	r = leaf_at(10, 20);
	r.pc = CODE + 0x100;
	r.exact = r.leaf = 0;
	ck_assert_int_eq(wk_find_caller(&r, 0, none, NULL), 0);
	ck_caller(&r, content(21), at(22), content(20));

	text[0x103] = 0x11;		/* no stack is like that */
	r = leaf_at(10, 20);
	r.pc = CODE + 0x100;
	r.exact = r.leaf = 0;
	ck_assert_int_eq(wk_find_caller(&r, 0, none, NULL), 0);
	ck_caller(&r, content(21), at(22), content(20));
}
END_TEST

/* Without a row: the return address on top of the stack, if this function was called from there. */
START_TEST(leaf_by_its_code)
{
	static const uint8_t call[] = { 0xe8, 0xfb, 0, 0, 0 };		/* CODE + 0x100 -> + 0x200 */
	static const uint8_t pushed[] = { 0x55, 0x48, 0x89, 0xe5 };	/* push %rbp; mov %rsp, %rbp */
	const struct wk_row none = { 0 };
	struct wk_regs r = leaf_at(10, 20);

	fake_reset();
	memcpy(text + 0x100, call, sizeof(call));
	stack[10] = CODE + 0x105;
	r.pc = CODE + 0x204;
	ck_assert_int_eq(wk_find_caller(&r, 0, none, NULL), 0);
	ck_caller(&r, CODE + 0x105, at(11), at(20));
	ck_assert_uint_eq(r.bx_at, WK_BX_UNKNOWN);

	r = leaf_at(10, 20);		/* a row comes first; one that says nothing doesn't count */
	r.pc = CODE + 0x204;
	ck_assert_int_eq(wk_find_caller(&r, 1, row_of(WK_CFA_SP, 2, WK_FP_SAME, 0), NULL), 0);
	ck_caller(&r, content(11), at(12), at(20));
	r = leaf_at(10, 20);
	r.pc = CODE + 0x204;
	ck_assert_int_eq(wk_find_caller(&r, 1, none, NULL), 0);
	ck_caller(&r, CODE + 0x105, at(11), at(20));

	r = leaf_at(10, 20);		/* that call went elsewhere */
	r.pc = CODE + 0x180;
	ck_assert_int_eq(wk_find_caller(&r, 0, none, NULL), 0);
	ck_caller(&r, content(21), at(22), content(20));

	r = leaf_at(9, 20);		/* in the prologue */
	memcpy(text + 0x300, pushed, sizeof(pushed));
	r.pc = CODE + 0x301;
	ck_assert_int_eq(wk_find_caller(&r, 0, none, NULL), 0);
	ck_caller(&r, CODE + 0x105, at(11), at(20));
}
END_TEST

/* A coroutine's frame leads by its frame pointer to the stack that it was entered from. */
START_TEST(another_stack)
{
	struct wk_row frame = row_of(WK_CFA_FP, 2, WK_FP_SAVED, -2);
	struct wk_row down = row_of(WK_CFA_SP, -(WK_OTHER_STACK / 8), WK_FP_SAME, 0);
	struct wk_regs r = leaf_at(10, 20);

	fake_reset();
	r.sp = at(22) + WK_OTHER_STACK;
	ck_assert_int_eq(wk_step(&r, frame, NULL), 0);
	ck_caller(&r, content(21), at(22), content(20));
	r = leaf_at(10, 20);
	r.sp = at(22) + WK_OTHER_STACK;
	ck_assert_int_eq(wk_fp_step(&r, 0), 0);
	ck_caller(&r, content(21), at(22), content(20));
	/* nearer than that, or not by a frame pointer, it is a mistake */
	r = leaf_at(10, 20);
	r.sp = at(22) + WK_OTHER_STACK;
	ck_stop(&r, down, NULL, WK_USER_BAD_FRAME);
	r.sp -= 8;
	ck_stop(&r, frame, NULL, WK_USER_BAD_FRAME);
	ck_assert_int_eq(wk_fp_step(&r, 0), WK_USER_BAD_FRAME);
}
END_TEST

/* Whatever the rows say, sp only moves up, so a walk without signal frames ends. */
START_TEST(hostile_rows_end)
{
	struct wk_regs r = leaf_at(10, 20);
	uint64_t x = 88172645463325252u;
	unsigned int steps = 0;

	fake_reset();
	for (size_t i = 0; i < STACK_WORDS; i++)
		stack[i] = at(i * 7 % STACK_WORDS);
	for (unsigned int i = 0; i < 100000; i++) {
		struct wk_side side;
		struct wk_row row;
		uint64_t sp = r.sp;

		for (size_t n = 0; n < sizeof(side) / 8; n++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			memcpy((char *)&side + 8 * n, &x, 8);
		}
		memcpy(&row, &x, sizeof(row));
		row.cfa %= WK_CFA_CLONE + 1;
		row.cfa_off %= 32;
		side.cfa_reg %= 18;
		side.cfa_off %= 128;
		if (row.cfa == WK_CFA_SIGNAL || row.cfa == WK_CFA_CHAIN)
			continue;	/* these may lead to another stack */
		if (!wk_step(&r, row, &side)) {
			steps++;
			ck_assert_uint_ge(r.sp, sp);
		}
	}
	ck_assert_uint_gt(steps, 3);
	ck_assert_uint_le(steps, STACK_WORDS + 1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("step");
	TCase *rows = tcase_create("rows"), *sides = tcase_create("side rules"),
	      *fp = tcase_create("frame pointers");
	SRunner *runner;
	int failed;

	tcase_add_test(rows, by_sp);
	tcase_add_test(rows, leaf_rule);
	tcase_add_test(rows, by_fp_with_the_pair_in_one_read);
	tcase_add_test(rows, fp_saved_apart);
	tcase_add_test(rows, lost_fp_is_never_used);
	tcase_add_test(rows, plt_entry);
	tcase_add_test(rows, stops);
	tcase_add_test(rows, zero_return_address_is_the_root);
	tcase_add_test(rows, signal_frame);
	tcase_add_test(rows, hostile_rows_end);
	tcase_add_test(sides, side_register);
	tcase_add_test(sides, side_deref_and_index);
	tcase_add_test(sides, side_realigned);
	tcase_add_test(sides, side_register_kept_by_a_leaf_without_frame);
	tcase_add_test(sides, side_return_address_in_register);
	tcase_add_test(sides, side_exact);
	tcase_add_test(fp, frame_pointers);
	tcase_add_test(fp, broken_frame_pointers);
	tcase_add_test(fp, another_stack);
	tcase_add_test(fp, zero_frame_pointer);
	tcase_add_test(fp, leaf_by_its_code);
	tcase_add_test(fp, epilogue_by_its_code);
	tcase_add_test(rows, chain_and_leaf_rows);
	tcase_add_test(rows, rbx);
	tcase_add_test(rows, exception_lands);
	tcase_add_test(rows, clone_has_two_ends);
	suite_add_tcase(s, rows);
	suite_add_tcase(s, sides);
	suite_add_tcase(s, fp);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
