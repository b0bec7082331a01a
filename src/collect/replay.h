/* replay.h - walk on, in userspace, a stack that BPF has copied because unwind rows were missing.
 *
 *	r = replay(capture, source, ctx, &walk);
 *	0: walk.frames[0 .. n) leaf first and walk.outcome; -EAGAIN: rows of walk.missing still coming
 *
 * Does what bpf/wick.bpf.c does frame by frame, by the same step functions (bpf/step.h, bpf/rows.h),
 * over the copied bytes: beyond them the stack counts as unreadable. Pure; any thread.
 */
#ifndef WICK_REPLAY_H
#define WICK_REPLAY_H

#include "base/base.h"
#include "wick_file.h"

/* Where rows come from. Fills table and words (n of them); words NULL: the file has none. */
struct replay_rows {
	enum wk_rows_state state;
	struct wk_table table;
	const uint64_t *words;
	size_t n;
};
/* WK_FILE_NONE: of code that the process of the capture has made, by address. */
typedef struct replay_rows replay_source(void *ctx, uint32_t file_id);

enum { REPLAY_FRAMES = 4 * WK_LEAF_FRAMES };	/* deeper ones end with WK_USER_DEPTH */

struct replay_walk {
	uint64_t frames[REPLAY_FRAMES + 1];	/* room for the mark */
	size_t n;
	uint32_t outcome;			/* WK_USER_* */
	uint32_t missing;			/* file id, for -EAGAIN */
};

/* final: rows that are still coming count as missing for good (frame pointers). */
int must_check replay(const struct wk_capture *c, replay_source *source, void *ctx, bool final,
		      struct replay_walk *ret);

#endif
