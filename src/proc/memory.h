/* memory.h - pieces of another process's memory, read without ever waiting for it.
 *
 *	struct memory_range v[] = { { start, size }, ... };
 *	bool ok[n];
 *	r = memory_read(process, v, n, into, ok);	// into: a memfd; the pieces stand there one after the other
 *
 * A page may be of a file that a user serves. Whoever reads it waits for him, as whoever opens /proc/PID/mem may wait
 * for an execve(2) of the process. So a worker does it (offload.h).
 *
 * Cost: 40 us for up to MEMORY_RANGES pieces, and 0.1 us a piece.
 */
#ifndef WICK_PROC_MEMORY_H
#define WICK_PROC_MEMORY_H

#include "base/base.h"

enum {
	MEMORY_RANGES = 500,		/* of one call */
	MEMORY_BYTES = 4 << 20,		/* together */
};

struct memory_range {
	uint64_t start;
	uint32_t size, pad;
};

/* process: pid_open(). ok: whether all of a piece could be read; else its place in `into` isn't written. 0; -E2BIG over
 * the limits; what opening /proc/PID/mem says (-EACCES, -ESRCH); what offload() says (-ETIMEDOUT, -EBUSY). */
int must_check memory_read(int process, const struct memory_range *v, size_t n, int into, bool *ok);

#endif
