/* serve.c - what the HTTP side asks of the agent: profiles on demand, readiness. */
#include "agent/state.h"

#include <time.h>

#include "agent/probe.h"
#include "collect/setup.h"
#include "profile/pprof.h"

enum {
	READY_WINDOWS = 3,	/* without data, or without a delivery, before it isn't ready any more */
	ID_MIN = 12,		/* of a container's id, as its engine shows it */
};

/* ---- profiles ---- */

struct selection {
	struct agent *a;
	const struct files *files;	/* that an entry's exe is of */
	const struct profile_request *q;
};

static bool fits(const struct labels *l, const char *name, const char *wanted)
{
	const char *value = labels_get(l, name);

	return !*wanted || (value && !strcmp(value, wanted));
}

/* A container by name, or by its id or the beginning of it. */
static bool container_fits(const struct labels *l, const char *wanted)
{
	const char *id = labels_get(l, "container_id");

	if (fits(l, "container", wanted))
		return true;
	return id && strlen(wanted) >= ID_MIN && !strncmp(id, wanted, strlen(wanted));
}

static bool unit_fits(const struct labels *l, const char *wanted)
{
	return fits(l, "unit", wanted) || fits(l, "user_unit", wanted);
}

/* A path, or its last part. */
static bool exe_fits(const char *path, const char *wanted)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return !*wanted || (path && (!strcmp(path, wanted) || (slash && !strcmp(slash + 1, wanted))));
}

static bool wanted(void *ctx, const struct samples_key *k)
{
	const struct selection *s = ctx;
	const struct profile_request *q = s->q;
	cleanup(labels_cleanup) struct labels l = LABELS_INIT;
	const struct file *exe;

	if ((q->pid && q->pid != k->pid) || (*q->comm && strcmp(q->comm, k->comm)))
		return false;
	exe = k->exe ? files_get(s->files, k->exe) : NULL;
	if (!exe_fits(exe ? exe->path : NULL, q->exe) || agent_labels(s->a, s->files, k, &l))
		return false;
	return container_fits(&l, q->container) && fits(&l, "pod", q->pod) &&
	       fits(&l, "namespace", q->namespace) && unit_fits(&l, q->unit);
}

/* By the agent's own event: cut out of its stream. */
static int from_session(struct agent *a, const struct profile_request *q, struct profile **ret,
			struct err *e)
{
	struct selection s = { a, a->rec->files, q };
	struct session *mine;
	int r = sessions_begin(a->sessions, q->hz, q->duration_ns, &mine);

	if (r)
		return err_set(e, r, "the agent is ending");
	r = sessions_wait(a->sessions, mine, httpd_gone, q->caller);
	if (!r) {
		struct builder_request b = {
			.samples = &mine->samples,
			.wanted = wanted,
			.ctx = &s,
			.event = a->event,
			.time_nanos = mine->time_nanos,
			.duration_nanos = (int64_t)(mine->end - mine->start),
			.freq = mine->sampled_freq,
		};

		r = builder_profile(a->builder, &b, ret);
	}
	sessions_end(a->sessions, mine);
	return r ? err_set(e, r, "can't make the profile: %s", strerror(-r)) : 0;
}

static bool wanted_of_probe(void *ctx, const struct files *files, const struct samples_key *k)
{
	struct selection *s = ctx;

	s->files = files;
	return wanted(s, k);
}

/* By another event: a sampler of its own. */
static int from_probe(struct agent *a, const struct profile_request *q, const struct event *event,
		      struct profile **ret, struct err *e)
{
	struct selection s = { .a = a, .q = q };
	struct probe_options o = {
		.sampler = a->sampler_options,
		.rows_bytes = a->first->unwind_bytes,
		.copied_bytes = a->first->copied_bytes,
		.symbols = { .demangle = (enum demangle_mode)a->first->demangle },
		.duration_ns = q->duration_ns,
		.gone = httpd_gone,
		.gone_ctx = q->caller,
		.wanted = wanted_of_probe,
		.wanted_ctx = &s,
	};

	struct kallsyms *kallsyms = NULL;	/* the builder may exchange its own meanwhile */
	int r;

	if (setup_kallsyms(&kallsyms))
		kallsyms = NULL;
	o.symbols.kallsyms = kallsyms;
	o.sampler.event = event;
	o.sampler.freq = q->hz ? q->hz : PROBE_FREQ;
	r = probe_run(&o, ret, e);
	kallsyms_free(kallsyms);
	return r;
}

static int serve_profile(void *ctx, const struct profile_request *q, struct buf *ret, struct err *e)
{
	struct agent *a = ctx;
	struct profile *p cleanup(profile_cleanup) = NULL;
	const struct event *event = *q->event ? event_by_name(q->event) : a->event;
	char names[512];
	int r;

	if (!event) {
		event_names(names, sizeof(names));
		return err_set(e, -EINVAL, "event: '%.60s' is none of %s", q->event, names);
	}
	r = event == a->event ? from_session(a, q, &p, e) : from_probe(a, q, event, &p, e);
	if (r)
		return r;
	r = pprof_write(p, true, ret);
	return r ? err_set(e, r, "can't encode the profile: %s", strerror(-r)) : 0;
}

/* ---- readiness ---- */

static double seconds_since(int64_t then)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (double)((int64_t)t.tv_sec * 1000000000 + t.tv_nsec - then) / 1e9;
}

static bool windows_flow(struct agent *a, double limit, struct buf *why)
{
	struct builder_stats st = builder_stats(a->builder);
	struct agent_figures f = agent_figures(a);
	double age = seconds_since(st.last_end ? st.last_end : f.started);

	if (!st.last_end)
		buf_printf(why, "the first window isn't over yet\n");
	else if (age > limit)
		buf_printf(why, "the last window that was built ended %.0f s ago\n", age);
	return st.last_end && age <= limit;
}

static bool sinks_take(struct agent *a, double limit, struct buf *why)
{
	bool yes = true;

	pthread_rwlock_rdlock(&a->delivery_lock);
	for (size_t i = 0; a->delivery && i < delivery_sinks(a->delivery); i++) {
		struct sink_stats st;
		double age;

		delivery_stats(a->delivery, i, &st);
		age = seconds_since(st.last_ok);
		if (st.last_ok)
			buf_printf(why, "%s: last delivery %.0f s ago\n", st.name, age);
		else
			buf_printf(why, "%s: nothing delivered yet\n", st.name);
		/* nothing to deliver is no failure */
		if ((!st.last_ok || age > limit) && *st.last_error && (st.queued || st.spooled)) {
			buf_printf(why, "%s: %s\n", st.name, st.last_error);
			yes = false;
		}
	}
	pthread_rwlock_unlock(&a->delivery_lock);
	return yes;
}

static bool serve_ready(void *ctx, struct buf *why)
{
	struct agent *a = ctx;
	double limit = READY_WINDOWS * (double)a->window_ns / 1e9;
	bool windows = windows_flow(a, limit, why), sinks = sinks_take(a, limit, why);

	if (windows && sinks)
		buf_printf(why, "ready\n");
	return windows && sinks;
}

static void serve_metrics(void *ctx, struct buf *ret)
{
	metrics_write(ctx, ret);
}

struct httpd_handler serve_handler(struct agent *a)
{
	return (struct httpd_handler){
		.ctx = a,
		.metrics = serve_metrics,
		.ready = serve_ready,
		.profile = serve_profile,
	};
}
