/* host_test.c - facts from texts as kernels and distributions write them, from a made-up machine,
 * and the sentences made of them. */
#include <check.h>
#include <ftw.h>
#include <limits.h>
#include <sys/stat.h>

#include "proc/host.h"

/* ---- CPU lists ---- */

static void cpus(const char *text, int want_r, const char *want)
{
	struct cpulist l = { 0 };
	char got[256] = "";
	size_t i, n = 0;

	ck_assert_msg(cpulist_parse(text, &l) == want_r, "'%s'", text);
	for (i = 0; i < l.n; i++)
		n += (size_t)snprintf(got + n, sizeof(got) - n, "%s%u", i ? " " : "", l.ids[i]);
	ck_assert_str_eq(got, want);
	cpulist_free(&l);
}

START_TEST(cpu_lists)
{
	cpus("0\n", 0, "0");
	cpus("0-3,8,10-11\n", 0, "0 1 2 3 8 10 11");
	cpus("0-3", 0, "0 1 2 3");
	cpus("", 0, "");
	cpus("\n", 0, "");
	cpus("5-5", 0, "5");
	cpus("65535", 0, "65535");
	cpus("65536", -ERANGE, "");
	cpus("0-4294967295", -ERANGE, "");
	cpus("99999999999999999999", -ERANGE, "");
	cpus("3-1", -EINVAL, "");
	cpus("0-3,2", -EINVAL, "");
	cpus("1,1", -EINVAL, "");
	cpus("0,", -EINVAL, "");
	cpus(",0", -EINVAL, "");
	cpus("0-", -EINVAL, "");
	cpus("-1", -EINVAL, "");
	cpus("0 1", -EINVAL, "");
	cpus("0x1", -EINVAL, "");
	cpus("a", -EINVAL, "");
}
END_TEST

/* ---- versions ---- */

static const struct version_case {
	const char *release, *version, *signature;
	unsigned int patch;
	bool bad;
} versions[] = {
	{ "5.18.19", "", "", 19, false },
	{ "5.19.0", "", "", 0, true },
	{ "6.0.12-arch1", "", "", 12, true },
	{ "6.1.35", "", "", 35, true },
	{ "6.1.36", "", "", 36, false },
	{ "6.1.94-99.176.amzn2023.x86_64", "#1 SMP", "", 94, false },
	{ "6.1.0-9-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.27-1 (2023-05-08)", "", 27, true },
	{ "6.1.0-18-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1 (2024-02-01)", "", 76, false },
	{ "6.1.0-rpi7-rpi-v8", "#1 SMP PREEMPT Debian 1:6.1.63-1+rpt1 (2023-11-24)", "", 63,
	  false },
	{ "6.1.0-18-amd64", "#1 SMP PREEMPT_DYNAMIC", "", 0, true },
	{ "6.1.0-18-amd64", "#1 SMP Debian 6.6.76-1", "", 0, true },
	{ "6.1.0-18-amd64", "#1 SMP Debian x", "", 0, true },
	{ "6.2.0-39-generic", "#40~22.04.1-Ubuntu SMP", "Ubuntu 6.2.0-39.40~22.04.1-generic 6.2.16",
	  16, true },
	{ "5.15.0-91-generic", "#101-Ubuntu SMP", "Ubuntu 5.15.0-91.101-generic 5.15.131", 131,
	  false },
	{ "6.3.9", "", "", 9, true },
	{ "6.3.10-200.fc38.x86_64", "", "", 10, false },
	{ "6.4.0", "", "", 0, false },
	{ "6.18.44-x", "", "", 44, false },
	{ "7.3-rc7", "", "", 0, false },
	{ "6.1", "", "", 0, true },
};

START_TEST(kernel_versions)
{
	const struct version_case *c = &versions[_i];
	struct host h = { 0 };

	ck_assert_int_eq(host_parse_version(c->release, c->version, c->signature, &h.kernel), 0);
	ck_assert_uint_eq(h.kernel.patch, c->patch);
	ck_assert(host_kernel_is_bad(&h) == c->bad);
}
END_TEST

START_TEST(odd_versions)
{
	static const char *const texts[] = { "", "6", "6.", "x.y", "-6.1", " 6.1", "6.-1" };
	struct host h = { .kernel = { 5, 10, 3 } };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(texts); i++)
		ck_assert_msg(host_parse_version(texts[i], "", "", &h.kernel) == -EINVAL, "%s",
			      texts[i]);
	ck_assert(host_kernel_at_least(&h, 5, 10) && host_kernel_at_least(&h, 4, 99));
	ck_assert(!host_kernel_at_least(&h, 5, 11) && !host_kernel_at_least(&h, 6, 0));
}
END_TEST

/* ---- /proc/self/status ---- */

START_TEST(status)
{
	struct host h = { 0 };

	host_parse_status(
	    "Name:\tCapEff: ff\nNSpid:\t4798\nCapEff:\t000001fffeffffff\nSeccomp:\t0\n", &h);
	ck_assert_uint_eq(h.caps, 0x1fffeffffff);
	ck_assert(!h.seccomp);
	ck_assert_int_eq(h.pidns_level, HOST_UNKNOWN);
	host_parse_status("NSpid:\t4798\t12\t1\nSeccomp:\t2\nSeccomp_filters:\t1\nCapEff:\t00", &h);
	ck_assert_int_eq(h.pidns_level, 2);
	ck_assert(h.seccomp);
	ck_assert_uint_eq(h.caps, 0);
	host_parse_status("", &h);
	ck_assert_int_eq(h.pidns_level, HOST_UNKNOWN);
}
END_TEST

START_TEST(capabilities)
{
	struct host h = { .caps = 1ULL << HOST_CAP_SYS_ADMIN };

	ck_assert(host_has_cap(&h, HOST_CAP_BPF) && host_has_cap(&h, HOST_CAP_PERFMON));
	ck_assert(host_has_cap(&h, HOST_CAP_CHECKPOINT_RESTORE));
	ck_assert(!host_has_cap(&h, HOST_CAP_SYSLOG) && !host_has_cap(&h, HOST_CAP_SYS_PTRACE));
	h.caps = 1ULL << HOST_CAP_BPF;
	ck_assert(host_has_cap(&h, HOST_CAP_BPF) && !host_has_cap(&h, HOST_CAP_PERFMON));
	h.in_user_namespace = true;
	ck_assert(!host_has_cap(&h, HOST_CAP_BPF));
	ck_assert_str_eq(host_cap_name(HOST_CAP_CHECKPOINT_RESTORE), "CAP_CHECKPOINT_RESTORE");
}
END_TEST

START_TEST(lockdown)
{
	ck_assert_int_eq(host_parse_lockdown("[none] integrity confidentiality\n"),
			 HOST_LOCKDOWN_NONE);
	ck_assert_int_eq(host_parse_lockdown("none [integrity] confidentiality\n"),
			 HOST_LOCKDOWN_INTEGRITY);
	ck_assert_int_eq(host_parse_lockdown("none integrity [confidentiality]\n"),
			 HOST_LOCKDOWN_CONFIDENTIALITY);
	ck_assert_int_eq(host_parse_lockdown(""), HOST_LOCKDOWN_UNKNOWN);
}
END_TEST

/* ---- a made-up machine ---- */

static char root[] = "/tmp/host_test.XXXXXX";

static void make_file(const char *path, const char *text)
{
	char full[PATH_MAX];
	char *s;
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (s = full + strlen(root) + 1; (s = strchr(s, '/')); s++) {
		*s = '\0';
		ck_assert(!mkdir(full, 0755) || errno == EEXIST);
		*s = '/';
	}
	f = fopen(full, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

START_TEST(made_up_machine)
{
	char link[PATH_MAX], too_long[PATH_MAX + 1];
	struct host h;

	ck_assert_ptr_nonnull(mkdtemp(root));
	/* nothing there at all: everything unknown, no error */
	ck_assert_int_eq(host_read(root, &h), 0);
	ck_assert_int_eq(h.kptr_restrict, HOST_UNKNOWN);
	ck_assert(!h.perf_events_exist && !h.btf && !h.pmu[0] && !h.cpus_online && !h.mem_total);
	ck_assert_uint_eq(h.kernel.major, 0);

	make_file("/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
	make_file("/proc/sys/kernel/version", "#1 SMP Debian 6.1.76-1\n");
	make_file("/proc/sys/kernel/perf_event_paranoid", "-1\n");
	make_file("/proc/sys/kernel/perf_event_max_sample_rate", "25000\n");
	make_file("/proc/sys/kernel/kptr_restrict", "2\n");
	make_file("/proc/sys/kernel/unprivileged_bpf_disabled", "x\n");
	make_file("/proc/self/status", "NSpid:\t100\t1\nCapEff:\t000000c000000000\nSeccomp:\t2\n");
	make_file("/proc/self/uid_map", "         0     100000      65536\n");
	make_file("/proc/self/ns/x", "");
	make_file("/proc/meminfo",
		  "MemTotal:       1024 kB\nMemFree: 1 kB\nMemAvailable:  512 kB\n");
	make_file("/sys/kernel/btf/vmlinux", "x");
	make_file("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
	make_file("/sys/devices/system/cpu/online", "0-1,4\n");
	make_file("/sys/devices/system/cpu/possible", "0-7\n");
	make_file("/sys/bus/event_source/devices/armv8_pmuv3_0/type", "8\n");
	make_file("/sys/bus/event_source/devices/cpufreq/type", "9\n");
	snprintf(link, sizeof(link), "%s/proc/self/ns/pid", root);
	ck_assert_int_eq(symlink("pid:[4026532001]", link), 0);
	ck_assert_int_eq(host_read(root, &h), 0);
	ck_assert_str_eq(h.release, "6.1.0-18-amd64");
	ck_assert_uint_eq(h.kernel.patch, 76);
	ck_assert(h.btf && h.perf_events_exist && h.seccomp && h.in_user_namespace);
	ck_assert_int_eq(h.perf_event_paranoid, -1);
	ck_assert_int_eq(h.perf_event_max_sample_rate, 25000);
	ck_assert_int_eq(h.kptr_restrict, 2);
	ck_assert_int_eq(h.unprivileged_bpf_disabled, HOST_UNKNOWN);
	ck_assert_int_eq(h.lockdown, HOST_LOCKDOWN_INTEGRITY);
	ck_assert_uint_eq(h.caps, 3ULL << HOST_CAP_PERFMON);
	ck_assert_uint_eq(h.pidns_ino, 4026532001);
	ck_assert(!h.pidns_is_initial);
	ck_assert_int_eq(h.pidns_level, 1);
	ck_assert_uint_eq(h.mem_total, 1 << 20);
	ck_assert_uint_eq(h.mem_available, 512 << 10);
	ck_assert_uint_eq(h.cpus_online, 3);
	ck_assert_uint_eq(h.cpus_possible, 8);
	ck_assert_str_eq(h.pmu, "armv8_pmuv3_0");

	unlink(link);
	ck_assert_int_eq(symlink("pid:[4026531836]", link), 0);
	make_file("/proc/self/uid_map", "         0          0 4294967295\n");
	ck_assert_int_eq(host_read(root, &h), 0);
	ck_assert(h.pidns_is_initial && !h.pidns_level && !h.in_user_namespace);
	nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);

	memset(too_long, 'x', PATH_MAX);
	too_long[PATH_MAX] = '\0';
	ck_assert_int_eq(host_read(too_long, &h), -ENAMETOOLONG);
}
END_TEST

START_TEST(this_machine)
{
	struct buf b = BUF_INIT(10);
	struct host h;

	ck_assert_int_eq(host_read("", &h), 0);
	ck_assert_uint_ge(h.kernel.major, 4);
	ck_assert_uint_ge(h.cpus_online, 1);
	ck_assert_uint_ge(h.cpus_possible, h.cpus_online);
	ck_assert_uint_gt(h.mem_total, h.mem_available);
	ck_assert_uint_ne(h.pidns_ino, 0);
	ck_assert_uint_ge(h.page_size, 4096);
	ck_assert_int_eq(host_read_file("", "/proc/self/status", &b), -E2BIG);
	buf_reset(&b);
	ck_assert_int_eq(host_read_file("", "/nonexistent", &b), -ENOENT);
	ck_assert_int_eq(host_read_file("", "/proc", &b), -EISDIR);
	buf_free(&b);
}
END_TEST

/* ---- explanations ---- */

static const char *why(const struct host *h, int errno_value)
{
	static struct err e;

	ck_assert_int_eq(host_explain_from(h, errno_value, &e), -errno_value);
	return e.msg;
}

#define SAYS(h, errno_value, part)                                                                 \
	ck_assert_msg(strstr(why(h, errno_value), part), "not in it: %s", why(h, errno_value))

START_TEST(explanations)
{
	struct host h = { .release = "6.6.1",
			  .kernel = { 6, 6, 1 },
			  .btf = true,
			  .perf_events_exist = true,
			  .perf_event_paranoid = 2 };
	struct err e;

	ck_assert_str_eq(why(&h, EPERM),
			 "needs root, or CAP_BPF and CAP_PERFMON (missing: CAP_BPF, "
			 "CAP_PERFMON): try sudo");
	h.caps = 1ULL << HOST_CAP_BPF;
	ck_assert_str_eq(why(&h, EACCES), "needs root, or CAP_BPF and CAP_PERFMON (missing: "
					  "CAP_PERFMON): try sudo");
	h.caps |= 1ULL << HOST_CAP_PERFMON;
	SAYS(&h, EPERM, "security module");
	h.perf_event_paranoid = 4;
	SAYS(&h, EACCES, "perf_event_paranoid is 4");
	h.seccomp = true;
	SAYS(&h, EPERM, "seccomp");
	h.lockdown = HOST_LOCKDOWN_CONFIDENTIALITY;
	SAYS(&h, EPERM, "lockdown=integrity");
	h.in_user_namespace = true;
	SAYS(&h, EPERM, "user namespace");
	SAYS(&h, EMFILE, "ulimit -n");
	SAYS(&h, ENOMEM, "memory");
	SAYS(&h, EINVAL, "Invalid argument: `wick check`");
	h.perf_events_exist = false;
	SAYS(&h, ENOENT, "CONFIG_PERF_EVENTS");
	h.btf = false;
	SAYS(&h, ENOENT, "CONFIG_DEBUG_INFO_BTF");
	h = (struct host){ .release = "5.4.0", .kernel = { 5, 4, 0 } };
	SAYS(&h, EPERM, "Linux 5.4.0 is too old");
	h = (struct host){ .kernel = { 5, 10, 0 }, .caps = ~0ULL };
	SAYS(&h, EPERM, "ulimit -l");
	ck_assert_int_eq(host_explain(EIO, &e), -EIO);
	ck_assert_uint_gt(strlen(e.msg), 0);
	ck_assert_int_eq(host_explain(EIO, NULL), -EIO);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("host");
	TCase *t = tcase_create("host");
	SRunner *r;
	int failed;

	tcase_add_test(t, cpu_lists);
	tcase_add_loop_test(t, kernel_versions, 0, ARRAY_SIZE(versions));
	tcase_add_test(t, odd_versions);
	tcase_add_test(t, status);
	tcase_add_test(t, capabilities);
	tcase_add_test(t, lockdown);
	tcase_add_test(t, made_up_machine);
	tcase_add_test(t, this_machine);
	tcase_add_test(t, explanations);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
