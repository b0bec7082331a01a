/* cmd_record.c - `wick record`: profile the machine, some processes, or a command. */
#include "cli/commands.h"

#include <math.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "cli/summary.h"
#include "collect/build.h"
#include "collect/recorder.h"
#include "collect/setup.h"
#include "net/push.h"
#include "proc/cgroup.h"
#include "proc/child.h"
#include "proc/host.h"
#include "proc/offload.h"
#include "profile/format.h"
#include "profile/output.h"
#include "profile/pprof.h"
#include "profile/report.h"
#include "symbol/debuginfod.h"
#include "symbol/foreign.h"

struct options {
	bool all, inherit, threads, quiet, unsafe_kernel, lines, inlines, java_perfmap;
	bool debuginfod;
	struct u32_list pids, tids;
	char *cgroup, *container, *event, *output, *vmlinux;
	uint32_t freq, format, demangle, max_files, jit_processes, top;
	uint64_t duration, window_bytes, unwind_bytes, copied_bytes, symbol_bytes, jit_bytes, copy_bytes, lines_bytes,
		lines_time;
	uint64_t debuginfod_bytes, debuginfod_time, debuginfod_wait, debuginfod_cache;
	uint32_t debuginfod_queue;
	struct str_list push, labels;
};

#define OPT(field) .offset = offsetof(struct options, field)

static const char *const demangle_names[] = { "none", "simple", "full", NULL };

static const struct option_row rows[] = {
	{ OPT_FLAG, 'a', "all", NULL, "every process and the kernel; the default", OPT(all) },
	{ OPT_U32_LIST, 'p', "pid", "PID,...", "these processes, all their threads", OPT(pids),
	  .min = 1, .max = INT32_MAX },
	{ OPT_U32_LIST, 't', "tid", "TID,...", "these threads", OPT(tids), .min = 1,
	  .max = INT32_MAX },
	{ OPT_FLAG, 'i', "inherit", NULL, "with -p or -t: also what they fork", OPT(inherit) },
	{ OPT_STRING, 0, "cgroup", "PATH", "only processes in this cgroup or below it", OPT(cgroup) },
	{ OPT_STRING, 0, "container", "ID|NAME", "only processes of this container", OPT(container) },
	{ OPT_U32, 'F', "freq", "HZ", "samples per second and CPU", OPT(freq), .min = 1,
	  .max = 1000, .def = "99" },
	{ OPT_SECONDS, 'd', "duration", "SECONDS", "stop after this time; otherwise at Ctrl-C",
	  OPT(duration), .min = 10000000, .max = 86400000000000ULL },
	{ OPT_STRING, 'e', "event", "EVENT", "what to sample by, see below", OPT(event),
	  .def = "cpu-clock" },
	{ OPT_STRING, 'o', "output", "FILE", "where to write the profile; \"-\" is standard output",
	  OPT(output), .def = "profile.pb.gz" },
	{ OPT_CHOICE, 0, "format", "FORMAT", "instead of what FILE's ending says", OPT(format),
	  .def = "auto", .choices = format_names },
	{ OPT_LIST, 0, "push", "URL", "also send the profile to a server (repeatable), see below",
	  OPT(push) },
	{ OPT_LIST, 0, "label", "NAME=VALUE", "label of the pushed profile (repeatable)",
	  OPT(labels) },
	{ OPT_CHOICE, 0, "demangle", "MODE", "names of C++, Rust, D, OCaml, Go", OPT(demangle), .def = "simple",
	  .choices = demangle_names },
	{ OPT_FLAG, 0, "lines", NULL, "source lines, where debug information is at hand",
	  OPT(lines), .def = "yes" },
	{ OPT_FLAG, 0, "inlines", NULL, "inlined calls as frames of their own",
	  OPT(inlines), .def = "yes" },
	{ OPT_FLAG, 0, "threads", NULL, "tell threads of one name apart by a tid label",
	  OPT(threads) },
	{ OPT_U32, 'n', "top", "ROWS", "functions to print afterwards", OPT(top), .min = 0,
	  .max = 10000, .def = "20" },
	{ OPT_FLAG, 'q', "quiet", NULL, "print neither progress, summary nor top", OPT(quiet) },
	{ OPT_SIZE, 0, "window-bytes", "BYTES",
	  "stack window of a CPU, two of each; by default chosen by the frequency",
	  OPT(window_bytes), .min = SAMPLER_WINDOW_MIN, .max = SAMPLER_WINDOW_MAX },
	{ OPT_SIZE, 0, "unwind-bytes", "BYTES",
	  "memory of unwind tables at most; by default 1/512 of the machine's, 16M to 64M",
	  OPT(unwind_bytes), .min = 1 << 20, .max = 4ULL << 30 },
	{ OPT_SIZE, 0, "copied-bytes", "BYTES",
	  "memory of copied stacks that wait for unwind tables at most; by default 1/1024 of the machine's, "
	  "4M to 32M", OPT(copied_bytes), .min = 1 << 20, .max = 1ULL << 30 },
	{ OPT_FLAG, 0, "java-perfmap", NULL, "ask Java machines to list their code (HotSpot, JDK 17 and later)",
	  OPT(java_perfmap) },
	{ OPT_SIZE, 0, "jit-bytes", "BYTES", "names and unwind rules of the code that runtimes list, at most",
	  OPT(jit_bytes), .min = 1 << 20, .max = 1ULL << 30, .def = "32M" },
	{ OPT_U32, 0, "jit-processes", "N", "processes asked for their code at a time",
	  OPT(jit_processes), .min = 1, .max = PROCESSES_MAX, .def = "256" },
	{ OPT_SIZE, 0, "copy-bytes", "BYTES",
	  "copies of files on file systems that somebody serves (FUSE, NFS), at most; 0: not read",
	  OPT(copy_bytes), .max = 4ULL << 30, .def = "64M" },
	{ OPT_SIZE, 0, "symbol-bytes", "BYTES",
	  "memory of symbol tables; beyond it they are read again",
	  OPT(symbol_bytes), .min = 1 << 20, .max = 4ULL << 30, .def = "16M" },
	{ OPT_SIZE, 0, "lines-bytes", "BYTES", "memory for debug information at most",
	  OPT(lines_bytes), .min = 1 << 20, .max = 64ULL << 30, .def = "256M" },
	{ OPT_SECONDS, 0, "lines-time", "SECONDS",
	  "time to spend on debug information at most, a quarter of it on one file",
	  OPT(lines_time), .min = 10000000, .max = 3600000000000ULL, .def = "10" },
	{ OPT_FILE, 0, "vmlinux", "FILE",
	  "the running kernel's, with debug information: lines and inlined calls of the kernel",
	  OPT(vmlinux) },
	{ OPT_FLAG, 0, "debuginfod", NULL,
	  "fetch missing debug files from the servers of DEBUGINFOD_URLS; sends them build ids",
	  OPT(debuginfod) },
	{ OPT_SECONDS, 0, "debuginfod-wait", "SECONDS", "after the recording, for files that are on their way",
	  OPT(debuginfod_wait), .max = 3600000000000ULL, .def = "30" },
	{ OPT_SECONDS, 0, "debuginfod-time", "SECONDS", "of fetching one file at most",
	  OPT(debuginfod_time), .min = 1000000000, .max = 3600000000000ULL, .def = "60" },
	{ OPT_SIZE, 0, "debuginfod-bytes", "BYTES", "of one file at most", OPT(debuginfod_bytes),
	  .min = 1 << 20, .max = 64ULL << 30, .def = "512M" },
	{ OPT_SIZE, 0, "debuginfod-cache-bytes", "BYTES",
	  "of fetched files on disk (DEBUGINFOD_CACHE_PATH) at most", OPT(debuginfod_cache),
	  .min = 1 << 20, .max = 1ULL << 44, .def = "1G" },
	{ OPT_U32, 0, "debuginfod-queue", "N", "files waiting to be fetched at most",
	  OPT(debuginfod_queue), .min = 1, .max = 65536, .def = "256" },
	{ OPT_U32, 0, "max-files", "N", "sampled files known at a time", OPT(max_files), .min = 16,
	  .max = SAMPLER_FILES_MAX, .def = "4096" },
	{ OPT_FLAG, 0, "unsafe-kernel", NULL,
	  "run on a kernel that sampling can freeze (5.19 to 6.1.35, 6.2, 6.3 to 6.3.9)",
	  OPT(unsafe_kernel) },
	{ .type = OPT_END }
};

static int run(int argc, char **argv);

const struct command cmd_record_command = {
	.name = "record",
	.operands = "[-- COMMAND [ARG...]]",
	.help = "profile the machine, some processes, or a command",
	.notes = "With a COMMAND sampling starts at its exec and follows its children (-a: everything\n"
		 "while it runs); the exit status is the command's. When the time of -d is over, or at\n"
		 "Ctrl-C, a command that still runs is sent SIGTERM, and SIGKILL two seconds later.\n"
		 "Events: cpu-clock page-faults minor-faults major-faults context-switches\n"
		 "cpu-migrations; with a PMU also cycles instructions cache-references cache-misses\n"
		 "branches branch-misses. Without one, cycles becomes cpu-clock.\n"
		 "Debuginfod: DEBUGINFOD_URLS names the servers; files are kept in DEBUGINFOD_CACHE_PATH, else\n"
		 "in debuginfod below STATE_DIRECTORY or /var/lib/wick. Ctrl-C ends the waiting for them.\n"
		 "File endings: .pb.gz .pb .folded .speedscope.json .txt\n"
		 "Push: pyroscope+http://HOST:4040 pyroscope-ingest+http://HOST:4040\n"
		 "profefe+http://HOST:10100 parca+grpc://HOST:7070 otlp+http://HOST:4318 file:///DIR;\n"
		 "with TLS +https and +grpcs. Before HOST: USER:PASSWORD@. Behind it: ?tenant=ID\n"
		 "?password-file=FILE ?bearer-file=FILE ?ca-file=FILE ?cert-file=FILE&key-file=FILE\n"
		 "?insecure=yes ?timeout=30s, otlp: ?proto=1.9, file: ?max-bytes=1G&max-age=7d\n",
	.rows = rows,
	.runs_command = true,
	.run = run,
};

struct record {
	const struct options *o;
	char **command;			/* NULL: none */
	enum format format;
	const struct event *event;
	struct push_target **targets;
	size_t ntargets;
	struct labels labels;		/* of what is pushed */
	struct kallsyms *kallsyms;	/* NULL: unreadable */
	struct cgroups *cgroups;
	struct recorder *rec;
	struct debuginfod *servers;	/* NULL: not wanted */
	struct vmlinux *vmlinux;	/* likewise */
	struct child child;
	int signals;			/* signalfd */
	bool tty;			/* standard error is a terminal and wants progress */
};

/* ---- options that the table can't judge alone ---- */

static int check_selection(const struct record *r, struct err *e)
{
	const struct options *o = r->o;
	bool some = o->pids.n || o->tids.n;

	if (o->all && (some || o->cgroup || o->container))
		return err_set(e, -EINVAL, "--all and a selection (-p, -t, --cgroup, --container) "
					   "exclude each other");
	if (o->pids.n && o->tids.n)
		return err_set(e, -EINVAL, "--pid and --tid exclude each other");
	if (o->cgroup && o->container)
		return err_set(e, -EINVAL, "--cgroup and --container exclude each other");
	if (some && r->command)
		return err_set(e, -EINVAL, "--pid, --tid and a COMMAND exclude each other");
	if (o->inherit && !some)
		return err_set(e, -EINVAL, "--inherit goes with --pid or --tid (a COMMAND's children "
					   "are always followed)");
	return 0;
}

static int check_event(struct record *r, struct err *e)
{
	char names[512];

	r->event = event_by_name(r->o->event);
	if (r->event)
		return 0;
	event_names(names, sizeof(names));
	return err_set(e, -EINVAL, "--event: '%.64s' is not one of %s", r->o->event, names);
}

static int check_push(struct record *r, struct err *e)
{
	const struct options *o = r->o;
	struct err why = { "" };
	int ret = 0;

	if (o->labels.n && !o->push.n)
		return err_set(e, -EINVAL, "--label goes with --push");
	r->targets = calloc(o->push.n + 1, sizeof(struct push_target *));
	if (!r->targets)
		return err_set(e, -ENOMEM, "out of memory");
	for (size_t i = 0; i < o->labels.n; i++) {
		ret = push_label_add(&r->labels, o->labels.v[i], &why);
		if (ret)
			return err_set(e, ret, "--label: %s", why.msg);
	}
	for (size_t i = 0; i < o->push.n; i++, r->ntargets++) {
		ret = push_parse(o->push.v[i], &r->targets[i], &why);
		if (ret)
			return err_set(e, ret, "--push: %s", why.msg);
	}
	return 0;
}

static int check_options(struct record *r, struct err *e)
{
	int ret = check_selection(r, e);

	if (!ret)
		ret = check_event(r, e);
	if (!ret && r->o->debuginfod)
		ret = debuginfod_check_urls(e);
	if (!ret && r->o->vmlinux && !r->o->lines)
		ret = err_set(e, -EINVAL, "--vmlinux and --no-lines exclude each other");
	r->format = (enum format)r->o->format;
	if (!ret && r->format == FORMAT_AUTO)
		ret = format_from_path(r->o->output, &r->format, e);
	return ret ? ret : check_push(r, e);
}

/* Whether a process or thread exists and still runs: a zombie, waiting to be reaped, doesn't. */
static bool is_alive(uint32_t id)
{
	cleanup(buf_cleanup) struct buf stat = BUF_INIT(4096);
	const char *comm_end;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/stat", id);
	if (host_read_file("", path, &stat))
		return false;
	/* proc(5): "pid (comm) state ..."; comm may hold parentheses, what follows can't */
	comm_end = stat.data ? strrchr(stat.data, ')') : NULL;
	return comm_end && comm_end[1] && !strchr("ZX", comm_end[2]);
}

static int check_processes(const struct options *o, struct err *e)
{

	for (size_t i = 0; i < o->pids.n + o->tids.n; i++) {
		bool pid = i < o->pids.n;
		uint32_t id = pid ? o->pids.v[i] : o->tids.v[i - o->pids.n];

		if (!is_alive(id))
			return err_set(e, -ESRCH, "there is no %s %u (in this pid namespace)",
				       pid ? "process" : "thread", id);
	}
	return 0;
}

/* ---- before the start ---- */

static int select_cgroup(struct record *r, struct sampler_options *so, struct err *e)
{
	const struct options *o = r->o;
	const struct cgroup_hierarchy *h;
	struct cgroup c;
	int ret = cgroups_open("", &r->cgroups);

	if (ret)
		return err_set(e, ret, "can't tell where cgroups are mounted: %s", strerror(-ret));
	h = cgroups_default(r->cgroups);
	if (o->cgroup)
		ret = cgroup_resolve(r->cgroups, o->cgroup, &c, e);
	else if (o->container)
		ret = cgroup_find_container(r->cgroups, o->container, &c, e);
	if (ret)
		return ret;
	if (o->cgroup || o->container) {
		h = c.hierarchy;
		so->cgroup_id = c.id;
	}
	if (h && h->version == 1)
		so->cgroup_controller = h->controller;
	return 0;
}

static int prepare(struct record *r, struct err *e)
{
	const struct options *o = r->o;
	struct recorder_options ro = {
		.rows_bytes = o->unwind_bytes,
		.copied_bytes = o->copied_bytes,
		.processes = { .max_bytes = o->jit_bytes, .max_processes = o->jit_processes,
			       .java_perfmap = o->java_perfmap },
	};
	struct sampler_options so = {
		.event = r->event,
		.freq = o->freq,
		.by_pid = o->pids.n || (r->command && !o->all),
		.by_tid = o->tids.n,
		.keep_tid = o->threads,
		.window_bytes = o->window_bytes,
		.max_files = o->max_files,
	};
	int ret = check_processes(o, e);

	if (!ret)
		ret = select_cgroup(r, &so, e);
	if (!ret)
		ret = setup_recorder(o->unsafe_kernel, &so, &ro, &r->rec, &r->kallsyms, e);
	if (!ret && o->vmlinux)
		ret = vmlinux_open(o->vmlinux, NULL, r->kallsyms, &r->vmlinux, e);
	return ret;
}

static int open_signals(struct record *r, struct err *e)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);	/* a session that is cut off still leaves its profile */
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	r->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return r->signals < 0 ? err_set(e, -errno, "signalfd: %s", strerror(errno)) : 0;
}

static int add_targets(struct record *r, struct err *e)
{
	const struct options *o = r->o;
	int ret = 0;

	for (size_t i = 0; i < o->pids.n && !ret; i++)
		ret = sampler_add_target(r->rec->sampler, o->pids.v[i], o->inherit, false);
	for (size_t i = 0; i < o->tids.n && !ret; i++)
		ret = sampler_add_target(r->rec->sampler, o->tids.v[i], o->inherit, false);
	if (!ret && r->command && !o->all)
		ret = sampler_add_target(r->rec->sampler, (uint32_t)r->child.pid, true, true);
	return ret ? err_set(e, ret, "too many processes or threads selected") : 0;
}

/* ---- recording ---- */

/* Whether a signal asks for the end; SIGCHLD only wakes us. */
static bool asked_to_stop(int fd)
{
	struct signalfd_siginfo si;
	bool stop = false;

	while (read(fd, &si, sizeof(si)) == sizeof(si))
		stop |= si.ssi_signo != SIGCHLD;
	return stop;
}

/* All that was selected by number is gone, and nothing of it can have been inherited. */
static bool targets_gone(const struct options *o)
{
	struct err e;

	if ((!o->pids.n && !o->tids.n) || o->inherit)
		return false;
	for (size_t i = 0; i < o->pids.n + o->tids.n; i++) {
		struct options one = { 0 };
		uint32_t *id = i < o->pids.n ? &o->pids.v[i] : &o->tids.v[i - o->pids.n];

		one.pids = (struct u32_list){ .v = id, .n = 1 };
		if (!check_processes(&one, &e))
			return false;
	}
	return true;
}

static int loop(struct record *r, struct err *e)
{
	uint64_t until = r->o->duration ? clock_monotonic() + r->o->duration : 0;
	bool ready;
	int ret;

	for (;;) {
		ret = recorder_wait(r->rec, r->signals, until, &ready, e);
		if (ret)
			return ret;
		if (ready && asked_to_stop(r->signals))
			return 0;
		if (r->command && child_reap(&r->child))
			return 0;
		if ((until && clock_monotonic() >= until) || targets_gone(r->o))
			return 0;
		if (r->tty)
			summary_progress(stderr, r->rec);
	}
}

/* After the command was forked, which keeps its environment. */
static int start_servers(struct record *r, struct err *e)
{
	const struct options *o = r->o;
	struct debuginfod_options so = {
		.file_bytes = o->debuginfod_bytes,
		.file_ns = o->debuginfod_time,
		.cache_bytes = o->debuginfod_cache,
		.queue = o->debuginfod_queue,
	};

	return o->debuginfod ? debuginfod_new(&so, &r->servers, e) : 0;
}

static int record(struct record *r, struct err *e)
{
	struct err why = { "" };
	int ret = 0;

	if (r->command)
		ret = child_start(r->command, &r->child, e);
	if (!ret)
		ret = start_servers(r, e);
	if (!ret)
		ret = add_targets(r, e);
	if (!ret)
		ret = recorder_start(r->rec, e);
	if (!ret && r->command) {
		ret = child_go(&r->child, &why);
		if (ret)
			return err_set(e, ret, "can't run '%.200s': %s", r->command[0], why.msg);
	}
	if (!ret)
		ret = loop(r, e);
	if (r->tty)
		summary_progress_end(stderr);
	if (!ret && r->command)
		child_stop(&r->child);
	return ret ? ret : recorder_finish(r->rec, e);
}

/* ---- the result ---- */

/* Code that was loaded since the start (modules, BPF programs) is in a newer kallsyms. */
static void refresh_kallsyms(struct record *r)
{
	struct kallsyms *fresh;

	if (!setup_kallsyms_stale(r->kallsyms, &r->rec->samples) || setup_kallsyms(&fresh))
		return;
	kallsyms_free(r->kallsyms);
	r->kallsyms = fresh;
}

static void naming(void *ctx, uint32_t done, uint32_t total)
{
	(void)ctx;
	summary_naming(stderr, done, total);
}

static int build(struct record *r, struct symbolizer *sym, struct profile **ret,
		 struct build_stats *stats)
{
	struct build_options bo = {
		.event = sampler_event(r->rec->sampler),
		.freq = r->o->freq,
		.time_nanos = r->rec->time_nanos,
		.duration_nanos = r->rec->duration_nanos,
		.progress = r->tty ? naming : NULL,
	};
	int err = build_profile(&r->rec->samples, sym, &bo, ret, stats);

	if (r->tty)
		summary_progress_end(stderr);
	return err;
}

/* Until all that was asked for is there or will not be, time is over, or somebody is impatient. */
static void wait_for_servers(struct record *r, uint64_t until)
{
	bool done = false;

	while (!done && clock_monotonic() < until && !asked_to_stop(r->signals)) {
		done = debuginfod_wait(r->servers, MIN(until, clock_monotonic() + 100000000));
		if (!done && r->tty)
			summary_fetching(stderr, debuginfod_stats(r->servers).waiting);
	}
	if (r->tty)
		summary_progress_end(stderr);
}

/* Names everything with what is there; and again, as long as debug files arrive that were asked for. */
static int build_all(struct record *r, struct symbolizer *sym, struct profile **ret,
		     struct build_stats *stats)
{
	int err = build(r, sym, ret, stats);
	uint64_t until = clock_monotonic() + r->o->debuginfod_wait;

	while (!err && r->servers) {
		wait_for_servers(r, until);
		if (!symbolizer_improvable(sym))
			break;
		symbolizer_trim(sym);
		profile_free(take(*ret));
		*stats = (struct build_stats){ 0 };
		err = build(r, sym, ret, stats);
	}
	return err;
}

static void say_pushed(const struct push_target *t, const struct push_result *res)
{
	fprintf(stderr, "wick: pushed %zu bytes to %s", res->sent, push_name(t));
	if (res->parts > 1)
		fprintf(stderr, " in %u parts", res->parts);
	if (res->unsendable)
		fprintf(stderr, ", without %u samples that are too large", res->unsendable);
	fprintf(stderr, "\n");
}

static int push_all(struct record *r, const struct profile *p, struct err *e)
{
	int ret = 0;

	if (!r->ntargets)
		return 0;
	if (!profile_sample_count(p)) {
		fprintf(stderr, "wick: nothing pushed: the profile has no samples\n");
		return 0;
	}
	for (size_t i = 0; i < r->ntargets; i++) {	/* one that fails keeps no other from its copy */
		struct push_result res = { 0 };
		struct err why = { "" };
		int failed = push_send(r->targets[i], &r->labels, p, &res, &why);

		if (failed && !ret)
			ret = err_set(e, failed, "%s", why.msg);
		else if (failed)
			fprintf(stderr, "wick: %s\n", why.msg);
		else if (!r->o->quiet)
			say_pushed(r->targets[i], &res);
	}
	return ret;
}

static int print_top(const struct record *r, const struct profile *p)
{
	cleanup(buf_cleanup) struct buf out = BUF_INIT(16 << 20);
	struct report_options ro = { .limit = r->o->top };
	int ret;

	if (r->o->quiet || !r->o->top || !strcmp(r->o->output, "-") || !profile_sample_count(p))
		return 0;
	ret = report_write(p, &ro, &out, NULL);
	if (!ret)
		fwrite(out.data, 1, out.len, stdout);
	return ret;
}

static int finish(struct record *r, struct err *e)
{
	cleanup(symbolizer_cleanup) struct symbolizer *sym = NULL;
	cleanup(profile_cleanup) struct profile *p = NULL;
	cleanup(buf_cleanup) struct buf out = BUF_INIT(PPROF_MAX_BYTES);
	struct symbolizer_options so = {
		.demangle = (enum demangle_mode)r->o->demangle,
		.bytes = r->o->symbol_bytes,
		.want_lines = r->o->lines,
		.lines = { .inlines = r->o->inlines, .max_bytes = r->o->lines_bytes,
			   .max_ns = r->o->lines_time },
	};
	struct build_stats stats = { 0 };
	int ret;

	refresh_kallsyms(r);
	so.kallsyms = r->kallsyms;
	so.processes = r->rec->processes;
	so.servers = r->servers;
	so.vmlinux = r->vmlinux;
	ret = symbolizer_new(&so, r->rec->files, &sym);
	if (!ret)
		ret = build_all(r, sym, &p, &stats);
	if (!ret)
		ret = format_write(p, r->format, &out);
	if (ret)
		return err_set(e, ret, "can't make the profile: %s", strerror(-ret));
	ret = output_write(r->o->output, out.data, out.len, e);
	if (ret)
		return ret;
	ret = push_all(r, p, e);
	if (!r->o->quiet)
		summary_print(stderr, r->rec, sym, &stats);
	if (!r->o->quiet && r->servers)
		summary_servers(stderr, r->servers);
	if (!ret && print_top(r, p))
		ret = err_set(e, -ENOMEM, "out of memory");
	if (!ret && !r->o->quiet && strcmp(r->o->output, "-"))
		fprintf(stderr, "wick: wrote %s (%zu bytes)\n", r->o->output, out.len);
	return ret;
}

static void record_done(struct record *r)
{
	child_done(&r->child);
	debuginfod_free(r->servers);
	vmlinux_free(r->vmlinux);
	recorder_free(r->rec);
	kallsyms_free(r->kallsyms);
	cgroups_free(r->cgroups);
	for (size_t i = 0; i < r->ntargets; i++)
		push_target_free(r->targets[i]);
	free(r->targets);
	labels_free(&r->labels);
	if (r->signals >= 0)
		close(r->signals);
}

static int run_record(const struct options *o, const struct operands *operands)
{
	struct record r = { .o = o, .child = CHILD_INIT, .signals = -1 };
	struct err e = { "" };
	int status = EXIT_OK, ret;

	r.command = operands->n ? operands->v : NULL;
	r.tty = !o->quiet && isatty(STDERR_FILENO);
	ret = check_options(&r, &e);
	if (ret) {
		record_done(&r);
		return usage_error(&cmd_record_command, &e);
	}
	foreign_limit(o->copy_bytes);
	ret = offload_start(&e);
	if (!ret)
		ret = open_signals(&r, &e);	/* from here on they end the recording, not us */
	if (!ret)
		ret = prepare(&r, &e);
	if (!ret)
		ret = record(&r, &e);
	if (!ret)
		ret = finish(&r, &e);
	if (ret)
		status = run_error(&cmd_record_command, &e);
	else if (r.command)
		status = child_exit_status(&r.child);
	record_done(&r);
	return status;
}

/* Command lines are shown to everybody by ps(1). A COMMAND keeps its own as it is. */
static void mask_passwords(char *const *words, int n, const struct operands *operands)
{
	for (int i = 1; i < n; i++) {
		bool ours = true;

		for (int j = 0; j < operands->n; j++)
			ours &= words[i] != operands->v[j];
		if (ours)
			push_mask(words[i]);
	}
}

static int run(int argc, char **argv)
{
	struct options o = { 0 };
	struct operands operands = { 0 };
	struct err e = { "" };
	bool no_command = argc > 1 && !strcmp(argv[argc - 1], "--");
	/* parsing moves argv's elements around */
	cleanup(freep_cleanup) char **words = calloc((size_t)argc, sizeof(*words));
	int status, r;

	if (words)
		memcpy(words, argv, (size_t)argc * sizeof(*words));
	r = options_parse(&cmd_record_command, &o, argc, argv, &operands, &e);
	if (words)
		mask_passwords(words, argc, &operands);
	if (!r && no_command && !operands.n)	/* a script's empty "$@" must not record for ever */
		r = err_set(&e, -EINVAL, "no COMMAND after --");
	if (r == 1)
		status = EXIT_OK;
	else if (r)
		status = usage_error(&cmd_record_command, &e);
	else
		status = run_record(&o, &operands);
	options_free(rows, &o);
	return status;
}
