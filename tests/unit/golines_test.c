/* Tests of symbol/golines.h over a table made by hand: one function with a call inlined in a call. */
#include "lines_corpus.h"

#include "symbol/golines.h"

enum {
	NAMES = 96, UNITS = 160, FILES = 176, LISTS = 224, FUNCTAB = 320, RECORD = 352, SIZE = 512,
	TEXT = 64,			/* bytes of code */
	PCFILE = 1, PCLN = 8, PCTREE = 24,	/* lists */
};

static void set(uint8_t *at, uint64_t v, size_t n)
{
	memcpy(at, &v, n);
}

/* One entry of a list: the value's change and for how many bytes. */
static size_t pair(uint8_t *at, int change, unsigned int length)
{
	at[0] = (uint8_t)(change < 0 ? -change * 2 - 1 : change * 2);
	at[1] = (uint8_t)length;
	return 2;
}

struct go {
	struct made *m;
	struct elf *e;
	uint8_t *table;
	uint64_t text;
};

static void go_cleanup(struct go *g)
{
	elf_free(g->e);
	free(g->m);
}

/* Addresses 0 to 15: outer at line 10; 16 to 31: middle at 20, called from line 10; 32 to 47: inner at 30
 * of another file, called from middle. 48 to 63: nothing known. */
static void fill_table(uint8_t *t, bool old)
{
	size_t at;

	memcpy(t + NAMES, "main.outer\0main.middle[...]\0main.inner", 39);
	set(t + UNITS, 0, 4);
	set(t + UNITS + 4, 9, 4);
	memcpy(t + FILES, "/src/a.g\0/src/b.go", 19);
	at = LISTS + PCFILE;
	at += pair(t + at, 1, 32);	/* from -1 to 0: a.g */
	at += pair(t + at, 1, 16);	/* b.go */
	pair(t + at, -2, 16);
	at = LISTS + PCLN;
	at += pair(t + at, 11, 16);
	at += pair(t + at, 10, 16);
	at += pair(t + at, 10, 16);
	pair(t + at, -31, 16);
	at = LISTS + PCTREE;
	at += pair(t + at, 0, 16);
	at += pair(t + at, 1, 16);
	at += pair(t + at, 1, 16);
	pair(t + at, -2, 16);
	set(t + FUNCTAB + 4, RECORD - FUNCTAB, 4);
	set(t + FUNCTAB + 8, TEXT, 4);
	set(t + RECORD + 20, PCFILE, 4);
	set(t + RECORD + 24, PCLN, 4);
	set(t + RECORD + 28, 3, 4);		/* lists, of which the last is the tree's */
	at = RECORD + 36;
	if (!old) {
		set(t + at, 9, 4);		/* start line */
		at += 4;
	}
	t[at + 3] = 4;				/* tables, likewise */
	set(t + at + 4 + 8, PCTREE, 4);
	memset(t + at + 4 + 12, 0xff, 12);
	set(t + at + 4 + 12 + 12, 32, 4);	/* 32 bytes behind go:func.* */
}

static void fill_tree(uint8_t *t, bool old)
{
	static const uint32_t new_tree[2][4] = { { 0, 11, 4, 19 }, { 0, 28, 20, 29 } };
	static const uint32_t old_tree[2][5] = { { 0, 0, 0, 11, 4 }, { 0, 0, 0, 28, 20 } };

	if (old)
		memcpy(t + 32, old_tree, sizeof(old_tree));
	else
		memcpy(t + 32, new_tree, sizeof(new_tree));
}

/* where: of the module data, ".go.module" or ".data", which is looked through. */
static struct go make_go(uint32_t magic, const char *where)
{
	bool old = magic == 0xfffffff0;
	struct go g = { .m = made_new(EM_X86_64) };
	size_t s = made_section(g.m, ".text", SHT_PROGBITS, SHF_EXECINSTR, NULL, TEXT), tree;
	uint64_t header, *module;

	g.m->p.p_flags |= PF_W;
	g.text = g.m->s[s].sh_addr;
	s = made_section(g.m, ".gopclntab", SHT_PROGBITS, 0, NULL, SIZE);
	g.table = made_data(g.m, s);
	header = g.m->s[s].sh_addr;
	set(g.table, magic, 4);
	set(g.table + 4, 8u << 24 | 1u << 16, 4);
	set(g.table + 8, 1, 8);
	set(g.table + 24, g.text, 8);
	set(g.table + 32, NAMES, 8);
	set(g.table + 40, UNITS, 8);
	set(g.table + 48, FILES, 8);
	set(g.table + 56, LISTS, 8);
	set(g.table + 64, FUNCTAB, 8);
	fill_table(g.table, old);
	tree = made_section(g.m, ".rodata", SHT_PROGBITS, 0, NULL, 128);
	fill_tree(made_data(g.m, tree), old);
	s = made_section(g.m, where, SHT_PROGBITS, 0, NULL, 48 * 8);
	module = made_data(g.m, s);
	module[0] = header;
	module[20] = module[22] = g.text;
	module[old ? 38 : 40] = g.m->s[tree].sh_addr;
	g.e = made_open(g.m);
	return g;
}

/* As Go 1.14 (0xfffffffb, everything counts from the start) or 1.16 wrote it: whole addresses, pointers to
 * trees. version: of .go.buildinfo. */
static struct go make_old_go(uint32_t magic, const char *version)
{
	static const uint32_t tree[2][5] = { { 0, 0, 0, 11, 4 }, { 0, 0, 0, 28, 20 } };
	bool first = magic == 0xfffffffb;
	uint32_t base = first ? LISTS : 0, calls[2][5];
	struct go g = { .m = made_new(EM_X86_64) };
	size_t s = made_section(g.m, ".text", SHT_PROGBITS, SHF_EXECINSTR, NULL, TEXT), at;
	size_t functab = first ? 16 : FUNCTAB, number = first ? 4 : 3;
	uint64_t vaddr;
	uint8_t *info;

	g.text = g.m->s[s].sh_addr;
	s = made_section(g.m, ".gopclntab", SHT_PROGBITS, 0, NULL, SIZE);
	g.table = made_data(g.m, s);
	fill_table(g.table, true);
	memset(g.table + FUNCTAB, 0, SIZE - FUNCTAB);
	set(g.table, magic, 4);
	set(g.table + 4, 8u << 24 | 1u << 16, 4);
	set(g.table + 8, 1, 8);
	if (!first) {
		set(g.table + 24, NAMES, 8);
		set(g.table + 32, UNITS, 8);
		set(g.table + 40, FILES, 8);
		set(g.table + 48, LISTS, 8);
		set(g.table + 56, FUNCTAB, 8);
	} else {
		set(g.table + functab + 24, UNITS - 4, 4);	/* number 1 is the first */
		set(g.table + UNITS, FILES, 4);
		set(g.table + UNITS + 4, FILES + 9, 4);
		g.table[LISTS + PCFILE] = 2 * 2;
	}
	set(g.table + functab, g.text, 8);
	set(g.table + functab + 8, first ? RECORD : RECORD - FUNCTAB, 8);
	set(g.table + functab + 16, g.text + TEXT, 8);
	set(g.table + RECORD + 8, first ? NAMES : 0, 4);
	set(g.table + RECORD + 24, base + PCFILE, 4);
	set(g.table + RECORD + 28, base + PCLN, 4);
	set(g.table + RECORD + 32, 3, 4);
	at = RECORD + (first ? 36 : 40);
	g.table[at + 3] = (uint8_t)(number + 1);
	set(g.table + at + 4 + 8, base + PCTREE, 4);
	at = (at + 4 + 12 + 7) & ~(size_t)7;
	memcpy(calls, tree, sizeof(calls));
	calls[0][3] += first ? NAMES : 0;
	calls[1][3] += first ? NAMES : 0;
	s = made_section(g.m, ".rodata", SHT_PROGBITS, 0, NULL, 128);
	memcpy(made_data(g.m, s), calls, sizeof(calls));
	set(g.table + at + number * 8, g.m->s[s].sh_addr, 8);
	s = made_section(g.m, ".go.buildinfo", SHT_PROGBITS, 0, NULL, 64);
	info = made_data(g.m, s);
	vaddr = g.m->s[s].sh_addr;
	memcpy(info, "\xff Go buildinf:\x08", 15);
	set(info + 16, vaddr + 32, 8);
	set(info + 32, vaddr + 48, 8);
	memcpy(info + 48, version, strlen(version));
	g.e = made_open(g.m);
	return g;
}

static const char *look(struct golines *g, uint64_t at)
{
	struct line_chain c;
	int r = golines_lookup(g, at, &c);

	return r ? strerror(-r) : chain_text(&c);
}

START_TEST(chains)
{
	static const struct {
		uint32_t magic;
		const char *where;
	} cases[] = {
		{ 0xfffffff1, ".go.module" }, { 0xfffffff1, ".data" }, { 0xfffffff0, ".data" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct go go cleanup(go_cleanup) = make_go(cases[i].magic, cases[i].where);
		struct golines *g cleanup(golines_cleanup) = NULL;
		bool old = cases[i].magic == 0xfffffff0;
		struct line_chain c;

		ck_assert_int_eq(golines_open(go.e, true, &g), 0);
		ck_assert_str_eq(look(g, go.text), "main.outer:10");
		ck_assert_str_eq(look(g, go.text + 16), "main.middle[...]:20<main.outer:10");
		ck_assert_str_eq(look(g, go.text + 47), "main.inner:30<main.middle[...]:20<main.outer:10");
		ck_assert_int_eq(golines_lookup(g, go.text + 40, &c), 0);
		ck_assert_str_eq(c.v[0].file, "/src/b.go");
		ck_assert_str_eq(c.v[1].file, "/src/a.g");
		ck_assert_uint_eq(c.v[0].start_line, old ? 0 : 29);
		ck_assert_uint_eq(c.v[2].start_line, old ? 0 : 9);
		ck_assert_str_eq(look(g, go.text + 50), "main.outer:0");
		ck_assert_str_eq(look(g, go.text + TEXT), strerror(ENOENT));
		ck_assert_str_eq(look(g, go.text - 1), strerror(ENOENT));
	}
}
END_TEST

START_TEST(old_tables)
{
	static const struct {
		uint32_t magic;
		const char *version;
		bool inlines;
	} cases[] = {
		{ 0xfffffffb, "go1.14.3", true }, { 0xfffffffb, "go1.15", true },
		{ 0xfffffffb, "go1.13", false }, { 0xfffffffb, "devel", false },
		{ 0xfffffffa, "go1.16", true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct go go cleanup(go_cleanup) = make_old_go(cases[i].magic, cases[i].version);
		struct golines *g cleanup(golines_cleanup) = NULL;
		struct line_chain c;

		ck_assert_int_eq(golines_open(go.e, true, &g), 0);
		ck_assert_str_eq(look(g, go.text), "main.outer:10");
		ck_assert_str_eq(look(g, go.text + 47), cases[i].inlines ?
				 "main.inner:30<main.middle[...]:20<main.outer:10" : "main.outer:30");
		ck_assert_int_eq(golines_lookup(g, go.text + 40, &c), 0);
		ck_assert_str_eq(c.v[0].file, "/src/b.go");
		ck_assert_str_eq(look(g, go.text + TEXT), strerror(ENOENT));
	}
}
END_TEST

START_TEST(without_inlines)
{
	struct go go cleanup(go_cleanup) = make_go(0xfffffff1, ".go.module");
	struct golines *g cleanup(golines_cleanup) = NULL;

	ck_assert_int_eq(golines_open(go.e, false, &g), 0);
	ck_assert_str_eq(look(g, go.text + 40), "main.outer:30");
}
END_TEST

/* Each byte of the table turned around: no crash, no answer without a name. */
START_TEST(damage)
{
	struct go go cleanup(go_cleanup) = make_go(0xfffffff1, ".data");

	for (size_t at = 8; at < SIZE; at++) {
		struct golines *g cleanup(golines_cleanup) = NULL;
		struct line_chain c;

		go.table[at] ^= 0xff;
		if (!golines_open(go.e, true, &g))
			for (uint64_t pc = go.text; pc < go.text + TEXT; pc += 5)
				if (!golines_lookup(g, pc, &c))
					ck_assert(c.n >= 1 && c.v[0].name);
		go.table[at] ^= 0xff;
	}
}
END_TEST

START_TEST(a_call_within_itself)
{
	struct go go cleanup(go_cleanup) = make_go(0xfffffff1, ".data");
	struct golines *g cleanup(golines_cleanup) = NULL;
	struct line_chain c;
	uint8_t *tree = (uint8_t *)go.m + go.m->s[4].sh_offset + 32;

	set(tree + 8, 16, 4);	/* the place of the call is in the call */
	ck_assert_int_eq(golines_open(go.e, true, &g), 0);
	ck_assert_int_eq(golines_lookup(g, go.text + 20, &c), 0);
	ck_assert_uint_eq(c.n, GOLINES_DEPTH_MAX + 1);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { chains, old_tables, without_inlines, damage, a_call_within_itself };

	return made_run("golines", tests, ARRAY_SIZE(tests));
}
