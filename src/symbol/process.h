/* process.h - names for code that no file holds: what the runtimes of the sampled processes say about
 * the code that they made.
 *
 *	r = processes_new(&options, &p);
 *	r = processes_frame(p, &key, raw, &frame);	// a drained WK_FRAME_RAW -> WK_FRAME_CODE
 *	r = processes_refresh(p, deadline);		// once a second: read on in their files
 *	r = processes_finish(p, deadline);		// before the frames are named
 *	r = processes_lookup(p, frame, &sym);		// sym.name, or "" if nobody named it
 *
 * An address in anonymous memory means something in one process only, and there only for a while. So
 * it is exchanged, when it is drained, for a WK_FRAME_CODE word: the number of an (incarnation of a
 * process, address, piece of code). Words are never reused, and equal words are equal code; whoever
 * remembers what a word means may do so for ever.
 *
 * Which code: the one that lies at the address when the frame is met for the first time, as far as
 * the runtime has told by then, else that with which it is first told afterwards. When other code is
 * loaded there later, samples from then on get another word. A runtime tells in
 *  - jit-PID.dump (jitdump.h), found by the page of it that the runtime maps as executable. It has
 *    times, so an address that was met before the runtime told is named for the code that lay there
 *    then, not for what came later; and source lines. Asked first;
 *  - perf-PID.map (perfmap.h) in /tmp beneath the process's root. It must be younger than the process:
 *    a container's PID 1 often finds the file of the PID 1 before.
 * PID is the number that the process sees itself. Files must belong to the process's user or to root.
 * They are read when the process is met and again once a second, what was appended; descriptors are
 * kept, so that what is written before the process ends can be read afterwards. Of a process that was gone when it was met, a file in our own /tmp is taken if
 * root or our own user wrote it after the process began.
 *
 * Where a sampled function calls others without keeping a frame pointer, the walk would miss callers. Then
 * the unwind rows of all that the runtime lists are made (runtime_rows.h) and handed out, again whenever
 * the list grows: processes_rows().
 *
 * Limits: bytes of address tables and of rules (options.max_bytes; more code stays without names or rows), processes
 * (max_processes; the addresses of others stay WK_FRAME_RAW). Both are counted. One process gets at most
 * a part of the bytes (PROCESSES_SHARE), and a small one (max_bytes / max_processes) also when they are
 * used up: whoever lists without end costs others nothing.
 * Threads: any; a lock inside.
 * Cost: processes_frame is a hash look-up, for a new address also a pread; refresh a few system calls
 * for each process that runs such code, and 10 ns a byte appended. Memory: 24 bytes for each function
 * that a runtime lists, 100 for each address that is sampled.
 */
#ifndef WICK_SYMBOL_PROCESS_H
#define WICK_SYMBOL_PROCESS_H

#include "base/base.h"
#include "wick_abi.h"

struct processes;
struct unwtab;

struct process_key {		/* an incarnation: exec makes another */
	uint64_t start_time, exec_id;	/* as in struct wk_sample */
	uint32_t pid;		/* in our pid namespace; 0: not visible, its frames stay raw */
	uint32_t zero;		/* keys are compared as bytes */
};

enum {
	PROCESSES_DEFAULT = 256,
	PROCESSES_MAX = 4096,
	PROCESSES_NAME_MAX = 1023,	/* bytes */
	PROCESSES_FILE_MAX = 511,
	PROCESSES_FIRST_NS = 50000000,	/* to read in when a process is met */
	PROCESSES_SHARE = 4,		/* of max_bytes, the most for one process */
};
#define PROCESSES_BYTES_DEFAULT (32ULL << 20)

struct processes_options {
	uint64_t max_bytes;	/* 0: PROCESSES_BYTES_DEFAULT */
	uint32_t max_processes;	/* with descriptors of their files; 0: PROCESSES_DEFAULT */
	bool java_perfmap;	/* make Java machines write their perf map (attach.h) */
};

struct process_symbol {
	uint32_t pid;
	uint64_t address;	/* as sampled */
	uint64_t start;		/* of its function; 0: unknown */
	char name[PROCESSES_NAME_MAX + 1];	/* as the runtime wrote it; "": unknown */
	char file[PROCESSES_FILE_MAX + 1];	/* source; "": unknown */
	uint32_t line;		/* of the address; 0: unknown */
};

struct processes_stats {
	uint32_t processes;	/* known now */
	uint32_t with_names;	/* of them that say something about their code */
	uint64_t refused_processes;	/* addresses of processes over max_processes */
	uint64_t refused_code;	/* functions over max_bytes */
	uint32_t with_rows;	/* processes whose code keeps no frame pointers */
	uint64_t refused_rows;	/* functions of theirs without rows, over the limits of runtime_rows.h */
	uint64_t bytes;		/* of address tables */
	uint64_t frames;	/* words in force */
};

int must_check processes_new(const struct processes_options *o, struct processes **ret);
void processes_free(struct processes *p);
DEFINE_CLEANUP(processes, struct processes *, processes_free)

/* raw: a WK_FRAME_RAW word. *ret is raw itself if the process can't be told apart or is one too many.
 * 0, -ENOMEM. */
int must_check processes_frame(struct processes *p, const struct process_key *key, uint64_t raw,
			       uint64_t *ret);

/* Reads what the runtimes have written since; stops at the deadline (CLOCK_MONOTONIC ns) and goes on
 * there the next time. What can't be read is just not known. 0, -ENOMEM. */
int must_check processes_refresh(struct processes *p, uint64_t deadline);
/* Hands out the rows that are new; a table (by address, borrowed for the call) replaces the one before, NULL
 * means that the process has gone. To be called after each refresh. each() may not call back. What each()
 * returns if that isn't 0; -ENOMEM. */
typedef int processes_rows_fn(void *ctx, const struct process_key *key, const struct unwtab *table);
int must_check processes_rows(struct processes *p, uint64_t deadline, processes_rows_fn *each, void *ctx);
/* The last time before the frames are named: Java machines are asked once more and waited for. */
int must_check processes_finish(struct processes *p, uint64_t deadline);

/* 0; -ENOENT: not a word of these processes, or forgotten. Copies. */
int must_check processes_lookup(struct processes *p, uint64_t frame, struct process_symbol *ret);

/* For those who run for months. Words that are drained from here on are of this epoch; epochs grow. */
void processes_epoch(struct processes *p, uint64_t epoch);
/* Forgets the words that were last drained in an epoch before `before`, and the processes that have
 * none any more. They must not be looked up afterwards. 0, -ENOMEM. */
int processes_forget(struct processes *p, uint64_t before);	/* processes with rows go when they have ended */

void processes_stats(struct processes *p, struct processes_stats *ret);

#endif
