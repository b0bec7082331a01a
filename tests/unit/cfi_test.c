/* Tests of unwind/cfi.h and unwind/rule.h over sections made byte by byte. */
#include "cfi_bytes.h"

#include <elf.h>

#include "unwind/cfi.h"
#include "unwind/rule.h"

#define BASE UINT64_C(0x1000) /* address of the section */
#define CODE UINT64_C(0x4000)

struct rows {
	uint64_t start[16];
	struct cfi_rule rule[16];
	size_t n;
};

static void collect(void *arg, uint64_t start, const struct cfi_rule *rule)
{
	struct rows *rows = arg;

	ck_assert_uint_lt(rows->n, ARRAY_SIZE(rows->start));
	rows->start[rows->n] = start;
	rows->rule[rows->n++] = *rule;
}

static struct cfi cfi_of(const struct section *s)
{
	return (struct cfi){ .data = s->data,
			     .size = s->n,
			     .vaddr = BASE,
			     .machine = EM_X86_64,
			     .debug_frame = s->debug };
}

static int first_fde(const struct section *s, struct cfi_fde *ret)
{
	struct cfi c = cfi_of(s);
	size_t pos = 0;

	return cfi_next(&c, &pos, ret);
}

/* Runs the first FDE's program. */
static int run(const struct section *s, struct rows *rows, uint64_t *ret_bad)
{
	struct cfi_fde fde;

	rows->n = 0;
	ck_assert_int_eq(first_fde(s, &fde), 0);
	return cfi_run(&fde, collect, rows, ret_bad);
}

/* One FDE of 0x40 bytes with this program. */
#define PROGRAM(s, ...)                                                                            \
	do {                                                                                       \
		size_t cie_ = usual_cie(s);                                                        \
		begin_fde(s, cie_, BASE, CODE, 0x40);                                              \
		BYTES(s, __VA_ARGS__);                                                             \
		end(s);                                                                            \
	} while (0)

static void ck_reg_off(const struct cfi_loc *l, uint64_t reg, int64_t offset)
{
	ck_assert_int_eq(l->where, CFI_IN_REG);
	ck_assert_uint_eq(l->reg, reg);
	ck_assert_int_eq(l->offset, offset);
}

START_TEST(usual_function)
{
	struct section s = { .n = 0 };
	struct rows rows;
	uint64_t bad;

	/* push %rbp; mov %rsp, %rbp; ...; pop %rbp: with each kind of advance */
	PROGRAM(&s, 0x41, 0x0e, 16, 0x86, 2, 0x02, 3, 0x0d, 6, 0x03, 0x10, 0, 0x0c, 7, 8, 0x04, 1,
		0, 0, 0, 0x0e, 24);
	ck_assert_int_eq(run(&s, &rows, &bad), 0);
	ck_assert_uint_eq(rows.n, 5);
	ck_assert_uint_eq(rows.start[0], CODE);
	ck_reg_off(&rows.rule[0].cfa, 7, 8);
	ck_assert_int_eq(rows.rule[0].fp.where, CFI_UNSPECIFIED);
	ck_assert_int_eq(rows.rule[0].ra.where, CFI_AT_CFA);
	ck_assert_int_eq(rows.rule[0].ra.offset, -8);
	ck_assert_uint_eq(rows.start[1], CODE + 1);
	ck_reg_off(&rows.rule[1].cfa, 7, 16);
	ck_assert_int_eq(rows.rule[1].fp.where, CFI_AT_CFA);
	ck_assert_int_eq(rows.rule[1].fp.offset, -16);
	ck_assert_uint_eq(rows.start[2], CODE + 4);
	ck_reg_off(&rows.rule[2].cfa, 6, 16);
	ck_assert_uint_eq(rows.start[3], CODE + 0x14);
	ck_reg_off(&rows.rule[3].cfa, 7, 8);
	ck_assert_uint_eq(rows.start[4], CODE + 0x15);
	ck_reg_off(&rows.rule[4].cfa, 7, 24);
}
END_TEST

START_TEST(remember_and_restore)
{
	struct section s = { .n = 0 };
	struct rows rows;
	uint64_t bad;

	/* nested twice; each restores what was remembered last, the CFA as well */
	PROGRAM(&s, 0x0e, 16, 0x86, 2, 0x0a, 0x41, 0x0e, 32, 0x0a, 0x41, 0x0c, 6, 48, 0xc6, 0x41,
		0x0b, 0x41, 0x0b, 0x41, 0x06, 16, 0xc6);
	ck_assert_int_eq(run(&s, &rows, &bad), 0);
	ck_assert_uint_eq(rows.n, 6);
	ck_reg_off(&rows.rule[0].cfa, 7, 16);
	ck_reg_off(&rows.rule[1].cfa, 7, 32);
	ck_reg_off(&rows.rule[2].cfa, 6, 48);
	ck_assert_int_eq(rows.rule[2].fp.where, CFI_UNSPECIFIED); /* DW_CFA_restore */
	ck_reg_off(&rows.rule[3].cfa, 7, 32);
	ck_assert_int_eq(rows.rule[3].fp.where, CFI_AT_CFA);
	ck_reg_off(&rows.rule[4].cfa, 7, 16);
	ck_assert_int_eq(rows.rule[5].ra.where, CFI_AT_CFA); /* as the CIE has it */
}
END_TEST

START_TEST(register_rules)
{
	struct section s = { .n = 0 };
	struct rows rows;
	uint64_t bad;

	PROGRAM(&s, 0x07, 16, 0x08, 6, 0x41,	     /* undefined; same value */
		0x09, 16, 5, 0x14, 6, 2, 0x41,	     /* register; val_offset */
		0x11, 6, 0x7d, 0x15, 16, 0x7e, 0x41, /* offset_extended_sf; val_offset_sf */
		0x10, 6, 2, 0x76, 0, 0x16, 16, 2, 0x77, 8, 0x2e, 64,
		0x41,			  /* expressions; args_size */
		0x05, 6, 3, 0x2f, 16, 4); /* offset_extended; negative_offset_extended */
	ck_assert_int_eq(run(&s, &rows, &bad), 0);
	ck_assert_uint_eq(rows.n, 5);
	ck_assert_int_eq(rows.rule[0].ra.where, CFI_UNDEFINED);
	ck_assert_int_eq(rows.rule[0].fp.where, CFI_SAME);
	ck_reg_off(&rows.rule[1].ra, 5, 0);
	ck_assert_int_eq(rows.rule[1].fp.where, CFI_IS_CFA);
	ck_assert_int_eq(rows.rule[1].fp.offset, -16);
	ck_assert_int_eq(rows.rule[2].fp.where, CFI_AT_CFA);
	ck_assert_int_eq(rows.rule[2].fp.offset, 24);
	ck_assert_int_eq(rows.rule[2].ra.where, CFI_IS_CFA);
	ck_assert_int_eq(rows.rule[2].ra.offset, 16);
	ck_assert_int_eq(rows.rule[3].fp.where, CFI_AT_EXPR);
	ck_assert_uint_eq(rows.rule[3].fp.expr.n, 2);
	ck_assert_int_eq(rows.rule[3].ra.where, CFI_IS_EXPR);
	ck_assert_int_eq(rows.rule[4].fp.offset, -24);
	ck_assert_int_eq(rows.rule[4].ra.offset, 32);
}
END_TEST

START_TEST(programs_that_break)
{
	struct section s;
	struct rows rows;
	uint64_t bad = 0;

	s.n = s.wide = s.debug = 0;
	PROGRAM(&s, 0x44, 0x0e, 16, 0x44, 0x3d); /* unknown: what went before stands */
	ck_assert_int_eq(run(&s, &rows, &bad), -ENOTSUP);
	ck_assert_uint_eq(rows.n, 2);
	ck_assert_uint_eq(bad, CODE + 8);
	s.n = 0;
	PROGRAM(&s, 0x0b); /* nothing to restore */
	ck_assert_int_eq(run(&s, &rows, &bad), -EBADMSG);
	ck_assert_uint_eq(bad, CODE);
	s.n = 0;
	PROGRAM(&s, 0x0f, 2, 0x77, 0, 0x0e, 8); /* an offset, but the CFA is an expression */
	ck_assert_int_eq(run(&s, &rows, &bad), -EBADMSG);
	s.n = 0;
	PROGRAM(&s, 0x10, 6, 0x7f, 0x77); /* expression beyond the entry */
	ck_assert_int_eq(run(&s, &rows, &bad), -EBADMSG);
	s.n = 0;
	PROGRAM(&s, 0x0e, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f);
	ck_assert_int_eq(run(&s, &rows, &bad), -EBADMSG); /* over 64 bits */
}
END_TEST

START_TEST(remember_is_capped)
{
	struct section s = { .n = 0 };
	struct rows rows;
	uint64_t bad;
	size_t cie = usual_cie(&s);

	begin_fde(&s, cie, BASE, CODE, 0x40);
	for (int i = 0; i < CFI_REMEMBER_MAX; i++)
		BYTES(&s, 0x0a);
	end(&s);
	ck_assert_int_eq(run(&s, &rows, &bad), 0);
	s.n = 0;
	cie = usual_cie(&s);
	begin_fde(&s, cie, BASE, CODE, 0x40);
	for (int i = 0; i <= CFI_REMEMBER_MAX; i++)
		BYTES(&s, 0x0a);
	end(&s);
	ck_assert_int_eq(run(&s, &rows, &bad), -EBADMSG);
}
END_TEST

START_TEST(rows_stay_inside)
{
	struct section s = { .n = 0 };
	struct rows rows;
	uint64_t bad;

	/* A row at the very end, and behind it, describes somebody else's code. */
	PROGRAM(&s, 0x7f, 0x0e, 16, 0x41, 0x0e, 24, 0x7f, 0x0e, 32);
	ck_assert_int_eq(run(&s, &rows, &bad), 0);
	ck_assert_uint_eq(rows.n, 2);
	ck_assert_uint_eq(rows.start[1], CODE + 0x3f);
	ck_reg_off(&rows.rule[1].cfa, 7, 16);
	s.n = 0;
	PROGRAM(&s, 0x04, 0xff, 0xff, 0xff, 0xff, 0x0e, 24);
	ck_assert_int_eq(run(&s, &rows, &bad), 0);
	ck_assert_uint_eq(rows.n, 1);
}
END_TEST

START_TEST(many_entries)
{
	struct section s = { .n = 0 };
	struct cfi c;
	struct cfi_fde fde;
	size_t pos = 0, cie = usual_cie(&s), second, offsets[3];

	offsets[0] = begin_fde(&s, cie, BASE, CODE, 0x10);
	end(&s);
	begin_fde(&s, cie, BASE, CODE, 0); /* discarded by the linker */
	end(&s);
	put_uint(&s, 0, 4); /* a terminator in the middle, as ld -r leaves them */
	second = begin_cie(&s, 3, "zPLRS", 16);
	BYTES(&s, 11, 0x9b, 0, 0, 0, 0, 0x1b, 0x1b, 0, 0, 0, 0); /* longer than its letters */
	end(&s);
	offsets[1] = begin_fde(&s, second, BASE, CODE + 0x10, 0x20);
	end(&s);
	offsets[2] = begin_fde(&s, cie, BASE, CODE - 0x40, 0x40);
	end(&s);
	c = cfi_of(&s);
	ck_assert_int_eq(cfi_next(&c, &pos, &fde), 0);
	ck_assert_uint_eq(fde.offset, offsets[0]);
	ck_assert_uint_eq(fde.start, CODE);
	ck_assert_uint_eq(fde.size, 0x10);
	ck_assert(!fde.signal);
	ck_assert_int_eq(cfi_next(&c, &pos, &fde), 0);
	ck_assert_uint_eq(fde.offset, offsets[1]);
	ck_assert(fde.signal);
	ck_assert_int_eq(cfi_next(&c, &pos, &fde), 0);
	ck_assert_uint_eq(fde.offset, offsets[2]);
	ck_assert_uint_eq(fde.start, CODE - 0x40);
	ck_assert(!fde.signal);
	ck_assert_int_eq(cfi_next(&c, &pos, &fde), -ENOENT);
	ck_assert_int_eq(cfi_next(&c, &pos, &fde), -ENOENT);
	ck_assert_int_eq(cfi_fde_at(&c, offsets[1], &fde), 0);
	ck_assert_uint_eq(fde.start, CODE + 0x10);
	ck_assert_int_eq(cfi_fde_at(&c, cie, &fde), -EBADMSG);
	ck_assert_int_eq(cfi_fde_at(&c, s.n, &fde), -EBADMSG);

	c.to_zero = true;
	pos = 0;
	ck_assert_int_eq(cfi_next(&c, &pos, &fde), 0);
	ck_assert_int_eq(cfi_next(&c, &pos, &fde), -ENOENT);
}
END_TEST

/* .debug_frame: CIE versions 1, 3 and 4, both sizes of lengths, absolute addresses. */
START_TEST(debug_frame)
{
	for (unsigned int i = 0; i < 6; i++) {
		struct section s = { .debug = true, .wide = i & 1 };
		static const uint8_t versions[] = { 1, 3, 4 };
		struct cfi_fde fde;
		struct rows rows;
		uint64_t bad;
		size_t cie;

		cie = begin_cie(&s, versions[i / 2], "", 16);
		BYTES(&s, 0x0c, 7, 8, 0x90, 1);
		end(&s);
		begin(&s);
		put_uint(&s, cie, s.wide ? 8 : 4);
		put_uint(&s, CODE, 8);
		put_uint(&s, 0x20, 8);
		BYTES(&s, 0x44, 0x0e, 16);
		end(&s);
		ck_assert_int_eq(first_fde(&s, &fde), 0);
		ck_assert_uint_eq(fde.start, CODE);
		ck_assert_uint_eq(fde.size, 0x20);
		ck_assert_int_eq(run(&s, &rows, &bad), 0);
		ck_assert_uint_eq(rows.n, 2);
	}
}
END_TEST

/* FDE addresses: DW_EH_PE_* formats and bases. */
START_TEST(encodings)
{
	static const struct {
		uint8_t encoding, size;
		int r;
	} cases[] = {
		{ 0x00, 8, 0 },	       { 0x02, 2, 0 },	      { 0x03, 4, 0 },
		{ 0x04, 8, 0 },	       { 0x0a, 2, 0 },	      { 0x0b, 4, 0 },
		{ 0x0c, 8, 0 },	       { 0x10, 8, 0 },	      { 0x1a, 2, 0 },
		{ 0x1b, 4, 0 },	       { 0x1c, 8, 0 },	      { 0x20, 8, -ENOTSUP },
		{ 0x3b, 4, -ENOTSUP }, { 0x9b, 4, -ENOTSUP }, { 0x05, 8, -EBADMSG },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct section s = { .n = 0 };
		struct cfi_fde fde;
		size_t cie = begin_cie(&s, 1, "zR", 16);

		BYTES(&s, 1, cases[i].encoding, 0x0c, 7, 8, 0x90, 1);
		end(&s);
		begin(&s);
		put_uint(&s, s.n - cie, 4);
		put_uint(&s, CODE - (cases[i].encoding & 0x10 ? BASE + s.n : 0), cases[i].size);
		put_uint(&s, 0x20, cases[i].size);
		put_uint(&s, 0, 1);
		end(&s);
		ck_assert_int_eq(first_fde(&s, &fde), cases[i].r);
		if (!cases[i].r) {
			ck_assert_uint_eq(fde.start, CODE);
			ck_assert_uint_eq(fde.size, 0x20);
		}
	}
}
END_TEST

START_TEST(bad_entries)
{
	struct section s = { .n = 0 };
	struct cfi_fde fde;
	struct cfi c;
	size_t pos = 0, cie = usual_cie(&s), wrong;

	/* one bad entry doesn't hide the next */
	wrong = begin_cie(&s, 2, "", 16);
	end(&s);
	begin_fde(&s, wrong, BASE, CODE, 0x10);
	end(&s);
	wrong = begin_cie(&s, 1, "zQ", 16);
	BYTES(&s, 0);
	end(&s);
	begin_fde(&s, wrong, BASE, CODE, 0x10);
	end(&s);
	begin_fde(&s, s.n + 100, BASE, CODE, 0x10); /* CIE before the section */
	end(&s);
	begin_fde(&s, cie + 4, BASE, CODE, 0x10); /* in the middle of one */
	end(&s);
	begin_fde(&s, cie, BASE, CODE, 0x10);
	end(&s);
	put_uint(&s, 0xfffffff0, 4); /* a reserved length */
	c = cfi_of(&s);
	ck_assert_int_eq(cfi_next(&c, &pos, &fde), -ENOTSUP);
	ck_assert_int_eq(cfi_next(&c, &pos, &fde), -ENOTSUP);
	ck_assert_int_eq(cfi_next(&c, &pos, &fde), -EBADMSG);
	ck_assert_int_eq(cfi_next(&c, &pos, &fde), -EBADMSG);
	ck_assert_int_eq(cfi_next(&c, &pos, &fde), 0);
	ck_assert_int_eq(cfi_next(&c, &pos, &fde), -EBADMSG);
	ck_assert_int_eq(cfi_next(&c, &pos, &fde), -ENOENT);
}
END_TEST

/* Each prefix of a section is read without touching a byte behind it. */
START_TEST(truncated)
{
	struct section s = { .n = 0 };

	PROGRAM(&s, 0x41, 0x0e, 16, 0x86, 2, 0x0f, 3, 0x77, 8, 6);
	for (size_t n = 0; n < s.n; n++) {
		uint8_t *copy cleanup(freep_cleanup) = malloc(n ? n : 1);
		struct cfi c = cfi_of(&s);
		struct cfi_fde fde;
		size_t pos = 0;
		int r;

		ck_assert_ptr_nonnull(copy);
		memcpy(copy, s.data, n);
		c.data = copy;
		c.size = n;
		r = cfi_next(&c, &pos, &fde);
		ck_assert(r == -EBADMSG || r == -ENOENT);
	}
}
END_TEST

START_TEST(eh_frame_hdr)
{
	static const uint8_t hdr[] = { 1, 0x1b, 3, 0x3b, 0xfc, 0xff, 0xff, 0xff };
	static const uint8_t version[] = { 2, 0x1b, 3, 0x3b, 0, 0, 0, 0 };
	uint64_t vaddr;

	ck_assert_int_eq(cfi_eh_frame_hdr(hdr, sizeof(hdr), 0x5000, &vaddr), 0);
	ck_assert_uint_eq(vaddr, 0x5000);
	ck_assert_int_eq(cfi_eh_frame_hdr(hdr, 7, 0x5000, &vaddr), -EBADMSG);
	ck_assert_int_eq(cfi_eh_frame_hdr(hdr, 3, 0x5000, &vaddr), -EBADMSG);
	ck_assert_int_eq(cfi_eh_frame_hdr(version, sizeof(version), 0x5000, &vaddr), -ENOTSUP);
}
END_TEST

/* ---- rules ---- */

/* Compiles the first row of a program. */
static enum rule_reason rule_of(const struct section *s, uint16_t machine, struct wk_row *row,
				struct wk_side *side)
{
	struct cfi c = cfi_of(s);
	struct cfi_fde fde;
	struct rows rows = { .n = 0 };
	size_t pos = 0;
	uint64_t bad;

	c.machine = machine;
	ck_assert_int_eq(cfi_next(&c, &pos, &fde), 0);
	ck_assert_int_eq(cfi_run(&fde, collect, &rows, &bad), 0);
	return rule_compile(machine, fde.signal, &rows.rule[0], row, side);
}

START_TEST(rules_in_a_row)
{
	struct section s = { .n = 0 };
	struct wk_side side;
	struct wk_row row;

	PROGRAM(&s, 0x0c, 6, 16, 0x86, 2);
	ck_assert_int_eq(rule_of(&s, EM_X86_64, &row, &side), RULE_OK);
	ck_assert_int_eq(row.cfa, WK_CFA_FP);
	ck_assert_int_eq(row.cfa_off, 2);
	ck_assert_int_eq(WK_ROW_FP(row), WK_FP_SAVED);
	ck_assert_int_eq(row.fp_off, -2);
	ck_assert_int_eq(WK_ROW_RA(row), WK_RA_CFA);
	s.n = 0;
	PROGRAM(&s, 0x07, 16);
	ck_assert_int_eq(rule_of(&s, EM_X86_64, &row, &side), RULE_OK);
	ck_assert_int_eq(row.cfa, WK_CFA_ROOT);
	s.n = 0;
	PROGRAM(&s, 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3a, 0x2a, 0x33, 0x24, 0x22);
	ck_assert_int_eq(rule_of(&s, EM_X86_64, &row, &side), RULE_OK);
	ck_assert_int_eq(row.cfa, WK_CFA_PLT);
	ck_assert_int_eq(row.cfa_off, 10);
}
END_TEST

START_TEST(rules_at_the_side)
{
	struct section s = { .n = 0 };
	struct wk_side side;
	struct wk_row row;

	/* *(rsp + 1000) + 8, in one of its spellings */
	PROGRAM(&s, 0x0f, 6, 0x77, 0xe8, 0x07, 0x06, 0x23, 8);
	ck_assert_int_eq(rule_of(&s, EM_X86_64, &row, &side), RULE_OK);
	ck_assert_int_eq(row.cfa, WK_CFA_SIDE);
	ck_assert_int_eq(side.cfa_kind, WK_SIDE_DEREF);
	ck_assert_int_eq(side.cfa_reg, 7);
	ck_assert_int_eq(side.cfa_off, 1000);
	ck_assert_int_eq(side.cfa_add, 8);
	ck_assert_int_eq(side.ra_where, WK_AT_CFA);
	ck_assert_int_eq(side.ra_off, -8);
	ck_assert_int_eq(side.fp_where, WK_SAME);
	s.n = 0; /* *(rsp + r9 * 8 - 8) + 8 */
	PROGRAM(&s, 0x0f, 11, 0x79, 0, 0x33, 0x24, 0x77, 0x78, 0x22, 0x06, 0x38, 0x22, 0x96);
	ck_assert_int_ne(rule_of(&s, EM_X86_64, &row, &side),
			 RULE_OK); /* nop isn't used by anyone */
	s.n = 0;
	PROGRAM(&s, 0x0f, 10, 0x79, 0, 0x33, 0x24, 0x77, 0x78, 0x22, 0x06, 0x38, 0x22);
	ck_assert_int_eq(rule_of(&s, EM_X86_64, &row, &side), RULE_OK);
	ck_assert_int_eq(side.cfa_kind, WK_SIDE_INDEX);
	ck_assert_int_eq(side.cfa_reg, 7);
	ck_assert_int_eq(side.cfa_reg2, 9);
	ck_assert_int_eq(side.cfa_off, -8);
	s.n = 0; /* realigned: CFA at fp - 8, fp at fp; the return address in rdi */
	PROGRAM(&s, 0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0, 0x09, 16, 5);
	ck_assert_int_eq(rule_of(&s, EM_X86_64, &row, &side), RULE_OK);
	ck_assert_int_eq(side.cfa_kind, WK_SIDE_DEREF);
	ck_assert_int_eq(side.fp_where, WK_AT_REG);
	ck_assert_int_eq(side.fp_reg, 6);
	ck_assert_int_eq(side.ra_where, WK_IN_REG);
	ck_assert_int_eq(side.ra_reg, 5);
}
END_TEST

START_TEST(rules_refused)
{
	struct section s = { .n = 0 };
	struct wk_side side;
	struct wk_row row;

	PROGRAM(&s, 0x0f, 3, 0x77, 0, 0x20); /* not: no such shape */
	ck_assert_int_eq(rule_of(&s, EM_X86_64, &row, &side), RULE_CFA_EXPRESSION);
	ck_assert_int_eq(row.cfa, WK_CFA_BAD);
	s.n = 0;
	PROGRAM(&s, 0x0f, 0); /* empty */
	ck_assert_int_eq(rule_of(&s, EM_X86_64, &row, &side), RULE_CFA_EXPRESSION);
	s.n = 0;
	PROGRAM(&s, 0x0f, 5, 0x77, 0, 0x06, 0x06, 0x06);
	ck_assert_int_eq(rule_of(&s, EM_X86_64, &row, &side), RULE_CFA_EXPRESSION);
	s.n = 0;
	PROGRAM(&s, 0x0c, 17, 8); /* xmm0 */
	ck_assert_int_eq(rule_of(&s, EM_X86_64, &row, &side), RULE_CFA_REGISTER);
	s.n = 0;
	PROGRAM(&s, 0x08, 16); /* a pc can't stay the same */
	ck_assert_int_eq(rule_of(&s, EM_X86_64, &row, &side), RULE_RA_UNSET);
	s.n = 0;
	PROGRAM(&s, 0x0e, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01);
	ck_assert_int_eq(rule_of(&s, EM_X86_64, &row, &side), RULE_OFFSET);
	s.n = 0;
	PROGRAM(&s, 0x16, 6, 3, 0x77, 0, 0x20); /* only the frame pointer is lost */
	ck_assert_int_eq(rule_of(&s, EM_X86_64, &row, &side), RULE_FP);
	ck_assert_int_eq(row.cfa, WK_CFA_SIDE);
	ck_assert_int_eq(side.fp_where, WK_UNDEFINED);
}
END_TEST

/* glibc's __restore_rt: the registers lie in the ucontext at sp. */
START_TEST(signal_rule)
{
	struct section s = { .n = 0 };
	struct wk_side side;
	struct wk_row row;
	size_t cie = begin_cie(&s, 1, "zRS", 16);

	BYTES(&s, 1, 0x1b, 0x0f, 4, 0x77, 0xa0, 1, 6, 0x10, 16, 3, 0x77, 0xa8, 1);
	end(&s);
	begin_fde(&s, cie, BASE, CODE, 10);
	end(&s);
	ck_assert_int_eq(rule_of(&s, EM_X86_64, &row, &side), RULE_OK);
	ck_assert_int_eq(row.cfa, WK_CFA_SIGNAL);

	s.n = 0; /* somebody's own: pushed by hand */
	cie = begin_cie(&s, 1, "zRS", 16);
	BYTES(&s, 1, 0x1b, 0x0c, 7, 16, 0x90, 2);
	end(&s);
	begin_fde(&s, cie, BASE, CODE, 10);
	end(&s);
	ck_assert_int_eq(rule_of(&s, EM_X86_64, &row, &side), RULE_OK);
	ck_assert_int_eq(row.cfa, WK_CFA_SIDE);
	ck_assert_int_eq(side.exact, 1);
}
END_TEST

START_TEST(arm64_rules)
{
	/* sp unchanged, lr live; then a frame record; then lr saved alone */
	static const uint8_t programs[][6] = {
		{ 0x0c, 31, 0, 0x2d, 0, 0 },
		{ 0x0c, 31, 32, 0x9d, 4, 0x9e },
		{ 0x0c, 31, 16, 0x9e, 2, 0 },
	};
	static const struct {
		int ra, fp, cfa_off, fp_off;
	} expect[] = {
		{ WK_RA_LR, WK_FP_SAME, 0, 0 },
		{ WK_RA_AFTER_FP, WK_FP_SAVED, 4, -4 },
		{ WK_RA_SAVED, WK_FP_SAME, 2, -2 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(expect); i++) {
		struct section s = { .n = 0 };
		struct wk_side side;
		struct wk_row row;
		size_t cie = begin_cie(&s, 1, "zRB", 30);

		BYTES(&s, 1, 0x1b);
		end(&s);
		begin_fde(&s, cie, BASE, CODE, 0x40);
		put(&s, programs[i], sizeof(programs[i]));
		if (i == 1)
			BYTES(&s, 3);
		end(&s);
		ck_assert_int_eq(rule_of(&s, EM_AARCH64, &row, &side), RULE_OK);
		ck_assert_int_eq(row.cfa, WK_CFA_SP);
		ck_assert_int_eq(row.cfa_off, expect[i].cfa_off);
		ck_assert_int_eq(WK_ROW_RA(row), expect[i].ra);
		ck_assert_int_eq(WK_ROW_FP(row), expect[i].fp);
		ck_assert_int_eq(row.fp_off, expect[i].fp_off);
	}
}
END_TEST

START_TEST(reasons_have_labels)
{
	for (int i = 0; i < RULE_REASONS_MAX; i++)
		ck_assert_ptr_nonnull(rule_reason_label(i));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cfi");
	TCase *programs = tcase_create("programs"), *entries = tcase_create("entries"),
	      *rules = tcase_create("rules");
	SRunner *runner;
	int failed;

	tcase_add_test(programs, usual_function);
	tcase_add_test(programs, remember_and_restore);
	tcase_add_test(programs, register_rules);
	tcase_add_test(programs, programs_that_break);
	tcase_add_test(programs, remember_is_capped);
	tcase_add_test(programs, rows_stay_inside);
	tcase_add_test(entries, many_entries);
	tcase_add_test(entries, debug_frame);
	tcase_add_test(entries, encodings);
	tcase_add_test(entries, bad_entries);
	tcase_add_test(entries, truncated);
	tcase_add_test(entries, eh_frame_hdr);
	tcase_add_test(rules, rules_in_a_row);
	tcase_add_test(rules, rules_at_the_side);
	tcase_add_test(rules, rules_refused);
	tcase_add_test(rules, signal_rule);
	tcase_add_test(rules, arm64_rules);
	tcase_add_test(rules, reasons_have_labels);
	suite_add_tcase(s, programs);
	suite_add_tcase(s, entries);
	suite_add_tcase(s, rules);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
