/* gorows.c - see gorows.h. */
#include "unwind/gorows.h"

#include <elf.h>

#include "elf/gotab.h"

enum { WINDOW = 4096, LOOK = 16, BEFORE = 1 };

struct gorows {
	const struct elf *e;
	struct gotab *t;
	uint64_t at;		/* file offset of window[0] */
	size_t n;
	uint8_t window[WINDOW];
};

int gorows_open(const struct elf *e, struct gorows **ret)
{
	cleanup(gorows_cleanup) struct gorows *g = NULL;
	int r;

	if (elf_machine(e) != EM_X86_64)
		return -ENOTSUP;
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->e = e;
	r = gotab_open(e, &g->t);
	if (!r && !gotab_has_flags(g->t))	/* what moves to another stack isn't told */
		r = -ENOTSUP;
	if (!r)
		*ret = take(g);
	return r;
}

void gorows_free(struct gorows *g)
{
	if (g)
		gotab_free(g->t);
	free(g);
}

/* ---- functions ---- */

/* An assembly function's name may carry the calling convention. */
static bool is_named(const char *name, size_t n, const char *expected)
{
	static const char abi[] = ".abi0";
	size_t len = strlen(expected);

	return n >= len && !memcmp(name, expected, len) &&
	       (n == len || (n == len + strlen(abi) && !memcmp(name + len, abi, strlen(abi))));
}

static int kind_of(struct gorows *g, const struct gotab_func *f, uint8_t flags, uint32_t *ret)
{
	const char *name;
	size_t n;
	int r;

	*ret = flags & GOTAB_SPWRITE ? GOROWS_SWITCH : GOROWS_PLAIN;
	if (!(flags & (GOTAB_SPWRITE | GOTAB_TOPFRAME)))
		return 0;
	r = gotab_name(g->t, f, &name, &n);
	if (r)
		return r == -ENOENT ? 0 : r;
	/* Other functions with GOTAB_TOPFRAME have callers that Go doesn't care for: mstart has clone
	 * or C, sigtramp the kernel. */
	if (is_named(name, n, "runtime.goexit") || is_named(name, n, "runtime.rt0_go"))
		*ret = GOROWS_ROOT;
	else if (is_named(name, n, "runtime.clone"))
		*ret = GOROWS_THREAD;
	return 0;
}

int gorows_next(struct gorows *g, struct gorows_func *ret)
{
	struct gotab_info info;
	struct gotab_func f;
	uint32_t kind;
	int r;

	do {
		r = gotab_next(g->t, &f);
		if (!r)
			r = gotab_info(g->t, &f, &info);
		if (!r)
			r = kind_of(g, &f, info.flags, &kind);
		if (r)
			return r;
	} while (!info.pcsp);
	*ret = (struct gorows_func){ .start = f.start, .end = f.end, .list = info.pcsp, .kind = kind };
	return 0;
}

/* ---- rows ---- */

/* LOOK bytes of code from BEFORE bytes before a file offset; zeros where there is nothing. */
static void look(struct gorows *g, uint64_t offset, uint8_t ret[static LOOK])
{
	uint64_t from = offset - MIN(offset, (uint64_t)BEFORE);

	memset(ret, 0, LOOK);
	if (from < g->at || from - g->at > g->n || g->n - (from - g->at) < LOOK) {
		uint64_t size = elf_size(g->e);

		g->n = 0;
		if (from >= size)
			return;
		g->at = from;
		g->n = (size_t)MIN((uint64_t)WINDOW, size - from);
		if (elf_read(g->e, from, g->window, g->n))
			g->n = 0;
	}
	if (from >= g->at && from - g->at < g->n)
		memcpy(ret, g->window + (from - g->at), MIN((size_t)LOOK, g->n - (size_t)(from - g->at)));
}

/* The length of an instruction between %rbp and disp(%rsp) (Intel SDM volume 2, mod and SIB bytes), if
 * it is that; 0 if not. */
static size_t rbp_rsp(const uint8_t *p, uint8_t opcode, int32_t disp)
{
	int32_t d;

	if (p[0] != 0x48 || p[1] != opcode || p[3] != 0x24)
		return 0;
	if (p[2] == 0x6c)
		return (int8_t)p[4] == disp ? 5 : 0;
	memcpy(&d, p + 4, sizeof(d));
	return p[2] == 0xac && d == disp ? 8 : 0;
}

enum { MOV_FROM = 0x89, LEA = 0x8d };

/* How the frame pointer is saved, seen where sp first moves by `size` bytes: a push just before
 * (Go 1.21), or a mov (before that, and assembly). */
struct frame {
	bool known, saved;
	size_t unsaved;	/* bytes of code until it is */
	size_t unset;	/* and until rbp points to it */
};

static struct frame frame_at(const uint8_t code[static LOOK], int32_t size)
{
	static const uint8_t push = 0x55, mov_rsp_rbp[] = { 0x48, 0x89, 0xe5 };
	const uint8_t *p = code + BEFORE;
	struct frame f = { .known = true };

	if (code[0] == push && size == 8) {
		f.saved = true;
		f.unset = memcmp(p, mov_rsp_rbp, sizeof(mov_rsp_rbp)) ? 0 : sizeof(mov_rsp_rbp);
		return f;
	}
	f.unsaved = rbp_rsp(p, MOV_FROM, size - 8);
	f.saved = f.unsaved;
	f.unset = f.unsaved;
	if (f.saved && f.unsaved + 5 <= LOOK - BEFORE)
		f.unset += rbp_rsp(p + f.unsaved, LEA, size - 8);
	return f;
}

/* sp is size bytes below the return address. */
static struct wk_row row_of(int32_t size, bool saved)
{
	struct wk_row row = { .cfa = WK_CFA_SP, .fp_ra = WK_BX_LOST << 4 };

	if (size < 0 || size % 8 || size / 8 >= INT16_MAX)
		return (struct wk_row){ .cfa = WK_CFA_NONE };
	row.cfa_off = (__s16)(size / 8 + 1);
	if (saved && size) {
		row.fp_ra |= WK_FP_SAVED;
		row.fp_off = -2;
	}
	return row;
}

struct run {
	gorows_row_fn *row;
	void *arg;
	uint64_t end;
};

static void emit(const struct run *run, uint64_t at, struct wk_row row)
{
	if (at < run->end)
		run->row(run->arg, at, row);
}

static void emit_range(const struct run *run, uint32_t kind, const struct gotab_value *v,
		       const struct frame *f, bool first)
{
	const struct wk_row leaf = {
		.cfa = WK_CFA_LEAF, .fp_ra = WK_BX_LOST << 4,
		.cfa_off = kind == GOROWS_THREAD ? WK_CALLER_ROOT : WK_CALLER_CHAIN,
	};
	struct run part = { run->row, run->arg, MIN(v->end, run->end) };
	uint64_t at = v->start;

	if (kind != GOROWS_PLAIN && !v->value) {
		emit(&part, at, leaf);
		return;
	}
	if (first && f->unsaved) {
		emit(&part, at, row_of(v->value, false));
		at += f->unsaved;
	}
	if (kind == GOROWS_PLAIN) {
		emit(&part, at, row_of(v->value, f->saved));
		return;
	}
	if (first && v->start + f->unset > at) {
		emit(&part, at, row_of(v->value, f->saved));
		at = v->start + f->unset;
	}
	emit(&part, at, (struct wk_row){ .cfa = WK_CFA_CHAIN });
}

int gorows_run(struct gorows *g, const struct gorows_func *f, uint64_t to_offset, gorows_row_fn *row,
	       void *arg)
{
	struct run run = { row, arg, f->end };
	struct gotab_value v = { .list = f->list, .end = f->start };
	struct frame frame = { 0 };
	uint8_t code[LOOK];
	int r = 0;

	if (f->kind == GOROWS_ROOT) {
		row(arg, f->start, (struct wk_row){ .cfa = WK_CFA_ROOT });
		return 0;
	}
	while (v.end < f->end && !(r = gotab_value(g->t, &v))) {
		bool first = !frame.known && v.value > 0;

		if (v.end < v.start)
			return -EBADMSG;
		if (first) {
			look(g, v.start + to_offset, code);
			frame = frame_at(code, v.value);
		}
		emit_range(&run, f->kind, &v, &frame, first);
	}
	if (v.end < f->end)	/* the list ends before the function does */
		emit(&run, v.end, (struct wk_row){ .cfa = WK_CFA_NONE });
	return r == -ENOENT ? 0 : r;
}
