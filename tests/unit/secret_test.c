/* secret_test.c - passwords and tokens (secret.h). */
#include "sink_check.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "net/secret.h"

static char path[] = "/tmp/wick-secret-XXXXXX";

static void put_file(const char *text, time_t mtime)
{
	int fd = open(path, O_WRONLY | O_TRUNC);

	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	futimens(fd, (struct timespec[]){ { .tv_sec = mtime }, { .tv_sec = mtime } });
	close(fd);
}

START_TEST(takes_values)
{
	struct secret s = { 0 };
	struct err e;

	MUST(secret_set(&s, NULL, NULL, &e));
	ck_assert_ptr_null(secret_value(&s));
	MUST(secret_set(&s, " pass word\n", NULL, &e));
	ck_assert_str_eq(secret_value(&s), "pass word");
	secret_refresh(&s);
	secret_done(&s);
	ck_assert_int_eq(secret_set(&s, "", NULL, &e), -EINVAL);
	ck_assert_int_eq(secret_set(&s, "se\ncret", NULL, &e), -EINVAL);
	ck_assert(!strstr(e.msg, "cret\""));
	ck_assert_int_eq(secret_set(&s, "a", "/b", &e), -EINVAL);
}
END_TEST

START_TEST(reads_a_file_again_when_it_changes)
{
	struct secret s = { 0 };
	struct err e;

	close(mkstemp(path));
	put_file("first\n", 1000);
	MUST(secret_set(&s, NULL, path, &e));
	ck_assert_str_eq(secret_value(&s), "first");
	put_file("second", 1000);	/* the same mtime: not seen */
	secret_refresh(&s);
	ck_assert_str_eq(secret_value(&s), "first");
	put_file("second", 2000);
	secret_refresh(&s);
	ck_assert_str_eq(secret_value(&s), "second");
	put_file("", 3000);		/* just being written */
	secret_refresh(&s);
	ck_assert_str_eq(secret_value(&s), "second");
	unlink(path);
	secret_refresh(&s);
	ck_assert_str_eq(secret_value(&s), "second");
	secret_done(&s);
}
END_TEST

START_TEST(says_why_a_file_is_none)
{
	struct secret s = { 0 };
	struct err e;

	ck_assert_int_eq(secret_set(&s, NULL, "/nonexistent/token", &e), -ENOENT);
	ck_assert(strstr(e.msg, "/nonexistent/token"));
	secret_done(&s);
	ck_assert_int_eq(secret_set(&s, NULL, "/dev/null", &e), -EINVAL);
	secret_done(&s);
	ck_assert_int_eq(secret_set(&s, NULL, "/dev/zero", &e), -EINVAL);
	secret_done(&s);
}
END_TEST

RUN_ALL("secret", takes_values, reads_a_file_again_when_it_changes, says_why_a_file_is_none)
