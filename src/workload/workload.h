/* workload.h - whose sample is it: from a sample's cgroup and process to series labels, and whether
 * it is to be profiled at all.
 *
 *	r = workloads_new(&options, &w, &e);
 *	... sampler_options: announce_cgroups, keep_exe, skip, and
 *		cgroup_controller = workloads_controller(w)
 *	r = workloads_start(w);				// what runs already
 *	handler.cgroup:	workloads_cgroup(w, event);	// a cgroup was made
 *	once a second:	workloads_refresh(w);		// pods that have changed meanwhile
 *	for each process of a window:
 *		if (workloads_wanted(w, &key))
 *			r = workloads_labels(w, &key, &labels);
 *
 * Labels (DESIGN, "Profile identity"): `node` always; in a container `container` and
 * `container_id`; in a pod `pod`, `namespace`, `workload` and `workload_kind` (the owner) and the
 * chosen labels and annotations; outside of containers `unit` and `user_unit` of systemd; `exe`
 * (path) where nothing else names the service. `service_name` is the first there is of: annotation
 * profiles.grafana.com/service_name, annotation pyroscope.io/service_name, label
 * app.kubernetes.io/name, label app, owner, container; outside of Kubernetes the container's name,
 * else the service (a user's own first), else the last part of the executable's path; "kernel" for
 * the kernel's threads, "unknown" for a process that nothing is known of.
 *
 * A cgroup is known from its making (workloads_cgroup), from the scan of workloads_start, or by its
 * id at the first sample; what is known of it stays when it has gone, so a container of one second
 * keeps its labels. What the rules turn down for certain is reported to skip_cgroup and
 * skip_process, so that BPF doesn't walk its stacks any more; until then workloads_wanted() sorts
 * it out.
 *
 * Threads: all functions may be called from any. The callbacks are called from within workloads_*
 * functions with a lock held, and must not call back. Ownership: options are borrowed until
 * workloads_free, but for the rules, see workloads_set_rules.
 * Memory: bounded by cache_bytes; what was least recently sampled goes first and is found anew.
 */
#ifndef WICK_WORKLOAD_H
#define WICK_WORKLOAD_H

#include "base/labels.h"
#include "base/list.h"
#include "wick_abi.h"
#include "workload/kube.h"
#include "workload/rules.h"

struct workloads;

enum {
	WORKLOAD_CACHE_DEFAULT = 16 << 20, /* bytes */
};

struct workload_options {
	const char *root;      /* for tests: prefix of cgroup file systems and engines' files */
	const char *node_name; /* NULL: the environment's NODE_NAME, else the host's name */
	struct workload_rules rules;

	enum kube_mode kubernetes; /* these as in struct kube_options */
	const char *api_url, *token_file, *ca_file, *kubelet_url;
	bool insecure;
	/* Of pods, to become series labels; NULL: none. */
	const struct str_list *pod_labels, *pod_annotations;

	uint64_t cache_bytes; /* of everything that is remembered; 0: WORKLOAD_CACHE_DEFAULT */
	/* A verdict for BPF: skip it, or no longer. 0; else it isn't skipped (and counted). Both or
	 * neither; NULL: verdicts are workloads_wanted()'s alone. */
	int (*skip_cgroup)(void *ctx, uint64_t id, bool skip);
	int (*skip_process)(void *ctx, const struct wk_process_key *key, bool skip);
	void *ctx;
};

/* A sample's owner. Strings are borrowed for the call. */
struct workload_key {
	uint64_t cgroup_id, start_time, exec_id; /* these as in struct wk_sample */
	uint32_t pid, global_pid, uid;
	bool kernel; /* a thread of the kernel's own (WK_EXE_KERNEL) */
	const char *comm;
	/* Of the file wk_sample.exe. NULL: unknown; then it is what an earlier sample said (a
	 * process that ends gives its memory back first, and has no executable while it does), or
	 * /proc. */
	const char *exe_path;
};

struct workloads_stats {
	size_t cgroups, processes; /* remembered */
	uint64_t bytes, evicted;
	uint64_t cgroups_unknown;		   /* ids that nothing was to be found of, ever */
	size_t cgroups_skipped, processes_skipped; /* in BPF, now */
	uint64_t skips_refused;			   /* verdicts that BPF had no room for, ever */
	size_t pods;				   /* remembered, deleted ones too */
	uint64_t pods_refused;			   /* objects that are no pod, ever */
	struct kube_stats kube;			   /* zero where Kubernetes is off */
};

/* Starts asking for pods, too. 0; -ENOMEM; -EINVAL: no URL of an API server given or to be found;
 * -errno of reading what cgroup file systems are mounted, or of starting a thread; with e. */
int must_check workloads_new(const struct workload_options *o, struct workloads **ret,
			     struct err *e);
void workloads_free(struct workloads *w);
DEFINE_CLEANUP(workloads, struct workloads *, workloads_free)

/* The cgroup v1 controller whose hierarchy identifies cgroups here, NULL: cgroup v2. What samples
 * carry and what cgroups are announced must be of this one (sampler_options.cgroup_controller). */
const char *workloads_controller(const struct workloads *w);

/* Learns the cgroups that are there: at the start, and when an announcement was lost
 * (WK_NOTE_CGROUP_UNSEEN went up). 0, -ENOMEM, -errno of opening the hierarchy. Cost: about 15 us a
 * cgroup. */
int must_check workloads_start(struct workloads *w);
/* A cgroup was made. 0, -ENOMEM, -EINVAL (not a record of ours). */
int must_check workloads_cgroup(struct workloads *w, const struct wk_cgroup_event *event);
/* Carries out what has changed since: pods, names. Cheap when nothing has. */
void workloads_refresh(struct workloads *w);

/* Whose it is: 0 with a set to be freed, -ENOMEM. Cached: a look-up and a copy. */
int must_check workloads_labels(struct workloads *w, const struct workload_key *k,
				struct labels *ret);
/* Whether it is to be profiled, by the rules and by what its pod asks for. */
bool workloads_wanted(struct workloads *w, const struct workload_key *k);
/* Other rules from now on; copies them. 0, -ENOMEM: the old ones stay. */
int must_check workloads_set_rules(struct workloads *w, const struct workload_rules *rules);
/* Forgets half of what is remembered of cgroups and processes (the memory budget is exceeded); pods
 * stay, the server wouldn't say them again. */
void workloads_trim(struct workloads *w);

void workloads_stats(struct workloads *w, struct workloads_stats *ret);

#endif
