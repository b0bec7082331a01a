/* Tests of proc/offload.h. Workers that even SIGKILL doesn't end need a file system that doesn't answer:
 * tests/e2e/test_served.py. */
#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "proc/offload.h"

struct numbers {
	int a, b;
};

static void start(void)
{
	struct err e = { "" };

	ck_assert_msg(!offload_start(&e), "%s", e.msg);
}

static int add(const void *request, const int *fds, void *reply, int *ret_fd)
{
	const struct numbers *q = request;

	ck_assert_int_eq(fds[0], -1);
	(void)ret_fd;
	*(struct numbers *)reply = (struct numbers){ q->a + q->b, (int)getpid() };
	return q->a ? 0 : -ENOENT;
}

static int run(offload_fn *fn, enum offload_kind kind, struct numbers q, struct numbers *ret)
{
	return offload(&(struct offload_call){ .kind = kind, .fn = fn, .request = &q, .request_size = sizeof(q),
					       .reply = ret, .reply_size = sizeof(*ret) }, NULL);
}

START_TEST(in_another_process)
{
	struct numbers a, b;

	start();
	ck_assert_int_eq(run(add, OFFLOAD_OURS, (struct numbers){ 2, 3 }, &a), 0);
	ck_assert_int_eq(a.a, 5);
	ck_assert_int_ne(a.b, (int)getpid());
	ck_assert_int_eq(run(add, OFFLOAD_COPY, (struct numbers){ 0, 3 }, &b), -ENOENT);
	ck_assert_int_eq(b.a, 3);
	ck_assert_int_eq(a.b, b.b);	/* the same worker */
	offload_stop();
}
END_TEST

START_TEST(in_this_process)
{
	struct numbers a;

	ck_assert_int_eq(run(add, OFFLOAD_OURS, (struct numbers){ 2, 3 }, &a), 0);
	ck_assert_int_eq(a.a, 5);
	ck_assert_int_eq(a.b, (int)getpid());
}
END_TEST

/* Hands back the second one, and says whether the first is this file system's root. */
static int swap(const void *request, const int *fds, void *reply, int *ret_fd)
{
	struct stat a, b;

	(void)request;
	*(bool *)reply = !fstat(fds[0], &a) && !stat("/", &b) && a.st_ino == b.st_ino;
	*ret_fd = fcntl(fds[1], F_DUPFD_CLOEXEC, 3);
	return 0;
}

START_TEST(descriptors)
{
	bool with = _i, root = false;
	int fds[2], fd, back;
	char c = 0;

	if (with)
		start();
	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	fd = open("/", O_PATH | O_CLOEXEC);
	ck_assert_int_eq(offload(&(struct offload_call){ .fn = swap, .request = "", .fds = { fd, fds[1] }, .nfds = 2,
							 .reply = &root, .reply_size = sizeof(root) }, &back), 0);
	ck_assert(root);
	ck_assert_int_ge(back, 0);
	ck_assert_int_eq(fcntl(back, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	ck_assert_int_eq(write(back, "x", 1), 1);
	ck_assert_int_eq(read(fds[0], &c, 1), 1);
	ck_assert_int_eq(c, 'x');
	ck_assert_int_eq(close(back), 0);
	ck_assert_int_eq(close(fds[1]), 0);
	ck_assert_int_eq(read(fds[0], &c, 1), 0);	/* nobody else has the other end */
	close(fds[0]);
	close(fd);
	offload_stop();
}
END_TEST

static int hang(const void *request, const int *fds, void *reply, int *ret_fd)
{
	(void)request;
	(void)fds;
	(void)reply;
	(void)ret_fd;
	return raise(SIGSTOP);
}

static int crash(const void *request, const int *fds, void *reply, int *ret_fd)
{
	(void)request;
	(void)fds;
	(void)reply;
	(void)ret_fd;
	return raise(SIGKILL);
}

START_TEST(no_answer)
{
	struct offload_stats s;
	struct numbers a;

	start();
	ck_assert_int_eq(run(hang, OFFLOAD_FOREIGN, (struct numbers){ 0, 0 }, &a), -ETIMEDOUT);
	ck_assert_int_eq(run(hang, OFFLOAD_FOREIGN, (struct numbers){ 0, 0 }, &a), -ETIMEDOUT);
	/* its credit is used up, that of others isn't */
	ck_assert_int_eq(run(hang, OFFLOAD_FOREIGN, (struct numbers){ 0, 0 }, &a), -EBUSY);
	ck_assert_int_eq(run(add, OFFLOAD_OURS, (struct numbers){ 2, 3 }, &a), 0);
	ck_assert_int_eq(run(add, OFFLOAD_COPY, (struct numbers){ 2, 3 }, &a), 0);
	offload_stats(OFFLOAD_FOREIGN, &s);
	ck_assert_uint_eq(s.calls, 2);
	ck_assert_uint_eq(s.timeouts, 2);
	ck_assert_uint_eq(s.refused, 1);
	ck_assert_uint_eq(s.stuck, 0);	/* a signal was enough */
	offload_stats(OFFLOAD_OURS, &s);
	ck_assert_uint_eq(s.calls, 1);
	ck_assert_uint_eq(s.timeouts + s.refused, 0);
	offload_stop();
}
END_TEST

START_TEST(dead_worker)
{
	struct numbers a;

	start();
	for (int i = 0; i < 2 * OFFLOAD_WORKERS; i++)
		ck_assert_int_eq(run(crash, OFFLOAD_COPY, (struct numbers){ 0, 0 }, &a), -ECHILD);
	ck_assert_int_eq(run(add, OFFLOAD_COPY, (struct numbers){ 2, 3 }, &a), 0);
	offload_stop();
}
END_TEST

START_TEST(limits)
{
	static char big[OFFLOAD_BYTES + 1];
	struct offload_call c = { .fn = add, .request = big, .request_size = sizeof(big), .reply = big };

	ck_assert_int_eq(offload(&c, NULL), -E2BIG);
	c.request_size = 0;
	c.reply_size = sizeof(big);
	ck_assert_int_eq(offload(&c, NULL), -E2BIG);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("offload");
	TCase *t = tcase_create("offload");
	SRunner *r;
	int failed;

	tcase_add_test(t, in_another_process);
	tcase_add_test(t, in_this_process);
	tcase_add_loop_test(t, descriptors, 0, 2);
	tcase_add_test(t, no_answer);
	tcase_add_test(t, dead_worker);
	tcase_add_test(t, limits);
	tcase_set_timeout(t, 60);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? 1 : 0;
}
