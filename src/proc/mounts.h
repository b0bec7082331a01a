/* mounts.h - whether reading a file can take for ever, found out without reading it.
 *
 *	switch (mounts_judge(pid, key.dev, &ours)) { ... }
 *
 * Files of local file systems (disks, memory) answer by themselves. Of others somebody has to answer: a server
 * (NFS, CIFS, 9p, Ceph), or a process (FUSE), which may be anybody's. Even statfs(2) asks them, so what a device's
 * file system is comes from mountinfo (proc(5)), which asks nobody. An overlay is as good as its layers, which it
 * doesn't tell: one is taken for local if it was mounted by who may mount in our user namespace, and
 * for served if anybody could have (unprivileged overlays of 5.11 over FUSE).
 *
 * Cost: a look into one to three mountinfo files, 10 us for each 20 mounts; nothing for a disk that was met before.
 * Threads: any.
 */
#ifndef WICK_PROC_MOUNTS_H
#define WICK_PROC_MOUNTS_H

#include "base/base.h"

enum mounts_verdict {
	MOUNTS_SERVED,		/* or unknown */
	MOUNTS_LOCAL,
};

/* dev: kernel-internal, major << 20 | minor, of a file that the process maps. pid 0 or of one that has gone: only
 * what is mounted here, or in the host's first process's namespace, counts. *ret_ours: the process is of our own
 * user namespace, or not there to hold anybody up. */
enum mounts_verdict mounts_judge(uint32_t pid, uint32_t dev, bool *ret_ours);

/* By statfs(2) of an open file, which may wait: for workers of offload.h. ours: whoever mounts where it was found
 * may do so in our user namespace. */
enum mounts_verdict mounts_judge_open(int fd, bool ours);

/* Whether a line of mountinfo is of a device, and its type, of at most size - 1 bytes. */
bool mounts_parse_line(const char *line, size_t len, uint32_t *ret_dev, char *ret_type, size_t size);

#endif
