/* cgroup.h - find the cgroup a user means, and the container a cgroup belongs to.
 *
 *	struct cgroups *cg;
 *	struct cgroup c;
 *	r = cgroups_open("", &cg);		// what is mounted where
 *	r = cgroup_resolve(cg, "system.slice/nginx.service", &c, &e);
 *	r = cgroup_find_container(cg, "3f2a9c0d1e4b", &c, &e);
 *	... select c.id in c.hierarchy; for each sample:
 *	r = cgroup_path_by_id(cg, cgroups_default(cg), sample->cgroup_id, path, sizeof(path));
 *	r = cgroup_container_id(path, id);
 *
 * A cgroup's id is the inode number of its directory: since Linux 5.5 that is the kernel's own id
 * of it (kernfs node id), on 64-bit machines all of it. Ids count within one hierarchy. With cgroup
 * v2 there is one; with v1 each controller (or group of them) has its own, and which one identifies
 * cgroups must be chosen: cgroups_default(). Hierarchies of v1 without a controller (name=systemd)
 * are left out: BPF programs reach a task's cgroup only through a controller.
 *
 * Order of search, everywhere: the default hierarchy, then v2, then the others as mounted.
 * Names of cgroups are chosen by whoever may make them, a container's root too: they are only
 * compared, links are never followed, and a walk is bounded.
 * Ownership: struct cgroups owns its hierarchies; a struct cgroup borrows one from it.
 */
#ifndef WICK_CGROUP_H
#define WICK_CGROUP_H

#include "proc/cgroup_path.h"

enum {
	CGROUP_PATH_MAX = 4096,
	CGROUP_MAX_DEPTH = 32,		/* of a walk; deeper ones aren't seen */
	CGROUP_MAX_DIRS = 100000,	/* of a walk over one hierarchy */
	CGROUP_V2 = -1,			/* in place of a subsystem's index */
};

struct cgroup_hierarchy {
	int version;		/* 1 or 2 */
	int subsys;		/* v1: the controller's number in enum cgroup_subsys_id, the N of
				 * task->cgroups->subsys[N]; v2: CGROUP_V2 */
	char controller[32];	/* v1: "memory", of several the most useful; v2: "" */
	char *mount;		/* where its root can be seen */
};

struct cgroup {
	const struct cgroup_hierarchy *hierarchy;	/* borrowed from struct cgroups */
	uint64_t id;
	char path[CGROUP_PATH_MAX];	/* below the mount: "/system.slice/nginx.service", "/" */
};

enum cgroup_mode {
	CGROUP_MODE_NONE,	/* nothing is mounted (that has a controller) */
	CGROUP_MODE_V1,
	CGROUP_MODE_V2,
	CGROUP_MODE_HYBRID,	/* both */
};

struct cgroups;

/* Reads /proc/self/mountinfo and /proc/cgroups below root ("": this machine). 0, also with nothing
 * mounted; -ENOMEM, -E2BIG, -ENAMETOOLONG, or -errno of reading mountinfo. */
int must_check cgroups_open(const char *root, struct cgroups **ret);
void cgroups_free(struct cgroups *cg);
DEFINE_CLEANUP(cgroups, struct cgroups *, cgroups_free)

enum cgroup_mode cgroups_mode(const struct cgroups *cg);
const char *cgroup_mode_name(enum cgroup_mode mode);	/* "v1", "hybrid" */
/* The hierarchy that identifies cgroups on this machine: v2 when it has the memory controller or
 * nothing else is there; else v1 by memory, cpu or pids, whichever is found first. NULL: none. */
const struct cgroup_hierarchy *cgroups_default(const struct cgroups *cg);

/* The cgroup at path: a directory ("/sys/fs/cgroup/memory/a"), or a path below the root of some
 * hierarchy ("a", "/a" as in /proc/PID/cgroup). 0; -ENOENT with e that says where was looked;
 * -ENOTDIR if it is something else than a cgroup's directory; -EACCES; -ENAMETOOLONG. */
int must_check cgroup_resolve(const struct cgroups *cg, const char *path, struct cgroup *ret,
			      struct err *e);

/* The cgroup of a container by its id (64 hex digits or the first 12 and more) or name (LXC and
 * systemd-nspawn machines; or a directory that is named exactly so, as runc makes them). Names that
 * only a container engine knows are not found. 0; -ENOENT with e that says what was searched;
 * -ENOTUNIQ with e that lists the candidates; -EINVAL for an empty name or one with a slash.
 * Cost: a walk over the hierarchy, about 10 us a cgroup. */
int must_check cgroup_find_container(const struct cgroups *cg, const char *name, struct cgroup *ret,
				     struct err *e);

/* The path below h's mount of the cgroup with that id. 0; -ENOENT: gone, or outside of what the
 * mount shows; -ENAMETOOLONG. Cost: 10 us with CAP_DAC_READ_SEARCH, else a walk. */
int must_check cgroup_path_by_id(const struct cgroups *cg, const struct cgroup_hierarchy *h,
				 uint64_t id, char *ret, size_t size);

/* Calls fn for each cgroup of h, from the root ("/") downwards, until it returns something else than 0;
 * path is borrowed for the call. 0, fn's result, or -errno of opening the mount. *ret_cut (may be
 * NULL): a limit was met, not all were seen. Cost: about 10 us a cgroup. */
int must_check cgroup_each(const struct cgroups *cg, const struct cgroup_hierarchy *h,
			   int (*fn)(void *ctx, uint64_t id, const char *path), void *ctx,
			   bool *ret_cut);

#endif
