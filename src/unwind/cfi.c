/* cfi.c - see cfi.h. */
#include <elf.h>

#include "unwind/cfi.h"

/* DWARF 5 table 7.29, and the vendor's in use on our machines. The high two bits of an opcode are
 * the first three; their operand is in the low six. */
enum {
	CFA_ADVANCE_LOC = 0x40, CFA_OFFSET = 0x80, CFA_RESTORE = 0xc0,
	CFA_NOP = 0, CFA_SET_LOC, CFA_ADVANCE_LOC1, CFA_ADVANCE_LOC2, CFA_ADVANCE_LOC4,
	CFA_OFFSET_EXTENDED, CFA_RESTORE_EXTENDED, CFA_UNDEFINED, CFA_SAME_VALUE, CFA_REGISTER,
	CFA_REMEMBER_STATE, CFA_RESTORE_STATE, CFA_DEF_CFA, CFA_DEF_CFA_REGISTER,
	CFA_DEF_CFA_OFFSET, CFA_DEF_CFA_EXPRESSION, CFA_EXPRESSION, CFA_OFFSET_EXTENDED_SF,
	CFA_DEF_CFA_SF, CFA_DEF_CFA_OFFSET_SF, CFA_VAL_OFFSET, CFA_VAL_OFFSET_SF,
	CFA_VAL_EXPRESSION,
	CFA_AARCH64_NEGATE_RA_STATE_WITH_PC = 0x2c, CFA_AARCH64_NEGATE_RA_STATE = 0x2d,
	CFA_GNU_ARGS_SIZE = 0x2e, CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

/* LSB Core 5.0, table 10-5 and 10-6. */
enum {
	PE_ABSPTR = 0, PE_ULEB128, PE_UDATA2, PE_UDATA4, PE_UDATA8,
	PE_SLEB128 = 9, PE_SDATA2, PE_SDATA4, PE_SDATA8,
	PE_PCREL = 0x10, PE_ALIGNED = 0x50, PE_RELATIVE_TO = 0x70, PE_INDIRECT = 0x80,
	PE_OMIT = 0xff,
};

struct cfi_machine cfi_machine(uint16_t machine)
{
	if (machine == EM_X86_64)
		return (struct cfi_machine){ .fp = 6, .sp = 7, .ra = 16, .bx = 3 };
	if (machine == EM_AARCH64)
		return (struct cfi_machine){ .fp = 29, .sp = 31, .ra = 30 };
	return (struct cfi_machine){ 0 };
}

/* ---- bytes ----------------------------------------------------------------------------------
 *
 * A cursor over some bytes. The first read past the end sets bad and yields 0 ever after, so that
 * parsers are straight lines with one check. Reading is most of what compiling a table costs: these
 * few are inlined, with sizes that the compiler knows.
 */
struct cursor {
	const uint8_t *p, *end;
	const uint8_t *start;
	uint64_t vaddr;		/* of start */
	bool bad;
};

static struct cursor cursor(const uint8_t *p, size_t n, uint64_t vaddr)
{
	return (struct cursor){ .p = p, .end = p + n, .start = p, .vaddr = vaddr };
}

/* The address of the next byte. */
static uint64_t cursor_vaddr(const struct cursor *c)
{
	return c->vaddr + (uint64_t)(c->p - c->start);
}

static inline const uint8_t *get(struct cursor *c, uint64_t n)
{
	const uint8_t *p = c->p;

	if (n > (uint64_t)(c->end - c->p)) {
		c->bad = true;
		c->p = c->end;
		return NULL;
	}
	c->p += n;
	return p;
}

/* Little-endian, as both machines are. n is 1, 2, 4 or 8. */
static inline __attribute__((always_inline)) uint64_t get_uint(struct cursor *c, size_t n)
{
	const uint8_t *p = get(c, n);
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, n);
	return v;
}

static inline uint8_t get_byte(struct cursor *c)
{
	return get_uint(c, 1);
}

/* LEB128 (DWARF 5 section 7.6). Numbers of more than 64 bits are malformed; padding is not. */
static uint64_t get_long_uleb(struct cursor *c)
{
	uint64_t v = 0;
	unsigned int shift = 0;
	uint8_t b;

	do {
		b = get_byte(c);
		if (shift < 64)
			v |= (uint64_t)(b & 0x7f) << shift;
		if (shift >= 64 ? b & 0x7f : shift == 63 && b & 0x7e)
			c->bad = true;
		shift += 7;
	} while (b & 0x80 && !c->bad);
	return v;
}

/* Nearly all are of one byte. */
static inline uint64_t get_uleb(struct cursor *c)
{
	return c->p < c->end && *c->p < 0x80 ? *c->p++ : get_long_uleb(c);
}

static int64_t get_sleb(struct cursor *c)
{
	uint64_t v = 0;
	unsigned int shift = 0;
	uint8_t b;

	do {
		b = get_byte(c);
		if (shift < 64)
			v |= (uint64_t)(b & 0x7f) << shift;
		if (shift >= 63 && (b & 0x7f) != (v >> 63 ? 0x7f : 0))
			c->bad = true;
		shift += 7;
	} while (b & 0x80 && !c->bad);
	if (shift < 64 && b & 0x40)
		v |= ~UINT64_C(0) << shift;
	return (int64_t)v;
}

static struct cfi_bytes get_block(struct cursor *c)
{
	uint64_t n = get_uleb(c);
	const uint8_t *p = get(c, n);

	return (struct cfi_bytes){ p, p ? n : 0 };
}

/* The number in an encoded pointer, without what it is relative to. */
static uint64_t get_format(struct cursor *c, uint8_t encoding)
{
	switch (encoding & 0x0f) {
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SDATA8:
		return get_uint(c, 8);
	case PE_ULEB128:
		return get_uleb(c);
	case PE_SLEB128:
		return (uint64_t)get_sleb(c);
	case PE_UDATA2:
		return get_uint(c, 2);
	case PE_SDATA2:
		return (uint64_t)(int16_t)get_uint(c, 2);
	case PE_UDATA4:
		return get_uint(c, 4);
	case PE_SDATA4:
		return (uint64_t)(int32_t)get_uint(c, 4);
	default:
		c->bad = true;
		return 0;
	}
}

/* An encoded pointer to code. Text- and data-relative ones, and pointers kept in memory, don't
 * occur for code on our machines. */
static int get_pointer(struct cursor *c, uint8_t encoding, uint64_t *ret)
{
	uint64_t base = 0, v;

	if (encoding & PE_INDIRECT || (encoding & PE_RELATIVE_TO) > PE_PCREL)
		return -ENOTSUP;
	if (encoding & PE_PCREL)
		base = cursor_vaddr(c);
	v = get_format(c, encoding);
	if (c->bad)
		return -EBADMSG;
	*ret = base + v;
	return 0;
}

/* Passes over the pointer to the personality routine, whatever it is relative to. */
static void skip_pointer(struct cursor *c, uint8_t encoding)
{
	if (encoding == PE_OMIT)
		return;
	if ((encoding & PE_RELATIVE_TO) == PE_ALIGNED)
		get(c, -cursor_vaddr(c) & 7);
	get_format(c, encoding);
}

/* ---- entries -------------------------------------------------------------------------------- */

struct entry {
	struct cursor body;	/* behind the id */
	size_t offset;		/* in the section */
	size_t cie;		/* an FDE's: offset of its CIE */
	bool is_cie;
};

/* Reads length and id of the entry at offset. *ret_next, where the one behind it starts, is set
 * whenever that is known. -ENODATA: the length is zero. */
static int read_entry(const struct cfi *c, size_t offset, size_t *ret_next, struct entry *ret)
{
	struct cursor cur = cursor(c->data + offset, c->size - offset, c->vaddr + offset);
	uint64_t length = get_uint(&cur, 4), id, id_at;
	bool wide = length == 0xffffffff;	/* 64-bit format, DWARF 5 section 7.4 */

	if (wide)
		length = get_uint(&cur, 8);
	else if (length >= 0xfffffff0)	/* reserved */
		return -EBADMSG;
	if (cur.bad || length > (uint64_t)(cur.end - cur.p))
		return -EBADMSG;
	cur.end = cur.p + length;
	*ret_next = cur.end - c->data;
	if (!length)
		return -ENODATA;
	id_at = cur.p - c->data;
	/* In .eh_frame the id is 4 bytes in both formats (LSB 10.6.1). */
	id = wide && c->debug_frame ? get_uint(&cur, 8) : get_uint(&cur, 4);
	if (cur.bad)
		return -EBADMSG;
	*ret = (struct entry){ .body = cur, .offset = offset };
	if (c->debug_frame) {
		ret->is_cie = id == (wide ? UINT64_MAX : UINT32_MAX);
		ret->cie = id;
		if (!ret->is_cie && id >= c->size)
			return -EBADMSG;
	} else {
		ret->is_cie = !id;
		ret->cie = id_at - id;	/* distance back from the id itself */
		if (id > id_at)
			return -EBADMSG;
	}
	return 0;
}

/* Augmentation string and data of a CIE. With 'z' the data has a length, so that we needn't know
 * what every letter brings in FDEs; an unknown letter may yet change what the rules mean. */
static int read_augmentation(struct cursor *c, const char *letters, struct cfi_cie *ret)
{
	struct cfi_bytes data;
	struct cursor d;

	if (*letters != 'z')
		return *letters ? -ENOTSUP : 0;
	ret->augmented = true;
	data = get_block(c);
	if (c->bad)
		return -EBADMSG;
	d = cursor(data.p, data.n, cursor_vaddr(c) - data.n);
	while (*++letters) {
		switch (*letters) {
		case 'R':
			ret->pc_encoding = get_byte(&d);
			break;
		case 'P':
			skip_pointer(&d, get_byte(&d));
			break;
		case 'L':	/* encoding of a pointer in FDEs that their length lets us skip */
			get_byte(&d);
			break;
		case 'S':
			ret->signal = true;
			break;
		case 'B':	/* arm64: return addresses signed with key B: no data */
		case 'G':	/* arm64: tagged stack memory, likewise */
			break;
		default:
			return -ENOTSUP;
		}
	}
	return d.bad ? -EBADMSG : 0;
}

static void run_cie(const struct cfi *c, struct cfi_cie *cie);

static int read_cie(const struct cfi *c, size_t offset, struct cfi_cie *ret)
{
	struct cfi_cie cie = { .offset = offset, .pc_encoding = PE_ABSPTR };
	const char *letters;
	struct entry e;
	uint8_t version;
	size_t next;
	int r = read_entry(c, offset, &next, &e);

	if (r || !e.is_cie)
		return -EBADMSG;
	if (e.body.end - e.body.p > CFI_CIE_MAX)
		return -ENOTSUP;
	version = get_byte(&e.body);
	letters = (const char *)e.body.p;
	if (!get(&e.body, strnlen(letters, e.body.end - e.body.p) + 1))
		return -EBADMSG;
	if (version != 1 && version != 3 && version != 4)
		return -ENOTSUP;
	/* Address and segment selector size. */
	if (version == 4 && (get_byte(&e.body) != 8 || get_byte(&e.body) != 0))
		return -ENOTSUP;
	if (!strncmp(letters, "eh", 2)) {	/* GCC 2: a pointer to its exception table */
		get(&e.body, 8);
		letters += 2;
	}
	cie.code_align = get_uleb(&e.body);
	cie.data_align = get_sleb(&e.body);
	cie.ra_reg = version == 1 ? get_byte(&e.body) : get_uleb(&e.body);
	if (e.body.bad)
		return -EBADMSG;
	r = read_augmentation(&e.body, letters, &cie);
	if (r)
		return r;
	cie.program = (struct cfi_bytes){ e.body.p, e.body.end - e.body.p };
	if (cie.program.n > CFI_CIE_PROGRAM_MAX)
		return -ENOTSUP;
	cie.valid = true;
	run_cie(c, &cie);
	*ret = cie;
	return 0;
}

/* An entry known to be an FDE. size 0 is for the caller to judge. */
static int read_fde(struct cfi *c, struct entry *e, struct cfi_fde *ret)
{
	struct cfi_fde fde = { .offset = e->offset, .machine = c->machine };
	int r;

	if (!c->last.valid || c->last.offset != e->cie) {
		r = read_cie(c, e->cie, &c->last);
		if (r)
			return r;
	}
	fde.cie = c->last;
	fde.signal = fde.cie.signal;
	r = get_pointer(&e->body, fde.cie.pc_encoding, &fde.start);
	if (r)
		return r;
	fde.size = get_format(&e->body, fde.cie.pc_encoding);	/* same format, never relative */
	if (fde.cie.augmented)
		get_block(&e->body);
	if (e->body.bad || fde.start + fde.size < fde.start)
		return -EBADMSG;
	fde.program = (struct cfi_bytes){ e->body.p, e->body.end - e->body.p };
	fde.program_vaddr = cursor_vaddr(&e->body);
	*ret = fde;
	return 0;
}

int cfi_fde_at(struct cfi *c, size_t offset, struct cfi_fde *ret)
{
	struct entry e;
	size_t next;

	if (offset >= c->size || read_entry(c, offset, &next, &e) || e.is_cie)
		return -EBADMSG;
	return read_fde(c, &e, ret);
}

int cfi_next(struct cfi *c, size_t *pos, struct cfi_fde *ret)
{
	struct cfi_fde fde;
	struct entry e;
	size_t at;
	int r;

	while (*pos < c->size) {
		at = *pos;
		*pos = c->size;
		r = read_entry(c, at, pos, &e);
		if (r == -ENODATA) {
			/* Linkers put the terminator last, ld -r in the middle. */
			if (!c->to_zero)
				continue;
			*pos = c->size;
			break;
		}
		if (r)
			return r;
		if (e.is_cie)
			continue;
		r = read_fde(c, &e, &fde);
		if (r)
			return r;
		if (!fde.size)
			continue;
		*ret = fde;
		return 0;
	}
	return -ENOENT;
}

int cfi_eh_frame_hdr(const void *data, size_t size, uint64_t vaddr, uint64_t *ret)
{
	struct cursor c = cursor(data, size, vaddr);
	uint8_t version = get_byte(&c), encoding = get_byte(&c);

	get(&c, 2);	/* encodings of the search table */
	if (c.bad)
		return -EBADMSG;
	if (version != 1)	/* LSB 10.6.2 */
		return -ENOTSUP;
	return get_pointer(&c, encoding, ret);
}

/* ---- programs ------------------------------------------------------------------------------- */

struct program {
	const struct cfi_fde *fde;
	struct cfi_machine regs;
	struct cursor c;
	struct cfi_rule rule;
	struct cfi_rule initial;	/* as the CIE left it: what DW_CFA_restore goes back to */
	struct cfi_rule stack[CFI_REMEMBER_MAX];
	size_t depth;
	uint64_t loc;
	bool in_cie;
	cfi_row_fn *row;
	void *arg;
};

/* Where the rule of a register lives; NULL for registers that nobody asks for. */
static struct cfi_loc *loc_of(struct program *p, struct cfi_rule *rule, uint64_t reg)
{
	if (reg == p->fde->cie.ra_reg)
		return &rule->ra;
	if (reg == p->regs.fp)
		return &rule->fp;
	if (reg == p->regs.sp)
		return &rule->sp;
	if (reg == p->regs.bx && p->regs.bx)
		return &rule->bx;
	return NULL;
}

static void set(struct program *p, uint64_t reg, const struct cfi_loc *to)
{
	struct cfi_loc *l = loc_of(p, &p->rule, reg);

	if (l)
		*l = *to;
	if (!reg)
		p->rule.ax = to->offset;
	if (!l && reg < 6 && p->regs.bx)
		p->rule.scratch = (uint8_t)((p->rule.scratch & ~(1u << reg)) |
					    (unsigned int)(to->where == CFI_AT_CFA) << reg);
}

static void restore(struct program *p, uint64_t reg)
{
	static const struct cfi_loc unspecified;
	struct cfi_loc *l = loc_of(p, &p->initial, reg);

	set(p, reg, l ? l : &unspecified);
}

/* A factored offset. */
static int64_t factored(struct program *p, int64_t n)
{
	int64_t v = 0;

	if (__builtin_mul_overflow(n, p->fde->cie.data_align, &v))
		p->c.bad = true;
	return v;
}

/* Gives the row that ends here and moves on. False when that is behind the FDE's end. */
static bool advance_to(struct program *p, uint64_t loc)
{
	/* Not in a CIE, which describes no code; never back (DWARF 5 section 6.4.2.1). */
	if (p->in_cie || loc < p->loc) {
		p->c.bad = true;
		return false;
	}
	if (loc == p->loc)
		return true;
	p->row(p->arg, p->loc, &p->rule);
	p->loc = loc;
	return loc < p->fde->start + p->fde->size;
}

static bool advance(struct program *p, uint64_t n)
{
	uint64_t bytes, loc;

	/* Behind the end of the address space is behind the FDE as well. */
	if (__builtin_mul_overflow(n, p->fde->cie.code_align, &bytes) ||
	    __builtin_add_overflow(p->loc, bytes, &loc))
		loc = p->fde->start + p->fde->size;
	return advance_to(p, loc);
}

static bool set_loc(struct program *p)
{
	uint64_t loc;

	if (get_pointer(&p->c, p->fde->cie.pc_encoding, &loc)) {
		p->c.bad = true;
		return false;
	}
	return advance_to(p, loc);
}

static void def_cfa(struct program *p, uint64_t reg, int64_t offset)
{
	p->rule.cfa = (struct cfi_loc){ .where = CFI_IN_REG, .reg = reg, .offset = offset };
}

/* The two that change one half of "register + offset" need it to be that (section 6.4.2.2). */
static void def_cfa_part(struct program *p, bool reg, int64_t v)
{
	if (p->rule.cfa.where != CFI_IN_REG)
		p->c.bad = true;
	else if (reg)
		p->rule.cfa.reg = (uint64_t)v;
	else
		p->rule.cfa.offset = v;
}

static void remember(struct program *p)
{
	if (p->depth == CFI_REMEMBER_MAX)
		p->c.bad = true;
	else
		p->stack[p->depth++] = p->rule;
}

static void recall(struct program *p)
{
	if (!p->depth)
		p->c.bad = true;
	else
		p->rule = p->stack[--p->depth];
}

/* The instructions that say where a register is. False when op is another. */
static bool run_register(struct program *p, uint8_t op)
{
	struct cfi_loc to = { 0 };
	struct cursor *c = &p->c;
	uint64_t reg;

	if (op != CFA_OFFSET_EXTENDED && op != CFA_UNDEFINED && op != CFA_SAME_VALUE &&
	    op != CFA_REGISTER && op != CFA_EXPRESSION && op != CFA_VAL_EXPRESSION &&
	    op != CFA_OFFSET_EXTENDED_SF && op != CFA_VAL_OFFSET && op != CFA_VAL_OFFSET_SF &&
	    op != CFA_GNU_NEGATIVE_OFFSET_EXTENDED)
		return false;
	reg = get_uleb(c);
	switch (op) {
	case CFA_UNDEFINED:
		to.where = CFI_UNDEFINED;
		break;
	case CFA_SAME_VALUE:
		to.where = CFI_SAME;
		break;
	case CFA_REGISTER:
		to.where = CFI_IN_REG;
		to.reg = get_uleb(c);
		break;
	case CFA_EXPRESSION:
	case CFA_VAL_EXPRESSION:
		to.where = op == CFA_EXPRESSION ? CFI_AT_EXPR : CFI_IS_EXPR;
		to.expr = get_block(c);
		break;
	case CFA_VAL_OFFSET:
	case CFA_OFFSET_EXTENDED:
		to.where = op == CFA_VAL_OFFSET ? CFI_IS_CFA : CFI_AT_CFA;
		to.offset = factored(p, (int64_t)get_uleb(c));
		break;
	case CFA_VAL_OFFSET_SF:
	case CFA_OFFSET_EXTENDED_SF:
		to.where = op == CFA_VAL_OFFSET_SF ? CFI_IS_CFA : CFI_AT_CFA;
		to.offset = factored(p, get_sleb(c));
		break;
	default:	/* CFA_GNU_NEGATIVE_OFFSET_EXTENDED, of GCC before 3 */
		to.where = CFI_AT_CFA;
		to.offset = factored(p, (int64_t)(0 - get_uleb(c)));
	}
	set(p, reg, &to);
	return true;
}

/* The rest: CFA, location, state. */
static int run_frame(struct program *p, uint8_t op, bool *ret_more)
{
	struct cursor *c = &p->c;
	uint64_t reg;

	switch (op) {
	case CFA_NOP:
		return 0;
	case CFA_SET_LOC:
		*ret_more = set_loc(p);
		return 0;
	case CFA_ADVANCE_LOC1:
		*ret_more = advance(p, get_byte(c));
		return 0;
	case CFA_ADVANCE_LOC2:
		*ret_more = advance(p, get_uint(c, 2));
		return 0;
	case CFA_ADVANCE_LOC4:
		*ret_more = advance(p, get_uint(c, 4));
		return 0;
	case CFA_RESTORE_EXTENDED:
		restore(p, get_uleb(c));
		return 0;
	case CFA_REMEMBER_STATE:
		remember(p);
		return 0;
	case CFA_RESTORE_STATE:
		recall(p);
		return 0;
	case CFA_DEF_CFA:
		reg = get_uleb(c);
		def_cfa(p, reg, (int64_t)get_uleb(c));
		return 0;
	case CFA_DEF_CFA_SF:
		reg = get_uleb(c);
		def_cfa(p, reg, factored(p, get_sleb(c)));
		return 0;
	case CFA_DEF_CFA_REGISTER:
		def_cfa_part(p, true, (int64_t)get_uleb(c));
		return 0;
	case CFA_DEF_CFA_OFFSET:
		def_cfa_part(p, false, (int64_t)get_uleb(c));
		return 0;
	case CFA_DEF_CFA_OFFSET_SF:
		def_cfa_part(p, false, factored(p, get_sleb(c)));
		return 0;
	case CFA_DEF_CFA_EXPRESSION:
		p->rule.cfa = (struct cfi_loc){ .where = CFI_IS_EXPR, .expr = get_block(c) };
		return 0;
	case CFA_GNU_ARGS_SIZE:		/* for exception landing pads */
		get_uleb(c);
		return 0;
	case CFA_AARCH64_NEGATE_RA_STATE:
	case CFA_AARCH64_NEGATE_RA_STATE_WITH_PC:
		/* Whether it is signed doesn't matter: the signature's bits are always masked. */
		return p->fde->machine == EM_AARCH64 ? 0 : -ENOTSUP;
	default:
		return -ENOTSUP;
	}
}

static int run(struct program *p)
{
	bool more = true;
	int r = 0;

	while (!r && more && !p->c.bad && p->c.p < p->c.end) {
		uint8_t op = get_byte(&p->c), low = op & 0x3f;
		struct cfi_loc to;

		switch (op & 0xc0) {
		case CFA_ADVANCE_LOC:
			more = advance(p, low);
			break;
		case CFA_OFFSET:
			to = (struct cfi_loc){ .where = CFI_AT_CFA };
			to.offset = factored(p, (int64_t)get_uleb(&p->c));
			set(p, low, &to);
			break;
		case CFA_RESTORE:
			restore(p, low);
			break;
		default:
			if (!run_register(p, op))
				r = run_frame(p, op, &more);
		}
	}
	return p->c.bad ? -EBADMSG : r;
}

/* Runs the CIE's instructions, once for all of its FDEs. */
static void run_cie(const struct cfi *c, struct cfi_cie *cie)
{
	const struct cfi_fde fde = { .cie = *cie, .machine = c->machine };
	struct program p = { .fde = &fde, .regs = cfi_machine(c->machine), .in_cie = true };

	p.c = cursor(cie->program.p, cie->program.n, 0);
	cie->error = run(&p);
	cie->initial = p.rule;
}

int cfi_run(const struct cfi_fde *fde, cfi_row_fn *row, void *arg, uint64_t *ret_bad)
{
	struct program p;
	int r = fde->cie.error;

	if (r) {
		*ret_bad = fde->start;
		return r;
	}
	p.fde = fde;
	p.regs = cfi_machine(fde->machine);
	p.row = row;
	p.arg = arg;
	p.rule = fde->cie.initial;
	p.initial = p.rule;
	p.depth = 0;
	p.loc = fde->start;
	p.in_cie = false;
	p.c = cursor(fde->program.p, fde->program.n, fde->program_vaddr);
	r = run(&p);
	if (r)
		*ret_bad = p.loc;
	else if (p.loc < fde->start + fde->size)
		row(arg, p.loc, &p.rule);
	return r;
}
