/* setup.h - what every sampling of this machine needs first: a kernel that can, its symbols, its cgroups.
 *
 *	struct sampler_options so = { .event = ..., .freq = ... };
 *	r = setup_kernel(unsafe, &so, &kallsyms, &e);
 *
 * Refuses kernels that can freeze (DESIGN), unless told otherwise. Kernel symbols that can't be read
 * are no failure: names are missing then, and idle ticks can't be told from interrupts.
 */
#ifndef WICK_SETUP_H
#define WICK_SETUP_H

#include "collect/samples.h"
#include "kernel/sampler.h"
#include "symbol/kallsyms.h"

/* Fills so->irq_text and so->softirq_text. *ret is NULL when names are unreadable; the caller frees it.
 * 0; -ENOTSUP with a sentence; -errno of reading the host. */
int must_check setup_kernel(bool unsafe_kernel, struct sampler_options *so, struct kallsyms **ret,
			    struct err *e);
/* Whether there are kernel frames that k has no name for: code that was loaded since (modules, BPF
 * programs) is in a newer kallsyms. k may be NULL: no. */
bool setup_kallsyms_stale(const struct kallsyms *k, const struct samples *s);
/* The kernel's symbols as of now, with the marks that setup_kernel() and vmlinux.h need. */
int must_check setup_kallsyms(struct kallsyms **ret);

#endif
