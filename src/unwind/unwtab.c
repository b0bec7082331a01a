/* unwtab.c - see unwtab.h.
 *
 *	FDEs of all sources -> places (where, whose) -> sorted by file offset -> rows, in order
 *
 * FDEs are sorted, not rows: they are ten times fewer, and their rows then come out in order.
 */
#include <elf.h>

#include "base/map.h"
#include "unwind/cfi.h"
#include "unwind/gaps.h"
#include "unwind/unwtab.h"

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

#define SECTION_MAX   (1u << 30)	/* so that an offset leaves room for FROM_DEBUG and FROM_CODE */
#define SEGMENTS_MAX  64		/* executable PT_LOADs; files have 1 to 4 */
#define PADDING_MAX   15		/* functions are aligned to 16 */
#define ENTRY_BYTES   64
#define TRAMPOLINES   16		/* per file; files have 0 or 1 */
#define SCAN_CHUNK    (64u << 10)

/* A piece of code with a rule, or rules. */
struct place {
	uint64_t start;		/* file offset */
	uint32_t size;
	uint32_t source;	/* offset of the FDE, or one of the following */
};
enum {
	FROM_TRAMPOLINE = 0,	/* no FDE can be there: .eh_frame has a CIE first */
	FROM_ENTRY = 1,
};
#define FROM_DEBUG 0x80000000u	/* + offset in .debug_frame */
#define FROM_CODE  0x40000000u	/* + number of the piece of code */

struct compiler {
	const struct elf *elf;
	const struct unwtab_debug *open_debug;	/* NULL: there is none, or it has been asked for */
	const struct elf *debug;
	const struct unwtab_limits *limits;
	uint16_t machine;
	bool go;
	const struct elf_segment *segments[SEGMENTS_MAX];
	size_t nsegments;
	void *section[2];	/* .eh_frame, .debug_frame */
	struct cfi cfi[2];
	struct gap *gaps;	/* between places, by segment */
	size_t ngaps, gaps_cap;
	struct code *code;	/* what no section covers; or NULL */
	struct place *places;
	size_t nplaces, cap_places;

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
	free(c->section[0]);
	free(c->section[1]);
	free(c->gaps);
	code_free(c->code);
	free(c->places);
	free(c->index);
	free(c->rows);
	map_free(&c->sides);
}

/* ---- places --------------------------------------------------------------------------------- */

static int add_place(struct compiler *c, uint64_t start, uint64_t size, uint32_t source)
{
	int r;

	/* Functions are smaller than 4 GiB; hostile ones are cut. */
	size = MIN(size, (uint64_t)UINT32_MAX);
	if (c->nplaces >= c->limits->fdes)
		return -E2BIG;
	r = array_grow(&c->places, &c->cap_places, c->nplaces + 1, sizeof(*c->places));
	if (r)
		return r;
	c->places[c->nplaces++] = (struct place){ start, (uint32_t)size, source };
	return 0;
}

/* Frames hold offsets up to WK_FILE_OFF_MAX; code behind it is never asked for. */
static void find_segments(struct compiler *c)
{
	size_t n;
	const struct elf_segment *s = elf_segments(c->elf, &n);

	for (size_t i = 0; i < n && c->nsegments < SEGMENTS_MAX; i++)
		if (s[i].type == PT_LOAD && s[i].flags & PF_X && s[i].filesz &&
		    s[i].offset + s[i].filesz <= WK_FILE_OFF_MAX)
			c->segments[c->nsegments++] = &s[i];
}

/* The executable segment with file bytes at an address, or NULL. */
static const struct elf_segment *segment_of(const struct compiler *c, uint64_t vaddr)
{
	for (size_t i = 0; i < c->nsegments; i++)
		if (vaddr - c->segments[i]->vaddr < c->segments[i]->filesz)
			return c->segments[i];
	return NULL;
}

/* Of a range that starts at a file offset, the bytes in the gap there; 0: it starts in none. */
static uint64_t room_in_gap(const struct compiler *c, uint64_t offset, uint64_t size)
{
	size_t lo = 0, hi = c->ngaps;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct gap *g = &c->gaps[mid];

		if (offset - g->offset < g->size)
			return MIN(size, g->offset + g->size - offset);
		if (offset < g->offset)
			hi = mid;
		else
			lo = mid + 1;
	}
	return 0;
}

/* .debug_frame only fills gaps. */
static int add_fdes(struct compiler *c, struct cfi *cfi, uint32_t flag)
{
	const struct elf_segment *s = NULL;
	struct cfi_fde fde;
	uint64_t offset, size;
	size_t pos = 0;
	int r;

	while ((r = cfi_next(cfi, &pos, &fde)) != -ENOENT) {
		if (r) {
			c->stats.fdes_malformed += r == -EBADMSG;
			c->stats.fdes_unsupported += r != -EBADMSG;
			continue;
		}
		if (!s || fde.start - s->vaddr >= s->filesz)
			s = segment_of(c, fde.start);
		if (!s)
			continue;
		offset = fde.start - s->vaddr + s->offset;
		size = MIN(fde.size, s->vaddr + s->filesz - fde.start);
		if (flag == FROM_DEBUG)
			size = room_in_gap(c, offset, size);
		if (!size)
			continue;
		r = add_place(c, offset, size, (uint32_t)fde.offset | flag);
		if (r)
			return r;
		c->stats.fdes++;
	}
	return 0;
}

/* Of those that start together the last will count: trampoline, entry, .eh_frame, .debug_frame. */
static int by_start(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->source > y->source ? -1 : x->source < y->source;
}

static void sort_places(struct compiler *c)
{
	bool sorted = true;

	/* Most files have them in order already. */
	for (size_t i = 1; i < c->nplaces && sorted; i++)
		sorted = by_start(&c->places[i - 1], &c->places[i]) <= 0;
	if (!sorted)
		qsort(c->places, c->nplaces, sizeof(*c->places), by_start);
}

static int add_gap(struct compiler *c, const struct elf_segment *s, uint64_t start, uint64_t end)
{
	int r = array_grow(&c->gaps, &c->gaps_cap, c->ngaps + 1, sizeof(*c->gaps));

	if (!r)
		c->gaps[c->ngaps++] = (struct gap){ start, start - s->offset + s->vaddr, end - start };
	return r;
}

/* The code between the places, which are sorted. */
static int find_gaps(struct compiler *c)
{
	int r = 0;

	c->ngaps = 0;
	for (size_t i = 0; i < c->nsegments && !r; i++) {
		const struct elf_segment *s = c->segments[i];
		uint64_t at = s->offset, end = s->offset + s->filesz;

		for (size_t j = 0; j < c->nplaces && !r; j++) {
			const struct place *p = &c->places[j];

			if (p->start + p->size <= at)
				continue;
			if (p->start >= end)
				break;
			if (p->start > at)
				r = add_gap(c, s, at, p->start);
			at = p->start + p->size;
		}
		if (!r && at < end)
			r = add_gap(c, s, at, end);
	}
	return r;
}

/* More than padding between functions. */
static bool has_gaps(const struct compiler *c)
{
	for (size_t i = 0; i < c->ngaps; i++)
		if (c->gaps[i].size >= GAPS_MIN)
			return true;
	return false;
}

/* ---- sections ------------------------------------------------------------------------------- */

static int read_section(struct compiler *c, const struct elf *elf, const char *name, int which)
{
	const struct elf_section *s = elf_section_by_name(elf, name);
	size_t size;
	void *data;
	int r;

	if (!s || s->type == SHT_NOBITS)
		return -ENOENT;
	r = elf_section_read(elf, s, MIN(c->limits->section_bytes, (size_t)SECTION_MAX), &data,
			     &size);
	if (r)
		return r;
	c->section[which] = data;
	c->cfi[which] = (struct cfi){ .data = data, .size = size, .vaddr = s->addr,
				      .machine = c->machine, .debug_frame = which };
	return 0;
}

/* Without sections: .eh_frame_hdr points to .eh_frame, whose end a zero marks. */
static int read_by_header(struct compiler *c)
{
	const struct elf_segment *hdr = elf_segment_by_type(c->elf, PT_GNU_EH_FRAME), *s;
	size_t n, nsegments, max = MIN(c->limits->section_bytes, (size_t)SECTION_MAX);
	uint8_t head[16];
	uint64_t vaddr, offset, size;
	int r;

	if (!hdr || hdr->filesz < sizeof(head))
		return -ENOENT;
	r = elf_read(c->elf, hdr->offset, head, sizeof(head));
	if (!r)
		r = cfi_eh_frame_hdr(head, sizeof(head), hdr->vaddr, &vaddr);
	if (!r)
		r = elf_vaddr_to_offset(c->elf, vaddr, &offset);
	if (r)
		return r;
	s = elf_segments(c->elf, &nsegments);
	while (nsegments && (s->type != PT_LOAD || vaddr - s->vaddr >= s->filesz)) {
		s++;
		nsegments--;
	}
	if (!nsegments)
		return -EBADMSG;
	size = MIN(s->filesz - (vaddr - s->vaddr), elf_size(c->elf) - offset);
	n = MIN(size, (uint64_t)max);
	c->section[0] = malloc(n);
	if (!c->section[0])
		return -ENOMEM;
	c->cfi[0] = (struct cfi){ .data = c->section[0], .size = n, .vaddr = vaddr,
				  .machine = c->machine, .to_zero = true };
	return elf_read(c->elf, offset, c->section[0], n);
}

static bool is_go(const struct elf *elf)
{
	return elf_section_by_name(elf, ".gopclntab") ||
	       elf_section_by_name(elf, ".go.buildinfo") ||
	       elf_section_by_name(elf, ".data.rel.ro.gopclntab");
}

static int add_eh_frame(struct compiler *c)
{
	int r = read_section(c, c->elf, ".eh_frame", 0);

	if (r == -ENOENT || r == -EBADMSG)
		r = read_by_header(c);
	if (r)
		return r == -ENOENT ? 0 : r;
	return add_fdes(c, &c->cfi[0], 0);
}

/* The separate debug file, or NULL. Few files need it. */
static const struct elf *debug_file(struct compiler *c)
{
	if (c->open_debug)
		c->debug = c->open_debug->open(c->open_debug->arg);
	c->open_debug = NULL;
	if (c->debug && elf_machine(c->debug) != c->machine)
		c->debug = NULL;
	return c->debug;
}

static int add_debug_frame(struct compiler *c)
{
	int r;

	/* arm64: a leaf's return address is in lr, its frame has other rules */
	if (c->go && c->machine != EM_X86_64)
		return 0;
	r = read_section(c, c->elf, ".debug_frame", 1);
	if (r == -ENOENT && has_gaps(c) && debug_file(c))
		r = read_section(c, c->debug, ".debug_frame", 1);
	if (r)
		return r == -ENOENT ? 0 : r;
	return add_fdes(c, &c->cfi[1], FROM_DEBUG);
}

/* ---- code without FDEs ---------------------------------------------------------------------- */

/* What a signal handler returns to. mov $15, %rax; syscall. mov x8, #139; svc #0. */
static const uint8_t x86_64_trampoline[] = { 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05 };
static const uint8_t arm64_trampoline[] = { 0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4 };

/* Looks for trampolines in one gap. */
static int scan_gap(struct compiler *c, uint64_t start, uint64_t end, uint8_t *chunk,
		    uint64_t *budget)
{
	bool x86 = c->machine == EM_X86_64;
	const uint8_t *code = x86 ? x86_64_trampoline : arm64_trampoline;
	size_t size = x86 ? sizeof(x86_64_trampoline) : sizeof(arm64_trampoline);
	const uint8_t *p, *from;
	int r;

	/* One round a chunk; chunks overlap, since a trampoline may lie across. */
	while (end - start >= size && *budget && c->stats.trampolines < TRAMPOLINES) {
		size_t n = MIN(MIN(end - start, (uint64_t)SCAN_CHUNK), *budget);

		r = elf_read(c->elf, start, chunk, n);
		if (r)
			return r == -EBADMSG ? 0 : r;	/* a truncated file runs no code there */
		from = chunk;
		while ((p = memmem(from, chunk + n - from, code, size))) {
			uint64_t at = start + (p - chunk);

			from = p + size;
			/* Also the byte before: where a return address is looked up. */
			r = add_place(c, at - !!at, size + !!at, FROM_TRAMPOLINE);
			if (r)
				return r;
			c->stats.trampolines++;
		}
		*budget -= n;
		start += n == SCAN_CHUNK ? n - (size - 1) : n;
	}
	return 0;
}

static int scan_gaps(struct compiler *c)
{
	cleanup(freep_cleanup) uint8_t *chunk = malloc(SCAN_CHUNK);
	uint64_t budget = c->limits->scan_bytes;
	int r = chunk ? find_gaps(c) : -ENOMEM;

	for (size_t i = 0; i < c->ngaps && !r; i++)
		r = scan_gap(c, c->gaps[i].offset, c->gaps[i].offset + c->gaps[i].size, chunk,
			     &budget);
	return r;
}

/* Linkers may give libraries an entry point as well, the first byte of .text, which means nothing.
 * A real one without PT_INTERP (ld.so, static PIE) shows it by how it begins: it clears the frame
 * pointer or takes the initial sp as an argument, which no function would do first. */
static bool is_entry(const struct compiler *c, uint64_t offset)
{
	static const struct {
		uint16_t machine;
		uint8_t size;
		uint8_t code[8];
	} begins[] = {
		{ EM_X86_64, 2, { 0x31, 0xed } },			/* xor %ebp, %ebp */
		{ EM_X86_64, 3, { 0x48, 0x31, 0xed } },			/* xor %rbp, %rbp */
		{ EM_X86_64, 6, { 0xf3, 0x0f, 0x1e, 0xfa, 0x31, 0xed } }, /* endbr64; xor */
		{ EM_X86_64, 3, { 0x48, 0x89, 0xe7 } },			/* mov %rsp, %rdi */
		{ EM_AARCH64, 4, { 0x1d, 0x00, 0x80, 0xd2 } },		/* mov x29, #0 */
		{ EM_AARCH64, 4, { 0xe0, 0x03, 0x00, 0x91 } },		/* mov x0, sp */
		{ EM_AARCH64, 8, { 0x5f, 0x24, 0x03, 0xd5, 0x1d, 0x00, 0x80, 0xd2 } }, /* bti c; */
		{ EM_AARCH64, 8, { 0x5f, 0x24, 0x03, 0xd5, 0xe0, 0x03, 0x00, 0x91 } },
	};
	uint8_t code[8];

	if (elf_type(c->elf) == ET_EXEC || elf_segment_by_type(c->elf, PT_INTERP))
		return true;
	if (elf_read(c->elf, offset, code, sizeof(code)))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(begins); i++)
		if (begins[i].machine == c->machine &&
		    !memcmp(code, begins[i].code, begins[i].size))
			return true;
	return false;
}

/* Rules made from code where there are no others. Go's code is walked by its frame pointers. */
static int add_code(struct compiler *c)
{
	const struct elf *debug = NULL;
	uint64_t entry = elf_entry(c->elf), start, end, offset;
	const struct elf_segment *s = segment_of(c, entry);
	size_t n = 0;
	int r;

	if (c->machine != EM_X86_64 || c->go)
		return 0;
	if (!entry || !s || !is_entry(c, entry - s->vaddr + s->offset))
		entry = 0;
	sort_places(c);
	r = find_gaps(c);
	if (!r && has_gaps(c) && !elf_section_by_type(c->elf, SHT_SYMTAB))
		debug = debug_file(c);
	if (!r)
		r = gaps_trace(c->elf, debug, entry, c->gaps, c->ngaps, c->limits->code_bytes,
			       &c->code);
	if (r)
		return r == -ENOENT ? 0 : r;
	c->stats.code_bytes = code_known_bytes(c->code);
	while (code_next(c->code, &n, &start, &end)) {
		s = segment_of(c, start);
		offset = start - s->vaddr + s->offset;
		r = add_place(c, offset, end - start, (uint32_t)(n - 1) | FROM_CODE);
		if (r)
			return r;
	}
	return 0;
}

/* The entry point has no caller. Says so where the CFI doesn't cover it. */
static int add_entry(struct compiler *c)
{
	uint64_t entry = elf_entry(c->elf), offset, room;
	const struct elf_segment *s = segment_of(c, entry);

	if (!entry || !s || !is_entry(c, entry - s->vaddr + s->offset))
		return 0;
	offset = entry - s->vaddr + s->offset;
	room = s->offset + s->filesz - offset;
	for (size_t i = 0; i < c->nplaces; i++) {
		const struct place *p = &c->places[i];

		if (p->source == FROM_TRAMPOLINE || p->start + p->size <= offset)
			continue;
		if (p->start <= offset)
			return 0;
		room = MIN(room, p->start - offset);
	}
	return add_place(c, offset, MIN(room, (uint64_t)ENTRY_BYTES), FROM_ENTRY);
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

static void each_rule(void *arg, uint64_t vaddr, const struct cfi_rule *rule)
{
	struct compiler *c = arg;
	struct wk_side side;
	struct wk_row row;
	uint32_t n;

	c->stats.reasons[rule_compile(c->machine, c->signal, rule, &row, &side)]++;
	if (c->leaves)
		row = leaf_row(&row);
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
	c->first = fde.start;
	c->to_offset = place_start - fde.start;
	/* glibc's FDE starts one byte before the code on purpose; others may not know. */
	if (fde.signal && c->start > prev_end)
		c->start--;
	/* glibc's rawmemchr on arm64 says x15, which holds it from the middle on only. */
	if (fde.cie.ra_reg != cfi_machine(c->machine).ra) {
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

	if (!code_next(c->code, &n, &c->first, &end))	/* never: it could before */
		return;
	c->to_offset = place_start - c->first;
	code_rows(c->code, piece, each_code_row, c);
}

static void compile_place(struct compiler *c, const struct place *p, uint64_t prev_end)
{
	c->leaves = c->go && p->source & FROM_DEBUG;
	if (p->source == FROM_TRAMPOLINE)
		put_row(c, c->start, (struct wk_row){ .cfa = WK_CFA_SIGNAL });
	else if (p->source == FROM_ENTRY)
		put_row(c, c->start, (struct wk_row){ .cfa = WK_CFA_ROOT });
	else if (p->source & FROM_DEBUG)
		compile_fde(c, &c->cfi[1], p->source & ~FROM_DEBUG, p->start, prev_end);
	else if (p->source & FROM_CODE)
		compile_code(c, p->source & ~FROM_CODE, p->start);
	else
		compile_fde(c, &c->cfi[0], p->source, p->start, prev_end);
}

static int compile_places(struct compiler *c)
{
	const struct wk_row none = { .cfa = WK_CFA_NONE };
	uint64_t prev_end = c->base;	/* what lies before has its rows */

	put_row(c, c->base, none);
	for (size_t i = 0; i < c->nplaces && !c->err; i++) {
		const struct place *p = &c->places[i];

		c->start = MAX(p->start, prev_end);
		c->end = p->start + p->size;
		if (i + 1 < c->nplaces && p->source != FROM_TRAMPOLINE && p[1].start < c->end) {
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

/* Blocks from the first to the last place. */
static int make_index(struct compiler *c)
{
	uint64_t end = 0;

	for (size_t i = 0; i < c->nplaces; i++)
		end = MAX(end, c->places[i].start + c->places[i].size);
	c->base = c->places[0].start & ~(uint64_t)(WK_BLOCK - 1);
	if (end - c->base > c->limits->text_bytes)
		return -E2BIG;
	c->blocks = (uint32_t)((end - c->base) >> WK_BLOCK_SHIFT) + 1;
	c->index = calloc((size_t)c->blocks + 1, sizeof(*c->index));
	return c->index ? 0 : -ENOMEM;
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
		.elf = elf, .open_debug = debug, .limits = limits, .machine = elf_machine(elf), .go = is_go(elf),
		.sides = MAP_INIT(sizeof(struct wk_side)),
	};
	int r;

	if (!cfi_machine(c.machine).ra || elf_type(elf) == ET_REL)
		return -ENOTSUP;
	find_segments(&c);
	r = add_eh_frame(&c);
	if (r)
		return r;
	sort_places(&c);
	r = scan_gaps(&c);
	if (!r)
		r = add_debug_frame(&c);
	if (!r)
		r = add_code(&c);
	if (!r)
		r = add_entry(&c);
	if (r)
		return r;
	if (!c.nplaces)
		return -ENOENT;
	sort_places(&c);
	r = make_index(&c);
	if (!r)
		r = compile_places(&c);
	return r ? r : serialise(&c, ret);
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
