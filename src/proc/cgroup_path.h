/* cgroup_path.h - what a cgroup's path says about who lives in it: container, pod, systemd unit.
 *
 *	char id[CGROUP_CONTAINER_MAX], uid[CGROUP_POD_UID_MAX];
 *	r = cgroup_container_id("/kubepods/burstable/pod5d...-.../3f2a...", id);	// "3f2a..."
 *	r = cgroup_pod_uid("/kubepods/burstable/pod5d...-.../3f2a...", uid);	// "5d...-..."
 *
 * Paths are those below the root of a hierarchy, of cgroup v1 or v2, as /proc/PID/cgroup and the
 * kernel's cgroup_mkdir tracepoint have them. Names of cgroups are chosen by whoever may make them,
 * a container's root too: they are compared, checked character by character, and never used as file
 * names. Pure functions; cost: linear in the path.
 */
#ifndef WICK_CGROUP_PATH_H
#define WICK_CGROUP_PATH_H

#include "base/base.h"

enum {
	CGROUP_CONTAINER_MAX = 256, /* of a container's id or name, NUL included */
	CGROUP_POD_UID_MAX = 40,    /* of a pod's uid, NUL included */
	CGROUP_UNIT_MAX = 256,	    /* of a systemd unit, NUL included: its own limit */
};

/* The innermost container that a cgroup's path says it belongs to, by the forms of Docker,
 * containerd, CRI-O, Podman, Kubernetes, ECS, LXC and systemd-nspawn. 0 with 64 hex digits or a
 * name of letters, digits and "_.-" (systemd's \x2d undone); -ENOENT: no container. */
int must_check cgroup_container_id(const char *path, char ret[static CGROUP_CONTAINER_MAX]);

/* The same for one component, given the one before it ("" at the root). */
int must_check cgroup_component_container(const char *parent, size_t parent_len, const char *s,
					  size_t len, char ret[static CGROUP_CONTAINER_MAX]);

/* The uid of the innermost Kubernetes pod in a path, as kubelet's cgroupfs and systemd drivers
 * write it: 8-4-4-4-12 lower-case hex digits with dashes, or the 32 hex digits of a static pod,
 * whose uid is a hash. 0; -ENOENT: no pod. */
int must_check cgroup_pod_uid(const char *path, char ret[static CGROUP_POD_UID_MAX]);

/* The systemd unit: the service or scope below the slices, or the innermost slice when there is
 * none ("/system.slice/nginx.service/worker" is nginx.service). Whatever a unit makes below itself
 * isn't another unit, except a user's manager, whose units are named in user_unit as the journal
 * does it ("user@1000.service" and "app.service"); "" otherwise. In a container: its own units
 * only. 0; -ENOENT: none (user_unit is "" then). */
int must_check cgroup_unit(const char *path, char ret[static CGROUP_UNIT_MAX],
			   char user_unit[static CGROUP_UNIT_MAX]);

#endif
