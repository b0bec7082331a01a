/* rule.c - see rule.h. */
#include <elf.h>

#include "unwind/rule.h"

const char *rule_reason_label(enum rule_reason reason)
{
	static const char *const labels[] = {
#define LABEL(constant, label) [constant] = label,
		RULE_REASONS(LABEL)
	};

	return reason < RULE_REASONS_MAX ? labels[reason] : "unknown";
}

/* ---- expressions ---------------------------------------------------------------------------- */

/* DWARF 5 table 7.9. */
enum {
	OP_DEREF = 0x06, OP_CONST1U = 0x08, OP_CONST8S = 0x0f, OP_MINUS = 0x1c, OP_MUL = 0x1e,
	OP_PLUS = 0x22, OP_PLUS_UCONST = 0x23, OP_SHL = 0x24, OP_LIT0 = 0x30, OP_LIT31 = 0x4f,
	OP_BREG0 = 0x70, OP_BREG31 = 0x8f, OP_BREGX = 0x92,
};

enum { NO_REG = -1, CFA_REG = -2, STACK_MAX = 4 };

/* A value: reg + index * 8 + offset, or, when loaded, *(that) + add. Arithmetic is modulo 2^64. */
struct value {
	int reg, index;
	uint64_t offset;
	bool loaded;
	uint64_t add;
};

struct evaluation {
	const uint8_t *p, *end;
	struct value stack[STACK_MAX];
	size_t n;
};

static bool is_constant(const struct value *v)
{
	return v->reg == NO_REG && v->index == NO_REG && !v->loaded;
}

static bool is_register(const struct value *v)
{
	return v->reg != NO_REG && v->index == NO_REG && !v->loaded;
}

static bool leb(struct evaluation *e, bool is_signed, uint64_t *ret)
{
	unsigned int shift = 0;
	uint64_t v = 0;
	uint8_t b;

	do {
		if (e->p == e->end || shift > 63)
			return false;
		b = *e->p++;
		v |= (uint64_t)(b & 0x7f) << shift;
		shift += 7;
	} while (b & 0x80);
	if (is_signed && b & 0x40 && shift < 64)
		v |= ~UINT64_C(0) << shift;
	*ret = v;
	return true;
}

/* DW_OP_const1u, const1s, const2u, ... const8s: size and sign are in the opcode. */
static bool constant(struct evaluation *e, uint8_t op, uint64_t *ret)
{
	unsigned int size = 1u << ((op - OP_CONST1U) / 2), unused = 64 - 8 * size;
	uint64_t v = 0;

	if ((size_t)(e->end - e->p) < size)
		return false;
	memcpy(&v, e->p, size);
	e->p += size;
	if (op & 1)
		v = (uint64_t)((int64_t)(v << unused) >> unused);
	*ret = v;
	return true;
}

static bool push(struct evaluation *e, int reg, uint64_t offset)
{
	if (e->n == STACK_MAX)
		return false;
	e->stack[e->n++] = (struct value){ .reg = reg, .index = NO_REG, .offset = offset };
	return true;
}

/* Adds a constant to the top of the stack. */
static bool add_constant(struct evaluation *e, uint64_t n)
{
	struct value *v;

	if (!e->n)
		return false;
	v = &e->stack[e->n - 1];
	if (v->loaded)
		v->add += n;
	else
		v->offset += n;
	return true;
}

static bool add(struct evaluation *e)
{
	struct value *a = &e->stack[e->n - 2], *b = &e->stack[e->n - 1], swap;

	if (is_constant(a)) {
		swap = *a;
		*a = *b;
		*b = swap;
	}
	e->n--;
	if (is_constant(b))
		return add_constant(e, b->offset);
	if (a->reg == NO_REG) {		/* index first: the register joins it */
		swap = *a;
		*a = *b;
		*b = swap;
	}
	/* register + index * 8 */
	if (!is_register(a) || b->loaded || b->reg != NO_REG)
		return false;
	a->index = b->index;
	a->offset += b->offset;
	return true;
}

/* The top two of the stack; b is the later one. */
static bool binary(struct evaluation *e, uint8_t op)
{
	struct value *a, *b;

	if (e->n < 2)
		return false;
	if (op == OP_PLUS)
		return add(e);
	a = &e->stack[e->n - 2];
	b = &e->stack[e->n - 1];
	if (!is_constant(b))
		return false;
	e->n--;
	if (op == OP_MINUS)
		return add_constant(e, 0 - b->offset);
	if (b->offset != (op == OP_SHL ? 3 : 8) || !is_register(a) || a->reg == CFA_REG)
		return false;
	*a = (struct value){ .reg = NO_REG, .index = a->reg, .offset = a->offset * 8 };
	return true;
}

static bool evaluate_op(struct evaluation *e, uint8_t op)
{
	struct value *top;
	uint64_t n, reg;

	if (op >= OP_BREG0 && op <= OP_BREG31)
		return leb(e, true, &n) && push(e, op - OP_BREG0, n);
	if (op == OP_BREGX)
		return leb(e, false, &reg) && reg < 256 && leb(e, true, &n) && push(e, (int)reg, n);
	if (op >= OP_LIT0 && op <= OP_LIT31)
		return push(e, NO_REG, op - OP_LIT0);
	if (op >= OP_CONST1U && op <= OP_CONST8S)
		return constant(e, op, &n) && push(e, NO_REG, n);
	if (op == OP_PLUS_UCONST)
		return leb(e, false, &n) && add_constant(e, n);
	if (op == OP_PLUS || op == OP_MINUS || op == OP_SHL || op == OP_MUL)
		return binary(e, op);
	if (op != OP_DEREF || !e->n)
		return false;
	top = &e->stack[e->n - 1];
	if (top->loaded || top->reg == NO_REG)
		return false;
	top->loaded = true;
	return true;
}

/* Works an expression out. The rules of registers start with the CFA on the stack (DWARF 5 section
 * 6.4.2.3). False: not a value of our form. */
static bool evaluate(struct cfi_bytes expr, bool with_cfa, struct value *ret)
{
	struct evaluation e = { .p = expr.p, .end = expr.p + expr.n };

	if (expr.n > RULE_EXPR_MAX)
		return false;
	if (with_cfa)
		push(&e, CFA_REG, 0);
	while (e.p < e.end)
		if (!evaluate_op(&e, *e.p++))
			return false;
	if (!e.n)
		return false;
	*ret = e.stack[e.n - 1];
	return true;
}

/* What linkers write for the lazy .plt of x86-64: each entry pushes once, at the same place.
 *	rsp + 8 + ((rip & 15) >= N) * 8
 * where N depends on the entry's layout. A special form, since it has a comparison in it. */
static bool is_plt(struct cfi_bytes expr, int16_t *ret_n)
{
	/* breg7 8; breg16 0; lit15; and; litN; ge; lit3; shl; plus */
	static const uint8_t head[] = { 0x77, 8, 0x80, 0, 0x3f, 0x1a };
	static const uint8_t tail[] = { 0x2a, 0x33, 0x24, 0x22 };
	enum { LIT = sizeof(head), SIZE = LIT + 1 + sizeof(tail) };

	if (expr.n != SIZE || memcmp(expr.p, head, sizeof(head)) ||
	    memcmp(expr.p + LIT + 1, tail, sizeof(tail)) || expr.p[LIT] < OP_LIT0 ||
	    expr.p[LIT] > OP_LIT0 + 15)
		return false;
	*ret_n = expr.p[LIT] - OP_LIT0;
	return true;
}

/* ---- parts of a rule ------------------------------------------------------------------------ */

static bool narrow(uint64_t v, __s32 *ret)
{
	*ret = (__s32)v;
	return (int64_t)v == *ret;
}

/* Registers that wk_regs has. arm64: fp, lr, sp; nothing seen there needs others. */
static bool known_register(uint16_t machine, uint64_t reg)
{
	return machine == EM_AARCH64 ? reg >= 29 && reg <= 31 : reg < 16;
}

static enum rule_reason side_cfa(uint16_t machine, const struct cfi_loc *cfa, struct wk_side *s)
{
	struct value v;

	if (cfa->where == CFI_IN_REG) {
		if (!known_register(machine, cfa->reg))
			return RULE_CFA_REGISTER;
		s->cfa_kind = WK_SIDE_REG;
		s->cfa_reg = (__u8)cfa->reg;
		return narrow((uint64_t)cfa->offset, &s->cfa_off) ? RULE_OK : RULE_OFFSET;
	}
	if (!evaluate(cfa->expr, false, &v) || v.reg == NO_REG || (!v.loaded && v.index != NO_REG))
		return RULE_CFA_EXPRESSION;
	if (!known_register(machine, (uint64_t)v.reg))
		return RULE_CFA_REGISTER;
	s->cfa_kind = v.loaded ? WK_SIDE_DEREF : WK_SIDE_REG;
	s->cfa_reg = (__u8)v.reg;
	if (v.index != NO_REG) {
		if (!known_register(machine, (uint64_t)v.index))
			return RULE_CFA_REGISTER;
		s->cfa_kind = WK_SIDE_INDEX;
		s->cfa_reg2 = (__u8)v.index;
	}
	if (!narrow(v.offset, &s->cfa_off) || !narrow(v.add, &s->cfa_add))
		return RULE_OFFSET;
	return RULE_OK;
}

/* Where a register is, as side rules have it: AT_CFA, AT_REG or IN_REG. False: none of these. */
static bool side_where(uint16_t machine, const struct cfi_loc *l, __u8 *where, __u8 *reg,
		       __s32 *off)
{
	struct value v;

	switch (l->where) {
	case CFI_AT_CFA:
		*where = WK_AT_CFA;
		return narrow((uint64_t)l->offset, off);
	case CFI_IN_REG:
		*where = WK_IN_REG;
		*reg = (__u8)l->reg;
		return known_register(machine, l->reg);
	case CFI_AT_EXPR:
	case CFI_IS_EXPR:
		/* "is the value of *(x)" and "is saved at x" say the same. */
		if (!evaluate(l->expr, true, &v) || v.reg == NO_REG || v.index != NO_REG || v.add ||
		    v.loaded != (l->where == CFI_IS_EXPR))
			return false;
		*where = v.reg == CFA_REG ? WK_AT_CFA : WK_AT_REG;
		*reg = v.reg == CFA_REG ? 0 : (__u8)v.reg;
		return narrow(v.offset, off) && (!*reg || known_register(machine, *reg));
	default:
		return false;
	}
}

static enum rule_reason side_ra(uint16_t machine, const struct cfi_loc *ra, struct wk_side *s)
{
	if (ra->where == CFI_UNSPECIFIED || ra->where == CFI_SAME) {
		/* Unchanged since the call: true of arm64's link register, nonsense for a pc. */
		if (machine != EM_AARCH64)
			return RULE_RA_UNSET;
		s->ra_where = WK_IN_REG;
		s->ra_reg = cfi_machine(machine).ra;
		return RULE_OK;
	}
	return side_where(machine, ra, &s->ra_where, &s->ra_reg, &s->ra_off) ? RULE_OK :
									       RULE_RA_EXPRESSION;
}

static enum rule_reason side_fp(uint16_t machine, const struct cfi_loc *fp, struct wk_side *s)
{
	if (fp->where == CFI_UNSPECIFIED || fp->where == CFI_SAME) {
		s->fp_where = WK_SAME;
		return RULE_OK;
	}
	if (fp->where != CFI_UNDEFINED &&
	    side_where(machine, fp, &s->fp_where, &s->fp_reg, &s->fp_off))
		return RULE_OK;
	s->fp_where = WK_UNDEFINED;
	s->fp_reg = 0;
	s->fp_off = 0;
	return fp->where == CFI_UNDEFINED ? RULE_OK : RULE_FP;
}

/* ---- whole rules ---------------------------------------------------------------------------- */

static bool in_row(int64_t offset, __s16 *ret)
{
	*ret = (__s16)(offset / 8);
	return offset % 8 == 0 && *ret == offset / 8;
}

static uint8_t row_bx(const struct cfi_rule *rule)
{
	const struct cfi_loc *bx = &rule->bx;

	if (bx->where == CFI_UNSPECIFIED || bx->where == CFI_SAME)
		return WK_BX_SAME;
	if (bx->where == CFI_AT_CFA && bx->offset % 8 == 0 && bx->offset <= -16 &&
	    bx->offset >= -8 * (WK_BX_FAR + 1))
		return (uint8_t)(bx->offset / -8 - 1);
	return WK_BX_LOST;
}

static bool row_cfa(uint16_t machine, const struct cfi_loc *cfa, struct wk_row *row)
{
	struct cfi_machine regs = cfi_machine(machine);

	if (cfa->where == CFI_IS_EXPR && machine == EM_X86_64 && is_plt(cfa->expr, &row->cfa_off)) {
		row->cfa = WK_CFA_PLT;
		return true;
	}
	if (cfa->where != CFI_IN_REG || (cfa->reg != regs.sp && cfa->reg != regs.fp))
		return false;
	row->cfa = cfa->reg == regs.sp ? WK_CFA_SP : WK_CFA_FP;
	return in_row(cfa->offset, &row->cfa_off);
}

/* The common rules, straight into the row. False: not one of them. */
static bool row_rule(uint16_t machine, const struct cfi_rule *rule, struct wk_row *row)
{
	const struct cfi_loc *fp = &rule->fp, *ra = &rule->ra;
	enum wk_fp f = WK_FP_SAME;
	uint8_t a;

	if (!row_cfa(machine, &rule->cfa, row))
		return false;
	row->fp_off = 0;
	if (fp->where == CFI_AT_CFA) {
		f = WK_FP_SAVED;
		if (!in_row(fp->offset, &row->fp_off))
			return false;
	} else if (fp->where == CFI_UNDEFINED) {
		f = WK_FP_UNDEFINED;
	} else if (fp->where != CFI_UNSPECIFIED && fp->where != CFI_SAME) {
		return false;
	}

	if (machine == EM_X86_64) {
		a = row_bx(rule);
		if (ra->where != CFI_AT_CFA || ra->offset != -8)
			return false;
	} else if (ra->where == CFI_UNSPECIFIED || ra->where == CFI_SAME) {
		a = WK_RA_LR;
	} else if (ra->where == CFI_AT_CFA && f == WK_FP_SAVED) {
		a = WK_RA_AFTER_FP;
		if (ra->offset != fp->offset + 8)
			return false;
	} else {
		a = WK_RA_SAVED;
		if (ra->where != CFI_AT_CFA || !in_row(ra->offset, &row->fp_off))
			return false;
	}
	row->fp_ra = (__u8)(f | a << 4);
	return true;
}

/* The kernel's signal frame, described by CFI as "everything is in the ucontext at sp": then the
 * kernel's layout serves better, since it has the general registers as well. arm64 has no other
 * signal frames. x86-64: sp and pc in struct sigcontext, at 160 and 168 from the ucontext. */
static bool is_sigframe(uint16_t machine, const struct cfi_rule *rule)
{
	struct value cfa, ra;

	if (machine == EM_AARCH64)
		return true;
	return rule->cfa.where == CFI_IS_EXPR && rule->ra.where == CFI_AT_EXPR &&
	       evaluate(rule->cfa.expr, false, &cfa) && evaluate(rule->ra.expr, true, &ra) &&
	       cfa.reg == 7 && cfa.index == NO_REG && cfa.loaded && cfa.offset == 160 && !cfa.add &&
	       ra.reg == 7 && ra.index == NO_REG && !ra.loaded && ra.offset == 168;
}

/* The caller's sp is the CFA, whether CFI leaves it at that or says so. */
static bool sp_is_cfa(const struct cfi_loc *sp)
{
	return sp->where == CFI_UNSPECIFIED || (sp->where == CFI_IS_CFA && !sp->offset);
}

static enum rule_reason compile(uint16_t machine, bool signal, const struct cfi_rule *rule,
				struct wk_row *row, struct wk_side *s)
{
	enum rule_reason r, fp;

	if (rule->ra.where == CFI_UNDEFINED) {
		row->cfa = WK_CFA_ROOT;
		return RULE_OK;
	}
	if (signal && is_sigframe(machine, rule)) {
		row->cfa = WK_CFA_SIGNAL;
		return RULE_OK;
	}
	if (rule->cfa.where == CFI_UNSPECIFIED)
		return RULE_CFA_UNSET;
	if (!sp_is_cfa(&rule->sp))
		return RULE_SP;
	if (!signal && row_rule(machine, rule, row))
		return RULE_OK;

	s->exact = signal;
	r = side_cfa(machine, &rule->cfa, s);
	if (!r)
		r = side_ra(machine, &rule->ra, s);
	if (r)
		return r;
	fp = side_fp(machine, &rule->fp, s);
	*row = (struct wk_row){ .cfa = WK_CFA_SIDE };
	if (machine == EM_X86_64)
		row->fp_ra = (__u8)(row_bx(rule) << 4);
	return fp;
}

enum rule_reason rule_compile(uint16_t machine, bool signal, const struct cfi_rule *rule,
			      struct wk_row *ret_row, struct wk_side *ret_side)
{
	struct wk_row row = { 0 };
	struct wk_side side = { 0 };
	enum rule_reason r = compile(machine, signal, rule, &row, &side);

	if (r && r != RULE_FP)
		row = (struct wk_row){ .cfa = WK_CFA_BAD };
	*ret_row = row;
	*ret_side = side;
	return r;
}
