/* Tests of unwind/code.h over assembly that lies in this program as data; the names are labels. */
#include <check.h>

#include "unwind/code.h"

#define BASE UINT64_C(0x401000)

/* CODE(name, text): bytes name[] to name_end[]. Labels of interest are given by AT(label). */
#define CODE(name, text)                                                                           \
	extern const uint8_t name[], name##_end[];                                                 \
	__asm__(".pushsection .rodata\n.balign 16, 0x90\n.globl " #name ", " #name "_end\n" #name ":\n" text \
		"\n" #name "_end:\n.byte 0\n.popsection\n")
#define AT(label)                                                                                  \
	({                                                                                         \
		extern const uint8_t label[];                                                      \
		label;                                                                             \
	})
#define L(label) ".globl " #label "\n" #label ":\n"

struct trace {
	struct code *code;
	const uint8_t *bytes;
	uint64_t starts[256];
	struct wk_row rows[256];
	size_t n;
};

static void each_row(void *arg, uint64_t start, const struct wk_row *row)
{
	struct trace *t = arg;

	ck_assert_uint_lt(t->n, ARRAY_SIZE(t->rows));
	ck_assert_msg(!t->n || start > t->starts[t->n - 1], "rows don't ascend");
	t->starts[t->n] = start;
	t->rows[t->n++] = *row;
}

static void begin(struct trace *t, const uint8_t *bytes, const uint8_t *end)
{
	uint8_t *copy;

	memset(t, 0, sizeof(*t));
	t->bytes = bytes;
	ck_assert_int_eq(code_new(&t->code), 0);
	ck_assert_int_eq(code_add(t->code, BASE, end - bytes, &copy), 0);
	memcpy(copy, bytes, end - bytes);
}

static void function(struct trace *t, const uint8_t *at)
{
	ck_assert_int_eq(code_function(t->code, BASE + (at - t->bytes)), 0);
}

static void run(struct trace *t, bool stripped)
{
	uint64_t start, end;
	size_t n = 0;

	ck_assert_int_eq(code_trace(t->code, stripped), 0);
	if (code_next(t->code, &n, &start, &end))
		code_rows(t->code, 0, each_row, t);
}

/* A trace of code with one function, which starts with it. */
static void simple(struct trace *t, const uint8_t *bytes, const uint8_t *end)
{
	begin(t, bytes, end);
	function(t, bytes);
	run(t, false);
}

static struct wk_row row_at(const struct trace *t, const uint8_t *at)
{
	struct wk_row row = { .cfa = WK_CFA_NONE };

	for (size_t i = 0; i < t->n && t->starts[i] <= BASE + (uint64_t)(at - t->bytes); i++)
		row = t->rows[i];
	return row;
}

/* sp is in words; fp_off only counts if the frame pointer was saved. */
static void expect(const struct trace *t, const uint8_t *at, enum wk_cfa cfa, int off, enum wk_fp fp,
		   int fp_off)
{
	struct wk_row row = row_at(t, at);

	ck_assert_msg(row.cfa == cfa && row.cfa_off == off && WK_ROW_FP(row) == fp &&
			      row.fp_off == fp_off && !WK_ROW_RA(row),
		      "at +%#lx: cfa %d%+d, fp %d%+d", (long)(at - t->bytes), row.cfa, row.cfa_off,
		      WK_ROW_FP(row), row.fp_off);
}

static void expect_nothing(const struct trace *t, const uint8_t *at)
{
	expect(t, at, WK_CFA_NONE, 0, WK_FP_SAME, 0);
}

static void expect_sp(const struct trace *t, const uint8_t *at, int words)
{
	expect(t, at, WK_CFA_SP, words, WK_FP_SAME, 0);
}

CODE(frameless, "push %rbx\n" L(fl_1) "sub $24, %rsp\n" L(fl_2) "call *%rax\n" L(
			fl_3) "add $24, %rsp\n" L(fl_4) "pop %rbx\n" L(fl_5) "ret\n");

START_TEST(test_frameless)
{
	struct trace t;

	simple(&t, frameless, frameless_end);
	expect_sp(&t, frameless, 1);
	expect_sp(&t, AT(fl_1), 2);
	expect_sp(&t, AT(fl_2), 5);
	expect_sp(&t, AT(fl_3), 5);
	expect_sp(&t, AT(fl_4), 2);
	expect_sp(&t, AT(fl_5), 1);
	ck_assert_uint_eq(code_known_bytes(t.code), frameless_end - frameless);
	code_free(t.code);
}
END_TEST

/* While rbp is the frame pointer, nothing that happens to rsp matters. */
CODE(framed, "push %rbp\n" L(fr_1) "mov %rsp, %rbp\n" L(fr_2) "push %rbx\nand $-64, %rsp\nsub %rax, %rsp\n" L(
		     fr_3) "lea -8(%rbp), %rsp\npop %rbx\n" L(fr_4) "pop %rbp\n" L(fr_5) "ret\n");

START_TEST(test_frame_pointer)
{
	struct trace t;

	simple(&t, framed, framed_end);
	expect(&t, AT(fr_1), WK_CFA_SP, 2, WK_FP_SAVED, -2);
	expect(&t, AT(fr_2), WK_CFA_FP, 2, WK_FP_SAVED, -2);
	expect(&t, AT(fr_3), WK_CFA_FP, 2, WK_FP_SAVED, -2);
	expect(&t, AT(fr_4), WK_CFA_FP, 2, WK_FP_SAVED, -2);
	expect_sp(&t, AT(fr_5), 1);
	code_free(t.code);
}
END_TEST

CODE(left, "push %rbp\nmov %rsp, %rbp\nsub $32, %rsp\nleave\n" L(lv_1) "ret\n");
CODE(stored, "sub $24, %rsp\nmov %rbp, 16(%rsp)\n" L(st_1) "mov %rdi, %rbp\n" L(
		     st_2) "mov 16(%rsp), %rbp\n" L(st_3) "add $24, %rsp\n" L(st_4) "ret\n");
CODE(lost, "mov %rdi, %rbp\n" L(lo_1) "ret\n");
CODE(realigned, "push %rbx\nand $-32, %rsp\n" L(re_1) "call *%rax\n");

START_TEST(test_frame_pointer_value)
{
	struct trace t;

	simple(&t, left, left_end);
	expect_sp(&t, AT(lv_1), 1);
	code_free(t.code);

	simple(&t, stored, stored_end);
	expect(&t, AT(st_1), WK_CFA_SP, 4, WK_FP_SAVED, -2);
	expect(&t, AT(st_2), WK_CFA_SP, 4, WK_FP_SAVED, -2);
	expect(&t, AT(st_3), WK_CFA_SP, 4, WK_FP_SAVED, -2);
	expect_sp(&t, AT(st_4), 1);
	code_free(t.code);

	simple(&t, lost, lost_end);
	expect(&t, AT(lo_1), WK_CFA_SP, 1, WK_FP_UNDEFINED, 0);
	code_free(t.code);

	simple(&t, realigned, realigned_end);
	expect_nothing(&t, AT(re_1));
	code_free(t.code);
}
END_TEST

/* Paths that agree where they meet, and paths that don't. */
CODE(joined, "test %edi, %edi\nje 1f\npush %rax\ncall *%rbx\npop %rdx\n1:\n" L(jo_1) "nop\nret\n");
CODE(torn, "test %edi, %edi\nje 1f\npush %rax\n1:\n" L(to_1) "mov %rcx, %rdx\n" L(to_2) "jmp *%rax\n");

START_TEST(test_joins)
{
	struct trace t;

	simple(&t, joined, joined_end);
	expect_sp(&t, AT(jo_1), 1);
	code_free(t.code);

	simple(&t, torn, torn_end);
	expect_sp(&t, torn, 1);
	expect_nothing(&t, AT(to_1));
	expect_nothing(&t, AT(to_2));
	code_free(t.code);
}
END_TEST

/* What comes to a return with more on the stack wasn't understood. */
CODE(wrong, "push %rax\npush %rbx\nret\n");

START_TEST(test_taken_back)
{
	struct trace t;

	simple(&t, wrong, wrong_end);
	ck_assert_uint_eq(t.n, 0);
	ck_assert_uint_eq(code_known_bytes(t.code), 0);
	code_free(t.code);
}
END_TEST

/* die() doesn't return: first the next block has another state, by a jump; then the next function begins
 * behind padding, with a prologue, and without one. */
CODE(dying, "sub $24, %rsp\ntest %edi, %edi\nje 1f\npush %rax\ncall die\n1:\n" L(
		    dy_1) "add $24, %rsp\nret\ndie: ud2\n");
CODE(dying_last, "sub $24, %rsp\ncall 9f\nnop\n.balign 16, 0x90\n" L(dl_1) "push %r12\n" L(
			 dl_2) "pop %r12\nret\n9: ud2\n");
CODE(dying_last_leaf, "sub $24, %rsp\n" L(dll_0) "call 9f\nnop\n.balign 16, 0x90\n" L(
			      dll_1) "mov %rdi, %rax\nret\n9: ud2\n");

START_TEST(test_no_return)
{
	struct trace t;

	simple(&t, dying, dying_end);
	expect_sp(&t, AT(dy_1), 4);
	code_free(t.code);

	simple(&t, dying_last, dying_last_end);
	expect_sp(&t, AT(dl_1), 1);
	expect_sp(&t, AT(dl_2), 2);
	code_free(t.code);

	simple(&t, dying_last_leaf, dying_last_leaf_end);
	expect_sp(&t, AT(dll_0), 4);
	expect(&t, AT(dll_1), WK_CFA_SP, 4, WK_FP_SAME, 0);	/* as padding: nothing reached it */
	ck_assert_uint_lt(code_known_bytes(t.code), AT(dll_1) - dying_last_leaf + 3);
	code_free(t.code);
}
END_TEST

/* The blocks that only the table points to. */
CODE(table, "push %rbx\nsub $16, %rsp\nnotrack jmp *%rax\n" L(ta_1) "mov $1, %eax\n1: add $16, %rsp\npop %rbx\n"
	    "ret\n.balign 16, 0x90\n" L(ta_2) "mov $2, %eax\njmp 1b\n" L(ta_3) "mov $3, %eax\njmp 1b\n");

START_TEST(test_jump_table)
{
	struct trace t;

	simple(&t, table, table_end);
	expect_sp(&t, AT(ta_1), 4);
	expect_sp(&t, AT(ta_2), 4);
	expect_sp(&t, AT(ta_3), 4);
	ck_assert_uint_ge(code_known_bytes(t.code), table_end - table - 15);
	code_free(t.code);
}
END_TEST

/* A call in tail position through a register, and behind it what belongs to no function known. */
CODE(tail, "jmp *%rax\n" L(tl_1) "add $8, %rsp\nud2\n");

START_TEST(test_tail_call)
{
	struct trace t;

	simple(&t, tail, tail_end);
	ck_assert_uint_eq(code_known_bytes(t.code), 2);
	code_free(t.code);
}
END_TEST

CODE(start_code, "xor %ebp, %ebp\nand $-16, %rsp\n" L(sta_1) "call 1f\nhlt\n.balign 16, 0x90\n1:\n" L(
		    sta_2) "push %rbp\nmov %rsp, %rbp\n" L(sta_3) "call *%rdi\n");
CODE(clone_child, "mov 8(%rsp), %r10\nsyscall\ntest %eax, %eax\njnz 1f\nxor %ebp, %ebp\n" L(
			  cl_1) "pop %rdi\ncall *%r9\n" L(cl_2) "hlt\n1:\n" L(cl_3) "ret\n");
CODE(leaf_clears, "xor %ebp, %ebp\n" L(lc_1) "add %rax, %rbp\nmov %rbp, %rax\nret\n");

START_TEST(test_roots)
{
	struct trace t;

	begin(&t, start_code, start_code_end);
	ck_assert_int_eq(code_root(t.code, BASE), 0);
	run(&t, false);
	expect(&t, start_code, WK_CFA_ROOT, 0, WK_FP_SAME, 0);
	expect(&t, AT(sta_1), WK_CFA_ROOT, 0, WK_FP_SAME, 0);
	expect_sp(&t, AT(sta_2), 1);
	expect(&t, AT(sta_3), WK_CFA_FP, 2, WK_FP_SAVED, -2);
	code_free(t.code);

	simple(&t, clone_child, clone_child_end);
	expect(&t, AT(cl_1), WK_CFA_ROOT, 0, WK_FP_SAME, 0);
	expect(&t, AT(cl_2), WK_CFA_ROOT, 0, WK_FP_SAME, 0);
	expect_sp(&t, AT(cl_3), 1);
	code_free(t.code);

	simple(&t, leaf_clears, leaf_clears_end);
	expect(&t, AT(lc_1), WK_CFA_SP, 1, WK_FP_UNDEFINED, 0);
	code_free(t.code);
}
END_TEST

/* Functions that nothing but an address or a prologue shows. */
CODE(pointed, "lea 1f(%rip), %rdi\nret\n.balign 16, 0x90\n1:\n" L(po_1) "mov (%rdi), %rax\npush %rax\n" L(
		      po_2) "pop %rax\nret\n");
CODE(stripped, "ret\n.balign 16, 0xcc\n" L(sp_1) "endbr64\npush %r15\n" L(
		       sp_2) "pop %r15\nret\n.balign 16, 0x90\n" L(sp_3) "mov %rdi, %rax\nret\n");

START_TEST(test_found_functions)
{
	struct trace t;

	simple(&t, pointed, pointed_end);
	expect_sp(&t, AT(po_1), 1);
	expect_sp(&t, AT(po_2), 2);
	code_free(t.code);

	simple(&t, stripped, stripped_end);
	ck_assert_uint_eq(code_known_bytes(t.code), 1);
	code_free(t.code);

	begin(&t, stripped, stripped_end);
	function(&t, stripped);
	run(&t, true);
	expect_sp(&t, AT(sp_1), 1);
	expect_sp(&t, AT(sp_2), 2);
	expect_sp(&t, AT(sp_3), 1);	/* nothing known: padding of what stands before */
	ck_assert_uint_lt(code_known_bytes(t.code), AT(sp_3) - stripped);
	code_free(t.code);
}
END_TEST

/* Addresses of labels are in jump tables as well: they don't agree with what the function says, which
 * keeps its rules. */
CODE(labels, "push %rbx\ntest %edi, %edi\nje 1f\ncall *%rax\n1:\n" L(la_1) "pop %rbx\nret\n" L(
		     la_2) "mov %rax, %rbx\njmp 1b\n.balign 16, 0x90\n" L(la_3) "push %rax\n" L(
		     la_4) "pop %rax\nret\n");

START_TEST(test_references)
{
	struct trace t;

	begin(&t, labels, labels_end);
	function(&t, labels);
	ck_assert_int_eq(code_ref(t.code, BASE + (AT(la_2) - labels)), 0);
	ck_assert_int_eq(code_ref(t.code, BASE + (AT(la_3) - labels)), 0);
	ck_assert_int_eq(code_ref(t.code, BASE + (AT(la_4) - labels)), 0);
	ck_assert_int_eq(code_ref(t.code, BASE - 1), 0);
	ck_assert_uint_eq(code_bytes(t.code), labels_end - labels);
	run(&t, true);
	expect_sp(&t, AT(la_1), 2);
	expect_sp(&t, AT(la_3), 1);
	expect_sp(&t, AT(la_4), 2);
	/* la_2 isn't known: its bytes are fewer than padding's */
	ck_assert_uint_eq(code_known_bytes(t.code), AT(la_2) - labels + 3);
	code_free(t.code);
}
END_TEST

/* Calls and jumps go from piece to piece, not into what lies between. */
START_TEST(test_pieces)
{
	static const uint8_t first[] = { 0x50, 0xe8, 0xfa, 0xf, 0, 0, 0x58, 0xc3 }; /* call +0x1000 */
	static const uint8_t second[] = { 0x53, 0x5b, 0xeb, 0xfe };	/* push; pop; 1: jmp 1b */
	uint64_t start, end;
	struct trace t;
	uint8_t *copy;
	size_t n = 0;

	begin(&t, first, first + sizeof(first));
	ck_assert_int_eq(code_add(t.code, BASE + 4, 8, &copy), -EINVAL);
	ck_assert_int_eq(code_add(t.code, BASE + 0x800, 0, &copy), -EINVAL);
	ck_assert_int_eq(code_add(t.code, UINT64_MAX - 4, 8, &copy), -EINVAL);
	ck_assert_int_eq(code_add(t.code, BASE + 0x1000, CODE_BYTES_MAX, &copy), -E2BIG);
	ck_assert_int_eq(code_add(t.code, BASE + 0x800, 16, &copy), 0);
	ck_assert_int_eq(code_add(t.code, BASE + 0x1000, sizeof(second), &copy), 0);
	memcpy(copy, second, sizeof(second));
	ck_assert_int_eq(code_function(t.code, BASE), 0);
	ck_assert_int_eq(code_function(t.code, BASE - 1), 0);
	ck_assert_int_eq(code_function(t.code, BASE + 0x500), 0);
	ck_assert_int_eq(code_trace(t.code, false), 0);

	ck_assert(code_next(t.code, &n, &start, &end));
	ck_assert_uint_eq(n, 1);
	ck_assert_uint_eq(start, BASE);
	ck_assert_uint_eq(end, BASE + sizeof(first));
	ck_assert(code_next(t.code, &n, &start, &end));
	ck_assert_uint_eq(n, 3);
	ck_assert_uint_eq(start, BASE + 0x1000);
	ck_assert_uint_eq(end, BASE + 0x1000 + sizeof(second));
	ck_assert(!code_next(t.code, &n, &start, &end));
	code_rows(t.code, 2, each_row, &t);
	ck_assert_uint_eq(t.n, 3);
	ck_assert_uint_eq(t.starts[1], BASE + 0x1001);
	ck_assert_int_eq(t.rows[1].cfa_off, 2);
	code_free(t.code);
}
END_TEST

/* A stack that grows with each round: the work ends, and nothing is claimed of it. */
START_TEST(test_endless)
{
	static const uint8_t loop[] = { 0x50, 0x50, 0xeb, 0xfc };
	struct trace t;

	simple(&t, loop, loop + sizeof(loop));
	expect_nothing(&t, loop);
	expect_nothing(&t, loop + 2);
	code_free(t.code);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("code");
	TCase *t = tcase_create("code");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_test(t, test_frameless);
	tcase_add_test(t, test_frame_pointer);
	tcase_add_test(t, test_frame_pointer_value);
	tcase_add_test(t, test_joins);
	tcase_add_test(t, test_taken_back);
	tcase_add_test(t, test_no_return);
	tcase_add_test(t, test_jump_table);
	tcase_add_test(t, test_tail_call);
	tcase_add_test(t, test_roots);
	tcase_add_test(t, test_found_functions);
	tcase_add_test(t, test_references);
	tcase_add_test(t, test_pieces);
	tcase_add_test(t, test_endless);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
