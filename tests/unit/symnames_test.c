/* Tests of symbol/symnames.h; symtab_test.c has names in files. */
#include "made_elf.h"

#include "symbol/symnames.h"

START_TEST(packed)
{
	struct symnames n = SYMNAMES_INIT;
	const char *name = NULL, *again = NULL;
	uint32_t a, b;
	size_t len = 0;

	ck_assert_int_eq(symnames_add(&n, "read@plt", 8, &a), 0);
	ck_assert_int_eq(symnames_add(&n, "writely", 5, &b), 0);
	symnames_shrink(&n);
	ck_assert_uint_eq(symnames_bytes(&n), 15);
	ck_assert(symnames_get(&n, a, &name, &len));
	ck_assert_str_eq(name, "read@plt");
	ck_assert_uint_eq(len, 8);
	ck_assert(symnames_get(&n, b, &again, &len));
	ck_assert_str_eq(again, "write");
	ck_assert_str_eq(name, "read@plt");
	ck_assert(!symnames_get(&n, 15, &name, &len));	/* behind the last */
	ck_assert(!symnames_get(&n, SYMNAMES_SPACE, &name, &len));
	ck_assert(!symnames_get(&n, SYMNAMES_REF_MAX - 1, &name, &len));
	ck_assert_int_eq(symnames_add(&n, "", SYMNAMES_SPACE, &a), -E2BIG);
	symnames_free(&n);
	ck_assert_uint_eq(symnames_bytes(&n), 0);
}
END_TEST

START_TEST(of_no_file)
{
	struct made *m cleanup(freep_cleanup) = made_new(EM_X86_64);
	struct elf *e cleanup(elf_cleanup) = made_open(m);
	struct symnames n = SYMNAMES_INIT;
	uint32_t base;

	ck_assert_int_eq(symnames_add_table(&n, e, 0, 100, &base), -EBADF);
	symnames_free(&n);
}
END_TEST

/* Two tables, one behind the other in the space of references, at odd places of one file. */
START_TEST(tables)
{
	char path[] = "/tmp/symnames_test.XXXXXX";
	int fd cleanup(fd_cleanup) = mkostemp(path, O_CLOEXEC);
	struct made *m cleanup(freep_cleanup) = made_new(EM_X86_64);
	struct symnames n = SYMNAMES_INIT;
	struct elf *e cleanup(elf_cleanup) = NULL;
	uint32_t first = 0, second = 0;
	const char *name = NULL;
	size_t len = 0, at = sizeof(*m);

	m->h.e_shnum = (uint16_t)m->nsections;
	ck_assert_int_eq(pwrite(fd, m, sizeof(*m), 0), sizeof(*m));
	ck_assert_int_eq(pwrite(fd, "\0f@V1\0g", 8, (off_t)at), 8);
	ck_assert_int_eq(ftruncate(fd, (off_t)at + 20000), 0);
	ck_assert_int_eq(elf_open_fd(fd, &e, NULL), 0);
	ck_assert_int_eq(symnames_add_table(&n, e, at, 6, &first), 0);
	ck_assert_int_eq(symnames_add_table(&n, e, at + 5, 10000, &second), 0);
	ck_assert_uint_eq(second - first, 6);
	ck_assert(symnames_get(&n, first + 1, &name, &len));
	ck_assert_uint_eq(len, 1);
	ck_assert_int_eq(name[0], 'f');
	ck_assert(!symnames_get(&n, first, &name, &len));
	ck_assert(!symnames_get(&n, first + 6, &name, &len));	/* the 'g' is behind its end */
	ck_assert(!symnames_get(&n, second, &name, &len));
	ck_assert(symnames_get(&n, second + 1, &name, &len));
	ck_assert_str_eq(name, "g");
	ck_assert(!symnames_get(&n, second + 9999, &name, &len));
	ck_assert(!symnames_get(&n, second + 10000, &name, &len));
	/* a name over the window's end is read whole */
	ck_assert_int_eq(pwrite(fd, "crossing", 8, (off_t)at + 7 + SYMNAMES_WINDOW - 4), 8);
	symnames_free(&n);
	ck_assert_int_eq(symnames_add_table(&n, e, at, 20000, &first), 0);
	ck_assert(symnames_get(&n, first + 6, &name, &len));
	ck_assert(symnames_get(&n, first + 7 + SYMNAMES_WINDOW - 4, &name, &len));
	ck_assert_str_eq(name, "crossing");
	ck_assert_int_eq(symnames_add_table(&n, e, 0, SYMNAMES_SPACE, &first), -E2BIG);
	symnames_free(&n);
	unlink(path);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { packed, of_no_file, tables };

	return made_run("symnames", tests, ARRAY_SIZE(tests));
}
