/* mapped.h - the unwind tables of the files that a process runs, and where walks of its stacks end.
 *
 *	struct mapped m = { 0 };
 *
 *	r = mapped_read(pid, &m, &e);			// compiles each file's table, now
 *	r = mapped_sample(&m, 2 * NS, false, &e);	// optional: records the process
 *	... m.v[i].stats, m.v[i].ended, m.stacks ...
 *	mapped_free(&m);
 *
 * For people who ask why a stack is truncated; recordings have compiler.h. Files are read through
 * the mapping, like those of a recording, so a deleted one or one of another mount namespace is right.
 *
 * Ownership: struct mapped owns all that it points to. Cost: that of the tables (unwtab.h).
 */
#ifndef WICK_MAPPED_H
#define WICK_MAPPED_H

#include "unwind/unwtab.h"

#define MAPPED_FILES_MAX 4096	/* files of a process; those behind are left out */

struct mapped_file {
	char *path;		/* as the process sees it; "[vdso]" */
	uint32_t major, minor;
	uint64_t inode;
	int error;		/* of opening or compiling it; -ENOENT: it has no unwind information */
	uint64_t took_ns;	/* CPU time of compiling */
	struct unwtab_stats stats;	/* zeros after an error */
	uint64_t frames;	/* mapped_sample: user stacks' frames that lay in it */
	uint64_t ended[WK_OUTCOME_MAX];	/* stacks that were truncated behind a frame in it, by reason */
};

struct mapped {
	uint32_t pid;
	struct mapped_file *v;	/* in order of address */
	size_t n, cap;
	size_t left_out;	/* files beyond MAPPED_FILES_MAX */
	uint64_t stacks, rooted;	/* mapped_sample: user stacks; those that reached their root */
	struct mapped_file other;	/* frames in memory that isn't a file's: code made at run time */
};

/* *m is zeros, or zeros but for what a failed call left. 0; -ESRCH: no such process; -EACCES, -EPERM;
 * -ENOMEM; e has the sentence. Files that can't be read are no failure. */
int must_check mapped_read(uint32_t pid, struct mapped *m, struct err *e);
/* Samples the process at 99 Hz for so long, or until it ends. Needs what recording needs: errors of
 * setup_recorder(). */
int must_check mapped_sample(struct mapped *m, uint64_t duration_ns, bool unsafe_kernel, struct err *e);
void mapped_free(struct mapped *m);

static inline maybe_unused void mapped_cleanup(struct mapped *m)
{
	mapped_free(m);
}

#endif
