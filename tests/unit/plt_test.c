/* Tests of symbol/plt.h. */
#include "made_elf.h"

#include "symbol/plt.h"

#define GOT UINT64_C(0x500000)	/* slot n is at GOT + 8 n */
#define FAR_SLOT (-0x20200)	/* 0x3ff000: before the code */
#define CODE SHF_EXECINSTR

/* The machine code of a section, written stub by stub. */
struct stubs {
	uint8_t code[512];
	size_t n;
	uint64_t addr;
};

static void put(struct stubs *s, const void *p, size_t n)
{
	ck_assert_uint_le(s->n + n, sizeof(s->code));
	memcpy(s->code + s->n, p, n);
	s->n += n;
}

#define BYTES(s, ...)                                                                              \
	put(s, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void fill(struct stubs *s, size_t align)
{
	while (s->n % align)
		BYTES(s, 0xcc);
}

/* jmp *slot(%rip) */
static void jump(struct stubs *s, uint64_t slot)
{
	uint32_t disp = (uint32_t)(slot - (s->addr + s->n + 6));

	BYTES(s, 0xff, 0x25);
	put(s, &disp, 4);
}

static void word(struct stubs *s, uint32_t v)
{
	put(s, &v, 4);
}

static Elf64_Rela reloc(int slot, uint32_t type, uint32_t sym, int64_t addend)
{
	return (Elf64_Rela){ .r_offset = GOT + 8 * (uint64_t)(int64_t)slot,
			     .r_info = ELF64_R_INFO((uint64_t)sym, type), .r_addend = addend };
}

static void add_relocs(struct made *m, const char *name, const Elf64_Rela *r, size_t n)
{
	made_section(m, name, SHT_RELA, 0, r, n * sizeof(*r));
}

static size_t add_stubs(struct made *m, const char *name, uint64_t entsize, const struct stubs *s)
{
	size_t i = made_section(m, name, SHT_PROGBITS, CODE, s->code, s->n);

	ck_assert_uint_eq(m->s[i].sh_addr, s->addr);
	m->s[i].sh_entsize = entsize;
	return i;
}

static struct symtab *named(struct made *m, int expected)
{
	struct elf *e cleanup(elf_cleanup) = made_open(m);
	struct symtab_builder *b = NULL;
	struct symtab *t = NULL;

	ck_assert_int_eq(symtab_builder_new(e, NULL, &b), 0);
	ck_assert_int_eq(plt_add(b, e), expected);
	ck_assert_int_eq(symtab_builder_finish(b, &t), 0);
	return t;
}

static const char *name_at(struct symtab *t, uint64_t addr)
{
	struct symbol s;

	return symtab_lookup(t, addr, &s) ? s.name : "";
}

static const char *const imports[] = { "read", "write@GLIBC_2.2.5", "open", NULL };

/* .plt as ld and lld write it without IBT: the stub jumps first. */
START_TEST(x86_plain)
{
	const Elf64_Rela relocs[] = { reloc(3, R_X86_64_JUMP_SLOT, 1, 0),
				      reloc(4, R_X86_64_JUMP_SLOT, 2, 0) };
	struct made *m cleanup(freep_cleanup) = made_new(EM_X86_64);
	struct symtab *t cleanup(symtab_cleanup) = NULL;
	struct stubs s = { .n = 0 };

	made_symbols(m, SHT_DYNSYM, 0, 0, imports);
	add_relocs(m, ".rela.plt", relocs, 2);
	s.addr = made_next(m);
	BYTES(&s, 0xff, 0x35, 0, 0, 0, 0);	/* push GOT[1]; jmp *GOT[2] */
	jump(&s, GOT + 16);
	fill(&s, 16);
	for (uint8_t i = 0; i < 2; i++) {
		jump(&s, GOT + 24 + 8 * i);
		BYTES(&s, 0x68, i, 0, 0, 0, 0xe9, 0, 0, 0, 0);
	}
	add_stubs(m, ".plt", 16, &s);
	t = named(m, 0);
	ck_assert_uint_eq(symtab_count(t), 2);
	ck_assert_str_eq(name_at(t, s.addr), "");
	ck_assert_str_eq(name_at(t, s.addr + 15), "");
	ck_assert_str_eq(name_at(t, s.addr + 16), "read@plt");
	ck_assert_str_eq(name_at(t, s.addr + 31), "read@plt");
	ck_assert_str_eq(name_at(t, s.addr + 32), "write@plt");
	ck_assert_str_eq(name_at(t, s.addr + 48), "");
}
END_TEST

/* With IBT: .plt pushes a number, .plt.sec jumps; .plt.got has functions whose address is taken. */
START_TEST(x86_ibt)
{
	const Elf64_Rela plt[] = { reloc(3, R_X86_64_JUMP_SLOT, 2, 0) };
	const Elf64_Rela dyn[] = { reloc(9, R_X86_64_RELATIVE, 0, 0x1234),
				   reloc(8, R_X86_64_GLOB_DAT, 3, 0) };
	struct made *m cleanup(freep_cleanup) = made_new(EM_X86_64);
	struct symtab *t cleanup(symtab_cleanup) = NULL;
	struct stubs p = { .n = 0 }, sec = { .n = 0 }, got = { .n = 0 };

	made_symbols(m, SHT_DYNSYM, 0, 0, imports);
	add_relocs(m, ".rela.dyn", dyn, 2);
	add_relocs(m, ".rela.plt", plt, 1);
	p.addr = made_next(m);
	BYTES(&p, 0xf3, 0x0f, 0x1e, 0xfa, 0x68, 0, 0, 0, 0, 0xf2, 0xe9, 0, 0, 0, 0, 0x90);
	BYTES(&p, 0xf3, 0x0f, 0x1e, 0xfa, 0x68, 1, 0, 0, 0, 0xf2, 0xe9, 0, 0, 0, 0, 0x90);
	add_stubs(m, ".plt", 16, &p);
	sec.addr = made_next(m);
	BYTES(&sec, 0xf3, 0x0f, 0x1e, 0xfa, 0xf2);
	jump(&sec, GOT + 24);
	fill(&sec, 16);
	BYTES(&sec, 0xf3, 0x0f, 0x1e, 0xfa);
	jump(&sec, GOT + 72);	/* no call goes through this slot */
	fill(&sec, 16);
	add_stubs(m, ".plt.sec", 16, &sec);
	got.addr = made_next(m);
	jump(&got, GOT + 64);
	BYTES(&got, 0x66, 0x90);
	add_stubs(m, ".plt.got", 8, &got);
	t = named(m, 0);
	ck_assert_str_eq(name_at(t, p.addr), "write@plt");
	ck_assert_str_eq(name_at(t, p.addr + 16), "");
	ck_assert_str_eq(name_at(t, sec.addr + 5), "write@plt");
	ck_assert_str_eq(name_at(t, sec.addr + 16), "");
	ck_assert_str_eq(name_at(t, got.addr + 7), "open@plt");
	ck_assert_str_eq(name_at(t, got.addr + 8), "");
}
END_TEST

/* A slot for an IFUNC of the file itself: the best name of its resolver. */
START_TEST(ifunc)
{
	struct made *m cleanup(freep_cleanup) = made_new(EM_X86_64);
	struct symtab *t cleanup(symtab_cleanup) = NULL;
	const uint64_t resolver = 0x400800;
	const Elf64_Rela relocs[] = { reloc(3, R_X86_64_IRELATIVE, 0, (int64_t)resolver),
				      reloc(4, R_X86_64_IRELATIVE, 0, 0x400999) };
	struct stubs s = { .n = 0 };
	size_t dynsym = made_symbols(m, SHT_DYNSYM, 1, resolver, (const char *const[]){
		"__memcpy_private", "memcpy@@GLIBC_2.14", "unrelated", NULL });
	Elf64_Sym *sym = made_data(m, dynsym);

	sym[1].st_info = sym[2].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_GNU_IFUNC);
	sym[2].st_value = resolver;
	add_relocs(m, ".rela.plt", relocs, 2);
	s.addr = made_next(m);
	jump(&s, GOT + 24);
	fill(&s, 16);
	jump(&s, GOT + 32);
	fill(&s, 16);
	add_stubs(m, ".iplt", 16, &s);
	t = named(m, 0);
	ck_assert_uint_eq(symtab_count(t), 1);
	ck_assert_str_eq(name_at(t, s.addr), "memcpy@plt");
}
END_TEST

/* adrp x16, PAGE; ldr x17, [x16, #LOW]; add x16, x16, #LOW; br x17 */
static void arm64_stub(struct stubs *s, uint64_t slot, bool bti)
{
	uint64_t at = s->addr + s->n + (bti ? 4 : 0), pages;

	pages = (slot >> 12) - (at >> 12);
	if (bti)
		word(s, 0xd503245f);
	word(s, (uint32_t)(0x90000010 | (pages & 3) << 29 | (pages >> 2 & 0x7ffff) << 5));
	word(s, (uint32_t)(0xf9400211 | (slot & 0xfff) / 8 << 10));
	word(s, (uint32_t)(0x91000210 | (slot & 0xfff) << 10));
	word(s, 0xd61f0220);
	if (bti)
		word(s, 0xd503201f);
}

START_TEST(arm64)
{
	const Elf64_Rela relocs[] = { reloc(3, R_AARCH64_JUMP_SLOT, 1, 0),
				      reloc(4, R_AARCH64_JUMP_SLOT, 2, 0),
				      reloc(FAR_SLOT, R_AARCH64_JUMP_SLOT, 3, 0) };
	struct made *m cleanup(freep_cleanup) = made_new(EM_AARCH64);
	struct symtab *t cleanup(symtab_cleanup) = NULL;
	struct stubs s = { .n = 0 };

	made_symbols(m, SHT_DYNSYM, 0, 0, imports);
	add_relocs(m, ".rela.plt", relocs, 3);
	s.addr = made_next(m);
	word(&s, 0xa9bf7bf0);	/* the first entry: stp x16, x30, [sp, #-16]! ... */
	arm64_stub(&s, GOT + 16, false);
	word(&s, 0xd503201f);
	arm64_stub(&s, GOT + 24, false);
	arm64_stub(&s, GOT + 32, true);
	arm64_stub(&s, GOT + 8 * (uint64_t)(int64_t)FAR_SLOT, false);
	add_stubs(m, ".plt", 0, &s);
	t = named(m, 0);
	ck_assert_uint_eq(symtab_count(t), 3);
	ck_assert_str_eq(name_at(t, s.addr + 4), "");
	ck_assert_str_eq(name_at(t, s.addr + 24), "read@plt");
	ck_assert_str_eq(name_at(t, s.addr + 39), "read@plt");
	ck_assert_str_eq(name_at(t, s.addr + 40), "write@plt");
	ck_assert_str_eq(name_at(t, s.addr + 59), "write@plt");
	ck_assert_str_eq(name_at(t, s.addr + 64), "open@plt");
}
END_TEST

START_TEST(nothing_to_name)
{
	struct made *m cleanup(freep_cleanup) = made_new(EM_X86_64);

	made_symbols(m, SHT_DYNSYM, 0, 0, imports);
	symtab_free(named(m, -ENOENT));
}
END_TEST

START_TEST(hostile)
{
	const Elf64_Rela relocs[] = { reloc(3, R_X86_64_JUMP_SLOT, 99, 0),	/* no such symbol */
				      reloc(4, R_X86_64_JUMP_SLOT, 0, 0),
				      reloc(5, R_X86_64_JUMP_SLOT, 1, 0),
				      reloc(6, R_X86_64_JUMP_SLOT, 2, 0) };
	struct made *m cleanup(freep_cleanup) = made_new(EM_X86_64);
	struct symtab *t cleanup(symtab_cleanup) = NULL;
	struct stubs s = { .n = 0 };
	Elf64_Sym *sym = made_data(m, made_symbols(m, SHT_DYNSYM, 0, 0, imports));
	size_t r;

	sym[2].st_name = UINT32_MAX;
	add_relocs(m, ".rela.plt", relocs, ARRAY_SIZE(relocs));
	r = made_section(m, ".rela.nonsense", SHT_RELA, 0, NULL, 24);
	m->s[r].sh_offset = UINT64_MAX - 7;
	s.addr = made_next(m);
	for (uint32_t i = 3; i < 7; i++) {
		jump(&s, GOT + 8 * i);
		fill(&s, 16);
	}
	BYTES(&s, 0x68, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	BYTES(&s, 0xff, 0x25, 1);	/* cut off */
	add_stubs(m, ".plt", 16, &s);
	t = named(m, 0);
	ck_assert_uint_eq(symtab_count(t), 1);
	ck_assert_str_eq(name_at(t, s.addr + 32), "read@plt");
}
END_TEST

START_TEST(stubs_beyond_the_file)
{
	struct made *m cleanup(freep_cleanup) = made_new(EM_X86_64);
	size_t s = made_section(m, ".plt", SHT_PROGBITS, CODE, NULL, 32);

	m->s[s].sh_size = UINT64_MAX - m->s[s].sh_addr;
	symtab_free(named(m, -EBADMSG));
	m->s[s].sh_size = UINT64_MAX;
	symtab_free(named(m, -EBADMSG));
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { x86_plain, x86_ibt, ifunc, arm64, nothing_to_name, hostile,
				       stubs_beyond_the_file };

	return made_run("plt", tests, ARRAY_SIZE(tests));
}
