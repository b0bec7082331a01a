/* Tests of symbol/gopclntab.h: tables of each version of Go, made by hand. */
#include "made_elf.h"

#include "elf/gotab.h"
#include "symbol/gopclntab.h"

#define MAGIC_12  0xfffffffbu
#define MAGIC_116 0xfffffffau
#define MAGIC_118 0xfffffff0u
#define MAGIC_120 0xfffffff1u

enum { HEADER_TEXT = 8 + 2 * 8 };	/* offset of the header's text start, Go 1.18 to 1.25 */

static const char *const names[] = { "runtime.text", "main.main", "main.(*T[...]).Do" };
#define NFUNC ARRAY_SIZE(names)

struct table {
	uint8_t bytes[1024];
	size_t n;
};

static void set(struct table *t, size_t at, uint64_t v, size_t n)
{
	ck_assert_uint_le(at + n, sizeof(t->bytes));
	memcpy(t->bytes + at, &v, n);
}

static void append(struct table *t, uint64_t v, size_t n)
{
	set(t, t->n, v, n);
	t->n += n;
}

/* Function i has the addresses [text + 16 + 32 i, text + 48 + 32 i). */
static struct table table_of(uint32_t magic, uint64_t text, bool text_in_header)
{
	struct table t = { .n = 0 };
	bool old = magic == MAGIC_12, relative = magic == MAGIC_118 || magic == MAGIC_120;
	size_t words = old ? 1 : magic == MAGIC_116 ? 7 : 8, field = relative ? 4 : 8;
	size_t name_at[NFUNC], functab, record, base, names_at;

	append(&t, magic, 4);
	append(&t, 8u << 24 | 1u << 16, 4);
	append(&t, NFUNC, 8);
	t.n = names_at = old ? 512 : 8 + 8 * words;
	for (size_t i = 0; i < NFUNC; i++) {
		name_at[i] = t.n - (old ? 0 : names_at);
		memcpy(t.bytes + t.n, names[i], strlen(names[i]) + 1);
		t.n += strlen(names[i]) + 1;
	}
	functab = old ? 16 : t.n;
	base = old ? 0 : functab;
	record = functab + (2 * NFUNC + 1) * field;
	if (!old) {
		set(&t, 8 + 8 * (relative ? 3 : 2), names_at, 8);
		set(&t, 8 + 8 * (relative ? 7 : 6), functab, 8);
	}
	if (text_in_header)
		set(&t, HEADER_TEXT, text, 8);
	for (size_t i = 0; i <= NFUNC; i++) {
		uint64_t entry = (relative ? 0 : text) + 16 + 32 * i;

		set(&t, functab + 2 * i * field, entry, field);
		if (i == NFUNC)
			break;
		set(&t, functab + (2 * i + 1) * field, record - base, field);
		set(&t, record, entry, field);
		set(&t, record + field, name_at[i], 4);
		record += field + 4;
	}
	t.n = old ? t.n : record;
	return t;
}

static struct symtab *named(struct made *m, int expected)
{
	struct elf *e cleanup(elf_cleanup) = made_open(m);
	struct symtab_builder *b = NULL;
	struct symtab *t = NULL;

	ck_assert_int_eq(symtab_builder_new(e, NULL, &b), 0);
	ck_assert_int_eq(gopclntab_add(b, e), expected);
	ck_assert_int_eq(symtab_builder_finish(b, &t), 0);
	return t;
}

static void check_names(struct symtab *t, uint64_t text)
{
	struct symbol s;

	ck_assert_uint_eq(symtab_count(t), NFUNC);
	for (size_t i = 0; i < NFUNC; i++) {
		symtab_get(t, i, &s);
		ck_assert_str_eq(s.name, names[i]);
		ck_assert_uint_eq(s.start, text + 16 + 32 * i);
		ck_assert_uint_eq(s.size, 32);
	}
}

static uint64_t add_text(struct made *m)
{
	size_t s = made_section(m, ".text", SHT_PROGBITS, SHF_EXECINSTR, NULL, 512);

	return m->s[s].sh_addr + 64;	/* C comes first where it is linked in */
}

START_TEST(every_version)
{
	const uint32_t magics[] = { MAGIC_12, MAGIC_116, MAGIC_118, MAGIC_120 };

	for (size_t i = 0; i < ARRAY_SIZE(magics); i++) {
		struct made *m cleanup(freep_cleanup) = made_new(EM_X86_64);
		uint64_t text = add_text(m);
		struct table t = table_of(magics[i], text, i >= 2);
		struct symtab *s cleanup(symtab_cleanup) = NULL;

		made_section(m, i % 2 ? ".gopclntab" : ".data.rel.ro.gopclntab", SHT_PROGBITS, 0,
			     t.bytes, t.n);
		s = named(m, 0);
		check_names(s, text);
	}
}
END_TEST

/* Without section headers the table is searched for, what only looks like one is passed over. */
START_TEST(no_section_headers)
{
	const uint32_t magics[] = { MAGIC_12, MAGIC_116, MAGIC_118, MAGIC_120 };
	static const uint8_t likeness[16] = { 0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8 };

	for (size_t i = 0; i < ARRAY_SIZE(magics); i++) {
		struct made *m cleanup(freep_cleanup) = made_new(EM_X86_64);
		uint64_t text = add_text(m);
		struct table t = table_of(magics[i], text, i >= 2);
		struct symtab *s cleanup(symtab_cleanup) = NULL;

		m->h.e_shoff = 0;
		symtab_free(named(m, -ENOENT));
		made_section(m, "", SHT_PROGBITS, 0, likeness, sizeof(likeness));
		symtab_free(named(m, -ENOENT));
		made_section(m, "", SHT_PROGBITS, 0, t.bytes, t.n);
		s = named(m, 0);
		check_names(s, text);
	}
}
END_TEST

/* GNU ld makes .data.rel.ro of .data.rel.ro.gopclntab; that it is Go another section says. */
START_TEST(part_of_another_section)
{
	struct made *m cleanup(freep_cleanup) = made_new(EM_X86_64);
	uint64_t text = add_text(m);
	struct table t = table_of(MAGIC_116, text, false);
	struct symtab *s cleanup(symtab_cleanup) = NULL;
	uint8_t bytes[2048] = { 0 };

	memcpy(bytes + 640, t.bytes, t.n);
	made_section(m, ".data.rel.ro", SHT_PROGBITS, 0, bytes, sizeof(bytes));
	symtab_free(named(m, -ENOENT));
	made_section(m, ".go.buildinfo", SHT_PROGBITS, 0, NULL, 32);
	s = named(m, 0);
	check_names(s, text);
}
END_TEST

/* And the module data with it, by the pointer to the table. */
START_TEST(no_section_of_module_data)
{
	struct made *m cleanup(freep_cleanup) = made_new(EM_X86_64);
	uint64_t text = add_text(m), module[48] = { 0 };
	struct table t = table_of(MAGIC_120, text, false);
	struct symtab *s cleanup(symtab_cleanup) = NULL;
	size_t at = made_section(m, "", SHT_PROGBITS, 0, t.bytes, t.n);
	uint64_t *data;

	m->h.e_shoff = 0;
	m->p.p_flags |= PF_W;
	module[0] = module[3] = m->s[at].sh_addr;	/* another pointer before it */
	module[3 + 20] = text + 16;
	module[3 + 22] = text;
	data = made_data(m, made_section(m, "", SHT_PROGBITS, 0, module, sizeof(module)));
	s = named(m, 0);
	check_names(s, text);
	data[3 + 20]++;
	symtab_free(named(m, -ENOENT));
}
END_TEST

/* A position-independent program: the header's text start is left to a relocation. */
START_TEST(text_in_relocation)
{
	struct made *m cleanup(freep_cleanup) = made_new(EM_AARCH64);
	uint64_t text = add_text(m);
	struct table t = table_of(MAGIC_120, text, false);
	struct symtab *s cleanup(symtab_cleanup) = NULL;
	size_t at = made_section(m, ".gopclntab", SHT_PROGBITS, 0, t.bytes, t.n);
	Elf64_Rela relocs[] = {
		{ .r_offset = m->s[at].sh_addr + HEADER_TEXT, .r_addend = 1,
		  .r_info = R_AARCH64_GLOB_DAT },
		{ .r_offset = m->s[at].sh_addr + HEADER_TEXT, .r_addend = (int64_t)text,
		  .r_info = R_AARCH64_RELATIVE },
	};

	made_section(m, ".rela.dyn", SHT_RELA, 0, relocs, sizeof(relocs));
	s = named(m, 0);
	check_names(s, text);
}
END_TEST

/* Go 1.26: the module data has it, if it is this table's. */
START_TEST(text_in_module_data)
{
	struct made *m cleanup(freep_cleanup) = made_new(EM_X86_64);
	uint64_t text = add_text(m), module[24] = { 0 };
	struct table t = table_of(MAGIC_120, text, false);
	struct symtab *s cleanup(symtab_cleanup) = NULL;
	size_t at = made_section(m, ".gopclntab", SHT_PROGBITS, 0, t.bytes, t.n);
	uint64_t *data;

	symtab_free(named(m, -ENOENT));
	module[0] = m->s[at].sh_addr;
	module[20] = text + 16;
	module[22] = text;
	data = made_data(m, made_section(m, ".go.module", SHT_PROGBITS, 0, module, sizeof(module)));
	s = named(m, 0);
	check_names(s, text);
	data[0]++;
	symtab_free(named(m, -EBADMSG));
	data[0]--;
	data[20]++;
	symtab_free(named(m, -EBADMSG));
	data[22] = data[20] = 0;
	symtab_free(named(m, -EBADMSG));
}
END_TEST

START_TEST(damaged_headers)
{
	const struct { size_t at; uint64_t v; size_t n; int r; } cases[] = {
		{ 0, 0xfffffff2, 4, -EBADMSG },
		{ 4, 1, 1, -EBADMSG },
		{ 7, 4, 1, -EBADMSG },				/* 32-bit pointers */
		{ 8, 0, 8, -EBADMSG },
		{ 8, GOTAB_FUNCS_MAX, 8, -EBADMSG },
		{ 8, GOTAB_FUNCS_MAX + 1, 8, -E2BIG },
		{ 8, UINT64_MAX, 8, -E2BIG },
		{ HEADER_TEXT, UINT64_MAX, 8, -EBADMSG },
		{ 8 + 8 * 3, UINT64_MAX, 8, -EBADMSG },
		{ 8 + 8 * 7, UINT64_MAX, 8, -EBADMSG },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct made *m cleanup(freep_cleanup) = made_new(EM_X86_64);
		struct table t = table_of(MAGIC_118, add_text(m), true);

		set(&t, cases[i].at, cases[i].v, cases[i].n);
		made_section(m, ".gopclntab", SHT_PROGBITS, 0, t.bytes, t.n);
		symtab_free(named(m, cases[i].r));
	}
}
END_TEST

/* Whatever is cut off or changed: an error or fewer names, never others' bytes. */
START_TEST(damaged_anywhere)
{
	struct made *m cleanup(freep_cleanup) = made_new(EM_X86_64);
	uint64_t text = add_text(m);
	struct table t = table_of(MAGIC_120, text, true);
	size_t at = made_section(m, ".gopclntab", SHT_PROGBITS, 0, t.bytes, t.n);
	struct symtab_builder *b;
	struct elf *e;

	for (size_t i = 0; i < 2 * t.n; i++) {
		uint8_t *data = made_data(m, at), *byte = data + i % t.n, old = *byte;

		if (i < t.n)
			m->s[at].sh_size = i;
		else
			*byte ^= 0xff;
		e = made_open(m);
		ck_assert_int_eq(symtab_builder_new(e, NULL, &b), 0);
		(void)!gopclntab_add(b, e);
		symtab_builder_free(b);
		elf_free(e);
		*byte = old;
		m->s[at].sh_size = t.n;
	}
	m->s[at].sh_offset = UINT64_MAX;
	symtab_free(named(m, -EBADMSG));
}
END_TEST

START_TEST(no_go)
{
	struct made *m cleanup(freep_cleanup) = made_new(EM_X86_64);

	symtab_free(named(m, -ENOENT));
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { every_version, no_section_headers, part_of_another_section,
				       no_section_of_module_data,
				       text_in_relocation, text_in_module_data,
				       damaged_headers, damaged_anywhere, no_go };

	return made_run("gopclntab", tests, ARRAY_SIZE(tests));
}
