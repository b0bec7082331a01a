/* pid.h - one process in /proc, and the files beneath its root, which are hostile.
 *
 *	cleanup(fd_cleanup) int dir = pid_open(1234, start_time);	// -ESRCH: gone, or another's
 *	struct pid_info info;
 *	struct stat st;
 *	r = pid_read_info(dir, &info);
 *	int fd = pid_open_file(dir, "tmp/perf-1.map", &st);
 *	if (fd >= 0 && pid_owns(&info, &st)) ...
 *
 * A descriptor of the process's directory in /proc never comes to mean another process: once it is
 * gone, everything beneath fails with -ESRCH. Paths are walked as the process would, its root being
 * theirs (openat2(2), RESOLVE_IN_ROOT): no link, "..", or magic link leads out of it, and a FIFO or a
 * device isn't opened. What a main thread that has exited no longer shows is read from another thread
 * of its process.
 * Cost: a few system calls each.
 */
#ifndef WICK_PROC_PID_H
#define WICK_PROC_PID_H

#include <sys/stat.h>

#include "base/buf.h"

struct pid_info {		/* of /proc/PID/status, proc(5) */
	uint32_t uids[4], gids[4];	/* real, effective, saved, file system */
	uint32_t ns_pid;		/* its number in its own, innermost pid namespace */
	uint64_t caught;		/* signals with a handler, bit n - 1 for signal n */
};

/* start_time: of the main thread, ns since boot, as BPF has it; 0: whoever it is. Compared with clock
 * ticks in our time namespace. The descriptor (O_CLOEXEC), or -ESRCH, -errno. */
int must_check pid_open(uint32_t pid, uint64_t start_time);

/* 0; -ESRCH: gone; -EBADMSG: not as expected; -errno. */
int must_check pid_read_info(int dir, struct pid_info *ret);
int must_check pid_parse_status(const char *text, struct pid_info *ret);	/* 0, -EBADMSG */
int must_check pid_parse_start(const char *stat, uint64_t *ret_ticks);		/* likewise */

/* Opens a regular file of at least one byte for reading; path is beneath the process's root, without
 * a slash at its start. A final link isn't followed. The descriptor; -EINVAL: not a regular file;
 * -ENODATA: empty; -ENOENT and so on of openat2(2). */
int must_check pid_open_file(int dir, const char *path, struct stat *ret);
/* The same, and a final link is followed: as the process would, so not out of its root. */
int must_check pid_open_target(int dir, const char *path, struct stat *ret);
/* The same for any kind of file: a descriptor with O_PATH alone, for fstat(2) and /proc/self/fd. */
int must_check pid_open_path(int dir, const char *path, int flags);
/* A file that a link of the process itself leads to, such as "map_files/1000-2000". */
int must_check pid_open_link(int dir, const char *link, struct stat *ret);

/* Whether it is of our own user namespace: nobody without rights on this host can have mounted what it sees, or
 * chosen its root. False also when that can't be told. */
bool pid_is_ours(int dir);

/* Whether it can have been written by the process (one of its user ids) or by root. */
bool pid_owns(const struct pid_info *info, const struct stat *st);

/* Appends the text of a file of the directory itself, such as "maps". 0, -ESRCH, -errno, b->err. */
int must_check pid_read_text(int dir, const char *name, struct buf *b);

#endif
