/* runtime_rows_test.c - unwind rows of code that this very process has made and listed. */
#include <check.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "symbol/runtime_rows.h"

static char path[64];
static FILE *map;
static uint8_t *code;
static struct runtime *rt;
static struct runtime_rows *rr;

/* push %rax; call *%rdi; pop %rcx; ret */
static const uint8_t frameless[] = { 0x50, 0xff, 0xd7, 0x59, 0xc3 };
/* push %rbp; mov %rsp, %rbp; call *%rdi; pop %rbp; ret */
static const uint8_t framed[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3 };

static void list(const uint8_t *at, size_t n, const char *name)
{
	bool changed;

	fprintf(map, "%lx %zx %s\n", (unsigned long)(uintptr_t)at, n, name);
	fflush(map);
	runtime_look(rt);
	ck_assert_int_eq(runtime_update(rt, 1 << 20, UINT64_MAX, UINT64_MAX, &changed), 0);
}

static void setup(void)
{
	code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(code, MAP_FAILED);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	map = fopen(path, "w");
	ck_assert_ptr_nonnull(map);
	ck_assert_int_eq(runtime_new((uint32_t)getpid(), 0, false, &rt), 0);
	ck_assert_int_eq(runtime_rows_new(&rr), 0);
	memcpy(code + 0x10, framed, sizeof(framed));
	memcpy(code + 0x20, frameless, sizeof(frameless));
}

static void teardown(void)
{
	runtime_rows_free(rr);
	runtime_free(rt);
	fclose(map);
	unlink(path);
	munmap(code, 4096);
}

static uint64_t at(size_t n)
{
	return (uint64_t)(uintptr_t)code + n;
}

static struct wk_row row(const struct unwtab *t, uint64_t addr)
{
	struct wk_row r = { 0 };
	struct wk_side side;

	ck_assert_int_eq(unwtab_lookup(t, addr, &r, &side), 0);
	return r;
}

START_TEST(needed_where_frames_are_left_out)
{
	list(code + 0x10, sizeof(framed), "framed");
	list(code + 0x20, sizeof(frameless), "frameless");
	ck_assert_int_eq(runtime_rows_needed(rt, at(0x14)), 0);
	ck_assert_int_eq(runtime_rows_needed(rt, at(0x22)), 1);
	ck_assert_int_eq(runtime_rows_needed(rt, at(0x30)), 0);	/* nobody says what lies there */
}
END_TEST

START_TEST(rows_by_address)
{
	struct unwtab *t;

	list(code + 0x10, sizeof(framed), "framed");
	list(code + 0x20, sizeof(frameless), "frameless");
	ck_assert_int_eq(runtime_rows_update(rr, rt, UINT64_MAX, UINT64_MAX, &t), 0);
	ck_assert_ptr_nonnull(t);
	ck_assert_int_eq(row(t, at(0x14)).cfa, WK_CFA_FP);
	ck_assert_int_eq(row(t, at(0x20)).cfa, WK_CFA_SP);
	ck_assert_int_eq(row(t, at(0x20)).cfa_off, 1);
	ck_assert_int_eq(row(t, at(0x21)).cfa_off, 2);
	ck_assert_int_eq(row(t, at(0x24)).cfa_off, 1);
	ck_assert_int_eq(row(t, at(0x18)).cfa, WK_CFA_NONE);	/* between them */
	ck_assert_int_eq(row(t, at(0x25)).cfa, WK_CFA_NONE);
	unwtab_free(t);
	ck_assert_int_eq(runtime_rows_update(rr, rt, UINT64_MAX, UINT64_MAX, &t), 0);
	ck_assert_ptr_null(t);	/* as before */
}
END_TEST

/* Other code at the place: its own rows. */
START_TEST(code_that_changes)
{
	struct unwtab *t;

	list(code + 0x20, sizeof(frameless), "frameless");
	ck_assert_int_eq(runtime_rows_update(rr, rt, UINT64_MAX, UINT64_MAX, &t), 0);
	unwtab_free(t);
	memcpy(code + 0x20, framed, sizeof(framed));
	list(code + 0x20, sizeof(framed), "framed");
	ck_assert_int_eq(runtime_rows_update(rr, rt, UINT64_MAX, UINT64_MAX, &t), 0);
	ck_assert_int_eq(row(t, at(0x24)).cfa, WK_CFA_FP);
	unwtab_free(t);
}
END_TEST

START_TEST(goes_on_after_the_deadline)
{
	struct unwtab *t;

	list(code + 0x20, sizeof(frameless), "frameless");
	ck_assert_int_eq(runtime_rows_update(rr, rt, UINT64_MAX, 0, &t), -EAGAIN);
	ck_assert_ptr_null(t);
	ck_assert_int_eq(runtime_rows_update(rr, rt, UINT64_MAX, UINT64_MAX, &t), 0);
	ck_assert_ptr_nonnull(t);
	unwtab_free(t);
}
END_TEST

/* Far from each other: the table is of those that have more code. */
START_TEST(far_apart)
{
	uint8_t *far = mmap(code + 2 * RUNTIME_ROWS_SPAN, 4096, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct wk_side side;
	struct wk_row r;
	struct unwtab *t;

	ck_assert_ptr_ne(far, MAP_FAILED);
	memcpy(far, frameless, sizeof(frameless));
	list(code + 0x10, sizeof(framed), "framed");
	list(code + 0x20, sizeof(frameless), "frameless");
	list(far, sizeof(frameless), "far");
	ck_assert_int_eq(runtime_rows_update(rr, rt, UINT64_MAX, UINT64_MAX, &t), 0);
	ck_assert_int_eq(row(t, at(0x21)).cfa_off, 2);
	if (far - code > (ptrdiff_t)RUNTIME_ROWS_SPAN || code - far > (ptrdiff_t)RUNTIME_ROWS_SPAN)
		ck_assert_int_eq(unwtab_lookup(t, (uint64_t)(uintptr_t)far, &r, &side), -ENOENT);
	if (far - code > (ptrdiff_t)RUNTIME_ROWS_SPAN || code - far > (ptrdiff_t)RUNTIME_ROWS_SPAN)
		ck_assert_uint_eq(runtime_rows_left_out(rr), 1);
	unwtab_free(t);
	munmap(far, 4096);
}
END_TEST

/* In order of address, as far as the bytes reach. */
START_TEST(over_the_bytes)
{
	struct wk_side side;
	struct unwtab *t;
	struct wk_row r;

	list(code + 0x10, sizeof(framed), "framed");
	list(code + 0x20, sizeof(frameless), "frameless");
	ck_assert_int_eq(runtime_rows_update(rr, rt, 1, UINT64_MAX, &t), 0);
	ck_assert_int_eq(row(t, at(0x14)).cfa, WK_CFA_FP);
	ck_assert(unwtab_lookup(t, at(0x21), &r, &side) || r.cfa == WK_CFA_NONE);
	ck_assert_uint_eq(runtime_rows_left_out(rr), 1);
	ck_assert_uint_gt(runtime_rows_bytes(rr), 0);
	unwtab_free(t);
}
END_TEST

/* What a list says of memory that isn't there, or of anything. */
START_TEST(nonsense)
{
	struct unwtab *t;

	list((uint8_t *)0x10, 0x1000, "nowhere");
	list(code + 0x20, 0x7fffffff, "too large");
	ck_assert_int_eq(runtime_rows_needed(rt, 0x20), 0);
	ck_assert_int_eq(runtime_rows_needed(rt, at(0x22)), 0);
	memset(code, 0, 4096);
	list(code, 0x200, "zeros");
	ck_assert_int_eq(runtime_rows_update(rr, rt, UINT64_MAX, UINT64_MAX, &t), 0);
	ck_assert_ptr_null(t);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("runtime_rows");
	TCase *t = tcase_create("runtime_rows");
	SRunner *sr;
	int failed;

#ifdef __x86_64__
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, needed_where_frames_are_left_out);
	tcase_add_test(t, rows_by_address);
	tcase_add_test(t, code_that_changes);
	tcase_add_test(t, goes_on_after_the_deadline);
	tcase_add_test(t, far_apart);
	tcase_add_test(t, over_the_bytes);
	tcase_add_test(t, nonsense);
#endif
	suite_add_tcase(s, t);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
