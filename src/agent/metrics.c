/* metrics.c - the agent's figures in Prometheus' format. The words of outcomes and drops are those of
 * the accounting (wick_abi.h, delivery.h), so that a sum over them is a sum over everything. */
#include "agent/state.h"

#include <sys/resource.h>

#include "base/prom.h"
#include "kernel/outcome.h"
#include "proc/offload.h"
#include "symbol/foreign.h"

static void one(struct buf *b, const char *name, enum prom_type type, const char *help,
		uint64_t value)
{
	prom_metric(b, name, type, help);
	prom_count(b, name, value, NULL);
}

static void number(struct buf *b, const char *name, enum prom_type type, const char *help,
		   double value)
{
	prom_metric(b, name, type, help);
	prom_number(b, name, value, NULL);
}

/* ---- sampling ---- */

static void outcomes(struct buf *b, const struct agent_figures *f)
{
	one(b, "wick_ticks_total", PROM_COUNTER,
	    "Perf events that fired: samples + idle + unselected + lost.", f->counters[WK_TICKS]);
	one(b, "wick_ticks_due_total", PROM_COUNTER, "Time sampled x frequency, over all CPUs.",
	    f->ticks_due);
	one(b, "wick_samples_total", PROM_COUNTER, "Ticks that became a sample.",
	    f->counters[WK_RECORDED]);
	one(b, "wick_idle_ticks_total", PROM_COUNTER, "Ticks in the idle loop.",
	    f->counters[WK_IDLE]);
	one(b, "wick_unselected_ticks_total", PROM_COUNTER,
	    "Ticks in workloads that rules or annotations leave out.", f->counters[WK_UNSELECTED]);
	prom_metric(b, "wick_lost_ticks_total", PROM_COUNTER, "Ticks without a sample, by reason.");
	for (unsigned int i = WK_LOST_FIRST; i <= WK_LOST_LAST; i++)
		prom_count(b, "wick_lost_ticks_total", f->counters[i], "reason",
			   outcome_label(i), NULL);
	prom_metric(b, "wick_user_stacks_total", PROM_COUNTER,
		    "Samples by how the walk of the user stack ended.");
	for (unsigned int i = WK_USER_FIRST; i <= WK_USER_LAST; i++)
		prom_count(b, "wick_user_stacks_total", f->counters[i], "outcome",
			   outcome_label(i), NULL);
	prom_metric(b, "wick_notes_total", PROM_COUNTER, "Events beside ticks: limits that were hit.");
	for (unsigned int i = WK_CUT; i < WK_OUTCOME_MAX; i++)
		prom_count(b, "wick_notes_total", f->counters[i], "event", outcome_label(i), NULL);
}

static void sampling(struct buf *b, const struct agent_figures *f)
{
	one(b, "wick_frequency_hertz", PROM_GAUGE, "Samples per second and CPU now.", f->freq);
	one(b, "wick_cpus", PROM_GAUGE, "CPUs sampled.", f->cpus);
	one(b, "wick_windows_total", PROM_COUNTER, "Windows that have ended.", f->windows);
	one(b, "wick_window_samples_total", PROM_COUNTER, "Samples in these windows.", f->samples);
	one(b, "wick_map_bytes", PROM_GAUGE, "Kernel memory of BPF maps, unwind tables aside.",
	    f->map_bytes);
	one(b, "wick_unwind_table_bytes", PROM_GAUGE, "Kernel memory of unwind tables.",
	    f->rows_bytes);
	prom_metric(b, "wick_unwind_files_total", PROM_COUNTER, "Files compiled, by result.");
	prom_count(b, "wick_unwind_files_total", f->unwinder.compiled, "result", "rows", NULL);
	prom_count(b, "wick_unwind_files_total", f->unwinder.without, "result", "no_cfi", NULL);
	prom_count(b, "wick_unwind_files_total", f->unwinder.failed, "result", "failed", NULL);
	one(b, "wick_unwind_generated_refused_total", PROM_COUNTER,
	    "Unwind tables of code that processes make, over unwind-bytes or max-files.",
	    f->unwinder.generated_refused);
	one(b, "wick_unwind_evictions_total", PROM_COUNTER,
	    "Unwind tables taken away for others, over unwind-bytes.", f->unwinder.evicted);
	one(b, "wick_copied_stacks_total", PROM_COUNTER,
	    "Stacks that were copied and walked once their unwind tables were there.",
	    f->unwinder.captured);
	one(b, "wick_hurried_stacks_total", PROM_COUNTER,
	    "Copied stacks that were walked before their unwind tables were there: over copied-bytes, or at the end.",
	    f->unwinder.hurried);
	one(b, "wick_files", PROM_GAUGE, "Executable files known.", f->files);
	one(b, "wick_files_unopened", PROM_GAUGE, "Of these, files that could not be opened.",
	    f->files_unopened);
}

/* ---- names and labels ---- */

static void building(struct buf *b, struct agent *a, const struct agent_figures *f)
{
	struct builder_stats s = builder_stats(a->builder);

	one(b, "wick_built_windows_total", PROM_COUNTER, "Windows made into profiles.", s.windows);
	one(b, "wick_queued_windows", PROM_GAUGE, "Windows waiting for it.", s.queued);
	one(b, "wick_profiles_total", PROM_COUNTER, "Profiles made, one a series and window.",
	    s.series);
	one(b, "wick_built_samples_total", PROM_COUNTER, "Samples in profiles.", s.samples);
	prom_metric(b, "wick_unbuilt_samples_total", PROM_COUNTER,
		    "Samples of ended windows that are in no profile, by reason.");
	prom_count(b, "wick_unbuilt_samples_total", s.unwanted, "reason", "unselected", NULL);
	prom_count(b, "wick_unbuilt_samples_total", s.dropped, "reason", "behind", NULL);
	prom_count(b, "wick_unbuilt_samples_total", s.failed, "reason", "failed", NULL);
	one(b, "wick_other_samples_total", PROM_COUNTER,
	    "Samples in the series _other_, over max-series.", s.other);
	prom_metric(b, "wick_frames_total", PROM_COUNTER, "Frames of samples, by whether they have a name.");
	prom_count(b, "wick_frames_total", s.named, "named", "yes", NULL);
	prom_count(b, "wick_frames_total", s.frames - s.named, "named", "no", NULL);
	number(b, "wick_build_seconds_total", PROM_COUNTER, "Time spent making profiles.",
	       (double)s.build_ns / 1e9);
	number(b, "wick_last_window_timestamp_seconds", PROM_GAUGE, "End of the last window built.",
	       (double)s.last_end / 1e9);
	one(b, "wick_queued_samples_total", PROM_COUNTER,
	    "Samples of profiles that delivery has taken.", f->queued_samples);
	one(b, "wick_unqueued_samples_total", PROM_COUNTER,
	    "Samples of profiles that could not be queued for delivery.", f->delivery_failed);
	one(b, "wick_profile_requests", PROM_GAUGE, "Profiles being made on demand.",
	    sessions_count(a->sessions));
	one(b, "wick_profile_requests_cut_total", PROM_COUNTER,
	    "Profiles on demand that ended early, at the limit of different samples.",
	    sessions_cut(a->sessions));
	one(b, "wick_labels_left_out_total", PROM_COUNTER,
	    "Configured labels that a series had no room for, once each time it is asked for.",
	    f->labels_left_out);
}

static void symbols(struct buf *b, const struct symbolizer_stats *s)
{
	prom_metric(b, "wick_symbol_files", PROM_GAUGE,
		    "Files whose frames have been named, by where the names came from.");
	for (unsigned int i = 0; i < SYMBOLS_COUNT; i++)
		prom_count(b, "wick_symbol_files", s->by_source[i], "source", symbol_source_label((enum symbol_source)i), NULL);
	one(b, "wick_symbol_files_unreadable", PROM_GAUGE, "Files that can't be read as ELF.",
	    s->unreadable);
	prom_metric(b, "wick_symbol_bytes", PROM_GAUGE, "Memory of symbolization, by kind.");
	prom_count(b, "wick_symbol_bytes", s->symtabs_bytes, "kind", "symbols", NULL);
	prom_count(b, "wick_symbol_bytes", s->bounds_bytes, "kind", "bounds", NULL);
	prom_count(b, "wick_symbol_bytes", s->answers_bytes, "kind", "answers", NULL);
	one(b, "wick_symbol_loads_total", PROM_COUNTER, "Symbol tables read.", s->loads);
	one(b, "wick_symbol_reloads_total", PROM_COUNTER, "Of these, tables that had been dropped.",
	    s->reloads);
	one(b, "wick_symbol_drops_total", PROM_COUNTER, "Symbol tables dropped for the budget.",
	    s->tables_dropped);
}

/* Limits of what names are read from, beside symbol tables. */
static void name_limits(struct buf *b, struct agent *a, const struct symbolizer_stats *s,
			const struct lines_stats *lines)
{
	struct processes_stats p;

	processes_stats(a->rec->processes, &p);
	one(b, "wick_symbol_files_limited", PROM_GAUGE,
	    "Files whose symbols were given up, over a limit of time or size.", s->limited);
	one(b, "wick_lines_bytes", PROM_GAUGE, "Memory of debug information.", lines->bytes);
	one(b, "wick_lines_evictions_total", PROM_COUNTER, "Of it dropped, over lines-bytes.",
	    lines->evicted);
	one(b, "wick_lines_refused_total", PROM_COUNTER,
	    "Frames without lines because of a limit of time or memory.", lines->refused);
	one(b, "wick_jit_bytes", PROM_GAUGE, "Names and unwind rules of the code that runtimes list.", p.bytes);
	one(b, "wick_jit_processes", PROM_GAUGE, "Processes with generated code that are followed.",
	    p.processes);
	one(b, "wick_jit_functions_refused_total", PROM_COUNTER, "Listed functions over jit-bytes.",
	    p.refused_code);
	one(b, "wick_jit_processes_with_rows", PROM_GAUGE,
	    "Processes whose code keeps no frame pointers and has unwind rows instead.", p.with_rows);
	one(b, "wick_jit_functions_without_rows", PROM_GAUGE,
	    "Functions of these that are over jit-bytes or too far apart to have rows.", p.refused_rows);
	one(b, "wick_jit_frames_refused_total", PROM_COUNTER, "Frames of processes over jit-processes.",
	    p.refused_processes);
}

/* Files that others serve, and who holds up those who look. */
static void served(struct buf *b)
{
	static const struct {
		const char *name, *help;
		enum prom_type type;
	} m[] = {
		{ "wick_file_looks_total", "Looks at files that may wait for others, by kind.", PROM_COUNTER },
		{ "wick_file_timeouts_total", "Of these, not answered in time.", PROM_COUNTER },
		{ "wick_file_refused_total", "Looks not tried, as those before had not been answered.",
		  PROM_COUNTER },
		{ "wick_file_workers_stuck", "Workers left behind in such a look, now.", PROM_GAUGE },
	};
	struct foreign_stats c;

	for (size_t i = 0; i < ARRAY_SIZE(m); i++) {
		prom_metric(b, m[i].name, m[i].type, m[i].help);
		for (unsigned int k = 0; k < OFFLOAD_KINDS; k++) {
			struct offload_stats s;

			offload_stats((enum offload_kind)k, &s);
			prom_count(b, m[i].name,
				   (const uint64_t[]){ s.calls, s.timeouts, s.refused, s.stuck }[i], "kind",
				   offload_kind_label((enum offload_kind)k), NULL);
		}
	}
	foreign_stats(&c);
	one(b, "wick_copy_bytes", PROM_GAUGE, "Copies of files that somebody serves.", c.bytes);
	one(b, "wick_copied_bytes_total", PROM_COUNTER, "Bytes copied so far.", c.bytes_copied);
	one(b, "wick_copies_total", PROM_COUNTER, "Files copied, or copied on.", c.copies);
	one(b, "wick_copies_paused_total", PROM_COUNTER,
	    "Files not copied, as their file system had not answered before.", c.paused);
	one(b, "wick_copies_refused_total", PROM_COUNTER, "Files over half of copy-bytes.", c.too_large);
	one(b, "wick_copies_dropped_total", PROM_COUNTER, "Copies dropped for others, over copy-bytes.",
	    c.dropped);
}

static void servers(struct buf *b, struct agent *a, const struct symbolizer_stats *s)
{
	struct debuginfod_stats d;

	if (!a->servers)
		return;
	d = debuginfod_stats(a->servers);
	prom_metric(b, "wick_debuginfod_files_total", PROM_COUNTER,
		    "Debug files that servers were asked for, by what became of it.");
	for (unsigned int i = 0; i < DEBUGINFOD_COUNT; i++)
		prom_count(b, "wick_debuginfod_files_total", d.results[i], "result",
			   debuginfod_result_label((enum debuginfod_result)i), NULL);
	one(b, "wick_debuginfod_queue", PROM_GAUGE, "Debug files that are waited for.", d.waiting);
	one(b, "wick_debuginfod_bytes_total", PROM_COUNTER, "Bytes of fetched files.", d.bytes);
	one(b, "wick_debuginfod_cache_bytes", PROM_GAUGE,
	    "Of them on disk, after the last that was fetched.", d.cache_bytes);
	one(b, "wick_debuginfod_improved_files_total", PROM_COUNTER,
	    "Files named anew when their debug files had come.", s->improved);
}

static void workloads(struct buf *b, struct agent *a)
{
	struct workloads_stats s;

	workloads_stats(a->workloads, &s);
	one(b, "wick_cgroups", PROM_GAUGE, "Cgroups remembered.", s.cgroups);
	one(b, "wick_processes", PROM_GAUGE, "Processes remembered.", s.processes);
	one(b, "wick_workload_bytes", PROM_GAUGE, "Memory of cgroups, processes and pods.", s.bytes);
	one(b, "wick_workload_evictions_total", PROM_COUNTER, "Of them forgotten for the limit.",
	    s.evicted);
	one(b, "wick_cgroups_unknown_total", PROM_COUNTER, "Cgroups that nothing is known of.",
	    s.cgroups_unknown);
	prom_metric(b, "wick_skipped", PROM_GAUGE, "Left out in BPF now, by kind.");
	prom_count(b, "wick_skipped", s.cgroups_skipped, "kind", "cgroup", NULL);
	prom_count(b, "wick_skipped", s.processes_skipped, "kind", "process", NULL);
	one(b, "wick_skips_refused_total", PROM_COUNTER, "Verdicts that BPF had no room for.",
	    s.skips_refused);
	one(b, "wick_pods", PROM_GAUGE, "Pods remembered, deleted ones too.", s.pods);
	one(b, "wick_pods_refused_total", PROM_COUNTER, "Objects that are no pod.", s.pods_refused);
	one(b, "wick_kubernetes_synced", PROM_GAUGE, "Whether the pods of the node are known.",
	    s.kube.synced);
	prom_metric(b, "wick_kubernetes_requests_total", PROM_COUNTER,
		    "Requests for pods, by what they were or how they ended.");
	prom_count(b, "wick_kubernetes_requests_total", s.kube.lists, "kind", "list", NULL);
	prom_count(b, "wick_kubernetes_requests_total", s.kube.watches, "kind", "watch", NULL);
	prom_count(b, "wick_kubernetes_requests_total", s.kube.expired, "kind", "expired", NULL);
	prom_count(b, "wick_kubernetes_requests_total", s.kube.errors, "kind", "error", NULL);
}

/* ---- delivery ---- */

struct sink_metric {
	const char *name;
	enum prom_type type;
	const char *help;
	size_t offset;		/* of a uint64_t in struct sink_stats */
};

#define SINK(name, type, field, help) { name, type, help, offsetof(struct sink_stats, field) }
static const struct sink_metric sink_metrics[] = {
	SINK("wick_push_profiles_total", PROM_COUNTER, put, "Profiles for this sink."),
	SINK("wick_push_sent_total", PROM_COUNTER, sent, "Profiles that the server has taken."),
	SINK("wick_push_refused_total", PROM_COUNTER, refused, "Profiles that it will never take."),
	SINK("wick_push_bytes_total", PROM_COUNTER, sent_bytes, "Bytes of accepted requests."),
	SINK("wick_push_requests_total", PROM_COUNTER, requests, "Requests made."),
	SINK("wick_push_retries_total", PROM_COUNTER, retried, "Of these, repeated ones."),
	SINK("wick_push_in_flight", PROM_GAUGE, in_flight, "Requests now."),
	SINK("wick_queue_profiles", PROM_GAUGE, queued, "Profiles in memory."),
	SINK("wick_queue_bytes", PROM_GAUGE, queued_bytes, "Bytes of them."),
	SINK("wick_spool_profiles", PROM_GAUGE, spooled, "Profiles on disk."),
	SINK("wick_spool_bytes", PROM_GAUGE, spool_bytes, "Bytes of them."),
	SINK("wick_spool_found_total", PROM_COUNTER, spool_found, "Profiles on disk at the start."),
	SINK("wick_spool_errors_total", PROM_COUNTER, spool_errors, "Writes to disk that failed."),
};

static void sink_figures(struct buf *b, const struct sink_stats *s, size_t n)
{
	for (size_t m = 0; m < ARRAY_SIZE(sink_metrics); m++) {
		const struct sink_metric *k = &sink_metrics[m];

		prom_metric(b, k->name, k->type, k->help);
		for (size_t i = 0; i < n; i++)
			prom_count(b, k->name,
				   *(const uint64_t *)((const char *)&s[i] + k->offset), "sink",
				   s[i].name, NULL);
	}
	prom_metric(b, "wick_push_dropped_total", PROM_COUNTER,
		    "Profiles given up without the server's word, by reason.");
	for (size_t i = 0; i < n; i++)
		for (unsigned int d = 0; d < DELIVERY_DROPS; d++)
			prom_count(b, "wick_push_dropped_total", s[i].dropped[d], "sink", s[i].name,
				   "reason", delivery_drop_name((enum delivery_drop)d), NULL);
	prom_metric(b, "wick_push_last_success_timestamp_seconds", PROM_GAUGE,
		    "When the server last took something; 0: never.");
	for (size_t i = 0; i < n; i++)
		prom_number(b, "wick_push_last_success_timestamp_seconds",
			    (double)s[i].last_ok / 1e9, "sink", s[i].name, NULL);
	prom_metric(b, "wick_push_seconds", PROM_HISTOGRAM, "Time until a request was answered.");
	for (size_t i = 0; i < n; i++) {
		struct prom_histogram h = { delivery_bucket_seconds, s[i].latency,
					    DELIVERY_BUCKETS - 1, s[i].latency_seconds };

		prom_histogram(b, "wick_push_seconds", &h, "sink", s[i].name, NULL);
	}
}

static void delivery(struct buf *b, struct agent *a)
{
	struct sink_stats *s cleanup(freep_cleanup) = NULL;
	size_t n;

	pthread_rwlock_rdlock(&a->delivery_lock);	/* names are borrowed from it */
	n = a->delivery ? delivery_sinks(a->delivery) : 0;
	s = calloc(n + 1, sizeof(*s));
	for (size_t i = 0; s && i < n; i++)
		delivery_stats(a->delivery, i, &s[i]);
	if (s && n) {
		sink_figures(b, s, n);
		one(b, "wick_unsendable_samples_total", PROM_COUNTER,
		    "Samples too large for any server.", delivery_unsendable(a->delivery));
	}
	pthread_rwlock_unlock(&a->delivery_lock);
}

/* ---- itself ---- */

static void http(struct buf *b, struct agent *a)
{
	static const char *const classes[] = { "0xx", "1xx", "2xx", "3xx", "4xx", "5xx" };
	struct httpd_stats s = httpd_stats(a->httpd);

	prom_metric(b, "wick_http_replies_total", PROM_COUNTER, "Replies of this HTTP side, by class.");
	for (size_t i = 2; i < ARRAY_SIZE(classes); i++)
		prom_count(b, "wick_http_replies_total", s.replies[i], "class", classes[i], NULL);
	one(b, "wick_http_unauthorized_total", PROM_COUNTER, "Requests without the token.",
	    s.unauthorized);
	one(b, "wick_http_busy_total", PROM_COUNTER, "Profiles refused, over max-callers.", s.busy);
	one(b, "wick_http_cut_total", PROM_COUNTER, "Connections that were too slow.", s.cut);
	one(b, "wick_http_gone_total", PROM_COUNTER, "Callers that left before their profile.", s.gone);
	one(b, "wick_http_connections", PROM_GAUGE, "Connections now.", s.connections);
}

static void self(struct buf *b, const struct agent_figures *f)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	number(b, "process_cpu_seconds_total", PROM_COUNTER, "CPU time of the agent's own threads.",
	       (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
		       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6);
	one(b, "process_resident_memory_bytes", PROM_GAUGE, "Resident memory.",
	    agent_resident_bytes());
	number(b, "process_start_time_seconds", PROM_GAUGE, "When it started.",
	       (double)f->started / 1e9);
	number(b, "wick_window_cpu", PROM_GAUGE, "CPU time of the last window, in CPUs.",
	       f->use.wall_ns ? (double)f->use.cpu_ns / (double)f->use.wall_ns : 0);
	one(b, "wick_window_memory_bytes", PROM_GAUGE,
	    "What the memory budget is compared with: resident and BPF maps.", f->use.memory);
	prom_metric(b, "wick_budget_exceeded_total", PROM_COUNTER,
		    "Windows that cost more than the budget, by kind.");
	prom_count(b, "wick_budget_exceeded_total", f->budget.cpu_exceeded, "budget", "cpu", NULL);
	prom_count(b, "wick_budget_exceeded_total", f->budget.memory_exceeded, "budget", "memory",
		   NULL);
	number(b, "wick_budget_cpu", PROM_GAUGE, "CPU budget, in CPUs; 0: none.",
	       f->budget.limits.cpu);
	one(b, "wick_budget_memory_bytes", PROM_GAUGE, "Memory budget; 0: none.",
	    f->budget.limits.memory);
	one(b, "wick_budget_frequency_hertz", PROM_GAUGE, "What the budgets allow of the frequency.",
	    f->budget.freq);
	one(b, "wick_reloads_total", PROM_COUNTER, "Configurations taken over at SIGHUP.", f->reloads);
	one(b, "wick_reload_failures_total", PROM_COUNTER, "Configurations with a mistake.",
	    f->reload_failures);
	prom_metric(b, "wick_build_info", PROM_GAUGE, "The version, as a label.");
	prom_count(b, "wick_build_info", 1, "version", WICK_VERSION, NULL);
}

void metrics_write(struct agent *a, struct buf *b)
{
	struct agent_figures f = agent_figures(a);
	struct symbolizer_stats s;
	struct lines_stats lines;

	pthread_mutex_lock(&a->lock);
	s = a->symbols;
	lines = a->lines;
	pthread_mutex_unlock(&a->lock);
	outcomes(b, &f);
	sampling(b, &f);
	building(b, a, &f);
	symbols(b, &s);
	name_limits(b, a, &s, &lines);
	served(b);
	servers(b, a, &s);
	workloads(b, a);
	delivery(b, a);
	if (a->httpd)
		http(b, a);
	self(b, &f);
}
