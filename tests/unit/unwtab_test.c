/* Tests of unwind/unwtab.h: images made byte by byte, tables against a naive model, and whole walks
 * of this very thread with bpf/step.h. */
#include "cfi_bytes.h"

#include <elf.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <ucontext.h>

#include "unwind/unwtab.h"

static int read_own(void *dst, size_t n, uint64_t addr)
{
	memcpy(dst, (const void *)(uintptr_t)addr, n);
	return 0;
}
#define WK_READ_USER(dst, len, addr) read_own(dst, len, addr)
#define WK_READ_CODE(dst, len, addr) read_own(dst, len, addr)
#include "step.h"

/* ---- images --------------------------------------------------------------------------------- */

#define TEXT_OFF   0x1200 /* not a multiple of a page, nor equal to the address */
#define TEXT_VADDR UINT64_C(0x403200)
#define TEXT_SIZE  0x8000
#define CFI_VADDR  UINT64_C(0x600000)

struct image {
	Elf64_Ehdr h;
	Elf64_Phdr p[3];
	Elf64_Shdr s[3];
	char names[64];
	uint8_t head[64]; /* .eh_frame_hdr */
	uint8_t pad[TEXT_OFF - 64 - 64 - sizeof(Elf64_Ehdr) - 3 * sizeof(Elf64_Phdr) -
		    3 * sizeof(Elf64_Shdr)];
	uint8_t text[TEXT_SIZE];
	uint8_t cfi[sizeof(((struct section *)0)->data)];
};

static struct image *image_of(const struct section *cfi)
{
	struct image *i = calloc(1, sizeof(*i));

	ck_assert_ptr_nonnull(i);
	ck_assert_uint_eq(offsetof(struct image, text), TEXT_OFF);
	memcpy(i->h.e_ident, ELFMAG, SELFMAG);
	i->h.e_ident[EI_CLASS] = ELFCLASS64;
	i->h.e_ident[EI_DATA] = ELFDATA2LSB;
	i->h.e_ident[EI_VERSION] = EV_CURRENT;
	i->h.e_type = ET_DYN;
	i->h.e_machine = EM_X86_64;
	i->h.e_phoff = offsetof(struct image, p);
	i->h.e_phentsize = sizeof(Elf64_Phdr);
	i->h.e_phnum = 2;
	i->p[0] = (Elf64_Phdr){ .p_type = PT_LOAD,
				.p_flags = PF_R | PF_X,
				.p_offset = TEXT_OFF,
				.p_vaddr = TEXT_VADDR,
				.p_filesz = TEXT_SIZE,
				.p_memsz = TEXT_SIZE };
	i->p[1] = (Elf64_Phdr){ .p_type = PT_LOAD,
				.p_flags = PF_R,
				.p_offset = offsetof(struct image, cfi),
				.p_vaddr = CFI_VADDR,
				.p_filesz = sizeof(i->cfi),
				.p_memsz = sizeof(i->cfi) };
	i->h.e_shoff = offsetof(struct image, s);
	i->h.e_shentsize = sizeof(Elf64_Shdr);
	i->h.e_shnum = 3;
	i->h.e_shstrndx = 2;
	memcpy(i->names, "\0.eh_frame\0.debug_frame\0.names", 31);
	i->s[1] = (Elf64_Shdr){ .sh_name = cfi->debug ? 11 : 1,
				.sh_type = SHT_PROGBITS,
				.sh_flags = cfi->debug ? 0 : SHF_ALLOC,
				.sh_addr = cfi->debug ? 0 : CFI_VADDR,
				.sh_offset = offsetof(struct image, cfi),
				.sh_size = cfi->n };
	i->s[2] = (Elf64_Shdr){ .sh_name = 24,
				.sh_type = SHT_STRTAB,
				.sh_offset = offsetof(struct image, names),
				.sh_size = sizeof(i->names) };
	memset(i->text, 0x90, sizeof(i->text));
	memcpy(i->cfi, cfi->data, cfi->n);
	return i;
}

static int compile_image(const struct image *i, const struct unwtab_limits *limits,
			 struct unwtab **ret)
{
	struct elf *elf cleanup(elf_cleanup) = NULL;

	ck_assert_int_eq(elf_open_memory(i, sizeof(*i), &elf, NULL), 0);
	return unwtab_compile(elf, NULL, limits, ret);
}

static struct unwtab *compiled(const struct section *cfi)
{
	struct image *i cleanup(freep_cleanup) = image_of(cfi);
	struct unwtab *t = NULL;

	ck_assert_int_eq(compile_image(i, &UNWTAB_LIMITS_DEFAULT, &t), 0);
	return t;
}

/* The row for an offset in the text. */
static struct wk_row row_at(const struct unwtab *t, uint64_t offset)
{
	struct wk_row row = { .cfa = WK_CFA_NONE };
	struct wk_side side;

	(void)!unwtab_lookup(t, TEXT_OFF + offset, &row, &side);
	return row;
}

/* What tells rows apart here: the CFA's offset in words; 0 where nothing is known. */
static int words_at(const struct unwtab *t, uint64_t offset)
{
	struct wk_row row = row_at(t, offset);

	return row.cfa == WK_CFA_SP ? row.cfa_off : 0;
}

static void put_fde(struct section *s, size_t cie, uint64_t at, uint32_t size, uint8_t words)
{
	begin_fde(s, cie, CFI_VADDR, TEXT_VADDR + at, size);
	BYTES(s, 0x0e, (uint8_t)(8 * words));
	end(s);
}

/* ---- tables --------------------------------------------------------------------------------- */

START_TEST(gaps_and_padding)
{
	struct section s = { .n = 0 };
	size_t cie = usual_cie(&s);
	struct unwtab *t cleanup(unwtab_cleanup) = NULL;

	put_fde(&s, cie, 0x100, 0x20, 2);
	put_fde(&s, cie, 0x12f, 0x11, 3); /* 15 bytes on */
	put_fde(&s, cie, 0x150, 0x10, 4); /* 16 bytes on */
	put_fde(&s, cie, 0x160, 0x10, 4); /* the same rule */
	t = compiled(&s);
	ck_assert_int_eq(row_at(t, 0).cfa, WK_CFA_NONE);
	ck_assert_int_eq(words_at(t, 0xff), 0);
	ck_assert_int_eq(words_at(t, 0x100), 2);
	ck_assert_int_eq(words_at(t, 0x12e), 2);
	ck_assert_int_eq(words_at(t, 0x12f), 3);
	ck_assert_int_eq(words_at(t, 0x13f), 3);
	ck_assert_int_eq(row_at(t, 0x140).cfa, WK_CFA_NONE);
	ck_assert_int_eq(row_at(t, 0x14f).cfa, WK_CFA_NONE);
	ck_assert_int_eq(words_at(t, 0x150), 4);
	ck_assert_int_eq(words_at(t, 0x16f), 4);
	ck_assert_int_eq(row_at(t, 0x170).cfa, WK_CFA_NONE);
	ck_assert_int_eq(row_at(t, TEXT_SIZE).cfa, WK_CFA_NONE);
	ck_assert_int_eq(row_at(t, UINT64_MAX - TEXT_OFF).cfa, WK_CFA_NONE);
	ck_assert_uint_eq(unwtab_stats(t)->fdes, 4);
	ck_assert_uint_eq(unwtab_stats(t)->rows, 6); /* none 2 3 none 4 none */
}
END_TEST

START_TEST(overlaps)
{
	struct section s = { .n = 0 };
	size_t cie = usual_cie(&s);
	struct unwtab *t cleanup(unwtab_cleanup) = NULL;

	put_fde(&s, cie, 0x300, 0x20, 5); /* out of order */
	put_fde(&s, cie, 0x100, 0x40, 2);
	put_fde(&s, cie, 0x120, 0x40, 3);
	t = compiled(&s);
	ck_assert_int_eq(words_at(t, 0x11f), 2);
	ck_assert_int_eq(words_at(t, 0x120), 3);
	ck_assert_int_eq(words_at(t, 0x15f), 3);
	ck_assert_int_eq(words_at(t, 0x160), 0);
	ck_assert_int_eq(words_at(t, 0x300), 5);
	ck_assert_uint_eq(unwtab_stats(t)->overlaps, 1);
}
END_TEST

START_TEST(only_executable_code)
{
	struct section s = { .n = 0 };
	struct image *i;
	struct unwtab *t = NULL;
	size_t cie = usual_cie(&s);

	begin_fde(&s, cie, CFI_VADDR, CFI_VADDR + 0x100, 0x20); /* in the data */
	end(&s);
	begin_fde(&s, cie, CFI_VADDR, TEXT_VADDR + TEXT_SIZE, 0x20); /* behind the text */
	end(&s);
	i = image_of(&s);
	ck_assert_int_eq(compile_image(i, &UNWTAB_LIMITS_DEFAULT, &t), -ENOENT);
	free(i);
	put_fde(&s, cie, TEXT_SIZE - 0x10, 0x40, 2); /* half of it */
	i = image_of(&s);
	ck_assert_int_eq(compile_image(i, &UNWTAB_LIMITS_DEFAULT, &t), 0);
	ck_assert_uint_eq(unwtab_stats(t)->fdes, 1);
	ck_assert_int_eq(words_at(t, TEXT_SIZE - 1), 2);
	ck_assert_int_eq(words_at(t, TEXT_SIZE), 0);
	unwtab_free(t);
	free(i);
}
END_TEST

START_TEST(equal_side_rules_are_one)
{
	struct section s = { .n = 0 };
	struct unwtab *t cleanup(unwtab_cleanup) = NULL;
	size_t cie = usual_cie(&s);
	struct wk_side side;
	struct wk_row row;

	for (uint32_t i = 0; i < 4; i++) { /* CFA = r11 + 16, r11 + 32, alternating */
		begin_fde(&s, cie, CFI_VADDR, TEXT_VADDR + 0x100 + i * 0x10, 0x10);
		BYTES(&s, 0x0c, 11, i & 1 ? 32 : 16);
		end(&s);
	}
	t = compiled(&s);
	ck_assert_uint_eq(unwtab_stats(t)->sides, 2);
	for (uint32_t i = 0; i < 4; i++) {
		ck_assert_int_eq(unwtab_lookup(t, TEXT_OFF + 0x108 + i * 0x10, &row, &side), 0);
		ck_assert_int_eq(row.cfa, WK_CFA_SIDE);
		ck_assert_int_eq(side.cfa_reg, 11);
		ck_assert_int_eq(side.cfa_off, i & 1 ? 32 : 16);
	}
}
END_TEST

START_TEST(broken_instructions_stop_the_walk)
{
	struct section s = { .n = 0 };
	struct unwtab *t cleanup(unwtab_cleanup) = NULL;
	size_t cie = usual_cie(&s);

	begin_fde(&s, cie, CFI_VADDR, TEXT_VADDR + 0x100, 0x40);
	BYTES(&s, 0x0e, 16, 0x50, 0x0e, 24, 0x50, 0x3d);
	end(&s);
	put_fde(&s, cie, 0x140, 0x10, 7);
	t = compiled(&s);
	ck_assert_int_eq(words_at(t, 0x10f), 2);
	ck_assert_int_eq(words_at(t, 0x11f), 3);
	ck_assert_int_eq(row_at(t, 0x120).cfa, WK_CFA_BAD);
	ck_assert_int_eq(row_at(t, 0x13f).cfa, WK_CFA_BAD);
	ck_assert_int_eq(words_at(t, 0x140), 7);
	ck_assert_uint_eq(unwtab_stats(t)->reasons[RULE_PROGRAM], 1);
}
END_TEST

/* Between the two FDEs of glibc's clone. */
START_TEST(clone_by_its_code)
{
	static const uint8_t code[] = { 0x0f, 0x05, 0x48, 0x85, 0xc0, 0x7c, 0x13, 0x74, 0x01, 0xc3 };
	struct section s = { .n = 0 };
	struct image *i cleanup(freep_cleanup) = NULL;
	struct unwtab *t cleanup(unwtab_cleanup) = NULL;
	size_t cie = usual_cie(&s);

	put_fde(&s, cie, 0x100, 0x40, 2);
	put_fde(&s, cie, 0x140 + sizeof(code), 0x40, 3);
	put_fde(&s, cie, 0x1a0, 0x40, 4);		/* behind another gap, longer by a byte */
	i = image_of(&s);
	memcpy(i->text + 0x140, code, sizeof(code));
	memcpy(i->text + 0x140 + sizeof(code) + 0x40, code, sizeof(code));
	ck_assert_int_eq(compile_image(i, &UNWTAB_LIMITS_DEFAULT, &t), 0);
	ck_assert_int_eq(words_at(t, 0x13f), 2);
	ck_assert_int_eq(row_at(t, 0x140).cfa, WK_CFA_CLONE);
	ck_assert_int_eq(row_at(t, 0x140 + sizeof(code) - 1).cfa, WK_CFA_CLONE);
	ck_assert_int_eq(words_at(t, 0x140 + sizeof(code)), 3);
	for (uint32_t at = 0x18a; at < 0x1a0; at++)
		ck_assert_int_ne(row_at(t, at).cfa, WK_CFA_CLONE);
}
END_TEST

START_TEST(trampoline_by_its_code)
{
	static const uint8_t code[] = { 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05 };
	struct section s = { .n = 0 };
	struct image *i cleanup(freep_cleanup) = NULL;
	struct unwtab *t cleanup(unwtab_cleanup) = NULL;
	size_t cie = usual_cie(&s);

	put_fde(&s, cie, 0x100, 0x40, 2);
	put_fde(&s, cie, 0x400, 0x40, 3);
	i = image_of(&s);
	memcpy(i->text + 0x200, code, sizeof(code));
	memcpy(i->text + 0x410, code, sizeof(code)); /* covered: the CFI knows better */
	memcpy(i->text + TEXT_SIZE - sizeof(code), code, sizeof(code));
	ck_assert_int_eq(compile_image(i, &UNWTAB_LIMITS_DEFAULT, &t), 0);
	ck_assert_uint_eq(unwtab_stats(t)->trampolines, 2);
	ck_assert_int_eq(row_at(t, 0x1fe).cfa, WK_CFA_NONE);
	ck_assert_int_eq(row_at(t, 0x1ff).cfa, WK_CFA_SIGNAL);
	ck_assert_int_eq(row_at(t, 0x208).cfa, WK_CFA_SIGNAL);
	ck_assert_int_eq(row_at(t, 0x209).cfa, WK_CFA_NONE);
	ck_assert_int_eq(words_at(t, 0x410), 3);
	ck_assert_int_eq(row_at(t, TEXT_SIZE - 1).cfa, WK_CFA_SIGNAL);
}
END_TEST

START_TEST(signal_fde_from_the_byte_before)
{
	struct section s = { .n = 0 };
	struct unwtab *t cleanup(unwtab_cleanup) = NULL;
	size_t cie = begin_cie(&s, 1, "zRS", 16);

	BYTES(&s, 1, 0x1b, 0x0f, 4, 0x77, 0xa0, 1, 6, 0x10, 16, 3, 0x77, 0xa8, 1);
	end(&s);
	begin_fde(&s, cie, CFI_VADDR, TEXT_VADDR + 0x100, 9);
	end(&s);
	t = compiled(&s);
	ck_assert_int_eq(row_at(t, 0xfe).cfa, WK_CFA_NONE);
	ck_assert_int_eq(row_at(t, 0xff).cfa, WK_CFA_SIGNAL);
	ck_assert_int_eq(row_at(t, 0x108).cfa, WK_CFA_SIGNAL);
}
END_TEST

START_TEST(bare_entry_point)
{
	struct section s = { .n = 0 };
	struct image *i cleanup(freep_cleanup) = NULL;
	struct unwtab *t = NULL;
	size_t cie = usual_cie(&s);

	put_fde(&s, cie, 0x100, 0x40, 2);
	put_fde(&s, cie, 0x210, 0x40, 3);
	i = image_of(&s);
	i->h.e_type = ET_EXEC;
	i->h.e_entry = TEXT_VADDR + 0x200;
	ck_assert_int_eq(compile_image(i, &UNWTAB_LIMITS_DEFAULT, &t), 0);
	ck_assert_int_eq(row_at(t, 0x1ff).cfa, WK_CFA_NONE);
	ck_assert_int_eq(row_at(t, 0x200).cfa, WK_CFA_ROOT);
	ck_assert_int_eq(row_at(t, 0x20f).cfa, WK_CFA_ROOT);
	ck_assert_int_eq(words_at(t, 0x210), 3);
	unwtab_free(t);

	/* A library's is the start of its text, whatever that is: here nops. */
	i->h.e_type = ET_DYN;
	ck_assert_int_eq(compile_image(i, &UNWTAB_LIMITS_DEFAULT, &t), 0);
	ck_assert_int_ne(row_at(t, 0x200).cfa, WK_CFA_ROOT);
	unwtab_free(t);
	i->text[0x200] = 0x31; /* xor %ebp, %ebp: static PIE */
	i->text[0x201] = 0xed;
	ck_assert_int_eq(compile_image(i, &UNWTAB_LIMITS_DEFAULT, &t), 0);
	ck_assert_int_eq(row_at(t, 0x200).cfa, WK_CFA_ROOT);
	unwtab_free(t);

	i->h.e_type = ET_EXEC; /* covered */
	i->h.e_entry = TEXT_VADDR + 0x120;
	ck_assert_int_eq(compile_image(i, &UNWTAB_LIMITS_DEFAULT, &t), 0);
	ck_assert_int_eq(words_at(t, 0x120), 2);
	unwtab_free(t);
}
END_TEST

/* What no FDE covers has rules from its own code: here what the entry point calls. */
START_TEST(code_without_fdes)
{
	static const uint8_t code[] = {
		0x31, 0xed,			/* 0x200: xor %ebp, %ebp */
		0xe8, 0x09, 0, 0, 0,		/* call 0x210 */
		0xf4, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc,
		0x55, 0x48, 0x89, 0xe5,		/* 0x210: push %rbp; mov %rsp, %rbp */
		0x5d, 0xc3,			/* pop %rbp; ret */
	};
	struct unwtab_limits limits = UNWTAB_LIMITS_DEFAULT;
	struct section s = { .n = 0 };
	struct image *i cleanup(freep_cleanup) = NULL;
	struct unwtab *t = NULL;
	size_t cie = usual_cie(&s);

	put_fde(&s, cie, 0x100, 0x100, 2);
	put_fde(&s, cie, 0x300, 0x40, 3);
	i = image_of(&s);
	i->h.e_type = ET_EXEC;
	i->h.e_entry = TEXT_VADDR + 0x200;
	memcpy(i->text + 0x200, code, sizeof(code));
	ck_assert_int_eq(compile_image(i, &limits, &t), 0);
	ck_assert_int_eq(words_at(t, 0x1ff), 2);
	ck_assert_int_eq(row_at(t, 0x200).cfa, WK_CFA_ROOT);
	ck_assert_int_eq(row_at(t, 0x207).cfa, WK_CFA_ROOT);
	ck_assert_int_eq(words_at(t, 0x210), 1);
	ck_assert_int_eq(words_at(t, 0x211), 2);
	ck_assert_int_eq(row_at(t, 0x214).cfa, WK_CFA_FP);
	ck_assert_int_eq(words_at(t, 0x215), 1);
	ck_assert_int_eq(row_at(t, 0x230).cfa, WK_CFA_NONE);
	ck_assert_int_eq(words_at(t, 0x300), 3);
	ck_assert_uint_eq(unwtab_stats(t)->code_bytes, 14);
	unwtab_free(t);

	/* Over the limit only the entry point is known. */
	limits.code_bytes = 0x40;
	ck_assert_int_eq(compile_image(i, &limits, &t), 0);
	ck_assert_int_eq(row_at(t, 0x200).cfa, WK_CFA_ROOT);
	ck_assert_uint_eq(unwtab_stats(t)->code_bytes, 0);
	unwtab_free(t);
}
END_TEST

START_TEST(without_section_headers)
{
	static const uint8_t junk[] = { 0xff, 0xff, 0xff, 0x7f };
	struct section s = { .n = 0 };
	struct image *i cleanup(freep_cleanup) = NULL;
	struct unwtab *t cleanup(unwtab_cleanup) = NULL;
	size_t cie = usual_cie(&s);
	int32_t rel;

	put_fde(&s, cie, 0x100, 0x40, 2);
	put_uint(&s, 0, 4);
	put(&s, junk, sizeof(junk));
	i = image_of(&s);
	i->h.e_shnum = i->h.e_shstrndx = 0;
	i->h.e_shoff = 0;
	i->p[2] = (Elf64_Phdr){ .p_type = PT_GNU_EH_FRAME,
				.p_flags = PF_R,
				.p_offset = offsetof(struct image, head),
				.p_vaddr = CFI_VADDR + 0x10000,
				.p_filesz = sizeof(i->head),
				.p_memsz = sizeof(i->head) };
	i->h.e_phnum = 3;
	memcpy(i->head, "\1\x1b\3\x3b", 4);
	rel = -0x10000 - 4;
	memcpy(i->head + 4, &rel, 4);
	ck_assert_int_eq(compile_image(i, &UNWTAB_LIMITS_DEFAULT, &t), 0);
	ck_assert_int_eq(words_at(t, 0x100), 2);
	ck_assert_uint_eq(unwtab_stats(t)->fdes_malformed, 0);
}
END_TEST

static void put_debug_fde(struct section *s, size_t cie, uint64_t at, uint64_t size, uint8_t words)
{
	begin(s);
	put_uint(s, cie, 4);
	put_uint(s, TEXT_VADDR + at, 8);
	put_uint(s, size, 8);
	BYTES(s, 0x0e, (uint8_t)(8 * words));
	end(s);
}

/* A Go program: its .debug_frame counts where there is no frame. */
START_TEST(go_debug_frame)
{
	struct section debug = { .debug = true };
	struct image *program cleanup(freep_cleanup) = NULL;
	struct elf *e cleanup(elf_cleanup) = NULL;
	struct unwtab *t = NULL;
	size_t cie = begin_cie(&debug, 3, "", 16);

	BYTES(&debug, 0x0c, 7, 8, 0x90, 1);
	end(&debug);
	put_debug_fde(&debug, cie, 0x100, 0x40, 1);
	put_debug_fde(&debug, cie, 0x140, 0x40, 4);
	program = image_of(&debug);
	memcpy(program->names, "\0.gopclntb\0.debug_frame\0.gopclntab", 35);
	ck_assert_int_eq(elf_open_memory(program, sizeof(*program), &e, NULL), 0);
	ck_assert_int_eq(unwtab_compile(e, NULL, &UNWTAB_LIMITS_DEFAULT, &t), 0);
	ck_assert_int_eq(row_at(t, 0x100).cfa, WK_CFA_LEAF);
	ck_assert_int_eq(row_at(t, 0x13f).cfa, WK_CFA_LEAF);
	ck_assert_int_eq(row_at(t, 0x140).cfa, WK_CFA_NONE);
	unwtab_free(t);
}
END_TEST

static const struct elf *give(void *elf)
{
	return elf;
}

/* .debug_frame fills what .eh_frame leaves open; from a separate file, too. */
START_TEST(debug_frame)
{
	struct section eh = { .n = 0 }, debug = { .debug = true };
	struct image *program cleanup(freep_cleanup) = NULL, *extra cleanup(freep_cleanup) = NULL;
	struct elf *e1 cleanup(elf_cleanup) = NULL, *e2 cleanup(elf_cleanup) = NULL;
	struct unwtab_debug from = { .open = give };
	struct unwtab *t = NULL;
	size_t cie = usual_cie(&eh);

	put_fde(&eh, cie, 0x100, 0x40, 2);
	put_fde(&eh, cie, 0x300, 0x20, 3);
	cie = begin_cie(&debug, 3, "", 16);
	BYTES(&debug, 0x0c, 7, 8, 0x90, 1);
	end(&debug);
	put_debug_fde(&debug, cie, 0x100, 0x40, 9);
	put_debug_fde(&debug, cie, 0x120, 0x40, 8);	/* not in a gap */
	put_debug_fde(&debug, cie, 0x200, 0x140, 4);	/* into the next function */
	program = image_of(&eh);
	extra = image_of(&debug);
	ck_assert_int_eq(elf_open_memory(program, sizeof(*program), &e1, NULL), 0);
	ck_assert_int_eq(elf_open_memory(extra, sizeof(*extra), &e2, NULL), 0);

	from.arg = e2;
	ck_assert_int_eq(unwtab_compile(e1, &from, &UNWTAB_LIMITS_DEFAULT, &t), 0);
	ck_assert_int_eq(words_at(t, 0x100), 2);
	ck_assert_int_eq(words_at(t, 0x13f), 2);
	ck_assert_int_eq(row_at(t, 0x150).cfa, WK_CFA_NONE);
	ck_assert_int_eq(words_at(t, 0x200), 4);
	ck_assert_int_eq(words_at(t, 0x2ff), 4);
	ck_assert_int_eq(words_at(t, 0x300), 3);
	ck_assert_int_eq(words_at(t, 0x31f), 3);
	ck_assert_int_eq(row_at(t, 0x330).cfa, WK_CFA_NONE);
	ck_assert_uint_eq(unwtab_stats(t)->fdes, 3);
	unwtab_free(t);

	/* its own comes first */
	from.arg = NULL;
	ck_assert_int_eq(unwtab_compile(e2, &from, &UNWTAB_LIMITS_DEFAULT, &t), 0);
	ck_assert_int_eq(words_at(t, 0x100), 9);
	ck_assert_int_eq(words_at(t, 0x200), 4);
	unwtab_free(t);
}
END_TEST

START_TEST(limits)
{
	struct unwtab_limits l = UNWTAB_LIMITS_DEFAULT;
	struct section s = { .n = 0 };
	struct image *i cleanup(freep_cleanup) = NULL;
	struct unwtab *t = NULL;
	size_t cie = usual_cie(&s);

	for (uint32_t n = 0; n < 10; n++)
		put_fde(&s, cie, 0x100 + n * 0x10, 0x10, (uint8_t)(n + 1));
	put_fde(&s, cie, 0x4000, 0x10, 3);
	i = image_of(&s);
	l.fdes = 10;
	ck_assert_int_eq(compile_image(i, &l, &t), -E2BIG);
	l = UNWTAB_LIMITS_DEFAULT;
	l.rows = 11;
	ck_assert_int_eq(compile_image(i, &l, &t), -E2BIG);
	l = UNWTAB_LIMITS_DEFAULT;
	l.section_bytes = s.n - 1;
	ck_assert_int_eq(compile_image(i, &l, &t), -E2BIG);
	l = UNWTAB_LIMITS_DEFAULT;
	l.text_bytes = 0x3000;
	ck_assert_int_eq(compile_image(i, &l, &t), -E2BIG);
	i->h.e_type = ET_REL;
	ck_assert_int_eq(compile_image(i, &UNWTAB_LIMITS_DEFAULT, &t), -ENOTSUP);
	ck_assert_ptr_null(t);
}
END_TEST

/* Random functions with random rows: every offset as a naive array has it. */
static void random_table(uint64_t seed)
{
	static int expect[TEXT_SIZE];
	struct section s = { .n = 0 };
	struct unwtab *t cleanup(unwtab_cleanup) = NULL;
	size_t cie = usual_cie(&s), at = seed % 700, last = SIZE_MAX;
	uint64_t x = seed * 0x9e3779b97f4a7c15u | 1;

	memset(expect, 0, sizeof(expect));
	while (s.n < sizeof(s.data) - 400 && at < TEXT_SIZE - 2000) {
		uint32_t size = 1 + (uint32_t)(x >> 8) % (x & 64 ? 40 : 1200), pos = 0;
		int words = 1;

		for (size_t p = last; p < at && at - last <= 15; p++) /* padding */
			expect[p] = expect[last - 1];
		begin_fde(&s, cie, CFI_VADDR, TEXT_VADDR + at, size);
		for (int n = 0; n < 20; n++) {
			uint8_t delta = 1 + (x & 128 ? x % 5 : x % 63);

			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			for (uint32_t p = pos; p < MIN(pos + delta, size); p++)
				expect[at + p] = words;
			pos = MIN(pos + delta, size);
			words = 1 + (int)((x >> 20) % 14);
			BYTES(&s, 0x40 | delta, 0x0e, (uint8_t)(8 * words));
		}
		for (; pos < size; pos++)
			expect[at + pos] = words;
		end(&s);
		last = at + size;
		at = last + (x % 3 ? x % 16 : x % 1500);
	}
	t = compiled(&s);
	for (size_t p = 0; p < TEXT_SIZE; p++)
		if (words_at(t, p) != expect[p])
			ck_abort_msg("seed %d, offset %#zx: %d, not %d", (int)seed, p,
				     words_at(t, p), expect[p]);
}

START_TEST(random_tables)
{
	for (uint64_t seed = 1; seed <= 40; seed++)
		random_table(seed);
}
END_TEST

/* ---- walks ---------------------------------------------------------------------------------- */

/* The tables of everything this process has loaded. */
static struct module {
	uint64_t base;
	struct elf *elf;
	struct unwtab *table;
} modules[64];
static size_t nmodules;

static int load_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *path = info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe";
	struct module m = { .base = info->dlpi_addr };
	int fd cleanup(fd_cleanup) = open(path, O_RDONLY | O_CLOEXEC);

	(void)size;
	(void)arg;
	/* The image stays: elf_vaddr_to_offset needs only its headers, read at open. */
	if (fd < 0 || nmodules == ARRAY_SIZE(modules) || elf_open_fd(fd, &m.elf, NULL))
		return 0;
	if (unwtab_compile(m.elf, NULL, &UNWTAB_LIMITS_DEFAULT, &m.table))
		elf_free(m.elf);
	else
		modules[nmodules++] = m;
	return 0;
}

/* One step: the row in force at pc, then the step that BPF would make. */
static enum wk_outcome step(struct wk_regs *r)
{
	uint64_t pc = r->pc - !r->exact, offset;
	struct wk_side side;
	struct wk_row row;

	for (size_t i = 0; i < nmodules; i++)
		if (elf_exec_segment(modules[i].elf, pc - modules[i].base) &&
		    !elf_vaddr_to_offset(modules[i].elf, pc - modules[i].base, &offset))
			return unwtab_lookup(modules[i].table, offset, &row, &side)
				   ? WK_USER_NO_INFO
				   : wk_step(r, row, &side);
	return WK_USER_NO_MAPPING;
}

static struct wk_regs regs_of(const ucontext_t *u)
{
#ifdef __aarch64__
	struct wk_regs r = { .pc = u->uc_mcontext.pc,
			     .sp = u->uc_mcontext.sp,
			     .fp = u->uc_mcontext.regs[29],
			     .lr = u->uc_mcontext.regs[30] };
#else
	const greg_t *g = u->uc_mcontext.gregs;
	struct wk_regs r = { .pc = (uint64_t)g[REG_RIP],
			     .sp = (uint64_t)g[REG_RSP],
			     .fp = (uint64_t)g[REG_RBP] };
#endif
	r.exact = r.leaf = 1;
	return r;
}

enum { DEPTH = 64 };

/* Return addresses from here to the root; how it ended. */
static enum wk_outcome walk(struct wk_regs r, uint64_t *ret_pcs, size_t *n)
{
	enum wk_outcome o = 0;

	for (*n = 0; !o && *n < DEPTH; (*n)++) {
		ret_pcs[*n] = r.pc;
		o = step(&r);
	}
	return o;
}

static enum wk_outcome outcome;
static uint64_t pcs[DEPTH];
static void *peers[DEPTH];
static size_t npcs;
static int npeers;

static __attribute__((noinline)) int walk_here(int depth)
{
	ucontext_t u;
	volatile int guard = depth;

	if (depth)
		return walk_here(depth - 1) + guard;
	ck_assert_int_eq(getcontext(&u), 0);
	outcome = walk(regs_of(&u), pcs, &npcs);
	npeers = backtrace(peers, DEPTH);
	return guard;
}

/* The walk's frames, from the caller of walk_here on, are those that libgcc's unwinder found; its
 * list begins with frames of its own where a sanitizer stands between. */
static void ck_peers(void)
{
	size_t i = 1;
	int j = 0;

	ck_assert_int_eq(outcome, WK_USER_ROOT);
	ck_assert_uint_gt(npcs, 8);
	while (j < npeers && (uint64_t)(uintptr_t)peers[j] != pcs[1])
		j++;
	for (; i < npcs && j < npeers; i++, j++)
		ck_assert_uint_eq(pcs[i], (uint64_t)(uintptr_t)peers[j]);
	ck_assert_uint_eq(i, npcs);
}

START_TEST(walks_itself)
{
	dl_iterate_phdr(load_module, NULL);
	walk_here(5);
	ck_peers();
}
END_TEST

static void on_signal(int sig)
{
	(void)sig;
	walk_here(1);
}

/* A handler's frames, the trampoline, the interrupted function and its callers. */
START_TEST(walks_through_a_signal)
{
	struct sigaction sa = { .sa_handler = on_signal };

	dl_iterate_phdr(load_module, NULL);
	ck_assert_int_eq(sigaction(SIGUSR1, &sa, NULL), 0);
	ck_assert_int_eq(raise(SIGUSR1), 0);
	ck_peers();
}
END_TEST

/* The same on another stack, which lies elsewhere in memory. */
START_TEST(walks_off_an_alternate_stack)
{
	static char other[1 << 16];
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	stack_t alt = { .ss_sp = other, .ss_size = sizeof(other) };

	dl_iterate_phdr(load_module, NULL);
	ck_assert_int_eq(sigaltstack(&alt, NULL), 0);
	ck_assert_int_eq(sigaction(SIGUSR1, &sa, NULL), 0);
	ck_assert_int_eq(raise(SIGUSR1), 0);
	ck_peers();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unwtab");
	TCase *tables = tcase_create("tables"), *walks = tcase_create("walks");
	SRunner *runner;
	int failed;

	tcase_add_test(tables, gaps_and_padding);
	tcase_add_test(tables, overlaps);
	tcase_add_test(tables, only_executable_code);
	tcase_add_test(tables, equal_side_rules_are_one);
	tcase_add_test(tables, broken_instructions_stop_the_walk);
	tcase_add_test(tables, clone_by_its_code);
	tcase_add_test(tables, trampoline_by_its_code);
	tcase_add_test(tables, signal_fde_from_the_byte_before);
	tcase_add_test(tables, bare_entry_point);
	tcase_add_test(tables, code_without_fdes);
	tcase_add_test(tables, without_section_headers);
	tcase_add_test(tables, debug_frame);
	tcase_add_test(tables, go_debug_frame);
	tcase_add_test(tables, limits);
	tcase_add_test(tables, random_tables);
	tcase_add_test(walks, walks_itself);
	tcase_add_test(walks, walks_through_a_signal);
	tcase_add_test(walks, walks_off_an_alternate_stack);
	suite_add_tcase(s, tables);
	suite_add_tcase(s, walks);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
