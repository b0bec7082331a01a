/* Tests of symbol/dwarfimage.h: sections arrive whole, .debug_info piece by piece, caps hold. */
#include "lines_corpus.h"

#include "symbol/dwarfimage.h"

START_TEST(sections)
{
	static const char *const files[] = { "c-4", "c-5", "zlib", "zlib-gnu" };

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		struct corpus c cleanup(corpus_close) = corpus_open(files[i]);
		struct dwarfimage *d cleanup(dwarfimage_cleanup) = NULL;
		struct elf *made cleanup(elf_cleanup) = NULL;
		void *original cleanup(freep_cleanup) = NULL;
		size_t size = 0, n = 0;
		const uint8_t *p;
		char *bytes;

		ck_assert_int_eq(dwarfimage_new(c.e, 1 << 20, &d), 0);
		p = dwarfimage_section(d, DWARF_LINE, &n);
		ck_assert_int_eq(elf_section_read(c.e, elf_section_by_name(c.e, ".debug_line"), 1 << 20,
						  &original, &size), 0);
		ck_assert(n == size && !memcmp(p, original, n));
		bytes = dwarfimage_bytes(d, &size);
		ck_assert_int_eq(elf_open_memory(bytes, size, &made, NULL), 0);
		ck_assert_ptr_nonnull(elf_section_by_name(made, ".debug_info"));
		ck_assert_ptr_nonnull(elf_section_by_name(made, ".debug_abbrev"));
		ck_assert_ptr_null(elf_section_by_name(made, ".symtab"));
	}
}
END_TEST

START_TEST(pieces)
{
	struct made *m = made_new(EM_X86_64);
	struct dwarfimage *d cleanup(dwarfimage_cleanup) = NULL;
	struct elf *e cleanup(elf_cleanup) = NULL;
	const size_t n = 60000;
	const uint8_t *p;
	uint64_t before;
	size_t size;

	memset(made_data(m, made_section(m, ".debug_info", SHT_PROGBITS, 0, NULL, n)), 7, n);
	made_section(m, ".debug_abbrev", SHT_PROGBITS, 0, "abc", 3);
	e = made_open(m);
	ck_assert_int_eq(dwarfimage_new(e, 1 << 20, &d), 0);
	p = dwarfimage_section(d, DWARF_INFO, &size);
	ck_assert_uint_eq(size, n);
	ck_assert(!p[0] && !p[20000] && !p[n - 1]);
	before = dwarfimage_memory(d);
	ck_assert_uint_lt(before, 10000);
	ck_assert_int_eq(dwarfimage_need(d, 20000, 1), 0);
	ck_assert(!p[0] && p[20000] == 7 && !p[n - 1]);
	ck_assert_uint_eq(dwarfimage_memory(d), before + (16 << 10));
	ck_assert_int_eq(dwarfimage_need(d, n - 1, UINT64_MAX), 0);
	ck_assert_int_eq(dwarfimage_need(d, n, 1), 0);
	ck_assert_int_eq(dwarfimage_need(d, UINT64_MAX, UINT64_MAX), 0);
	ck_assert(!p[0] && p[n - 1] == 7);
	ck_assert_int_eq(dwarfimage_need(d, 0, UINT64_MAX), 0);
	for (size_t i = 0; i < n; i++)
		ck_assert_uint_eq(p[i], 7);
	free(m);
}
END_TEST

/* What isn't read of .debug_info doesn't count; what is read does. */
START_TEST(pieces_are_counted)
{
	struct made *m = made_new(EM_X86_64);
	struct dwarfimage *d cleanup(dwarfimage_cleanup) = NULL;
	struct elf *e cleanup(elf_cleanup) = NULL;

	made_section(m, ".debug_info", SHT_PROGBITS, 0, NULL, 60000);
	made_section(m, ".debug_abbrev", SHT_PROGBITS, 0, "abc", 3);
	e = made_open(m);
	ck_assert_int_eq(dwarfimage_new(e, 50000, &d), 0);
	ck_assert_int_eq(dwarfimage_need(d, 0, 1), 0);
	ck_assert_int_eq(dwarfimage_need(d, 20000, 1), 0);
	ck_assert_int_eq(dwarfimage_need(d, 59999, 1), 0);	/* the last piece is a small one */
	ck_assert_int_eq(dwarfimage_need(d, 40000, 1), -E2BIG);
	ck_assert_uint_le(dwarfimage_memory(d), 50000);
	free(m);
}
END_TEST

START_TEST(refused)
{
	struct corpus c cleanup(corpus_close) = corpus_open("c-5");
	struct made *m = made_new(EM_X86_64);
	struct elf *e cleanup(elf_cleanup) = NULL;
	struct dwarfimage *d = NULL;
	size_t s;

	ck_assert_int_eq(dwarfimage_new(c.e, 300, &d), -E2BIG);
	made_section(m, ".debug_info", SHT_PROGBITS, 0, "x", 1);
	e = made_open(m);
	ck_assert_int_eq(dwarfimage_new(e, 1 << 20, &d), -ENOENT);
	s = made_section(m, ".debug_abbrev", SHT_PROGBITS, 0, "x", 1);
	m->s[s].sh_size = UINT64_C(1) << 40;	/* behind the end of the file */
	elf_free(e);
	e = made_open(m);
	ck_assert_int_eq(dwarfimage_new(e, 1 << 20, &d), -EBADMSG);
	ck_assert_ptr_null(d);
	free(m);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { sections, pieces, pieces_are_counted, refused };

	return made_run("dwarfimage", tests, ARRAY_SIZE(tests));
}
