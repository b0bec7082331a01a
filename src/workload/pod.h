/* pod.h - one Kubernetes pod, as far as it names workloads: read from the API's JSON.
 *
 *	r = pod_parse(object, &wishes, &pod);
 *	const char *name = pod_container(pod, "3f2a...");	// "api", or NULL
 *
 * The object is what the API server or kubelet sends for a v1 Pod, and is not trusted: what isn't
 * as the API defines it is left out, the rest is used; names become labels later and are made fit
 * then. Sizes are capped: POD_CONTAINERS_MAX container ids, POD_TEXT_MAX bytes a text.
 */
#ifndef WICK_POD_H
#define WICK_POD_H

#include <jansson.h>

#include "base/labels.h"
#include "base/list.h"

enum {
	POD_CONTAINERS_MAX = 256,	/* ids; of restarts the API keeps two each */
	POD_TEXT_MAX = LABEL_VALUE_MAX, /* NUL included; longer ones are cut */
	POD_UID_MAX = 64,		/* NUL included */
};

/* Names of pod labels and annotations that become series labels. Borrowed. */
struct pod_wishes {
	const struct str_list *labels, *annotations; /* NULL: none */
};

struct pod_container {
	char *name, *id; /* id without "containerd://" */
};

struct pod {
	char uid[POD_UID_MAX];	/* as in cgroups' paths: a static pod's is its manifest's hash */
	char *name, *namespace; /* never NULL */
	char *workload, *workload_kind; /* owner, "api" and "Deployment"; NULL: none */
	char *service;			/* by annotation, label or owner; NULL: nothing names it */
	int asks;			/* 1: wants to be profiled, -1: doesn't, 0: says nothing */
	struct labels extra;		/* what was wished for */
	struct pod_container *containers;
	size_t ncontainers, cap;
	size_t bytes; /* of memory, all included */
};

/* 0 with a pod to be freed; -EINVAL: not a pod with name, namespace and uid; -ENOMEM. */
int must_check pod_parse(const json_t *object, const struct pod_wishes *wishes, struct pod **ret);
void pod_free(struct pod *p);
DEFINE_CLEANUP(pod, struct pod *, pod_free)

/* Whether they say the same of everything but their uid. */
bool pod_equal(const struct pod *a, const struct pod *b);
/* The name of a container by its id; NULL: not one of this pod's, as far as it says. */
const char *pod_container(const struct pod *p, const char *id);

#endif
