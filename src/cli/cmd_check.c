/* cmd_check.c - `wick check`: what works here, what doesn't, and what to do about it.
 *
 * Each item is one function that looks at facts, or really tries what profiling needs and undoes
 * it. "degraded": something is lost, profiling works. "blocked": it can't start.
 */
#include "cli/check_files.h"
#include "cli/commands.h"
#include "proc/cgroup.h"
#include "proc/host.h"
#include "proc/maps.h"
#include "proc/offload.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum status { OK, DEGRADED, BLOCKED };

enum {
	MIN_MEMORY_MIB = 64, /* our 40 and the default maps */
	START_FILES = 28,	/* what recording opens beside a perf event for each CPU */
	FILES_PER_CPU = 4,
	FILES_BESIDE = 256,
	MAX_FREQ = 1000, /* the highest that record accepts */
};

struct check {
	struct host host;
	unsigned int degraded, blocked;
};

struct options {
	uint32_t files;		/* pid, 0: not asked */
	uint64_t duration;
	bool unsafe_kernel;
};

#define OPT(field) .offset = offsetof(struct options, field)

static const struct option_row rows[] = {
	{ OPT_U32, 0, "files", "PID", "instead: the unwind table of each file that this process runs",
	  OPT(files), .min = 1, .max = INT32_MAX },
	{ OPT_SECONDS, 'd', "duration", "SECONDS",
	  "with --files: sample the process for so long, and say where its stacks are truncated",
	  OPT(duration), .min = 10000000, .max = 3600000000000ULL },
	{ OPT_FLAG, 0, "unsafe-kernel", NULL, "with -d: also on kernels that can freeze",
	  OPT(unsafe_kernel) },
	{ .type = OPT_END },
};

static int run(int argc, char **argv);

const struct command cmd_check_command = {
	.name = "check",
	.operands = "",
	.help = "say what this host allows, and what to do about it",
	.notes = "Exit status: 0 if profiling can start, 1 if something blocks it.\n"
		 "--files: rows, their memory, CPU time of compiling, the share of the text that has rules\n"
		 "and where those come from: .eh_frame, .debug_frame, the code itself. Of Go programs only\n"
		 "functions without a frame have rows; the rest is walked by frame pointers.\n",
	.rows = rows,
	.run = run,
};

/* Prints an item. advice is what to do about it, or what is lost; NULL or "" if there is none. */
static void printf_like(5, 6) item(struct check *c, enum status status, const char *name,
				   const char *advice, const char *fmt, ...)
{
	static const char *const words[] = { "ok", "degraded", "blocked" };
	va_list ap;

	c->degraded += status == DEGRADED;
	c->blocked += status == BLOCKED;
	printf("%-9s %-22s ", words[status], name);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	if (status != OK && advice && advice[0])
		printf(" -> %s", advice);
	putchar('\n');
}

/* ---- kernel and machine ---- */

static void check_kernel(struct check *c)
{
	const struct host *h = &c->host;

	if (!host_kernel_at_least(h, 5, 10))
		item(c, BLOCKED, "kernel", "Linux 5.10 or later is needed", "%s", h->release);
	else if (host_kernel_is_bad(h))
		item(c, BLOCKED, "kernel",
		     "it can freeze when a profiler reads user memory: update to 6.1.36, 6.3.10, "
		     "6.4 or later",
		     "%s (%u.%u.%u)", h->release, h->kernel.major, h->kernel.minor,
		     h->kernel.patch);
	else
		item(c, OK, "kernel", NULL, "%s (%u.%u.%u)", h->release, h->kernel.major,
		     h->kernel.minor, h->kernel.patch);
}

static void check_machine(struct check *c)
{
	const char *m = c->host.machine;
	bool known = !strcmp(m, "x86_64") || !strcmp(m, "aarch64");

	item(c, known ? OK : BLOCKED, "architecture", "x86_64 and aarch64 are supported", "%s", m);
	item(c, c->host.btf ? OK : BLOCKED, "BTF", "build the kernel with CONFIG_DEBUG_INFO_BTF=y",
	     "%s /sys/kernel/btf/vmlinux", c->host.btf ? "readable:" : "no readable");
}

static void check_lockdown(struct check *c)
{
	switch (c->host.lockdown) {
	case HOST_LOCKDOWN_CONFIDENTIALITY:
		item(c, BLOCKED, "lockdown", "boot with lockdown=integrity or less",
		     "confidentiality: BPF programs may not read memory");
		break;
	case HOST_LOCKDOWN_INTEGRITY:
		item(c, OK, "lockdown", NULL, "integrity");
		break;
	case HOST_LOCKDOWN_NONE:
		item(c, OK, "lockdown", NULL, "none");
		break;
	case HOST_LOCKDOWN_UNKNOWN:
		item(c, OK, "lockdown", NULL, "not known (no securityfs)");
		break;
	}
}

static void check_pmu(struct check *c)
{
	if (c->host.pmu[0])
		item(c, OK, "PMU", NULL, "%s", c->host.pmu);
	else
		item(c, DEGRADED, "PMU",
		     "-e cycles falls back to cpu-clock, other hardware events don't work; a "
		     "virtual machine may be given one",
		     "none");
}

/* ---- privileges ---- */

static void check_caps(struct check *c)
{
	static const struct {
		enum host_cap cap;
		enum status without;
		const char *lost;
	} needed[] = {
		{ HOST_CAP_BPF, BLOCKED, "no BPF program can be loaded: run as root (sudo)" },
		{ HOST_CAP_PERFMON, BLOCKED,
		  "no process but our own can be sampled: run as root (sudo)" },
		{ HOST_CAP_SYS_PTRACE, DEGRADED,
		  "files and maps of other users' processes can't be read: no names for their "
		  "frames" },
		{ HOST_CAP_CHECKPOINT_RESTORE, DEGRADED,
		  "mapped files are opened by path: deleted or replaced ones have no names" },
		{ HOST_CAP_DAC_READ_SEARCH, DEGRADED,
		  "binaries that only their owners may read have no names" },
		{ HOST_CAP_SYSLOG, DEGRADED, "no names for kernel frames" },
	};
	size_t i;
	bool held;

	for (i = 0; i < ARRAY_SIZE(needed); i++) {
		held = host_has_cap(&c->host, needed[i].cap);
		item(c, held ? OK : needed[i].without, host_cap_name(needed[i].cap), needed[i].lost,
		     held ? "held" : "missing");
	}
	item(c, c->host.in_user_namespace ? BLOCKED : OK, "user namespace",
	     "capabilities in it don't count for BPF and perf events: run outside of it (not in a "
	     "rootless container)",
	     c->host.in_user_namespace ? "not the initial one" : "initial");
}

static void check_paranoid(struct check *c)
{
	const struct host *h = &c->host;
	bool allowed = h->perf_event_paranoid <= 0 || host_has_cap(h, HOST_CAP_PERFMON);

	if (!h->perf_events_exist)
		item(c, BLOCKED, "perf_event_paranoid",
		     "build the kernel with CONFIG_PERF_EVENTS=y", "no perf events");
	else
		item(c, allowed ? OK : BLOCKED, "perf_event_paranoid",
		     "run as root, add CAP_PERFMON, or `sysctl kernel.perf_event_paranoid=-1`",
		     "%d", h->perf_event_paranoid);
}

static void check_sample_rate(struct check *c)
{
	int rate = c->host.perf_event_max_sample_rate;

	if (rate == HOST_UNKNOWN)
		return; /* then there are no perf events: said already */
	item(c, rate >= MAX_FREQ ? OK : DEGRADED, "sample rate",
	     "higher -F values are refused: `sysctl kernel.perf_event_max_sample_rate=100000`",
	     "up to %d Hz", rate);
}

/* ---- namespaces, cgroups, limits ---- */

static void check_pid_namespace(struct check *c)
{
	item(c, c->host.pidns_is_initial ? OK : DEGRADED, "pid namespace",
	     "processes outside of it have no pid and no names here: use the host's (docker run "
	     "--pid=host, hostPID: true)",
	     "%s", c->host.pidns_is_initial ? "initial" : "a container's");
}

static void check_cgroups(struct check *c)
{
	cleanup(cgroups_cleanup) struct cgroups *cg = NULL;
	const struct cgroup_hierarchy *h = NULL;
	int r = cgroups_open("", &cg);

	if (!r)
		h = cgroups_default(cg);
	if (!h)
		item(c, DEGRADED, "cgroups",
		     "--cgroup, --container and labels by container don't work: mount cgroup2 on "
		     "/sys/fs/cgroup",
		     "%s", r ? strerror(-r) : "none mounted");
	else
		item(c, OK, "cgroups", NULL, "%s, identified by %s%s",
		     cgroup_mode_name(cgroups_mode(cg)), h->version == 2 ? "v2" : "v1 controller ",
		     h->controller);
}

static void check_open_files(struct check *c)
{
	rlim_t need = (rlim_t)c->host.cpus_online * FILES_PER_CPU + FILES_BESIDE;
	struct rlimit l = { 0 };

	getrlimit(RLIMIT_NOFILE, &l);
	item(c, l.rlim_max >= need ? OK : l.rlim_max < START_FILES + c->host.cpus_online ? BLOCKED :
									   DEGRADED,
	     "open files",
	     "on many CPUs or with many binaries some can't be opened: raise the hard limit "
	     "(`ulimit -Hn 65536` as root, LimitNOFILE=65536)",
	     "%llu at most, for %u CPUs", (unsigned long long)l.rlim_max, c->host.cpus_online);
}

static void check_memory(struct check *c)
{
	const struct host *h = &c->host;
	struct rlimit l = { 0 };

	item(c, h->mem_available >> 20 >= MIN_MEMORY_MIB || !h->mem_available ? OK : DEGRADED,
	     "memory", "the maps may not fit", "%llu of %llu MiB available",
	     (unsigned long long)(h->mem_available >> 20),
	     (unsigned long long)(h->mem_total >> 20));
	if (host_kernel_at_least(h, 5, 11) || host_has_cap(h, HOST_CAP_SYS_RESOURCE))
		return; /* maps are charged to the cgroup, or the limit can be raised */
	getrlimit(RLIMIT_MEMLOCK, &l);
	item(c, l.rlim_max >> 20 >= MIN_MEMORY_MIB ? OK : DEGRADED, "locked memory",
	     "BPF maps count against it before Linux 5.11: `ulimit -l unlimited`, or "
	     "CAP_SYS_RESOURCE",
	     "%s", l.rlim_max >> 20 >= MIN_MEMORY_MIB ? "enough" : "too little");
}

/* ---- attempts ---- */

/* Says how an attempt ended; fd is its file or -1 with r the -errno. */
static void attempt(struct check *c, const char *name, int r)
{
	struct err e;

	if (r >= 0) {
		item(c, OK, name, NULL, "works");
		return;
	}
	host_explain_from(&c->host, -r, &e);
	item(c, BLOCKED, name, e.msg, "%s", strerror(-r));
}

static int open_event(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.freq = 1,
		.sample_freq = 19,
		.disabled = 1,
	};
	cleanup(cpulist_cleanup) struct cpulist online = { 0 };
	int fd, cpu = 0;

	if (!cpulist_read("", "online", &online) && online.n)
		cpu = (int)online.ids[0];
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* "return 0" */
static int load_program(void)
{
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "wick_check", "Dual BSD/GPL", insns,
			     ARRAY_SIZE(insns), NULL);
}

static void check_bpf(struct check *c)
{
	cleanup(fd_cleanup) int event = open_event();
	cleanup(fd_cleanup) int prog = load_program();
	cleanup(fd_cleanup) int ring =
	    bpf_map_create(BPF_MAP_TYPE_RINGBUF, "wick_check", 0, 0, c->host.page_size, NULL);

	attempt(c, "perf event cpu-clock", event);
	attempt(c, "BPF program", prog);
	attempt(c, "BPF ring buffer", ring);
	if (event >= 0 && prog >= 0)
		attempt(c, "BPF on a perf event",
			ioctl(event, PERF_EVENT_IOC_SET_BPF, prog) ? -errno : 0);
}

/* True if an address can be seen: without the right, the kernel prints zeros. */
static bool kernel_addresses_shown(void)
{
	cleanup(file_cleanup) FILE *f = fopen("/proc/kallsyms", "re");
	unsigned long long addr;
	char line[512];
	int i;

	/* on x86 the first symbols are per-CPU offsets from 0 */
	for (i = 0; f && i < 20000 && fgets(line, sizeof(line), f); i++)
		if (sscanf(line, "%16llx", &addr) == 1 && addr >> 63)
			return true;
	return false;
}

static void check_kernel_names(struct check *c)
{
	const struct host *h = &c->host;
	bool shown = kernel_addresses_shown();

	item(c, shown ? OK : DEGRADED, "kernel names",
	     h->kptr_restrict >= 2		 ? "`sysctl kernel.kptr_restrict=1`"
	     : !host_has_cap(h, HOST_CAP_SYSLOG) ? "add CAP_SYSLOG"
						 : "the kernel needs CONFIG_KALLSYMS=y",
	     "%s in /proc/kallsyms (kptr_restrict %d)", shown ? "addresses" : "no addresses",
	     h->kptr_restrict);
}

static int open_mapping(const struct maps_area *a, void *arg)
{
	int *ret = arg, fd;
	char path[64];

	if (a->kind != MAPS_FILE || !(a->perms & MAPS_X))
		return 0;
	snprintf(path, sizeof(path), "/proc/self/map_files/%llx-%llx", (unsigned long long)a->start,
		 (unsigned long long)a->end);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	*ret = fd < 0 ? -errno : 0;
	if (fd >= 0)
		close(fd);
	return 1;
}

static void check_map_files(struct check *c)
{
	cleanup(buf_cleanup) struct buf text = BUF_INIT(MAPS_MAX_BYTES);
	int r = maps_read(getpid(), &text);

	if (!r && !maps_each(text.data, text.len, open_mapping, &r, NULL))
		r = -ENOENT;
	item(c, r ? DEGRADED : OK, "map_files",
	     "add CAP_CHECKPOINT_RESTORE (or root): mapped files are opened by path instead", "%s",
	     r ? strerror(-r) : "readable");
}

static int run(int argc, char **argv)
{
	static void (*const checks[])(struct check *) = {
		check_kernel,	  check_machine,     check_lockdown, check_caps,
		check_paranoid,	  check_sample_rate, check_bpf,	     check_kernel_names,
		check_map_files,  check_pmu,	     check_cgroups,  check_pid_namespace,
		check_open_files, check_memory,
	};
	struct check c = { 0 };
	struct options o = { 0 };
	struct operands none;
	struct err e = { "" };
	size_t i;
	int r = options_parse(&cmd_check_command, &o, argc, argv, &none, &e);

	if (!r && !o.files && (o.duration || o.unsafe_kernel))
		r = err_set(&e, -EINVAL, "-d and --unsafe-kernel go with --files");
	if (r < 0)
		return usage_error(&cmd_check_command, &e);
	if (r)
		return EXIT_OK;
	if (o.files) {
		r = offload_start(&e);
		if (!r)
			r = check_files(o.files, o.duration, o.unsafe_kernel, &e);
		return r ? run_error(&cmd_check_command, &e) : EXIT_OK;
	}
	r = host_read("", &c.host);
	if (r) {
		err_set(&e, r, "%s", strerror(-r));
		return run_error(&cmd_check_command, &e);
	}
	for (i = 0; i < ARRAY_SIZE(checks); i++)
		checks[i](&c);
	if (c.blocked)
		printf("\nProfiling can't start: %u blocked, %u degraded.\n", c.blocked,
		       c.degraded);
	else
		printf("\nProfiling can start%s.\n",
		       c.degraded ? ", with what is degraded above" : "");
	return c.blocked ? EXIT_FAIL : EXIT_OK;
}
