/* attach_test.c - what is a Java machine, and that nothing else is ever asked or signalled. */
#include <check.h>
#include <fcntl.h>
#include "proc/attach.h"

static const char jvm[] = "7f0000000000-7f0000001000 r-xp 00000000 08:01 42 "
			  "/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so\n";

START_TEST(machines)
{
	static const char other[] = "7f0000000000-7f0000001000 r-xp 00000000 08:01 42 /usr/lib/libm.so\n"
				    "7f0000002000-7f0000003000 r-xp 00000000 08:01 43 /tmp/notlibjvm.so.txt\n";

	ck_assert(attach_is_jvm(jvm, strlen(jvm)));
	ck_assert(!attach_is_jvm(other, strlen(other)));
	ck_assert(!attach_is_jvm("", 0));
}
END_TEST

/* This program is none, so it gets no signal (SIGQUIT would end it) and no file is made. */
START_TEST(nobody_else)
{
	struct attach a;
	struct pid_info info;
	cleanup(fd_cleanup) int dir = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	ck_assert_int_ge(dir, 0);
	ck_assert_int_eq(pid_read_info(dir, &info), 0);
	attach_init(&a, "Compiler.perfmap");
	r = attach_step(&a, dir, (uint32_t)getpid(), &info);
	ck_assert_int_eq(r, -ENOTSUP);
	ck_assert_int_eq(attach_step(&a, dir, (uint32_t)getpid(), &info), -ENOTSUP);
	ck_assert_str_eq(attach_text(&a), "");
	attach_done(&a);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("attach");
	TCase *t = tcase_create("attach");
	SRunner *runner;
	int failed;

	tcase_add_test(t, machines);
	tcase_add_test(t, nobody_else);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
