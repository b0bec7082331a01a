/* Tests of unwind/gorows.h: rows of functions made by hand, alone and in a whole table. */
#include "made_elf.h"

#include "elf/gotab.h"
#include "unwind/gorows.h"
#include "unwind/unwtab.h"

enum { NAMES = 96, LISTS = 160, FUNCTAB = 288, RECORD = 352, SIZE = 64, ROWS_MAX = 16 };

/* A Go 1.20 program of one function of SIZE bytes. */
struct go {
	struct made *m;
	uint8_t *code, *table;
	uint64_t text;
};

static void set(struct go *g, size_t at, uint64_t v, size_t n)
{
	memcpy(g->table + at, &v, n);
}

static struct go make_go(const char *name, uint8_t flags, const uint8_t *list, size_t n)
{
	struct go g = { .m = made_new(EM_X86_64) };
	size_t text = made_section(g.m, ".text", SHT_PROGBITS, SHF_EXECINSTR, NULL, SIZE);
	size_t table = made_section(g.m, ".gopclntab", SHT_PROGBITS, 0, NULL, 512);

	g.text = g.m->s[text].sh_addr;
	g.code = made_data(g.m, text);
	g.table = made_data(g.m, table);
	memset(g.code, 0x90, SIZE);
	set(&g, 0, 0xfffffff1, 4);
	set(&g, 4, 8u << 24 | 1u << 16, 4);
	set(&g, 8, 1, 8);
	set(&g, 8 + 2 * 8, g.text, 8);
	set(&g, 8 + 3 * 8, NAMES, 8);
	set(&g, 8 + 6 * 8, LISTS, 8);
	set(&g, 8 + 7 * 8, FUNCTAB, 8);
	strcpy((char *)g.table + NAMES, name);
	memcpy(g.table + LISTS + 1, list, n);
	set(&g, FUNCTAB + 4, RECORD - FUNCTAB, 4);
	set(&g, FUNCTAB + 8, SIZE, 4);
	set(&g, RECORD + 16, 1, 4);
	set(&g, RECORD + 41, flags, 1);
	return g;
}

static void go_cleanup(struct go *g)
{
	free(g->m);
}

/* Each expected row, in force from its own start up to the next one's, in the compiled table. */
struct expected {
	unsigned int start;
	uint8_t cfa;
	int16_t cfa_off;
	bool saved;
};

static void check(struct go *g, const struct expected *rows, size_t n)
{
	struct elf *e cleanup(elf_cleanup) = made_open(g->m);
	struct unwtab *t cleanup(unwtab_cleanup) = NULL;
	struct wk_side side;
	struct wk_row row;
	uint64_t offset;
	size_t i = 0;

	ck_assert_int_eq(unwtab_compile(e, NULL, &UNWTAB_LIMITS_DEFAULT, &t), 0);
	ck_assert_int_eq(elf_vaddr_to_offset(e, g->text, &offset), 0);
	for (unsigned int at = 0; at < SIZE; at++) {
		while (i + 1 < n && rows[i + 1].start <= at)
			i++;
		ck_assert_int_eq(unwtab_lookup(t, offset + at, &row, &side), 0);
		ck_assert_msg(row.cfa == rows[i].cfa && row.cfa_off == rows[i].cfa_off,
			      "at %u: %u %d", at, row.cfa, row.cfa_off);
		ck_assert_msg((WK_ROW_FP(row) == WK_FP_SAVED) == rows[i].saved, "at %u", at);
		ck_assert_int_eq(row.fp_off, rows[i].saved ? -2 : 0);
	}
}

/* 0 for 8 bytes, 8 for 3, 40 for 45, 0 for 8 */
static const uint8_t pushes[] = { 2, 8, 16, 3, 64, 45, 79, 8, 0 };

START_TEST(frame_by_push)
{
	static const uint8_t push[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20 };
	static const struct expected rows[] = {
		{ 0, WK_CFA_SP, 1, false }, { 8, WK_CFA_SP, 2, true },
		{ 11, WK_CFA_SP, 6, true }, { 56, WK_CFA_SP, 1, false },
	};
	struct go g cleanup(go_cleanup) = make_go("main.main", 0, pushes, sizeof(pushes));

	memcpy(g.code + 7, push, sizeof(push));
	check(&g, rows, ARRAY_SIZE(rows));
}
END_TEST

/* Before Go 1.21. */
START_TEST(frame_by_mov)
{
	/* 0 for 4, 48 for 52, 0 for 8 */
	static const uint8_t list[] = { 2, 4, 96, 52, 95, 8, 0 };
	static const uint8_t mov[] = { 0x48, 0x89, 0x6c, 0x24, 0x28 };	/* %rbp, 40(%rsp) */
	static const uint8_t lea[] = { 0x48, 0x8d, 0x6c, 0x24, 0x28 };
	static const struct expected rows[] = {
		{ 0, WK_CFA_SP, 1, false }, { 4, WK_CFA_SP, 7, false },
		{ 9, WK_CFA_SP, 7, true }, { 56, WK_CFA_SP, 1, false },
	};
	static const struct expected moving[] = {
		{ 0, WK_CFA_LEAF, WK_CALLER_CHAIN, false }, { 4, WK_CFA_SP, 7, false },
		{ 9, WK_CFA_SP, 7, true }, { 14, WK_CFA_CHAIN, 0, false },
		{ 56, WK_CFA_LEAF, WK_CALLER_CHAIN, false },
	};

	for (uint8_t flags = 0; flags <= GOTAB_SPWRITE; flags += GOTAB_SPWRITE) {
		struct go g cleanup(go_cleanup) = make_go("runtime.x", flags, list, sizeof(list));

		memcpy(g.code + 4, mov, sizeof(mov));
		memcpy(g.code + 9, lea, sizeof(lea));
		check(&g, flags ? moving : rows, flags ? ARRAY_SIZE(moving) : ARRAY_SIZE(rows));
		g.code[8]--;	/* some other store: no frame */
		if (!flags) {
			const struct expected none[] = { rows[0], rows[1], rows[3] };

			check(&g, none, ARRAY_SIZE(none));
		}
	}
}
END_TEST

START_TEST(named_functions)
{
	static const uint8_t list[] = { 2, SIZE, 0 };
	static const struct { const char *name; uint8_t flags, cfa; int16_t cfa_off; } cases[] = {
		{ "runtime.goexit", GOTAB_TOPFRAME, WK_CFA_ROOT, 0 },
		{ "runtime.rt0_go.abi0", GOTAB_TOPFRAME | GOTAB_SPWRITE, WK_CFA_ROOT, 0 },
		{ "runtime.mstart.abi0", GOTAB_TOPFRAME, WK_CFA_SP, 1 },
		{ "runtime.goexit2", GOTAB_TOPFRAME, WK_CFA_SP, 1 },
		{ "runtime.goexit", 0, WK_CFA_SP, 1 },
		{ "runtime.clone.abi0", GOTAB_SPWRITE, WK_CFA_LEAF, WK_CALLER_ROOT },
		{ "runtime.mcall", GOTAB_SPWRITE, WK_CFA_LEAF, WK_CALLER_CHAIN },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct go g cleanup(go_cleanup) =
			make_go(cases[i].name, cases[i].flags, list, sizeof(list));
		const struct expected row = { 0, cases[i].cfa, cases[i].cfa_off, false };

		check(&g, &row, 1);
	}
}
END_TEST

START_TEST(hostile_lists)
{
	static const struct { uint8_t list[8]; struct expected row[2]; } cases[] = {
		/* sizes that no row can say, and that no stack has */
		{ { 0xff, 0xff, 0xff, 0xff, 0x0f, SIZE, 0 }, { { 0, WK_CFA_NONE, 0, false } } },
		{ { 10, SIZE, 0 }, { { 0, WK_CFA_NONE, 0, false } } },
		/* too long, too short */
		{ { 2, 0xff, 0xff, 0xff, 0xff, 0x0f, 0 }, { { 0, WK_CFA_SP, 1, false } } },
		{ { 2, 8, 0 }, { { 0, WK_CFA_SP, 1, false }, { 8, WK_CFA_NONE, 0, false } } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct go g cleanup(go_cleanup) = make_go("f", 0, cases[i].list, sizeof(cases[i].list));

		check(&g, cases[i].row, 1 + !!cases[i].row[1].start);
	}
}
END_TEST

START_TEST(not_go)
{
	struct made *m cleanup(freep_cleanup) = made_new(EM_X86_64);
	struct made *arm cleanup(freep_cleanup) = made_new(EM_AARCH64);
	struct elf *e cleanup(elf_cleanup) = made_open(m);
	struct elf *e2 cleanup(elf_cleanup) = made_open(arm);
	struct gorows *g;

	ck_assert_int_eq(gorows_open(e, &g), -ENOENT);
	ck_assert_int_eq(gorows_open(e2, &g), -ENOTSUP);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { frame_by_push, frame_by_mov, named_functions, hostile_lists,
				       not_go };

	return made_run("gorows", tests, ARRAY_SIZE(tests));
}
