/* Tests of symbol/bounds.h. */
#include "cfi_bytes.h"
#include "made_elf.h"

#include "symbol/bounds.h"

struct function {
	uint32_t start, size;	/* in .text */
};

#define TEXT_SIZE 0x1000

/* A file with .text and an FDE for each function; *ret_text is the address of .text. */
static struct elf *file_of(struct made *m, const struct function *f, size_t n, uint64_t *ret_text)
{
	size_t text = made_section(m, ".text", SHT_PROGBITS, SHF_EXECINSTR, NULL, TEXT_SIZE);
	struct section s = { .n = 0 };
	size_t cie = usual_cie(&s);

	*ret_text = m->s[text].sh_addr;
	for (size_t i = 0; i < n; i++) {
		begin_fde(&s, cie, made_next(m), *ret_text + f[i].start, f[i].size);
		end(&s);
	}
	put_uint(&s, 0, 4);
	made_section(m, ".eh_frame", SHT_PROGBITS, 0, s.data, s.n);
	return made_open(m);
}

static uint64_t start_of(const struct bounds *b, uint64_t vaddr)
{
	uint64_t start = 0;

	return bounds_lookup(b, vaddr, &start) ? start : 0;
}

START_TEST(one_start_per_function)
{
	const struct function f[] = { { 0x100, 0x40 }, { 0x20, 0x30 }, { 0x140, 0x10 } };
	struct made *m cleanup(freep_cleanup) = made_new(EM_X86_64);
	uint64_t text;
	struct elf *e cleanup(elf_cleanup) = file_of(m, f, ARRAY_SIZE(f), &text);
	struct bounds *b cleanup(bounds_cleanup) = NULL;

	ck_assert_int_eq(bounds_build(e, &b), 0);
	ck_assert_uint_eq(bounds_count(b), 3);
	ck_assert_uint_eq(start_of(b, text + 0x1f), 0);
	ck_assert_uint_eq(start_of(b, text + 0x20), text + 0x20);
	ck_assert_uint_eq(start_of(b, text + 0x4f), text + 0x20);
	ck_assert_uint_eq(start_of(b, text + 0x50), 0);
	ck_assert_uint_eq(start_of(b, text + 0x13f), text + 0x100);
	ck_assert_uint_eq(start_of(b, text + 0x140), text + 0x140);
	ck_assert_uint_eq(start_of(b, text + 0x150), 0);
	ck_assert_uint_eq(start_of(b, 0), 0);
	ck_assert_uint_eq(start_of(b, UINT64_MAX), 0);
}
END_TEST

START_TEST(one_start_twice)
{
	const struct function f[] = { { 0x20, 0x30 }, { 0x20, 0x80 }, { 0x20, 0x10 } };
	struct made *m cleanup(freep_cleanup) = made_new(EM_X86_64);
	uint64_t text;
	struct elf *e cleanup(elf_cleanup) = file_of(m, f, ARRAY_SIZE(f), &text);
	struct bounds *b cleanup(bounds_cleanup) = NULL;

	ck_assert_int_eq(bounds_build(e, &b), 0);
	ck_assert_uint_eq(bounds_count(b), 1);
	ck_assert_uint_eq(start_of(b, text + 0x9f), text + 0x20);
	ck_assert_uint_eq(start_of(b, text + 0xa0), 0);
}
END_TEST

START_TEST(outside_of_code)
{
	const struct function f[] = { { 0x40000000, 0x40 }, { 0x80000000, 0x40 } };
	struct made *m cleanup(freep_cleanup) = made_new(EM_X86_64);
	uint64_t text;
	struct elf *e cleanup(elf_cleanup) = file_of(m, f, ARRAY_SIZE(f), &text);
	struct bounds *b = NULL;

	ck_assert_int_eq(bounds_build(e, &b), -ENOENT);
	ck_assert_ptr_null(b);
}
END_TEST

START_TEST(no_table)
{
	struct made *m cleanup(freep_cleanup) = made_new(EM_X86_64);
	struct elf *e cleanup(elf_cleanup) = made_open(m);
	struct bounds *b = NULL;

	ck_assert_int_eq(bounds_build(e, &b), -ENOENT);
}
END_TEST

START_TEST(section_beyond_the_file)
{
	struct made *m cleanup(freep_cleanup) = made_new(EM_X86_64);
	size_t s = made_section(m, ".eh_frame", SHT_PROGBITS, 0, NULL, 64);
	struct elf *e cleanup(elf_cleanup) = NULL;
	struct bounds *b = NULL;

	m->s[s].sh_offset = UINT64_MAX - 8;
	e = made_open(m);
	ck_assert_int_eq(bounds_build(e, &b), -EBADMSG);
}
END_TEST

/* This very program: a function begins where the compiler says. */
START_TEST(own_functions)
{
	struct elf *e cleanup(elf_cleanup) = NULL;
	struct bounds *b cleanup(bounds_cleanup) = NULL;
	cleanup(fd_cleanup) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	extern char __executable_start[] __attribute__((visibility("hidden")));
	uint64_t at = (uint64_t)(uintptr_t)made_run - (uint64_t)(uintptr_t)__executable_start;

	ck_assert_int_eq(elf_open_fd(fd, &e, NULL), 0);
	ck_assert_int_eq(bounds_build(e, &b), 0);
	ck_assert_uint_gt(bounds_count(b), 5);
	ck_assert_uint_eq(start_of(b, at), at);
	ck_assert_uint_eq(start_of(b, at + 4), at);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { one_start_per_function, one_start_twice, outside_of_code,
				       no_table, section_beyond_the_file, own_functions };

	return made_run("bounds", tests, ARRAY_SIZE(tests));
}
