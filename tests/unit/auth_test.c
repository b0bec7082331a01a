/* auth_test.c - tokens in files, and headers that hold them or nearly so. */
#include <check.h>
#include <sys/stat.h>

#include "http/auth.h"

#define TOKEN "correct-horse-battery"

static char path[] = "/tmp/wick-auth-XXXXXX";

static void write_file(const char *text, size_t n)
{
	FILE *f = fopen(path, "we");

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(text, 1, n, f), n);
	fclose(f);
}

static void setup(void)
{
	int fd;

	strcpy(path, "/tmp/wick-auth-XXXXXX");
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	close(fd);
	write_file(" " TOKEN "\r\n\n", strlen(TOKEN) + 4);
}

static void teardown(void)
{
	unlink(path);
}

START_TEST(test_check)
{
	struct err e;

	ck_assert_int_eq(auth_check_file(path, 16, 4096, &e), 0);
	ck_assert_int_eq(auth_check_file(path, 22, 4096, &e), -EINVAL);
	ck_assert_ptr_nonnull(strstr(e.msg, "21 bytes, accepted are 22 to 4096"));
	ck_assert_ptr_null(strstr(e.msg, TOKEN));
	ck_assert_int_eq(auth_check_file(path, 1, 20, &e), -EINVAL);
	ck_assert_int_eq(auth_check_file("/nonexistent/token", 1, 20, &e), -EINVAL);
	ck_assert_ptr_nonnull(strstr(e.msg, "No such file"));
	write_file("\n \n", 3);
	ck_assert_int_eq(auth_check_file(path, 16, 4096, &e), -EINVAL);
}
END_TEST

START_TEST(test_bearer)
{
	ck_assert(auth_bearer(path, "Bearer " TOKEN));
	ck_assert(auth_bearer(path, "bearer " TOKEN));
	ck_assert(!auth_bearer(path, NULL));
	ck_assert(!auth_bearer(path, ""));
	ck_assert(!auth_bearer(path, "Bearer"));
	ck_assert(!auth_bearer(path, "Bearer "));
	ck_assert(!auth_bearer(path, TOKEN));
	ck_assert(!auth_bearer(path, "Basic " TOKEN));
	ck_assert(!auth_bearer(path, "Bearer " TOKEN "x"));
	ck_assert(!auth_bearer(path, "Bearer " TOKEN TOKEN));
	ck_assert(!auth_bearer(path, "Bearer correct-horse-batterx"));
	ck_assert(!auth_bearer(path, "Bearer correct-horse-batter"));
	ck_assert(!auth_bearer("/nonexistent/token", "Bearer " TOKEN));
}
END_TEST

START_TEST(test_exchanged)
{
	write_file("another-token", 13);
	ck_assert(!auth_bearer(path, "Bearer " TOKEN));
	ck_assert(auth_bearer(path, "Bearer another-token"));
	write_file("", 0);
	ck_assert(!auth_bearer(path, "Bearer "));
}
END_TEST

START_TEST(test_long_file)
{
	char *text = calloc(1, 20001), *header = calloc(1, 20008);

	memset(text, 'a', 20000);
	write_file(text, 20000);
	ck_assert_int_eq(auth_check_file(path, 16, 4096, NULL), -EINVAL);
	snprintf(header, 20008, "Bearer %s", text);
	ck_assert(!auth_bearer(path, header));
	free(text);
	free(header);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("auth");
	TCase *t = tcase_create("auth");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, test_check);
	tcase_add_test(t, test_bearer);
	tcase_add_test(t, test_exchanged);
	tcase_add_test(t, test_long_file);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
