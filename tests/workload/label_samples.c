/* label_samples.c - samples the machine and prints how many samples each label set got: the part of
 * the agent between sampler and series, for the tests of src/workload.
 *
 *	label_samples SECONDS [+PATTERNS | -PATTERNS | opt-in | NAME=VALUE]...
 *
 * +exe=a*,comm=b is an include rule, -... an exclude rule. NAME: api or kubelet (a URL), token or
 * ca (a file), node, label or annotation (of pods, to be a label), cache (bytes). Begins when a
 * line "ready" has been printed; ends after SECONDS or when stdin ends. Prints "COUNT {labels}" for
 * each series, then "NAME COUNT" for each outcome, and for the statistics. Labels are asked for at
 * the end, when short-lived processes have gone.
 */
#include <poll.h>
#include <time.h>

#include "collect/recorder.h"
#include "base/clock.h"
#include "kernel/outcome.h"
#include "workload/workload.h"

enum { JUDGE_NS = 300000000 };

struct run {
	struct workloads *w;
	struct recorder *rec;
	struct workload_options options;
	struct workload_rule include[16], exclude[16];
	struct str_list pod_labels, pod_annotations;
};

static int on_cgroup(void *ctx, const struct wk_cgroup_event *e)
{
	return workloads_cgroup(((struct run *)ctx)->w, e);
}

static int on_skip_cgroup(void *ctx, uint64_t id, bool skip)
{
	return sampler_skip_cgroup(((struct run *)ctx)->rec->sampler, id, skip);
}

static int on_skip_process(void *ctx, const struct wk_process_key *key, bool skip)
{
	return sampler_skip_process(((struct run *)ctx)->rec->sampler, key, skip);
}

static int parse_rule(char *text, struct workload_rule *rule)
{
	char *save = NULL;

	for (char *s = strtok_r(text, ",", &save); s; s = strtok_r(NULL, ",", &save)) {
		const struct {
			const char *name, **value;
		} patterns[] = {
			{ "container", &rule->container },
			{ "pod", &rule->pod },
			{ "namespace", &rule->namespace },
			{ "unit", &rule->unit },
			{ "exe", &rule->exe },
			{ "comm", &rule->comm },
			{ "uid", &rule->uid },
		};
		char *value = strchr(s, '=');
		size_t i = 0;

		if (!value)
			return -EINVAL;
		*value++ = '\0';
		while (i < ARRAY_SIZE(patterns) && strcmp(patterns[i].name, s))
			i++;
		if (i == ARRAY_SIZE(patterns))
			return -EINVAL;
		*patterns[i].value = value;
	}
	return 0;
}

static int parse_setting(struct run *run, const char *text)
{
	struct workload_options *o = &run->options;
	const char *value = strchr(text, '=');
	const size_t len = value ? (size_t)(value++ - text) : 0;
	const struct {
		const char *name, **where;
	} texts[] = {
		{ "api", &o->api_url }, { "kubelet", &o->kubelet_url }, { "token", &o->token_file },
		{ "ca", &o->ca_file },	{ "node", &o->node_name },
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (len != strlen(texts[i].name) || strncmp(text, texts[i].name, len))
			continue;
		*texts[i].where = value;
		if (i < 2)
			o->kubernetes = i ? KUBE_KUBELET : KUBE_API;
		return 0;
	}
	if (!strncmp(text, "label=", 6))
		return str_list_add(&run->pod_labels, value);
	if (!strncmp(text, "annotation=", 11))
		return str_list_add(&run->pod_annotations, value);
	if (strncmp(text, "cache=", 6))
		return -EINVAL;
	o->cache_bytes = strtoull(value, NULL, 10);
	return 0;
}

static int parse(struct run *run, int argc, char **argv)
{
	struct workload_rules *r = &run->options.rules;
	int bad = 0;

	r->include = run->include;
	r->exclude = run->exclude;
	for (int i = 2; i < argc && i < 18 && !bad; i++) {
		if (argv[i][0] == '+')
			bad = parse_rule(argv[i] + 1, &run->include[r->ninclude++]);
		else if (argv[i][0] == '-')
			bad = parse_rule(argv[i] + 1, &run->exclude[r->nexclude++]);
		else if (!strcmp(argv[i], "opt-in"))
			r->opt_in = true;
		else
			bad = parse_setting(run, argv[i]);
	}
	run->options.pod_labels = &run->pod_labels;
	run->options.pod_annotations = &run->pod_annotations;
	return bad;
}

static const char *exe_path(const struct run *run, uint32_t id)
{
	const struct file *f = id ? files_get(run->rec->files, id) : NULL;

	return f ? f->path : NULL;
}

static struct workload_key key_of(const struct run *run, const struct samples_key *k)
{
	return (struct workload_key){
		.cgroup_id = k->cgroup_id,
		.start_time = k->start_time,
		.exec_id = k->exec_id,
		.pid = k->pid,
		.global_pid = k->global_pid,
		.uid = k->uid,
		.comm = k->comm,
		.exe_path = exe_path(run, k->exe),
		.kernel = k->exe == WK_EXE_KERNEL,
	};
}

/* The labels of an entry as text; "unwanted" for what the rules turn down. */
static void describe(struct run *run, const struct samples_key *k, struct buf *b)
{
	cleanup(labels_cleanup) struct labels l = LABELS_INIT;
	struct workload_key key = key_of(run, k);

	if (!workloads_wanted(run->w, &key))
		buf_str(b, "unwanted");
	else if (!workloads_labels(run->w, &key, &l))
		labels_text(&l, b);
	buf_char(b, '\0');
}

static void print_series(struct run *run)
{
	const struct samples *s = &run->rec->samples;
	struct strtab texts = STRTAB_INIT;
	uint64_t *counts = calloc(samples_entries(s) + 2, sizeof(*counts));
	uint32_t id;

	for (uint32_t i = 0; i < samples_entries(s); i++) {
		cleanup(buf_cleanup) struct buf b = BUF_INIT(1 << 20);

		describe(run, samples_key(s, i), &b);
		if (!strtab_puts(&texts, b.data, &id))
			counts[id] += s->values[i].count;
	}
	for (id = 1; id < strtab_count(&texts); id++)
		printf("%llu %s\n", (unsigned long long)counts[id], strtab_get(&texts, id));
	strtab_free(&texts);
	free(counts);
}

static void print_figures(struct run *run)
{
	struct workloads_stats st;

	for (unsigned int i = 0; i < WK_OUTCOME_MAX; i++)
		if (run->rec->counters[i])
			printf("%s %llu\n", outcome_label(i),
			       (unsigned long long)run->rec->counters[i]);
	workloads_stats(run->w, &st);
	printf("cgroups %zu\nprocesses %zu\nbytes %llu\nunknown_cgroups %llu\n", st.cgroups,
	       st.processes, (unsigned long long)st.bytes, (unsigned long long)st.cgroups_unknown);
	printf("skipped_cgroups %zu\nskipped_processes %zu\nskips_refused %llu\n",
	       st.cgroups_skipped, st.processes_skipped, (unsigned long long)st.skips_refused);
	printf("pods %zu\npods_refused %llu\n", st.pods, (unsigned long long)st.pods_refused);
	printf("kube_synced %d\nkube_lists %llu\nkube_watches %llu\n", st.kube.synced,
	       (unsigned long long)st.kube.lists, (unsigned long long)st.kube.watches);
	printf("kube_expired %llu\nkube_errors %llu\nkube_error %s\n",
	       (unsigned long long)st.kube.expired, (unsigned long long)st.kube.errors,
	       st.kube.error);
}

/* What the agent does once a window: verdicts on what was met, so that BPF learns of them. */
static void judge(struct run *run)
{
	workloads_refresh(run->w);
	for (uint32_t i = 0; i < samples_entries(&run->rec->samples); i++) {
		struct workload_key key = key_of(run, samples_key(&run->rec->samples, i));

		(void)workloads_wanted(run->w, &key);
	}
}

static int sample(struct run *run, double seconds, struct err *e)
{
	uint64_t end = clock_monotonic() + (uint64_t)(seconds * 1e9), judged = 0;
	bool ended = false;
	int r = recorder_start(run->rec, e);

	puts("ready");
	fflush(stdout);
	while (!r && !ended && clock_monotonic() < end) {
		r = recorder_wait(run->rec, STDIN_FILENO, end, &ended, e);
		if (!r && clock_monotonic() - judged > JUDGE_NS) {
			judge(run);
			judged = clock_monotonic();
		}
	}
	return r ? r : recorder_finish(run->rec, e);
}

int main(int argc, char **argv)
{
	struct run run = { 0 };
	struct sampler_options o = {
		.event = event_clock(),
		.freq = 199,
		.no_rows = true, /* stacks are of no interest */
		.announce_cgroups = true,
		.keep_exe = true,
		.skip = true,
	};
	struct err e = {
		"usage: label_samples SECONDS [+PATTERNS | -PATTERNS | opt-in | NAME=VALUE]..."
	};
	int r = argc > 1 ? parse(&run, argc, argv) : -EINVAL;

	run.options.skip_cgroup = on_skip_cgroup;
	run.options.skip_process = on_skip_process;
	run.options.ctx = &run;
	if (!r)
		r = workloads_new(&run.options, &run.w, &e);
	o.cgroup_controller = r ? NULL : workloads_controller(run.w);
	if (!r)
		r = recorder_new(&o, &(struct recorder_options){ 0 }, &run.rec, &e);
	if (!r) {
		run.rec->cgroup = on_cgroup;
		run.rec->tap_ctx = &run;
		run.rec->drain_ns = JUDGE_NS;
		r = workloads_start(run.w);
	}
	if (!r)
		r = sample(&run, atof(argv[1]), &e);
	if (!r) {
		print_series(&run);
		print_figures(&run);
	}
	workloads_free(run.w);
	recorder_free(run.rec);
	str_list_free(&run.pod_labels);
	str_list_free(&run.pod_annotations);
	if (r)
		fprintf(stderr, "label_samples: %s (%s)\n", e.msg, strerror(-r));
	return r ? 1 : 0;
}
