/* reload.c - what may change while the agent runs: labels, rules, sinks, budgets, frequency. */
#include "agent/state.h"

#include "base/clock.h"
#include "agent/log.h"

#define RELOAD_GRACE_NS 3000000000ULL	/* for the old sinks when there are new ones */

/* options.labels; a node's name is the workloads' to add. */
int reload_parse_labels(const struct agent_options *o, struct labels *ret)
{
	struct labels l = LABELS_INIT;

	for (size_t i = 0; i < o->labels.n; i++) {
		char *text cleanup(freep_cleanup) = strdup(o->labels.v[i]);
		char *equals = text ? strchr(text, '=') : NULL;
		int r = text ? 0 : -ENOMEM;

		if (equals) {
			*equals = 0;
			r = labels_set(&l, text, equals + 1);
		}
		if (r) {
			labels_free(&l);
			return r;
		}
	}
	*ret = l;
	return 0;
}

/* ---- where it goes ---- */

static struct sink_options sink_options_of(const struct agent_sink *s)
{
	return (struct sink_options){
		.url = s->url,
		.tenant = s->tenant,
		.user = s->user,
		.password_file = s->password_file,
		.bearer_file = s->bearer_token_file,
		.headers = { s->headers.v, s->headers.n },
		.ca_file = s->ca_file,
		.cert_file = s->cert_file,
		.key_file = s->key_file,
		.insecure = s->insecure,
		.timeout_ns = s->timeout_ns,
	};
}

int reload_make_delivery(const struct agent_options *o, struct delivery **ret, struct err *e)
{
	cleanup(freep_cleanup) struct sink_options *sinks = calloc(o->push.n + 1, sizeof(*sinks));
	struct delivery_options d = {
		.sinks = sinks,
		.nsinks = o->push.n,
		.spool_dir = o->spool_dir,
		.spool_bytes = o->spool_bytes,
		.spool_age_ns = o->spool_age_ns,
		.queue_bytes = o->queue_bytes,
		.concurrency = o->push_concurrency,
	};

	if (!sinks)
		return err_set(e, -ENOMEM, "out of memory");
	for (size_t i = 0; i < o->push.n; i++)
		sinks[i] = sink_options_of(&o->push.v[i]);
	*ret = NULL;
	return o->push.n ? delivery_new(&d, ret, e) : 0;
}

/* Other sinks: the old ones get what they have, as at the end; the spool keeps the rest. A failure leaves
 * things as they were. */
static int change_delivery(struct agent *a, const struct agent_options *o, struct err *e)
{
	struct delivery *old, *fresh;
	int r;

	pthread_rwlock_wrlock(&a->delivery_lock);
	old = take(a->delivery);
	pthread_rwlock_unlock(&a->delivery_lock);
	if (old)	/* the spool has one owner at a time */
		delivery_finish(old, clock_monotonic() + RELOAD_GRACE_NS);
	delivery_free(old);
	r = reload_make_delivery(o, &fresh, e);
	if (r && !reload_make_delivery(a->o, &fresh, NULL))
		log_warning("going on with the sinks that were");
	else if (r)
		return r;
	free(take(a->seen));
	a->seen_n = 0;
	pthread_rwlock_wrlock(&a->delivery_lock);
	a->delivery = fresh;
	pthread_rwlock_unlock(&a->delivery_lock);
	return r;
}

/* ---- configuration, again ---- */

static struct workload_rule *rules_of(const struct agent_rules *rules)
{
	struct workload_rule *ret = calloc(rules->n + 1, sizeof(*ret));

	for (size_t i = 0; ret && i < rules->n; i++) {
		const struct agent_rule *r = &rules->v[i];

		ret[i] = (struct workload_rule){
			.container = r->container,
			.pod = r->pod,
			.namespace = r->namespace,
			.unit = r->unit,
			.exe = r->exe,
			.comm = r->comm,
			.uid = r->uid,
		};
	}
	return ret;
}

int reload_rules(struct agent *a, const struct agent_options *o)
{
	struct workload_rule *include = rules_of(&o->include), *exclude = rules_of(&o->exclude);
	struct workload_rules rules = { include, exclude, o->include.n, o->exclude.n, o->opt_in };
	int r = include && exclude ? workloads_set_rules(a->workloads, &rules) : -ENOMEM;

	free(include);
	free(exclude);
	return r;
}

static bool same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static bool sink_differs(const struct agent_sink *a, const struct agent_sink *b)
{
	if (!same(a->url, b->url) || !same(a->tenant, b->tenant) || !same(a->user, b->user) ||
	    !same(a->password_file, b->password_file) ||
	    !same(a->bearer_token_file, b->bearer_token_file) || !same(a->ca_file, b->ca_file) ||
	    !same(a->cert_file, b->cert_file) || !same(a->key_file, b->key_file) ||
	    a->insecure != b->insecure || a->timeout_ns != b->timeout_ns ||
	    a->headers.n != b->headers.n)
		return true;
	for (size_t i = 0; i < a->headers.n; i++)
		if (!same(a->headers.v[i], b->headers.v[i]))
			return true;
	return false;
}

static bool sinks_differ(const struct agent_sinks *a, const struct agent_sinks *b)
{
	if (a->n != b->n)
		return true;
	for (size_t i = 0; i < a->n; i++)
		if (sink_differs(&a->v[i], &b->v[i]))
			return true;
	return false;
}

static int apply(struct agent *a, const struct agent_options *o, struct err *e)
{
	struct labels extra = LABELS_INIT;
	struct budget_limits limits = loop_limits(o);
	int r = reload_parse_labels(o, &extra);

	if (!r)
		r = reload_rules(a, o);
	if (r) {
		labels_free(&extra);
		return err_set(e, r, "can't take the new configuration over: %s", strerror(-r));
	}
	pthread_mutex_lock(&a->lock);
	labels_free(&a->extra);
	a->extra = extra;
	pthread_mutex_unlock(&a->lock);
	log_level((enum agent_log_level)o->log_level);
	budget_change(&a->budget, &limits);
	r = sinks_differ(&a->o->push, &o->push) ? change_delivery(a, o, e) : 0;
	if (!r)
		a->o = o;
	return r ? r : loop_set_frequency(a, e);
}

void reload(struct agent *a)
{
	const struct agent_options *o;
	const char *ignored = "";
	struct err e = { "" };
	int r = a->reread ? a->reread->read(a->reread->ctx, &o, &ignored, &e) : -ENOTSUP;

	if (!r)
		r = apply(a, o, &e);
	pthread_mutex_lock(&a->lock);
	a->figures.reloads += !r;
	a->figures.reload_failures += r != 0;
	pthread_mutex_unlock(&a->lock);
	if (r)
		log_error("the configuration stays as it was: %s", e.msg);
	else
		log_info("configuration read again%s%s", *ignored ? "; these need a restart: " : "",
			 ignored);
}

