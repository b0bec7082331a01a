/* vmlinux.h - the running kernel's own file with its debug information, proven to be that.
 *
 *	struct vmlinux *v;
 *	uint64_t vaddr;
 *	int r = vmlinux_open("/usr/lib/debug/boot/vmlinux-6.1.0", NULL, kallsyms, &v, &e);
 *
 *	if (!r && vmlinux_address(v, ip, &vaddr))
 *		... ask its DWARF (lines.h) for vaddr
 *
 * Taken only if its build id is the one of /sys/kernel/notes: lines of another build would be plausible and
 * wrong. The kernel may run elsewhere than it was linked (KASLR): kallsyms has the address of _stext (or
 * _text) and the file's symbol table what it was linked at; the difference holds for all of the core kernel.
 * Modules have files of their own: none of theirs are looked for.
 *
 * Ownership: holds a descriptor until vmlinux_free.
 * Threads:   any, once it is open.
 * Cost:      reads the symbol table once, some 10 MB.
 * Errors, each with a sentence: those of opening; -ENOEXEC, -EBADMSG and so on of elf.h; -ESTALE (another
 *	      build), -ENODATA (no debug information, no build id, no symbol table), -EPERM (kallsyms hides
 *	      addresses), -ENOMEM.
 */
#ifndef WICK_SYMBOL_VMLINUX_H
#define WICK_SYMBOL_VMLINUX_H

#include "symbol/kallsyms.h"

#define VMLINUX_NOTES	  "/sys/kernel/notes"
#define VMLINUX_NOTES_MAX (64u << 10)

struct vmlinux;

/* notes: another file than VMLINUX_NOTES, or NULL. k: with "_stext" and "_text" among its extra names, only
 * for the call; NULL: unreadable. */
int must_check vmlinux_open(const char *path, const char *notes, const struct kallsyms *k,
			    struct vmlinux **ret, struct err *e);
void vmlinux_free(struct vmlinux *v);
DEFINE_CLEANUP(vmlinux, struct vmlinux *, vmlinux_free)

/* The file's address of one of the kernel; false: it isn't the core kernel's code. */
bool vmlinux_address(const struct vmlinux *v, uint64_t address, uint64_t *ret);
/* A descriptor of the file, which the caller closes; -EMFILE. */
int must_check vmlinux_dup(const struct vmlinux *v);
const char *vmlinux_path(const struct vmlinux *v);	/* borrowed */

#endif
