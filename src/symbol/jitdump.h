/* jitdump.h - jit-PID.dump, the binary file in which a runtime records its code as it loads and moves
 * it, with time and source lines. (linux/tools/perf/Documentation/jitdump-specification.txt)
 *
 *	r = jitdump_open(&d, fd);			// takes the descriptor
 *	r = jitdump_update(&d, &codes, UINT64_MAX, deadline, &changed);	// all that is there by now
 *	r = jitdump_name(&d, piece->where, addr, &code);
 *
 * Records are stamped with CLOCK_MONOTONIC (unless the header says that it is the processor's own
 * counter). With `until` only what happened up to a time is read, so that an address that was sampled
 * then can be asked about before later code covers it: runtimes that buffer their writes tell late.
 *
 * The file belongs to the profiled process and is hostile: every size is checked, a record that makes
 * no sense ends the reading (`broken`), the last one may be cut and is read once it is whole. The code
 * itself, most of the file, is jumped over. Files of the other byte order are refused.
 *
 * Cost: 100 ns a record; a move settles the map (codemap.h), so that beyond JITDUMP_MOVE_WORK pieces
 * a call the moved code is only forgotten. jitdump_name: a pread, and 20 ns a line of the function.
 */
#ifndef WICK_SYMBOL_JITDUMP_H
#define WICK_SYMBOL_JITDUMP_H

#include "symbol/codemap.h"

enum {
	JITDUMP_NAME_MAX = 1023,		/* bytes of a function's name, the rest is cut */
	JITDUMP_FILE_MAX = 511,			/* of a source file's */
	JITDUMP_LINES_BYTES = 1 << 20,		/* of one function's lines; beyond it they aren't read */
	JITDUMP_MOVE_WORK = 16 << 20,
};

struct jitdump {
	int fd;
	uint64_t read;		/* bytes, whole records */
	bool timed;		/* stamps are CLOCK_MONOTONIC ns */
	bool broken, closed;
	uint64_t lines_at;	/* of the record with the lines of the code to come, 0: none */
	uint64_t lines_addr;
	uint64_t loads, moves, lost_moves;
};

struct jitdump_code {
	uint64_t start;		/* where it was loaded first, also if it has moved since */
	char name[JITDUMP_NAME_MAX + 1];
	char file[JITDUMP_FILE_MAX + 1];	/* "": unknown */
	uint32_t line;		/* 0: unknown */
};

/* 0; -EBADMSG: not such a file; -ENOTSUP: of the other byte order or a version after 1; -errno of
 * reading. Closes fd when it fails. */
int must_check jitdump_open(struct jitdump *d, int fd);
void jitdump_close(struct jitdump *d);
/* Reads records up to the time `until`, settles codes. `where` is the record's place. 0; -EAGAIN: the
 * time was up (deadline, CLOCK_MONOTONIC ns), call again; -ENOMEM. */
int must_check jitdump_update(struct jitdump *d, struct codemap *codes, uint64_t until,
			      uint64_t deadline, bool *ret_changed);
/* The stamp of the first record that hasn't been read; UINT64_MAX: there is none, or it has none. */
uint64_t jitdump_next_time(const struct jitdump *d);
/* The code described at piece->where, and the line of addr in it. 0; -ESTALE: it isn't there. */
int must_check jitdump_name(const struct jitdump *d, const struct code_piece *piece, uint64_t addr,
			    struct jitdump_code *ret);

#endif
