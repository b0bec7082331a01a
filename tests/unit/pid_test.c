/* Tests of proc/pid.h: this process, a dead one, texts, and what may be opened beneath a root. */
#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>

#include "proc/pid.h"

static uint64_t own_start(void)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(4096);
	int dir cleanup(fd_cleanup) = open("/proc/self", O_PATH | O_CLOEXEC);
	uint64_t ticks;

	ck_assert_int_eq(pid_read_text(dir, "stat", &b), 0);
	ck_assert_int_eq(pid_parse_start(b.data, &ticks), 0);
	return ticks * (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK));
}

START_TEST(stat_texts)
{
	static const char *const bad[] = { "", "1 (a", "1 (a) S 1 2 3", "1 (a) S 0 0 0 0 0 0 0 0 0 0 0 0 "
					   "0 0 0 0 0 0 x" };
	uint64_t ticks = 0;

	ck_assert_int_eq(pid_parse_start("7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 "
					 "4242 9 9 9", &ticks), 0);
	ck_assert_uint_eq(ticks, 4242);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ck_assert_int_eq(pid_parse_start(bad[i], &ticks), -EBADMSG);
}
END_TEST

START_TEST(status_texts)
{
	static const char text[] = "Name:\tx\\nUid: 1\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\n"
				   "NSpid:\t1234\t77\t5\nSigCgt:\t0000000000000004\n";
	struct pid_info i;

	ck_assert_int_eq(pid_parse_status(text, &i), 0);
	ck_assert_uint_eq(i.uids[0], 1);
	ck_assert_uint_eq(i.uids[3], 4);
	ck_assert_uint_eq(i.gids[1], 6);
	ck_assert_uint_eq(i.ns_pid, 5);
	ck_assert_uint_eq(i.caught, 4);
	ck_assert_int_eq(pid_parse_status("", &i), -EBADMSG);
	ck_assert_int_eq(pid_parse_status("\nUid:\t1\t2\t3\nGid:\t1\t1\t1\t1\n", &i), -EBADMSG);
	ck_assert_int_eq(pid_parse_status("\nUid:\t1\t2\t3\t4\nGid:\t1\t1\t1\t1\n", &i), -EBADMSG);
}
END_TEST

START_TEST(this_process)
{
	uint64_t start = own_start();
	int dir cleanup(fd_cleanup) = pid_open((uint32_t)getpid(), start);
	struct pid_info i;

	ck_assert_int_ge(dir, 0);
	ck_assert_int_eq(pid_read_info(dir, &i), 0);
	ck_assert_uint_eq(i.uids[1], geteuid());
	ck_assert_uint_eq(i.ns_pid, (uint32_t)getpid());
	ck_assert_int_eq(pid_open((uint32_t)getpid(), start + 5000000000), -ESRCH);
	ck_assert_int_eq(pid_open(0x7ffffffe, 0), -ESRCH);
}
END_TEST

START_TEST(a_process_that_goes)
{
	int go[2], dir;
	pid_t child;
	struct pid_info i;
	struct stat st;
	char byte;

	ck_assert_int_eq(pipe(go), 0);
	child = fork();
	if (!child) {
		close(go[1]);
		_exit(read(go[0], &byte, 1) > 0);
	}
	close(go[0]);
	dir = pid_open((uint32_t)child, 0);
	ck_assert_int_ge(dir, 0);
	ck_assert_int_eq(pid_read_info(dir, &i), 0);
	close(go[1]);
	waitpid(child, NULL, 0);
	ck_assert_int_eq(pid_read_info(dir, &i), -ESRCH);
	ck_assert_int_lt(pid_open_file(dir, "etc/passwd", &st), 0);
	ck_assert_int_eq(pid_open((uint32_t)child, 0), -ESRCH);
	close(dir);
}
END_TEST

START_TEST(files_beneath_a_root)
{
	int dir cleanup(fd_cleanup) = pid_open((uint32_t)getpid(), 0);
	char tmp[] = "/tmp/pid_test.XXXXXX", path[64];
	struct stat st;
	int fd;

	ck_assert_ptr_nonnull(mkdtemp(tmp));
	snprintf(path, sizeof(path), "%s/f", tmp);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	ck_assert_int_eq(pid_open_file(dir, path + 1, &st), -ENODATA);
	ck_assert_int_eq(write(fd, "x", 1), 1);
	close(fd);
	fd = pid_open_file(dir, path + 1, &st);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(st.st_size, 1);
	close(fd);
	unlink(path);
	ck_assert_int_eq(symlink("/etc/passwd", path), 0);
	ck_assert_int_lt(pid_open_file(dir, path + 1, &st), 0);
	unlink(path);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_eq(pid_open_file(dir, path + 1, &st), -EINVAL);	/* and doesn't wait */
	unlink(path);
	ck_assert_int_eq(pid_open_file(dir, path + 1, &st), -ENOENT);
	ck_assert_int_eq(pid_open_file(dir, tmp + 1, &st), -EINVAL);
	ck_assert_int_eq(pid_open_file(dir, "dev/null", &st), -EINVAL);
	/* a magic link in the middle, which leads wherever its process is */
	ck_assert_int_eq(pid_open_file(dir, "proc/self/root/etc/passwd", &st), -ELOOP);
	rmdir(tmp);
}
END_TEST

/* A process in a root of its own: links that are absolute or climb stay inside. */
START_TEST(another_root)
{
	char tmp[] = "/tmp/pid_test.XXXXXX", path[128];
	int go[2], dir, fd;
	struct stat st;
	pid_t child;
	char byte;

	if (geteuid())
		return;
	ck_assert_ptr_nonnull(mkdtemp(tmp));
	snprintf(path, sizeof(path), "%s/tmp", tmp);
	ck_assert_int_eq(symlink("/../../../etc", path), 0);
	ck_assert_int_eq(pipe(go), 0);
	child = fork();
	if (!child) {
		close(go[1]);
		_exit(chroot(tmp) || chdir("/") || read(go[0], &byte, 1) > 0);
	}
	close(go[0]);
	dir = pid_open((uint32_t)child, 0);
	for (int i = 0; i < 1000; i++) {	/* until it has changed its root */
		char link[128];
		ssize_t n = readlinkat(dir, "root", link, sizeof(link));

		if (n > 1)
			break;
		usleep(1000);
	}
	ck_assert_int_eq(pid_open_file(dir, "tmp/passwd", &st), -ENOENT);
	snprintf(path, sizeof(path), "%s/etc", tmp);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/etc/passwd", tmp);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	ck_assert_int_eq(write(fd, "theirs", 6), 6);
	close(fd);
	fd = pid_open_file(dir, "tmp/passwd", &st);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(st.st_size, 6);
	close(fd);
	close(dir);
	close(go[1]);
	waitpid(child, NULL, 0);
	unlink(path);
	snprintf(path, sizeof(path), "%s/etc", tmp);
	rmdir(path);
	snprintf(path, sizeof(path), "%s/tmp", tmp);
	unlink(path);
	rmdir(tmp);
}
END_TEST

static void *wait_for_byte(void *arg)
{
	char byte;

	_exit(read(*(int *)arg, &byte, 1) > 0);
}

START_TEST(main_thread_gone)
{
	int go[2], dir = -1;
	struct pid_info i;
	struct stat st;
	pthread_t t;
	pid_t child;
	char link[2];
	int fd;

	ck_assert_int_eq(pipe(go), 0);
	child = fork();
	if (!child) {
		close(go[1]);
		pthread_create(&t, NULL, wait_for_byte, &go[0]);
		pthread_exit(NULL);
	}
	close(go[0]);
	for (int n = 0; n < 1000; n++) {
		char root[64];

		snprintf(root, sizeof(root), "/proc/%d/root", child);
		if (readlink(root, link, sizeof(link)) < 0 && errno == ENOENT)
			break;
		usleep(1000);
	}
	dir = pid_open((uint32_t)child, 0);
	ck_assert_int_ge(dir, 0);
	ck_assert_int_eq(pid_read_info(dir, &i), 0);
	fd = pid_open_file(dir, "etc/passwd", &st);
	ck_assert_int_ge(fd, 0);
	close(fd);
	close(dir);
	close(go[1]);
	waitpid(child, NULL, 0);
}
END_TEST

START_TEST(owners)
{
	struct pid_info i = { .uids = { 10, 20, 30, 40 } };

	ck_assert(pid_owns(&i, &(struct stat){ .st_uid = 10 }));
	ck_assert(pid_owns(&i, &(struct stat){ .st_uid = 40 }));
	ck_assert(pid_owns(&i, &(struct stat){ .st_uid = 0 }));
	ck_assert(!pid_owns(&i, &(struct stat){ .st_uid = 11 }));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("pid");
	TCase *t = tcase_create("pid");
	SRunner *r;
	int failed;

	tcase_add_test(t, stat_texts);
	tcase_add_test(t, status_texts);
	tcase_add_test(t, this_process);
	tcase_add_test(t, a_process_that_goes);
	tcase_add_test(t, files_beneath_a_root);
	tcase_add_test(t, another_root);
	tcase_add_test(t, main_thread_gone);
	tcase_add_test(t, owners);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
