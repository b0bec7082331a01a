/* Tests of proc/child.h. Each runs in a process of its own (Check forks), so that signals and
 * children are its own too. */
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "proc/child.h"

/* Check has a handler for SIGTERM that kills the whole test, and a child has it until its exec. A
 * path without directories that this user may not read, so that errors are the same for all. */
static void set_up(void)
{
	signal(SIGTERM, SIG_DFL);
	setenv("PATH", "/usr/bin:/bin", 1);
}

static void sleep_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	ck_assert_ptr_nonnull(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static bool exists(pid_t pid)
{
	return !kill(pid, 0) || errno != ESRCH;
}

static void reap(struct child *c)
{
	for (int i = 0; i < 1000 && !child_reap(c); i++)
		sleep_ms(10);
	ck_assert(child_reap(c));
}

/* Runs a shell script to its end. */
static int status_of(const char *script)
{
	char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, (char *)(uintptr_t)script, NULL };
	struct child c = CHILD_INIT;
	struct err e = { "" };
	int status;

	ck_assert_msg(!child_start(argv, &c, &e), "%s", e.msg);
	ck_assert_int_gt(c.pid, 0);
	ck_assert_msg(!child_go(&c, &e), "%s", e.msg);
	reap(&c);
	status = child_exit_status(&c);
	child_done(&c);
	return status;
}

START_TEST(statuses)
{
	int before = descriptors();

	ck_assert_int_eq(status_of("exit 0"), 0);
	ck_assert_int_eq(status_of("exit 1"), 1);
	ck_assert_int_eq(status_of("exit 255"), 255);
	ck_assert_int_eq(status_of("kill -KILL $$"), 128 + SIGKILL);
	ck_assert_int_eq(status_of("kill -SEGV $$"), 128 + SIGSEGV);
	ck_assert_int_eq(descriptors(), before);
}
END_TEST

/* The command's first act is visible in the file system: not before child_go. */
START_TEST(nothing_runs_before_go)
{
	char dir[] = "/tmp/child_test.XXXXXX", path[64];
	char *argv[] = { (char[]){ "touch" }, path, NULL };
	struct child c = CHILD_INIT;
	char link[64], was[4096] = "", is[4096] = "";
	struct stat st;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/touched", dir);
	ck_assert_int_eq(child_start(argv, &c, NULL), 0);
	snprintf(link, sizeof(link), "/proc/%d/exe", c.pid);
	sleep_ms(100);
	ck_assert(!child_reap(&c));
	ck_assert_int_eq(stat(path, &st), -1);
	ck_assert_int_gt(readlink("/proc/self/exe", was, sizeof(was) - 1), 0);
	ck_assert_int_gt(readlink(link, is, sizeof(is) - 1), 0);
	ck_assert_str_eq(is, was);
	ck_assert_int_eq(child_go(&c, NULL), 0);
	reap(&c);
	ck_assert_int_eq(child_exit_status(&c), 0);
	ck_assert_int_eq(stat(path, &st), 0);
	child_done(&c);
	unlink(path);
	rmdir(dir);
}
END_TEST

/* When child_go returns the command is the one that runs, not our fork. */
START_TEST(go_waits_for_exec)
{
	char *argv[] = { (char[]){ "sleep" }, (char[]){ "60" }, NULL };
	struct child c = CHILD_INIT;
	char link[64], was[4096] = "", is[4096] = "";

	ck_assert_int_eq(child_start(argv, &c, NULL), 0);
	ck_assert_int_eq(child_go(&c, NULL), 0);
	snprintf(link, sizeof(link), "/proc/%d/exe", c.pid);
	ck_assert_int_gt(readlink("/proc/self/exe", was, sizeof(was) - 1), 0);
	ck_assert_int_gt(readlink(link, is, sizeof(is) - 1), 0);
	ck_assert_str_ne(is, was);
	child_stop(&c);
	ck_assert_int_eq(child_exit_status(&c), 128 + SIGTERM);
	child_done(&c);
}
END_TEST

START_TEST(no_such_command)
{
	static const struct {
		const char *command;
		int r;
	} v[] = {
		{ "/nonexistent/command", -ENOENT },
		{ "no-such-command-in-any-path", -ENOENT },
		{ "/tmp", -EACCES },		/* a directory */
		{ "/etc/passwd", -EACCES },	/* not executable */
		{ "", -ENOENT },
	};
	int before = descriptors();

	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		char *argv[] = { (char *)(uintptr_t)v[i].command, NULL };
		struct child c = CHILD_INIT;
		struct err e = { "" };

		ck_assert_int_eq(child_start(argv, &c, &e), 0);
		ck_assert_int_eq(child_go(&c, &e), v[i].r);
		ck_assert_str_eq(e.msg, strerror(-v[i].r));
		reap(&c);
		ck_assert_int_eq(child_exit_status(&c), 127);
		child_done(&c);
		child_done(&c);		/* twice is fine */
	}
	ck_assert_int_eq(descriptors(), before);
}
END_TEST

START_TEST(never_told_to_go)
{
	char *argv[] = { (char[]){ "sleep" }, (char[]){ "60" }, NULL };
	int before = descriptors();
	struct child c = CHILD_INIT;
	uint64_t start = now_ms();
	pid_t pid;

	ck_assert_int_eq(child_start(argv, &c, NULL), 0);
	pid = c.pid;
	ck_assert(exists(pid));
	child_done(&c);
	ck_assert(!exists(pid));
	ck_assert_uint_lt(now_ms() - start, 1500);
	ck_assert_int_eq(c.pid, 0);
	ck_assert_int_eq(c.go, -1);
	ck_assert_int_eq(c.failed, -1);
	ck_assert_int_eq(descriptors(), before);
}
END_TEST

/* We die before child_go: the child must go away, without executing anything. */
START_TEST(parent_dies)
{
	char *argv[] = { (char[]){ "sleep" }, (char[]){ "60" }, NULL };
	int alive[2], status;
	char byte;
	pid_t pid;

	ck_assert_int_eq(pipe(alive), 0);	/* inherited: end of file once the child is gone */
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		struct child c = CHILD_INIT;

		_exit(child_start(argv, &c, NULL) ? 1 : 0);
	}
	close(alive[1]);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(read(alive[0], &byte, 1), 0);
	close(alive[0]);
}
END_TEST

START_TEST(dead_before_go)
{
	char *argv[] = { (char[]){ "true" }, NULL };
	struct child c = CHILD_INIT;
	struct err e = { "" };

	signal(SIGPIPE, SIG_IGN);
	ck_assert_int_eq(child_start(argv, &c, NULL), 0);
	kill(c.pid, SIGKILL);
	reap(&c);
	ck_assert_int_eq(child_go(&c, &e), -EPIPE);
	ck_assert_ptr_nonnull(strstr(e.msg, "died"));
	ck_assert_int_eq(child_exit_status(&c), 128 + SIGKILL);
	child_done(&c);
}
END_TEST

/* A process that ignores SIGTERM gets its two seconds and then SIGKILL. Its pipe tells when it has
 * begun to ignore it. */
START_TEST(stubborn)
{
	char script[] = "trap '' TERM; echo; while :; do sleep 0.1; done";
	char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, script, NULL };
	int out[2], saved = dup(STDOUT_FILENO);
	struct child c = CHILD_INIT;
	uint64_t start, took;
	char byte;
	pid_t pid;

	ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
	dup2(out[1], STDOUT_FILENO);
	ck_assert_int_eq(child_start(argv, &c, NULL), 0);
	dup2(saved, STDOUT_FILENO);
	ck_assert_int_eq(child_go(&c, NULL), 0);
	ck_assert_int_eq(read(out[0], &byte, 1), 1);
	pid = c.pid;
	start = now_ms();
	child_stop(&c);
	took = now_ms() - start;
	ck_assert_uint_ge(took, 1900);
	ck_assert_uint_lt(took, 8000);
	ck_assert(!exists(pid));
	ck_assert_int_eq(c.pid, 0);
	ck_assert_int_eq(child_exit_status(&c), 128 + SIGKILL);
	child_stop(&c);		/* nothing left to do */
	ck_assert_int_eq(child_exit_status(&c), 128 + SIGKILL);
	child_done(&c);
	close(saved);
	close(out[0]);
	close(out[1]);
}
END_TEST

/* One that cleans up and leaves is not killed, and its own status counts. */
START_TEST(obedient)
{
	char script[] = "trap 'exit 7' TERM; echo; while :; do sleep 0.1; done";
	char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, script, NULL };
	int out[2], saved = dup(STDOUT_FILENO);
	struct child c = CHILD_INIT;
	char byte;

	ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
	dup2(out[1], STDOUT_FILENO);
	ck_assert_int_eq(child_start(argv, &c, NULL), 0);
	dup2(saved, STDOUT_FILENO);
	ck_assert_int_eq(child_go(&c, NULL), 0);
	ck_assert_int_eq(read(out[0], &byte, 1), 1);
	child_stop(&c);
	ck_assert_int_eq(child_exit_status(&c), 7);
	child_done(&c);
	close(saved);
	close(out[0]);
	close(out[1]);
}
END_TEST

/* Whether a pipe of ours is among the command's descriptors. */
static bool has_pipe(pid_t pid, int fd)
{
	char path[64], ours[64] = "", theirs[64];
	bool found = false;
	struct dirent *d;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ck_assert_int_gt(readlink(path, ours, sizeof(ours) - 1), 0);
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	ck_assert_ptr_nonnull(dir);
	while ((d = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), d->d_name, theirs, sizeof(theirs) - 1);

		if (n > 0) {
			theirs[n] = '\0';
			found |= !strcmp(ours, theirs);
		}
	}
	closedir(dir);
	return found;
}

START_TEST(command_has_none_of_our_pipes)
{
	char *argv[] = { (char[]){ "sleep" }, (char[]){ "60" }, NULL };
	struct child c = CHILD_INIT;

	ck_assert_int_eq(child_start(argv, &c, NULL), 0);
	ck_assert(has_pipe(c.pid, c.go));
	ck_assert_int_eq(child_go(&c, NULL), 0);
	ck_assert(!has_pipe(c.pid, c.go));
	ck_assert(!has_pipe(c.pid, c.failed));
	ck_assert(fcntl(c.go, F_GETFD) & FD_CLOEXEC);
	ck_assert(fcntl(c.failed, F_GETFD) & FD_CLOEXEC);
	child_stop(&c);
	child_done(&c);
}
END_TEST

/* Blocked signals (ours come through a signalfd) are not the command's business; what was ignored
 * when we started stays ignored, what we handle is back to its default. */
static void handler(int sig)
{
	(void)sig;
}

static uint64_t signal_set(pid_t pid, const char *field)
{
	cleanup(file_cleanup) FILE *f = NULL;
	char path[64], line[256];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, field, strlen(field)))
			return strtoull(line + strlen(field), NULL, 16);
	ck_abort_msg("no %s", field);
	return 0;
}

START_TEST(signals_of_the_command)
{
	char *argv[] = { (char[]){ "sleep" }, (char[]){ "60" }, NULL };
	struct child c = CHILD_INIT;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGUSR1, handler);
	ck_assert_int_eq(child_start(argv, &c, NULL), 0);
	ck_assert_int_eq(child_go(&c, NULL), 0);
	ck_assert_uint_eq(signal_set(c.pid, "SigBlk:"), 0);
	ck_assert(signal_set(c.pid, "SigIgn:") & 1ull << (SIGPIPE - 1));
	ck_assert(!(signal_set(c.pid, "SigIgn:") & 1ull << (SIGUSR1 - 1)));
	ck_assert_uint_eq(signal_set(c.pid, "SigCgt:"), 0);
	child_stop(&c);
	child_done(&c);
}
END_TEST

START_TEST(reap_does_not_wait)
{
	char *argv[] = { (char[]){ "sleep" }, (char[]){ "60" }, NULL };
	struct child c = CHILD_INIT, none = CHILD_INIT;
	uint64_t start = now_ms();

	ck_assert(child_reap(&none));
	child_stop(&none);
	child_done(&none);
	ck_assert_int_eq(child_start(argv, &c, NULL), 0);
	ck_assert(!child_reap(&c));
	ck_assert_int_eq(child_go(&c, NULL), 0);
	ck_assert(!child_reap(&c));
	ck_assert_uint_lt(now_ms() - start, 5000);
	child_done(&c);		/* stops it, too */
	ck_assert_int_eq(c.pid, 0);
}
END_TEST

/* Without descriptors nothing is started and nothing leaks. */
START_TEST(no_descriptors_left)
{
	char *argv[] = { (char[]){ "true" }, NULL };
	int held[4096], n = 0;
	struct child c = CHILD_INIT;
	struct err e = { "" };

	while (n < 4096 && (held[n] = dup(STDERR_FILENO)) >= 0)
		n++;
	if (n == 4096) {
		while (n)
			close(held[--n]);
		return;		/* no limit that a test could reach */
	}
	ck_assert_int_eq(child_start(argv, &c, &e), -EMFILE);
	ck_assert_ptr_nonnull(strstr(e.msg, "pipe"));
	close(held[--n]);
	close(held[--n]);
	close(held[--n]);
	ck_assert_int_eq(child_start(argv, &c, &e), -EMFILE);	/* the first pipe, not the second */
	ck_assert_int_eq(c.pid, 0);
	for (int i = 0; i < 3; i++)
		ck_assert_int_ge(held[n++] = dup(STDERR_FILENO), 0);
	while (n)
		close(held[--n]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("child");
	TCase *t = tcase_create("child");
	SRunner *runner;
	int failed;

	tcase_set_timeout(t, 30);
	tcase_add_checked_fixture(t, set_up, NULL);
	tcase_add_test(t, statuses);
	tcase_add_test(t, nothing_runs_before_go);
	tcase_add_test(t, go_waits_for_exec);
	tcase_add_test(t, no_such_command);
	tcase_add_test(t, never_told_to_go);
	tcase_add_test(t, parent_dies);
	tcase_add_test(t, dead_before_go);
	tcase_add_test(t, stubborn);
	tcase_add_test(t, obedient);
	tcase_add_test(t, command_has_none_of_our_pipes);
	tcase_add_test(t, signals_of_the_command);
	tcase_add_test(t, reap_does_not_wait);
	tcase_add_test(t, no_descriptors_left);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
