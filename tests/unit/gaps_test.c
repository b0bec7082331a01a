/* Tests of unwind/gaps.h: which symbols start functions, which gaps are read. */
#include "made_elf.h"

#include "unwind/gaps.h"

/* Every 16 bytes a function of the same code. */
static const uint8_t function[16] = { 0x50, 0x58, 0xc3, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc,
				      0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc };
enum { FUNCTIONS = 8, KNOWN = 3 };	/* bytes of a function that are reached */

static size_t add_text(struct made *m)
{
	uint8_t text[FUNCTIONS * sizeof(function)];

	for (size_t i = 0; i < FUNCTIONS; i++)
		memcpy(text + i * sizeof(function), function, sizeof(function));
	return made_section(m, ".text", SHT_PROGBITS, SHF_EXECINSTR, text, sizeof(text));
}

static struct gap gap_of(const struct made *m, size_t text, size_t skipped, size_t size)
{
	return (struct gap){ m->s[text].sh_offset + skipped, m->s[text].sh_addr + skipped, size };
}

static uint64_t left;	/* bytes over the limit, all calls together */

/* Bytes with rules. */
static uint64_t known(const struct elf *e, const struct elf *debug, uint64_t entry,
		      const struct gap *gaps, size_t n, uint64_t max)
{
	struct code *c = NULL;
	int r = gaps_trace(e, debug, entry, gaps, n, max, &c, &left);
	uint64_t bytes = r ? 0 : code_known_bytes(c);

	ck_assert(!r || r == -ENOENT);
	code_free(c);
	return bytes;
}

START_TEST(test_symbols)
{
	static const char *const names[] = { "one", "two.cold", "three", "f.cold.1", NULL };
	cleanup(freep_cleanup) struct made *m = made_new(EM_X86_64);
	cleanup(elf_cleanup) struct elf *e = NULL;
	size_t text = add_text(m);
	struct gap gap = gap_of(m, text, 0, sizeof(function) * FUNCTIONS);

	made_symbols(m, SHT_SYMTAB, (uint16_t)text, m->s[text].sh_addr, names);
	e = made_open(m);
	ck_assert_uint_eq(known(e, NULL, 0, &gap, 1, 1 << 20), 2 * KNOWN);
	/* an outermost function reaches as far as any other */
	ck_assert_uint_eq(known(e, NULL, gap.vaddr + 16 * 5, &gap, 1, 1 << 20), 3 * KNOWN);
	/* symbols outside of the gaps, gaps that are padding, gaps over the limit */
	gap = gap_of(m, text, 8, 20);
	ck_assert_uint_eq(known(e, NULL, 0, &gap, 1, 1 << 20), 0);
	gap = gap_of(m, text, 0, 15);
	ck_assert_uint_eq(known(e, NULL, 0, &gap, 1, 1 << 20), 0);
	gap = gap_of(m, text, 0, 32);
	ck_assert_uint_eq(left, 0);
	ck_assert_uint_eq(known(e, NULL, 0, &gap, 1, 31), 0);
	ck_assert_uint_eq(left, 32);
	ck_assert_uint_eq(known(e, NULL, 0, &gap, 1, 32), KNOWN);
}
END_TEST

START_TEST(test_imports_are_elsewhere)
{
	static const char *const names[] = { "imported", NULL };
	cleanup(freep_cleanup) struct made *m = made_new(EM_X86_64);
	cleanup(elf_cleanup) struct elf *e = NULL;
	size_t text = add_text(m);
	struct gap gap = gap_of(m, text, 0, sizeof(function) * FUNCTIONS);

	/* nor is it taken for a pointer, in the middle of something */
	made_symbols(m, SHT_DYNSYM, 0, m->s[text].sh_addr + 1, names);
	e = made_open(m);
	ck_assert_uint_eq(known(e, NULL, 0, &gap, 1, 1 << 20), 0);
}
END_TEST

START_TEST(test_symbols_of_debug_file)
{
	static const char *const names[] = { "one", "two", NULL };
	cleanup(freep_cleanup) struct made *m = made_new(EM_X86_64), *d = made_new(EM_X86_64);
	cleanup(elf_cleanup) struct elf *e = NULL, *debug = NULL;
	size_t text = add_text(m);
	struct gap gaps[] = { gap_of(m, text, 0, 16), gap_of(m, text, 16, 16) };

	made_symbols(d, SHT_SYMTAB, 1, m->s[text].sh_addr, names);
	e = made_open(m);
	debug = made_open(d);
	ck_assert_uint_eq(known(e, debug, 0, gaps, 2, 1 << 20), 2 * KNOWN);
	ck_assert_uint_eq(known(e, NULL, 0, gaps, 2, 1 << 20), 0);
}
END_TEST

/* Without symbols: a pointer in data, a call and an address taken by code outside of the gap. What isn't
 * behind padding or another function's end is none. */
START_TEST(test_references)
{
	cleanup(freep_cleanup) struct made *m = made_new(EM_X86_64);
	cleanup(elf_cleanup) struct elf *e = NULL;
	size_t text = add_text(m), data, code;
	uint64_t at = m->s[text].sh_addr, from = made_next(m) + 32, words[4] = { at + 32, at + 33, ~0ull };
	uint8_t caller[12] = { 0xe8, 0, 0, 0, 0, 0x48, 0x8d, 0x3d };
	int32_t call = (int32_t)(at + 64 - (from + 5)), lea = (int32_t)(at + 96 - (from + 12));
	struct gap gap = gap_of(m, text, 0, sizeof(function) * FUNCTIONS);

	memcpy(caller + 1, &call, 4);
	memcpy(caller + 8, &lea, 4);
	data = made_section(m, ".data", SHT_PROGBITS, SHF_WRITE, words, sizeof(words));
	code = made_section(m, ".caller", SHT_PROGBITS, SHF_EXECINSTR, caller, sizeof(caller));
	ck_assert_uint_eq(m->s[code].sh_addr, from);
	ck_assert_uint_eq(m->s[data].sh_size, 32);
	e = made_open(m);
	ck_assert_uint_eq(known(e, NULL, 0, &gap, 1, 1 << 20), 3 * KNOWN);
}
END_TEST

/* A gap whose bytes the file doesn't have is no code. */
START_TEST(test_cut_off)
{
	static const char *const names[] = { "one", NULL };
	cleanup(freep_cleanup) struct made *m = made_new(EM_X86_64);
	cleanup(elf_cleanup) struct elf *e = NULL;
	size_t text = add_text(m);
	struct gap gaps[] = { gap_of(m, text, 0, 16),
			      { sizeof(*m) + 100, m->s[text].sh_addr + 4096, 64 } };

	made_symbols(m, SHT_SYMTAB, (uint16_t)text, m->s[text].sh_addr, names);
	e = made_open(m);
	ck_assert_uint_eq(known(e, NULL, 0, gaps, 2, 1 << 20), KNOWN);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { test_symbols, test_imports_are_elsewhere,
				       test_symbols_of_debug_file, test_references,
				       test_cut_off };

	return made_run("gaps", tests, ARRAY_SIZE(tests));
}
