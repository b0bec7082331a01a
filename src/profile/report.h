/* report.h - a profile as text: where the time goes, in a table or as a call tree.
 *
 *	struct report_options o = { .by = "module", .limit = 30 };
 *	r = report_write(p, &o, &out, &e);
 *
 * By "function" and "module" the table says how much is spent in each one itself (flat: it is the
 * leaf; inlined calls are functions) and in it with all that it calls (cum: it is anywhere on the
 * stack, counted once however often it is there), like `pprof -top`. By "process", "thread" or
 * the name of a label, each sample belongs to one row. The tree shows functions from the root
 * down, heaviest first. Percentages are shares of the whole profile, also under focus and ignore.
 *
 * Control characters in names are shown as '?', so hostile names can't drive a terminal.
 */
#ifndef WICK_PROFILE_REPORT_H
#define WICK_PROFILE_REPORT_H

#include "profile/profile.h"

struct report_options {
	const char *by;			/* "function" (or NULL), "module", "process", "thread" */
	const char *sample_type;	/* its name; NULL: the default sample type */
	bool tree;			/* of functions or modules */
	uint32_t limit;			/* rows; 0: all */
	double min_percent;		/* leaves out rows below that share, 0 to 100 */
	const char *focus, *ignore;	/* POSIX extended regular expressions or NULL: only */
					/* samples with, without a frame whose function or */
					/* mapped file matches */
};

/* Appends the text to out. 0; -EINVAL with a sentence that names the option and what it accepts
 * (no such sample type or label, a bad expression, a tree by something else); -ENOMEM; out's own
 * error. Cost: linear in all frames, after one regular expression for each location and line. */
int must_check report_write(const struct profile *p, const struct report_options *o,
			    struct buf *out, struct err *e);

/* The lines above the table: type, time, duration, total. Part of report_write. */
void report_header(const struct profile *p, size_t type, struct buf *out);

#endif
