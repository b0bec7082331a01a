/* debuginfod.h - debug files from the servers of DEBUGINFOD_URLS, by build id, without ever waiting for them.
 *
 *	struct debuginfod_options o = DEBUGINFOD_OPTIONS_DEFAULT;
 *	r = debuginfod_new(&o, &d, &e);		// only if the user has asked for it
 *	int fd = debuginfod_open(d, id, size);	// -EAGAIN: asked for, look again later
 *	debuginfod_wait(d, deadline);		// who has time
 *	debuginfod_free(d);
 *
 * Nothing but build ids leaves this machine: a request is URL/buildid/HEX/debuginfo.
 *
 * A thread of low priority asks for one file at a time through libdebuginfod, which is loaded when it is
 * first wanted: wick doesn't depend on it. Requests queue up, `queue` of them at most. Files go to the cache
 * (debugcache.h), which is looked at first and kept below `cache_bytes`. What was not found is asked for
 * again after DEBUGINFOD_AGAIN_NS, what failed after DEBUGINFOD_FAILED_NS, if somebody still wants it.
 *
 * Hostile input: servers. A file is taken if it is an ELF file of the build id that was asked for and not larger
 * than file_bytes; anything else is dropped and counted. A server that is slow, or hangs, costs file_ns of
 * the thread and nobody else.
 *
 * Environment: DEBUGINFOD_URLS is read by libdebuginfod, and so are its other variables; but
 * DEBUGINFOD_CACHE_PATH, DEBUGINFOD_MAXSIZE and DEBUGINFOD_MAXTIME are set by debuginfod_new, of this process.
 * So call it before other threads may look at the environment, and after those children were forked that
 * should keep theirs.
 *
 * Threads: any.
 * Cost: debuginfod_open a look-up, or a few system calls.
 */
#ifndef WICK_SYMBOL_DEBUGINFOD_H
#define WICK_SYMBOL_DEBUGINFOD_H

#include "elf/elf.h"

#define DEBUGINFOD_AGAIN_NS  3600000000000ULL
#define DEBUGINFOD_FAILED_NS 300000000000ULL
#define DEBUGINFOD_IDS_MAX   16384	/* remembered; beyond it all are forgotten, and looked for anew */
#define DEBUGINFOD_ID_MIN    8		/* bytes; shorter ones aren't asked for */
#define DEBUGINFOD_STOP_NS   2000000000ULL	/* that debuginfod_free waits for a request to end */

/* X(constant, label): what became of requests; the label is for metrics. */
#define DEBUGINFOD_RESULTS(X)                                                                      \
	X(DEBUGINFOD_FETCHED, "fetched")                                                            \
	X(DEBUGINFOD_CACHED, "cached")                                                              \
	X(DEBUGINFOD_NOT_FOUND, "not_found")                                                        \
	X(DEBUGINFOD_FAILED, "failed")                                                              \
	X(DEBUGINFOD_TIMED_OUT, "timed_out")                                                        \
	X(DEBUGINFOD_TOO_LARGE, "too_large")                                                        \
	X(DEBUGINFOD_WRONG, "wrong_build_id")                                                       \
	X(DEBUGINFOD_QUEUE_FULL, "queue_full")

enum debuginfod_result {
#define DEBUGINFOD_ENUM(constant, label) constant,
	DEBUGINFOD_RESULTS(DEBUGINFOD_ENUM)
#undef DEBUGINFOD_ENUM
	DEBUGINFOD_COUNT
};

const char *debuginfod_result_label(enum debuginfod_result r);

/* What is used of libdebuginfod (debuginfod_find_debuginfo(3)). */
typedef int debuginfod_progress(void *client, long a, long b);
struct debuginfod_library {
	void *(*begin)(void);
	void (*end)(void *client);
	int (*find)(void *client, const unsigned char *id, int size, char **ret_path);
	void (*set_progress)(void *client, debuginfod_progress *fn);
};

struct debuginfod_options {
	uint64_t file_bytes, file_ns;	/* of one file; of asking for it */
	uint64_t cache_bytes;
	uint32_t queue;
	const char *cache;		/* NULL: as debugcache.h chooses */
	const struct debuginfod_library *library;	/* NULL: libdebuginfod.so.1 */
};

#define DEBUGINFOD_OPTIONS_DEFAULT                                                                 \
	{ .file_bytes = 512ULL << 20, .file_ns = 60000000000ULL, .cache_bytes = 1ULL << 30,       \
	  .queue = 256 }

struct debuginfod;

/* 0 when the environment names servers; -EINVAL with a sentence. */
int must_check debuginfod_check_urls(struct err *e);
/* -EINVAL (no servers), -ENOENT (no library), -errno of the cache: each with a sentence; -ENOMEM, -EAGAIN. */
int must_check debuginfod_new(const struct debuginfod_options *o, struct debuginfod **ret,
			      struct err *e);
/* A request that doesn't end in time is left to its thread. */
void debuginfod_free(struct debuginfod *d);
DEFINE_CLEANUP(debuginfod, struct debuginfod *, debuginfod_free)

/* A descriptor that the caller closes; -EAGAIN: it may come; -ENOENT: it won't, for now. */
int must_check debuginfod_open(struct debuginfod *d, const unsigned char *id, size_t size);
/* The same without opening: 0 if it is there. */
int must_check debuginfod_ask(struct debuginfod *d, const unsigned char *id, size_t size);
/* Until all that was asked for has been answered, or the deadline (CLOCK_MONOTONIC, ns): false. */
bool debuginfod_wait(struct debuginfod *d, uint64_t deadline);

struct debuginfod_stats {
	uint64_t results[DEBUGINFOD_COUNT];
	uint64_t bytes;		/* of files fetched */
	uint64_t cache_bytes;	/* on disk, as of the last fetch */
	uint32_t waiting;	/* requests that are not answered yet */
	char error[128];	/* of the last that failed; "" */
};
struct debuginfod_stats debuginfod_stats(struct debuginfod *d);

#endif
