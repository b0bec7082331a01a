/* host.h - facts about the machine, its kernel and our privileges, and the one line that says why
 * profiling doesn't work here.
 *
 *	struct host h;
 *	r = host_read("", &h);		// "": this machine; a directory: a copy of /proc and /sys
 *	if (!r && host_kernel_is_bad(&h)) ...
 *
 *	struct err e;
 *	r = engine_start(...);		// failed: which of a dozen reasons is it?
 *	if (r < 0)
 *		return host_explain(-r, &e);	// "needs root, or CAP_BPF and CAP_PERFMON ..."
 *
 * A fact that can't be read is HOST_UNKNOWN (numbers) or "" (text), never an error: what a kernel
 * or a container hides is one fact less, not an end. Nothing is kept between calls.
 * Cost: about 20 small reads below /proc and /sys, 0.1 ms.
 */
#ifndef WICK_HOST_H
#define WICK_HOST_H

#include "base/buf.h"

enum { HOST_UNKNOWN = -1 };

/* Capabilities by their numbers (linux/capability.h, capabilities(7)); the highest is below 64. */
enum host_cap {
	HOST_CAP_DAC_READ_SEARCH = 2,
	HOST_CAP_SYS_PTRACE = 19,
	HOST_CAP_SYS_ADMIN = 21,
	HOST_CAP_SYS_RESOURCE = 24,
	HOST_CAP_SYSLOG = 34,
	HOST_CAP_PERFMON = 38,
	HOST_CAP_BPF = 39,
	HOST_CAP_CHECKPOINT_RESTORE = 40,
};

enum host_lockdown {	/* kernel_lockdown(7) */
	HOST_LOCKDOWN_UNKNOWN = HOST_UNKNOWN,
	HOST_LOCKDOWN_NONE,
	HOST_LOCKDOWN_INTEGRITY,
	HOST_LOCKDOWN_CONFIDENTIALITY,	/* no BPF program may read kernel memory */
};

struct host_version {
	unsigned int major, minor, patch;
};

struct host {
	/* kernel */
	char release[65];		/* uname -r */
	char machine[65];		/* uname -m, always of this machine */
	struct host_version kernel;	/* with the stable patch level if it can be learnt */
	bool btf;			/* /sys/kernel/btf/vmlinux is readable */
	enum host_lockdown lockdown;

	/* sysctls; HOST_UNKNOWN if unreadable (perf_event_paranoid can really be -1: then
	 * perf_events_exist tells) */
	bool perf_events_exist;
	int perf_event_paranoid;
	int perf_event_max_sample_rate;	/* Hz */
	int kptr_restrict;
	int unprivileged_bpf_disabled;

	/* us */
	uint64_t caps;			/* effective capabilities, one bit each */
	bool in_user_namespace;		/* not the initial one: caps don't count for BPF, perf */
	bool seccomp;			/* a filter is on us, as in most containers */
	uint64_t pidns_ino;		/* inode number of our pid namespace, 0 unknown */
	bool pidns_is_initial;		/* the machine's own: sees every process */
	/* Depth of our pid namespace, 0 for the initial one. HOST_UNKNOWN inside a container that
	 * mounts its own /proc: namespaces further up are invisible from there. */
	int pidns_level;

	/* machine */
	char pmu[64];			/* its device below event_source, "" if there is none */
	uint32_t cpus_online;		/* number of CPUs */
	uint32_t cpus_possible;		/* highest possible id + 1: values of a per-CPU map */
	uint64_t mem_total, mem_available;	/* bytes, 0 unknown */
	uint32_t page_size;		/* bytes */
};

/* Reads all of it below root ("" or a directory without a final slash). 0, or -ENAMETOOLONG when
 * root is too long. */
int must_check host_read(const char *root, struct host *ret);

/* Kernels where a BPF program that reads user memory on a perf event can freeze the machine:
 * 5.19 to 6.1.35, 6.2, 6.3 to 6.3.9. */
bool host_kernel_is_bad(const struct host *h);
/* Is the kernel major.minor or later? */
bool host_kernel_at_least(const struct host *h, unsigned int major, unsigned int minor);

/* Does cap count for us: held, itself or through CAP_SYS_ADMIN where the kernel takes that instead,
 * and in the initial user namespace? */
bool host_has_cap(const struct host *h, enum host_cap cap);
const char *host_cap_name(enum host_cap cap);	/* "CAP_BPF" */

/* The one sentence for a start that failed with errno_value (positive): privileges, kernel, BTF,
 * lockdown, limits, in the order in which they stop people. Returns -errno_value, e filled; never
 * fails. host_explain reads the facts itself, host_explain_from has them. */
int host_explain(int errno_value, struct err *e);
int host_explain_from(const struct host *h, int errno_value, struct err *e);

/* ---- parts that others need too ---- */

/* Appends a whole file, root and path joined, up to b's cap: for /proc and /sys, whose sizes are
 * not known before. 0, -errno of open or read, -E2BIG (b->err), -ENOMEM, -ENAMETOOLONG. */
int must_check host_read_file(const char *root, const char *path, struct buf *b);

struct cpulist {
	uint32_t *ids;		/* ascending */
	size_t n, cap;
};
enum { CPULIST_MAX_ID = 1 << 16 };	/* exclusive; kernels stop at 8192 */

/* "0-3,8,10-11\n", as in /sys/devices/system/cpu/online. An empty text has no CPUs. 0;
 * -EINVAL for anything but ascending ids and ranges; -ERANGE for an id of CPULIST_MAX_ID or above;
 * -ENOMEM. */
int must_check cpulist_parse(const char *text, struct cpulist *ret);
/* The same from a file of /sys/devices/system/cpu: "online", "possible". Also -errno of reading. */
int must_check cpulist_read(const char *root, const char *name, struct cpulist *ret);
void cpulist_free(struct cpulist *l);
static inline maybe_unused void cpulist_cleanup(struct cpulist *l)
{
	cpulist_free(l);
}

/* The version in uname -r, with a better patch level if uname -v (version) or Ubuntu's
 * /proc/version_signature (signature; both may be "") names the stable release beneath: Debian's
 * 6.1.0-18-amd64 is "Debian 6.1.76-1". -EINVAL if release doesn't begin with two numbers. */
int must_check host_parse_version(const char *release, const char *version, const char *signature,
				  struct host_version *ret);
/* "none [integrity] confidentiality" */
enum host_lockdown host_parse_lockdown(const char *text);
/* The capabilities, the seccomp filter and the levels of NSpid in the text of /proc/PID/status. */
void host_parse_status(const char *text, struct host *h);

#endif
