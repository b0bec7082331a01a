/* agent.c - see agent.h: start and end, and what the other threads call. */
#include "agent/agent.h"

#include <malloc.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <time.h>

#include "base/clock.h"
#include "agent/log.h"
#include "agent/state.h"
#include "collect/setup.h"

#define KALLSYMS_PAUSE_NS 60000000000ULL	/* between two readings of the kernel's symbols */

enum { DRAINS_PER_WINDOW = 3 };	/* maps of JIT code are read while their process lives */

int64_t agent_wall_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- figures ---- */

struct agent_figures agent_figures(struct agent *a)
{
	struct agent_figures f;

	pthread_mutex_lock(&a->lock);
	f = a->figures;
	pthread_mutex_unlock(&a->lock);
	return f;
}

void agent_refresh_figures(struct agent *a)
{
	const struct sampler *s = a->rec->sampler;
	struct agent_figures *f = &a->figures;

	pthread_mutex_lock(&a->lock);
	memcpy(f->counters, a->rec->counters, sizeof(f->counters));
	f->ticks_due = sampler_ticks_due(s);
	f->cpus = sampler_cpus(s);
	f->freq = MAX(a->budget.freq, sessions_freq(a->sessions));
	f->map_bytes = sampler_map_bytes(s);
	f->rows_bytes = sampler_rows_bytes(s);
	f->unwinder = *unwinder_stats(a->rec->unwinder);
	f->files = files_count(a->rec->files);
	f->files_unopened = files_unopened(a->rec->files);
	f->budget = a->budget;
	pthread_mutex_unlock(&a->lock);
}

uint64_t agent_resident_bytes(void)
{
	FILE *f cleanup(file_cleanup) = fopen("/proc/self/statm", "re");
	unsigned long long total, resident;

	if (!f || fscanf(f, "%llu %llu", &total, &resident) != 2)
		return 0;
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* ---- labels ---- */

static void workload_key_of(const struct files *files, const struct samples_key *key,
			    struct workload_key *ret)
{
	const struct file *exe = key->exe ? files_get(files, key->exe) : NULL;

	*ret = (struct workload_key){
		.cgroup_id = key->cgroup_id,
		.start_time = key->start_time,
		.exec_id = key->exec_id,
		.pid = key->pid,
		.global_pid = key->global_pid,
		.uid = key->uid,
		.kernel = key->exe == WK_EXE_KERNEL,
		.comm = key->comm,
		.exe_path = exe ? exe->path : NULL,
	};
}

int agent_labels(struct agent *a, const struct files *files, const struct samples_key *key,
		 struct labels *ret)
{
	struct workload_key k;
	int r;

	workload_key_of(files, key, &k);
	if (!workloads_wanted(a->workloads, &k))
		return 1;
	r = workloads_labels(a->workloads, &k, ret);
	if (r)
		return r;
	pthread_mutex_lock(&a->lock);
	for (size_t i = 0; i < a->extra.n && r != -ENOMEM; i++) {
		r = labels_set(ret, a->extra.v[i].name, a->extra.v[i].value);
		a->figures.labels_left_out += r == -E2BIG;
	}
	pthread_mutex_unlock(&a->lock);
	return r == -E2BIG ? 0 : r;
}

static int series_labels_of(void *ctx, const struct samples_key *key, struct labels *ret)
{
	struct agent *a = ctx;

	return agent_labels(a, a->rec->files, key, ret);
}

static void deliver(void *ctx, const struct labels *labels, const struct profile *p)
{
	struct agent *a = ctx;
	uint64_t samples = 0;
	int r;

	for (uint32_t i = 0; i < profile_sample_count(p); i++)
		samples += (uint64_t)profile_values(p, i)[0];
	pthread_rwlock_rdlock(&a->delivery_lock);
	r = samples && a->delivery ? delivery_put(a->delivery, labels, p) : 0;
	pthread_rwlock_unlock(&a->delivery_lock);
	pthread_mutex_lock(&a->lock);
	if (r)
		a->figures.delivery_failed += samples;
	else
		a->figures.queued_samples += samples;
	pthread_mutex_unlock(&a->lock);
	if (r)
		log_warning("can't queue a profile: %s", strerror(-r));
}

/* The builder's thread, before each window: names of kernel code that was loaded since. */
static void before_window(void *ctx, const struct samples *samples, struct symbolizer *s)
{
	struct agent *a = ctx;
	struct kallsyms *fresh;

	if (clock_monotonic() - a->kallsyms_read < KALLSYMS_PAUSE_NS ||
	    !setup_kallsyms_stale(a->kallsyms, samples))
		return;
	a->kallsyms_read = clock_monotonic();
	if (setup_kallsyms(&fresh))
		return;
	symbolizer_set_kallsyms(s, fresh);
	kallsyms_free(a->kallsyms);
	a->kallsyms = fresh;
}

/* The builder's thread, after each window: answers and tables of files back within their budget, or less
 * when memory is short. */
static void after_window(void *ctx, struct symbolizer *s)
{
	struct agent *a = ctx;
	bool trim;

	pthread_mutex_lock(&a->lock);
	trim = a->trim;
	a->trim = false;
	a->symbols = symbolizer_stats(s);
	a->lines = symbolizer_lines_stats(s);
	pthread_mutex_unlock(&a->lock);
	symbolizer_trim(s);
	if (trim)
		workloads_trim(a->workloads);
	malloc_trim(0);		/* what lies free between what is kept: a few ms a window */
}

/* ---- start and end ---- */

static int on_sample(void *ctx, const struct wk_sample *sample, const uint64_t *user, size_t nuser,
		     const uint64_t *kernel, size_t nkernel)
{
	struct agent *a = ctx;

	sessions_tap(a->sessions, unwinder_copied_ns(a->rec->unwinder), sample, user, nuser, kernel,
		     nkernel);
	return 0;
}

static int on_cgroup(void *ctx, const struct wk_cgroup_event *event)
{
	struct agent *a = ctx;

	return workloads_cgroup(a->workloads, event);
}

static int skip_cgroup(void *ctx, uint64_t id, bool skip)
{
	struct agent *a = ctx;

	return sampler_skip_cgroup(a->rec->sampler, id, skip);
}

static int skip_process(void *ctx, const struct wk_process_key *key, bool skip)
{
	struct agent *a = ctx;

	return sampler_skip_process(a->rec->sampler, key, skip);
}

static int open_signals(struct agent *a, struct err *e)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	a->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return a->signals < 0 ? err_set(e, -errno, "signalfd: %s", strerror(errno)) : 0;
}

static int watch(struct agent *a, struct err *e)
{
	const int fds[] = { a->signals, sessions_fd(a->sessions) };

	a->epoll = epoll_create1(EPOLL_CLOEXEC);
	for (size_t i = 0; i < ARRAY_SIZE(fds) && a->epoll >= 0; i++) {
		struct epoll_event ev = { .events = EPOLLIN, .data.fd = fds[i] };

		if (epoll_ctl(a->epoll, EPOLL_CTL_ADD, fds[i], &ev))
			return err_set(e, -errno, "epoll: %s", strerror(errno));
	}
	return a->epoll < 0 ? err_set(e, -errno, "epoll: %s", strerror(errno)) : 0;
}

static enum kube_mode kube_mode_of(enum agent_kubernetes k)
{
	static const enum kube_mode modes[] = {
		[AGENT_KUBERNETES_OFF] = KUBE_OFF,
		[AGENT_KUBERNETES_API] = KUBE_API,
		[AGENT_KUBERNETES_KUBELET] = KUBE_KUBELET,
		[AGENT_KUBERNETES_AUTO] = KUBE_AUTO,
	};

	return modes[k];
}

static int start_workloads(struct agent *a, struct err *e)
{
	const struct agent_options *o = a->o;
	struct workload_options w = {
		.node_name = o->node_name,
		.kubernetes = kube_mode_of((enum agent_kubernetes)o->kubernetes),
		.api_url = o->api_url,
		.token_file = o->api_token_file,
		.ca_file = o->api_ca_file,
		.kubelet_url = o->kubelet_url,
		.insecure = o->kubernetes_insecure,
		.pod_labels = &o->pod_labels,
		.pod_annotations = &o->pod_annotations,
		.cache_bytes = o->workload_bytes,
		.skip_cgroup = skip_cgroup,
		.skip_process = skip_process,
		.ctx = a,
	};

	return workloads_new(&w, &a->workloads, e);
}

static int start_recorder(struct agent *a, struct err *e)
{
	const struct agent_options *o = a->o;
	struct sampler_options so = {
		.event = a->event,
		.freq = o->freq,
		.cgroup_controller = workloads_controller(a->workloads),
		.announce_cgroups = true,
		.keep_exe = true,
		.skip = true,
		.window_bytes = o->window_bytes,
		.max_files = o->max_files,
	};
	struct recorder_options ro = { .rows_bytes = o->unwind_bytes,
				       .copied_bytes = o->copied_bytes,
				       .processes = { .java_perfmap = o->java_perfmap,
						      .max_bytes = o->jit_bytes,
						      .max_processes = o->jit_processes } };
	int r = setup_recorder(o->unsafe_kernel, &so, &ro, &a->rec, &a->kallsyms, e);

	if (!r && o->vmlinux)
		r = vmlinux_open(o->vmlinux, NULL, a->kallsyms, &a->vmlinux, e);
	if (r)
		return r;
	a->sampler_options = so;
	a->rec->drain_ns = o->window_ns / DRAINS_PER_WINDOW;
	a->rec->tap = on_sample;
	a->rec->cgroup = on_cgroup;
	a->rec->tap_ctx = a;
	return 0;
}

static int start_builder(struct agent *a, struct err *e)
{
	const struct agent_options *o = a->o;
	struct symbolizer_options so = {
		.demangle = (enum demangle_mode)o->demangle,
		.kallsyms = a->kallsyms,
		.processes = a->rec->processes,
		.bytes = o->symbol_bytes,
		.servers = a->servers,
		.vmlinux = a->vmlinux,
		.want_lines = o->lines,
		.lines = { .inlines = o->inlines, .max_bytes = o->lines_bytes,
			   .max_ns = o->lines_ns },
	};
	struct builder_options bo = {
		.event = a->event,
		.max_series = o->max_series,
		.labels = series_labels_of,
		.deliver = deliver,
		.before = before_window,
		.after = after_window,
		.ctx = a,
	};
	int r = symbolizer_new(&so, a->rec->files, &bo.symbolizer);

	return r ? err_set(e, r, "out of memory") : builder_new(&bo, &a->builder, e);
}

static int start_http(struct agent *a, struct err *e)
{
	const struct agent_options *o = a->o;
	struct httpd_handler h = serve_handler(a);
	struct httpd_options ho = {
		.listen = o->listen,
		.token_file = o->listen_token_file,
		.limits = { .max_duration_ns = o->max_profile_ns, .max_hz = o->max_hz },
		.max_callers = o->max_callers,
		.max_connections = o->max_connections,
	};

	return o->listen ? httpd_new(&ho, &h, &a->httpd, e) : 0;
}

/* Before there are other threads: it sets variables of the environment. */
static int start_servers(struct agent *a, struct err *e)
{
	const struct agent_options *o = a->o;
	struct debuginfod_options so = {
		.file_bytes = o->debuginfod_bytes,
		.file_ns = o->debuginfod_ns,
		.cache_bytes = o->debuginfod_cache_bytes,
		.queue = o->debuginfod_queue,
	};

	return o->debuginfod ? debuginfod_new(&so, &a->servers, e) : 0;
}

static int start(struct agent *a, struct err *e)
{
	struct budget_limits limits = loop_limits(a->o);
	int r = open_signals(a, e);

	a->event = event_by_name(a->o->event);
	a->window_ns = a->o->window_ns;
	budget_init(&a->budget, &limits);
	log_level((enum agent_log_level)a->o->log_level);
	if (!r && (reload_parse_labels(a->o, &a->extra) || sessions_new(&a->sessions)))
		r = err_set(e, -ENOMEM, "out of memory");
	if (!r)
		r = watch(a, e);
	if (!r)
		r = start_servers(a, e);
	if (!r)
		r = start_workloads(a, e);
	if (!r)
		r = start_recorder(a, e);
	if (!r && reload_rules(a, a->o))
		r = err_set(e, -ENOMEM, "out of memory");
	if (!r)
		r = reload_make_delivery(a->o, &a->delivery, e);
	if (!r && workloads_start(a->workloads))
		r = err_set(e, -ENOMEM, "can't read the cgroups of this machine");
	if (!r)
		r = recorder_start(a->rec, e);
	if (r)
		return r;
	a->event = sampler_event(a->rec->sampler);	/* after a fall-back: what it became */
	r = start_builder(a, e);
	if (r)
		return r;
	loop_start(a);
	a->figures.started = a->window_start;
	agent_refresh_figures(a);
	return start_http(a, e);
}

/* Orderly: no more requests, the last window, its profiles, their delivery. */
static int finish(struct agent *a, struct err *e)
{
	uint64_t deadline = clock_monotonic() + a->o->grace_ns;
	int r;

	sessions_shutdown(a->sessions);
	r = recorder_finish(a->rec, e);
	loop_last_window(a);
	builder_finish(a->builder, deadline);
	if (a->delivery)
		delivery_finish(a->delivery, deadline);
	return r;
}

static void agent_done(struct agent *a)
{
	if (a->sessions)
		sessions_shutdown(a->sessions);
	httpd_free(a->httpd);
	builder_free(a->builder);
	debuginfod_free(a->servers);
	vmlinux_free(a->vmlinux);
	delivery_free(a->delivery);
	workloads_free(a->workloads);
	recorder_free(a->rec);
	kallsyms_free(a->kallsyms);
	sessions_free(a->sessions);
	labels_free(&a->extra);
	free(a->seen);
	if (a->signals >= 0)
		close(a->signals);
	if (a->epoll >= 0)
		close(a->epoll);
	pthread_mutex_destroy(&a->lock);
	pthread_rwlock_destroy(&a->delivery_lock);
}

int agent_run(const struct agent_options *o, const struct agent_reread *reread, struct err *e)
{
	struct agent a = { .o = o, .first = o, .reread = reread, .signals = -1, .epoll = -1,
			   .lock = PTHREAD_MUTEX_INITIALIZER,
			   .delivery_lock = PTHREAD_RWLOCK_INITIALIZER };
	int r = start(&a, e);

	if (!r) {
		log_info("sampling %s at %u Hz on %u CPUs, windows of %g s%s%s", a.event->name, o->freq,
			 a.rec->cpus, (double)o->window_ns / 1e9,
			 o->listen ? ", listening on " : "", o->listen ? o->listen : "");
		r = loop_run(&a, e);
	}
	if (!r)
		r = finish(&a, e);
	agent_done(&a);
	return r;
}
