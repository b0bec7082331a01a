/* pprof.h - profiles as bytes: the pprof format (proto/profile.proto), raw or gzipped.
 *
 *	r = pprof_write(p, true, &out);
 *	r = pprof_read(bytes, n, 0, &p, &e);
 *	r = pprof_read_file("profile.pb.gz", 0, &p, &e);	// "-" is standard input
 *
 * Writing: ids run from 1 without gaps, the main mapping is 1, samples come heaviest first by the
 * default sample type, and the same profile always yields the same bytes. Text is valid UTF-8.
 *
 * Reading takes what any tool writes and trusts nothing: ids may be any distinct non-zero 64-bit
 * numbers, in any order, and are renumbered; every reference is checked (the rules of Go's
 * profile.CheckValid, and an out-of-range string is an error too). As there, a location may name a
 * mapping that isn't in the file: it then has none. gzip is recognised by its magic number,
 * several members in a row are one stream. Errors name what is wrong and where: "sample 3:
 * location id 17 doesn't exist" (samples and other messages are counted from 1, as they stand in
 * the file), "byte 512: a field ends beyond its message".
 *
 * Errors: -ENOMEM; writing: the buf's own (-E2BIG over its cap); reading: -EBADMSG for what is no
 * valid profile, -E2BIG over a limit, and of files what open(2) and read(2) say; all with a
 * sentence in e (of files: "a.pb.gz: no valid pprof profile: sample 3: ...").
 * Cost: 100,000 samples of 30 frames, 8 MB raw, take 0.15 s to write (0.45 s with gzip if they
 * hardly compress) and 0.2 s to read.
 * Beyond the bytes themselves and the profile, neither needs more than a single message does. A
 * file made for it expands to about 20 times its raw size in memory: pass a smaller max for
 * files of strangers.
 */
#ifndef WICK_PROFILE_PPROF_H
#define WICK_PROFILE_PPROF_H

#include "profile/profile.h"

#define PPROF_MAX_BYTES	  ((size_t)1 << 30)	/* of the raw profile, the default */
#define PPROF_MAX_MESSAGE ((size_t)64 << 20)	/* memory of one decoded message, e.g. a sample */

/* Appends to out. The profile isn't changed. */
int must_check pprof_write(const struct profile *p, bool gzip, struct buf *out);

/* max limits the raw (decompressed) size in bytes; 0 means PPROF_MAX_BYTES. */
int must_check pprof_read(const void *data, size_t n, size_t max, struct profile **ret,
			  struct err *e);
int must_check pprof_read_file(const char *path, size_t max, struct profile **ret,
			       struct err *e);

#endif
