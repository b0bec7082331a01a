/* naming.h - the labels that tell one workload from another (workload.h lists them).
 *
 *	struct labels l = LABELS_INIT;
 *	r = label_pod(&l, pod, "api");
 *	r = label_container(&l, id, name);	// outside of Kubernetes
 *	r = label_unit(&l, "/system.slice/nginx.service");
 *	if (!labels_get(&l, "service_name"))
 *		r = label_process(&l, "/usr/bin/app", false);
 *
 * One of the first three, then perhaps the last. All return 0 or -ENOMEM, and leave out what isn't
 * known.
 */
#ifndef WICK_NAMING_H
#define WICK_NAMING_H

#include "base/labels.h"
#include "workload/pod.h"

/* container: its name; NULL while the pod doesn't name it, as it never does its sandbox. */
int must_check label_pod(struct labels *l, const struct pod *p, const char *container);
/* name: what an engine calls it; NULL: id of 64 digits is shown as engines print it, by its first
 * twelve; one that is a name (LXC, nspawn) is shown whole. */
int must_check label_container(struct labels *l, const char *id, const char *name);
/* By the cgroup's path. Sets no service_name where no service is meant. */
int must_check label_unit(struct labels *l, const char *path);
/* exe: path, "" if unknown; kernel: it is one of the kernel's threads. */
int must_check label_process(struct labels *l, const char *exe, bool kernel);

#endif
