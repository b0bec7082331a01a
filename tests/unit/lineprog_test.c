/* Tests of symbol/lineprog.h: programs made by hand, and those of compilers. */
#include "lines_corpus.h"

#include <dwarf.h>

#include "symbol/lineprog.h"

struct program {
	uint8_t bytes[512];
	size_t n;
};

static void put(struct program *p, const void *bytes, size_t n)
{
	ck_assert_uint_le(p->n + n, sizeof(p->bytes));
	memcpy(p->bytes + p->n, bytes, n);
	p->n += n;
}

#define PUT(p, ...) put(p, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

/* Version 3: directories "inc", "/abs", files a.c (0), ../b.h (1), c.h (2). Opcode 13 + n: line += n % 14
 * - 3, address += n / 14. */
static struct program header(void)
{
	static const char tables[] = "inc\0/abs\0\0a.c\0\0\0\0../b.h\0\1\0\0c.h\0\2\0\0";
	struct program p = { .n = 0 };

	PUT(&p, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0);
	PUT(&p, 1, 1, 0xfd, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1);
	put(&p, tables, sizeof(tables));	/* its NUL ends the files */
	p.bytes[6] = (uint8_t)(p.n - 10);	/* header_length */
	return p;
}

static void set_address(struct program *p, uint64_t at)
{
	PUT(p, 0, 9, DW_LNE_set_address);
	put(p, &at, sizeof(at));
}

#define END_SEQUENCE 0, 1, DW_LNE_end_sequence

/* An ELF file of the program, its image and what was read of it. */
struct read {
	struct made *m;
	struct elf *e;
	struct dwarfimage *image;
	struct lineprog *p;
	int r;
};

static struct read read_program(struct program *p)
{
	struct read r = { .m = made_new(EM_X86_64) };
	uint32_t length = (uint32_t)p->n - 4;

	memcpy(p->bytes, &length, sizeof(length));
	made_section(r.m, ".debug_info", SHT_PROGBITS, 0, "x", 1);
	made_section(r.m, ".debug_abbrev", SHT_PROGBITS, 0, "x", 1);
	made_section(r.m, ".debug_line", SHT_PROGBITS, 0, p->bytes, p->n);
	r.e = made_open(r.m);
	ck_assert_int_eq(dwarfimage_new(r.e, 1 << 20, &r.image), 0);
	r.r = lineprog_read(r.image, r.e, 0, in_a_minute(), &r.p);
	return r;
}

static void read_cleanup(struct read *r)
{
	lineprog_free(r->p);
	dwarfimage_free(r->image);
	elf_free(r->e);
	free(r->m);
}

static const char *path(const struct read *r, uint64_t file, const char *comp_dir)
{
	static char text[256];
	cleanup(buf_cleanup) struct buf b = BUF_INIT(4096);

	if (!lineprog_path(r->p, file, comp_dir, &b))
		return NULL;
	snprintf(text, sizeof(text), "%s", b.data);
	return text;
}

static uint32_t line(const struct read *r, uint64_t at)
{
	struct lineprog_row row = { .line = UINT32_MAX };

	(void)lineprog_lookup(r->p, at, &row);
	return row.line;
}

START_TEST(rows)
{
	struct program p = header();
	struct read r cleanup(read_cleanup) = { 0 };
	struct lineprog_row row;
	uint64_t at = MADE_BASE + 64;

	set_address(&p, at);
	PUT(&p, 13 + 3 + 4);				/* line 5 */
	PUT(&p, 13 + 14 * 2 + 3 + 1);			/* +2: line 6 */
	PUT(&p, DW_LNS_set_file, 2, DW_LNS_set_column, 7, DW_LNS_advance_line, 0x7f, DW_LNS_copy);
	PUT(&p, DW_LNS_advance_pc, 4, DW_LNS_copy);	/* +6: the same line again */
	PUT(&p, DW_LNS_fixed_advance_pc, 4, 0, END_SEQUENCE);
	r = read_program(&p);
	ck_assert_int_eq(r.r, 0);
	ck_assert_uint_eq(line(&r, at - 1), UINT32_MAX);
	ck_assert_uint_eq(line(&r, at), 5);
	ck_assert_uint_eq(line(&r, at + 1), 5);
	ck_assert(lineprog_lookup(r.p, at + 2, &row));	/* of two rows of one address the last */
	ck_assert(row.line == 5 && row.file == 2 && row.column == 7);
	ck_assert_uint_eq(line(&r, at + 9), 5);
	ck_assert_uint_eq(line(&r, at + 10), UINT32_MAX);
}
END_TEST

START_TEST(dropped_code_hides_nothing)
{
	struct program p = header();
	struct read r cleanup(read_cleanup) = { 0 };
	uint64_t at = MADE_BASE + 64;

	set_address(&p, 0);		/* the linker threw this one away ... */
	PUT(&p, 13 + 3, DW_LNS_advance_pc, 0x80, 0x80, 0x84, 2, END_SEQUENCE);
	set_address(&p, at);		/* ... whose bytes would reach over this one */
	PUT(&p, 13 + 3 + 8, DW_LNS_advance_pc, 16, END_SEQUENCE);
	set_address(&p, at + 16);
	PUT(&p, 13 + 3 + 9, DW_LNS_advance_pc, 16, END_SEQUENCE);
	r = read_program(&p);
	ck_assert_int_eq(r.r, 0);
	ck_assert_uint_eq(line(&r, at + 5), 9);
	ck_assert_uint_eq(line(&r, at + 16), 10);
	ck_assert_uint_eq(line(&r, 5), UINT32_MAX);
}
END_TEST

START_TEST(paths)
{
	struct program p = header();
	struct read r cleanup(read_cleanup) = { 0 };

	set_address(&p, MADE_BASE + 64);
	PUT(&p, 13 + 3, DW_LNS_advance_pc, 1, END_SEQUENCE);
	r = read_program(&p);
	ck_assert_int_eq(r.r, 0);
	ck_assert_str_eq(path(&r, 1, "/build//x/./"), "/build/x/a.c");
	ck_assert_str_eq(path(&r, 2, "/build/x"), "/build/x/b.h");
	ck_assert_str_eq(path(&r, 3, "/build/x"), "/abs/c.h");
	ck_assert_str_eq(path(&r, 1, ""), "a.c");
	ck_assert_str_eq(path(&r, 2, "../.."), "../../b.h");
	ck_assert_str_eq(path(&r, 2, "/.."), "/b.h");
	ck_assert_ptr_null(path(&r, 0, "/x"));
	ck_assert_ptr_null(path(&r, 4, "/x"));
}
END_TEST

START_TEST(malformed)
{
	struct program p = header();
	struct read r cleanup(read_cleanup) = { 0 };
	struct read cut cleanup(read_cleanup) = { 0 };
	struct read future cleanup(read_cleanup) = { 0 };

	set_address(&p, MADE_BASE + 64);
	PUT(&p, 13 + 3, DW_LNS_advance_pc, 4, END_SEQUENCE);
	PUT(&p, 0, 200);	/* longer than what is left: the sequence before it stays */
	r = read_program(&p);
	ck_assert_int_eq(r.r, 0);
	ck_assert_uint_eq(line(&r, MADE_BASE + 65), 1);
	p.n = 20;
	cut = read_program(&p);
	ck_assert_int_eq(cut.r, -EBADMSG);
	p = header();
	p.bytes[4] = 6;
	future = read_program(&p);
	ck_assert_int_eq(future.r, -ENOTSUP);
}
END_TEST

/* Two bytes of program that make a row: over the limit of rows, or of time, it ends. */
START_TEST(deadline)
{
	struct program p = header();
	struct read r cleanup(read_cleanup) = { 0 };
	struct lineprog *late = NULL;

	set_address(&p, MADE_BASE + 64);
	PUT(&p, 13 + 3, DW_LNS_advance_pc, 4, END_SEQUENCE);
	r = read_program(&p);
	ck_assert_int_eq(lineprog_read(r.image, r.e, 0, 1, &late), -ETIME);
	ck_assert_ptr_null(late);
}
END_TEST

START_TEST(of_compilers)
{
	static const char *const files[] = { "c-2", "c-4", "c-5", "clang-5" };

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		struct corpus c cleanup(corpus_close) = corpus_open(files[i]);
		struct dwarfimage *image cleanup(dwarfimage_cleanup) = NULL;
		struct read r = { .e = c.e };
		struct lineprog_row row;

		ck_assert_int_eq(dwarfimage_new(c.e, 1 << 20, &image), 0);
		ck_assert_int_eq(lineprog_read(image, c.e, 0, in_a_minute(), &r.p), 0);
		for (uint64_t at = c.text; at < c.text + c.size; at++)
			ck_assert(lineprog_lookup(r.p, at, &row) && row.line <= 8);
		ck_assert_str_eq(path(&r, row.file, "/src"), "/src/a.c");
		lineprog_free(r.p);
	}
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { rows, dropped_code_hides_nothing, paths, malformed, deadline,
				       of_compilers };

	return made_run("lineprog", tests, ARRAY_SIZE(tests));
}
