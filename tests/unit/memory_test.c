/* Tests of proc/memory.h: this process's own memory, by a worker. */
#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "proc/memory.h"
#include "proc/offload.h"
#include "proc/pid.h"

static int process, into;

static void setup(void)
{
	struct err e;

	ck_assert_int_eq(offload_start(&e), 0);
	process = pid_open((uint32_t)getpid(), 0);
	into = memfd_create("test", MFD_CLOEXEC);
	ck_assert(process >= 0 && into >= 0);
}

static void teardown(void)
{
	close(process);
	close(into);
	offload_stop();
}

static struct memory_range range(const void *p, uint32_t size)
{
	return (struct memory_range){ (uint64_t)(uintptr_t)p, size, 0 };
}

START_TEST(pieces_in_order)
{
	static const char a[] = "first", b[] = "second";
	const struct memory_range v[] = { range(a, 5), range((void *)8, 3), range(b, 6) };
	bool ok[3];
	char got[14];

	ck_assert_int_eq(memory_read(process, v, 3, into, ok), 0);
	ck_assert(ok[0] && !ok[1] && ok[2]);
	ck_assert_int_eq(pread(into, got, sizeof(got), 0), 14);
	ck_assert(!memcmp(got, "first", 5) && !memcmp(got + 8, "second", 6));
}
END_TEST

START_TEST(large_pieces)
{
	size_t n = MEMORY_BYTES;
	char *p = malloc(n), *q = malloc(n);
	struct memory_range v = range(p, (uint32_t)n);
	bool ok;

	for (size_t i = 0; i < n; i++)
		p[i] = (char)(i * 7 + (i >> 12));
	ck_assert_int_eq(memory_read(process, &v, 1, into, &ok), 0);
	ck_assert(ok);
	ck_assert_int_eq(pread(into, q, n, 0), (ssize_t)n);
	ck_assert(!memcmp(p, q, n));
	v.size++;
	ck_assert_int_eq(memory_read(process, &v, 1, into, &ok), -E2BIG);
	free(p);
	free(q);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("memory");
	TCase *t = tcase_create("memory");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, pieces_in_order);
	tcase_add_test(t, large_pieces);
	suite_add_tcase(s, t);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
