/* Tests of symbol/foreign.h: its copies, of files that here could be read as well. Files that somebody serves:
 * tests/e2e/test_served.py. */
#include <check.h>
#include <fcntl.h>

#include "symbol/foreign.h"

static char dir[] = "/tmp/foreign_test.XXXXXX";

static void make(const char *name, size_t size, char c)
{
	char path[128], chunk[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	memset(chunk, c, sizeof(chunk));
	for (size_t n; size; size -= n) {
		n = MIN(size, sizeof(chunk));
		ck_assert_int_eq(write_all(fd, chunk, n), 0);
	}
	close(fd);
}

static int named(const char *name)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_PATH | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert(foreign_is_name(fd));
	return fd;
}

/* A descriptor of the copy, or an error. */
static int copied(const char *name)
{
	int name_fd = named(name), fd = foreign_readable(name_fd);

	close(name_fd);
	ck_assert(fd < 0 || !foreign_is_name(fd));
	return fd;
}

static void ck_content(int fd, size_t size, char c)
{
	struct stat st;
	char last = 0;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_int_eq(st.st_size, (off_t)size);
	ck_assert_int_eq(pread(fd, &last, 1, (off_t)size - 1), 1);
	ck_assert_int_eq(last, c);
}

static ino_t inode(int fd)
{
	struct stat st;

	ck_assert_int_eq(fstat(fd, &st), 0);
	return st.st_ino;
}

START_TEST(copies)
{
	struct foreign_stats s;
	int a, b, c;

	make("file", 300000, 'a');
	a = copied("file");
	ck_content(a, 300000, 'a');
	b = copied("file");
	ck_assert_uint_eq(inode(a), inode(b));	/* the same copy */
	make("file", 300001, 'b');
	c = copied("file");
	ck_content(c, 300001, 'b');
	ck_assert_uint_ne(inode(a), inode(c));
	foreign_stats(&s);
	ck_assert_uint_eq(s.copies, 2);
	ck_assert_uint_eq(s.bytes, 300001);
	ck_assert_uint_eq(s.bytes_copied, 600001);
	ck_assert_uint_eq(s.dropped + s.too_large, 0);
	close(a);
	close(b);
	close(c);
}
END_TEST

START_TEST(limit)
{
	struct foreign_stats s;
	struct stat st;
	int a, b, c;

	foreign_limit(1 << 20);
	make("large", (1 << 19) + 1, 'l');
	ck_assert_int_eq(copied("large"), -EFBIG);
	make("a", 400000, 'a');
	make("b", 400000, 'b');
	make("c", 400000, 'c');
	a = copied("a");
	b = copied("b");
	ck_content(a, 400000, 'a');
	close(copied("a"));
	c = copied("c");		/* instead of b, which was asked for less lately */
	ck_content(a, 400000, 'a');
	ck_content(c, 400000, 'c');
	ck_assert_int_eq(fstat(b, &st), 0);
	ck_assert_int_eq(st.st_size, 0);
	foreign_stats(&s);
	ck_assert_uint_eq(s.too_large, 1);
	ck_assert_uint_eq(s.dropped, 1);
	ck_assert_uint_eq(s.bytes, 800000);
	foreign_limit(0);
	make("one", 1, 'x');
	ck_assert_int_eq(copied("one"), -EFBIG);
	close(a);
	close(b);
	close(c);
}
END_TEST

START_TEST(many)
{
	struct foreign_stats s;
	char name[16];

	for (int i = 0; i < FOREIGN_COPIES + 10; i++) {
		int fd;

		snprintf(name, sizeof(name), "%d", i);
		make(name, 10, 'm');
		fd = copied(name);
		ck_content(fd, 10, 'm');
		close(fd);
	}
	foreign_stats(&s);
	ck_assert_uint_eq(s.bytes, 10 * FOREIGN_COPIES);
	ck_assert_uint_eq(s.dropped, 10);
}
END_TEST

START_TEST(as_it_is)
{
	struct foreign_file f;
	char path[128];
	int fd, again;

	make("file", 10, 'f');
	snprintf(path, sizeof(path), "%s/file", dir);
	fd = foreign_open(-1, path, 0, &f);
	ck_content(fd, 10, 'f');
	ck_assert_int_eq(f.st.st_size, 10);
	ck_assert(!f.copied);
	ck_assert_uint_eq(inode(fd), f.st.st_ino);
	again = foreign_readable(fd);
	ck_assert_uint_eq(inode(again), f.st.st_ino);
	close(again);
	close(fd);
	snprintf(path, sizeof(path), "%s/link", dir);
	ck_assert_int_eq(symlink("file", path), 0);
	ck_assert_int_lt(foreign_open(-1, path, 0, &f), 0);
	fd = foreign_open(-1, path, FOREIGN_FOLLOW, &f);
	ck_content(fd, 10, 'f');
	close(fd);
	ck_assert_int_eq(foreign_open(-1, dir, FOREIGN_FOLLOW, &f), -EINVAL);
	ck_assert_int_eq(foreign_open(-1, "/dev/zero", FOREIGN_FOLLOW, &f), -EINVAL);
	ck_assert_int_eq(foreign_open(-1, "/nowhere", FOREIGN_FOLLOW, &f), -ENOENT);
	fd = open(dir, O_PATH | O_CLOEXEC);
	ck_assert_int_eq(foreign_readable(fd), -EINVAL);
	close(fd);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("foreign");
	TCase *t = tcase_create("foreign");
	char command[64];
	SRunner *r;
	int failed;

	if (!mkdtemp(dir))
		return 1;
	tcase_add_test(t, copies);
	tcase_add_test(t, limit);
	tcase_add_test(t, many);
	tcase_add_test(t, as_it_is);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command) || failed ? 1 : 0;
}
