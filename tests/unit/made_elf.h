/* made_elf.h - small ELF files, made section by section for tests. One segment maps the whole file
 * at MADE_BASE, readable and executable, so that a section's address is MADE_BASE + its offset.
 *
 *	struct made *m = made_new(EM_X86_64);
 *	size_t text = made_section(m, ".text", SHT_PROGBITS, SHF_EXECINSTR, code, sizeof(code));
 *	struct elf *e = made_open(m);		// m->s[text].sh_addr is its address
 */
#ifndef WICK_TESTS_MADE_ELF_H
#define WICK_TESTS_MADE_ELF_H

#include <check.h>
#include <elf.h>
#include <fcntl.h>

#include "elf/elf.h"

#define MADE_BASE UINT64_C(0x400000)

struct made {
	Elf64_Ehdr h;
	Elf64_Phdr p;
	uint8_t data[96 << 10];
	Elf64_Shdr s[16];
	char names[512];
	size_t ndata, nsections, nnames;
};

static inline struct made *made_new(uint16_t machine)
{
	struct made *m = calloc(1, sizeof(*m));

	ck_assert_ptr_nonnull(m);
	memcpy(m->h.e_ident, ELFMAG, SELFMAG);
	m->h.e_ident[EI_CLASS] = ELFCLASS64;
	m->h.e_ident[EI_DATA] = ELFDATA2LSB;
	m->h.e_ident[EI_VERSION] = EV_CURRENT;
	m->h.e_type = ET_EXEC;
	m->h.e_machine = machine;
	m->h.e_phoff = offsetof(struct made, p);
	m->h.e_phentsize = sizeof(m->p);
	m->h.e_phnum = 1;
	m->h.e_shoff = offsetof(struct made, s);
	m->h.e_shentsize = sizeof(m->s[0]);
	m->p = (Elf64_Phdr){ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = MADE_BASE,
			     .p_filesz = offsetof(struct made, s),
			     .p_memsz = offsetof(struct made, s) };
	m->nsections = 2;	/* the null section and .shstrtab */
	m->nnames = 1;
	m->s[1] = (Elf64_Shdr){ .sh_type = SHT_STRTAB, .sh_offset = offsetof(struct made, names),
				.sh_size = sizeof(m->names) };
	m->h.e_shstrndx = 1;
	return m;
}

/* The address that the next section will have. */
static inline uint64_t made_next(const struct made *m)
{
	return MADE_BASE + offsetof(struct made, data) + ((m->ndata + 15) & ~(size_t)15);
}

/* Its index. data may be NULL: n zeros. */
static inline size_t made_section(struct made *m, const char *name, uint32_t type, uint64_t flags,
				  const void *data, size_t n)
{
	size_t len = strlen(name) + 1;
	Elf64_Shdr *s = &m->s[m->nsections];

	m->ndata = (m->ndata + 15) & ~(size_t)15;
	ck_assert_uint_le(n, sizeof(m->data) - m->ndata);
	ck_assert_uint_le(len, sizeof(m->names) - m->nnames);
	ck_assert_uint_lt(m->nsections, ARRAY_SIZE(m->s));
	*s = (Elf64_Shdr){ .sh_name = (uint32_t)m->nnames, .sh_type = type,
			   .sh_flags = flags | SHF_ALLOC,
			   .sh_offset = offsetof(struct made, data) + m->ndata,
			   .sh_addr = MADE_BASE + offsetof(struct made, data) + m->ndata,
			   .sh_size = n };
	memcpy(m->names + m->nnames, name, len);
	if (data)
		memcpy(m->data + m->ndata, data, n);
	m->nnames += len;
	m->ndata += n;
	return m->nsections++;
}

static inline void *made_data(struct made *m, size_t section)
{
	return (uint8_t *)m + m->s[section].sh_offset;
}

/* .symtab or .dynsym with its strings: the null symbol and one function for each name, of 16 bytes
 * each from addr. The names end with NULL. */
static inline size_t made_symbols(struct made *m, uint32_t type, uint16_t in_section, uint64_t addr,
				  const char *const *names)
{
	Elf64_Sym syms[32] = { { 0 } };
	char strings[1024] = "";
	size_t n = 1, at = 1, index;

	for (; *names; names++, n++) {
		ck_assert(n < ARRAY_SIZE(syms) && at + strlen(*names) < sizeof(strings));
		syms[n] = (Elf64_Sym){ .st_name = (uint32_t)at, .st_value = addr + 16 * (n - 1),
				       .st_size = in_section ? 16 : 0, .st_shndx = in_section,
				       .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC) };
		strcpy(strings + at, *names);
		at += strlen(*names) + 1;
	}
	index = made_section(m, type == SHT_SYMTAB ? ".symtab" : ".dynsym", type, 0, syms,
			     n * sizeof(*syms));
	m->s[index].sh_link = (uint32_t)made_section(
		m, type == SHT_SYMTAB ? ".strtab" : ".dynstr", SHT_STRTAB, 0, strings, at);
	return index;
}

static inline void made_build_id(struct made *m, const char *id, size_t n)
{
	struct {
		Elf64_Nhdr h;
		char name[4], desc[ELF_BUILD_ID_MAX];
	} note = { { 4, (uint32_t)n, NT_GNU_BUILD_ID }, "GNU", "" };

	memcpy(note.desc, id, n);
	made_section(m, ".note.gnu.build-id", SHT_NOTE, 0, &note, sizeof(note.h) + 4 + n);
}

static inline struct elf *made_open(struct made *m)
{
	struct elf *e = NULL;

	m->h.e_shnum = (uint16_t)m->nsections;
	ck_assert_int_eq(elf_open_memory(m, sizeof(*m), &e, NULL), 0);
	return e;
}

static inline void made_write(struct made *m, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	m->h.e_shnum = (uint16_t)m->nsections;
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, m, sizeof(*m)), sizeof(*m));
	ck_assert_int_eq(close(fd), 0);
}

static inline int made_run(const char *name, const TTest *const *tests, size_t n)
{
	Suite *s = suite_create(name);
	TCase *t = tcase_create(name);
	SRunner *runner;
	int failed;

	for (size_t i = 0; i < n; i++)
		tcase_add_test(t, tests[i]);
	tcase_set_timeout(t, 60);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
