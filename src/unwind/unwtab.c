/* unwtab.c - see unwtab.h.
 *
 *	FDEs of all sources -> places (where, whose) -> sorted by file offset -> rows, in order
 *
 * FDEs are sorted, not rows: they are ten times fewer, and their rows then come out in order.
 */
#include <elf.h>

#include "base/map.h"
#include "unwind/places.h"

/* rows.h, for a table in memory. */
struct word_array {
	const uint64_t *words;
	size_t n;
};

static inline int array_word(const void *array, uint64_t n, __u64 *ret)
{
	const struct word_array *a = array;

	if (n >= a->n)
		return -1;
	*ret = a->words[n];
	return 0;
}

#define WK_ROW_WORD(words, n, dst) array_word(words, n, dst)
#include "rows.h"

#define PADDING_MAX 15		/* functions are aligned to 16 */

struct compiler {
	struct places p;
	const struct unwtab_limits *limits;

	/* rows */
	uint64_t base;		/* file offset of block 0 */
	uint32_t blocks, indexed; /* index[0 .. indexed-1] are done */
	uint32_t *index;
	struct wk_row *rows;
	size_t nrows, cap_rows;
	struct wk_row pending;	/* not among rows[] yet: the next may start at the same offset */
	uint64_t pending_offset;
	bool has_pending;
	struct map sides;

	/* the place being compiled */
	uint64_t start, end;	/* file offsets */
	uint64_t to_offset;	/* address + to_offset = file offset */
	uint64_t first;		/* address of its first row */
	bool signal;
	bool leaves;		/* from .debug_frame of a Go program */
	int16_t frame_words;	/* of a function that lands exceptions: from sp to the CFA; else 0 */
	int err;
	struct unwtab_stats stats;
};

struct unwtab {
	struct wk_table table;
	struct unwtab_stats stats;
	size_t n;
	uint64_t words[];
};

static void compiler_cleanup(struct compiler *c)
{
	places_free(&c->p);
	free(c->index);
	free(c->rows);
	map_free(&c->sides);
}

/* ---- rows ----------------------------------------------------------------------------------- */

static bool same_rule(const struct wk_row *a, const struct wk_row *b)
{
	return a->cfa == b->cfa && a->fp_ra == b->fp_ra && a->cfa_off == b->cfa_off &&
	       a->fp_off == b->fp_off;
}

/* The last row is in force at the start of each block that starts before offset. */
static void fill_index(struct compiler *c, uint64_t offset)
{
	while (c->indexed <= c->blocks &&
	       c->base + ((uint64_t)c->indexed << WK_BLOCK_SHIFT) < offset)
		c->index[c->indexed++] = (uint32_t)c->nrows - 1;
}

static void commit_row(struct compiler *c)
{
	if (c->nrows && same_rule(&c->pending, &c->rows[c->nrows - 1]))
		return;
	if (c->nrows >= c->limits->rows) {
		c->err = -E2BIG;
		return;
	}
	c->err = array_grow(&c->rows, &c->cap_rows, c->nrows + 1, sizeof(*c->rows));
	if (c->err)
		return;
	if (c->nrows)
		fill_index(c, c->pending_offset);
	c->pending.pc = (uint16_t)c->pending_offset;
	c->rows[c->nrows++] = c->pending;
}

/* From offset on this rule holds. Offsets don't go back; of two at one offset the later counts. */
static void put_row(struct compiler *c, uint64_t offset, struct wk_row row)
{
	if (c->err)
		return;
	if (c->has_pending && offset != c->pending_offset)
		commit_row(c);
	c->pending = row;
	c->pending_offset = offset;
	c->has_pending = true;
}

/* A row of the place being compiled, of which another may cover the beginning or the end. */
static void put_row_at(struct compiler *c, uint64_t vaddr, struct wk_row row)
{
	uint64_t offset = vaddr == c->first ? c->start : MAX(vaddr + c->to_offset, c->start);

	if (offset < c->end)
		put_row(c, offset, row);
}

/* What unwtab.h takes of a rule of Go's. */
static struct wk_row leaf_row(const struct wk_row *row)
{
	bool frameless = row->cfa == WK_CFA_SP && row->cfa_off == 1 && WK_ROW_FP(*row) == WK_FP_SAME;

	return (struct wk_row){ .cfa = frameless ? WK_CFA_LEAF : WK_CFA_NONE };
}

/* What sub $N, %rsp (Intel SDM volume 2) takes, if one ends before code[SUB_MAX]; 0: none. */
enum { SUB_MAX = 7 };
static int64_t sub_before(const uint8_t code[static SUB_MAX])
{
	int32_t n;

	if (code[0] == 0x48 && code[1] == 0x81 && code[2] == 0xec) {
		memcpy(&n, code + 3, sizeof(n));
		return n;
	}
	return code[3] == 0x48 && code[4] == 0x83 && code[5] == 0xec ? (int8_t)code[6] : 0;
}

/* Functions that end by __builtin_eh_return save rax and rdx last, and no other scratch registers, to
 * hand them to the landing pad. CFI says so once the stack pointer has been moved as well: the frame has
 * a fixed size, though CFI calls it no more than rbp + 16. */
static void lands(struct compiler *c, uint64_t vaddr, const struct cfi_rule *rule, struct wk_row *row)
{
	uint64_t offset = vaddr + c->to_offset;
	uint8_t code[SUB_MAX];
	int64_t size;

	if (rule->scratch != (1 << 0 | 1 << 1) || row->cfa != WK_CFA_FP || row->cfa_off != 2 ||
	    WK_ROW_FP(*row) != WK_FP_SAVED || row->fp_off != -2 || c->p.machine != EM_X86_64)
		return;
	if (!c->frame_words && offset >= SUB_MAX &&
	    !elf_read(c->p.elf, offset - SUB_MAX, code, SUB_MAX)) {
		size = sub_before(code);
		size = size > 0 ? size - rule->ax : 0;
		c->frame_words = size % 8 == 0 && size / 8 <= INT16_MAX ? (int16_t)(size / 8) : 0;
	}
	if (c->frame_words)
		*row = (struct wk_row){ .cfa = WK_CFA_LANDS, .cfa_off = c->frame_words,
					.fp_off = -2, .fp_ra = WK_FP_SAVED | WK_BX_LOST << 4 };
}

static void each_rule(void *arg, uint64_t vaddr, const struct cfi_rule *rule)
{
	struct compiler *c = arg;
	struct wk_side side;
	struct wk_row row;
	uint32_t n;

	c->stats.reasons[rule_compile(c->p.machine, c->signal, rule, &row, &side)]++;
	if (c->leaves)
		row = leaf_row(&row);
	lands(c, vaddr, rule, &row);
	if (row.cfa == WK_CFA_SIDE) {
		int r = map_put(&c->sides, &side, &n, NULL);

		if (r) {
			c->err = r;
			return;
		}
		row.cfa_off = (__s16)n;
		row.fp_off = (__s16)(n >> 16);
	}
	put_row_at(c, vaddr, row);
}

static void compile_fde(struct compiler *c, struct cfi *cfi, size_t offset, uint64_t place_start,
			uint64_t prev_end)
{
	const struct wk_row bad = { .cfa = c->leaves ? WK_CFA_NONE : WK_CFA_BAD };
	struct cfi_fde fde;
	uint64_t from;

	if (cfi_fde_at(cfi, offset, &fde))	/* never: it could be read before */
		return;
	c->signal = fde.signal;
	c->frame_words = 0;
	c->first = fde.start;
	c->to_offset = place_start - fde.start;
	/* glibc's FDE starts one byte before the code on purpose; others may not know. */
	if (fde.signal && c->start > prev_end)
		c->start--;
	/* glibc's rawmemchr on arm64 says x15, which holds it from the middle on only. */
	if (fde.cie.ra_reg != cfi_machine(c->p.machine).ra) {
		c->stats.reasons[RULE_RA_EXPRESSION]++;
		put_row_at(c, fde.start, bad);
	} else if (cfi_run(&fde, each_rule, c, &from)) {
		c->stats.reasons[RULE_PROGRAM]++;
		put_row_at(c, from, bad);
	}
}

static void each_code_row(void *arg, uint64_t vaddr, const struct wk_row *row)
{
	put_row_at(arg, vaddr, *row);
}

static void compile_code(struct compiler *c, size_t piece, uint64_t place_start)
{
	uint64_t end;
	size_t n = piece;

	if (!code_next(c->p.code, &n, &c->first, &end))	/* never: it could before */
		return;
	c->to_offset = place_start - c->first;
	code_rows(c->p.code, piece, each_code_row, c);
}

static void each_go_row(void *arg, uint64_t vaddr, struct wk_row row)
{
	put_row_at(arg, vaddr, row);
}

static void compile_go(struct compiler *c, const struct gorows_func *f, uint64_t place_start)
{
	int r;

	c->first = f->start;
	c->to_offset = place_start - f->start;
	r = gorows_run(c->p.gorows, f, c->to_offset, each_go_row, c);
	if (r == -ENOMEM)	/* after other errors the rest of the function has no rows */
		c->err = r;
}

static void compile_place(struct compiler *c, const struct place *p, uint64_t prev_end)
{
	uint64_t size = c->end - c->start;

	c->leaves = c->p.go && !c->p.ngo_funcs && p->source & PLACE_DEBUG;
	if (p->source == PLACE_TRAMPOLINE) {
		put_row(c, c->start, (struct wk_row){ .cfa = WK_CFA_SIGNAL });
	} else if (p->source == PLACE_ENTRY) {
		put_row(c, c->start, (struct wk_row){ .cfa = WK_CFA_ROOT });
	} else if (p->source == PLACE_CLONE) {
		put_row(c, c->start, (struct wk_row){ .cfa = WK_CFA_CLONE });
	} else if (p->source & PLACE_DEBUG) {
		compile_fde(c, &c->p.cfi[1], p->source & ~PLACE_DEBUG, p->start, prev_end);
		c->stats.debug_frame_bytes += size;
	} else if (p->source & PLACE_GO) {
		compile_go(c, &c->p.go_funcs[p->source & ~PLACE_GO], p->start);
		c->stats.go_bytes += size;
	} else if (p->source & PLACE_CODE) {
		compile_code(c, p->source & ~PLACE_CODE, p->start);
	} else {
		compile_fde(c, &c->p.cfi[0], p->source, p->start, prev_end);
		c->stats.eh_frame_bytes += size;
	}
}

static int compile_places(struct compiler *c)
{
	const struct wk_row none = { .cfa = WK_CFA_NONE };
	uint64_t prev_end = c->base;	/* what lies before has its rows */

	put_row(c, c->base, none);
	for (size_t i = 0; i < c->p.n && !c->err; i++) {
		const struct place *p = &c->p.v[i];

		c->start = MAX(p->start, prev_end);
		c->end = p->start + p->size;
		if (i + 1 < c->p.n && p->source != PLACE_TRAMPOLINE && p[1].start < c->end) {
			c->end = p[1].start;
			c->stats.overlaps++;
		}
		if (c->end <= c->start)
			continue;
		if (c->start - prev_end > PADDING_MAX)
			put_row(c, prev_end, none);
		compile_place(c, p, prev_end);
		prev_end = c->end;
	}
	put_row(c, prev_end, none);
	if (!c->err)
		commit_row(c);
	fill_index(c, UINT64_MAX);
	return c->err;
}

static int make_index(struct compiler *c, uint64_t start, uint64_t end)
{
	c->base = start & ~(uint64_t)(WK_BLOCK - 1);
	if (end - c->base > c->limits->text_bytes)
		return -E2BIG;
	c->blocks = (uint32_t)((end - c->base) >> WK_BLOCK_SHIFT) + 1;
	c->index = calloc((size_t)c->blocks + 1, sizeof(*c->index));
	return c->index ? 0 : -ENOMEM;
}

/* Blocks from the first to the last place. */
static int index_places(struct compiler *c)
{
	uint64_t end = 0;

	for (size_t i = 0; i < c->p.n; i++)
		end = MAX(end, c->p.v[i].start + c->p.v[i].size);
	return make_index(c, c->p.v[0].start, end);
}

/* ---- the table ------------------------------------------------------------------------------ */

static int serialise(struct compiler *c, struct unwtab **ret)
{
	struct wk_table table = { c->base, c->blocks, (uint32_t)c->nrows };
	size_t n = WK_TABLE_SIDES(&table) + c->sides.n * WK_SIDE_WORDS;
	struct unwtab *t = calloc(1, sizeof(*t) + n * sizeof(t->words[0]));

	if (!t)
		return -ENOMEM;
	memcpy(t->words, c->index, ((size_t)c->blocks + 1) * sizeof(*c->index));
	memcpy(t->words + WK_TABLE_ROWS(&table), c->rows, c->nrows * sizeof(*c->rows));
	for (uint32_t i = 0; i < c->sides.n; i++)
		memcpy(t->words + WK_TABLE_SIDES(&table) + (size_t)i * WK_SIDE_WORDS,
		       map_key(&c->sides, i), sizeof(struct wk_side));
	c->stats.rows = table.rows;
	c->stats.sides = (uint32_t)c->sides.n;
	c->stats.bytes = n * sizeof(t->words[0]);
	t->table = table;
	t->stats = c->stats;
	t->n = n;
	*ret = t;
	return 0;
}

int unwtab_compile(const struct elf *elf, const struct unwtab_debug *debug,
		   const struct unwtab_limits *limits, struct unwtab **ret)
{
	struct compiler c cleanup(compiler_cleanup) = {
		.limits = limits, .sides = MAP_INIT(sizeof(struct wk_side)),
	};
	int r = places_find(elf, debug, limits, &c.p, &c.stats);

	if (!r)
		r = index_places(&c);
	if (!r)
		r = compile_places(&c);
	return r ? r : serialise(&c, ret);
}

int unwtab_build(const struct unwtab_rule *rules, size_t n, const struct unwtab_limits *limits,
		 struct unwtab **ret)
{
	struct compiler c cleanup(compiler_cleanup) = {
		.limits = limits, .sides = MAP_INIT(sizeof(struct wk_side)),
	};
	int r = make_index(&c, rules[0].addr, rules[n - 1].addr);

	if (r)
		return r;
	put_row(&c, c.base, (struct wk_row){ .cfa = WK_CFA_NONE });
	for (size_t i = 0; i < n; i++)
		put_row(&c, rules[i].addr, rules[i].row);
	if (!c.err)
		commit_row(&c);
	fill_index(&c, UINT64_MAX);
	return c.err ? c.err : serialise(&c, ret);
}

void unwtab_free(struct unwtab *t)
{
	free(t);
}

const uint64_t *unwtab_words(const struct unwtab *t, size_t *ret_n)
{
	*ret_n = t->n;
	return t->words;
}

const struct wk_table *unwtab_table(const struct unwtab *t)
{
	return &t->table;
}

const struct unwtab_stats *unwtab_stats(const struct unwtab *t)
{
	return &t->stats;
}

int unwtab_lookup(const struct unwtab *t, uint64_t offset, struct wk_row *ret_row,
		  struct wk_side *ret_side)
{
	const struct word_array words = { t->words, t->n };
	struct wk_row row;

	if (wk_rows_find(&t->table, &words, offset, &row))
		return -ENOENT;
	if (row.cfa == WK_CFA_SIDE && wk_rows_side(&t->table, &words, row, ret_side))
		return -ENOENT;
	*ret_row = row;
	return 0;
}
