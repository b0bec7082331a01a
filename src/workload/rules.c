/* rules.c - see rules.h. */
#include "workload/rules.h"

#include <fnmatch.h>

enum fit { NO, MAYBE, YES }; /* in order: MIN is "and", MAX is "or" */

static bool glob(const char *pattern, const char *value)
{
	if (!value || !value[0])
		return !pattern[0];
	return !fnmatch(pattern, value, 0);
}

static enum fit fits(const char *pattern, const char *value, bool unknown)
{
	if (!pattern)
		return YES;
	return unknown ? MAYBE : glob(pattern, value) ? YES : NO;
}

/* Either of two values will do. */
static enum fit fits_either(const char *pattern, const char *a, const char *b, bool unknown)
{
	return MAX(fits(pattern, a, unknown), b && b[0] ? fits(pattern, b, unknown) : NO);
}

static enum fit fits_exe(const char *pattern, const char *exe, bool unknown)
{
	const char *base = exe && pattern && !strchr(pattern, '/') ? strrchr(exe, '/') : NULL;

	return fits(pattern, base ? base + 1 : exe, unknown);
}

static enum fit rule_fits(const struct workload_rule *r, const struct rule_subject *s)
{
	bool no_pod = s->unknown & RULE_POD, no_process = s->unknown & RULE_PROCESS;
	enum fit f =
	    fits_either(r->container, s->container, s->container_id, s->unknown & RULE_CONTAINER);

	f = MIN(f, fits(r->pod, s->pod, no_pod));
	f = MIN(f, fits(r->namespace, s->namespace, no_pod));
	f = MIN(f, fits_either(r->unit, s->unit, s->user_unit, false));
	f = MIN(f, fits_exe(r->exe, s->exe, no_process));
	f = MIN(f, fits(r->comm, s->comm, no_process));
	return MIN(f, fits(r->uid, s->uid, no_process));
}

static enum fit any_fits(const struct workload_rule *v, size_t n, const struct rule_subject *s)
{
	enum fit best = NO;

	for (size_t i = 0; i < n && best != YES; i++)
		best = MAX(best, rule_fits(&v[i], s));
	return best;
}

enum verdict rules_decide(const struct workload_rules *r, const struct rule_subject *s)
{
	bool no_pod = s->unknown & RULE_POD;
	enum fit out = any_fits(r->exclude, r->nexclude, s), in = YES;

	if (out == YES || (!no_pod && s->asks < 0))
		return VERDICT_OUT;
	if (r->ninclude || r->opt_in)
		in = !no_pod && s->asks > 0 ? YES : any_fits(r->include, r->ninclude, s);
	if (no_pod) /* it may still ask for either */
		return VERDICT_DEPENDS;
	if (in == NO)
		return VERDICT_OUT;
	return in == MAYBE || out == MAYBE ? VERDICT_DEPENDS : VERDICT_IN;
}
