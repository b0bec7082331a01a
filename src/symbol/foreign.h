/* foreign.h - files beneath other processes' roots, opened and read without ever waiting for whoever serves them.
 *
 *	struct foreign_file f;
 *	int fd = foreign_open(process, "usr/lib/debug/x.debug", FOREIGN_FOLLOW, &f);
 *	if (fd >= 0) ... pread(fd) ...			// answers by itself
 *
 *	fd = foreign_readable(held);			// of fileopen(): perhaps only a name for the file
 *
 * A path is walked by a worker (offload.h): each directory may be on a file system that a user serves. A file of a
 * local file system (mounts.h) comes back as it is. One that somebody serves is never opened here, as even close(2)
 * would ask its server: here it is a descriptor with O_PATH alone, on which only statx(2) with AT_STATX_DONT_SYNC
 * is harmless, and for reading it is copied by a worker into memory of ours.
 *
 * Copies are kept, since files are read again, until there is no room for the next: then the least recently asked
 * one is emptied, and whoever still reads it finds that it ends early, as with any file that is cut. One that
 * grows (FOREIGN_GROWS) is copied on from where it ended, into the same copy.
 *
 * A file system that hasn't answered in time isn't read from for FOREIGN_PAUSE_NS (-EBUSY).
 *
 * Limits: bytes of copies, all together (foreign_limit()); one file gets half of them.
 * Threads: any. Cost: 40 us; a copy what the server takes.
 * Errors: those of pid_open_file() and of offload(); -EFBIG: it would be copied, and is too large.
 */
#ifndef WICK_SYMBOL_FOREIGN_H
#define WICK_SYMBOL_FOREIGN_H

#include <sys/stat.h>

#include "base/base.h"

enum {
	FOREIGN_FOLLOW = 1,	/* a final link, too, as the process would */
	FOREIGN_LINK = 2,	/* path is a link in the process's directory of /proc: "map_files/1000-2000" */
	FOREIGN_GROWS = 4,	/* who writes it only appends, as long as its size says so */
	FOREIGN_COPIES = 256,	/* files that are kept */
	FOREIGN_SILENT = 32,	/* file systems that are remembered as not answering */
};
#define FOREIGN_PAUSE_NS      60000000000ULL	/* until one of them is asked again */
#define FOREIGN_BYTES_DEFAULT (64ULL << 20)

struct foreign_file {
	struct stat st;		/* of the file, also when the descriptor is a copy's */
	bool copied;
};

/* Bytes of copies; 0: such files are never read. Before the first call of what is below. */
void foreign_limit(uint64_t bytes);

/* process: pid_open(); -1: path is absolute, and our own. Regular files only. A descriptor for reading that the
 * caller closes. */
int must_check foreign_open(int process, const char *path, unsigned int flags, struct foreign_file *ret);
/* A descriptor for reading that the caller closes, of a file that fd only names (O_PATH); of any other a dup. */
int must_check foreign_readable(int fd);
/* It only names a file, whose reading may fail: open it where there is time. */
bool foreign_is_name(int fd);
/* fstat(2) that asks nobody. */
int must_check foreign_stat(int fd, struct stat *ret);

struct foreign_stats {
	uint64_t copies, bytes_copied, too_large, dropped;	/* so far */
	uint64_t paused;	/* not read, as their file system hasn't answered before */
	uint64_t bytes;						/* now */
};
void foreign_stats(struct foreign_stats *ret);

#endif
