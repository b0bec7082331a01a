/* cfi.h - reads DWARF call frame information: .eh_frame and .debug_frame.
 *
 *	struct cfi c = { .data = bytes, .size = n, .vaddr = section->addr, .machine = EM_X86_64 };
 *	struct cfi_fde fde;
 *	size_t pos = 0;
 *
 *	while ((r = cfi_next(&c, &pos, &fde)) != -ENOENT)
 *		if (!r)
 *			r = cfi_run(&fde, each_row, arg);
 *
 * Specifications: DWARF 5 section 6.4 and 7.24 (.debug_frame; versions 1, 3 and 4 of a CIE), Linux
 * Standard Base Core 5.0 section 10.6 (.eh_frame, its augmentations z, R, P, L, S), the Arm 64-bit
 * ABI's "DWARF for the Arm 64-bit Architecture" (augmentation B, return address state).
 *
 * What a row says is given as the table has it; rule.h makes sense of it. Only three registers are
 * followed, the ones a stack walk needs: frame pointer, return address, stack pointer.
 *
 * Hostile input: nothing is read outside of [data, data + size); each CFA instruction costs a few
 * nanoseconds and at least one byte, each entry's instructions are run once, and a CIE, which may
 * be read and run again where FDEs of several alternate, has a size limit. So the time is linear in size. No
 * allocation. Not thread-safe on one struct cfi (it remembers the last CIE).
 */
#ifndef WICK_UNWIND_CFI_H
#define WICK_UNWIND_CFI_H

#include "base/base.h"

#define CFI_CIE_MAX	    1024	/* bytes of a CIE; compilers emit about 30 */
#define CFI_CIE_PROGRAM_MAX 128		/* of them instructions; compilers emit about 10 */
#define CFI_REMEMBER_MAX    32		/* nested DW_CFA_remember_state; compilers nest 1 or 2 */

/* A piece of the section. */
struct cfi_bytes {
	const uint8_t *p;
	size_t n;
};

enum cfi_where {
	CFI_UNSPECIFIED,	/* no instruction named it: the ABI's default */
	CFI_UNDEFINED,
	CFI_SAME,
	CFI_AT_CFA,		/* saved at CFA + offset */
	CFI_IS_CFA,		/* is CFA + offset */
	CFI_IN_REG,		/* in another register */
	CFI_AT_EXPR,		/* saved where the expression says */
	CFI_IS_EXPR,		/* is what the expression says */
};

struct cfi_loc {
	enum cfi_where where;
	uint64_t reg;
	int64_t offset;
	struct cfi_bytes expr;	/* DWARF expression, not checked */
};

/* All that is known about one range of code. Of the CFA, CFI_IN_REG says reg + offset, CFI_IS_EXPR
 * the expression's value, CFI_UNSPECIFIED that nothing set it; the others don't occur. Pointers
 * live as long as the section. */
struct cfi_rule {
	struct cfi_loc cfa, fp, ra, sp, bx;	/* bx: x86-64 only */
	uint8_t scratch;	/* x86-64: bit n: scratch register n, 0 to 5, is saved at the CFA */
	int64_t ax;		/* of rax: CFA + this */
};

/* A CIE, as far as its FDEs need it. Private to cfi.c except for what struct cfi_fde shows. */
struct cfi_cie {
	struct cfi_bytes program;	/* initial instructions */
	uint64_t code_align;
	int64_t data_align;
	uint64_t ra_reg;
	size_t offset;		/* in the section */
	uint8_t pc_encoding;	/* DW_EH_PE_* of FDE addresses */
	bool augmented;		/* 'z': FDEs have augmentation data */
	bool signal;		/* 'S' */
	bool valid;
	int error;		/* of the instructions, which are run once */
	struct cfi_rule initial; /* what they say */
};

/* A section. The caller fills in the first group and keeps the bytes. */
struct cfi {
	const uint8_t *data;
	size_t size;
	uint64_t vaddr;		/* of data[0]: pc-relative addresses start from it */
	uint16_t machine;	/* EM_X86_64 or EM_AARCH64 */
	bool debug_frame;	/* else .eh_frame */
	bool to_zero;		/* size is only a bound: an entry of length zero ends it */

	struct cfi_cie last;	/* start with zeros */
};

struct cfi_fde {
	uint64_t start, size;	/* of the code, in the file's address space; size > 0, no wrap */
	size_t offset;		/* of the entry in the section */
	bool signal;		/* augmentation 'S': its frames are interrupted, not called */
	struct cfi_cie cie;
	struct cfi_bytes program;
	uint64_t program_vaddr;
	uint16_t machine;
};

/* Registers by DWARF number (psABI), 0 for machines that wick doesn't know. */
struct cfi_machine {
	uint8_t fp, sp, ra, bx;
};
struct cfi_machine cfi_machine(uint16_t machine);

/* The next FDE at or after *pos, which is moved behind it; CIEs are passed over.
 *	0		*ret is filled in
 *	-ENOENT		the end; *pos stays
 *	-EBADMSG	this entry is malformed; *pos is behind it, at the end if its length is wrong
 *	-ENOTSUP	this entry uses what wick doesn't read: an address relative to something
 *			other than the pc, an unknown augmentation or version, a CIE over its
 *			limit; *pos is behind it
 * FDEs for no code at all (size 0, as linkers leave for discarded functions) are passed over. */
int must_check cfi_next(struct cfi *c, size_t *pos, struct cfi_fde *ret);
/* The FDE at an offset that cfi_next has returned. Errors as above. */
int must_check cfi_fde_at(struct cfi *c, size_t offset, struct cfi_fde *ret);

/* Runs the FDE's instructions and calls row() for each range of code, ascending from fde->start; a
 * range ends where the next starts, the last at the FDE's end. rule is borrowed for the call.
 * 0, -EBADMSG (malformed instructions) or -ENOTSUP (unknown ones). After an error *ret_bad is the
 * address from which nothing is known, and the rows up to it have been given. */
typedef void cfi_row_fn(void *arg, uint64_t start, const struct cfi_rule *rule);
int must_check cfi_run(const struct cfi_fde *fde, cfi_row_fn *row, void *arg, uint64_t *ret_bad);

/* The address of .eh_frame as .eh_frame_hdr (PT_GNU_EH_FRAME, at vaddr) gives it. 0, -EBADMSG,
 * -ENOTSUP. */
int must_check cfi_eh_frame_hdr(const void *data, size_t size, uint64_t vaddr, uint64_t *ret);

#endif
