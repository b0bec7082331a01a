/* kallsyms.h - kernel functions by address, from /proc/kallsyms.
 *
 *	static const char *const extra[] = { "__irqentry_text_start", "init_task", NULL };
 *	struct kallsyms *k;
 *	struct kallsym s;
 *	int r = kallsyms_load("/proc/kallsyms", extra, &k, &err);
 *
 *	if (!r && kallsyms_lookup(k, ip, &s))
 *		printf("%s+0x%llx [%s]", s.name, ip - s.start, s.module ? s.module : "kernel");
 *	kallsyms_free(k);
 *
 * Covers the core kernel, modules, and BPF programs and trampolines (module "bpf"): whatever is
 * in the file at that moment. Modules and BPF programs come and go, so the owner loads a new
 * table when it meets an address without a name or an event says so; a table never changes.
 *
 * kallsyms has no sizes. A symbol reaches to the next symbol of any kind, and not beyond:
 *  - core kernel: [_stext, _etext), when the file has these marks. What lies outside is init
 *    code, freed after boot, whose addresses may belong to anything now;
 *  - the last function of a module: KALLSYMS_MODULE_TAIL bytes, as nothing says where the module
 *    ends; a BPF program: KALLSYMS_BPF_MAX bytes.
 * Outside there is no name. Symbols in the lower half of the address space are offsets into
 * per-CPU data, not addresses, and are skipped. Of several names for an address alias.h chooses;
 * types T and W are exported, t and w local.
 *
 * With kernel.kptr_restrict or without CAP_SYSLOG every address reads as zero: -EPERM and a
 * sentence. That is a state of the host, not a table full of zeros.
 *
 * Memory: about 14 bytes per symbol and its name once (x86's __pfx_NAME shares the bytes of
 *	   NAME): 3 MB for 120,000 lines.
 * Cost:   the kernel takes some 50 ms to print 120,000 lines, parsing them 17 ms; a lookup is a
 *	   binary search over 8-byte addresses.
 * Errors: -EPERM as above, -ENOENT and so on of open, -EBADMSG (not a kallsyms file), -E2BIG
 *	   (over a cap below), -ENOMEM. err (may be NULL) is filled.
 */
#ifndef WICK_SYMBOL_KALLSYMS_H
#define WICK_SYMBOL_KALLSYMS_H

#include "base/base.h"

#define KALLSYMS_MODULE_TAIL 4096
#define KALLSYMS_BPF_MAX     (256u << 10)
#define KALLSYMS_SYMBOLS_MAX 4000000u	/* text symbols and module data */
#define KALLSYMS_NAMES_MAX   (256u << 20)	/* bytes */
#define KALLSYMS_NAME_MAX    1023	/* bytes of a name; the kernel's own limit is 511 */
#define KALLSYMS_MODULES_MAX 65534

struct kallsyms;

struct kallsym {
	const char *name;	/* borrowed until kallsyms_free, like module */
	const char *module;	/* NULL: core kernel */
	uint64_t start, end;	/* every address of [start, end) has this answer */
};

/* Loads a file in the format of /proc/kallsyms. extra names symbols of any type to remember for
 * kallsyms_find; a NULL-terminated list, or NULL; it is not kept. */
int must_check kallsyms_load(const char *path, const char *const *extra, struct kallsyms **ret,
			     struct err *e);
/* The same from text in memory. Borrows the text for the call. */
int must_check kallsyms_parse(const char *text, size_t size, const char *const *extra,
			      struct kallsyms **ret, struct err *e);
void kallsyms_free(struct kallsyms *k);

bool kallsyms_lookup(const struct kallsyms *k, uint64_t addr, struct kallsym *ret);
/* The address of one of the extra names; the core kernel's before a module's. False when the
 * file doesn't have it. */
bool kallsyms_find(const struct kallsyms *k, const char *name, uint64_t *ret);
size_t kallsyms_count(const struct kallsyms *k);	/* addresses with a name */
size_t kallsyms_bytes(const struct kallsyms *k);	/* memory */

DEFINE_CLEANUP(kallsyms, struct kallsyms *, kallsyms_free)

#endif
