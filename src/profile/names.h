/* names.h - what the text formats call a frame, a module and a thread.
 *
 * A location is one frame for each of its lines (inlined calls), or one without lines:
 *	with a line		the function's name, else its system name
 *	without, in a file	"libfoo.so+0x1234": module and address as in the file
 *	without a mapping	"0x1234", or "[unknown]" at address 0
 * A module is the last component of the mapping's file name; names that are no path ("[vdso]",
 * "//anon") stay whole; "[unknown]" if there is none. A thread is "comm (pid)", "comm (pid/tid)"
 * where labels tell the threads apart, or the part of that which the labels hold.
 *
 * Names are valid UTF-8 but come from strangers: they may hold control characters, which would
 * reach a terminal. Text outputs pass them through name_clean(). All functions append to a buf,
 * whose sticky error is the only one.
 */
#ifndef WICK_PROFILE_NAMES_H
#define WICK_PROFILE_NAMES_H

#include "profile/profile.h"

/* Frames of a location: at least 1; 0 is the innermost. */
size_t name_frame_count(const struct profile *p, uint32_t location);
void name_frame(const struct profile *p, uint32_t location, size_t i, struct buf *out);
void name_module(const struct profile *p, uint32_t mapping, struct buf *out);

/* Kernel code: the address is in the upper half, or the mapping is called "[kernel...". */
bool name_is_kernel(const struct profile *p, uint32_t location);

/* The key strings of the labels that make up a thread, MAP_NONE where there is no such label. */
struct name_keys {
	uint32_t comm, pid, tid;
};
struct name_keys name_keys(const struct profile *p);	/* looks at every string: ask once */
void name_thread(const struct profile *p, const struct name_keys *k, uint32_t labels_id,
		 struct buf *out);
/* The value of a label: its text, or its number with the unit, if any. */
void name_label(const struct profile *p, const struct profile_label *l, struct buf *out);

/* Appends n bytes of text with '?' for every control character, also U+0080 to U+009F. */
void name_clean(struct buf *out, const char *s, size_t n);

#endif
