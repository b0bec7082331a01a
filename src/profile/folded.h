/* folded.h - write a profile as folded stacks, the lines that flame graph tools read.
 *
 *	nginx;_start;main;ngx_worker_process_cycle;epoll_wait;do_epoll_wait_[k] 42
 *
 * One line for each different text: frames from root to leaf, inlined calls as frames of their
 * own, then a space and the value. If the sample has a label "comm", it is the first frame; a
 * sample without frames is "[unknown]". Kernel frames end in "_[k]", which flame graph tools
 * colour. In names ';' becomes ':' and every control character (a newline, above all) '?', so that
 * a line always parses. Heaviest first; lines whose sum isn't positive are left out.
 *
 * The value is that of the sample type "samples" (counts, as is the custom of this format), or of
 * the default sample type where there is none.
 */
#ifndef WICK_PROFILE_FOLDED_H
#define WICK_PROFILE_FOLDED_H

#include "profile/profile.h"

/* Appends to out. 0, -ENOMEM, or out's own error. Cost: the text of every line, twice. */
int must_check folded_write(const struct profile *p, struct buf *out);

#endif
