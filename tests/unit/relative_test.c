/* Tests of elf/relative.h: relocations by their section, and by .dynamic where there are no sections. */
#include "made_elf.h"

#include "elf/relative.h"

struct file {
	struct made *m;
	uint64_t data, dynamic, rela;	/* addresses */
};

/* Three words: 7, and two zeros of which relocations fill the second with 0x1234. */
static struct file make(uint64_t relasz)
{
	static const uint64_t words[3] = { 7, 0, 0 };
	struct file f = { .m = made_new(EM_X86_64) };
	size_t s = made_section(f.m, ".data", SHT_PROGBITS, SHF_WRITE, words, sizeof(words));
	Elf64_Rela relocs[3];
	Elf64_Dyn dynamic[3] = { { .d_tag = DT_RELA }, { .d_tag = DT_RELASZ }, { .d_tag = DT_NULL } };
	Elf64_Phdr p[2];

	f.data = f.m->s[s].sh_addr;
	relocs[0] = (Elf64_Rela){ f.data + 8, R_X86_64_GLOB_DAT, 0x1234 };
	relocs[1] = (Elf64_Rela){ f.data + 8, R_X86_64_RELATIVE, 0x1234 };
	relocs[2] = (Elf64_Rela){ f.data, R_X86_64_RELATIVE, 0x1234 };
	s = made_section(f.m, ".rela.dyn", SHT_RELA, 0, relocs, sizeof(relocs));
	dynamic[0].d_un.d_ptr = f.rela = f.m->s[s].sh_addr;
	dynamic[1].d_un.d_val = relasz;
	s = made_section(f.m, ".dynamic", SHT_DYNAMIC, 0, dynamic, sizeof(dynamic));
	p[0] = f.m->p;
	p[1] = (Elf64_Phdr){ .p_type = PT_DYNAMIC, .p_offset = f.m->s[s].sh_offset,
			     .p_vaddr = f.m->s[s].sh_addr, .p_filesz = sizeof(dynamic),
			     .p_memsz = sizeof(dynamic) };
	s = made_section(f.m, ".phdrs", SHT_PROGBITS, 0, p, sizeof(p));
	f.m->h.e_phoff = f.m->s[s].sh_offset;
	f.m->h.e_phnum = 2;
	return f;
}

static void check_found(struct file *f)
{
	struct elf *e cleanup(elf_cleanup) = made_open(f->m);
	uint64_t v = 1;

	ck_assert_int_eq(relative_addend(e, f->data + 8, &v), 0);
	ck_assert_uint_eq(v, 0x1234);
	ck_assert_int_eq(relative_addend(e, f->data + 16, &v), -ENOENT);
	ck_assert_int_eq(relative_slot(e, 0x1234, 0, &v), 0);
	ck_assert_uint_eq(v, f->data + 8);
	ck_assert_int_eq(relative_slot(e, 0x1234, 1, &v), 0);
	ck_assert_uint_eq(v, f->data);
	ck_assert_int_eq(relative_slot(e, 0x1234, 2, &v), -ENOENT);
}

START_TEST(by_section)
{
	struct file f = make(0);

	check_found(&f);
	free(f.m);
}
END_TEST

START_TEST(by_dynamic)
{
	struct file f = make(3 * sizeof(Elf64_Rela));

	f.m->h.e_shoff = 0;
	check_found(&f);
	free(f.m);
}
END_TEST

START_TEST(damaged_dynamic)
{
	const uint64_t sizes[] = { 0, 8, UINT64_MAX, sizeof(struct made) };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct file f = make(sizes[i]);
		struct elf *e;
		uint64_t v;

		f.m->h.e_shoff = 0;
		e = made_open(f.m);
		ck_assert_int_eq(relative_addend(e, f.data + 8, &v), -ENOENT);
		elf_free(e);
		free(f.m);
	}
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { by_section, by_dynamic, damaged_dynamic };

	return made_run("relative", tests, ARRAY_SIZE(tests));
}
