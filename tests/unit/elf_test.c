/* Tests of elf/elf.h and elf/dynsym.h: this very program, and images made byte by byte. */
#include <check.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <zlib.h>
#include <zstd.h>

#include "elf/dynsym.h"
#include "elf/elf.h"

/* An image with room for a few headers and some data. */
struct image {
	Elf64_Ehdr h;
	Elf64_Phdr p[6];
	Elf64_Shdr s[6];
	char names[64];
	unsigned char data[4096];
};

#define AT(member) offsetof(struct image, member)

static struct image *image_new(void)
{
	struct image *i = calloc(1, sizeof(*i));

	ck_assert_ptr_nonnull(i);
	memcpy(i->h.e_ident, ELFMAG, SELFMAG);
	i->h.e_ident[EI_CLASS] = ELFCLASS64;
	i->h.e_ident[EI_DATA] = ELFDATA2LSB;
	i->h.e_ident[EI_VERSION] = EV_CURRENT;
	i->h.e_type = ET_DYN;
	i->h.e_machine = EM_X86_64;
	i->h.e_entry = 0x1234;
	i->h.e_phoff = AT(p);
	i->h.e_phentsize = sizeof(Elf64_Phdr);
	i->h.e_shentsize = sizeof(Elf64_Shdr);
	return i;
}

static void add_load(struct image *i, uint32_t flags, uint64_t offset, uint64_t vaddr,
		     uint64_t filesz, uint64_t memsz)
{
	i->p[i->h.e_phnum++] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_flags = flags,
		.p_offset = offset, .p_vaddr = vaddr, .p_filesz = filesz, .p_memsz = memsz };
}

static int open_image(const struct image *i, struct elf **ret)
{
	return elf_open_memory(i, sizeof(*i), ret, NULL);
}

static struct elf *opened(const struct image *i)
{
	struct elf *e = NULL;

	ck_assert_int_eq(open_image(i, &e), 0);
	return e;
}

static uint64_t vaddr_of(const struct elf *e, uint64_t offset)
{
	uint64_t v = 0;

	ck_assert_int_eq(elf_offset_to_vaddr(e, offset, &v), 0);
	return v;
}

START_TEST(reads_itself)
{
	int fd cleanup(fd_cleanup) = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct elf *e cleanup(elf_cleanup) = NULL;
	const struct elf_segment *text;
	uint64_t start, end, off;
	struct elf_symbols s;

	ck_assert_int_eq(elf_open_fd(fd, &e, NULL), 0);
	ck_assert(elf_type(e) == ET_DYN || elf_type(e) == ET_EXEC);
	ck_assert_ptr_nonnull(elf_section_by_name(e, ".text"));
	ck_assert_ptr_null(elf_section_by_name(e, ".nonsense"));
	ck_assert_ptr_nonnull(elf_segment_by_type(e, PT_GNU_EH_FRAME));
	ck_assert_ptr_null(elf_section(e, elf_section_count(e)));
	text = elf_exec_segment(e, elf_entry(e));
	ck_assert_ptr_nonnull(text);
	ck_assert_int_eq(elf_vaddr_to_offset(e, elf_entry(e), &off), 0);
	ck_assert_uint_eq(vaddr_of(e, off), elf_entry(e));
	ck_assert_int_eq(elf_exec_range(e, &start, &end), 0);
	ck_assert(start <= off && off < end && end <= elf_size(e));
	ck_assert_int_eq(elf_symbols(e, SHT_SYMTAB, &s), 0);
	ck_assert_uint_gt(s.count, 100);
}
END_TEST

START_TEST(reads_the_vdso)
{
	const void *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);
	struct elf *e cleanup(elf_cleanup) = NULL;
	unsigned char id[ELF_BUILD_ID_MAX];
	struct elf_symbols s;
	size_t n;

	if (!vdso)
		return;	/* booted with vdso=0 */
	ck_assert_int_eq(elf_open_memory(vdso, 4096, &e, NULL), 0);
	ck_assert_int_eq(elf_build_id(e, id, &n), 0);
	ck_assert_int_eq(elf_symbols(e, SHT_DYNSYM, &s), 0);
	ck_assert_uint_gt(s.count, 2);
	ck_assert_uint_lt(s.count, 100);
}
END_TEST

START_TEST(refuses_with_a_reason)
{
	struct image *i cleanup(freep_cleanup) = image_new();
	struct elf *e = NULL;
	struct err err = { 0 };

	ck_assert_int_eq(elf_open_memory("\177EL", 3, &e, &err), -ENOEXEC);
	ck_assert_int_eq(elf_open_memory("#!/bin/sh\n# text\n#", 18, &e, &err), -ENOEXEC);
	ck_assert_int_eq(elf_open_memory(i, sizeof(i->h) - 1, &e, &err), -EBADMSG);
	i->h.e_ident[EI_CLASS] = ELFCLASS32;
	ck_assert_int_eq(elf_open_memory(i, 52, &e, &err), -ENOTSUP);
	ck_assert_ptr_nonnull(strstr(err.msg, "64-bit"));
	i->h.e_ident[EI_CLASS] = ELFCLASS64;
	i->h.e_ident[EI_DATA] = ELFDATA2MSB;
	ck_assert_int_eq(elf_open_memory(i, sizeof(*i), &e, &err), -ENOTSUP);
	ck_assert_ptr_nonnull(strstr(err.msg, "little-endian"));
	i->h.e_ident[EI_DATA] = ELFDATA2LSB;
	i->h.e_machine = EM_RISCV;
	ck_assert_int_eq(elf_open_memory(i, sizeof(*i), &e, &err), -ENOTSUP);
	ck_assert_ptr_nonnull(strstr(err.msg, "243"));
	i->h.e_machine = EM_AARCH64;
	i->h.e_type = ET_CORE;
	ck_assert_int_eq(elf_open_memory(i, sizeof(*i), &e, &err), -ENOTSUP);
	ck_assert_ptr_null(e);
}
END_TEST

START_TEST(refuses_wrong_program_headers)
{
	struct image *i cleanup(freep_cleanup) = image_new();
	struct elf *e = NULL;

	i->h.e_phnum = 0xffff;
	ck_assert_int_eq(open_image(i, &e), -E2BIG);
	i->h.e_phnum = 1;
	i->h.e_phoff = UINT64_MAX - 8;
	ck_assert_int_eq(open_image(i, &e), -EBADMSG);
	i->h.e_phoff = sizeof(*i) - 8;
	ck_assert_int_eq(open_image(i, &e), -EBADMSG);
	i->h.e_phoff = AT(p);
	i->h.e_phentsize = 32;
	ck_assert_int_eq(open_image(i, &e), -EBADMSG);
	i->h.e_phentsize = sizeof(Elf64_Phdr);
	i->h.e_phnum = 0;
	add_load(i, PF_X, UINT64_MAX - 10, 0, 20, 20);
	ck_assert_int_eq(open_image(i, &e), -EBADMSG);
	i->h.e_phnum = 0;
	add_load(i, PF_X, 0, UINT64_MAX - 10, 20, 20);
	ck_assert_int_eq(open_image(i, &e), -EBADMSG);
	i->h.e_phnum = 0;
	add_load(i, PF_X, 0, 0, 20, 10);
	ck_assert_int_eq(open_image(i, &e), -EBADMSG);
	ck_assert_ptr_null(e);
}
END_TEST

START_TEST(wrong_sections_are_no_sections)
{
	struct image *i cleanup(freep_cleanup) = image_new();
	static const uint64_t offsets[] = { 1, AT(s), sizeof(struct image) - 64, 1ull << 63,
					    UINT64_MAX };

	for (size_t k = 0; k < ARRAY_SIZE(offsets); k++)
		for (int n = 0; n < 0x10000; n += 0x3fff) {
			struct elf *e cleanup(elf_cleanup) = NULL;

			i->h.e_shoff = offsets[k];
			i->h.e_shnum = (uint16_t)n;
			i->h.e_shstrndx = (uint16_t)(n / 2);
			i->s[0].sh_size = k & 1 ? UINT64_MAX / 3 : 0;
			ck_assert_int_eq(open_image(i, &e), 0);
			ck_assert_uint_eq(elf_section_count(e), 0);
			ck_assert_ptr_null(elf_section(e, 0));
		}
}
END_TEST

/* What lld writes: text at offset 0x720 and address 0x1720, in the page of the read-only data. */
START_TEST(lld_offsets)
{
	struct image *i cleanup(freep_cleanup) = image_new();
	struct elf *e cleanup(elf_cleanup) = NULL;
	uint64_t v, start, end;

	add_load(i, PF_R, 0, 0, 0x71c, 0x71c);
	add_load(i, PF_R | PF_X, 0x720, 0x1720, 0x200, 0x200);
	add_load(i, PF_R | PF_W, 0x920, 0x2920, 0, 0x1000);	/* .bss: holds no offset */
	e = opened(i);
	ck_assert_uint_eq(vaddr_of(e, 0x720), 0x1720);
	ck_assert_uint_eq(vaddr_of(e, 0x91f), 0x191f);
	ck_assert_uint_eq(vaddr_of(e, 0x100), 0x1100);	/* executed: the executable mapping */
	ck_assert_int_eq(elf_offset_to_vaddr(e, 0x920, &v), -ENOENT);
	ck_assert_int_eq(elf_offset_to_vaddr(e, UINT64_MAX, &v), -ENOENT);
	ck_assert_int_eq(elf_vaddr_to_offset(e, 0x1720, &v), 0);
	ck_assert_uint_eq(v, 0x720);
	ck_assert_int_eq(elf_vaddr_to_offset(e, 0x2920, &v), -ENOENT);
	ck_assert_int_eq(elf_exec_range(e, &start, &end), 0);
	ck_assert_uint_eq(start, 0);
	ck_assert_uint_eq(end, 0x920);
	ck_assert_ptr_null(elf_exec_segment(e, 0x1920));
}
END_TEST

/* Two executable segments in one page, and one so low that its page starts below address 0. */
START_TEST(shared_pages)
{
	struct image *i cleanup(freep_cleanup) = image_new();
	struct elf *e cleanup(elf_cleanup) = NULL;
	uint64_t v;

	add_load(i, PF_X, 0x1000, 0x401000, 0x400, 0x400);
	add_load(i, PF_X, 0x1400, 0x502400, 0x400, 0x400);
	add_load(i, PF_X, 0x5800, 0x100, 0x10, 0x10);
	e = opened(i);
	ck_assert_uint_eq(vaddr_of(e, 0x13ff), 0x4013ff);
	ck_assert_uint_eq(vaddr_of(e, 0x1400), 0x502400);
	ck_assert_uint_eq(vaddr_of(e, 0x5700), 0);
	ck_assert_int_eq(elf_offset_to_vaddr(e, 0x56ff, &v), -ENOENT);
	ck_assert_int_eq(elf_offset_to_vaddr(e, 0x5000, &v), -ENOENT);
}
END_TEST

static void add_sections(struct image *i, unsigned int n)
{
	memcpy(i->names, "\0.text\0.data\0.notes", 20);
	i->h.e_shoff = AT(s);
	i->h.e_shnum = (uint16_t)n;
	i->h.e_shstrndx = 1;
	i->s[1] = (Elf64_Shdr){ .sh_name = 7, .sh_type = SHT_STRTAB, .sh_offset = AT(names),
				.sh_size = sizeof(i->names) };
}

START_TEST(section_names_and_bytes)
{
	struct image *i cleanup(freep_cleanup) = image_new();
	struct elf *e cleanup(elf_cleanup) = NULL;
	char *p = NULL;
	void *bytes cleanup(freep_cleanup) = NULL;
	size_t n;

	add_sections(i, 5);
	memcpy(i->data, "hello", 5);
	i->s[2] = (Elf64_Shdr){ .sh_name = 1, .sh_type = SHT_PROGBITS, .sh_offset = AT(data),
				.sh_size = 5 };
	i->s[3] = (Elf64_Shdr){ .sh_name = 4000, .sh_type = SHT_PROGBITS,
				.sh_offset = sizeof(*i) - 1, .sh_size = UINT64_MAX };
	i->s[4] = (Elf64_Shdr){ .sh_name = 13, .sh_type = SHT_NOBITS, .sh_size = 100 };
	e = opened(i);
	ck_assert_int_eq(elf_section_read(e, elf_section_by_name(e, ".text"), 5, &bytes, &n), 0);
	ck_assert_uint_eq(n, 5);
	p = bytes;
	ck_assert_str_eq(p, "hello");
	ck_assert_int_eq(elf_section_read(e, elf_section(e, 2), 4, &bytes, &n), -E2BIG);
	ck_assert_str_eq(elf_section(e, 3)->name, "");
	ck_assert_int_eq(elf_section_read(e, elf_section(e, 3), SIZE_MAX, &bytes, &n), -EBADMSG);
	ck_assert_int_eq(elf_section_read(e, elf_section(e, 4), 4096, &bytes, &n), -ENOENT);
	ck_assert_ptr_eq(elf_section_by_type(e, SHT_NOBITS), elf_section(e, 4));
}
END_TEST

enum { ZSTD = 2 };	/* ELFCOMPRESS_ZSTD, glibc 2.37 */

/* 100,000 bytes, compressed; their size. */
static size_t pack(uint32_t type, const unsigned char *plain, unsigned char *out, size_t room)
{
	uLongf n = room;
	size_t z;

	if (type == ZSTD) {
		z = ZSTD_compress(out, room, plain, 100000, 3);
		ck_assert(!ZSTD_isError(z));
		return z;
	}
	ck_assert_int_eq(compress(out, &n, plain, 100000), Z_OK);
	return n;
}

START_TEST(compressed_sections)
{
	struct image *i cleanup(freep_cleanup) = image_new();
	Elf64_Chdr ch = { .ch_type = ELFCOMPRESS_ZLIB, .ch_size = 100000 };
	unsigned char *plain cleanup(freep_cleanup) = malloc(100000);
	static const struct {
		uint32_t type;
		uint64_t size;
		size_t cut, max;
		int r;
	} cases[] = {
		{ ELFCOMPRESS_ZLIB, 100000, 0, 100000, 0 },
		{ ELFCOMPRESS_ZLIB, 100000, 0, 99999, -E2BIG },
		{ ELFCOMPRESS_ZLIB, 99999, 0, 100000, -EBADMSG },
		{ ELFCOMPRESS_ZLIB, 100001, 0, 200000, -EBADMSG },
		{ ELFCOMPRESS_ZLIB, 100000, 1, 100000, -EBADMSG },
		{ ZSTD, 100000, 0, 100000, 0 },
		{ ZSTD, 100000, 0, 99999, -E2BIG },
		{ ZSTD, 99999, 0, 100000, -EBADMSG },
		{ ZSTD, 100001, 0, 200000, -EBADMSG },
		{ ZSTD, 100000, 1, 100000, -EBADMSG },
		{ 3, 100000, 0, 100000, -ENOTSUP },
	};

	for (size_t k = 0; k < 100000; k++)
		plain[k] = (unsigned char)(k / 300);
	add_sections(i, 3);
	for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
		size_t packed = pack(cases[k].type, plain, i->data + sizeof(ch),
				     sizeof(i->data) - sizeof(ch));
		struct elf *e cleanup(elf_cleanup) = NULL;
		void *p cleanup(freep_cleanup) = NULL;
		size_t n = 0;

		ch.ch_type = cases[k].type;
		ch.ch_size = cases[k].size;
		memcpy(i->data, &ch, sizeof(ch));
		i->s[2] = (Elf64_Shdr){ .sh_type = SHT_PROGBITS, .sh_flags = SHF_COMPRESSED,
			.sh_offset = AT(data), .sh_size = sizeof(ch) + packed - cases[k].cut };
		e = opened(i);
		ck_assert_int_eq(elf_section_read(e, elf_section(e, 2), cases[k].max, &p, &n),
				 cases[k].r);
		if (!cases[k].r)
			ck_assert(n == 100000 && !memcmp(p, plain, n));
	}
}
END_TEST

/* .zdebug_*: what is asked for as .debug_*. */
START_TEST(gnu_compressed_sections)
{
	struct image *i cleanup(freep_cleanup) = image_new();
	unsigned char *plain cleanup(freep_cleanup) = malloc(100000);
	static const struct {
		const char *magic;
		uint64_t size;
		size_t bytes, max;	/* bytes: of the section, 0: all */
		int r;
	} cases[] = {
		{ "ZLIB", 100000, 0, 100000, 0 },
		{ "ZLIB", 100000, 0, 99999, -E2BIG },
		{ "ZLIB", UINT64_MAX, 0, 100000, -E2BIG },
		{ "ZLIB", 99999, 0, 100000, -EBADMSG },
		{ "ZLIB", 100001, 0, 200000, -EBADMSG },
		{ "ZLIB", 100000, 100, 100000, -EBADMSG },
		{ "ZLIB", 100000, 11, 100000, -EBADMSG },
		{ "ZLI?", 100000, 0, 100000, -EBADMSG },
	};

	for (size_t k = 0; k < 100000; k++)
		plain[k] = (unsigned char)(k / 300);
	add_sections(i, 3);
	memcpy(i->names + 32, ".zdebug_line", 13);
	for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
		size_t packed = pack(ELFCOMPRESS_ZLIB, plain, i->data + 12, sizeof(i->data) - 12);
		uint64_t size = __builtin_bswap64(cases[k].size);
		struct elf *e cleanup(elf_cleanup) = NULL;
		void *p cleanup(freep_cleanup) = NULL;
		const struct elf_section *s;
		size_t n = 0;

		memcpy(i->data, cases[k].magic, 4);
		memcpy(i->data + 4, &size, sizeof(size));
		i->s[2] = (Elf64_Shdr){ .sh_type = SHT_PROGBITS, .sh_name = 32, .sh_offset = AT(data),
			.sh_size = cases[k].bytes ? cases[k].bytes : 12 + packed };
		e = opened(i);
		s = elf_section_by_name(e, ".debug_line");
		ck_assert_ptr_eq(s, elf_section_by_name(e, ".zdebug_line"));
		ck_assert_ptr_null(elf_section_by_name(e, ".debug_lin"));
		ck_assert_ptr_nonnull(s);
		ck_assert(elf_section_is_compressed(s));
		ck_assert_int_eq(elf_section_read(e, s, cases[k].max, &p, &n), cases[k].r);
		if (!cases[k].r)
			ck_assert(n == 100000 && !memcmp(p, plain, n));
	}
}
END_TEST

START_TEST(build_ids)
{
	struct image *i cleanup(freep_cleanup) = image_new();
	unsigned char id[ELF_BUILD_ID_MAX];
	char hex[ELF_BUILD_ID_HEX];
	Elf64_Nhdr note = { 4, 3, NT_GNU_BUILD_ID };
	struct elf *e;
	size_t n = 0;

	/* A note of another owner, then one that is too long, then the build id. */
	memcpy(i->data, &(Elf64_Nhdr){ 3, 1, NT_GNU_BUILD_ID }, 12);
	memcpy(i->data + 12, "Go\0", 3);
	memcpy(i->data + 20, &(Elf64_Nhdr){ 4, 65, NT_GNU_BUILD_ID }, 12);
	memcpy(i->data + 32, "GNU", 4);
	memcpy(i->data + 104, &note, 12);
	memcpy(i->data + 116, "GNU", 4);
	memcpy(i->data + 120, "\xab\xcd\x0f", 3);
	i->h.e_phnum = 1;
	i->p[0] = (Elf64_Phdr){ .p_type = PT_NOTE, .p_offset = AT(data), .p_filesz = 123 };
	e = opened(i);
	ck_assert_int_eq(elf_build_id(e, id, &n), 0);
	elf_build_id_hex(id, n, hex);
	ck_assert_str_eq(hex, "abcd0f");
	elf_free(e);

	i->p[0].p_filesz = 122;	/* cut in the middle of the id */
	e = opened(i);
	ck_assert_int_eq(elf_build_id(e, id, &n), -ENOENT);
	elf_free(e);

	add_sections(i, 3);	/* then the section is asked */
	i->s[2] = (Elf64_Shdr){ .sh_type = SHT_NOTE, .sh_offset = AT(data) + 104, .sh_size = 20 };
	e = opened(i);
	ck_assert_int_eq(elf_build_id(e, id, &n), 0);
	ck_assert_uint_eq(n, 3);
	elf_free(e);
}
END_TEST

START_TEST(notes_are_bounded)
{
	Elf64_Nhdr h[2] = { { 4, 4, 1 }, { UINT32_MAX, UINT32_MAX, 1 } };
	unsigned char buf[64] = { 0 };
	struct elf_note n;
	size_t pos = 0;

	memcpy(buf, &h[0], 12);
	memcpy(buf + 24, &h[1], 12);	/* with align 8 the description starts at 16 */
	ck_assert(elf_note_next(buf, sizeof(buf), 8, &pos, &n));
	ck_assert_ptr_eq(n.desc, buf + 16);
	ck_assert_uint_eq(pos, 24);
	ck_assert(!elf_note_next(buf, sizeof(buf), 8, &pos, &n));
	pos = SIZE_MAX - 3;
	ck_assert(!elf_note_next(buf, sizeof(buf), 4, &pos, &n));
	pos = 0;
	ck_assert(!elf_note_next(buf, 19, 4, &pos, &n));
}
END_TEST

/* A stripped library without section headers: what the dynamic section says has to do. */
static struct image *dynamic_image(uint64_t hash_tag, const uint32_t *hash, size_t words)
{
	struct image *i = image_new();
	Elf64_Dyn dyn[] = {
		{ DT_SYMTAB, { .d_ptr = 0x10400 } },
		{ DT_STRTAB, { .d_ptr = 0x10200 } },
		{ DT_STRSZ, { .d_val = 64 } },
		{ (Elf64_Sxword)hash_tag, { .d_ptr = 0x10300 } },
		{ DT_NULL, { 0 } },
	};

	add_load(i, PF_R | PF_X, AT(data), 0x10000, sizeof(i->data), sizeof(i->data));
	i->p[i->h.e_phnum++] = (Elf64_Phdr){ .p_type = PT_DYNAMIC, .p_offset = AT(data),
					     .p_filesz = sizeof(dyn) };
	memcpy(i->data, dyn, sizeof(dyn));
	memcpy(i->data + 0x300, hash, words * sizeof(*hash));
	return i;
}

START_TEST(dynsym_without_sections)
{
	static const struct {
		uint64_t tag;
		uint32_t words[16];
		int r;
		uint64_t count;
	} cases[] = {
		{ DT_HASH, { 1, 7 }, 0, 7 },
		{ DT_HASH, { 1, 0x10000000 }, -EBADMSG, 0 },
		/* 2 buckets, symbols from 3, 1 Bloom word; chains 3: end, 4, 5: end */
		{ DT_GNU_HASH, { 2, 3, 1, 0, 9, 9, 3, 4, 1, 2, 3 }, 0, 6 },
		{ DT_GNU_HASH, { 2, 5, 1, 0, 9, 9, 0, 0 }, 0, 5 },
		{ DT_GNU_HASH, { 0xffffffff, 3, 1, 0 }, -EBADMSG, 0 },
		{ DT_GNU_HASH, { 1, 0, 0xffffffff, 0 }, -EBADMSG, 0 },
		{ DT_GNU_HASH, { 1, 3, 0, 0, 0xfffffff0, 1 }, -EBADMSG, 0 },
		{ DT_GNU_HASH, { 1, 0, 0, 0, 200 }, -EBADMSG, 0 },	/* no end of the chain */
		{ DT_NEEDED, { 0 }, -ENOENT, 0 },
	};

	for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
		struct image *i cleanup(freep_cleanup) =
			dynamic_image(cases[k].tag, cases[k].words, ARRAY_SIZE(cases[k].words));
		struct elf *e cleanup(elf_cleanup) = opened(i);
		struct elf_symbols s;

		ck_assert_int_eq(elf_symbols(e, SHT_DYNSYM, &s), cases[k].r);
		ck_assert_int_eq(elf_symbols(e, SHT_SYMTAB, &(struct elf_symbols){ 0 }), -ENOENT);
		if (cases[k].r)
			continue;
		ck_assert_uint_eq(s.count, cases[k].count);
		ck_assert_uint_eq(s.offset, AT(data) + 0x400);
		ck_assert_uint_eq(s.strings, AT(data) + 0x200);
		ck_assert_uint_eq(s.strings_size, 64);
	}
}
END_TEST

START_TEST(only_regular_files)
{
	int dir cleanup(fd_cleanup) = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int null cleanup(fd_cleanup) = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct elf *e = NULL;

	ck_assert_int_eq(elf_open_fd(dir, &e, NULL), -EINVAL);
	ck_assert_int_eq(elf_open_fd(null, &e, NULL), -EINVAL);
	ck_assert_int_eq(elf_open_fd(-1, &e, NULL), -EBADF);
	elf_free(NULL);
}
END_TEST

START_TEST(truncated_under_our_feet)
{
	FILE *f cleanup(file_cleanup) = tmpfile();
	struct image *i cleanup(freep_cleanup) = image_new();
	struct elf *e cleanup(elf_cleanup) = NULL;
	char c;

	ck_assert_uint_eq(fwrite(i, sizeof(*i), 1, f), 1);
	fflush(f);
	ck_assert_int_eq(elf_open_fd(fileno(f), &e, NULL), 0);
	ck_assert_int_eq(elf_read(e, sizeof(*i) - 1, &c, 1), 0);
	ck_assert_int_eq(elf_read(e, sizeof(*i), &c, 1), -EBADMSG);
	ck_assert_int_eq(elf_read(e, UINT64_MAX, &c, 1), -EBADMSG);
	ck_assert_int_eq(ftruncate(fileno(f), 100), 0);
	ck_assert_int_eq(elf_read(e, sizeof(*i) - 1, &c, 1), -EBADMSG);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("elf");
	TCase *t = tcase_create("elf");
	SRunner *runner;
	int failed;

	tcase_add_test(t, reads_itself);
	tcase_add_test(t, reads_the_vdso);
	tcase_add_test(t, refuses_with_a_reason);
	tcase_add_test(t, refuses_wrong_program_headers);
	tcase_add_test(t, wrong_sections_are_no_sections);
	tcase_add_test(t, lld_offsets);
	tcase_add_test(t, shared_pages);
	tcase_add_test(t, section_names_and_bytes);
	tcase_add_test(t, compressed_sections);
	tcase_add_test(t, gnu_compressed_sections);
	tcase_add_test(t, build_ids);
	tcase_add_test(t, notes_are_bounded);
	tcase_add_test(t, dynsym_without_sections);
	tcase_add_test(t, only_regular_files);
	tcase_add_test(t, truncated_under_our_feet);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
