/* Any bytes as a section of call frame information: every FDE, its program, every rule.
 *
 * The first byte chooses the section's kind and the machine. What must hold: rows ascend within
 * their FDE, the position moves on, an FDE can be found again by its offset, and rules stay within
 * what the walker accepts. */
#include <elf.h>

#include "unwind/cfi.h"
#include "unwind/rule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct check {
	const struct cfi *cfi;
	const struct cfi_fde *fde;
	uint64_t last;
	size_t rows;
};

static void must(bool condition)
{
	if (!condition)
		abort();
}

static void inside(const struct cfi *c, const struct cfi_loc *l)
{
	if (l->where != CFI_AT_EXPR && l->where != CFI_IS_EXPR)
		return;
	if (l->expr.n)
		must(l->expr.p >= c->data && l->expr.n <= (size_t)(c->data + c->size - l->expr.p));
}

static void row(void *arg, uint64_t start, const struct cfi_rule *rule)
{
	struct check *k = arg;
	enum rule_reason reason;
	struct wk_side side;
	struct wk_row out;

	must(k->rows ? start > k->last : start == k->fde->start);
	must(start - k->fde->start < k->fde->size);
	k->last = start;
	k->rows++;
	inside(k->cfi, &rule->cfa);
	inside(k->cfi, &rule->fp);
	inside(k->cfi, &rule->ra);
	reason = rule_compile(k->cfi->machine, k->fde->signal, rule, &out, &side);
	must(reason < RULE_REASONS_MAX && rule_reason_label(reason));
	must((out.cfa == WK_CFA_BAD) == (reason != RULE_OK && reason != RULE_FP));
	must(out.cfa != WK_CFA_NONE && out.pc == 0);
	if (out.cfa == WK_CFA_SIDE)
		must(side.cfa_kind <= WK_SIDE_INDEX && side.fp_where <= WK_UNDEFINED &&
		     side.ra_where <= WK_IN_REG && side.cfa_reg < 32 && side.cfa_reg2 < 32);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cfi c = { .data = data + 1, .size = size - 1, .vaddr = 0x1000 };
	struct cfi_fde fde, again;
	uint64_t bad, vaddr;
	size_t pos = 0, before = 0;
	int r;

	if (!size)
		return 0;
	c.debug_frame = data[0] & 1;
	c.to_zero = data[0] & 2;
	c.machine = data[0] & 4 ? EM_AARCH64 : EM_X86_64;
	(void)!cfi_eh_frame_hdr(c.data, c.size, c.vaddr, &vaddr);
	while ((r = cfi_next(&c, &pos, &fde)) != -ENOENT) {
		struct check k = { .cfi = &c, .fde = &fde };

		must(r == 0 || r == -EBADMSG || r == -ENOTSUP);
		must(pos > before && pos <= c.size);
		before = pos;
		if (r)
			continue;
		must(fde.size && fde.start + fde.size > fde.start);
		must(!cfi_fde_at(&c, fde.offset, &again) && again.start == fde.start);
		r = cfi_run(&fde, row, &k, &bad);
		must(r == 0 || ((r == -EBADMSG || r == -ENOTSUP) && bad >= fde.start));
		must(r || k.rows);
	}
	return 0;
}
