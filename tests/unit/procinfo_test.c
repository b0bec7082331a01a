/* procinfo_test.c - executable and cgroup of this process, and of texts that others could have. */
#include "machine.h"

#include "workload/procinfo.h"

static const struct cgroup_hierarchy v2 = { .version = 2, .subsys = CGROUP_V2 };
static const struct cgroup_hierarchy memory = { .version = 1, .subsys = 4, .controller = "memory" };
static char text[PATH_MAX];

static int parse(const char *lines, const struct cgroup_hierarchy *h, size_t size)
{
	char *copy = strdup(lines);
	int r = procinfo_parse_cgroup(copy, h, text, size);

	free(copy);
	return r;
}

START_TEST(cgroup_lines)
{
	static const char real[] =
	    "12:cpu,cpuacct:/a\n4:memory:/docker/x:y\n1:name=systemd:/s\n0::/u\n";
	static const char odd[] = "\n:\nx\n4:memor:/a\n3:memory2,xmemory:/b\n2::/c\n";

	ck_assert_int_eq(parse(real, &v2, sizeof(text)), 0);
	ck_assert_str_eq(text, "/u");
	ck_assert_int_eq(parse(real, &memory, sizeof(text)), 0);
	ck_assert_str_eq(text, "/docker/x:y");
	ck_assert_int_eq(parse(real, &memory, 4), -ENAMETOOLONG);
	ck_assert_int_eq(parse("9:cpuset,memory:/z", &memory, sizeof(text)), 0);
	ck_assert_str_eq(text, "/z");
	ck_assert_int_eq(parse("0::/../../docker/x/..", &v2, sizeof(text)), 0);
	ck_assert_str_eq(text, "/docker/x/..");
	ck_assert_int_eq(parse(odd, &memory, sizeof(text)), -ENOENT);
	ck_assert_int_eq(parse(odd, &v2, sizeof(text)), -ENOENT);
	ck_assert_int_eq(parse("", &v2, sizeof(text)), -ENOENT);
}
END_TEST

START_TEST(ourselves)
{
	uint64_t start = own_start_time();
	uint32_t pid = (uint32_t)getpid();
	char exe[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	ck_assert_int_gt(n, 0);
	exe[n] = '\0';
	ck_assert_int_eq(procinfo_exe(pid, start, text, sizeof(text)), 0);
	ck_assert_str_eq(text, exe);
	ck_assert_int_eq(procinfo_exe(pid, start, text, (size_t)n), -ENAMETOOLONG);
	ck_assert_int_eq(procinfo_exe(pid, start + 20000000, text, sizeof(text)), -ESRCH);
	ck_assert_int_eq(procinfo_exe(pid, 0, text, sizeof(text)), -ESRCH);
	ck_assert_int_eq(procinfo_exe(0, start, text, sizeof(text)), -ESRCH);
	ck_assert_int_eq(procinfo_cgroup(pid, start + 20000000, &v2, text, sizeof(text)), -ESRCH);
	ck_assert_int_ne(procinfo_cgroup(pid, start, &v2, text, sizeof(text)), -ESRCH);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("procinfo");
	TCase *t = tcase_create("procinfo");
	SRunner *r;
	int failed;

	tcase_add_test(t, cgroup_lines);
	tcase_add_test(t, ourselves);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
