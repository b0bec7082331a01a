/* format.h - the forms a profile can be written in, and which one a file name asks for.
 *
 *	r = format_from_path("out.folded", &format, &e);
 *	r = format_write(p, format, &out);
 *
 *	pb.gz		.pb.gz, "-", /dev/...	pprof, gzipped (pprof.h)
 *	pb		.pb			pprof, raw
 *	folded		.folded			folded stacks (folded.h)
 *	speedscope	.speedscope.json	speedscope (speedscope.h)
 *	txt		.txt			the 30 heaviest functions (report.h)
 */
#ifndef WICK_PROFILE_FORMAT_H
#define WICK_PROFILE_FORMAT_H

#include "profile/profile.h"

enum format {
	FORMAT_AUTO,	/* by the ending of the file name */
	FORMAT_PPROF_GZ,
	FORMAT_PPROF,
	FORMAT_FOLDED,
	FORMAT_SPEEDSCOPE,
	FORMAT_TEXT,
};

/* "auto" and the names above, in the order of the enum, ended by NULL: choices of --format. */
extern const char *const format_names[];

/* -EINVAL with a sentence that names the endings. */
int must_check format_from_path(const char *path, enum format *ret, struct err *e);
/* Appends to out. format is not FORMAT_AUTO (-EINVAL). Else the errors of the writers. */
int must_check format_write(const struct profile *p, enum format format, struct buf *out);

#endif
