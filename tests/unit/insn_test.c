/* Tests of unwind/insn.h: bytes against what they mean. */
#include <check.h>

#include "unwind/insn.h"

struct sample {
	const char *text;
	uint8_t bytes[INSN_SIZE_MAX + 1];
	struct insn expected;
};

static const struct sample samples[] = {
	{ "push %rax", { 0x50 }, { .size = 1, .stack = INSN_ADD_SP, .n = -8 } },
	{ "push $1", { 0x6a, 1 }, { .size = 2, .stack = INSN_ADD_SP, .n = -8 } },
	{ "push %r12", { 0x41, 0x54 }, { .size = 2, .stack = INSN_ADD_SP, .n = -8 } },
	{ "push (%rax)", { 0xff, 0x30 }, { .size = 2, .stack = INSN_ADD_SP, .n = -8 } },
	{ "pushw %ax", { 0x66, 0x50 }, { .size = 2, .stack = INSN_ADD_SP, .n = -2 } },
	{ "pushf", { 0x9c }, { .size = 1, .stack = INSN_ADD_SP, .n = -8 } },
	{ "pop %rbx", { 0x5b }, { .size = 1, .stack = INSN_ADD_SP, .n = 8 } },
	{ "pop %rsp", { 0x5c }, { .size = 1, .stack = INSN_LOSE_SP } },
	{ "push %rbp", { 0x55 }, { .size = 1, .stack = INSN_PUSH_FP } },
	{ "pop %rbp", { 0x5d }, { .size = 1, .stack = INSN_POP_FP } },
	{ "mov %rsp,%rbp", { 0x48, 0x89, 0xe5 }, { .size = 3, .stack = INSN_SET_FP } },
	{ "mov %rsp,%rbp", { 0x48, 0x8b, 0xec }, { .size = 3, .stack = INSN_SET_FP } },
	{ "lea 64(%rsp),%rbp", { 0x48, 0x8d, 0x6c, 0x24, 64 }, { .size = 5, .stack = INSN_SET_FP, .n = 64 } },
	{ "mov %rbp,%rsp", { 0x48, 0x89, 0xec }, { .size = 3, .stack = INSN_SET_SP } },
	{ "lea -40(%rbp),%rsp", { 0x48, 0x8d, 0x65, 0xd8 }, { .size = 4, .stack = INSN_SET_SP, .n = -40 } },
	{ "lea -136(%rsp),%rsp", { 0x48, 0x8d, 0xa4, 0x24, 0x78, 0xff, 0xff, 0xff },
	  { .size = 8, .stack = INSN_ADD_SP, .n = -136 } },
	{ "lea (%rsp,%rax),%rsp", { 0x48, 0x8d, 0x24, 0x04 }, { .size = 4, .stack = INSN_LOSE_SP } },
	{ "lea 16(%rip),%rax", { 0x48, 0x8d, 0x05, 16, 0, 0, 0 },
	  { .size = 7, .has_ref = true, .target = 23 } },
	{ "sub $24,%rsp", { 0x48, 0x83, 0xec, 24 }, { .size = 4, .stack = INSN_ADD_SP, .n = -24 } },
	{ "add $4096,%rsp", { 0x48, 0x81, 0xc4, 0, 16, 0, 0 },
	  { .size = 7, .stack = INSN_ADD_SP, .n = 4096 } },
	{ "add $-128,%rsp", { 0x48, 0x83, 0xc4, 0x80 }, { .size = 4, .stack = INSN_ADD_SP, .n = -128 } },
	{ "sub %rax,%rsp", { 0x48, 0x29, 0xc4 }, { .size = 3, .stack = INSN_LOSE_SP } },
	{ "and $-64,%rsp", { 0x48, 0x83, 0xe4, 0xc0 }, { .size = 4, .stack = INSN_LOSE_SP } },
	{ "add $8,%esp", { 0x83, 0xc4, 8 }, { .size = 3, .stack = INSN_LOSE_SP } },
	{ "mov %rbp,8(%rsp)", { 0x48, 0x89, 0x6c, 0x24, 8 }, { .size = 5, .stack = INSN_STORE_FP, .n = 8 } },
	{ "mov 8(%rsp),%rbp", { 0x48, 0x8b, 0x6c, 0x24, 8 }, { .size = 5, .stack = INSN_LOAD_FP, .n = 8 } },
	{ "mov %fs:8(%rsp),%rbp", { 0x64, 0x48, 0x8b, 0x6c, 0x24, 8 }, { .size = 6, .stack = INSN_LOSE_FP } },
	{ "mov %rdi,%rbp", { 0x48, 0x89, 0xfd }, { .size = 3, .stack = INSN_LOSE_FP } },
	{ "mov %dil,%bpl", { 0x40, 0x88, 0xfd }, { .size = 3, .stack = INSN_LOSE_FP } },
	{ "xor %ebp,%ebp", { 0x31, 0xed }, { .size = 2, .stack = INSN_CLEAR_FP } },
	{ "xor %rbp,%rbp", { 0x48, 0x31, 0xed }, { .size = 3, .stack = INSN_CLEAR_FP } },
	{ "xor %eax,%ebp", { 0x31, 0xc5 }, { .size = 2, .stack = INSN_LOSE_FP } },
	{ "cmovne %rax,%rbp", { 0x48, 0x0f, 0x45, 0xe8 }, { .size = 4, .stack = INSN_LOSE_FP } },
	{ "xchg %rbp,%rsp", { 0x48, 0x87, 0xe5 }, { .size = 3, .stack = INSN_LOSE_BOTH } },
	{ "enter $16,$0", { 0xc8, 16, 0, 0 }, { .size = 4, .stack = INSN_LOSE_BOTH } },
	{ "leave", { 0xc9 }, { .size = 1, .stack = INSN_LEAVE } },
	{ "mov %rsp,%rax", { 0x48, 0x89, 0xe0 }, { .size = 3 } },
	{ "mov %rbp,(%rax)", { 0x48, 0x89, 0x28 }, { .size = 3 } },
	{ "add %rax,(%rsp)", { 0x48, 0x01, 0x04, 0x24 }, { .size = 4 } },
	{ "nop", { 0x90 }, { .size = 1, .nop = true } },
	{ "nopw 0(%rax,%rax)", { 0x66, 0x0f, 0x1f, 0x44, 0, 0 }, { .size = 6, .nop = true } },
	{ "syscall", { 0x0f, 0x05 }, { .size = 2 } },
	{ "call .+0x105", { 0xe8, 0, 1, 0, 0 },
	  { .size = 5, .flow = INSN_CALL, .has_target = true, .target = 0x105 } },
	{ "call *%rax", { 0xff, 0xd0 }, { .size = 2, .flow = INSN_CALL } },
	{ "jmp .-14", { 0xeb, 0xf0 }, { .size = 2, .flow = INSN_JUMP, .has_target = true, .target = -14 } },
	{ "jmp *8(%rip)", { 0xff, 0x25, 8, 0, 0, 0 }, { .size = 6, .flow = INSN_JUMP_INDIRECT } },
	{ "notrack jmp *%rax", { 0x3e, 0xff, 0xe0 }, { .size = 3, .flow = INSN_JUMP_INDIRECT } },
	{ "jne .+4", { 0x75, 2 }, { .size = 2, .flow = INSN_BRANCH, .has_target = true, .target = 4 } },
	{ "jrcxz .+4", { 0xe3, 2 }, { .size = 2, .flow = INSN_BRANCH, .has_target = true, .target = 4 } },
	{ "xbegin .+6", { 0xc7, 0xf8, 0, 0, 0, 0 },
	  { .size = 6, .flow = INSN_BRANCH, .has_target = true, .target = 6 } },
	{ "ret", { 0xc3 }, { .size = 1, .flow = INSN_RETURN } },
	{ "ret $16", { 0xc2, 16, 0 }, { .size = 3, .flow = INSN_RETURN } },
	{ "ud2", { 0x0f, 0x0b }, { .size = 2, .flow = INSN_STOP } },
	{ "int3", { 0xcc }, { .size = 1, .flow = INSN_STOP } },
	{ "hlt", { 0xf4 }, { .size = 1, .flow = INSN_STOP } },
	{ "iretq", { 0x48, 0xcf }, { .size = 2, .flow = INSN_STOP } },
};

START_TEST(test_sample)
{
	const struct sample *s = &samples[_i];
	struct insn i;

	ck_assert_msg(!insn_decode(s->bytes, sizeof(s->bytes), &i), "%s: not decoded", s->text);
	ck_assert_msg(i.size == s->expected.size, "%s: %u bytes", s->text, i.size);
	ck_assert_msg(i.flow == s->expected.flow, "%s: flow %u", s->text, i.flow);
	if (i.flow != INSN_CALL && i.flow != INSN_RETURN && i.flow != INSN_STOP)
		ck_assert_msg(i.stack == s->expected.stack, "%s: stack %u", s->text, i.stack);
	ck_assert_msg(i.n == s->expected.n, "%s: n %ld", s->text, (long)i.n);
	ck_assert_msg(i.nop == s->expected.nop, "%s: nop", s->text);
	ck_assert_msg(i.has_target == s->expected.has_target && i.has_ref == s->expected.has_ref &&
			      i.target == s->expected.target,
		      "%s: target %ld", s->text, (long)i.target);
}
END_TEST

/* A part of an instruction is none, however much of it is there. */
START_TEST(test_cut)
{
	const struct sample *s = &samples[_i];
	struct insn i;

	for (size_t n = 0; n < s->expected.size; n++) {
		uint8_t *exact = malloc(n + !n);	/* so that sanitizers see reads behind it */

		ck_assert_ptr_nonnull(exact);
		memcpy(exact, s->bytes, n);
		/* what remains may be another instruction, but never a longer one */
		if (!insn_decode(exact, n, &i))
			ck_assert_uint_le(i.size, n);
		free(exact);
	}
}
END_TEST

START_TEST(test_no_instruction)
{
	static const uint8_t push_es[] = { 0x06 };	/* gone in 64-bit mode */
	static const uint8_t prefixes[] = { 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66,
					    0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x90 };
	struct insn i;

	ck_assert_int_eq(insn_decode(push_es, sizeof(push_es), &i), -EBADMSG);
	ck_assert_int_eq(insn_decode(prefixes, sizeof(prefixes), &i), -EBADMSG);
	ck_assert_int_eq(insn_decode(push_es, 0, &i), -EBADMSG);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("insn");
	TCase *t = tcase_create("insn");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_loop_test(t, test_sample, 0, ARRAY_SIZE(samples));
	tcase_add_loop_test(t, test_cut, 0, ARRAY_SIZE(samples));
	tcase_add_test(t, test_no_instruction);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
