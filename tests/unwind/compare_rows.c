/* compare_rows.c - compares unwind tables with what elfutils reads in the same files.
 *
 *	compare_rows [-v] FILE|DIRECTORY...
 *
 * For every FDE that libdw finds in .eh_frame (or, where that doesn't cover it, in .debug_frame)
 * and every range of code that its instructions describe, the row found by unwtab_lookup must
 *	- be the same row throughout: none of ours starts inside of the range,
 *	- give the same CFA, return address and frame pointer as libdw's DWARF expressions do: both
 *	  are evaluated, over made-up registers and memory, not compared by shape,
 *	- on x86-64 give the same rbx, or say that it is lost where libdw doesn't have it at the CFA.
 * Gaps between FDEs of 16 bytes or more must have no rule but those for bare _start and signal
 * trampolines, and, on x86-64, plain ones made from their code. Directories are searched for x86-64
 * and arm64 ELF files, each inode once; links aren't followed. A line is printed for each large file,
 * with -v for every one, and a summary that counts the rules that we refuse, by reason. Exit status 1 if anything differs, 2 on usage.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <ftw.h>
#include <gelf.h>
#include <inttypes.h>
#include <time.h>

#include "base/map.h"
#include "elf/elf.h"
#include "unwind/unwtab.h"

enum {
	DIFFERENCES_SHOWN = 20, /* per file */
	OPS_STACK = 16,
	PADDING_MAX = 15,
};

/* ---- a machine to evaluate on --------------------------------------------------------------- */

struct machine {
	uint64_t seed; /* of registers and memory */
	uint64_t pc, cfa;
	uint16_t elf_machine;
};

static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t h = (a ^ 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;

	h = (h ^ (h >> 31) ^ b) * 0x94d049bb133111ebu;
	return h ^ (h >> 29);
}

static uint64_t memory(const struct machine *m, uint64_t addr)
{
	return mix(m->seed, addr);
}

static uint64_t reg_value(const struct machine *m, uint64_t n)
{
	if (n == 16 && m->elf_machine == EM_X86_64)
		return m->pc;
	return mix(m->seed + 1, n);
}

static unsigned int reg_fp(const struct machine *m)
{
	return m->elf_machine == EM_X86_64 ? 6 : 29;
}

static unsigned int reg_sp(const struct machine *m)
{
	return m->elf_machine == EM_X86_64 ? 7 : 31;
}

/* What becomes of the registers. A value that doesn't exist (undefined) is marked so. */
struct caller {
	uint64_t cfa, fp, ra, bx;
	bool root, no_fp, no_bx;
	bool any_bx; /* no row can say it */
	bool refused; /* we don't understand the rule; or the tool doesn't */
};

/* ---- libdw's view --------------------------------------------------------------------------- */

/* Evaluates a location description. False: an operation that this tool doesn't know. */
static bool run_op(const struct machine *m, const Dwarf_Op *op, uint64_t *st, size_t *n,
		   bool *is_value)
{
	uint64_t a, b;

	if (*n >= OPS_STACK)
		return false;
	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) {
		st[(*n)++] = op->atom - DW_OP_lit0;
		return true;
	}
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
		st[(*n)++] = reg_value(m, op->atom - DW_OP_breg0) + op->number;
		return true;
	}
	if ((op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31) || op->atom == DW_OP_regx) {
		st[(*n)++] = reg_value(m, op->atom == DW_OP_regx ? op->number
								 : (uint64_t)op->atom - DW_OP_reg0);
		*is_value = true;
		return true;
	}
	switch (op->atom) {
	case DW_OP_bregx:
		st[(*n)++] = reg_value(m, op->number) + op->number2;
		return true;
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_const2u:
	case DW_OP_const2s:
	case DW_OP_const4u:
	case DW_OP_const4s:
	case DW_OP_const8u:
	case DW_OP_const8s:
	case DW_OP_constu:
	case DW_OP_consts:
		st[(*n)++] = op->number;
		return true;
	case DW_OP_call_frame_cfa:
		st[(*n)++] = m->cfa;
		return true;
	case DW_OP_stack_value:
		*is_value = true;
		return true;
	default:
		break;
	}
	if (!*n)
		return false;
	if (op->atom == DW_OP_deref || op->atom == DW_OP_plus_uconst) {
		a = st[*n - 1];
		st[*n - 1] = op->atom == DW_OP_deref ? memory(m, a) : a + op->number;
		return true;
	}
	if (*n < 2)
		return false;
	b = st[--*n];
	a = st[*n - 1];
	switch (op->atom) {
	case DW_OP_plus:
		a += b;
		break;
	case DW_OP_minus:
		a -= b;
		break;
	case DW_OP_mul:
		a *= b;
		break;
	case DW_OP_and:
		a &= b;
		break;
	case DW_OP_shl:
		a = b < 64 ? a << b : 0;
		break;
	case DW_OP_ge:
		a = (int64_t)a >= (int64_t)b;
		break;
	default:
		return false;
	}
	st[*n - 1] = a;
	return true;
}

static bool evaluate(const struct machine *m, const Dwarf_Op *ops, size_t nops, bool *is_value,
		     uint64_t *ret)
{
	uint64_t st[OPS_STACK] = { 0 };
	size_t n = 0;

	*is_value = false;
	for (size_t i = 0; i < nops; i++)
		if (!run_op(m, &ops[i], st, &n, is_value))
			return false;
	if (!n)
		return false;
	*ret = st[n - 1];
	return true;
}

enum recovered { GOT, UNDEFINED, SAME, UNKNOWN };

static enum recovered recover(const struct machine *m, Dwarf_Frame *frame, int reg, uint64_t *ret)
{
	Dwarf_Op memory_of[3], *ops;
	bool is_value;
	size_t nops;

	if (dwarf_frame_register(frame, reg, memory_of, &ops, &nops))
		return UNKNOWN;
	if (!nops)
		return ops ? UNDEFINED : SAME;
	if (!evaluate(m, ops, nops, &is_value, ret))
		return UNKNOWN;
	if (!is_value)
		*ret = memory(m, *ret);
	return GOT;
}

/* Saved beside the return address, or unchanged: these a row can say.
 * For registers without a rule libdw 0.188 has rax and rbx the wrong way round: rbx is undefined. */
static void libdw_bx(const struct machine *m, Dwarf_Frame *frame, struct caller *c)
{
	uint64_t at = m->cfa - 16, n;
	Dwarf_Op memory_of[3], *ops;
	enum recovered bx;
	size_t nops = 0;

	if (m->elf_machine != EM_X86_64)
		return;
	bx = recover(m, frame, 3, &c->bx);
	if (bx == SAME || bx == UNDEFINED)
		c->bx = reg_value(m, 3);
	c->any_bx = bx == UNKNOWN;
	/* "CFA + n" are two operations; an expression may come to the same only by chance */
	if (bx == GOT && !dwarf_frame_register(frame, 3, memory_of, &ops, &nops) && nops > 2)
		nops = 0;
	for (n = 0; bx == GOT && nops && n < WK_BX_FAR; n++, at -= 8)
		if (c->bx == memory(m, at))
			return;
	c->no_bx |= bx == GOT;
}

static struct caller libdw_caller(struct machine *m, Dwarf_Frame *frame, int ra_reg)
{
	struct caller c = { 0 };
	enum recovered ra, fp;
	bool is_value;
	Dwarf_Op *ops;
	size_t nops;

	ra = recover(m, frame, ra_reg, &c.ra);
	if (ra == UNDEFINED) { /* then the CFA doesn't matter */
		c.root = true;
		return c;
	}
	if (dwarf_frame_cfa(frame, &ops, &nops) || !nops ||
	    !evaluate(m, ops, nops, &is_value, &c.cfa)) {
		c.refused = true;
		return c;
	}
	m->cfa = c.cfa;
	ra = recover(m, frame, ra_reg, &c.ra);
	if (ra == SAME)
		c.ra = reg_value(m, (uint64_t)ra_reg);
	fp = recover(m, frame, (int)reg_fp(m), &c.fp);
	if (fp == SAME)
		c.fp = reg_value(m, reg_fp(m));
	c.no_fp = fp == UNDEFINED || fp == UNKNOWN;
	c.refused = ra == UNKNOWN;
	libdw_bx(m, frame, &c);
	return c;
}

/* ---- our view ------------------------------------------------------------------------------- */

static uint64_t side_value(const struct machine *m, uint8_t where, uint8_t reg, int32_t off,
			   uint64_t same, bool *undefined)
{
	uint64_t at = (uint64_t)(int64_t)off;

	switch (where) {
	case WK_AT_CFA:
		return memory(m, m->cfa + at);
	case WK_AT_REG:
		return memory(m, reg_value(m, reg) + at);
	case WK_IN_REG:
		return reg_value(m, reg) + at;
	case WK_UNDEFINED:
		*undefined = true;
		return 0;
	default:
		return same;
	}
}

static void our_bx(const struct machine *m, struct wk_row row, struct caller *c)
{
	uint8_t n = WK_ROW_BX(row);

	if (m->elf_machine != EM_X86_64)
		return;
	c->no_bx = n > WK_BX_FAR;
	c->bx = n ? memory(m, c->cfa - 8 * (n + 1u)) : reg_value(m, 3);
}

static struct caller side_caller(struct machine *m, struct wk_row row, const struct wk_side *s)
{
	uint64_t at = reg_value(m, s->cfa_reg) + (uint64_t)(int64_t)s->cfa_off;
	struct caller c = { 0 };

	if (s->cfa_kind == WK_SIDE_INDEX)
		at += reg_value(m, s->cfa_reg2) * 8;
	c.cfa = s->cfa_kind == WK_SIDE_REG ? at : memory(m, at) + (uint64_t)(int64_t)s->cfa_add;
	m->cfa = c.cfa;
	c.ra = side_value(m, s->ra_where, s->ra_reg, s->ra_off, 0, &c.refused);
	c.fp = side_value(m, s->fp_where, s->fp_reg, s->fp_off, reg_value(m, reg_fp(m)), &c.no_fp);
	our_bx(m, row, &c);
	return c;
}

/* The kernel's signal frame: see bpf/step.h. */
static struct caller signal_caller(const struct machine *m)
{
	bool x86 = m->elf_machine == EM_X86_64;
	uint64_t sp = reg_value(m, reg_sp(m)) + (x86 ? 40 : 312);

	return (struct caller){
		.any_bx = true,
		.cfa = memory(m, sp + 8 * (x86 ? 15 : 31)),
		.fp = memory(m, sp + 8 * (x86 ? 10 : 29)),
		.ra = memory(m, sp + 8 * (x86 ? 16 : 32)),
	};
}

static struct caller our_caller(struct machine *m, struct wk_row row, const struct wk_side *side)
{
	uint64_t off = (uint64_t)(int64_t)row.cfa_off * 8, sp = reg_value(m, reg_sp(m)), slot;
	struct caller c = { 0 };

	switch (row.cfa) {
	case WK_CFA_SP:
		c.cfa = sp + off;
		break;
	case WK_CFA_FP:
		c.cfa = reg_value(m, reg_fp(m)) + off;
		break;
	case WK_CFA_LANDS: /* as in a leaf: sp is no part of what CFI says */
		c.cfa = reg_value(m, reg_fp(m)) + 16;
		c.any_bx = true;
		break;
	case WK_CFA_PLT:
		c.cfa = sp + 8 + ((m->pc & 15) >= (uint64_t)row.cfa_off ? 8 : 0);
		break;
	case WK_CFA_SIDE:
		return side_caller(m, row, side);
	case WK_CFA_SIGNAL:
		return signal_caller(m);
	case WK_CFA_ROOT:	/* WK_CFA_CLONE stands where there is no CFI */
		c.root = true;
		return c;
	default:
		c.refused = true;
		return c;
	}
	slot = c.cfa + (uint64_t)(int64_t)row.fp_off * 8;
	c.fp = WK_ROW_FP(row) == WK_FP_SAVED ? memory(m, slot) : reg_value(m, reg_fp(m));
	c.no_fp = WK_ROW_FP(row) == WK_FP_UNDEFINED;
	our_bx(m, row, &c);
	if (m->elf_machine == EM_X86_64)
		c.ra = memory(m, c.cfa - 8);
	else if (WK_ROW_RA(row) == WK_RA_LR)
		c.ra = reg_value(m, 30);
	else
		c.ra = memory(m, WK_ROW_RA(row) == WK_RA_AFTER_FP ? slot + 8 : slot);
	return c;
}

/* ---- one file ------------------------------------------------------------------------------- */

struct totals {
	size_t files, without, refused_files, differing_files;
	uint64_t fdes, ranges, differences, foreign, shadowed, unsupported, bytes, rows;
	uint64_t reasons[RULE_REASONS_MAX];
	double seconds;
};

struct code { /* an FDE's addresses */
	uint64_t start, end;
};

struct file {
	const char *path;
	struct elf *elf;
	struct unwtab *table;
	uint64_t *starts; /* file offset of each row */
	size_t nstarts;
	struct code *code; /* sorted, those of .eh_frame first to come */
	size_t ncode, code_cap;
	uint64_t ranges, differences, foreign, shadowed, unsupported, fdes;
	double seconds;
};

static bool verbose;
static struct totals totals;
static struct map seen = MAP_INIT(2 * sizeof(uint64_t));

static void differ(struct file *f, uint64_t vaddr, const char *what)
{
	if (f->differences++ < DIFFERENCES_SHOWN)
		printf("%s: %#" PRIx64 ": %s\n", f->path, vaddr, what);
}

/* File offsets of all rows. Row r lies in the block whose index entries enclose it. */
static int number_rows(struct file *f)
{
	const struct wk_table *t = unwtab_table(f->table);
	size_t n;
	const uint64_t *words = unwtab_words(f->table, &n);
	const uint32_t *index = (const uint32_t *)words;
	const struct wk_row *rows = (const struct wk_row *)(words + WK_TABLE_ROWS(t));

	f->nstarts = t->rows;
	f->starts = calloc(f->nstarts + 1, sizeof(*f->starts));
	if (!f->starts)
		return -ENOMEM;
	f->starts[0] = t->base;
	for (uint32_t b = 0; b < t->blocks; b++) {
		uint64_t at = t->base + ((uint64_t)b << WK_BLOCK_SHIFT);

		for (uint32_t r = index[b] + 1; r <= index[b + 1] && r < t->rows; r++)
			f->starts[r] = at + (uint16_t)(rows[r].pc - (uint16_t)at);
	}
	f->starts[f->nstarts] = UINT64_MAX;
	return 0;
}

/* Where the row in force at an offset ends. */
static uint64_t row_end(const struct file *f, uint64_t offset)
{
	size_t lo = 0, hi = f->nstarts;

	while (lo < hi) { /* the first that starts behind offset */
		size_t mid = lo + (hi - lo) / 2;

		if (f->starts[mid] > offset)
			hi = mid;
		else
			lo = mid + 1;
	}
	return f->starts[lo];
}

static const char *compare_callers(const struct caller *dw, const struct caller *our)
{
	if (dw->root || our->root)
		return dw->root == our->root ? NULL : "outermost frame";
	if (dw->cfa != our->cfa)
		return "CFA";
	if (dw->ra != our->ra)
		return "return address";
	if (dw->no_fp != our->no_fp || (!dw->no_fp && dw->fp != our->fp))
		return "frame pointer";
	if (!dw->any_bx && !our->any_bx &&
	    (dw->no_bx != our->no_bx || (!dw->no_bx && dw->bx != our->bx)))
		return "rbx";
	return NULL;
}

/* Go: our rows are from another source, so they may start elsewhere; of .debug_frame only the CFA is true
 * (unwtab.h), and not where sp moves to another stack. */
static void compare_go_range(struct file *f, Dwarf_Frame *frame, uint64_t start, uint64_t end)
{
	struct machine m = { .elf_machine = elf_machine(f->elf), .seed = mix(start, 0), .pc = start };
	struct caller dw = libdw_caller(&m, frame, 16), our;
	struct wk_side side;
	struct wk_row row;
	uint64_t offset, last;

	f->ranges++;
	if (elf_vaddr_to_offset(f->elf, start, &offset))
		return;
	last = offset + (end - start);
	for (; offset < last; offset = row_end(f, offset)) {
		if (unwtab_lookup(f->table, offset, &row, &side) || row.cfa != WK_CFA_SP)
			continue;
		our = our_caller(&m, row, &side);
		if (our.cfa != dw.cfa || our.ra != dw.ra)
			differ(f, end - (last - offset), "CFA of Go's");
	}
}

/* libdw's frame is in force for addresses [start, end). */
static void compare_range(struct file *f, Dwarf_Frame *frame, uint64_t start, uint64_t end)
{
	struct machine m = { .elf_machine = elf_machine(f->elf) };
	Dwarf_Addr frame_start, frame_end;
	int ra_reg = dwarf_frame_info(frame, &frame_start, &frame_end, NULL);
	struct wk_side side;
	struct wk_row row;
	uint64_t offset;

	f->ranges++;
	if (elf_vaddr_to_offset(f->elf, start, &offset)) {
		differ(f, start, "not in the file");
		return;
	}
	if (unwtab_lookup(f->table, offset, &row, &side)) {
		differ(f, start, "not in the table");
		return;
	}
	if (row_end(f, offset) < offset + (end - start)) {
		differ(f, start, "a row starts inside of the range");
		return;
	}
	for (uint64_t pass = 0; pass < 2; pass++) { /* PLT rules depend on pc */
		struct caller dw, our;
		const char *what;

		m.seed = mix(start, pass);
		m.pc = pass ? end - 1 : start;
		dw = libdw_caller(&m, frame, ra_reg);
		our = our_caller(&m, row, &side);
		if (our.refused || dw.refused) {
			f->unsupported += !pass;
			if (our.refused != dw.refused && row.cfa != WK_CFA_BAD)
				differ(f, start,
				       our.refused ? "no rule" : "a rule unknown to libdw");
			return;
		}
		what = compare_callers(&dw, &our);
		if (what) {
			differ(f, start, what);
			return;
		}
	}
}

/* libdw can't read the FDE at an address: it gives up as a whole, we where the mistake is. */
static void compare_refusal(struct file *f, uint64_t addr)
{
	struct wk_side side;
	struct wk_row row;
	uint64_t offset, end;

	f->unsupported++;
	if (elf_vaddr_to_offset(f->elf, addr, &offset))
		return;
	for (end = offset; end - offset < 1 << 20; end = row_end(f, end))
		if (unwtab_lookup(f->table, end, &row, &side) || row.cfa == WK_CFA_BAD)
			return;
	differ(f, addr, "libdw refuses this FDE");
}

static void compare_fde(struct file *f, Dwarf_CFI *cfi, const struct code *fde, bool go)
{
	uint64_t addr = fde->start;

	while (addr < fde->end) {
		Dwarf_Addr start, end;
		Dwarf_Frame *frame = NULL;

		if (dwarf_cfi_addrframe(cfi, addr, &frame)) {
			compare_refusal(f, addr);
			return;
		}
		dwarf_frame_info(frame, &start, &end, NULL);
		end = MIN(end, fde->end);
		if (end > addr)
			(go ? compare_go_range : compare_range)(f, frame, addr, end);
		free(frame);
		if (end <= addr) {
			differ(f, addr, "libdw doesn't advance");
			return;
		}
		addr = end;
	}
}

/* ---- libdw's list of FDEs ------------------------------------------------------------------- */

static size_t pointer_size(uint8_t encoding)
{
	switch (encoding & 7) {
	case DW_EH_PE_udata2:
		return 2;
	case DW_EH_PE_udata4:
		return 4;
	default:
		return 8;
	}
}

/* The encoding of addresses in the FDEs of a CIE, which libdw doesn't tell; -1 if too odd. */
static int address_encoding(const Dwarf_CIE *cie)
{
	const uint8_t *p = cie->augmentation_data;
	const char *a = cie->augmentation;

	if (*a != 'z')
		return DW_EH_PE_absptr;
	while (*++a && *a != 'R') {
		if (*a == 'L')
			p++;
		else if (*a == 'P')
			p += 1 + pointer_size(*p);
		else if (*a != 'S' && *a != 'B')
			return -1;
	}
	return *a ? *p : DW_EH_PE_absptr;
}

static bool decode_fde(const Dwarf_FDE *fde, int encoding, uint64_t section, const uint8_t *data,
		       struct code *ret)
{
	size_t size = (encoding & 7) == DW_EH_PE_udata4 ? 4 : 8;
	uint64_t start = 0, length = 0;

	if ((encoding & 7) == DW_EH_PE_udata2 || (encoding & 7) == DW_EH_PE_uleb128 ||
	    (size_t)(fde->end - fde->start) < 2 * size)
		return false;
	memcpy(&start, fde->start, size);
	memcpy(&length, fde->start + size, size);
	if (size == 4 && encoding & DW_EH_PE_signed)
		start = (uint64_t)(int32_t)start;
	if ((encoding & 0x70) == DW_EH_PE_pcrel)
		start += section + (uint64_t)(fde->start - data);
	*ret = (struct code){ start, start + length };
	return length > 0 && ret->end > start;
}

static bool shadowed(const struct file *f, size_t n, const struct code *c)
{
	for (size_t i = 0; i < n; i++)
		if (f->code[i].start < c->end && c->start < f->code[i].end)
			return true;
	return false;
}

static int list_fdes(struct file *f, Elf *elf, const char *section, bool eh_frame)
{
	const struct elf_section *s = elf_section_by_name(f->elf, section);
	Elf_Data *data = NULL;
	Dwarf_CFI_Entry e, cie;
	Dwarf_Off at = 0, next, cie_next;
	size_t before = f->ncode;
	unsigned char ident[EI_NIDENT];

	memcpy(ident, elf_getident(elf, NULL), sizeof(ident));
	for (size_t i = 1; s && !data && i < elf_section_count(f->elf); i++)
		if (elf_section(f->elf, i) == s)
			data = elf_getdata(elf_getscn(elf, i), NULL);
	if (!data || !data->d_size)
		return 0;
	for (; !dwarf_next_cfi(ident, data, eh_frame, at, &next, &e); at = next) {
		struct code c;
		uint64_t offset;
		int encoding, r;

		if (dwarf_cfi_cie_p(&e))
			continue;
		if (dwarf_next_cfi(ident, data, eh_frame, e.fde.CIE_pointer, &cie_next, &cie) ||
		    !dwarf_cfi_cie_p(&cie))
			continue;
		encoding = address_encoding(&cie.cie);
		if (encoding < 0 || !decode_fde(&e.fde, encoding, s->addr, data->d_buf, &c))
			continue;
		if (!elf_exec_segment(f->elf, c.start) ||
		    elf_vaddr_to_offset(f->elf, c.start, &offset)) {
			f->foreign++;
			continue;
		}
		if (shadowed(f, before, &c)) {
			f->shadowed++;
			continue;
		}
		r = array_grow(&f->code, &f->code_cap, f->ncode + 1, sizeof(*f->code));
		if (r)
			return r;
		f->code[f->ncode++] = c;
	}
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct code *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Between FDEs nothing is known, except what the code itself shows: the rules that compare_code judges. */
static void compare_gaps(struct file *f)
{
	struct wk_side side;
	struct wk_row row;
	uint64_t offset;

	if (!f->ncode)
		return;
	qsort(f->code, f->ncode, sizeof(*f->code), by_start);
	for (size_t i = 0; i + 1 < f->ncode; i++) {
		const struct code *c = &f->code[i];

		if (c[1].start < c->end || c[1].start - c->end <= PADDING_MAX ||
		    elf_vaddr_to_offset(f->elf, c->end + PADDING_MAX, &offset))
			continue;
		if (unwtab_lookup(f->table, offset, &row, &side) || row.cfa == WK_CFA_NONE ||
		    row.cfa == WK_CFA_ROOT || row.cfa == WK_CFA_SIGNAL || row.cfa == WK_CFA_LEAF)
			continue;
		if (elf_machine(f->elf) != EM_X86_64 || (row.cfa != WK_CFA_SP && row.cfa != WK_CFA_FP))
			differ(f, c->end + PADDING_MAX, "a rule for a gap");
	}
}

static bool is_go(const struct elf *elf)
{
	return elf_section_by_name(elf, ".gopclntab") ||
	       elf_section_by_name(elf, ".go.buildinfo") ||
	       elf_section_by_name(elf, ".data.rel.ro.gopclntab");
}

static int compare_section(struct file *f, Elf *elf, Dwarf_CFI *cfi, const char *name,
			   bool eh_frame)
{
	bool go = !eh_frame && is_go(f->elf);
	size_t first = f->ncode;
	int r = cfi ? list_fdes(f, elf, name, eh_frame) : 0;

	for (size_t i = first; i < f->ncode && !r; i++)
		compare_fde(f, cfi, &f->code[i], go);
	f->fdes += f->ncode - first;
	return r;
}

static int compare_cfi(struct file *f, int fd)
{
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	Dwarf *dw = elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
	Dwarf_CFI *cfi = elf ? dwarf_getcfi_elf(elf) : NULL;
	int r = elf ? 0 : -EBADMSG;

	if (!r)
		r = compare_section(f, elf, cfi, ".eh_frame", true);
	if (!r && dw)
		r = compare_section(f, elf, dwarf_getcfi(dw), ".debug_frame", false);
	if (!is_go(f->elf))
		compare_gaps(f);
	if (cfi)
		dwarf_cfi_end(cfi);
	if (dw)
		dwarf_end(dw);
	if (elf)
		elf_end(elf);
	return r;
}

/* ---- all files ------------------------------------------------------------------------------ */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void print_file(const struct file *f)
{
	const struct unwtab_stats *s = unwtab_stats(f->table);

	printf("%-60s %7" PRIu64 " FDEs %8" PRIu64
	       " ranges %8u rows %5u sides %6.2f B/range %7.1f ms\n",
	       f->path, f->fdes, f->ranges, s->rows, s->sides,
	       f->ranges ? (double)s->bytes / (double)f->ranges : 0.0, f->seconds * 1e3);
}

static void add_up(const struct file *f)
{
	const struct unwtab_stats *s = unwtab_stats(f->table);

	totals.files++;
	totals.differing_files += f->differences > 0;
	totals.fdes += f->fdes;
	totals.ranges += f->ranges;
	totals.differences += f->differences;
	totals.foreign += f->foreign;
	totals.shadowed += f->shadowed;
	totals.unsupported += f->unsupported;
	totals.bytes += s->bytes;
	totals.rows += s->rows;
	totals.seconds += f->seconds;
	for (size_t i = 0; i < RULE_REASONS_MAX; i++)
		totals.reasons[i] += s->reasons[i];
}

static int compare_file(const char *path, int fd)
{
	struct file f = { .path = path };
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	const struct unwtab_limits limits = UNWTAB_LIMITS_DEFAULT;
	double started = now();
	int r;

	if (elf_open_fd(fd, &f.elf, NULL))
		return 0; /* not for us */
	r = unwtab_compile(f.elf, NULL, &limits, &f.table);
	f.seconds = now() - started;
	if (r == -ENOENT || r == -ENOTSUP) {
		totals.without++;
		r = 0;
	} else if (r) {
		totals.refused_files++;
		printf("%s: %s\n", path, strerror(-r));
		r = 0;
	} else {
		r = number_rows(&f);
		if (!r)
			r = compare_cfi(&f, fd);
		add_up(&f);
		if (verbose || f.seconds > 0.03 || !strncmp(base, "libcrypto.so", 12) ||
		    !strcmp(base, "libc.so.6"))
			print_file(&f);
	}
	free(f.starts);
	free(f.code);
	unwtab_free(f.table);
	elf_free(f.elf);
	return r;
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	uint64_t key[2] = { st->st_dev, st->st_ino };
	unsigned char magic[4] = { 0 };
	uint32_t n;
	bool added;
	int fd, r = 0;

	(void)ftw;
	if (type != FTW_F || !S_ISREG(st->st_mode) || st->st_size < 64 ||
	    map_put(&seen, key, &n, &added) || !added)
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	if (pread(fd, magic, sizeof(magic), 0) == sizeof(magic) && !memcmp(magic, ELFMAG, SELFMAG))
		r = compare_file(path, fd);
	close(fd);
	return r;
}

static void print_totals(void)
{
	printf("%zu files (%zu differ), %zu without call frame information, %zu refused\n",
	       totals.files, totals.differing_files, totals.without, totals.refused_files);
	printf("%" PRIu64 " FDEs, %" PRIu64 " ranges compared, %" PRIu64 " differences, %" PRIu64
	       " unsupported\n",
	       totals.fdes, totals.ranges, totals.differences, totals.unsupported);
	printf("%" PRIu64 " FDEs outside of executable segments, %" PRIu64
	       " of .debug_frame covered by .eh_frame\n",
	       totals.foreign, totals.shadowed);
	printf("%" PRIu64 " rows, %.2f bytes per range, compiled in %.2f s: %.0f ns per range\n",
	       totals.rows, (double)totals.bytes / (double)MAX(totals.ranges, 1u), totals.seconds,
	       totals.seconds * 1e9 / (double)MAX(totals.ranges, 1u));
	for (unsigned int i = 1; i < RULE_REASONS_MAX; i++)
		if (totals.reasons[i])
			printf("refused: %s: %" PRIu64 "\n", rule_reason_label(i),
			       totals.reasons[i]);
}

int main(int argc, char **argv)
{
	int opt;

	while ((opt = getopt(argc, argv, "v")) == 'v')
		verbose = true;
	if (opt != -1 || optind == argc) {
		fprintf(stderr, "usage: compare_rows [-v] FILE|DIRECTORY...\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	elf_version(EV_CURRENT);
	for (int i = optind; i < argc; i++)
		if (nftw(argv[i], visit, 32, FTW_PHYS))
			return 1;
	print_totals();
	map_free(&seen);
	return totals.differences || totals.refused_files ? 1 : 0;
}
