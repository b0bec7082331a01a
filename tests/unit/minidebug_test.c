/* Tests of symbol/minidebug.h. */
#include "made_elf.h"

#include <lzma.h>

#include "symbol/minidebug.h"
#include "symbol/symtab.h"

static size_t xz(const void *from, size_t n, uint8_t *to, size_t cap)
{
	size_t used = 0;

	ck_assert_int_eq(
		lzma_easy_buffer_encode(1, LZMA_CHECK_CRC64, NULL, from, n, to, &used, cap),
		LZMA_OK);
	return used;
}

/* Half of the file doesn't compress, so that the ratio is one of real files. */
static void noise(struct made *m)
{
	uint32_t x = 1;

	for (size_t i = m->ndata; i < sizeof(m->data) / 2; i++) {
		x = x * 1664525 + 1013904223;
		m->data[i] = (uint8_t)(x >> 24);
	}
}

/* A file whose section .gnu_debugdata has these bytes. */
static struct elf *carrying(struct made *m, const void *bytes, size_t n)
{
	made_section(m, ".gnu_debugdata", SHT_PROGBITS, 0, bytes, n);
	return made_open(m);
}

static int open_in(const void *bytes, size_t n)
{
	struct made *m cleanup(freep_cleanup) = made_new(EM_X86_64);
	struct elf *e cleanup(elf_cleanup) = carrying(m, bytes, n), *mini = NULL;
	void *image = NULL;
	int r = minidebug_open(e, &mini, &image);

	ck_assert(!r == !!mini && !r == !!image);
	elf_free(mini);
	free(image);
	return r;
}

static struct made *mini_file(uint16_t machine)
{
	struct made *m = made_new(machine);
	size_t text = made_section(m, ".text", SHT_PROGBITS, SHF_EXECINSTR, NULL, 64);

	made_symbols(m, SHT_SYMTAB, (uint16_t)text, m->s[text].sh_addr,
		     (const char *const[]){ "hidden", NULL });
	noise(m);
	m->h.e_shnum = (uint16_t)m->nsections;
	return m;
}

START_TEST(a_name_from_inside)
{
	struct made *inner cleanup(freep_cleanup) = mini_file(EM_X86_64);
	struct made *outer cleanup(freep_cleanup) = made_new(EM_X86_64);
	struct elf *e cleanup(elf_cleanup) = NULL, *mini = NULL;
	struct symtab *t cleanup(symtab_cleanup) = NULL;
	uint8_t packed[sizeof(inner->data)];
	struct symbol s;
	void *image;

	e = carrying(outer, packed, xz(inner, sizeof(*inner), packed, sizeof(packed)));
	ck_assert_int_eq(minidebug_open(e, &mini, &image), 0);
	ck_assert_int_eq(symtab_build(mini, NULL, &t), 0);
	ck_assert(symtab_lookup(t, inner->s[2].sh_addr + 3, &s));
	ck_assert_str_eq(s.name, "hidden");
	elf_free(mini);
	free(image);
}
END_TEST

START_TEST(damaged)
{
	struct made *inner cleanup(freep_cleanup) = mini_file(EM_X86_64);
	uint8_t packed[80 << 10];
	size_t n;

	n = xz(inner, sizeof(*inner), packed, sizeof(packed));
	ck_assert_int_eq(open_in(packed, n), 0);
	ck_assert_int_eq(open_in(packed, n / 2), -EBADMSG);
	ck_assert_int_eq(open_in(packed, 3), -EBADMSG);
	ck_assert_int_eq(open_in(packed, 0), -E2BIG);
	packed[n / 2] ^= 1;
	ck_assert_int_eq(open_in(packed, n), -EBADMSG);
	ck_assert_int_eq(open_in("no xz at all, really", 20), -EBADMSG);
}
END_TEST

START_TEST(not_what_it_should_be)
{
	struct made *inner cleanup(freep_cleanup) = mini_file(EM_AARCH64);
	uint8_t packed[80 << 10];

	ck_assert_int_eq(open_in(packed, xz(inner, sizeof(*inner), packed, sizeof(packed))),
			 -EBADMSG);
	ck_assert_int_eq(open_in(packed, xz("plain text", 10, packed, sizeof(packed))), -EBADMSG);
}
END_TEST

START_TEST(a_bomb)
{
	const size_t n = 4 << 20;
	void *zeros cleanup(freep_cleanup) = calloc(1, n);
	uint8_t packed[16 << 10];

	ck_assert_ptr_nonnull(zeros);
	ck_assert_int_eq(open_in(packed, xz(zeros, n, packed, sizeof(packed))), -E2BIG);
}
END_TEST

START_TEST(none)
{
	struct made *m cleanup(freep_cleanup) = made_new(EM_X86_64);
	struct elf *e cleanup(elf_cleanup) = made_open(m), *mini = NULL;
	void *image;

	ck_assert_int_eq(minidebug_open(e, &mini, &image), -ENOENT);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { a_name_from_inside, damaged, not_what_it_should_be, a_bomb,
				       none };

	return made_run("minidebug", tests, ARRAY_SIZE(tests));
}
