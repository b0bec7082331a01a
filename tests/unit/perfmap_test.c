/* Tests of symbol/perfmap.h: lines, and files that grow, shrink, are written anew, end in the middle. */
#include <check.h>
#include <fcntl.h>

#include "base/clock.h"
#include "symbol/perfmap.h"

static struct perfmap map;
static struct codemap codes;
static int file;		/* for writing */

static void set_up(void)
{
	char path[] = "/tmp/perfmap_test.XXXXXX";

	file = mkstemp(path);
	ck_assert_int_ge(file, 0);
	perfmap_init(&map, open(path, O_RDONLY | O_CLOEXEC));
	ck_assert_int_ge(map.fd, 0);
	unlink(path);
	codes = (struct codemap)CODEMAP_INIT;
}

static void tear_down(void)
{
	perfmap_close(&map);
	codemap_free(&codes);
	close(file);
}

static void put(const char *text)
{
	ck_assert_int_eq(write(file, text, strlen(text)), (ssize_t)strlen(text));
}

/* Whether something has changed. */
static bool update(void)
{
	bool changed = false;

	ck_assert_int_eq(perfmap_update(&map, &codes, clock_monotonic() + 10000000000, &changed), 0);
	return changed;
}

/* NULL: nothing is there. */
static void ck_at(uint64_t addr, const char *name, uint64_t start)
{
	const struct code_piece *p = codemap_find(&codes, addr);
	char text[PERFMAP_NAME_MAX + 1];
	uint64_t at;

	if (!name) {
		ck_assert_ptr_null(p);
		return;
	}
	ck_assert_ptr_nonnull(p);
	ck_assert_int_eq(perfmap_name(&map, p->where, addr, &at, text, sizeof(text)), 0);
	ck_assert_str_eq(text, name);
	ck_assert_uint_eq(at, start);
}

START_TEST(lines)
{
	static const struct {
		const char *text;
		uint64_t start, end;
		const char *name;	/* NULL: no entry */
	} cases[] = {
		{ "7f0000001000 20 f", 0x7f0000001000, 0x7f0000001020, "f" },
		{ "0x7F0000001000 0X20 a b  c ", 0x7f0000001000, 0x7f0000001020, "a b  c " },
		{ "10\t8\tname", 0x10, 0x18, "name" },
		{ "10  8   name", 0x10, 0x18, "name" },
		{ "10 8 name\r", 0x10, 0x18, "name" },
		{ "00000000000000000010 8 f", 0x10, 0x18, "f" },
		{ "10 8 0", 0x10, 0x18, "0" },
		{ "ffffffffffffff 1 f", 0xffffffffffffff, 0x100000000000000, "f" },
		{ "ffffffffffffff 2 f", 0, 0, NULL },	/* beyond user space */
		{ "100000000000000 1 f", 0, 0, NULL },
		{ "ffffffffffffffff1 1 f", 0, 0, NULL },
		{ "10 ffffffffffffffff f", 0, 0, NULL },
		{ "10 0 f", 0, 0, NULL },
		{ "10 8", 0, 0, NULL },
		{ "10 8 ", 0, 0, NULL },
		{ "10 8 \r", 0, 0, NULL },
		{ "10", 0, 0, NULL },
		{ "", 0, 0, NULL },
		{ " 10 8 f", 0, 0, NULL },
		{ "-10 8 f", 0, 0, NULL },
		{ "0x 8 f", 0, 0, NULL },
		{ "1g 8 f", 0, 0, NULL },
		{ "# a comment", 0, 0, NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct perfmap_line line;
		int r = perfmap_parse_line(cases[i].text, strlen(cases[i].text), &line);

		ck_assert_msg(r == (cases[i].name ? 0 : -EINVAL), "'%s': %d", cases[i].text, r);
		if (r)
			continue;
		ck_assert_uint_eq(line.start, cases[i].start);
		ck_assert_uint_eq(line.end, cases[i].end);
		ck_assert_uint_eq(line.name_len, strlen(cases[i].name));
		ck_assert(!memcmp(line.name, cases[i].name, line.name_len));
	}
}
END_TEST

START_TEST(grows)
{
	ck_assert(!update());
	put("1000 100 first\n2000 100 half of");
	ck_assert(update());
	ck_at(0x10ff, "first", 0x1000);
	ck_at(0x1100, NULL, 0);
	ck_at(0x2000, NULL, 0);		/* not complete */
	ck_assert(!update());
	put(" a line\n1080 100 later\nnonsense\n");
	ck_assert(update());
	ck_at(0x2000, "half of a line", 0x2000);
	ck_at(0x107f, "first", 0x1000);
	ck_at(0x1080, "later", 0x1080);
	ck_assert_uint_eq(map.lines, 4);
	ck_assert_uint_eq(map.bad, 1);
	ck_assert_uint_eq(map.rewrites, 0);
	ck_assert(!update());
}
END_TEST

START_TEST(is_written_anew)
{
	put("1000 100 old\n2000 100 old too\n");
	ck_assert(update());
	ck_assert_int_eq(ftruncate(file, 0), 0);
	lseek(file, 0, SEEK_SET);
	put("1000 100 new\n");
	ck_assert(update());	/* shorter */
	ck_at(0x1000, "new", 0x1000);
	ck_at(0x2000, NULL, 0);
	ck_assert_int_eq(ftruncate(file, 0), 0);
	lseek(file, 0, SEEK_SET);
	put("3000 100 newest, and longer than what was there before\n");
	ck_assert(update());
	ck_at(0x1000, NULL, 0);
	ck_at(0x3000, "newest, and longer than what was there before", 0x3000);
	ck_assert_uint_eq(map.rewrites, 2);
}
END_TEST

START_TEST(changes_behind_our_back)
{
	char name[PERFMAP_NAME_MAX + 1];
	uint64_t start;

	put("1000 100 f\n");
	ck_assert(update());
	ck_assert_int_eq(pwrite(file, "9000 100 f\n", 11, 0), 11);
	ck_assert_int_eq(perfmap_name(&map, 0, 0x1000, &start, name, sizeof(name)), -ESTALE);
	ck_assert_int_eq(ftruncate(file, 0), 0);
	ck_assert_int_eq(perfmap_name(&map, 0, 0x1000, &start, name, sizeof(name)), -ESTALE);
	ck_assert_int_eq(perfmap_name(&map, 1 << 30, 0x1000, &start, name, sizeof(name)), -ESTALE);
}
END_TEST

START_TEST(long_names_and_lines)
{
	char name[PERFMAP_NAME_MAX + 2];
	char *line = malloc(PERFMAP_LINE_MAX * 5);

	memset(name, 'n', sizeof(name));
	name[PERFMAP_NAME_MAX + 1] = '\0';
	put("1000 100 ");
	put(name);
	put("\n");
	memset(line, 'x', (size_t)PERFMAP_LINE_MAX * 5);
	memcpy(line, "2000 100 ", 9);
	ck_assert_int_eq(write(file, line, (size_t)PERFMAP_LINE_MAX * 5), PERFMAP_LINE_MAX * 5);
	update();
	put(" and its end\n3000 100 after\n");
	update();
	name[PERFMAP_NAME_MAX] = '\0';
	ck_at(0x1000, name, 0x1000);
	ck_at(0x2000, NULL, 0);
	ck_at(0x3000, "after", 0x3000);
	free(line);
}
END_TEST

START_TEST(many_lines)
{
	enum { N = 50000 };	/* some chunks */
	char name[32];
	FILE *f = fdopen(dup(file), "w");

	for (unsigned int i = 0; i < N; i++)
		fprintf(f, "%x 10 function_%u\n", 0x10000 + 16 * i, i);
	fclose(f);
	ck_assert(update());
	ck_assert_uint_eq(codes.n, N);
	for (unsigned int i = 0; i < N; i += 97) {
		snprintf(name, sizeof(name), "function_%u", i);
		ck_at(0x10000 + 16 * i + 15, name, 0x10000 + 16 * i);
	}
}
END_TEST

START_TEST(stops_in_time)
{
	bool changed;
	int r = -EAGAIN, calls = 0;
	FILE *f = fdopen(dup(file), "w");

	for (unsigned int i = 0; i < 20000; i++)
		fprintf(f, "%x 10 function_%u\n", 0x10000 + 16 * i, i);
	fclose(f);
	while (r == -EAGAIN && calls++ < 1000)
		r = perfmap_update(&map, &codes, 0, &changed);	/* one chunk each */
	ck_assert_int_eq(r, 0);
	ck_assert_int_gt(calls, 2);
	ck_at(0x10000 + 16 * 19999, "function_19999", 0x10000 + 16 * 19999);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("perfmap");
	TCase *t = tcase_create("perfmap");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, lines);
	tcase_add_test(t, grows);
	tcase_add_test(t, is_written_anew);
	tcase_add_test(t, changes_behind_our_back);
	tcase_add_test(t, long_names_and_lines);
	tcase_add_test(t, many_lines);
	tcase_add_test(t, stops_in_time);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
