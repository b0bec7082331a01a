/* rules.h - which workloads are profiled: include and exclude rules, opt-in, what a pod asks for.
 *
 * A rule fits what fits all of its patterns that aren't NULL: globs of fnmatch(3) without flags. A
 * value that isn't there (a host process has no pod) is fitted by no pattern but the empty one.
 *
 * Order: an exclude rule that fits: out. Else the pod's opt-out: out. Else, with include rules or
 * in opt-in mode: in if a rule fits or the pod asks for it, out otherwise. Else in.
 *
 * A field may be unknown at the time (a process isn't looked at yet, a pod hasn't been announced):
 * the verdict is then VERDICT_DEPENDS, unless it is the same whatever the field turns out to be.
 *
 * Borrows everything; pure. Cost: an fnmatch per pattern.
 */
#ifndef WICK_RULES_H
#define WICK_RULES_H

#include "base/base.h"

struct workload_rule {
	const char *container; /* name or full id */
	const char *pod, *namespace;
	const char *unit; /* system unit, or a user's own */
	const char *exe;  /* path; a pattern without "/": its last part */
	const char *comm; /* of the thread */
	const char *uid;  /* decimal */
};

struct workload_rules {
	const struct workload_rule *include, *exclude;
	size_t ninclude, nexclude;
	bool opt_in; /* nothing, but what is included or asks for it */
};

enum { /* subject.unknown */
       RULE_CONTAINER = 1,
       RULE_POD = 2,	 /* pod, namespace and asks */
       RULE_PROCESS = 4, /* exe, comm, uid */
};

struct rule_subject {
	const char *container, *container_id, *pod, *namespace, *unit, *user_unit, *exe, *comm,
	    *uid;
	int asks; /* by annotation: 1 to be profiled, -1 not to be, 0 nothing */
	unsigned int unknown;
};

enum verdict { VERDICT_IN, VERDICT_OUT, VERDICT_DEPENDS };

enum verdict rules_decide(const struct workload_rules *r, const struct rule_subject *s);

#endif
