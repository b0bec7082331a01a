/* Tests of proc/mounts.h. Overlays that anybody may mount: tests/e2e/test_served.py. */
#include <check.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "proc/mounts.h"

START_TEST(lines)
{
	static const struct {
		const char *line, *type;
		uint32_t dev;
	} good[] = {
		{ "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue", "ext3", 98 << 20 },
		{ "36 35 0:33 / / rw - fuse.sshfs host: rw", "fuse.sshfs", 33 },
		{ "1 2 259:7 /a\\040-\\040b /c\\040- rw shared:1 master:2 unbindable - xfs x rw", "xfs", 259 << 20 | 7 },
		{ "1 2 0:4 / /x rw - t", "t", 4 },
	};
	static const char *const bad[] = {
		"", " ", "36", "36 35", "36 35 ", "36 35 98:0", "36 35 98:0 / / rw ext3 x rw", "36 35 98 / / rw - ext3 x",
		"36 35 x:0 / / rw - ext3 x", " - ext3 1 2 3", "36 35 98:0 / / rw - ", "36 35 98:0 / / rw -  x",
		"36 35 5000:0 / / rw - ext3 x", "36 35 98:2000000 / / rw - ext3 x",
		"36 35 98:0 / / rw - ext3ext3ext3ext3ext3ext3ext3ext3 x",
	};
	char type[32];
	uint32_t dev;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		ck_assert(mounts_parse_line(good[i].line, strlen(good[i].line), &dev, type, sizeof(type)));
		ck_assert_str_eq(type, good[i].type);
		ck_assert_uint_eq(dev, good[i].dev);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ck_assert_msg(!mounts_parse_line(bad[i], strlen(bad[i]), &dev, type, sizeof(type)), "%s", bad[i]);
}
END_TEST

static uint32_t dev_of(const struct stat *st)
{
	return major(st->st_dev) << 20 | minor(st->st_dev);
}

START_TEST(memory_is_local)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	struct stat st;
	bool ours = false;

	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_int_eq(mounts_judge((uint32_t)getpid(), dev_of(&st), &ours), MOUNTS_LOCAL);
	ck_assert(ours);
	ck_assert_int_eq(mounts_judge_open(fd, false), MOUNTS_LOCAL);
	close(fd);
}
END_TEST

START_TEST(others)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	struct stat st;
	bool ours = false;

	ck_assert_int_eq(mounts_judge_open(fd, true), MOUNTS_SERVED);	/* not one of those that are known */
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_int_eq(mounts_judge((uint32_t)getpid(), dev_of(&st), &ours), MOUNTS_SERVED);
	ck_assert(ours);
	ck_assert_int_eq(mounts_judge((uint32_t)getpid(), 0xfffffff, &ours), MOUNTS_SERVED);
	ck_assert_int_eq(mounts_judge(0, 0xfffffff, &ours), MOUNTS_SERVED);
	ck_assert(ours);			/* nobody is there */
	close(fd);
}
END_TEST

/* What this very program lies on is local wherever tests are run, unless that is a server's. */
START_TEST(own_program)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	enum mounts_verdict v = mounts_judge_open(fd, true);
	struct statfs fs;
	struct stat st;
	bool ours;

	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_int_eq(fstatfs(fd, &fs), 0);
	if (fs.f_type != 0x9123683e && fs.f_type != 0x794c7630)	/* btrfs, overlay: other numbers for stat(2) */
		for (int i = 0; i < 2; i++)	/* the second time from memory */
			ck_assert_int_eq(mounts_judge((uint32_t)getpid(), dev_of(&st), &ours), v);
	close(fd);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("mounts");
	TCase *t = tcase_create("mounts");
	SRunner *r;
	int failed;

	tcase_add_test(t, lines);
	tcase_add_test(t, memory_is_local);
	tcase_add_test(t, others);
	tcase_add_test(t, own_program);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? 1 : 0;
}
