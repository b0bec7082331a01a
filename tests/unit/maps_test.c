/* maps_test.c - lines as kernels write them, lines that no kernel writes, and our own mappings. */
#include <check.h>
#include <sys/mman.h>

#include "proc/maps.h"

static struct maps_area area;
static char path[MAPS_PATH_MAX];

static int parse(const char *line)
{
	area = (struct maps_area){ 0 };
	return maps_parse_line(line, strlen(line), &area);
}

static const char *parse_path(const char *line)
{
	ck_assert_int_eq(parse(line), 0);
	maps_path(&area, path, sizeof(path));
	return path;
}

START_TEST(file_line)
{
	ck_assert_str_eq(parse_path("55ca094b4000-55ca094ba000 r-xp 00002000 fe:1f 247278"
				    "                     /usr/bin/head"),
			 "/usr/bin/head");
	ck_assert_uint_eq(area.start, 0x55ca094b4000);
	ck_assert_uint_eq(area.end, 0x55ca094ba000);
	ck_assert_uint_eq(area.offset, 0x2000);
	ck_assert_uint_eq(area.major, 0xfe);
	ck_assert_uint_eq(area.minor, 0x1f);
	ck_assert_uint_eq(area.inode, 247278);
	ck_assert_uint_eq(area.perms, MAPS_R | MAPS_X);
	ck_assert_int_eq(area.kind, MAPS_FILE);
	ck_assert(!area.deleted);
}
END_TEST

START_TEST(kinds)
{
	static const struct {
		const char *name;
		enum maps_kind kind;
		bool deleted;
	} cases[] = {
		{ "", MAPS_ANON, false },
		{ "[anon:malloc]", MAPS_ANON, false },
		{ "[anon_shmem:x]", MAPS_ANON, false },
		{ "[heap]", MAPS_SPECIAL, false },
		{ "[vdso]", MAPS_SPECIAL, false },
		{ "[vvar_vclock]", MAPS_SPECIAL, false },
		{ "/x", MAPS_FILE, false },
		{ "/x (deleted)", MAPS_FILE, true },
		{ "/memfd:jit (deleted)", MAPS_FILE, true },
		{ "/SYSV00000000 (deleted)", MAPS_FILE, true },
		{ "anon_inode:[perf_event]", MAPS_FILE, false },
	};
	char line[256];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		snprintf(line, sizeof(line), "1000-2000 rwxs 0 00:00 0 %s", cases[i].name);
		ck_assert_int_eq(parse(line), 0);
		ck_assert_msg(area.kind == cases[i].kind, "%s: kind %d", line, area.kind);
		ck_assert_msg(area.deleted == cases[i].deleted, "%s", line);
	}
	ck_assert_int_eq(parse("1000-2000 r--p 0 08:01 5 "), 0);
	ck_assert_int_eq(area.kind, MAPS_FILE); /* an inode without a name */
}
END_TEST

START_TEST(odd_paths)
{
	ck_assert_str_eq(parse_path("1000-2000 r-xp 0 0:0 1   /a b  c"), "/a b  c");
	ck_assert_str_eq(parse_path("1000-2000 r-xp 0 0:0 1 /ends in spaces  "),
			 "/ends in spaces  ");
	ck_assert_str_eq(parse_path("1000-2000 r-xp 0 0:0 1 /a\\012b\\012"), "/a\nb\n");
	ck_assert_str_eq(parse_path("1000-2000 r-xp 0 0:0 1 /a\\01"), "/a\\01");
	ck_assert_str_eq(parse_path("1000-2000 r-xp 0 0:0 1 /\\134\\040"), "/\\134\\040");
	ck_assert_str_eq(parse_path("1000-2000 r-xp 0 0:0 1 /x (deleted) (deleted)"),
			 "/x (deleted)");
	ck_assert_str_eq(parse_path("1000-2000 r-xp 0 0:0 1 /\xff\x1b"), "/\xff\x1b");
	ck_assert_str_eq(parse_path("1000-2000 r-xp 0 0:0 1  (deleted)"), "(deleted)");
}
END_TEST

START_TEST(paths_are_cut)
{
	char small[4];

	ck_assert_int_eq(parse("1000-2000 r-xp 0 0:0 1 /a\\012bcdef"), 0);
	ck_assert_uint_eq(maps_path(&area, small, sizeof(small)), 3);
	ck_assert_str_eq(small, "/a\n");
	ck_assert_uint_eq(maps_path(&area, small, 1), 0);
	ck_assert_str_eq(small, "");
}
END_TEST

START_TEST(broken_lines)
{
	static const char *const lines[] = {
		"",
		" ",
		"1000",
		"1000-",
		"1000-2000",
		"1000-2000 ",
		"1000-2000 r-x",
		"1000-2000 r-xp",
		"1000-2000 r-xp 0",
		"1000-2000 r-xp 0 0",
		"1000-2000 r-xp 0 0:0",
		"1000-2000 r-xp 0 0:0 ",
		"1000-2000 r-xp 0 0:0 x",
		"1000-2000 r-xp 0 0:0 1x /a",
		"1000-2000 r-xz 0 0:0 1 /a",
		"1000-2000 rrxp 0 0:0 1 /a",
		"1000-2000  r-xp 0 0:0 1 /a",
		" 1000-2000 r-xp 0 0:0 1 /a",
		"1000 2000 r-xp 0 0:0 1 /a",
		"0x1000-2000 r-xp 0 0:0 1 /a",
		"-1000-2000 r-xp 0 0:0 1 /a",
		"2000-1000 r-xp 0 0:0 1 /a",
		"1000-1000 r-xp 0 0:0 1 /a",
		"1000-10000000000000000 r-xp 0 0:0 1 /a",
		"1000-2000 r-xp 0 100000000:0 1 /a",
		"1000-2000 r-xp 0 0:0 18446744073709551616 /a",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(lines); i++)
		ck_assert_msg(parse(lines[i]) == -EINVAL, "accepted: '%s'", lines[i]);
	ck_assert_int_eq(parse("1000-2000 r-xp 0 0:0 18446744073709551615 /a"), 0);
	ck_assert_int_eq(parse("1000-ffffffffffffffff r-xp 0 0:0 1"), 0);
}
END_TEST

static int count(const struct maps_area *a, void *arg)
{
	int *n = arg;

	return ++*n == 3 ? (int)a->start : 0;
}

START_TEST(each_skips_and_stops)
{
	static const char text[] = "1000-2000 r-xp 0 0:0 1 /a\n"
				   "garbage\n"
				   "\n"
				   "3000-4000 r-xp 0 0:0 1 /b\n"
				   "5000-6000 r-xp 0 0:0 1 /c\n"
				   "7000-8000 r-xp 0 0:0 1 /d";
	size_t bad = 0;
	int n = 0;

	ck_assert_int_eq(maps_each(text, strlen(text), count, &n, &bad), 0x5000);
	ck_assert_int_eq(n, 3);
	ck_assert_uint_eq(bad, 2);
	ck_assert_int_eq(maps_find(text, strlen(text), 0x7fff, &area), 0);
	ck_assert_uint_eq(area.start, 0x7000);
	ck_assert_int_eq(maps_find(text, strlen(text), 0x3000, &area), 0);
	ck_assert_uint_eq(area.start, 0x3000);
	ck_assert_int_eq(maps_find(text, strlen(text), 0x2000, &area), -ENOENT);
	ck_assert_int_eq(maps_find(text, strlen(text), 0xfff, &area), -ENOENT);
	ck_assert_int_eq(maps_find(text, strlen(text), UINT64_MAX, &area), -ENOENT);
	ck_assert_uint_eq(area.start, 0x3000); /* untouched */
	ck_assert_int_eq(maps_find("", 0, 0, &area), -ENOENT);
}
END_TEST

START_TEST(ourselves)
{
	struct buf b = BUF_INIT(MAPS_MAX_BYTES), small = BUF_INIT(10);
	size_t bad = 0;
	int n = INT32_MIN; /* count never stops */
	void *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(p, MAP_FAILED);
	ck_assert_int_eq(maps_read(getpid(), &b), 0);
	ck_assert_int_eq(maps_each(b.data, b.len, count, &n, &bad), 0);
	ck_assert_uint_eq(bad, 0);
	ck_assert_int_eq(maps_find(b.data, b.len, (uintptr_t)count, &area), 0);
	ck_assert_int_eq(area.kind, MAPS_FILE);
	ck_assert_uint_eq(area.perms & MAPS_X, MAPS_X);
	maps_path(&area, path, sizeof(path));
	ck_assert_ptr_nonnull(strstr(path, "maps_test"));
	ck_assert_int_eq(maps_find(b.data, b.len, (uintptr_t)p, &area), 0);
	ck_assert_int_eq(area.kind, MAPS_ANON);
	ck_assert_int_eq(maps_read(getpid(), &small), -E2BIG);
	ck_assert_int_eq(maps_read(INT32_MAX, &b), -ENOENT);
	munmap(p, 4096);
	buf_free(&b);
	buf_free(&small);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("maps");
	TCase *t = tcase_create("maps");
	SRunner *r;
	int failed;

	tcase_add_test(t, file_line);
	tcase_add_test(t, kinds);
	tcase_add_test(t, odd_paths);
	tcase_add_test(t, paths_are_cut);
	tcase_add_test(t, broken_lines);
	tcase_add_test(t, each_skips_and_stops);
	tcase_add_test(t, ourselves);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
