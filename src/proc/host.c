/* host.c - see host.h. */
#include "proc/host.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/utsname.h>

enum { MAX_SMALL_FILE = 64 << 10 };

/* The initial pid namespace has a fixed inode number (PROC_PID_INIT_INO in the kernel's
 * linux/proc_ns.h), so that it can be told from all others. */
#define PID_NAMESPACE_INITIAL 0xEFFFFFFCU

/* ---- files ---- */

static int join(const char *root, const char *path, char ret[static PATH_MAX])
{
	int n = snprintf(ret, PATH_MAX, "%s%s", root, path);

	return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

int host_read_file(const char *root, const char *path, struct buf *b)
{
	char full[PATH_MAX], block[4096];
	ssize_t n;
	int r = join(root, path, full);

	if (r)
		return r;
	cleanup(fd_cleanup) int fd = open(full, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	while (!b->err) {
		n = read(fd, block, sizeof(block));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		buf_bytes(b, block, (size_t)n);
	}
	return b->err;
}

/* The file's text in b, "" if it can't be read; borrowed until b changes. */
static const char *text_of(const char *root, const char *path, struct buf *b)
{
	buf_reset(b);
	if (host_read_file(root, path, b))
		buf_reset(b);
	buf_str(b, "");
	return b->data ? b->data : "";
}

static int number_of(const char *root, const char *path, struct buf *b)
{
	const char *text = text_of(root, path, b);
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	return errno || end == text || v < INT_MIN || v > INT_MAX ? HOST_UNKNOWN : (int)v;
}

static void first_line(const char *text, char *ret, size_t size)
{
	snprintf(ret, size, "%.*s", (int)MIN(strcspn(text, "\n"), size), text);
}

/* ---- CPU lists ---- */

/* Moves *p behind a decimal number. */
static int read_id(const char **p, uint32_t *ret)
{
	uint32_t v = 0;

	if (!isdigit((unsigned char)**p))
		return -EINVAL;
	for (; isdigit((unsigned char)**p); ++*p) {
		v = v * 10 + (uint32_t)(**p - '0');
		if (v >= CPULIST_MAX_ID)
			return -ERANGE;
	}
	*ret = v;
	return 0;
}

/* Adds first..last, which must lie behind what is there. */
static int add_range(struct cpulist *l, uint32_t first, uint32_t last)
{
	int r;

	if (last < first || (l->n && first <= l->ids[l->n - 1]))
		return -EINVAL;
	r = array_grow(&l->ids, &l->cap, l->n + (last - first) + 1, sizeof(*l->ids));
	if (r)
		return r;
	for (; first <= last; first++)
		l->ids[l->n++] = first;
	return 0;
}

int cpulist_parse(const char *text, struct cpulist *ret)
{
	cleanup(cpulist_cleanup) struct cpulist l = { 0 };
	uint32_t first, last;
	int r;

	while (*text && *text != '\n') {
		r = read_id(&text, &first);
		last = first;
		if (!r && *text == '-') {
			text++;
			r = read_id(&text, &last);
		}
		if (!r)
			r = add_range(&l, first, last);
		if (r)
			return r;
		if (*text == ',' && isdigit((unsigned char)text[1]))
			text++;
		else if (*text && *text != '\n')
			return -EINVAL;
	}
	*ret = l;
	l = (struct cpulist){ 0 };
	return 0;
}

int cpulist_read(const char *root, const char *name, struct cpulist *ret)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(MAX_SMALL_FILE);
	char path[128];
	int r;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/%.64s", name);
	r = host_read_file(root, path, &b);
	return r ? r : cpulist_parse(b.data ? b.data : "", ret);
}

void cpulist_free(struct cpulist *l)
{
	free(l->ids);
	*l = (struct cpulist){ 0 };
}

/* ---- versions ---- */

static bool scan_version(const char *s, struct host_version *ret)
{
	struct host_version v = { 0 };

	/* the widths keep %u from overflowing, the limit finds the sign that it accepts */
	if (sscanf(s, "%6u.%6u.%6u", &v.major, &v.minor, &v.patch) < 2 || v.major > 999999 ||
	    v.minor > 999999 || v.patch > 999999 || !isdigit((unsigned char)*s))
		return false;
	*ret = v;
	return true;
}

/* Takes the patch level of s over if s is the same major.minor: "6.1.76-1", "1:6.1.63-1+rpt1". */
static void refine_patch(const char *s, struct host_version *v)
{
	size_t epoch = strspn(s, "0123456789");
	struct host_version better;

	if (epoch && s[epoch] == ':')
		s += epoch + 1;
	if (scan_version(s, &better) && better.major == v->major && better.minor == v->minor &&
	    better.patch > v->patch)
		v->patch = better.patch;
}

int host_parse_version(const char *release, const char *version, const char *signature,
		       struct host_version *ret)
{
	static const char debian[] = " Debian ";
	struct host_version v;
	const char *s;

	if (!scan_version(release, &v))
		return -EINVAL;
	/* "#1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1 (2024-02-01)" */
	s = strstr(version, debian);
	if (s)
		refine_patch(s + strlen(debian), &v);
	/* "Ubuntu 6.2.0-39.40~22.04.1-generic 6.2.16": the last word */
	s = strrchr(signature, ' ');
	if (s)
		refine_patch(s + 1, &v);
	*ret = v;
	return 0;
}

static uint64_t version_number(const struct host_version *v)
{
	return (uint64_t)v->major << 40 | (uint64_t)v->minor << 20 | v->patch;
}

bool host_kernel_at_least(const struct host *h, unsigned int major, unsigned int minor)
{
	return version_number(&h->kernel) >=
	       version_number(&(struct host_version){ major, minor, 0 });
}

bool host_kernel_is_bad(const struct host *h)
{
	/* [from, to): the fix is "mm: Fix copy_from_user_nofault()". Before it, the check that
	 * guards the copy could wait for a lock which the interrupted code holds. */
	static const struct {
		struct host_version from, to;
	} bad[] = {
		{ { 5, 19, 0 }, { 6, 1, 36 } },
		{ { 6, 2, 0 }, { 6, 3, 10 } },
	};
	uint64_t v = version_number(&h->kernel);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		if (v >= version_number(&bad[i].from) && v < version_number(&bad[i].to))
			return true;
	return false;
}

/* ---- privileges ---- */

static const struct {
	enum host_cap cap;
	bool admin_too; /* the kernel takes CAP_SYS_ADMIN instead (capabilities(7)) */
	const char *name;
} caps[] = {
	{ HOST_CAP_BPF, true, "CAP_BPF" },
	{ HOST_CAP_PERFMON, true, "CAP_PERFMON" },
	{ HOST_CAP_SYS_PTRACE, false, "CAP_SYS_PTRACE" },
	{ HOST_CAP_CHECKPOINT_RESTORE, true, "CAP_CHECKPOINT_RESTORE" },
	{ HOST_CAP_DAC_READ_SEARCH, false, "CAP_DAC_READ_SEARCH" },
	{ HOST_CAP_SYSLOG, false, "CAP_SYSLOG" },
	{ HOST_CAP_SYS_RESOURCE, false, "CAP_SYS_RESOURCE" },
	{ HOST_CAP_SYS_ADMIN, false, "CAP_SYS_ADMIN" },
};

bool host_has_cap(const struct host *h, enum host_cap cap)
{
	uint64_t mask = 1ULL << cap;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(caps); i++)
		if (caps[i].cap == cap && caps[i].admin_too)
			mask |= 1ULL << HOST_CAP_SYS_ADMIN;
	return !h->in_user_namespace && h->caps & mask;
}

const char *host_cap_name(enum host_cap cap)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(caps); i++)
		if (caps[i].cap == cap)
			return caps[i].name;
	return "CAP_?";
}

/* The text behind "NAME:\t" at the start of a line, or NULL. */
static const char *status_field(const char *text, const char *name)
{
	size_t n = strlen(name);

	while (text) {
		if (!strncmp(text, name, n) && text[n] == ':')
			return text + n + 1 + strspn(text + n + 1, " \t");
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	return NULL;
}

/* proc_pid_status(5) */
void host_parse_status(const char *text, struct host *h)
{
	const char *s = status_field(text, "CapEff");
	int levels = 0;

	h->caps = s ? strtoull(s, NULL, 16) : 0;
	s = status_field(text, "Seccomp");
	h->seccomp = s && s[0] == '2'; /* SECCOMP_MODE_FILTER */
	s = status_field(text, "NSpid");
	while (s && isdigit((unsigned char)*s) && levels < 32) {
		levels++;
		s += strspn(s, "0123456789");
		s += strspn(s, " \t");
	}
	/* one number for each namespace from that of the /proc mount down to ours */
	h->pidns_level = levels > 1 ? levels - 1 : HOST_UNKNOWN;
}

enum host_lockdown host_parse_lockdown(const char *text)
{
	if (strstr(text, "[none]"))
		return HOST_LOCKDOWN_NONE;
	if (strstr(text, "[integrity]"))
		return HOST_LOCKDOWN_INTEGRITY;
	if (strstr(text, "[confidentiality]"))
		return HOST_LOCKDOWN_CONFIDENTIALITY;
	return HOST_LOCKDOWN_UNKNOWN;
}

/* ---- reading it all ---- */

static void read_kernel(const char *root, struct host *h, struct buf *b)
{
	char version[256], signature[256], path[PATH_MAX];
	struct utsname u;

	first_line(text_of(root, "/proc/sys/kernel/osrelease", b), h->release, sizeof(h->release));
	first_line(text_of(root, "/proc/sys/kernel/version", b), version, sizeof(version));
	first_line(text_of(root, "/proc/version_signature", b), signature, sizeof(signature));
	if (host_parse_version(h->release, version, signature, &h->kernel))
		h->kernel = (struct host_version){ 0 };
	if (!uname(&u))
		snprintf(h->machine, sizeof(h->machine), "%s", u.machine);
	h->btf = !join(root, "/sys/kernel/btf/vmlinux", path) && !access(path, R_OK);
	h->lockdown = host_parse_lockdown(text_of(root, "/sys/kernel/security/lockdown", b));
}

static void read_sysctls(const char *root, struct host *h, struct buf *b)
{
	char path[PATH_MAX];

	h->perf_events_exist = !join(root, "/proc/sys/kernel/perf_event_paranoid", path) &&
			       !access(path, F_OK); /* the sign that perf_event_open(2) names */
	h->perf_event_paranoid = number_of(root, "/proc/sys/kernel/perf_event_paranoid", b);
	h->perf_event_max_sample_rate =
	    number_of(root, "/proc/sys/kernel/perf_event_max_sample_rate", b);
	h->kptr_restrict = number_of(root, "/proc/sys/kernel/kptr_restrict", b);
	h->unprivileged_bpf_disabled =
	    number_of(root, "/proc/sys/kernel/unprivileged_bpf_disabled", b);
}

static void read_self(const char *root, struct host *h, struct buf *b)
{
	char path[PATH_MAX], link[64] = "";
	unsigned int first, outside, count;
	unsigned long long ino;
	ssize_t n;

	host_parse_status(text_of(root, "/proc/self/status", b), h);
	/* user_namespaces(7): the initial one maps every id to itself */
	if (sscanf(text_of(root, "/proc/self/uid_map", b), "%10u %10u %10u", &first, &outside,
		   &count) == 3)
		h->in_user_namespace = first || outside || count != UINT32_MAX;
	if (join(root, "/proc/self/ns/pid", path))
		return;
	n = readlink(path, link, sizeof(link) - 1);
	if (n > 0 && sscanf(link, "pid:[%20llu]", &ino) == 1)
		h->pidns_ino = ino;
	h->pidns_is_initial = h->pidns_ino == PID_NAMESPACE_INITIAL;
	if (h->pidns_is_initial)
		h->pidns_level = 0;
}

/* The CPU's own PMU among all that have drivers: "cpu" (x86), "cpu_core" (x86 with two kinds of
 * cores), "armv8_pmuv3" and its likes (arm64). */
static void read_pmu(const char *root, struct host *h)
{
	static const char *const prefixes[] = { "cpu_core", "armv8_", "armv9_" };
	char path[PATH_MAX];
	struct dirent *d;
	DIR *dir;
	size_t i;

	if (join(root, "/sys/bus/event_source/devices", path))
		return;
	dir = opendir(path);
	if (!dir)
		return;
	while (!h->pmu[0] && (d = readdir(dir))) {
		bool match = !strcmp(d->d_name, "cpu");

		for (i = 0; i < ARRAY_SIZE(prefixes); i++)
			match |= !strncmp(d->d_name, prefixes[i], strlen(prefixes[i]));
		if (match)
			snprintf(h->pmu, sizeof(h->pmu), "%.63s", d->d_name);
	}
	closedir(dir);
}

static uint64_t meminfo_bytes(const char *text, const char *name)
{
	const char *s = status_field(text, name); /* the same form */

	return s ? strtoull(s, NULL, 10) * 1024 : 0; /* "kB" means KiB: proc_meminfo(5) */
}

static void read_machine(const char *root, struct host *h, struct buf *b)
{
	struct cpulist l = { 0 };
	const char *meminfo;
	long page = sysconf(_SC_PAGESIZE);

	if (!cpulist_read(root, "online", &l))
		h->cpus_online = (uint32_t)l.n;
	cpulist_free(&l);
	if (!cpulist_read(root, "possible", &l) && l.n)
		h->cpus_possible = l.ids[l.n - 1] + 1;
	cpulist_free(&l);
	meminfo = text_of(root, "/proc/meminfo", b);
	h->mem_total = meminfo_bytes(meminfo, "MemTotal");
	h->mem_available = meminfo_bytes(meminfo, "MemAvailable");
	h->page_size = page > 0 ? (uint32_t)page : 4096;
	read_pmu(root, h);
}

int host_read(const char *root, struct host *ret)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(MAX_SMALL_FILE);
	struct host h = { .pidns_level = HOST_UNKNOWN };
	char path[PATH_MAX];
	int r = join(root, "/proc/sys/kernel/perf_event_max_sample_rate", path); /* the longest */

	if (r)
		return r;
	read_kernel(root, &h, &b);
	read_sysctls(root, &h, &b);
	read_self(root, &h, &b);
	read_machine(root, &h, &b);
	*ret = h;
	return 0;
}

/* ---- explanations ---- */

static int explain_privileges(const struct host *h, int errno_value, struct err *e)
{
	bool bpf = host_has_cap(h, HOST_CAP_BPF), perf = host_has_cap(h, HOST_CAP_PERFMON);

	if (h->in_user_namespace)
		return err_set(e, -errno_value,
			       "root inside a user namespace (rootless container?) "
			       "is not enough: run on the host, as root");
	if (!bpf || !perf)
		return err_set(e, -errno_value,
			       "needs root, or CAP_BPF and CAP_PERFMON (missing: %s%s%s): try sudo",
			       bpf ? "" : "CAP_BPF", !bpf && !perf ? ", " : "",
			       perf ? "" : "CAP_PERFMON");
	if (h->lockdown == HOST_LOCKDOWN_CONFIDENTIALITY)
		return err_set(e, -errno_value,
			       "kernel lockdown \"confidentiality\" forbids BPF "
			       "programs to read memory: boot with "
			       "lockdown=integrity or less");
	if (!host_kernel_at_least(h, 5, 11))
		return err_set(e, -errno_value,
			       "refused with all capabilities: before Linux 5.11 BPF maps count "
			       "against the locked-memory limit: try `ulimit -l unlimited`%s",
			       h->seccomp ? "; or the container's seccomp profile" : "");
	if (h->seccomp)
		return err_set(e, -errno_value,
			       "a seccomp filter is on this process: the container "
			       "must allow bpf() and perf_event_open() (e.g. run "
			       "it privileged, or seccomp=unconfined)");
	if (h->perf_event_paranoid > 2)
		return err_set(e, -errno_value,
			       "kernel.perf_event_paranoid is %d: try `sysctl "
			       "kernel.perf_event_paranoid=2`, or CAP_SYS_ADMIN",
			       h->perf_event_paranoid);
	return err_set(e, -errno_value,
		       "refused with all capabilities (%s): a security module "
		       "(AppArmor, SELinux) may forbid it: `wick check` tries each "
		       "step",
		       strerror(errno_value));
}

int host_explain_from(const struct host *h, int errno_value, struct err *e)
{
	struct rlimit files = { 0 };

	if (h->kernel.major && !host_kernel_at_least(h, 5, 10))
		return err_set(e, -errno_value, "Linux %.64s is too old: 5.10 or later is needed",
			       h->release);
	switch (errno_value) {
	case EPERM:
	case EACCES:
		return explain_privileges(h, errno_value, e);
	case EMFILE:
		getrlimit(RLIMIT_NOFILE, &files);
		return err_set(e, -errno_value,
			       "too many open files (limit %llu): try `ulimit -n "
			       "65536`",
			       (unsigned long long)files.rlim_cur);
	case ENOMEM:
		return err_set(e, -errno_value,
			       "not enough memory for the maps (%llu MiB available; "
			       "a cgroup's memory limit counts too)",
			       (unsigned long long)(h->mem_available >> 20));
	}
	if (!h->btf)
		return err_set(e, -errno_value,
			       "no readable /sys/kernel/btf/vmlinux: the kernel must "
			       "be built with CONFIG_DEBUG_INFO_BTF=y");
	if (!h->perf_events_exist)
		return err_set(e, -errno_value,
			       "the kernel has no perf events: it must be built with "
			       "CONFIG_PERF_EVENTS=y");
	return err_set(e, -errno_value, "%s: `wick check` tries each step", strerror(errno_value));
}

int host_explain(int errno_value, struct err *e)
{
	struct host h;

	if (host_read("", &h))
		return err_set(e, -errno_value, "%s", strerror(errno_value));
	return host_explain_from(&h, errno_value, e);
}
