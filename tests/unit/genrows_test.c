/* Tests of unwind/genrows.h over assembly that lies in this program as data, as runtimes write it. */
#include <check.h>

#include "unwind/genrows.h"

#define CODE(name, text)                                                                           \
	extern const uint8_t name[], name##_end[];                                                 \
	__asm__(".pushsection .rodata\n.globl " #name ", " #name "_end\n" #name ":\n" text          \
		"\n" #name "_end:\n.byte 0\n.popsection\n")
#define L(label) ".globl " #label "\n" #label ":\n"
#define AT(label)                                                                                  \
	({                                                                                         \
		extern const uint8_t label[];                                                      \
		label;                                                                             \
	})

struct found {
	uint32_t offsets[64];
	struct wk_row rows[64];
	size_t n;
};
static struct genrows g;
static struct found found;

static int each(void *arg, uint32_t offset, const struct wk_row *row)
{
	struct found *f = arg;

	ck_assert_uint_lt(f->n, ARRAY_SIZE(f->rows));
	f->offsets[f->n] = offset;
	f->rows[f->n++] = *row;
	return 0;
}

static int trace(const uint8_t *start, const uint8_t *end)
{
	int r = genrows_trace(&g, start, (size_t)(end - start));

	found.n = 0;
	if (!r)
		ck_assert_int_eq(genrows_each(&g, each, &found), 0);
	return r;
}

static struct wk_row row_at(const uint8_t *start, const uint8_t *at)
{
	struct wk_row row = { 0 };

	for (size_t i = 0; i < found.n && found.offsets[i] <= (size_t)(at - start); i++)
		row = found.rows[i];
	return row;
}

/* cfa_off and fp_off in words; fp_off 0: rbp is the caller's */
static void expect(const uint8_t *start, const uint8_t *at, int cfa, int cfa_off, int fp_off)
{
	struct wk_row row = row_at(start, at);

	ck_assert_int_eq(row.cfa, cfa);
	ck_assert_int_eq(row.cfa_off, cfa_off);
	ck_assert_int_eq(WK_ROW_FP(row), fp_off ? WK_FP_SAVED : WK_FP_SAME);
	ck_assert_int_eq(row.fp_off, fp_off);
}

/* .NET 10, optimized, a function that calls another. */
CODE(small, "push %rax\n" L(small_call) "call *0x1000(%rip)\ninc %rax\nadd $8, %rsp\n" L(small_ret) "ret");

START_TEST(without_frame_pointer)
{
	ck_assert_int_eq(trace(small, small_end), 0);
	ck_assert(g.frameless);
	expect(small, small, WK_CFA_SP, 1, 0);
	expect(small, AT(small_call), WK_CFA_SP, 2, 0);
	expect(small, AT(small_ret), WK_CFA_SP, 1, 0);
}
END_TEST

CODE(framed, "push %rbp\nmov %rsp, %rbp\n" L(framed_body) "sub $32, %rsp\ntest %edi, %edi\nje 1f\n"
	     "call *%rax\nadd $32, %rsp\npop %rbp\nret\n1: add $32, %rsp\npop %rbp\n" L(framed_ret) "ret");

START_TEST(with_frame_pointer)
{
	ck_assert_int_eq(trace(framed, framed_end), 0);
	ck_assert(!g.frameless);
	expect(framed, AT(framed_body), WK_CFA_FP, 2, -2);
	expect(framed, AT(framed_ret), WK_CFA_SP, 1, 0);
}
END_TEST

/* HotSpot's C2: rbp is saved and used for something else. */
CODE(c2, "mov %eax, -0x14000(%rsp)\npush %rbp\nsub $0x20, %rsp\nmov %rsi, %rbp\n" L(c2_call)
	 "call .+0x4000\nnop\nadd $0x20, %rsp\npop %rbp\ncmp 0x378(%r15), %rsp\nja 1f\nret\n1: movabs $7, %r10\nmov %r10, 0x390(%r15)\n"
	 "jmp .+0x5000");

/* Mono: a loop that calls nobody but keeps registers; its padding seems to change rbp. */
CODE(leaf, "sub $8, %rsp\nmov %r15, (%rsp)\n.byte 0x48, 0x8d, 0x6d, 0\n1: dec %edi\njne 1b\n" L(leaf_body)
	   "mov (%rsp), %r15\nadd $8, %rsp\nret");

START_TEST(leaf_without_frame_pointer)
{
	ck_assert_int_eq(trace(leaf, leaf_end), 0);
	ck_assert(g.frameless);
	expect(leaf, AT(leaf_body), WK_CFA_SP, 2, 0);
}
END_TEST

START_TEST(frame_pointer_used_otherwise)
{
	ck_assert_int_eq(trace(c2, c2_end), 0);
	ck_assert(g.frameless);
	expect(c2, AT(c2_call), WK_CFA_SP, 6, -2);
}
END_TEST

/* .NET's on-stack replacement: it begins in another version's frame of 0x58 bytes below rbp, and leaves both. */
CODE(osr, "mov (%rbp), %rax\npush %rax\nmov %rsp, %rbp\n" L(osr_body) "mov 0x34(%rbp), %eax\ncall *%rax\n"
	  "add $0x60, %rsp\npop %rbp\n" L(osr_ret) "ret");

START_TEST(takes_a_frame_over)
{
	ck_assert_int_eq(trace(osr, osr_end), 0);
	ck_assert(!g.frameless);
	expect(osr, AT(osr_body), WK_CFA_FP, 14, -2);
	expect(osr, AT(osr_ret), WK_CFA_SP, 1, 0);
}
END_TEST

/* HotSpot: the loop of main, compiled while it runs. */
CODE(endless, "push %rbp\nsub $0x20, %rsp\n1: mov %r13, %rbp\n" L(endless_call) "call *%r10\njmp 1b\nhlt");

START_TEST(endless_loop)
{
	ck_assert_int_eq(trace(endless, endless_end), 0);
	expect(endless, AT(endless_call), WK_CFA_SP, 6, -2);
}
END_TEST

/* PHP: runs in the interpreter's frame and never returns. */
CODE(php, "mov (%r14), %rax\ncall *%rax\njmp *(%r15)");
CODE(two_depths, "test %edi, %edi\nje 1f\npush %rbx\nret\n1: ret");
CODE(cut, "push %rbp\nmov %rsp, %rbp\nnop");

START_TEST(refused)
{
	ck_assert_int_eq(trace(php, php_end), -ENOENT);
	ck_assert_int_eq(trace(two_depths, two_depths_end), -ENOENT);
	ck_assert_int_eq(trace(cut, cut_end), -ENOENT);
	ck_assert_int_eq(trace(cut, cut), -E2BIG);
}
END_TEST

/* Behind the jump its state goes on; a handler has its own. */
CODE(table, "sub $24, %rsp\njmp *%rax\n" L(table_case) "call *%rdx\nadd $24, %rsp\nret");
CODE(handler, "push %rbp\nmov %rsp, %rbp\ncall *%rax\npop %rbp\nret\nint3\n" L(handler_start)
	      "sub $8, %rsp\n" L(handler_call) "call *%rax\nadd $8, %rsp\nret\nint3\n" L(handler_bad) "push %rax\nret");

START_TEST(what_nothing_leads_to)
{
	ck_assert_int_eq(trace(table, table_end), -ENOENT);	/* nothing says that this is so */
	ck_assert_int_eq(trace(handler, handler_end), 0);
	expect(handler, AT(handler_start), WK_CFA_SP, 1, 0);
	expect(handler, AT(handler_call), WK_CFA_SP, 2, 0);
	ck_assert_int_eq(row_at(handler, AT(handler_bad)).cfa, WK_CFA_NONE);
}
END_TEST

CODE(cases, "sub $24, %rsp\ncmp $3, %edi\nja 1f\njmp *%rax\n1: add $24, %rsp\nret\n" L(cases_one)
	    "call *%rdx\nadd $24, %rsp\nret");

START_TEST(jump_by_table)
{
	ck_assert_int_eq(trace(cases, cases_end), 0);
	expect(cases, AT(cases_one), WK_CFA_SP, 4, 0);
}
END_TEST

/* A call that doesn't come back, and what lies behind it is another block. */
CODE(noreturn, "push %rbx\ntest %edi, %edi\njne 1f\npop %rbx\ntest %esi, %esi\nje 2f\nret\n1: call .+0x100\n2: ret");

START_TEST(call_without_return)
{
	ck_assert_int_eq(trace(noreturn, noreturn_end), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("genrows");
	TCase *t = tcase_create("genrows");
	SRunner *sr;
	int failed;

	tcase_add_test(t, without_frame_pointer);
	tcase_add_test(t, with_frame_pointer);
	tcase_add_test(t, leaf_without_frame_pointer);
	tcase_add_test(t, frame_pointer_used_otherwise);
	tcase_add_test(t, takes_a_frame_over);
	tcase_add_test(t, endless_loop);
	tcase_add_test(t, refused);
	tcase_add_test(t, what_nothing_leads_to);
	tcase_add_test(t, jump_by_table);
	tcase_add_test(t, call_without_return);
	suite_add_tcase(s, t);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	genrows_free(&g);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
