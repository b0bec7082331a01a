/* summary.c - see summary.h. */
#include "cli/summary.h"

#include "base/clock.h"
#include "kernel/outcome.h"
#include "proc/offload.h"
#include "symbol/foreign.h"

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 100.0;
}

static void print_reasons(FILE *out, const struct recorder *rec, unsigned int first,
			  unsigned int last, const char *before)
{
	for (unsigned int i = first; i <= last; i++)
		if (rec->counters[i]) {
			fprintf(out, "%s%llu %s", before, (unsigned long long)rec->counters[i],
				outcome_text(i));
			before = ", ";
		}
}

static void print_ticks(FILE *out, const struct recorder *rec)
{
	const uint64_t *c = rec->counters;
	uint64_t lost = recorder_lost(rec);

	fprintf(out, "wick: ticks %llu = samples %llu + idle %llu + unselected %llu + lost %llu",
		(unsigned long long)c[WK_TICKS], (unsigned long long)c[WK_RECORDED],
		(unsigned long long)c[WK_IDLE], (unsigned long long)c[WK_UNSELECTED],
		(unsigned long long)lost);
	if (lost) {
		print_reasons(out, rec, WK_LOST_FIRST, WK_LOST_LAST, " (");
		fputc(')', out);
	}
	fputc('\n', out);
}

static void print_stacks(FILE *out, const struct recorder *rec, const struct build_stats *stats)
{
	const struct samples *s = &rec->samples;

	fprintf(out, "wick: %.1f %% of user stacks reach their root", percent(s->rooted, s->with_user));
	if (s->rooted < s->with_user) {
		print_reasons(out, rec, WK_USER_ROOT + 1, WK_USER_LAST, " (");
		fputc(')', out);
	}
	fprintf(out, ", %.1f %% of frames have a name\n", percent(stats->named, stats->frames));
	if (rec->counters[WK_CUT])
		fprintf(out, "wick: %llu stacks deeper than %d frames: the middle is left out\n",
			(unsigned long long)rec->counters[WK_CUT], WK_USER_FRAMES);
}

/* What would give a module its names. */
static const char *hint(const struct module *m)
{
	if (m->kind == MODULE_ANON)
		return "code made at run time that its runtime doesn't list: node --perf-basic-prof, "
		       "java with jcmd PID Compiler.perfmap, python -X perf";
	if (m->kind == MODULE_KERNEL)
		return "kernel.kptr_restrict hides names: sysctl kernel.kptr_restrict=1, or CAP_SYSLOG";
	if (m->error == -EMFILE)
		return "too many files: raise the limit of open files";
	if (m->error == -ETIMEDOUT)
		return "who serves its file system didn't answer in time";
	if (m->error == -EBUSY)
		return "who serves its file system, or one like it, didn't answer before";
	if (m->error == -EFBIG)
		return "its file system is one of those of which files are copied, and it is over half of --copy-bytes";
	if (m->error == -ENOTSUP)
		return "not a 64-bit little-endian ELF file for this architecture";
	if (m->error)
		return "could not be read";
	if (!m->has_symbols)
		return "stripped: its debug package, --debuginfod, or a build without stripping has the names";
	return "no symbol covers the code";
}

static void print_unnamed(FILE *out, const struct symbolizer *sym, const struct build_stats *stats,
			  uint64_t samples)
{
	for (size_t i = 0; i < ARRAY_SIZE(stats->worst); i++) {
		const struct build_module *w = &stats->worst[i];
		const struct module *m;

		if (!w->unnamed || percent(w->unnamed, samples) < 0.5)
			continue;
		m = symbolizer_module(sym, w->module);
		fprintf(out, "wick: without symbols: %.1f %% of samples in %s (%s%s%s)\n",
			percent(w->unnamed, samples), m->path, hint(m),
			m->build_id[0] ? "; build id " : "", m->build_id);
	}
}

static void print_code_limits(FILE *out, const struct recorder *rec)
{
	struct processes_stats st;

	processes_stats(rec->processes, &st);
	if (st.refused_code)
		fprintf(out, "wick: lists of generated code over --jit-bytes: %llu functions left out\n",
			(unsigned long long)st.refused_code);
	if (st.refused_rows)
		fprintf(out, "wick: %llu functions of code without frame pointers are over --jit-bytes or too "
			     "far apart: callers may be missing there\n", (unsigned long long)st.refused_rows);
	if (st.refused_processes)
		fprintf(out, "wick: more processes with generated code than --jit-processes: %llu frames "
			     "stayed addresses\n", (unsigned long long)st.refused_processes);
}

/* The files whose debug information was left aside, the three that cost most answers. */
static void print_lines(FILE *out, const struct symbolizer *sym)
{
	struct lines_stats all = symbolizer_lines_stats(sym);

	if (all.evicted)
		fprintf(out, "wick: debug information over --lines-bytes: %llu evictions\n",
			(unsigned long long)all.evicted);
	for (size_t n = 0; n < 3; n++) {
		static const struct lines_state none;
		struct lines_state worst = none;
		uint64_t before = n ? all.refused : UINT64_MAX;
		uint32_t module = 0;

		for (uint32_t i = 0; i < symbolizer_module_count(sym); i++) {
			struct lines_state st = symbolizer_lines_state(sym, i);

			if (st.refused > worst.refused && st.refused < before) {
				worst = st;
				module = i;
			}
		}
		if (!worst.refused)
			return;
		all.refused = worst.refused;
		fprintf(out, "wick: without lines: %llu addresses in %s (%s)\n",
			(unsigned long long)worst.refused, symbolizer_module(sym, module)->path,
			worst.hint ? worst.hint : "its debug information can't be read");
	}
}

/* Looks that somebody else's file system has held up. */
static void print_served(FILE *out)
{
	static const char *const what[] = {
		[OFFLOAD_OURS] = "files of processes", [OFFLOAD_FOREIGN] = "files of processes in user namespaces",
		[OFFLOAD_COPY] = "reads of files that somebody serves",
	};
	struct foreign_stats copies;
	struct offload_stats s;

	for (unsigned int i = 0; i < OFFLOAD_KINDS; i++) {
		offload_stats((enum offload_kind)i, &s);
		if (s.timeouts || s.refused)
			fprintf(out, "wick: %s: %llu not answered in time, %llu not tried after that\n", what[i],
				(unsigned long long)s.timeouts, (unsigned long long)s.refused);
	}
	foreign_stats(&copies);
	if (copies.paused)
		fprintf(out, "wick: %llu reads not tried of file systems that hadn't answered before\n",
			(unsigned long long)copies.paused);
	if (copies.too_large || copies.dropped)
		fprintf(out, "wick: copies of files over --copy-bytes: %llu not made, %llu dropped for others\n",
			(unsigned long long)copies.too_large, (unsigned long long)copies.dropped);
}

static void print_limits(FILE *out, const struct recorder *rec)
{
	const struct unwinder_stats *u = unwinder_stats(rec->unwinder);
	const uint64_t *c = rec->counters;

	if (c[WK_NOTE_CAPTURE_FULL] || u->hurried)
		fprintf(out, "wick: %llu stacks were walked before their unwind tables were there\n",
			(unsigned long long)(c[WK_NOTE_CAPTURE_FULL] + u->hurried));
	if (u->evicted)
		fprintf(out, "wick: unwind tables over --unwind-bytes: %llu evictions\n",
			(unsigned long long)u->evicted);
	if (u->failed)
		fprintf(out, "wick: %llu files whose unwind tables could not be made: frame pointers "
			     "there\n", (unsigned long long)u->failed);

	if (u->generated_refused)
		fprintf(out, "wick: %llu unwind tables of generated code over --unwind-bytes or --max-files: "
			     "callers may be missing there\n", (unsigned long long)u->generated_refused);
	if (c[WK_NOTE_FILES_FULL])
		fprintf(out, "wick: more files than --max-files: %llu look-ups stayed addresses\n",
			(unsigned long long)c[WK_NOTE_FILES_FULL]);
	if (c[WK_NOTE_TARGETS_FULL])
		fprintf(out, "wick: more selected processes than 32,768 at a time: %llu forks were not "
			     "followed\n", (unsigned long long)c[WK_NOTE_TARGETS_FULL]);
	if (c[WK_NOTE_RING_FULL])
		fprintf(out, "wick: event ring full %llu times: some files were announced late\n",
			(unsigned long long)c[WK_NOTE_RING_FULL]);
	if (files_unopened(rec->files))
		fprintf(out, "wick: %u of %u files could not be opened before their processes ended\n",
			files_unopened(rec->files), files_count(rec->files));
	print_code_limits(out, rec);
	print_served(out);
}

static void print_symbols(FILE *out, const struct symbolizer *sym)
{
	struct symbolizer_stats s = symbolizer_stats(sym);

	for (uint32_t i = 0; s.limited && i < symbolizer_module_count(sym); i++) {
		const struct module *m = symbolizer_module(sym, i);

		if (m->limited)
			fprintf(out, "wick: not all symbols of %s: %s\n", m->path,
				m->limited == -ETIME ? "reading them takes too long" :
						       "it has too many");
	}
	if (s.reloads)
		fprintf(out, "wick: symbol tables over --symbol-bytes: %llu were read again\n",
			(unsigned long long)s.reloads);
}

void summary_print(FILE *out, const struct recorder *rec, const struct symbolizer *sym,
		   const struct build_stats *stats)
{
	fprintf(out, "wick: recorded %.1f s on %u CPUs", (double)rec->duration_nanos / 1e9, rec->cpus);
	/* not a loss of ours: nobody ticked. Virtual CPUs that idle are often left asleep. */
	if (rec->ticks_due > rec->counters[WK_TICKS])
		fprintf(out, ", %.1f %% of the ticks that were due",
			percent(rec->counters[WK_TICKS], rec->ticks_due));
	fputc('\n', out);
	print_ticks(out, rec);
	if (rec->samples.count)
		print_stacks(out, rec, stats);
	else
		fprintf(out, "wick: no samples: nothing that was selected ran on a CPU meanwhile\n");
	print_unnamed(out, sym, stats, rec->samples.count);
	print_lines(out, sym);
	print_limits(out, rec);
	print_symbols(out, sym);
}

void summary_servers(FILE *out, struct debuginfod *servers)
{
	static const char *const texts[] = {
		[DEBUGINFOD_FETCHED] = "fetched",
		[DEBUGINFOD_CACHED] = "fetched before",
		[DEBUGINFOD_NOT_FOUND] = "not found",
		[DEBUGINFOD_FAILED] = "failed",
		[DEBUGINFOD_TIMED_OUT] = "over --debuginfod-time",
		[DEBUGINFOD_TOO_LARGE] = "over --debuginfod-bytes",
		[DEBUGINFOD_WRONG] = "not the file of that build id",
		[DEBUGINFOD_QUEUE_FULL] = "over --debuginfod-queue",
	};
	struct debuginfod_stats s = debuginfod_stats(servers);
	const char *before = "wick: debug files from DEBUGINFOD_URLS: ";

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (!s.results[i])
			continue;
		fprintf(out, "%s%llu %s", before, (unsigned long long)s.results[i], texts[i]);
		if (i == DEBUGINFOD_FAILED && s.error[0])
			fprintf(out, " (%s)", s.error);
		before = ", ";
	}
	if (s.waiting) {
		fprintf(out, "%s%u not here after --debuginfod-wait", before, s.waiting);
		before = ", ";
	}
	if (before[0] == ',')
		fputc('\n', out);
}

/* "\r", text, erase to the end of the line (ECMA-48 EL). */
void summary_progress(FILE *out, const struct recorder *rec)
{
	fprintf(out, "\rrecording: %.0f s, %llu samples, %llu lost\033[K",
		(double)(clock_monotonic() - rec->started) / 1e9,
		(unsigned long long)rec->counters[WK_RECORDED],
		(unsigned long long)recorder_lost(rec));
	fflush(out);
}

void summary_naming(FILE *out, uint32_t done, uint32_t total)
{
	fprintf(out, "\rnaming: %u of %u stacks\033[K", done, total);
	fflush(out);
}

void summary_fetching(FILE *out, uint32_t waiting)
{
	fprintf(out, "\rwaiting for %u debug files; Ctrl-C: go on without\033[K", waiting);
	fflush(out);
}

void summary_progress_end(FILE *out)
{
	fputs("\r\033[K", out);
	fflush(out);
}
