/* Any bytes as code, in two pieces with functions at a few places of it. What must hold: rows ascend
 * within what code_next says, begin at most once at an address, and say only what code.h makes; and
 * each instruction's size is within its bytes, and both decoders say the same. */
#include "unwind/code.h"
#include "unwind/insn.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BASE UINT64_C(0x10000)

struct range {
	uint64_t last, end;
	bool any;
};

static void must(bool condition)
{
	if (!condition)
		abort();
}

static void each_row(void *arg, uint64_t start, const struct wk_row *row)
{
	struct range *r = arg;

	must(r->any ? start > r->last : start == r->last);
	must(start < r->end);
	must(row->cfa == WK_CFA_NONE || row->cfa == WK_CFA_SP || row->cfa == WK_CFA_FP ||
	     row->cfa == WK_CFA_ROOT);
	must(row->cfa != WK_CFA_SP || row->cfa_off >= 1);
	must(row->cfa != WK_CFA_FP || row->cfa_off >= 1);
	must(!WK_ROW_RA(*row) && WK_ROW_FP(*row) <= WK_FP_UNDEFINED);
	r->last = start;
	r->any = true;
}

static void check_pieces(const struct code *c)
{
	struct range r;
	size_t n = 0;

	while (code_next(c, &n, &r.last, &r.end)) {
		must(n && r.last < r.end);
		r.any = false;
		code_rows(c, n - 1, each_row, &r);
		must(r.any);
	}
}

static void check_decoders(const uint8_t *p, size_t n)
{
	struct insn quick, full;

	if (!insn_quick(p, n, &quick))
		return;
	must(!insn_full(p, n, &full));
	must(quick.size == full.size && quick.flow == full.flow && quick.stack == full.stack &&
	     quick.n == full.n && quick.nop == full.nop && quick.has_target == full.has_target &&
	     quick.has_ref == full.has_ref && quick.target == full.target);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup(code_cleanup) struct code *c = NULL;
	struct insn i;
	uint8_t *bytes;
	size_t half;

	if (size < 4 || size > 1u << 16)
		return 0;
	for (size_t at = 0; at < size; at++)
		check_decoders(data + at, size - at);
	must(insn_decode(data, size, &i) || (i.size && i.size <= size));
	half = 1 + (size - 3) / 2;
	must(!code_new(&c));
	must(!code_add(c, BASE, half, &bytes));
	memcpy(bytes, data + 2, half);
	if (size - 2 > half) {
		must(!code_add(c, BASE + half + 16, size - 2 - half, &bytes));
		memcpy(bytes, data + 2 + half, size - 2 - half);
	}
	must(!code_function(c, BASE));
	must(!code_function(c, BASE + data[1]));
	must(!code_root(c, BASE + half + 16));
	must(!code_ref(c, BASE + data[0]));
	must(!code_trace(c, data[0] & 1));
	must(code_known_bytes(c) <= size - 2);
	check_pieces(c);
	return 0;
}
