/* runtime.h - what one process says about the code that it made: its files found, opened and kept
 * (process.h has the rules), and asked for an address.
 *
 *	r = runtime_new(pid, start_time, &rt);
 *	runtime_look(rt);						// again and again
 *	r = runtime_update(rt, max_bytes, UINT64_MAX, deadline, &changed);
 *	if (runtime_find(rt, addr, &place, &code)) ... code.name
 *
 * The process may be gone, may change its files and may be hostile; what can't be had is not known.
 * Threads: one at a time.
 */
#ifndef WICK_SYMBOL_RUNTIME_H
#define WICK_SYMBOL_RUNTIME_H

#include "base/base.h"

struct runtime;

enum {
	RUNTIME_NAME_MAX = 1023,	/* bytes */
	RUNTIME_FILE_MAX = 511,
	RUNTIME_MAPS_BYTES = 8 << 20,	/* of /proc/PID/maps; a jitdump isn't looked for in a longer one */
	RUNTIME_MAPS_PAUSE = 64,	/* updates between two looks into it, at most */
};
#define RUNTIME_ASK_NS 60000000000ULL

struct runtime_place {		/* where a piece of code is described; zero: nowhere yet */
	uint64_t where;
	uint32_t source;
	uint32_t version;	/* of the source: a file that was written anew is another */
};

struct runtime_code {
	uint64_t start;		/* of the function */
	char name[RUNTIME_NAME_MAX + 1];
	char file[RUNTIME_FILE_MAX + 1];	/* source; "": unknown */
	uint32_t line;		/* of the address; 0: unknown */
};

/* Touches nothing yet. start_time: of the process, ns since boot; 0 is whoever has the pid.
 * java_perfmap: a Java machine is asked for its perf map (attach.h), when it is met, every
 * RUNTIME_ASK_NS, and when runtime_ask() says so. */
int must_check runtime_new(uint32_t pid, uint64_t start_time, bool java_perfmap,
			   struct runtime **ret);
void runtime_free(struct runtime *rt);
/* The process runs another program now: what it says from here on is about that. */
void runtime_end(struct runtime *rt);

/* Looks for files that weren't there before; goes on with what is being asked. */
void runtime_look(struct runtime *rt);
/* Asks once more. False: it has nothing to say, now or ever. */
bool runtime_ask(struct runtime *rt);
bool runtime_is_asked(const struct runtime *rt);	/* and hasn't answered yet */
/* Reads what is new. max_bytes: of its tables. until: where records have times, only what happened by
 * then (CLOCK_MONOTONIC ns). *ret_changed: ask again for addresses. 0; -EAGAIN: stopped at the deadline
 * (CLOCK_MONOTONIC ns); -ENOMEM. */
int must_check runtime_update(struct runtime *rt, uint64_t max_bytes, uint64_t until,
			      uint64_t deadline, bool *ret_changed);
/* When the first thing happened that hasn't been read yet; UINT64_MAX: unknown, or not told. */
uint64_t runtime_next_time(const struct runtime *rt);

/* False: nothing is known of addr, or it is at *place, where it was found before. */
bool runtime_find(const struct runtime *rt, uint64_t addr, struct runtime_place *place,
		  struct runtime_code *ret);

/* The piece of code at addr, as listed: all of its function unless something newer covers a part. False: none. */
bool runtime_piece(const struct runtime *rt, uint64_t addr, uint64_t *ret_start, uint64_t *ret_end);
/* All of them, ascending and disjoint; where tells different code at one place apart. Ends at what each()
 * returns if that isn't 0. */
typedef int runtime_piece_fn(void *arg, uint64_t start, uint64_t end, uint64_t where);
int must_check runtime_each_piece(const struct runtime *rt, runtime_piece_fn *each, void *arg);
uint64_t runtime_changes(const struct runtime *rt);	/* grows when the list changes */
/* pid_open() of it. -ESRCH, -errno. */
int must_check runtime_open_process(const struct runtime *rt);
bool runtime_is_over(const struct runtime *rt);		/* nothing runs that code any more */

bool runtime_speaks(const struct runtime *rt);		/* it has such files */
uint64_t runtime_bytes(const struct runtime *rt);	/* of its tables */
uint64_t runtime_refused(const struct runtime *rt);	/* code over max_bytes */

#endif
