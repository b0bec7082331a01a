/* unwtab.h - compiles what is known of a file's stack frames into the table that the walk reads.
 *
 *	struct unwtab *t;
 *	int r = unwtab_compile(elf, &debug, &UNWTAB_LIMITS_DEFAULT, &t);
 *
 *	if (r)
 *		return r;			// the walk stops at this file: no unwind info
 *	words = unwtab_words(t, &n);		// into a BPF array of n words ...
 *	table = *unwtab_table(t);		// ... beside how to read them
 *	unwtab_free(t);
 *
 * Sources, the first that covers an address wins:
 *	.eh_frame	found by section, or by PT_GNU_EH_FRAME where sections were stripped
 *	signal frames	the trampoline's code bytes, where .eh_frame covers nothing (musl, Go, vDSO)
 *	Go's tables	x86-64, Go 1.18 and later (gorows.h)
 *	.debug_frame	of the file, else of its separate debug file; of Go programs without these
 *			tables only what it says of code that has no frame yet or none at all
 *			(WK_CFA_LEAF): it doesn't know of saved frame pointers, by which the rest of
 *			their code is walked
 *	code		x86-64 but such Go: what its instructions do to the stack (code.h), of gaps of 16
 *			bytes or more; bare _start is the root
 *	entry point	where none of these has it: up to 64 bytes of _start, the root
 * Only what lies in executable PT_LOADs counts, and rows are by file offset. Where FDEs overlap,
 * the one that starts later has the rest, as for the C++ runtime. Alignment padding, up to 15 bytes
 * without an FDE, belongs to the rule before it; larger gaps are WK_CFA_NONE. A walk looks a return
 * address up at the byte before it, so a trampoline's row starts one byte before its code.
 *
 * Cost: about 120 ns per row (cc1: 430,000 rows in 55 ms), and 200 ns per instruction of code without
 * FDEs. Memory while compiling: the section, 16
 * to 32 bytes per FDE, 16 to 24 per row; afterwards 8 per row and 1/128 of the text.
 */
#ifndef WICK_UNWIND_UNWTAB_H
#define WICK_UNWIND_UNWTAB_H

#include "elf/elf.h"
#include "unwind/rule.h"
#include "wick_rows.h"

struct unwtab_limits {
	size_t section_bytes;	/* of .eh_frame, of .debug_frame (decompressed): each up to 1 GiB */
	uint32_t fdes;
	uint32_t rows;
	uint64_t text_bytes;	/* from the first to the last byte with a rule; under 2^36 */
	uint64_t scan_bytes;	/* of code without FDEs that is searched for signal trampolines */
	uint64_t code_bytes;	/* of code without FDEs that is followed for rules of its own */
};
/* The largest seen: chrome, 1 M FDEs, 4 M rows, 250 MiB of text. */
#define UNWTAB_LIMITS_DEFAULT                                                                      \
	((struct unwtab_limits){ 256u << 20, 4u << 20, 16u << 20, 1u << 30, 16u << 20, 16u << 20 })

struct unwtab_stats {
	uint32_t fdes;		/* with code in an executable segment */
	uint32_t fdes_malformed, fdes_unsupported; /* entries passed over */
	uint32_t overlaps;	/* FDEs cut short by the next */
	uint32_t trampolines;	/* found by their code */
	/* bytes of executable sections (of segments in a file without any), and of those covered by */
	uint64_t text_bytes;
	uint64_t eh_frame_bytes, go_bytes, debug_frame_bytes, code_bytes;
	uint64_t code_left;	/* that no FDE covers and that wasn't followed, over limits.code_bytes */
	bool go;		/* without go_bytes: it goes by frame pointers */
	uint32_t rows, sides;
	size_t bytes;		/* of the table */
	uint32_t reasons[RULE_REASONS_MAX]; /* rules refused, before merging of equal rows */
};

struct unwtab;

/* How to get the separate debug file: asked for at most once, and only if there is code that nothing in
 * the file itself describes. NULL: there is none. What open returns is borrowed for the call. */
struct unwtab_debug {
	const struct elf *(*open)(void *arg);
	void *arg;
};

/* debug may be NULL; elf is borrowed for the call.
 *	0
 *	-ENOENT		neither has call frame information for executable code
 *	-E2BIG		over one of the limits
 *	-ENOTSUP	a machine other than x86-64 and arm64, or ET_REL
 *	-EBADMSG	.eh_frame or .debug_frame can't be read
 *	-ENOMEM, and what pread says */
int must_check unwtab_compile(const struct elf *elf, const struct unwtab_debug *debug,
			      const struct unwtab_limits *limits, struct unwtab **ret);
/* A table of generated code, of rules in order of their addresses, which are its offsets. Each is in force
 * until the next; the last must be WK_CFA_NONE and is where the table ends. WK_CFA_SIDE isn't possible. n >= 2.
 * -E2BIG as above, -ENOMEM. */
struct unwtab_rule {
	uint64_t addr;
	struct wk_row row;	/* pc isn't read */
};
int must_check unwtab_build(const struct unwtab_rule *rules, size_t n,
			    const struct unwtab_limits *limits, struct unwtab **ret);
void unwtab_free(struct unwtab *t);

/* The table, wick_rows.h; borrowed until unwtab_free. */
const uint64_t *unwtab_words(const struct unwtab *t, size_t *ret_n);
const struct wk_table *unwtab_table(const struct unwtab *t);
const struct unwtab_stats *unwtab_stats(const struct unwtab *t);

/* The row for a file offset, found by the code that BPF runs (bpf/rows.h), and if it is WK_CFA_SIDE
 * its side rule (else *ret_side stays). -ENOENT outside of the table. */
int must_check unwtab_lookup(const struct unwtab *t, uint64_t offset, struct wk_row *ret_row,
			     struct wk_side *ret_side);

DEFINE_CLEANUP(unwtab, struct unwtab *, unwtab_free)

#endif
