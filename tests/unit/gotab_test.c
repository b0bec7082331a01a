/* Tests of elf/gotab.h: lists of values (gopclntab_test has the headers and names of each version). */
#include "made_elf.h"

#include "elf/gotab.h"

enum { FUNCTAB = 256, RECORD = 320, LISTS = 128 };

struct go {
	struct made *m;
	uint8_t *table;
	uint64_t text;
};

static void set(struct go *g, size_t at, uint64_t v, size_t n)
{
	memcpy(g->table + at, &v, n);
}

/* One function of 64 bytes, whose pcsp list starts at byte 1 of the lists. */
static struct go make_go(uint32_t magic)
{
	struct go g = { .m = made_new(EM_X86_64) };
	size_t s = made_section(g.m, ".text", SHT_PROGBITS, SHF_EXECINSTR, NULL, 64);

	g.text = g.m->s[s].sh_addr;
	s = made_section(g.m, ".gopclntab", SHT_PROGBITS, 0, NULL, 512);
	g.table = made_data(g.m, s);
	set(&g, 0, magic, 4);
	set(&g, 4, 8u << 24 | 1u << 16, 4);
	set(&g, 8, 1, 8);
	set(&g, 8 + 2 * 8, g.text, 8);
	set(&g, 8 + 3 * 8, 96, 8);		/* names */
	set(&g, 8 + 6 * 8, LISTS, 8);
	set(&g, 8 + 7 * 8, FUNCTAB, 8);
	set(&g, FUNCTAB + 4, RECORD - FUNCTAB, 4);
	set(&g, FUNCTAB + 8, 64, 4);
	set(&g, RECORD + 16, 1, 4);		/* pcsp */
	set(&g, RECORD + 20, 5, 4);
	set(&g, RECORD + 24, 9, 4);
	set(&g, RECORD + 32, 3, 4);
	set(&g, RECORD + (magic == 0xfffffff1 ? 41 : 37), GOTAB_SPWRITE | GOTAB_ASM, 1);
	return g;
}

static void go_cleanup(struct go *g)
{
	free(g->m);
}

START_TEST(values)
{
	/* 0 for 6 bytes, 8 for 3, 392 for 50, 0 for 5; the end */
	static const uint8_t list[] = { 2, 6, 16, 3, 0x80, 6, 50, 0x8f, 6, 5, 0 };
	static const struct { int32_t value; unsigned int start, end; } expected[] = {
		{ 0, 0, 6 }, { 8, 6, 9 }, { 392, 9, 59 }, { 0, 59, 64 },
	};
	const uint32_t magics[] = { 0xfffffff0, 0xfffffff1 };

	for (size_t m = 0; m < ARRAY_SIZE(magics); m++) {
		struct go g cleanup(go_cleanup) = make_go(magics[m]);
		struct gotab *t cleanup(gotab_cleanup) = NULL;
		struct elf *e cleanup(elf_cleanup) = NULL;
		struct gotab_func f;
		struct gotab_info info;
		struct gotab_value v;

		memcpy(g.table + LISTS + 1, list, sizeof(list));
		e = made_open(g.m);
		ck_assert_int_eq(gotab_open(e, &t), 0);
		ck_assert_int_eq(gotab_next(t, &f), 0);
		ck_assert_uint_eq(f.start, g.text);
		ck_assert_uint_eq(f.end, g.text + 64);
		ck_assert_int_eq(gotab_info(t, &f, &info), 0);
		ck_assert_uint_eq(info.pcsp, 1);
		ck_assert_uint_eq(info.pcfile, 5);
		ck_assert_uint_eq(info.pcln, 9);
		ck_assert_uint_eq(info.unit, 3);
		ck_assert_uint_eq(info.flags, GOTAB_SPWRITE | GOTAB_ASM);
		v = (struct gotab_value){ .list = info.pcsp, .end = f.start };
		for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
			ck_assert_int_eq(gotab_value(t, &v), 0);
			ck_assert_int_eq(v.value, expected[i].value);
			ck_assert_uint_eq(v.start, g.text + expected[i].start);
			ck_assert_uint_eq(v.end, g.text + expected[i].end);
		}
		ck_assert_int_eq(gotab_value(t, &v), -ENOENT);
		ck_assert_int_eq(gotab_next(t, &f), -ENOENT);
	}
}
END_TEST

START_TEST(hostile_lists)
{
	struct go g cleanup(go_cleanup) = make_go(0xfffffff1);
	struct elf *e cleanup(elf_cleanup) = NULL;
	struct gotab *t cleanup(gotab_cleanup) = NULL;
	struct gotab_func f;
	struct gotab_value v = { .list = 1 };

	memset(g.table + LISTS, 0xff, 16);	/* a number without an end */
	e = made_open(g.m);
	ck_assert_int_eq(gotab_open(e, &t), 0);
	ck_assert_int_eq(gotab_next(t, &f), 0);
	ck_assert_int_eq(gotab_value(t, &v), -EBADMSG);
	v = (struct gotab_value){ .list = UINT32_MAX };
	ck_assert_int_eq(gotab_value(t, &v), -EBADMSG);
	v = (struct gotab_value){ .list = 511 - LISTS };	/* its end is the section's */
	ck_assert_int_eq(gotab_value(t, &v), -EBADMSG);
}
END_TEST

START_TEST(older_than_the_flags)
{
	struct go g cleanup(go_cleanup) = make_go(0xfffffff1);
	struct elf *e cleanup(elf_cleanup) = NULL;
	struct gotab *t cleanup(gotab_cleanup) = NULL;
	struct gotab_func f;
	struct gotab_info info;

	set(&g, 0, 0xfffffffa, 4);
	set(&g, 8 + 2 * 8, 96, 8);
	set(&g, FUNCTAB, g.text, 8);
	set(&g, FUNCTAB + 8, RECORD - FUNCTAB, 8);
	set(&g, FUNCTAB + 16, g.text + 64, 8);
	e = made_open(g.m);
	ck_assert_int_eq(gotab_open(e, &t), -EBADMSG);	/* functab is word 6 there: outside */
	set(&g, 8 + 6 * 8, FUNCTAB, 8);
	elf_free(e);
	e = made_open(g.m);
	ck_assert_int_eq(gotab_open(e, &t), 0);
	ck_assert_int_eq(gotab_next(t, &f), 0);
	ck_assert(!gotab_has_flags(t));
	ck_assert_int_eq(gotab_info(t, &f, &info), 0);
	ck_assert_uint_eq(info.flags, 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { values, hostile_lists, older_than_the_flags };

	return made_run("gotab", tests, ARRAY_SIZE(tests));
}
