/* sampler.c - see sampler.h. The map layout and the flip are described in wick_abi.h and
 * bpf/maps.h. */
#include "kernel/sampler.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/clock.h"
#include "kernel/tables.h"
#include "proc/host.h"
#include "wick.skel.h"

enum {
	REGION_SLACK = 1 + WK_USER_FRAMES,	/* words behind the bound: one largest entry */
	WINDOW_BYTES_PER_HZ = 2560,		/* 99 Hz: 250 KiB, seconds of never repeated stacks */
	WINDOW_DEFAULT_MIN = 128 << 10,
	WINDOW_DEFAULT_MAX = 1 << 20,
	GROUND_TRUTH_RING = 32 << 20,		/* every tick's stack, not only the first of a file */
	PIDNS_INITIAL_INO = 0xeffffffc,		/* PROC_PID_INIT_INO, include/linux/proc_ns.h */
};

struct half {
	int fd;
	void *regions;		/* ncpus regions of region_bytes */
};

struct cpu {
	int fd;			/* perf event, -1: none */
	uint64_t since;		/* CLOCK_MONOTONIC when it was enabled */
	uint64_t ticks, running;/* at the last look: its ticks, the event's own running time */
};

struct sampler {
	struct sampler_options o;
	struct wick_bpf *skel;
	struct ring_buffer *ring;
	struct half halves[2];
	unsigned int active;
	size_t region_bytes, mapped_bytes;
	uint32_t region_words, ncpus;
	struct cpu *cpus;
	uint64_t sampled_ns;	/* of events of this frequency that are closed */
	uint64_t due;		/* ticks of earlier frequencies */
	struct bpf_link *links[4];	/* tracepoints, as optional_program() lists them */
	struct tables tables;
	const struct sampler_handler *handler;	/* during sampler_events */
	bool pressure, started;
	uint64_t frames[WK_USER_FRAMES + 2];	/* a stack put in order, with its marks */
};

/* ---- loading ---- */

static void choose_sizes(struct sampler *s)
{
	uint64_t bytes = s->o.window_bytes;

	if (!bytes) {
		bytes = (uint64_t)s->o.freq * WINDOW_BYTES_PER_HZ;
		bytes = MIN(MAX(bytes, (uint64_t)WINDOW_DEFAULT_MIN), (uint64_t)WINDOW_DEFAULT_MAX);
	}
	s->region_bytes = (bytes + 63) & ~63ULL;
	s->region_words = (uint32_t)((s->region_bytes - sizeof(struct wk_region)) / 8 - REGION_SLACK);
	if (!s->o.max_files)
		s->o.max_files = SAMPLER_FILES_DEFAULT;
}

static int cgroup_subsys_id(const char *controller, int *ret)
{
	struct btf *btf = btf__load_vmlinux_btf();
	char name[64];
	int id, r = -ENOENT;

	if (!btf)
		return -errno;
	snprintf(name, sizeof(name), "%s_cgrp_id", controller);
	id = btf__find_by_name_kind(btf, "cgroup_subsys_id", BTF_KIND_ENUM);
	if (id > 0) {
		const struct btf_type *t = btf__type_by_id(btf, (uint32_t)id);
		const struct btf_enum *v = btf_enum(t);

		for (int i = 0; i < btf_vlen(t); i++)
			if (!strcmp(btf__name_by_offset(btf, v[i].name_off), name)) {
				*ret = v[i].val;
				r = 0;
			}
	}
	btf__free(btf);
	return r;
}

static int fill_config(struct sampler *s, struct err *e)
{
	struct wk_config *cfg = (struct wk_config *)&s->skel->rodata->cfg;
	struct stat st;
	int r;

	if (getrandom(&cfg->hash_seed, sizeof(cfg->hash_seed), 0) != sizeof(cfg->hash_seed))
		return err_set(e, -errno, "can't get random bytes: %s", strerror(errno));
	cfg->hash_seed |= 1;
	if (stat("/proc/self/ns/pid", &st))
		return err_set(e, -errno, "/proc/self/ns/pid: %s (is /proc mounted?)",
			       strerror(errno));
	cfg->pidns_ino = st.st_ino;
	cfg->pidns_initial = st.st_ino == PIDNS_INITIAL_INO;
	cfg->cgroup_id = s->o.cgroup_id;
	cfg->cgroup_subsys = -1;
	if (s->o.cgroup_controller) {
		r = cgroup_subsys_id(s->o.cgroup_controller, &cfg->cgroup_subsys);
		if (r && s->o.cgroup_id)
			return err_set(e, r, "this kernel has no cgroup controller '%s'",
				       s->o.cgroup_controller);
	}
	cfg->region_words = s->region_words;
	cfg->by_pid = s->o.by_pid;
	cfg->by_tid = s->o.by_tid;
	cfg->keep_tid = s->o.keep_tid;
	cfg->keep_idle = s->o.keep_idle;
	cfg->capture = !s->o.no_rows;
	cfg->ground_truth = s->o.ground_truth;
	cfg->keep_exe = s->o.keep_exe;
	cfg->skip = s->o.skip;
	cfg->thread_size = 16384;	/* x86-64 and arm64 with pages of 4 or 16 KiB */
#ifdef __aarch64__
	/* Arm ARM D8.3.6: a pointer's signature fills its bits from the top of the address space up to
	 * 54. Our stack lies at that top. */
	cfg->pac_mask = ((1ULL << 55) - 1) & ~((1ULL << (64 - __builtin_clzl((unsigned long)&st))) - 1);
#endif
	cfg->page_shift = (uint32_t)__builtin_ctzl((unsigned long)sysconf(_SC_PAGESIZE));
	return 0;
}

static int size_maps(struct sampler *s)
{
	struct bpf_map *half = bpf_map__inner_map(s->skel->maps.windows);
	int r;

	r = bpf_map__set_value_size(half, (uint32_t)s->region_bytes);
	if (!r)
		r = bpf_map__set_max_entries(s->skel->maps.files, s->o.max_files);
	if (!r)
		r = bpf_map__set_max_entries(s->skel->maps.free_ids, s->o.max_files);
	if (!r)
		r = bpf_map__set_max_entries(s->skel->maps.capture_buffers, s->ncpus);
	if (!r && s->o.ground_truth)
		r = bpf_map__set_max_entries(s->skel->maps.captures, GROUND_TRUTH_RING);
	if (!r)
		r = bpf_map__set_max_entries(s->skel->maps.tables, s->o.max_files + WK_FILE_FIRST);
	if (!r && !s->o.by_pid && !s->o.by_tid)
		r = bpf_map__set_max_entries(s->skel->maps.targets, 1);
	if (!r && s->o.skip)
		r = bpf_map__set_max_entries(s->skel->maps.skipped_cgroups, SAMPLER_SKIP_CGROUPS);
	if (!r && s->o.skip)
		r = bpf_map__set_max_entries(s->skel->maps.skipped_processes,
					     SAMPLER_SKIP_PROCESSES);
	return r;
}

static int make_half(struct sampler *s, struct half *h)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE | BPF_F_INNER_MAP);
	void *p;

	h->fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "wick_half", sizeof(uint32_t),
			       (uint32_t)s->region_bytes, s->ncpus, &opts);
	if (h->fd < 0)
		return -errno;
	p = mmap(NULL, s->mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, h->fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	h->regions = p;
	return 0;
}

static int activate(struct sampler *s, unsigned int half)
{
	uint32_t zero = 0;

	if (bpf_map_update_elem(bpf_map__fd(s->skel->maps.windows), &zero, &s->halves[half].fd,
				BPF_ANY))
		return -errno;
	s->active = half;
	return 0;
}

void sampler_set_marks(struct sampler *s, const struct wk_marks *marks)
{
	s->skel->bss->marks = *marks;
}

static int fill_maps(struct sampler *s)
{
	struct bpf_program *const chain[] = { s->skel->progs.wick_walk, s->skel->progs.wick_store,
					       s->skel->progs.wick_capture };
	int r;

	s->mapped_bytes = (s->region_bytes * s->ncpus + 4095) & ~4095ULL;
	for (unsigned int i = 0; i < 2; i++) {
		r = make_half(s, &s->halves[i]);
		if (r)
			return r;
	}
	s->tables.outer = bpf_map__fd(s->skel->maps.tables);
	sampler_set_marks(s, &s->o.marks);
	r = activate(s, 0);
	for (uint32_t i = 0; !r && i < ARRAY_SIZE(chain); i++) {
		int fd = bpf_program__fd(chain[i]);

		if (bpf_map_update_elem(bpf_map__fd(s->skel->maps.programs), &i, &fd, BPF_ANY))
			r = -errno;
	}
	for (uint32_t id = WK_FILE_FIRST; !r && id < WK_FILE_FIRST + s->o.max_files; id++)
		if (bpf_map_update_elem(bpf_map__fd(s->skel->maps.free_ids), NULL, &id, BPF_ANY))
			r = -errno;
	return r;
}

static int on_event(void *ctx, void *data, size_t size)
{
	struct sampler *s = ctx;
	uint32_t type;

	if (size < sizeof(uint64_t))
		return 0;
	memcpy(&type, data, sizeof(type));
	if (type == WK_EVENT_PRESSURE)
		s->pressure = true;
	else if (type == WK_EVENT_FILE && size >= sizeof(struct wk_file_event))
		return s->handler->file(s->handler->ctx, data);
	else if (type == WK_EVENT_CGROUP && size >= sizeof(struct wk_cgroup_event) &&
		 s->handler->cgroup)
		return s->handler->cgroup(s->handler->ctx, data);
	return 0;
}

static int on_capture(void *ctx, void *data, size_t size)
{
	const struct wk_capture *c = data;
	struct sampler *s = ctx;

	if (size < offsetof(struct wk_capture, stack) || c->nr_user > WK_CAPTURE_FRAMES ||
	    c->nr_kernel > WK_KERNEL_FRAMES || c->nr_vmas > WK_CAPTURE_VMAS ||
	    c->stack_bytes > size - offsetof(struct wk_capture, stack))
		return 0;	/* not from our program */
	return s->handler->capture(s->handler->ctx, c, size);
}

static char *load_log;	/* libbpf's first complaint, for the message when loading fails */

static int printf_like(2, 0) print_to_log(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	if (getenv("WICK_LIBBPF_DEBUG"))
		return vfprintf(stderr, fmt, ap);
	if (level != LIBBPF_WARN || load_log || strncmp(fmt, "libbpf: prog '", 14))
		return 0;
	if (vasprintf(&load_log, fmt, ap) < 0)
		load_log = NULL;
	else
		load_log[strcspn(load_log, "\n")] = '\0';
	return 0;
}

static bool has_targets(const struct sampler *s)
{
	return s->o.by_pid || s->o.by_tid;
}

/* The programs behind links[i], on tracepoints: those that keep the target map true, and the one that
 * announces cgroups; and whether the options ask for them. */
static struct bpf_program *optional_program(const struct sampler *s, size_t i, bool *ret_wanted)
{
	struct bpf_program *const programs[ARRAY_SIZE(s->links)] = {
		s->skel->progs.wick_fork, s->skel->progs.wick_exec, s->skel->progs.wick_exit,
		s->skel->progs.wick_cgroup,
	};

	*ret_wanted = i < 3 ? has_targets(s) : s->o.announce_cgroups;
	return programs[i];
}

static int load(struct sampler *s, struct err *e)
{
	const char *level = getenv("WICK_LIBBPF_DEBUG");	/* of the verifier's log; 4: figures */
	LIBBPF_OPTS(bpf_object_open_opts, opts, .kernel_log_level = level ? (uint32_t)atoi(level) : 0);
	struct bpf_program *p;
	bool wanted;
	int r;

	libbpf_set_print(print_to_log);
	s->skel = wick_bpf__open_opts(&opts);
	if (!s->skel)
		return err_set(e, -errno, "can't read the BPF object: %s", strerror(errno));
	r = fill_config(s, e);
	if (r)
		return r;
	r = size_maps(s);
	for (size_t i = 0; !r && i < ARRAY_SIZE(s->links); i++) {
		p = optional_program(s, i, &wanted);
		r = bpf_program__set_autoload(p, wanted);
	}
	if (!r)
		r = wick_bpf__load(s->skel);
	if (!r)
		r = fill_maps(s);
	if (r == -EMFILE)
		return err_set(e, r, "too many open files: raise the limit (ulimit -n; 256 are enough "
				     "to start)");
	/* A refusal by the verifier is -EACCES or -EPERM too, but no matter of privileges. */
	if ((r == -EPERM || r == -EACCES) && !load_log) {
		struct err why = { "" };

		(void)host_explain(-r, &why);
		return err_set(e, r, "%s", why.msg);
	}
	if (r)
		return err_set(e, r, "the kernel refused the BPF programs: %s%s%.300s", strerror(-r),
			       load_log ? "; " : "", load_log ? load_log : "");
	s->ring = ring_buffer__new(bpf_map__fd(s->skel->maps.events), on_event, s, NULL);
	if (!s->ring)
		return err_set(e, -errno, "can't map the event ring: %s", strerror(errno));
	r = ring_buffer__add(s->ring, bpf_map__fd(s->skel->maps.captures), on_capture, s);
	return r ? err_set(e, r, "can't map the capture ring: %s", strerror(-r)) : 0;
}

int sampler_open(const struct sampler_options *o, struct sampler **ret, struct err *e)
{
	cleanup(sampler_cleanup) struct sampler *s = calloc(1, sizeof(*s));
	int n, r;

	if (!s)
		return err_set(e, -ENOMEM, "out of memory");
	s->o = *o;
	s->halves[0].fd = s->halves[1].fd = -1;
	n = libbpf_num_possible_cpus();
	if (n < 1)
		return err_set(e, n ? n : -EINVAL, "can't count the CPUs");
	s->ncpus = (uint32_t)n;
	s->cpus = calloc(s->ncpus, sizeof(*s->cpus));
	if (!s->cpus)
		return err_set(e, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < s->ncpus; i++)
		s->cpus[i].fd = -1;
	choose_sizes(s);
	r = load(s, e);
	if (r)
		return r;
	*ret = take(s);
	return 0;
}

void sampler_free(struct sampler *s)
{
	if (!s)
		return;
	sampler_stop(s);
	ring_buffer__free(s->ring);
	for (unsigned int i = 0; i < 2; i++) {
		if (s->halves[i].regions)
			munmap(s->halves[i].regions, s->mapped_bytes);
		if (s->halves[i].fd >= 0)
			close(s->halves[i].fd);
	}
	tables_free(&s->tables);
	wick_bpf__destroy(s->skel);
	free(s->cpus);
	free(s);
	free(take(load_log));
}

/* ---- events ---- */

static int open_event(struct sampler *s, uint32_t cpu, struct err *e)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = s->o.event->type,
		.config = s->o.event->config,
		.freq = 1,
		.sample_freq = s->o.freq,
		.disabled = 1,
		.read_format = PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
	cleanup(fd_cleanup) int fd = (int)syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1,
						  PERF_FLAG_FD_CLOEXEC);

	/* not in the middle of a recording: then it is the CPU that went away */
	if (fd < 0 && (errno == ENOENT || errno == EOPNOTSUPP) && s->o.event->falls_back &&
	    !s->started) {
		s->o.event = event_clock();
		return open_event(s, cpu, e);
	}
	if (fd < 0)
		return err_set(e, -errno, "can't sample '%s' on CPU %u: %s%s", s->o.event->name, cpu,
			       strerror(errno),
			       errno == ENOENT || errno == EOPNOTSUPP ?
				       " (no such event here; a virtual machine without a PMU has "
				       "only the software events, such as cpu-clock)" : "");
	/* The link-less way works from 5.10 on; closing the event detaches. */
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, bpf_program__fd(s->skel->progs.wick_tick)) ||
	    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		return err_set(e, -errno, "can't attach to the events of CPU %u: %s", cpu,
			       strerror(errno));
	s->cpus[cpu].fd = fd;
	s->cpus[cpu].since = clock_monotonic();
	s->cpus[cpu].running = 0;
	fd = -1;
	return 0;
}

static void close_event(struct sampler *s, struct cpu *c)
{
	if (c->fd < 0)
		return;
	ioctl(c->fd, PERF_EVENT_IOC_DISABLE, 0);
	s->sampled_ns += clock_monotonic() - c->since;
	close(c->fd);
	c->fd = -1;
}

/* Ticks of each CPU so far. */
static int read_ticks(const struct sampler *s, uint64_t *ret)
{
	uint32_t ticks = WK_TICKS;

	return bpf_map_lookup_elem(bpf_map__fd(s->skel->maps.counters), &ticks, ret) ? -errno : 0;
}

/* A CPU that went away and came back between two looks is in the list as if nothing had been, but the
 * kernel has taken its event out. Such an event doesn't tick, nor does its time run; only a CPU that
 * has not ticked is asked for the latter, as that interrupts it. */
static bool is_dead(struct cpu *c, uint64_t ticks)
{
	uint64_t value[2] = { 0, 0 };	/* count, time running */
	bool dead;

	if (ticks != c->ticks) {
		c->ticks = ticks;
		return false;
	}
	if (read(c->fd, value, sizeof(value)) != sizeof(value))
		return true;
	dead = value[1] == c->running;
	c->running = value[1];
	return dead;
}

int sampler_refresh_cpus(struct sampler *s, struct err *e)
{
	cleanup(freep_cleanup) uint64_t *ticks = calloc(s->ncpus, sizeof(*ticks));
	cleanup(cpulist_cleanup) struct cpulist online = { 0 };
	int r = cpulist_read("", "online", &online);
	size_t next = 0;

	if (!r)
		r = ticks ? read_ticks(s, ticks) : -ENOMEM;
	if (r)
		return err_set(e, r, "can't tell which CPUs are online: %s", strerror(-r));
	for (uint32_t i = 0; i < s->ncpus; i++) {
		while (next < online.n && online.ids[next] < i)
			next++;
		if (next == online.n || online.ids[next] != i ||
		    (s->cpus[i].fd >= 0 && is_dead(&s->cpus[i], ticks[i])))
			close_event(s, &s->cpus[i]);
		if (next < online.n && online.ids[next] == i && s->cpus[i].fd < 0) {
			r = open_event(s, i, e);
			if (r && r != -ENODEV)	/* it went away between the look and the open */
				return r;
		}
	}
	return 0;
}

int sampler_set_frequency(struct sampler *s, uint32_t freq, struct err *e)
{
	if (freq == s->o.freq)
		return 0;
	for (uint32_t i = 0; i < s->ncpus; i++)
		close_event(s, &s->cpus[i]);
	s->due = sampler_ticks_due(s);
	s->sampled_ns = 0;
	s->o.freq = freq;
	return s->started ? sampler_refresh_cpus(s, e) : 0;
}

int sampler_start(struct sampler *s, struct err *e)
{
	struct bpf_program *p;
	bool wanted;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(s->links); i++) {
		p = optional_program(s, i, &wanted);
		s->links[i] = wanted ? bpf_program__attach(p) : NULL;
		if (wanted && !s->links[i])
			return err_set(e, -errno, "can't follow %s: %s",
				       i < 3 ? "forks and exits" : "new cgroups", strerror(errno));
	}
	r = sampler_refresh_cpus(s, e);
	s->started = !r;
	return r;
}

void sampler_stop(struct sampler *s)
{
	for (uint32_t i = 0; i < s->ncpus; i++)
		if (s->cpus)
			close_event(s, &s->cpus[i]);
	for (size_t i = 0; i < ARRAY_SIZE(s->links); i++) {
		bpf_link__destroy(s->links[i]);
		s->links[i] = NULL;
	}
}

int sampler_add_target(struct sampler *s, uint32_t id, bool inherit, bool after_exec)
{
	struct wk_target t = { .after_exec = after_exec, .inherit = inherit };

	if (bpf_map_update_elem(bpf_map__fd(s->skel->maps.targets), &id, &t, BPF_ANY))
		return -errno;
	return 0;
}

static int set_verdict(int map, const void *key, bool skip)
{
	uint8_t yes = 1;

	if (skip)
		return bpf_map_update_elem(map, key, &yes, BPF_ANY) ? -errno : 0;
	return bpf_map_delete_elem(map, key) && errno != ENOENT ? -errno : 0;
}

int sampler_skip_cgroup(struct sampler *s, uint64_t id, bool skip)
{
	if (!s->o.skip)
		return skip ? -E2BIG : 0;
	return set_verdict(bpf_map__fd(s->skel->maps.skipped_cgroups), &id, skip);
}

int sampler_skip_process(struct sampler *s, const struct wk_process_key *key, bool skip)
{
	if (!s->o.skip)
		return skip ? -E2BIG : 0;
	return set_verdict(bpf_map__fd(s->skel->maps.skipped_processes), key, skip);
}

/* ---- draining ---- */

int sampler_fd(const struct sampler *s)
{
	return ring_buffer__epoll_fd(s->ring);
}

int sampler_events(struct sampler *s, const struct sampler_handler *h, bool *ret_pressure)
{
	int r;

	s->handler = h;
	r = ring_buffer__consume(s->ring);
	s->handler = NULL;
	if (ret_pressure) {
		*ret_pressure = s->pressure;
		s->pressure = false;
	}
	return r < 0 ? r : 0;
}

/* The STACK entry at words[index], or NULL. What lies in the region was written by our own program;
 * the checks are for the day when it has a bug. */
static const struct wk_entry *stack_at(const struct wk_region *r, uint32_t used, uint32_t index)
{
	const struct wk_entry *e;

	if (index >= used)
		return NULL;
	e = (const void *)&r->words[index];
	if (e->type != WK_ENTRY_STACK || !e->words || e->words > used - index ||
	    e->words > WK_USER_FRAMES + 1)
		return NULL;
	return e;
}

/* Puts a user stack in order (undoes the ring) and adds the marks of what is missing. */
static size_t order_user(struct sampler *s, const struct wk_entry *e, uint32_t outcome)
{
	const uint64_t *f = (const void *)(e + 1);
	size_t n = 0, total = e->total;

	if (total <= WK_USER_FRAMES) {
		n = MIN((size_t)e->words - 1, (size_t)WK_USER_FRAMES);
		memcpy(s->frames, f, n * sizeof(*f));
	} else {
		memcpy(s->frames, f, WK_LEAF_FRAMES * sizeof(*f));
		n = WK_LEAF_FRAMES;
		s->frames[n++] = WK_FRAME_MAKE_MARK(WK_CUT);
		for (size_t i = total - WK_ROOT_FRAMES; i < total; i++)
			s->frames[n++] =
				f[WK_LEAF_FRAMES + (i - WK_LEAF_FRAMES) % WK_ROOT_FRAMES];
	}
	if (outcome != WK_USER_ROOT && outcome != WK_USER_NONE)
		s->frames[n++] = WK_FRAME_MAKE_MARK(outcome);
	return n;
}

static int deliver(struct sampler *s, const struct wk_region *r, uint32_t used,
		   const struct wk_sample *sample, const struct sampler_handler *h)
{
	const struct wk_entry *user = stack_at(r, used, sample->user_stack);
	const struct wk_entry *kernel = stack_at(r, used, sample->kernel_stack);
	size_t nuser = 0;

	if (user) {
		nuser = order_user(s, user, sample->user_outcome);
	} else if (sample->user_outcome != WK_USER_NONE && sample->user_outcome != WK_USER_ROOT) {
		s->frames[0] = WK_FRAME_MAKE_MARK(sample->user_outcome);
		nuser = 1;
	}
	return h->sample(h->ctx, sample, s->frames, nuser, (const void *)(kernel ? kernel + 1 : NULL),
			 kernel ? (size_t)kernel->words - 1 : 0);
}

static int drain_region(struct sampler *s, struct wk_region *r, const struct sampler_handler *h)
{
	uint32_t used = MIN(r->used, s->region_words + REGION_SLACK);
	int ret = 0;

	for (uint32_t i = 0; i < used && !ret;) {
		const struct wk_entry *e = (const void *)&r->words[i];

		if (!e->words || e->words > used - i)
			break;
		if (e->type == WK_ENTRY_SAMPLE && e->words == sizeof(struct wk_sample) / 8)
			ret = deliver(s, r, used, (const void *)e, h);
		i += e->words;
	}
	if (used) {
		memset(r->slots, 0, sizeof(r->slots));
		r->used = 0;
	}
	return ret;
}

bool sampler_pressure(const struct sampler *s)
{
	return s->pressure;
}

int sampler_drain(struct sampler *s, const struct sampler_handler *h)
{
	struct half *full = &s->halves[s->active];
	bool pressure;			/* of this half, that is: it is being drained */
	int ret = sampler_events(s, h, &pressure);

	if (!ret)
		ret = activate(s, !s->active);
	/* what the samples at rest speak of, files and cgroups, was announced before now */
	if (!ret)
		ret = sampler_events(s, h, NULL);
	for (uint32_t i = 0; i < s->ncpus && !ret; i++)
		ret = drain_region(s, (void *)((char *)full->regions + i * s->region_bytes), h);
	return ret;
}

void sampler_forget_file(struct sampler *s, const struct wk_file_key *key)
{
	(void)bpf_map_delete_elem(bpf_map__fd(s->skel->maps.files), key);
}

void sampler_evict_file(struct sampler *s, const struct wk_file_key *key, uint32_t id)
{
	int map = bpf_map__fd(s->skel->maps.files);
	struct wk_file known;

	if (!bpf_map_lookup_elem(map, key, &known) && known.id == id)
		(void)bpf_map_delete_elem(map, key);
	tables_drop(&s->tables, id);
}

void sampler_release_id(struct sampler *s, uint32_t id)
{
	/* The queue has room for every id there is. */
	(void)bpf_map_update_elem(bpf_map__fd(s->skel->maps.free_ids), NULL, &id, BPF_ANY);
}

/* ---- unwind rows ---- */

static int set_file(struct sampler *s, const struct wk_file_key *key, const struct wk_file *f)
{
	/* The vDSO and generated code aren't announced, so the key may be new. */
	bool any = f->id == WK_FILE_VDSO || key->dev == WK_DEV_GENERATED;

	return bpf_map_update_elem(bpf_map__fd(s->skel->maps.files), key, f,
				   any ? BPF_ANY : BPF_EXIST) ? -errno : 0;
}

int sampler_set_rows(struct sampler *s, const struct wk_file_key *key, const struct wk_file *f,
		     const uint64_t *words, size_t n)
{
	struct wk_file file = *f;
	int r;

	if (words)
		file.rows = WK_ROWS_HERE;
	/* first the table, then the news of it */
	r = words ? tables_put(&s->tables, f, words, n) : 0;
	return r ? r : set_file(s, key, &file);
}

void sampler_drop_rows(struct sampler *s, const struct wk_file_key *key, uint32_t id)
{
	struct wk_file f = { .id = id, .rows = WK_ROWS_COMING };

	(void)set_file(s, key, &f);
	tables_drop(&s->tables, id);
}

int sampler_take_id(struct sampler *s, uint32_t *ret)
{
	return bpf_map_lookup_and_delete_elem(bpf_map__fd(s->skel->maps.free_ids), NULL, ret) ? -errno : 0;
}

int sampler_set_generated(struct sampler *s, const struct wk_file_key *key, const struct wk_file *f,
			  const uint64_t *words, size_t n)
{
	if (words)
		return sampler_set_rows(s, key, f, words, n);
	sampler_evict_file(s, key, f->id);
	sampler_release_id(s, f->id);
	return 0;
}

const uint64_t *sampler_rows(struct sampler *s, uint32_t id, struct wk_table *ret,
			     size_t *ret_n)
{
	return tables_get(&s->tables, id, ret, ret_n);
}

void sampler_unmap_rows(struct sampler *s)
{
	tables_unmap(&s->tables);
}

uint64_t sampler_rows_bytes(const struct sampler *s)
{
	return s->tables.bytes;
}

/* ---- figures ---- */

void sampler_counters(const struct sampler *s, uint64_t ret[WK_OUTCOME_MAX])
{
	cleanup(freep_cleanup) uint64_t *values = calloc(s->ncpus, sizeof(*values));

	for (uint32_t i = 0; i < WK_OUTCOME_MAX; i++) {
		ret[i] = 0;
		if (!values || bpf_map_lookup_elem(bpf_map__fd(s->skel->maps.counters), &i, values))
			continue;
		for (uint32_t c = 0; c < s->ncpus; c++)
			ret[i] += values[c];
	}
}

uint64_t sampler_ticks_due(const struct sampler *s)
{
	uint64_t ns = s->sampled_ns;

	for (uint32_t i = 0; i < s->ncpus; i++)
		if (s->cpus[i].fd >= 0)
			ns += clock_monotonic() - s->cpus[i].since;
	return s->o.event->clock ? s->due + ns / (1000000000 / s->o.freq) : 0;
}

uint64_t sampler_map_bytes(const struct sampler *s)
{
	uint64_t bytes = 2 * s->mapped_bytes;
	struct bpf_map *map;

	bpf_object__for_each_map(map, s->skel->obj) {
		uint64_t entry = bpf_map__key_size(map) + bpf_map__value_size(map);

		switch (bpf_map__type(map)) {
		case BPF_MAP_TYPE_PERCPU_ARRAY:
			bytes += (uint64_t)bpf_map__value_size(map) * bpf_map__max_entries(map) *
				 s->ncpus;
			break;
		case BPF_MAP_TYPE_RINGBUF:
			bytes += bpf_map__max_entries(map);
			break;
		case BPF_MAP_TYPE_HASH:	/* element header and bucket */
			bytes += (entry + 64) * bpf_map__max_entries(map);
			break;
		default:
			bytes += entry * bpf_map__max_entries(map);
		}
	}
	return bytes;
}

uint32_t sampler_cpus(const struct sampler *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->ncpus; i++)
		n += s->cpus[i].fd >= 0;
	return n;
}

const struct event *sampler_event(const struct sampler *s)
{
	return s->o.event;
}
