/* output.h - put finished bytes under a name, whole or not at all.
 *
 *	r = output_write("profile.pb.gz", out.data, out.len, &e);
 *
 * The bytes go to a new file in the same directory, to the disk, and only then get the name: no
 * reader ever sees half a file, and a full disk leaves the old one as it was. A symbolic link to a
 * file stays one: what it points to is replaced. The new file belongs to whoever runs (no chown
 * under sudo) with mode 0644 less the umask, whatever the old one had.
 *
 * "-" is standard output. What exists and is no regular file (/dev/null, a FIFO, a terminal), and
 * any name below /dev or /proc, is written in place.
 */
#ifndef WICK_PROFILE_OUTPUT_H
#define WICK_PROFILE_OUTPUT_H

#include "base/base.h"

/* 0, or the -errno of the step that failed (-ENOSPC, -EACCES, -ENOENT, -EISDIR, ...) with a
 * sentence that names the path. Writing to a FIFO waits for its reader. */
int must_check output_write(const char *path, const void *p, size_t n, struct err *e);

#endif
