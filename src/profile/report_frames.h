/* report_frames.h - the groundwork of report.c and report_tree.c: which samples count, and which
 * rows each of them touches.
 *
 * A row is a name: of a function, a module, a process, ... Every location is translated once into
 * the rows of its frames; samples are then only numbers.
 */
#ifndef WICK_PROFILE_REPORT_FRAMES_H
#define WICK_PROFILE_REPORT_FRAMES_H

#include "profile/report.h"

struct report {
	const struct profile *p;
	const struct report_options *o;
	size_t type;
	bool by_frame;			/* else by label: one row a sample */
	struct strtab rows;		/* names; 0 is unused */
	uint32_t *first;		/* of each location, in frames; [id + 1] is the end */
	uint32_t *frames;		/* rows, innermost first */
	size_t nframes, frames_cap;
	uint32_t *set_row;		/* row of each label set, 0: none yet */
	bool *focus, *ignore;		/* of each location: matches; NULL without expression */
	int64_t total, selected;	/* sums of values of all, and of the samples that count */
};

/* Fills r, to be released in any case. Errors of report_write. */
int must_check report_prepare(struct report *r, const struct profile *p,
			      const struct report_options *o, struct err *e);
void report_release(struct report *r);
bool report_selects(const struct report *r, uint32_t sample);
/* Whether a value is too small to be shown. */
bool report_is_minor(const struct report *r, int64_t value);

/* report_tree.c */
int must_check report_tree(const struct report *r, struct buf *out);

#endif
