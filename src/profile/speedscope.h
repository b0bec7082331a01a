/* speedscope.h - write a profile in speedscope's own JSON format.
 *
 * The file has one "sampled" profile for each thread (labels comm, pid, tid), heaviest first, all
 * with the same frames. Inlined calls are frames of their own (they vanish when speedscope imports
 * pprof), with file, line and column where known; frames without a name are "libfoo.so+0x1234".
 * Samples carry no time, so the time-order view shows them heaviest first. The value is that of
 * the default sample type, in its unit if speedscope knows it; values that aren't positive are
 * left out. A profile without samples yields one empty thread: the viewer wants at least one.
 * Format: https://www.speedscope.app/file-format-schema.json
 */
#ifndef WICK_PROFILE_SPEEDSCOPE_H
#define WICK_PROFILE_SPEEDSCOPE_H

#include "profile/profile.h"

/* Appends to out. 0, -ENOMEM, or out's own error. */
int must_check speedscope_write(const struct profile *p, struct buf *out);

#endif
