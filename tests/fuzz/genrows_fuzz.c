/* Any bytes as one function of generated code. What must hold: rows ascend from 0, each differs from the one
 * before, and says only what genrows.h makes; a second function is traced as if it were the first. */
#include "unwind/genrows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct range {
	uint32_t last, n;
	size_t size;
};

static void must(bool condition)
{
	if (!condition)
		abort();
}

static int each_row(void *arg, uint32_t offset, const struct wk_row *row)
{
	struct range *r = arg;

	must(r->n ? offset > r->last : !offset);
	must(offset < r->size);
	must(row->cfa == WK_CFA_NONE || row->cfa == WK_CFA_SP || row->cfa == WK_CFA_FP);
	must(row->cfa == WK_CFA_NONE || row->cfa_off >= 1);
	must(!WK_ROW_RA(*row) && WK_ROW_FP(*row) <= WK_FP_UNDEFINED);
	r->last = offset;
	r->n++;
	return 0;
}

static uint32_t rows_of(struct genrows *g, const uint8_t *data, size_t size)
{
	struct range r = { .size = size };
	int e = genrows_trace(g, data, size);

	must(!e || e == -ENOENT || e == -E2BIG);
	if (!e)
		must(!genrows_each(g, each_row, &r) && r.n);
	return r.n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup(genrows_cleanup) struct genrows g = GENROWS_INIT, h = GENROWS_INIT;
	uint32_t n = rows_of(&g, data, size);

	rows_of(&g, data + size / 2, size - size / 2);
	must(rows_of(&g, data, size) == n && rows_of(&h, data, size) == n);
	return 0;
}
