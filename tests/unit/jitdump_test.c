/* Tests of symbol/jitdump.h: records of every kind, times, lines, and files that make no sense. */
#include <check.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "made_jitdump.h"
#include "symbol/jitdump.h"

static struct buf b;
static struct jitdump dump;
static struct codemap codes;

static void set_up(void)
{
	b = (struct buf)BUF_INIT(1 << 20);
	dump.fd = -1;
	codes = (struct codemap)CODEMAP_INIT;
}

static void tear_down(void)
{
	buf_free(&b);
	jitdump_close(&dump);
	codemap_free(&codes);
}

static int file_of(const void *data, size_t n)
{
	int fd = memfd_create("dump", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, data, n), (ssize_t)n);
	return fd;
}

static int open_dump(void)
{
	ck_assert_int_eq(b.err, 0);
	return jitdump_open(&dump, file_of(b.data, b.len));
}

static bool update(uint64_t until)
{
	bool changed;

	ck_assert_int_eq(jitdump_update(&dump, &codes, until, UINT64_MAX, &changed), 0);
	return changed;
}

static struct jitdump_code at(uint64_t addr)
{
	const struct code_piece *p = codemap_find(&codes, addr);
	struct jitdump_code c;

	ck_assert_ptr_nonnull(p);
	ck_assert_int_eq(jitdump_name(&dump, p, addr, &c), 0);
	return c;
}

static void ck_code(uint64_t addr, const char *name, uint64_t start, const char *file, uint32_t line)
{
	struct jitdump_code c = at(addr);

	ck_assert_str_eq(c.name, name);
	ck_assert_uint_eq(c.start, start);
	ck_assert_str_eq(c.file, file);
	ck_assert_uint_eq(c.line, line);
}

START_TEST(loads)
{
	jd_header(&b, 0);
	jd_load(&b, 10, 0x1000, 0x100, "first");
	jd_record(&b, 77, 8, 11);	/* of a later version */
	jd_u64(&b, 0);
	jd_load(&b, 12, 0x2000, 0, "empty");
	jd_load(&b, 12, UINT64_MAX - 4, 100, "nowhere");
	jd_load(&b, 13, 0x1080, 0x100, "second");
	jd_record(&b, 3, 0, 14);
	jd_load(&b, 15, 0x3000, 0x100, "after the end");
	ck_assert_int_eq(open_dump(), 0);
	ck_assert(update(UINT64_MAX));
	ck_assert(!update(UINT64_MAX));
	ck_code(0x107f, "first", 0x1000, "", 0);
	ck_code(0x1080, "second", 0x1080, "", 0);
	ck_assert_ptr_null(codemap_find(&codes, 0x2000));
	ck_assert_ptr_null(codemap_find(&codes, 0x3000));
	ck_assert_uint_eq(dump.loads, 2);
	ck_assert(dump.closed && !dump.broken);
}
END_TEST

START_TEST(times)
{
	jd_header(&b, 0);
	jd_load(&b, 100, 0x1000, 0x100, "first");
	jd_load(&b, 200, 0x1000, 0x100, "second");
	jd_load(&b, 300, 0x1000, 0x100, "third");
	ck_assert_int_eq(open_dump(), 0);
	ck_assert_uint_eq(jitdump_next_time(&dump), 100);
	ck_assert(!update(99));
	ck_assert(update(100));
	ck_code(0x1000, "first", 0x1000, "", 0);
	ck_assert_uint_eq(jitdump_next_time(&dump), 200);
	ck_assert(update(299));
	ck_code(0x1000, "second", 0x1000, "", 0);
	ck_assert(update(UINT64_MAX));
	ck_code(0x1000, "third", 0x1000, "", 0);
	ck_assert_uint_eq(jitdump_next_time(&dump), UINT64_MAX);
}
END_TEST

START_TEST(stamps_of_the_processor)
{
	jd_header(&b, 1);
	jd_load(&b, 100, 0x1000, 0x100, "f");
	ck_assert_int_eq(open_dump(), 0);
	ck_assert_uint_eq(jitdump_next_time(&dump), UINT64_MAX);
	ck_assert(update(1));
	ck_code(0x1000, "f", 0x1000, "", 0);
}
END_TEST

START_TEST(moves)
{
	static const struct jd_line lines[] = { { 0x1000, 5, "a.c" }, { 0x1010, 6, "\xff" } };

	jd_header(&b, 0);
	jd_lines(&b, 1, 0x1000, lines, 2);
	jd_load(&b, 1, 0x1000, 0x100, "f");
	jd_load(&b, 1, 0x2000, 0x100, "g");
	jd_move(&b, 2, 0x1000, 0x5000, 0x100);
	jd_move(&b, 3, 0x2000, 0x2040, 0x100);		/* over itself */
	jd_move(&b, 4, 0x9000, 0xa000, 0x100);		/* nobody knew it */
	ck_assert_int_eq(open_dump(), 0);
	ck_assert(update(UINT64_MAX));
	ck_assert_ptr_null(codemap_find(&codes, 0x1000));
	ck_code(0x5018, "f", 0x5000, "a.c", 6);
	ck_assert_ptr_null(codemap_find(&codes, 0x2000));
	ck_assert_str_eq(at(0x2100).name, "g");
	ck_assert_ptr_null(codemap_find(&codes, 0xa000));
	ck_assert_uint_eq(dump.moves, 3);
	ck_assert_uint_eq(dump.lost_moves, 0);
}
END_TEST

START_TEST(lines)
{
	static const struct jd_line own[] = { { 0x1000, 5, "/src/a.c" }, { 0x1010, 7, "\xff" },
					      { 0x1020, 30, "/src/b.h" }, { 0x1030, 8, "/src/a.c" } };
	static const struct jd_line v8[] = { { 0x2040, 1, "x.js" }, { 0x2050, 2, "x.js" },
					     { 0x213f, 3, "x.js" } };
	static const struct jd_line other[] = { { 0x9000, 1, "other.c" } };

	jd_header(&b, 0);
	jd_lines(&b, 1, 0x1000, own, ARRAY_SIZE(own));
	jd_record(&b, 4, 24, 1);	/* unwinding info comes in between */
	for (int i = 0; i < 3; i++)
		jd_u64(&b, 0);
	jd_load(&b, 1, 0x1000, 0x100, "f");
	jd_lines(&b, 2, 0x2000, v8, ARRAY_SIZE(v8));
	jd_load(&b, 2, 0x2000, 0x100, "JS:*f x.js:1:1");
	jd_lines(&b, 3, 0x9000, other, 1);
	jd_load(&b, 3, 0x3000, 0x100, "not theirs");
	ck_assert_int_eq(open_dump(), 0);
	ck_assert(update(UINT64_MAX));
	ck_code(0x1000, "f", 0x1000, "/src/a.c", 5);
	ck_code(0x101f, "f", 0x1000, "/src/a.c", 7);
	ck_code(0x1020, "f", 0x1000, "/src/b.h", 30);
	ck_code(0x10ff, "f", 0x1000, "/src/a.c", 8);
	ck_code(0x2000, "JS:*f x.js:1:1", 0x2000, "x.js", 1);
	ck_code(0x2010, "JS:*f x.js:1:1", 0x2000, "x.js", 2);
	ck_code(0x20ff, "JS:*f x.js:1:1", 0x2000, "x.js", 3);
	ck_code(0x3000, "not theirs", 0x3000, "", 0);
}
END_TEST

/* What is wrong in one function's lines costs these lines only. */
START_TEST(bad_lines)
{
	static const struct jd_line cases[][2] = {
		{ { 0x1000, 1, "a.c" }, { 0xfff, 2, "a.c" } },		/* before the code */
		{ { 0x1000, 1, "a.c" }, { 0x1141, 2, "a.c" } },		/* after it */
		{ { 0x1000, 1, "a\001" }, { 0x1010, 2, "a.c" } },	/* no text */
	};
	size_t counts;

	for (size_t i = 0; i < ARRAY_SIZE(cases) + 2; i++) {
		tear_down();
		set_up();
		jd_header(&b, 0);
		counts = b.len + 24;
		jd_lines(&b, 1, 0x1000, cases[i % ARRAY_SIZE(cases)], 2);
		if (i == ARRAY_SIZE(cases))		/* more entries than there are bytes for */
			memcpy(b.data + counts, &(uint64_t){ UINT64_MAX }, 8);
		if (i == ARRAY_SIZE(cases) + 1)		/* fewer */
			memcpy(b.data + counts, &(uint64_t){ 1 }, 8);
		jd_load(&b, 1, 0x1000, 0x100, "f");
		ck_assert_int_eq(open_dump(), 0);
		ck_assert(update(UINT64_MAX));
		ck_code(0x1010, "f", 0x1000, "", 0);
	}
}
END_TEST

START_TEST(grows)
{
	int fd, writing;

	jd_header(&b, 0);
	jd_load(&b, 1, 0x1000, 0x100, "f");
	jd_load(&b, 2, 0x2000, 0x100, "g");
	fd = file_of(b.data, b.len - 5);
	writing = dup(fd);
	ck_assert_int_eq(jitdump_open(&dump, fd), 0);
	ck_assert(update(UINT64_MAX));
	ck_assert_ptr_null(codemap_find(&codes, 0x2000));
	ck_assert_uint_eq(jitdump_next_time(&dump), UINT64_MAX);
	ck_assert(!update(UINT64_MAX));
	ck_assert_int_eq(pwrite(writing, b.data + b.len - 5, 5, (off_t)b.len - 5), 5);
	ck_assert(update(UINT64_MAX));
	ck_code(0x2000, "g", 0x2000, "", 0);
	ck_assert_int_eq(ftruncate(writing, 50), 0);
	ck_assert(!update(UINT64_MAX));
	ck_assert_int_eq(jitdump_name(&dump, codemap_find(&codes, 0x2000), 0x2000,
				      &(struct jitdump_code){ 0 }), -ESTALE);
	close(writing);
}
END_TEST

START_TEST(bad_headers)
{
	static const struct {
		uint32_t at, value;
		int error;
	} cases[] = {
		{ 0, 0x4A695445, -EBADMSG }, { 0, 0x4454694A, -ENOTSUP }, { 4, 2, -ENOTSUP },
		{ 8, 39, -EBADMSG },	     { 8, 1 << 20, -EBADMSG },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		buf_reset(&b);
		jd_header(&b, 0);
		memcpy(b.data + cases[i].at, &cases[i].value, 4);
		ck_assert_int_eq(open_dump(), cases[i].error);
	}
	ck_assert_int_eq(jitdump_open(&dump, file_of("", 0)), -EBADMSG);
	ck_assert_int_eq(jitdump_open(&dump, file_of("DTiJ", 4)), -EBADMSG);
}
END_TEST

START_TEST(bad_records)
{
	jd_header(&b, 0);
	jd_load(&b, 1, 0x1000, 0x100, "f");
	jd_u32(&b, 0);
	jd_u32(&b, 15);		/* shorter than its head */
	jd_u64(&b, 0);
	ck_assert_int_eq(open_dump(), 0);
	ck_assert(update(UINT64_MAX));
	ck_assert(dump.broken);
	ck_code(0x1000, "f", 0x1000, "", 0);
	tear_down();
	set_up();
	jd_header(&b, 0);
	jd_record(&b, 0, 40, 1);	/* no room for a name */
	for (int i = 0; i < 5; i++)
		jd_u64(&b, 0x1000);
	ck_assert_int_eq(open_dump(), 0);
	update(UINT64_MAX);
	ck_assert(dump.broken);
	ck_assert_uint_eq(codes.n, 0);
}
END_TEST

START_TEST(many_moves)
{
	jd_header(&b, 0);
	b.max = 64 << 20;
	for (uint64_t i = 0; i < 20000; i++)
		jd_load(&b, 1, 0x100000 + 32 * i, 16, "f");
	for (uint64_t i = 0; i < 2000; i++)
		jd_move(&b, 2, 0x100000 + 32 * i, 0x900000 + 32 * i, 16);
	ck_assert_int_eq(open_dump(), 0);
	ck_assert(update(UINT64_MAX));
	ck_assert_str_eq(at(0x900000).name, "f");
	ck_assert_uint_gt(dump.lost_moves, 0);
	ck_assert_ptr_null(codemap_find(&codes, 0x100000 + 32 * 1999));
	ck_assert_ptr_null(codemap_find(&codes, 0x900000 + 32 * 1999));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("jitdump");
	TCase *t = tcase_create("jitdump");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, loads);
	tcase_add_test(t, times);
	tcase_add_test(t, stamps_of_the_processor);
	tcase_add_test(t, moves);
	tcase_add_test(t, lines);
	tcase_add_test(t, bad_lines);
	tcase_add_test(t, grows);
	tcase_add_test(t, bad_headers);
	tcase_add_test(t, bad_records);
	tcase_add_test(t, many_moves);
	tcase_set_timeout(t, 30);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
