/* Tests of collect/mapped.h on this very process. Sampling is tested end to end (tests/e2e/test_check.py). */
#include "made_elf.h"

#include <sys/mman.h>

#include "collect/mapped.h"

static const struct mapped_file *find(const struct mapped *m, const char *ending)
{
	for (size_t i = 0; i < m->n; i++) {
		size_t n = strlen(m->v[i].path), k = strlen(ending);

		if (n >= k && !strcmp(m->v[i].path + n - k, ending))
			return &m->v[i];
	}
	return NULL;
}

START_TEST(test_own_files)
{
	cleanup(mapped_cleanup) struct mapped m = { 0 };
	const struct mapped_file *f;
	struct err e;

	ck_assert_int_eq(mapped_read((uint32_t)getpid(), &m, &e), 0);
	ck_assert_uint_eq(m.left_out, 0);
	f = find(&m, "mapped_test");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(f->error, 0);
	ck_assert_uint_gt(f->stats.eh_frame_bytes, 1000);
	ck_assert_uint_le(f->stats.eh_frame_bytes + f->stats.code_bytes, f->stats.text_bytes);
	ck_assert_uint_gt(f->took_ns, 0);
	ck_assert_ptr_nonnull(find(&m, "[vdso]"));
	/* each file once, however often it is mapped */
	for (size_t i = 0; i < m.n; i++)
		for (size_t k = 0; k < i; k++)
			ck_assert_str_ne(m.v[i].path, m.v[k].path);
}
END_TEST

/* A file that has been deleted, and one that isn't ELF. */
START_TEST(test_odd_files)
{
	static const char code[4096] = "#!/bin/sh\n";
	cleanup(mapped_cleanup) struct mapped m = { 0 };
	const struct mapped_file *f;
	struct err e;
	char name[] = "/tmp/mapped_test.XXXXXX";
	int fd = mkstemp(name);
	void *p;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, code, sizeof(code)), sizeof(code));
	p = mmap(NULL, sizeof(code), PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	ck_assert_ptr_ne(p, MAP_FAILED);
	unlink(name);
	close(fd);
	ck_assert_int_eq(mapped_read((uint32_t)getpid(), &m, &e), 0);
	munmap(p, sizeof(code));
	f = find(&m, name);
	ck_assert_ptr_nonnull(f);
	/* -ENOENT where map_files may not be read */
	ck_assert(f->error == -ENOEXEC || f->error == -ENOENT);
	ck_assert_uint_eq(f->stats.rows, 0);
}
END_TEST

START_TEST(test_no_files)
{
	cleanup(mapped_cleanup) struct mapped m = { 0 };
	struct err e;

	ck_assert_int_eq(mapped_read(INT32_MAX, &m, &e), -ESRCH);
	ck_assert_ptr_nonnull(strstr(e.msg, "there is no process"));
	ck_assert_uint_eq(m.n, 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { test_own_files, test_odd_files, test_no_files };

	return made_run("mapped", tests, ARRAY_SIZE(tests));
}
