/* setup.h - what every sampling of this machine begins with: a kernel that can, its symbols, the programs in it.
 *
 *	struct sampler_options so = { .event = ..., .freq = ... };
 *	r = setup_recorder(unsafe, &so, &ro, &rec, &kallsyms, &e);
 *
 * Refuses kernels that can freeze (DESIGN), unless told otherwise. Kernel symbols that can't be read
 * are no failure: names are missing then, and idle ticks can't be told from interrupts. The symbols (60 ms)
 * are read while the programs are loaded (100 ms).
 */
#ifndef WICK_SETUP_H
#define WICK_SETUP_H

#include "collect/recorder.h"
#include "collect/samples.h"
#include "kernel/sampler.h"
#include "symbol/kallsyms.h"

/* Makes a recorder, which isn't started yet, and fills so->marks. *ret_kallsyms is NULL when names are unreadable.
 * The caller frees both. 0; -ENOTSUP with a sentence; what recorder_new() says. */
int must_check setup_recorder(bool unsafe_kernel, struct sampler_options *so,
			      const struct recorder_options *ro, struct recorder **ret,
			      struct kallsyms **ret_kallsyms, struct err *e);
/* Whether there are kernel frames that k has no name for: code that was loaded since (modules, BPF
 * programs) is in a newer kallsyms. k may be NULL: no. */
bool setup_kallsyms_stale(const struct kallsyms *k, const struct samples *s);
/* The kernel's symbols as of now, with the marks that setup_recorder() and vmlinux.h need. */
int must_check setup_kallsyms(struct kallsyms **ret);

#endif
