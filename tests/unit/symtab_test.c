/* Tests of symbol/symtab.h and symbol/alias.h. */
#include <check.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "symbol/alias.h"
#include "symbol/symtab.h"

#define BASE 0x400000u
#define TEXT 0x401000u	/* .text: 0x1000 bytes, then .fini: 0x100 */
#define FINI 0x402000u

/* A program that is only its headers: sections and segments without contents, and
 * the symbol tables that the tests fill. */
struct image {
	Elf64_Ehdr h;
	Elf64_Phdr p[2];
	Elf64_Shdr s[8];
	char names[16];
	Elf64_Sym sym[32], dyn[32];
	char str[1024];
	size_t nsym, ndyn, nstr;
};

enum { SEC_TEXT = 1, SEC_FINI, SEC_DATA, SEC_STR, SEC_SYMTAB, SEC_DYNSYM };

static struct image *image_new(void)
{
	struct image *i = calloc(1, sizeof(*i));

	ck_assert_ptr_nonnull(i);
	memcpy(i->h.e_ident, ELFMAG, SELFMAG);
	i->h.e_ident[EI_CLASS] = ELFCLASS64;
	i->h.e_ident[EI_DATA] = ELFDATA2LSB;
	i->h.e_ident[EI_VERSION] = EV_CURRENT;
	i->h.e_type = ET_EXEC;
	i->h.e_machine = EM_X86_64;
	i->h.e_phoff = offsetof(struct image, p);
	i->h.e_phentsize = sizeof(Elf64_Phdr);
	i->h.e_phnum = 1;
	i->p[0] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_flags = PF_X, .p_vaddr = BASE,
				.p_filesz = 0x3000, .p_memsz = 0x3000 };
	i->h.e_shoff = offsetof(struct image, s);
	i->h.e_shentsize = sizeof(Elf64_Shdr);
	i->h.e_shnum = 7;
	i->s[SEC_TEXT] = (Elf64_Shdr){ .sh_type = SHT_PROGBITS, .sh_flags = SHF_EXECINSTR,
				       .sh_addr = TEXT, .sh_size = 0x1000 };
	i->s[SEC_FINI] = (Elf64_Shdr){ .sh_type = SHT_PROGBITS, .sh_flags = SHF_EXECINSTR,
				       .sh_addr = FINI, .sh_size = 0x100 };
	i->s[SEC_DATA] = (Elf64_Shdr){ .sh_type = SHT_PROGBITS, .sh_addr = 0x402100,
				       .sh_size = 0x100 };
	i->s[SEC_STR] = (Elf64_Shdr){ .sh_type = SHT_STRTAB,
				      .sh_offset = offsetof(struct image, str),
				      .sh_size = sizeof(i->str) };
	i->nstr = 1;
	return i;
}

static Elf64_Sym make(struct image *i, const char *name, unsigned int type, unsigned int bind,
		      uint64_t addr, uint64_t size)
{
	size_t n = strlen(name) + 1;
	Elf64_Sym s = { .st_name = (uint32_t)i->nstr, .st_value = addr, .st_size = size,
			.st_info = (unsigned char)ELF64_ST_INFO(bind, type),
			.st_shndx = addr < FINI ? SEC_TEXT : addr < FINI + 0x100 ? SEC_FINI
										 : SEC_DATA };

	ck_assert_uint_le(i->nstr + n, sizeof(i->str));
	memcpy(i->str + i->nstr, name, n);
	i->nstr += n;
	return s;
}

static void sym(struct image *i, const char *name, unsigned int type, unsigned int bind,
		uint64_t addr, uint64_t size)
{
	i->sym[i->nsym++] = make(i, name, type, bind, addr, size);
}

static void dyn(struct image *i, const char *name, uint64_t addr, uint64_t size)
{
	i->dyn[i->ndyn++] = make(i, name, STT_FUNC, STB_GLOBAL, addr, size);
}

static struct elf *opened(struct image *i)
{
	struct elf *e = NULL;

	i->s[SEC_SYMTAB] = (Elf64_Shdr){ .sh_type = SHT_SYMTAB, .sh_link = SEC_STR,
					 .sh_offset = offsetof(struct image, sym),
					 .sh_size = i->nsym * sizeof(Elf64_Sym) };
	i->s[SEC_DYNSYM] = (Elf64_Shdr){ .sh_type = SHT_DYNSYM, .sh_link = SEC_STR,
					 .sh_offset = offsetof(struct image, dyn),
					 .sh_size = i->ndyn * sizeof(Elf64_Sym) };
	ck_assert_int_eq(elf_open_memory(i, sizeof(*i), &e, NULL), 0);
	return e;
}

static struct symtab *built(struct image *i, const struct symtab_limits *limits)
{
	struct elf *e cleanup(elf_cleanup) = opened(i);
	struct symtab *t = NULL;

	ck_assert_int_eq(symtab_build(e, limits, &t), 0);
	return t;
}

static const char *name_at(struct symtab *t, uint64_t addr)
{
	struct symbol s;

	if (!symtab_lookup(t, addr, &s))
		return "";
	ck_assert(s.start <= addr && addr - s.start < s.size);
	return s.name;
}

#define ck_name(t, addr, name) ck_assert_str_eq(name_at(t, addr), name)

START_TEST(sizes_are_honoured)
{
	struct image *i cleanup(freep_cleanup) = image_new();
	struct symtab *t cleanup(symtab_cleanup) = NULL;

	sym(i, "b", STT_FUNC, STB_GLOBAL, TEXT + 0x40, 0x20);
	sym(i, "a", STT_FUNC, STB_LOCAL, TEXT + 0x10, 0x10);
	sym(i, "huge", STT_FUNC, STB_LOCAL, FINI + 0x10, UINT64_MAX);
	t = built(i, NULL);
	ck_assert_uint_eq(symtab_count(t), 3);
	ck_name(t, TEXT + 0xf, "");
	ck_name(t, TEXT + 0x10, "a");
	ck_name(t, TEXT + 0x1f, "a");
	ck_name(t, TEXT + 0x20, "");
	ck_name(t, TEXT + 0x5f, "b");
	ck_name(t, TEXT + 0x60, "");
	ck_name(t, FINI + 0xff, "huge");	/* cut off at its section's end */
	ck_name(t, FINI + 0x100, "");
	ck_name(t, 0, "");
	ck_name(t, UINT64_MAX, "");
	ck_name(t, TEXT + 0x10 + (1ull << 32), "");
}
END_TEST

START_TEST(what_counts)
{
	struct image *i cleanup(freep_cleanup) = image_new();
	struct symtab *t cleanup(symtab_cleanup) = NULL;

	sym(i, "object", STT_OBJECT, STB_GLOBAL, TEXT, 8);
	sym(i, "tls", STT_TLS, STB_GLOBAL, TEXT, 8);
	sym(i, "section", STT_SECTION, STB_LOCAL, TEXT, 8);
	sym(i, "in_data", STT_FUNC, STB_GLOBAL, 0x402180, 8);
	sym(i, "elsewhere", STT_FUNC, STB_GLOBAL, TEXT - 1, 8);
	sym(i, "imported", STT_FUNC, STB_GLOBAL, TEXT, 8);
	i->sym[i->nsym - 1].st_shndx = SHN_UNDEF;
	sym(i, "absolute", STT_FUNC, STB_GLOBAL, TEXT, 8);
	i->sym[i->nsym - 1].st_shndx = SHN_ABS;
	sym(i, "badname", STT_FUNC, STB_GLOBAL, TEXT, 8);
	i->sym[i->nsym - 1].st_name = sizeof(i->str);
	sym(i, "$x", STT_NOTYPE, STB_LOCAL, TEXT + 0x20, 0);
	sym(i, "$d.17", STT_NOTYPE, STB_LOCAL, TEXT + 0x20, 0);
	sym(i, ".annobin_end", STT_NOTYPE, STB_LOCAL, TEXT + 0x20, 0);
	sym(i, "", STT_FUNC, STB_LOCAL, TEXT + 0x20, 4);
	sym(i, "ifunc", STT_GNU_IFUNC, STB_GLOBAL, TEXT + 0x40, 8);
	sym(i, "$xylophone", STT_FUNC, STB_GLOBAL, TEXT + 0x60, 8);
	t = built(i, NULL);
	ck_assert_uint_eq(symtab_count(t), 2);
	ck_assert_uint_eq(symtab_dropped(t), 1);
	ck_assert_int_eq(symtab_limited(t), 0);
	ck_name(t, TEXT + 0x47, "ifunc");
	ck_name(t, TEXT + 0x60, "$xylophone");
}
END_TEST

START_TEST(unsized)
{
	struct image *i cleanup(freep_cleanup) = image_new();
	struct symtab *t cleanup(symtab_cleanup) = NULL;

	sym(i, "sized", STT_FUNC, STB_GLOBAL, TEXT + 0x100, 0x40);
	sym(i, "jump_target", STT_NOTYPE, STB_LOCAL, TEXT + 0x120, 0);
	sym(i, "same_start", STT_FUNC, STB_GLOBAL, TEXT + 0x100, 0);
	sym(i, "assembly", STT_FUNC, STB_LOCAL, TEXT + 0x80, 0);
	sym(i, "label", STT_NOTYPE, STB_GLOBAL, TEXT + 0xf00, 0);
	sym(i, "etext", STT_NOTYPE, STB_GLOBAL, FINI, 0);
	i->sym[i->nsym - 1].st_shndx = SEC_TEXT;	/* at the end of .text: names nothing */
	dyn(i, "exported", TEXT + 0x300, 0);
	t = built(i, NULL);
	ck_name(t, TEXT + 0x7f, "");
	ck_name(t, TEXT + 0x80, "assembly");
	ck_name(t, TEXT + 0xff, "assembly");	/* up to the next symbol */
	ck_name(t, TEXT + 0x100, "sized");
	ck_name(t, TEXT + 0x120, "sized");
	ck_name(t, TEXT + 0x140, "");
	ck_name(t, TEXT + 0x300, "exported");	/* .dynsym: its own address only */
	ck_name(t, TEXT + 0x301, "");
	ck_name(t, TEXT + 0xfff, "label");	/* up to the end of the section */
	ck_name(t, FINI, "");
}
END_TEST

START_TEST(innermost_wins)
{
	struct image *i cleanup(freep_cleanup) = image_new();
	struct symtab *t cleanup(symtab_cleanup) = NULL;

	sym(i, "outer", STT_FUNC, STB_GLOBAL, TEXT, 0x100);
	sym(i, "first", STT_FUNC, STB_GLOBAL, TEXT, 0x10);
	sym(i, "middle", STT_FUNC, STB_GLOBAL, TEXT + 0x20, 0x40);
	sym(i, "inner", STT_FUNC, STB_GLOBAL, TEXT + 0x30, 0x10);
	sym(i, "across", STT_FUNC, STB_GLOBAL, TEXT + 0xf0, 0x20);
	t = built(i, NULL);
	ck_name(t, TEXT + 0xf, "first");
	ck_name(t, TEXT + 0x10, "outer");
	ck_name(t, TEXT + 0x20, "middle");
	ck_name(t, TEXT + 0x30, "inner");
	ck_name(t, TEXT + 0x40, "middle");
	ck_name(t, TEXT + 0x60, "outer");
	ck_name(t, TEXT + 0xef, "outer");
	ck_name(t, TEXT + 0xf0, "across");
	ck_name(t, TEXT + 0x10f, "across");
	ck_name(t, TEXT + 0x110, "");
}
END_TEST

START_TEST(nesting_is_limited)
{
	struct image *i cleanup(freep_cleanup) = image_new();
	struct elf *e cleanup(elf_cleanup) = opened(i);
	struct symtab_builder *b cleanup(symtab_builder_cleanup) = NULL;
	struct symtab *t cleanup(symtab_cleanup) = NULL;

	ck_assert_int_eq(symtab_builder_new(e, NULL, &b), 0);
	for (uint64_t k = 0; k < 1000; k++)
		ck_assert_int_eq(symtab_builder_add(b, "nest", 4, TEXT + k, 3000 - 2 * k, 0), 0);
	ck_assert_int_eq(symtab_builder_finish(take(b), &t), 0);
	ck_name(t, TEXT + 999, "nest");
	ck_name(t, TEXT + 2000 - SYMTAB_NESTING_MAX / 2, "nest");
	ck_name(t, TEXT + 2990, "");	/* covered, but a thousand levels up */
}
END_TEST

START_TEST(one_name_for_one_place)
{
	static const char *const names[][2] = {	/* the better one first */
		{ "puts", "_IO_puts" },
		{ "malloc", "__libc_malloc" },
		{ "a_long_name", "short.part.0" },
		{ "_ZN1AC1Ev", "_ZN1AC2Ev" },
		{ "abc", "abcd" },
		{ "abc", "abd" },
	};

	for (size_t k = 0; k < ARRAY_SIZE(names) * 2; k++) {
		struct image *i cleanup(freep_cleanup) = image_new();
		struct symtab *t cleanup(symtab_cleanup) = NULL;

		sym(i, names[k / 2][k & 1], STT_FUNC, STB_WEAK, TEXT, 8);
		sym(i, names[k / 2][!(k & 1)], STT_FUNC, STB_GLOBAL, TEXT, 8);
		t = built(i, NULL);
		ck_assert_uint_eq(symtab_count(t), 1);
		ck_name(t, TEXT, names[k / 2][0]);
	}
	ck_assert_int_lt(alias_compare(alias_rank("__f", 3, false, false), "__f",
				       alias_rank("g", 1, false, true), "g"), 0);
	ck_assert_int_lt(alias_compare(alias_rank("__f", 3, false, true), "__f",
				       alias_rank("g", 1, true, false), "g"), 0);
	ck_assert_int_eq(alias_compare(alias_rank("f", 1, false, true), "f",
				       alias_rank("f", 1, false, true), "f"), 0);
}
END_TEST

START_TEST(versions_are_no_names)
{
	struct image *i cleanup(freep_cleanup) = image_new();
	struct symtab *t cleanup(symtab_cleanup) = NULL;

	sym(i, "read@@GLIBC_2.2.5", STT_FUNC, STB_GLOBAL, TEXT, 8);
	sym(i, "write@GLIBC_2.2.5", STT_FUNC, STB_GLOBAL, TEXT + 8, 8);
	sym(i, "@at", STT_FUNC, STB_GLOBAL, TEXT + 16, 8);
	t = built(i, NULL);
	ck_name(t, TEXT, "read");
	ck_name(t, TEXT + 8, "write");
	ck_name(t, TEXT + 16, "@at");
}
END_TEST

START_TEST(both_tables_and_more)
{
	struct image *i cleanup(freep_cleanup) = image_new();
	struct elf *e cleanup(elf_cleanup) = NULL;
	struct symtab_builder *b cleanup(symtab_builder_cleanup) = NULL;
	struct symtab *t cleanup(symtab_cleanup) = NULL;
	struct symbol s;

	sym(i, "local", STT_FUNC, STB_LOCAL, TEXT, 8);
	sym(i, "both", STT_FUNC, STB_GLOBAL, TEXT + 8, 8);
	dyn(i, "both", TEXT + 8, 8);
	dyn(i, "exported", TEXT + 16, 8);
	e = opened(i);
	ck_assert_int_eq(symtab_builder_new(e, NULL, &b), 0);
	ck_assert_int_eq(symtab_builder_add(b, "read@plt, cut", 8, TEXT + 24, 16, 0), 0);
	ck_assert_int_eq(symtab_builder_add_elf(b, e), 0);
	ck_assert_int_eq(symtab_builder_add(b, "fde", 3, TEXT + 64, 64,
					    SYMTAB_LOCAL | SYMTAB_OPEN), 0);
	ck_assert_int_eq(symtab_builder_add(b, "point", 5, TEXT + 200, 0, 0), 0);
	ck_assert_int_eq(symtab_builder_finish(take(b), &t), 0);
	ck_assert_uint_eq(symtab_count(t), 6);
	ck_name(t, TEXT + 7, "local");
	ck_name(t, TEXT + 15, "both");
	ck_name(t, TEXT + 23, "exported");
	ck_name(t, TEXT + 24, "read@plt");
	ck_name(t, TEXT + 127, "fde");
	ck_name(t, TEXT + 128, "");
	ck_name(t, TEXT + 200, "point");
	ck_name(t, TEXT + 201, "");
	symtab_get(t, 0, &s);
	ck_assert(s.start == TEXT && s.size == 8);
}
END_TEST

START_TEST(limits_are_counted)
{
	struct symtab_limits few = { 2, 1 << 20, 1 << 20 };
	struct symtab_limits no_strings = { 100, 4, 1 << 20 };
	struct symtab_limits no_names = { 100, 1 << 20, 4 };
	struct symtab_limits nothing = { 0 };
	struct symtab_limits no_time = { 100, 1 << 20, 1 << 20, 1 };
	struct image *i cleanup(freep_cleanup) = image_new();
	struct symtab *t;

	sym(i, "aa", STT_FUNC, STB_GLOBAL, TEXT, 8);
	sym(i, "bb", STT_FUNC, STB_GLOBAL, TEXT + 8, 8);
	sym(i, "cc", STT_FUNC, STB_GLOBAL, TEXT + 16, 8);
	t = built(i, &few);
	ck_assert(symtab_count(t) == 2 && symtab_dropped(t) == 1);
	ck_assert_int_eq(symtab_limited(t), -E2BIG);
	symtab_free(t);
	t = built(i, &no_strings);	/* "" and the "aa" that was cut */
	ck_assert_uint_eq(symtab_dropped(t), 2);
	ck_assert_int_eq(symtab_limited(t), -E2BIG);
	symtab_free(t);
	t = built(i, &no_names);
	ck_assert(symtab_count(t) == 1 && symtab_dropped(t) == 2);
	symtab_free(t);
	t = built(i, &nothing);
	ck_assert(symtab_count(t) == 0 && symtab_dropped(t) == 3);
	ck_name(t, TEXT, "");
	symtab_free(t);
	t = built(i, &no_time);
	ck_assert(symtab_count(t) == 0 && symtab_limited(t) == -ETIME);
	symtab_free(t);
}
END_TEST

START_TEST(broken_tables)
{
	struct image *i cleanup(freep_cleanup) = image_new();
	struct elf *e cleanup(elf_cleanup) = NULL;
	struct symtab *t cleanup(symtab_cleanup) = NULL;

	sym(i, "a", STT_FUNC, STB_GLOBAL, TEXT, 8);
	dyn(i, "b", TEXT + 8, 8);
	elf_free(opened(i));	/* writes the section headers, which are spoilt now */
	i->s[SEC_SYMTAB].sh_size = UINT64_MAX;
	ck_assert_int_eq(elf_open_memory(i, sizeof(*i), &e, NULL), 0);
	ck_assert_int_eq(symtab_build(e, NULL, &t), 0);
	ck_name(t, TEXT, "");
	ck_name(t, TEXT + 8, "b");	/* the other table isn't lost */
	elf_free(take(e));
	i->h.e_type = ET_REL;
	e = opened(i);
	ck_assert_int_eq(symtab_build(e, NULL, &(struct symtab *){ NULL }), -ENOTSUP);
}
END_TEST

/* The image as a file whose string table is too large to be packed: names are read from it. */
static struct elf *in_file(struct image *i, int *ret_fd)
{
	const size_t size = SYMTAB_PACK_MAX + 4096;
	char *strings cleanup(freep_cleanup) = calloc(1, size);
	struct elf *e = NULL;

	memcpy(strings, i->str, sizeof(i->str));
	elf_free(opened(i));	/* writes the section headers */
	i->s[SEC_STR].sh_offset = sizeof(*i);
	i->s[SEC_STR].sh_size = size;
	*ret_fd = memfd_create("symtab_test", MFD_CLOEXEC);
	ck_assert_int_ge(*ret_fd, 0);
	ck_assert_int_eq(write(*ret_fd, i, sizeof(*i)), sizeof(*i));
	ck_assert_int_eq(write(*ret_fd, strings, size), (ssize_t)size);
	ck_assert_int_eq(elf_open_fd(*ret_fd, &e, NULL), 0);
	return e;
}

static int fill_in(struct image *i)
{
	sym(i, "__libc_f", STT_FUNC, STB_GLOBAL, TEXT, 8);
	sym(i, "f@@V1", STT_FUNC, STB_WEAK, TEXT, 8);
	sym(i, "f_local", STT_FUNC, STB_LOCAL, TEXT, 8);
	sym(i, "outer", STT_FUNC, STB_GLOBAL, TEXT + 0x100, 0x100);
	sym(i, "", STT_FUNC, STB_GLOBAL, TEXT + 0x140, 0x10);	/* found out when it is asked for */
	sym(i, "$x", STT_NOTYPE, STB_LOCAL, TEXT + 0x800, 0);
	sym(i, "start", STT_NOTYPE, STB_GLOBAL, TEXT + 0x800, 0);
	sym(i, "$d", STT_NOTYPE, STB_LOCAL, TEXT + 0x900, 0);
	dyn(i, "f", TEXT, 8);
	return 0;
}

START_TEST(names_in_a_file)
{
	struct image *i cleanup(freep_cleanup) = image_new();
	int fd cleanup(fd_cleanup) = -1;
	struct elf *e cleanup(elf_cleanup) = NULL;
	struct symtab *t cleanup(symtab_cleanup) = NULL, *unread cleanup(symtab_cleanup) = NULL;
	struct timespec times[] = { { .tv_nsec = UTIME_OMIT },
				    { .tv_sec = 1000000000, .tv_nsec = 1 } };

	fill_in(i);
	e = in_file(i, &fd);
	ck_assert_int_eq(symtab_build(e, NULL, &t), 0);
	ck_assert_int_eq(symtab_build(e, NULL, &unread), 0);
	elf_free(take(e));
	ck_assert_uint_eq(symtab_files(t), 2);
	ck_name(t, TEXT + 7, "f");
	ck_name(t, TEXT + 0x145, "outer");
	ck_name(t, TEXT + 0x800, "start");
	ck_name(t, TEXT + 0xfff, "start");	/* "$d" ended nothing */
	ck_name(t, TEXT + 7, "f");
	/* rewritten: names of another version would be wrong ones */
	ck_assert_int_eq(futimens(fd, times), 0);
	ck_name(unread, TEXT, "");
}
END_TEST

START_TEST(file_cut_off)
{
	struct image *i cleanup(freep_cleanup) = image_new();
	int fd cleanup(fd_cleanup) = -1;
	struct elf *e cleanup(elf_cleanup) = NULL;
	struct symtab *t cleanup(symtab_cleanup) = NULL;

	fill_in(i);
	e = in_file(i, &fd);
	ck_assert_int_eq(symtab_build(e, NULL, &t), 0);
	ck_assert_int_eq(ftruncate(fd, sizeof(*i)), 0);
	ck_name(t, TEXT, "");
}
END_TEST

/* Thousands of names for one function: some are compared. */
START_TEST(aliases_are_limited)
{
	struct image *i cleanup(freep_cleanup) = image_new();
	struct elf *e cleanup(elf_cleanup) = opened(i);
	struct symtab_builder *b cleanup(symtab_builder_cleanup) = NULL;
	struct symtab *t cleanup(symtab_cleanup) = NULL;
	char name[32];

	ck_assert_int_eq(symtab_builder_new(e, NULL, &b), 0);
	for (int k = 0; k < 5000; k++)
		ck_assert_int_eq(symtab_builder_add(b, name,
						    (size_t)snprintf(name, sizeof(name), "f%04d", k),
						    TEXT, 16, k == 4321 ? 0 : SYMTAB_LOCAL), 0);
	ck_assert_uint_eq(symtab_builder_count(b), 5000);
	ck_assert_int_eq(symtab_builder_finish(take(b), &t), 0);
	ck_assert_uint_eq(symtab_count(t), 1);
	ck_name(t, TEXT, "f4321");	/* the exported one is among them */
	ck_assert_uint_lt(symtab_bytes(t), 5000 * 8);
}
END_TEST

static void here(void)
{
}

START_TEST(finds_itself)
{
	int fd cleanup(fd_cleanup) = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct elf *e cleanup(elf_cleanup) = NULL;
	struct symtab *t cleanup(symtab_cleanup) = NULL;
	extern const char __ehdr_start[];
	uint64_t bias;

	ck_assert_int_eq(elf_open_fd(fd, &e, NULL), 0);
	ck_assert_int_eq(symtab_build(e, NULL, &t), 0);
	bias = elf_type(e) == ET_DYN ? (uintptr_t)__ehdr_start : 0;
	ck_name(t, (uintptr_t)here - bias, "here");
	ck_name(t, elf_entry(e), "_start");
	ck_assert_uint_gt(symtab_bytes(t), 1000);
}
END_TEST

/* A million symbols in random order. The target is 0.25 s; the bound leaves room for sanitizers
 * and busy machines, but none for a quadratic algorithm. */
START_TEST(a_million)
{
	struct image *i cleanup(freep_cleanup) = image_new();
	struct elf *e cleanup(elf_cleanup) = opened(i);
	struct symtab_builder *b cleanup(symtab_builder_cleanup) = NULL;
	struct symtab *t cleanup(symtab_cleanup) = NULL;
	struct timespec begin, end;
	char name[32];
	int n;

	ck_assert_int_eq(symtab_builder_new(e, NULL, &b), 0);
	for (uint32_t k = 0; k < 1000000; k++) {
		uint32_t at = k * 2654435761u & 0xfffff;

		n = snprintf(name, sizeof(name), "function_%u", at);
		ck_assert_int_eq(symtab_builder_add(b, name, (size_t)n, BASE + 16 * at, 16, 0), 0);
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	ck_assert_int_eq(symtab_builder_finish(take(b), &t), 0);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	ck_assert_uint_eq(symtab_count(t), 1000000);
	ck_assert_uint_lt(symtab_bytes(t), 30u << 20);
	ck_name(t, BASE + 16 * (2654435761u & 0xfffff) + 15, "function_489905");
	ck_assert_int_lt((end.tv_sec - begin.tv_sec) * 1000 +
			 (end.tv_nsec - begin.tv_nsec) / 1000000, 3000);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("symtab");
	TCase *t = tcase_create("symtab");
	SRunner *runner;
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_test(t, sizes_are_honoured);
	tcase_add_test(t, what_counts);
	tcase_add_test(t, unsized);
	tcase_add_test(t, innermost_wins);
	tcase_add_test(t, nesting_is_limited);
	tcase_add_test(t, one_name_for_one_place);
	tcase_add_test(t, versions_are_no_names);
	tcase_add_test(t, both_tables_and_more);
	tcase_add_test(t, limits_are_counted);
	tcase_add_test(t, broken_tables);
	tcase_add_test(t, names_in_a_file);
	tcase_add_test(t, file_cut_off);
	tcase_add_test(t, aliases_are_limited);
	tcase_add_test(t, finds_itself);
	tcase_add_test(t, a_million);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
