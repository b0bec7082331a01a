/* offload.h - work that may never return, done in another process, for so long and no longer.
 *
 *	r = offload_start(&e);				// once, while there is one thread
 *	struct offload_call c = {
 *		.kind = OFFLOAD_FOREIGN, .fn = look, .request = &q, .request_size = sizeof(q),
 *		.fds = { dir }, .nfds = 1, .reply = &a, .reply_size = sizeof(a),
 *	};
 *	r = offload(&c, &fd);		// what look() returned; -ETIMEDOUT, -EBUSY
 *
 * A file system that a user serves (FUSE), or that a network does, answers when it likes. Whoever has asked it
 * waits in the kernel, and neither a signal nor the end of the process cuts that short: not even exit(2), nor
 * close(2). So the thread that waits must belong to another process. offload_start() forks one while wick
 * is still small; it does nothing but fork workers when they are asked for. A worker runs one function of this
 * same program at a time. One that doesn't answer in time is killed, and if even that has to wait, it is
 * left behind: nothing of ours is held by it, and nobody waits for it at the end.
 *
 * Limits, by kind, so that who may be hostile can't use up what the others need:
 *  - OFFLOAD_STUCK workers left behind; as long as they are, calls of that kind are refused (-EBUSY);
 *  - time: a kind has a credit of OFFLOAD_*_NS, of which a call uses what it takes, and which comes back at a
 *    tenth of the speed of the clock. With less than a fifth: -EBUSY. A call waits no longer than there is.
 *
 * Until offload_start() was called, functions run in the caller's own process, without limits: in tests, and
 * where files are only one's own.
 * Threads: any, but for offload_start(). Cost: two context switches, some 30 us.
 * Ownership: descriptors of the call stay the caller's; *ret_fd is the caller's.
 */
#ifndef WICK_PROC_OFFLOAD_H
#define WICK_PROC_OFFLOAD_H

#include "base/base.h"

enum offload_kind {
	OFFLOAD_OURS,		/* looks of which only who administers this host decides where they lead */
	OFFLOAD_FOREIGN,	/* others: processes of other user namespaces */
	OFFLOAD_COPY,		/* reads of files that somebody serves */
	OFFLOAD_KINDS,
};

enum {
	OFFLOAD_FDS = 2,
	OFFLOAD_BYTES = 8192,	/* of a request, and of a reply */
	OFFLOAD_STUCK = 3,	/* workers of a kind that may be left behind */
	OFFLOAD_WORKERS = 16,	/* at a time, those included */
};
#define OFFLOAD_LOOK_NS	 500000000ULL	/* that a call waits at most; COPY: its credit */
#define OFFLOAD_LOOKS_NS 1000000000ULL	/* credit of OURS and of FOREIGN */
#define OFFLOAD_COPY_NS	 5000000000ULL	/* credit of COPY */

/* Runs in the worker. fds: -1 those that aren't there; borrowed. *ret_fd is -1; what is left in it is sent and
 * closed. reply is zeros. Must not use threads, locks or anything that the program has set up since the start. */
typedef int offload_fn(const void *request, const int fds[OFFLOAD_FDS], void *reply, int *ret_fd);

struct offload_call {
	enum offload_kind kind;
	offload_fn *fn;
	const void *request;
	size_t request_size;
	int fds[OFFLOAD_FDS];
	size_t nfds;
	void *reply;		/* filled in unless the call is refused or not answered */
	size_t reply_size;
};

/* 0 or -errno with a sentence. */
int must_check offload_start(struct err *e);
/* The process that forks, and its idle workers, end. For tests. */
void offload_stop(void);

/* The function's result; -ETIMEDOUT: no answer in time; -EBUSY: over a limit; -ECHILD, -EMFILE and so on: there
 * is no worker. ret_fd may be NULL; else it gets a descriptor or -1. */
int must_check offload(const struct offload_call *c, int *ret_fd);

struct offload_stats {
	uint64_t calls, timeouts, refused;
	uint32_t stuck;		/* left behind, now */
};
void offload_stats(enum offload_kind kind, struct offload_stats *ret);
const char *offload_kind_label(enum offload_kind kind);	/* "ours" */

#endif
