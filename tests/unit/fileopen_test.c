/* Tests of symbol/fileopen.h: names and kinds of files. files_test.c opens mapped ones. */
#include <limits.h>

#include "file_event.h"
#include "symbol/fileopen.h"

/* fileopen_deleted() of a file of that many links, mapped under a name, at what the link shows. */
static bool cut(const char *name, const char *link, unsigned int links, const char *want)
{
	struct wk_file_event e = { 0 };
	struct stat st = { .st_nlink = links };
	char p[128];
	bool gone;

	snprintf(p, sizeof(p), "%s", link);
	if (name)
		event_set_path(&e, name);
	gone = fileopen_deleted(&e, &st, p);
	ck_assert_str_eq(p, want);
	return gone;
}

START_TEST(called_deleted)
{
	ck_assert(!cut("/d/a", "/d/a", 1, "/d/a"));
	ck_assert(cut("/d/a", "/d/a (deleted)", 0, "/d/a"));
	ck_assert(!cut("/d/a (deleted)", "/d/a (deleted)", 1, "/d/a (deleted)"));
	ck_assert(cut("/d/a (deleted)", "/d/a (deleted) (deleted)", 0, "/d/a (deleted)"));
	ck_assert(cut("/d/a", "/d/a (deleted)", 2, "/d/a"));	/* linked elsewhere */
	ck_assert(!cut(NULL, "/d/a (deleted)", 1, "/d/a (deleted)"));
	ck_assert(cut(NULL, "/memfd:a (deleted)", 0, "/memfd:a"));
	ck_assert(cut("/d/a", "", 0, ""));
}
END_TEST

START_TEST(event_paths)
{
	struct wk_file_event e = { 0 };
	char p[WK_PATH_BYTES + 1], small[8];

	fileopen_event_path(&e, p, sizeof(p));
	ck_assert_str_eq(p, "");
	event_set_path(&e, "/usr/bin/perl");
	fileopen_event_path(&e, p, sizeof(p));
	ck_assert_str_eq(p, "/usr/bin/perl");
	fileopen_event_path(&e, small, sizeof(small));
	ck_assert_str_eq(small, "/usr/bi");
}
END_TEST

START_TEST(kinds_of_files)
{
	char dir[] = "/tmp/fileopen_test.XXXXXX", path[64];
	struct stat st = { 0 };
	int fd;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/f", dir);
	ck_assert_int_eq(fileopen_regular(path, 0, &st), -ENOENT);
	ck_assert_int_eq(fileopen_regular(dir, 0, &st), -EINVAL);
	ck_assert_int_eq(fileopen_regular("/dev/null", 0, &st), -EINVAL);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_eq(fileopen_regular(path, 0, &st), -EINVAL);
	unlink(path);
	ck_assert_int_eq(symlink("/proc/self/exe", path), 0);
	ck_assert_int_eq(fileopen_regular(path, O_NOFOLLOW, &st), -EINVAL);
	fd = fileopen_regular(path, 0, &st);
	ck_assert_int_ge(fd, 0);
	ck_assert(S_ISREG(st.st_mode) && st.st_size > 0);
	close(fd);
	unlink(path);
	rmdir(dir);
}
END_TEST

/* A file of PAGES pages, the first of them mapped; the rest copied to memory behind it. */
START_TEST(copies)
{
	enum { PAGES = 600 };
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char name[] = "/tmp/fileopen_test.XXXXXX", path[PATH_MAX], *at;
	int fd = mkstemp(name);
	struct wk_file_event e = { .pid = (uint32_t)getpid(), .tid = (uint32_t)getpid() };

	ck_assert_int_ge(fd, 0);
	at = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (size_t i = 0; i < PAGES * page; i++)
		at[i] = (char)(i * 2654435761U >> 24);
	ck_assert_int_eq(write(fd, at, PAGES * page), (ssize_t)(PAGES * page));
	ck_assert(mmap(at, page, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == at);
	e.vm_start = (uintptr_t)at;
	e.vm_end = e.vm_start + page;
	e.key = (struct wk_file_key){ .dev = WK_DEV_COPIED, .ino = e.vm_end, .generation = PAGES - 1 };
	close(fd);
	fd = fileopen(&e, path, sizeof(path));
	ck_assert_int_ge(fd, 0);
	ck_assert_str_eq(path, name);
	close(fd);

	at[PAGES * page - 1] ^= 1;		/* the last page is looked at */
	ck_assert_int_eq(fileopen(&e, path, sizeof(path)), -ENOEXEC);
	ck_assert_str_eq(path, "//anon");
	at[PAGES * page - 1] ^= 1;
	at[page] ^= 1;				/* and the first */
	ck_assert_int_eq(fileopen(&e, path, sizeof(path)), -ENOEXEC);
	at[page] ^= 1;
	e.key.generation = PAGES;		/* more than the file, and not mapped */
	ck_assert_int_eq(fileopen(&e, path, sizeof(path)), -ENOEXEC);
	e.key.generation = 0;
	ck_assert_int_eq(fileopen(&e, path, sizeof(path)), -ENOEXEC);
	e.key.generation = PAGES - 2;		/* from the second page on: elsewhere in the file */
	e.pgoff = page;
	ck_assert_int_eq(fileopen(&e, path, sizeof(path)), -ENOEXEC);
	e.vm_end += page;			/* no such mapping */
	ck_assert_int_lt(fileopen(&e, path, sizeof(path)), 0);
	unlink(name);
	munmap(at, PAGES * page);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("fileopen");
	TCase *t = tcase_create("fileopen");
	SRunner *runner;
	int failed;

	tcase_add_test(t, called_deleted);
	tcase_add_test(t, event_paths);
	tcase_add_test(t, kinds_of_files);
	tcase_add_test(t, copies);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
