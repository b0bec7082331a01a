/* procinfo.h - what /proc says of a sampled process that still lives.
 *
 *	r = procinfo_exe(sample->pid, sample->start_time, path, sizeof(path));
 *
 * Believed only if the process with that number is the one that started then (proc/pid.h).
 * Cost: 15 us.
 */
#ifndef WICK_PROCINFO_H
#define WICK_PROCINFO_H

#include "base/base.h"
#include "proc/cgroup.h"

/* The executable's path as the process sees it; a final " (deleted)" is cut off. 0; -ENOENT: it has
 * none (a kernel thread); -ESRCH: gone, another one, or not visible; -ENAMETOOLONG; -EACCES. */
int must_check procinfo_exe(uint32_t pid, uint64_t start_time, char *ret, size_t size);

/* The path of its cgroup in h, as seen from our cgroup namespace: of one outside of it, which /proc
 * shows as "/../../x", what follows the way up. 0; -ESRCH; -ENOENT: not in this hierarchy;
 * -ENAMETOOLONG; -EACCES. */
int must_check procinfo_cgroup(uint32_t pid, uint64_t start_time, const struct cgroup_hierarchy *h,
			       char *ret, size_t size);
/* The same from the text of /proc/PID/cgroup, which is cut up. */
int must_check procinfo_parse_cgroup(char *text, const struct cgroup_hierarchy *h, char *ret,
				     size_t size);

#endif
