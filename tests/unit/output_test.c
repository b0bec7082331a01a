/* output_test.c - files that are whole or not there (output.h). */
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "profile/output.h"

static char dir[64], path[128];

static void setup(void)
{
	strcpy(dir, "/tmp/wick-output-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/profile.pb.gz", dir);
}

static void teardown(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ck_assert_int_eq(system(command), 0);
}

static void expect(const char *file, const char *want)
{
	char got[64] = "";
	cleanup(file_cleanup) FILE *f = fopen(file, "r");

	ck_assert_ptr_nonnull(f);
	got[fread(got, 1, sizeof(got) - 1, f)] = '\0';
	ck_assert_str_eq(got, want);
}

static int entries(void)
{
	DIR *d = opendir(dir);
	int n = -2;	/* . and .. */

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

START_TEST(replaces_whole)
{
	struct stat st;

	umask(027);
	ck_assert_int_eq(output_write(path, "first one", 9, NULL), 0);
	ck_assert_int_eq(output_write(path, "second", 6, NULL), 0);
	expect(path, "second");
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_mode & 0777, 0640);
	ck_assert_int_eq(entries(), 1);
}
END_TEST

START_TEST(relative_path)
{
	ck_assert_int_eq(chdir(dir), 0);
	ck_assert_int_eq(output_write("x.pb", "x", 1, NULL), 0);
	expect("x.pb", "x");
	ck_assert_int_eq(entries(), 1);
}
END_TEST

START_TEST(follows_a_link)
{
	char link[128];
	struct stat st;

	snprintf(link, sizeof(link), "%s/link", dir);
	ck_assert_int_eq(output_write(path, "old", 3, NULL), 0);
	ck_assert_int_eq(symlink("profile.pb.gz", link), 0);
	ck_assert_int_eq(output_write(link, "new", 3, NULL), 0);
	expect(path, "new");
	ck_assert_int_eq(lstat(link, &st), 0);
	ck_assert(S_ISLNK(st.st_mode));
}
END_TEST

START_TEST(special_files_stay)
{
	struct stat st;
	char got[8] = "";
	int fd;

	ck_assert_int_eq(output_write("/dev/null", "x", 1, NULL), 0);
	ck_assert_int_eq(stat("/dev/null", &st), 0);
	ck_assert(S_ISCHR(st.st_mode));
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	fd = open(path, O_RDONLY | O_NONBLOCK);
	ck_assert_int_eq(output_write(path, "pipe", 4, NULL), 0);
	ck_assert_int_eq(read(fd, got, sizeof(got)), 4);
	ck_assert_str_eq(got, "pipe");
	close(fd);
}
END_TEST

START_TEST(errors_name_the_path)
{
	struct err e;

	ck_assert_int_eq(output_write("/nonexistent/x", "x", 1, &e), -ENOENT);
	ck_assert_str_eq(e.msg, "/nonexistent/x: No such file or directory");
	ck_assert_int_eq(output_write("/dev/full", "x", 1, &e), -ENOSPC);
	ck_assert_str_eq(e.msg, "/dev/full: No space left on device");
	ck_assert_int_eq(output_write(dir, "x", 1, &e), -EISDIR);
	ck_assert_int_eq(output_write("", "x", 1, &e), -ENOENT);
}
END_TEST

/* A file system of 64 KiB: the old file survives, and nothing else is left. */
START_TEST(full_disk)
{
	static char big[256 << 10];
	char command[128];
	struct err e;

	snprintf(command, sizeof(command), "mount -t tmpfs -o size=64k none %s 2>/dev/null", dir);
	if (system(command))
		return;		/* not root */
	ck_assert_int_eq(output_write(path, "old", 3, NULL), 0);
	int r = output_write(path, big, sizeof(big), &e), left = entries();

	expect(path, "old");
	snprintf(command, sizeof(command), "umount %s", dir);
	ck_assert_int_eq(system(command), 0);
	ck_assert_int_eq(r, -ENOSPC);
	ck_assert_int_eq(left, 1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("output");
	TCase *t = tcase_create("output");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);

	tcase_add_test(t, replaces_whole);
	tcase_add_test(t, relative_path);
	tcase_add_test(t, follows_a_link);
	tcase_add_test(t, special_files_stay);
	tcase_add_test(t, errors_name_the_path);
	tcase_add_test(t, full_disk);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
