/* unwinder.h - keeps BPF in unwind rows, and walks on the stacks that had to wait for them.
 *
 *	r = unwinder_new(sampler, files, 0, 0, &u);
 *	unwinder_file(u, id);			// BPF announced a file: compile its rows
 *	r = unwinder_capture(u, capture, size);	// BPF copied a stack: keep it
 *	unwinder_used(u, frame);		// a drained frame: its file is in use
 *	... poll(unwinder_fd(u)) ...
 *	r = unwinder_work(u, &handler);		// rows that are finished -> BPF; waiting stacks -> samples
 *	r = unwinder_finish(u, &handler);	// the end: waits for rows, then everything goes out
 *
 * Tables are bounded in bytes: the file not sampled for longest loses its rows when room is needed
 * (they are compiled anew when it is met again), never all of them. Waiting stacks are bounded too:
 * above that they are walked on with what there is, frame pointers where rows are missing.
 */
#ifndef WICK_UNWINDER_H
#define WICK_UNWINDER_H

#include "kernel/sampler.h"
#include "symbol/files.h"

struct unwinder;
struct unwtab;

enum {
	UNWINDER_FINISH_SECONDS = 20,		/* to wait at the end for rows being compiled */
};
/* Default of rows_bytes: a share of the machine's memory within these bounds. 20 MiB hold the rows of
 * 2.5 million: cc1, node, a JVM and all that a distribution runs beside them. */
#define UNWINDER_ROWS_MIN   (16ULL << 20)
#define UNWINDER_ROWS_MAX   (64ULL << 20)
#define UNWINDER_ROWS_SHARE 512
/* Likewise of copied_bytes: stacks that wait, 20 KiB each or so. */
#define UNWINDER_COPIED_MIN   (4ULL << 20)
#define UNWINDER_COPIED_MAX   (32ULL << 20)
#define UNWINDER_COPIED_SHARE 1024

struct unwinder_stats {
	uint64_t compiled, without, failed;	/* files: with rows, without CFI, unreadable or over a limit */
	uint64_t generated_refused;		/* tables of code that processes make, over the limits */
	uint64_t evicted;			/* tables taken away for others */
	uint64_t captured, hurried;		/* stacks walked here; of them before their rows were there */
	uint64_t outcomes[WK_OUTCOME_MAX];	/* of the stacks walked here */
};

/* rows_bytes: of tables; copied_bytes: of waiting stacks; 0 for the defaults. */
int must_check unwinder_new(struct sampler *s, struct files *files, uint64_t rows_bytes,
			    uint64_t copied_bytes, struct unwinder **ret);
void unwinder_free(struct unwinder *u);
DEFINE_CLEANUP(unwinder, struct unwinder *, unwinder_free)

int must_check unwinder_file(struct unwinder *u, uint32_t id);
/* Rows of the code that a process has made (WK_DEV_GENERATED); table NULL: it has gone. Over the limit, or
 * without an id for it: frame pointers there. -ENOMEM. */
int must_check unwinder_generated(struct unwinder *u, const struct wk_file_key *key,
				  const struct unwtab *table);
int must_check unwinder_capture(struct unwinder *u, const struct wk_capture *c, size_t size);
void unwinder_used(struct unwinder *u, uint64_t frame, uint64_t count);
/* The file goes: BPF no longer knows it. False while its rows are being compiled: not yet. */
bool unwinder_may_forget(const struct unwinder *u, uint32_t id);
void unwinder_forget(struct unwinder *u, uint32_t id);
/* Calls back for each frame and mapping of the stacks that wait. */
void unwinder_waiting(const struct unwinder *u, void (*frame)(void *ctx, uint64_t frame), void *ctx);
int unwinder_fd(const struct unwinder *u);
/* h->sample gets the stacks that are complete. */
int must_check unwinder_work(struct unwinder *u, const struct sampler_handler *h);
int must_check unwinder_finish(struct unwinder *u, const struct sampler_handler *h);
/* While h->sample is called for a stack that had to wait: when it was copied (CLOCK_MONOTONIC, ns); else
 * 0. It may be older than the window that it falls into. */
uint64_t unwinder_copied_ns(const struct unwinder *u);
const struct unwinder_stats *unwinder_stats(const struct unwinder *u);

#endif
