/* Tests of symbol/sources.h: what adds to what. The sources have tests of their own. */
#include "made_elf.h"

#include <lzma.h>

#include "symbol/sources.h"

static struct symtab *built(struct made *m, enum symbol_source want)
{
	struct elf *e cleanup(elf_cleanup) = made_open(m);
	struct symtab *t = NULL;
	enum symbol_source source = SYMBOLS_COUNT;

	ck_assert_int_eq(sources_build(e, NULL, &t, &source), 0);
	ck_assert_str_eq(symbol_source_label(source), symbol_source_label(want));
	return t;
}

static const char *name_at(struct symtab *t, uint64_t addr)
{
	struct symbol s;

	return symtab_lookup(t, addr, &s) ? s.name : "";
}

/* An exported function at .text, whose address *ret is. */
static struct made *with_dynsym(uint64_t *ret, size_t *ret_text)
{
	struct made *m = made_new(EM_X86_64);

	*ret_text = made_section(m, ".text", SHT_PROGBITS, SHF_EXECINSTR, NULL, 256);
	*ret = m->s[*ret_text].sh_addr;
	made_symbols(m, SHT_DYNSYM, (uint16_t)*ret_text, *ret,
		     (const char *const[]){ "exported", NULL });
	return m;
}

/* xz-compressed, a file with `hidden` at addr. */
static void add_minidebug(struct made *m, uint64_t addr)
{
	struct made *mini cleanup(freep_cleanup) = made_new(EM_X86_64);
	uint8_t packed[32 << 10];
	size_t n = 0, text = made_section(mini, ".text", SHT_NOBITS, SHF_EXECINSTR, NULL, 256);

	ck_assert_uint_eq(mini->s[text].sh_addr, m->s[2].sh_addr);
	made_symbols(mini, SHT_SYMTAB, (uint16_t)text, addr,
		     (const char *const[]){ "hidden", NULL });
	for (size_t i = 8192; i < 16384; i++)	/* real ones don't shrink to nothing either */
		mini->data[i] = (uint8_t)((i * i >> 3) ^ (i * 2654435761u >> 16));
	mini->h.e_shnum = (uint16_t)mini->nsections;
	ck_assert_int_eq(lzma_easy_buffer_encode(1, LZMA_CHECK_CRC32, NULL, (uint8_t *)mini,
						 sizeof(*mini), packed, &n, sizeof(packed)),
			 LZMA_OK);
	made_section(m, ".gnu_debugdata", SHT_PROGBITS, 0, packed, n);
}

START_TEST(exports_alone)
{
	uint64_t addr;
	size_t text;
	struct made *m cleanup(freep_cleanup) = with_dynsym(&addr, &text);
	struct symtab *t cleanup(symtab_cleanup) = built(m, SYMBOLS_DYNSYM);

	ck_assert_str_eq(name_at(t, addr), "exported");
	ck_assert_str_eq(name_at(t, addr + 16), "");
}
END_TEST

START_TEST(minidebug_adds)
{
	uint64_t addr;
	size_t text;
	struct made *m cleanup(freep_cleanup) = with_dynsym(&addr, &text);
	struct symtab *t cleanup(symtab_cleanup) = NULL;

	add_minidebug(m, addr + 64);
	t = built(m, SYMBOLS_MINIDEBUG);
	ck_assert_str_eq(name_at(t, addr), "exported");
	ck_assert_str_eq(name_at(t, addr + 64), "hidden");
}
END_TEST

START_TEST(symtab_is_enough)
{
	uint64_t addr;
	size_t text;
	struct made *m cleanup(freep_cleanup) = with_dynsym(&addr, &text);
	struct symtab *t cleanup(symtab_cleanup) = NULL;

	add_minidebug(m, addr + 64);
	made_symbols(m, SHT_SYMTAB, (uint16_t)text, addr + 32,
		     (const char *const[]){ "local", NULL });
	t = built(m, SYMBOLS_SYMTAB);
	ck_assert_str_eq(name_at(t, addr + 32), "local");
	ck_assert_str_eq(name_at(t, addr + 64), "");
}
END_TEST

START_TEST(broken_sources_are_none)
{
	uint64_t addr;
	size_t text;
	struct made *m cleanup(freep_cleanup) = with_dynsym(&addr, &text);
	struct symtab *t cleanup(symtab_cleanup) = NULL;

	made_section(m, ".gnu_debugdata", SHT_PROGBITS, 0, "no xz", 5);
	made_section(m, ".gopclntab", SHT_PROGBITS, 0, "no Go", 5);
	m->s[made_section(m, ".plt", SHT_PROGBITS, SHF_EXECINSTR, NULL, 16)].sh_size = UINT64_MAX;
	t = built(m, SYMBOLS_DYNSYM);
	ck_assert_str_eq(name_at(t, addr), "exported");
}
END_TEST

START_TEST(nothing)
{
	struct made *m cleanup(freep_cleanup) = made_new(EM_X86_64);
	struct symtab *t cleanup(symtab_cleanup) = built(m, SYMBOLS_NONE);

	ck_assert_uint_eq(symtab_count(t), 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { exports_alone, minidebug_adds, symtab_is_enough,
				       broken_sources_are_none, nothing };

	return made_run("sources", tests, ARRAY_SIZE(tests));
}
