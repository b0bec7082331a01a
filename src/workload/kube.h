/* kube.h - the pods of this node, told by the Kubernetes API server (list and watch) or by kubelet.
 *
 *	r = kube_start(&options, &k, &e);	// its own thread
 *	... options.reader.pod(ctx, object) for each pod that is there, appears or changes ...
 *	kube_stop(k);
 *
 * API server: GET /api/v1/pods of this node, then a watch from there; when the server has forgotten
 * so far back (410) the list is read anew. The first list is asked for at resourceVersion 0, which
 * the server answers from memory, by node: an agent on each of thousands of nodes costs it no
 * search in etcd. Deleted pods aren't reported: their containers have labels still to be given.
 * Kubelet: GET /pods every KUBE_POLL_NS, or sooner after kube_hurry().
 *
 * Whatever goes wrong is tried again, after 1 s at first and up to 60 s later, each at random
 * between half and all of it (Retry-After is kept); nothing of it reaches the caller but
 * kube_stats(). The token is read again for each request, since kubelet renews it, and is sent to
 * the configured host alone: redirects aren't followed. It appears in no message. The answers are
 * bounded: KUBE_PAGE_MAX a list (asked for in pages of fewer and fewer pods then), KUBE_LINE_MAX an
 * event of the watch.
 */
#ifndef WICK_KUBE_H
#define WICK_KUBE_H

#include "workload/kube_answer.h"

struct kube;

enum kube_mode {
	KUBE_OFF,
	KUBE_API,
	KUBE_KUBELET,
	KUBE_AUTO, /* the API server if this is a pod with a service account, else off */
};

enum {
	KUBE_PAGE_MAX = 16 << 20,  /* bytes */
	KUBE_LINE_MAX = 4 << 20,   /* bytes; etcd's objects have at most 1.5 MiB */
	KUBE_PAGE_PODS = 50,	   /* at first, when there must be pages */
	KUBE_TOKEN_MAX = 16 << 10, /* bytes */
};
#define KUBE_POLL_NS 30000000000ULL

struct kube_options {
	enum kube_mode mode;
	const char *node_name;	   /* never NULL */
	const char *api_url;	   /* NULL: as the environment of a pod says */
	const char *token_file;	   /* NULL: the service account's, if there is one; "": none */
	const char *ca_file;	   /* likewise; "": the system's authorities */
	const char *kubelet_url;   /* NULL: https://NODE:10250 */
	bool insecure;		   /* don't verify the certificate */
	struct kube_reader reader; /* called from the thread */
};

struct kube_stats {
	bool synced;		 /* the pods of the node are known, and changes will be */
	uint64_t lists, watches; /* requests that were answered with 200 */
	uint64_t pods;		 /* handed to the reader */
	uint64_t expired;	 /* 410: lists that had to be read anew */
	uint64_t errors;	 /* requests that failed, or answers that made no sense */
	char error[256];	 /* of the last one; "": success since then */
};

/* Starts the thread; copies the options. 0 with *ret NULL when the mode is off (or auto, and this
 * is no pod); -EINVAL with e: no URL for the mode here; -ENOMEM; -errno of starting a thread. */
int must_check kube_start(const struct kube_options *o, struct kube **ret, struct err *e);
void kube_stop(struct kube *k); /* at once; NULL is nothing */
/* There is a container that nothing is known of: ask now, if it is kubelet that must be asked. */
void kube_hurry(struct kube *k);
void kube_stats(struct kube *k, struct kube_stats *ret);

#endif
