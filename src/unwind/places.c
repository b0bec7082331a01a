/* places.c - see places.h. */
#include <elf.h>

#include "unwind/places.h"

#include "elf/gotab.h"

#define ENTRY_BYTES 64
#define TRAMPOLINES 16		/* per file; files have 0 or 1 */
#define CLONE_SHORT 10		/* bytes from the system call to the child, jl with 8 bits of distance */
#define CLONE_NEAR  14		/* or 32 */
#define SCAN_WINDOW (16u << 10)	/* bytes read at a time */

/* ---- pieces --------------------------------------------------------------------------------- */

static int add_place(struct places *p, uint64_t start, uint64_t size, uint32_t source)
{
	int r;

	/* Functions are smaller than 4 GiB; hostile ones are cut. */
	size = MIN(size, (uint64_t)UINT32_MAX);
	if (p->n >= p->limits->fdes)
		return -E2BIG;
	r = array_grow(&p->v, &p->cap, p->n + 1, sizeof(*p->v));
	if (r)
		return r;
	p->v[p->n++] = (struct place){ start, (uint32_t)size, source };
	return 0;
}

/* Frames hold offsets up to WK_FILE_OFF_MAX; code behind it is never asked for. */
static void find_segments(struct places *p)
{
	size_t n;
	const struct elf_segment *s = elf_segments(p->elf, &n);

	for (size_t i = 0; i < n && p->nsegments < PLACES_SEGMENTS_MAX; i++)
		if (s[i].type == PT_LOAD && s[i].flags & PF_X && s[i].filesz &&
		    s[i].offset + s[i].filesz <= WK_FILE_OFF_MAX)
			p->segments[p->nsegments++] = &s[i];
}

/* Executable sections where there are some: older linkers put read-only data into the segment. */
static uint64_t text_bytes(const struct places *p)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < elf_section_count(p->elf); i++) {
		const struct elf_section *s = elf_section(p->elf, i);

		if (s->type == SHT_PROGBITS && s->flags & SHF_EXECINSTR &&
		    s->size <= elf_size(p->elf) && sum <= elf_size(p->elf))
			sum += s->size;
	}
	for (size_t i = 0; i < p->nsegments && !elf_section_count(p->elf); i++)
		sum += p->segments[i]->filesz;
	return sum;
}

/* The executable segment with file bytes at an address, or NULL. */
static const struct elf_segment *segment_of(const struct places *p, uint64_t vaddr)
{
	for (size_t i = 0; i < p->nsegments; i++)
		if (vaddr - p->segments[i]->vaddr < p->segments[i]->filesz)
			return p->segments[i];
	return NULL;
}

/* Of a range that starts at a file offset, the bytes in the gap there; 0: it starts in none. */
static uint64_t room_in_gap(const struct places *p, uint64_t offset, uint64_t size)
{
	size_t lo = 0, hi = p->ngaps;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct gap *g = &p->gaps[mid];

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
static int add_fdes(struct places *p, struct cfi *cfi, uint32_t flag)
{
	const struct elf_segment *s = NULL;
	struct cfi_fde fde;
	uint64_t offset, size;
	size_t pos = 0;
	int r;

	while ((r = cfi_next(cfi, &pos, &fde)) != -ENOENT) {
		if (r) {
			p->stats->fdes_malformed += r == -EBADMSG;
			p->stats->fdes_unsupported += r != -EBADMSG;
			continue;
		}
		if (!s || fde.start - s->vaddr >= s->filesz)
			s = segment_of(p, fde.start);
		if (!s)
			continue;
		offset = fde.start - s->vaddr + s->offset;
		size = MIN(fde.size, s->vaddr + s->filesz - fde.start);
		if (flag == PLACE_DEBUG)
			size = room_in_gap(p, offset, size);
		if (!size)
			continue;
		r = add_place(p, offset, size, (uint32_t)fde.offset | flag);
		if (r)
			return r;
		p->stats->fdes++;
	}
	return 0;
}

/* Of those that start together the last will count: trampoline, entry, clone, .eh_frame, Go, code,
 * .debug_frame. */
static int by_start(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->source > y->source ? -1 : x->source < y->source;
}

static void sort_places(struct places *p)
{
	bool sorted = true;

	/* Most files have them in order already. */
	for (size_t i = 1; i < p->n && sorted; i++)
		sorted = by_start(&p->v[i - 1], &p->v[i]) <= 0;
	if (!sorted)
		qsort(p->v, p->n, sizeof(*p->v), by_start);
}

static int add_piece(struct places *p, const struct elf_segment *s, uint64_t start, uint64_t end)
{
	int r = array_grow(&p->gaps, &p->gaps_cap, p->ngaps + 1, sizeof(*p->gaps));

	if (!r)
		p->gaps[p->ngaps++] = (struct gap){ start, start - s->offset + s->vaddr, end - start };
	return r;
}

/* The code between the places, which are sorted. */
/* Of a gap in a segment, what sections say is code: linkers that don't align segments to pages put strings
 * and constants there as well, more than there is code. Without such sections all of it. */
static int add_gap(struct places *p, const struct elf_segment *s, uint64_t start, uint64_t end)
{
	int r = 0;

	if (!p->ncode)
		return add_piece(p, s, start, end);
	for (size_t i = 0; i < p->ncode && !r; i++) {
		uint64_t from = MAX(start, p->code_sections[i].start);
		uint64_t to = MIN(end, p->code_sections[i].end);

		if (from < to)
			r = add_piece(p, s, from, to);
	}
	return r;
}

static void find_code_sections(struct places *p)
{
	for (size_t i = 0; i < elf_section_count(p->elf) && p->ncode < PLACES_SEGMENTS_MAX; i++) {
		const struct elf_section *s = elf_section(p->elf, i);

		if (s->type == SHT_PROGBITS && s->flags & SHF_EXECINSTR &&
		    s->offset <= elf_size(p->elf) && s->size <= elf_size(p->elf) - s->offset)
			p->code_sections[p->ncode++] =
				(struct file_range){ s->offset, s->offset + s->size };
	}
}

static int find_gaps(struct places *p)
{
	int r = 0;

	p->ngaps = 0;
	for (size_t i = 0; i < p->nsegments && !r; i++) {
		const struct elf_segment *s = p->segments[i];
		uint64_t at = s->offset, end = s->offset + s->filesz;

		for (size_t j = 0; j < p->n && !r; j++) {
			const struct place *q = &p->v[j];

			if (q->start + q->size <= at)
				continue;
			if (q->start >= end)
				break;
			if (q->start > at)
				r = add_gap(p, s, at, q->start);
			at = q->start + q->size;
		}
		if (!r && at < end)
			r = add_gap(p, s, at, end);
	}
	return r;
}

/* More than padding between functions. */
static bool has_gaps(const struct places *p)
{
	for (size_t i = 0; i < p->ngaps; i++)
		if (p->gaps[i].size >= GAPS_MIN)
			return true;
	return false;
}

/* ---- sections ------------------------------------------------------------------------------- */

static int read_section(struct places *p, const struct elf *elf, const char *name, int which)
{
	const struct elf_section *s = elf_section_by_name(elf, name);
	size_t size;
	void *data;
	int r;

	if (!s || s->type == SHT_NOBITS)
		return -ENOENT;
	r = elf_section_read(elf, s, MIN(p->limits->section_bytes, (size_t)PLACES_SECTION_MAX), &data,
			     &size);
	if (r)
		return r;
	p->section[which] = data;
	p->cfi[which] = (struct cfi){ .data = data, .size = size, .vaddr = s->addr,
				      .machine = p->machine, .debug_frame = which };
	return 0;
}

/* Without sections: .eh_frame_hdr points to .eh_frame, whose end a zero marks. */
static int read_by_header(struct places *p)
{
	const struct elf_segment *hdr = elf_segment_by_type(p->elf, PT_GNU_EH_FRAME), *s;
	size_t n, nsegments, max = MIN(p->limits->section_bytes, (size_t)PLACES_SECTION_MAX);
	uint8_t head[16];
	uint64_t vaddr, offset, size;
	int r;

	if (!hdr || hdr->filesz < sizeof(head))
		return -ENOENT;
	r = elf_read(p->elf, hdr->offset, head, sizeof(head));
	if (!r)
		r = cfi_eh_frame_hdr(head, sizeof(head), hdr->vaddr, &vaddr);
	if (!r)
		r = elf_vaddr_to_offset(p->elf, vaddr, &offset);
	if (r)
		return r;
	s = elf_segments(p->elf, &nsegments);
	while (nsegments && (s->type != PT_LOAD || vaddr - s->vaddr >= s->filesz)) {
		s++;
		nsegments--;
	}
	if (!nsegments)
		return -EBADMSG;
	size = MIN(s->filesz - (vaddr - s->vaddr), elf_size(p->elf) - offset);
	n = MIN(size, (uint64_t)max);
	p->section[0] = malloc(n);
	if (!p->section[0])
		return -ENOMEM;
	p->cfi[0] = (struct cfi){ .data = p->section[0], .size = n, .vaddr = vaddr,
				  .machine = p->machine, .to_zero = true };
	return elf_read(p->elf, offset, p->section[0], n);
}

static bool is_go(const struct elf *elf)
{
	struct gotab *t;

	if (!elf_section_count(elf)) {
		if (gotab_open(elf, &t))
			return false;
		gotab_free(t);
		return true;
	}
	return elf_section_by_name(elf, ".gopclntab") ||
	       elf_section_by_name(elf, ".go.buildinfo") ||
	       elf_section_by_name(elf, ".data.rel.ro.gopclntab");
}

static int add_eh_frame(struct places *p)
{
	int r = read_section(p, p->elf, ".eh_frame", 0);

	if (r == -ENOENT || r == -EBADMSG)
		r = read_by_header(p);
	if (r)
		return r == -ENOENT ? 0 : r;
	return add_fdes(p, &p->cfi[0], 0);
}

/* A damaged table is as good as none: there are still frame pointers. */
static int add_go(struct places *p)
{
	const struct elf_segment *s = NULL;
	struct gorows_func f;
	int r = p->go ? gorows_open(p->elf, &p->gorows) : -ENOENT;

	while (!r && !(r = gorows_next(p->gorows, &f))) {
		if (!s || f.start - s->vaddr >= s->filesz)
			s = segment_of(p, f.start);
		if (!s)
			continue;
		r = array_grow(&p->go_funcs, &p->go_funcs_cap, p->ngo_funcs + 1, sizeof(f));
		if (!r)
			r = add_place(p, f.start - s->vaddr + s->offset,
				      MIN(f.end - f.start, s->vaddr + s->filesz - f.start),
				      (uint32_t)p->ngo_funcs | PLACE_GO);
		if (r)
			return r;
		p->go_funcs[p->ngo_funcs++] = f;
	}
	if (r == -ENOMEM || !p->ngo_funcs)
		return r == -ENOMEM ? r : 0;
	sort_places(p);
	return find_gaps(p);
}

/* The separate debug file, or NULL. Few files need it. */
static const struct elf *debug_file(struct places *p)
{
	if (p->open_debug)
		p->debug = p->open_debug->open(p->open_debug->arg);
	p->open_debug = NULL;
	if (p->debug && elf_machine(p->debug) != p->machine)
		p->debug = NULL;
	return p->debug;
}

static int add_debug_frame(struct places *p)
{
	int r;

	/* arm64: a leaf's return address is in lr, its frame has other rules */
	if (p->go && p->machine != EM_X86_64)
		return 0;
	r = read_section(p, p->elf, ".debug_frame", 1);
	if (r == -ENOENT && has_gaps(p) && debug_file(p))
		r = read_section(p, p->debug, ".debug_frame", 1);
	if (r)
		return r == -ENOENT ? 0 : r;
	return add_fdes(p, &p->cfi[1], PLACE_DEBUG);
}

/* ---- code without FDEs ---------------------------------------------------------------------- */

/* What a signal handler returns to. mov $15, %rax; syscall. mov x8, #139; svc #0. */
static const uint8_t x86_64_trampoline[] = { 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05 };
static const uint8_t arm64_trampoline[] = { 0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4 };

/* Bytes of the file, read in advance: there is a gap every few hundred bytes. */
struct window {
	uint64_t start;
	size_t n;
	uint8_t bytes[SCAN_WINDOW];
};

/* The window that has the n bytes at an offset; n is at most SCAN_WINDOW. -ENODATA: the file hasn't. */
static int window_read(const struct places *p, struct window *w, uint64_t offset, size_t n,
		       const uint8_t **ret)
{
	int r;

	if (offset < w->start || offset - w->start > w->n || n > w->n - (offset - w->start)) {
		w->n = 0;
		if (offset >= elf_size(p->elf) || n > elf_size(p->elf) - offset)
			return -ENODATA;
		w->start = offset;
		n = MIN((uint64_t)SCAN_WINDOW, elf_size(p->elf) - offset);
		r = elf_read(p->elf, offset, w->bytes, n);
		if (r)
			return r == -EBADMSG ? -ENODATA : r;	/* cut off meanwhile */
		w->n = n;
	}
	*ret = w->bytes + (offset - w->start);
	return 0;
}

static int add_trampoline(struct places *p, uint64_t at, size_t size)
{
	p->stats->trampolines++;
	/* Also the byte before: where a return address is looked up. */
	return add_place(p, at - !!at, size + !!at, PLACE_TRAMPOLINE);
}

/* glibc's clone and clone3 end their FDE at the system call, for what it says is wrong in the child, and
 * begin the child's behind it: syscall; test %rax, %rax; jl error; jz child; ret; child: */
static bool is_clone(const uint8_t *code, size_t n)
{
	static const uint8_t call[] = { 0x0f, 0x05, 0x48, 0x85, 0xc0 }, child[] = { 0x74, 0x01, 0xc3 };

	return (n == CLONE_SHORT || n == CLONE_NEAR) && !memcmp(code, call, sizeof(call)) &&
	       !memcmp(code + n - sizeof(child), child, sizeof(child));
}

/* Looks for trampolines in one gap. */
static int scan_gap(struct places *p, uint64_t start, uint64_t end, struct window *w, uint64_t *budget)
{
	bool x86 = p->machine == EM_X86_64;
	const uint8_t *code = x86 ? x86_64_trampoline : arm64_trampoline;
	size_t size = x86 ? sizeof(x86_64_trampoline) : sizeof(arm64_trampoline);
	const uint8_t *chunk, *found, *from;
	int r;

	/* One round a chunk; chunks overlap, since a trampoline may lie across. */
	while (end - start >= size && *budget && p->stats->trampolines < TRAMPOLINES) {
		size_t n = MIN(MIN(end - start, (uint64_t)SCAN_WINDOW), *budget);

		r = window_read(p, w, start, n, &chunk);
		if (r)
			return r == -ENODATA ? 0 : r;	/* a truncated file runs no code there */
		if (x86 && n == end - start && is_clone(chunk, n))
			return add_place(p, start, n, PLACE_CLONE);
		for (from = chunk; (found = memmem(from, chunk + n - from, code, size));
		     from = found + size) {
			r = add_trampoline(p, start + (found - chunk), size);
			if (r)
				return r;
		}
		*budget -= n;
		start += n == SCAN_WINDOW ? n - (size - 1) : n;
	}
	return 0;
}

static int scan_gaps(struct places *p)
{
	cleanup(freep_cleanup) struct window *w = malloc(sizeof(*w));
	uint64_t budget = p->limits->scan_bytes;
	int r = w ? find_gaps(p) : -ENOMEM;

	if (w)
		w->start = w->n = 0;
	for (size_t i = 0; i < p->ngaps && !r; i++)
		r = scan_gap(p, p->gaps[i].offset, p->gaps[i].offset + p->gaps[i].size, w, &budget);
	return r;
}

/* Linkers may give libraries an entry point as well, the first byte of .text, which means nothing.
 * A real one without PT_INTERP (ld.so, static PIE) shows it by how it begins: it clears the frame
 * pointer or takes the initial sp as an argument, which no function would do first. */
static bool is_entry(const struct places *p, uint64_t offset)
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

	if (elf_type(p->elf) == ET_EXEC || elf_segment_by_type(p->elf, PT_INTERP))
		return true;
	if (elf_read(p->elf, offset, code, sizeof(code)))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(begins); i++)
		if (begins[i].machine == p->machine &&
		    !memcmp(code, begins[i].code, begins[i].size))
			return true;
	return false;
}

/* Rules made from code where there are no others. Go's code without its tables is walked by its frame
 * pointers. */
static int add_code(struct places *p)
{
	const struct elf *debug = NULL;
	uint64_t entry = elf_entry(p->elf), start, end, offset;
	const struct elf_segment *s = segment_of(p, entry);
	size_t n = 0;
	int r;

	if (p->machine != EM_X86_64 || (p->go && !p->ngo_funcs))
		return 0;
	if (!entry || !s || !is_entry(p, entry - s->vaddr + s->offset))
		entry = 0;
	sort_places(p);
	r = find_gaps(p);
	if (!r && has_gaps(p) && !elf_section_by_type(p->elf, SHT_SYMTAB))
		debug = debug_file(p);
	if (!r)
		r = gaps_trace(p->elf, debug, entry, p->gaps, p->ngaps, p->limits->code_bytes,
			       &p->code, &p->stats->code_left);
	if (r)
		return r == -ENOENT ? 0 : r;
	p->stats->code_bytes = code_known_bytes(p->code);
	while (code_next(p->code, &n, &start, &end)) {
		s = segment_of(p, start);
		offset = start - s->vaddr + s->offset;
		r = add_place(p, offset, end - start, (uint32_t)(n - 1) | PLACE_CODE);
		if (r)
			return r;
	}
	return 0;
}

/* The entry point has no caller. Says so where the CFI doesn't cover it. */
static int add_entry(struct places *p)
{
	uint64_t entry = elf_entry(p->elf), offset, room;
	const struct elf_segment *s = segment_of(p, entry);

	if (!entry || !s || !is_entry(p, entry - s->vaddr + s->offset))
		return 0;
	offset = entry - s->vaddr + s->offset;
	room = s->offset + s->filesz - offset;
	for (size_t i = 0; i < p->n; i++) {
		const struct place *q = &p->v[i];

		if (q->source == PLACE_TRAMPOLINE || q->start + q->size <= offset)
			continue;
		if (q->start <= offset)
			return 0;
		room = MIN(room, q->start - offset);
	}
	return add_place(p, offset, MIN(room, (uint64_t)ENTRY_BYTES), PLACE_ENTRY);
}

/* ---- all of them ---------------------------------------------------------------------------- */

int places_find(const struct elf *elf, const struct unwtab_debug *debug,
		const struct unwtab_limits *limits, struct places *p, struct unwtab_stats *stats)
{
	int r;

	p->elf = elf;
	p->open_debug = debug;
	p->limits = limits;
	p->stats = stats;
	p->machine = elf_machine(elf);
	p->go = is_go(elf);
	if (!cfi_machine(p->machine).ra || elf_type(elf) == ET_REL)
		return -ENOTSUP;
	find_segments(p);
	find_code_sections(p);
	stats->text_bytes = text_bytes(p);
	stats->go = p->go;
	r = add_eh_frame(p);
	if (r)
		return r;
	sort_places(p);
	r = scan_gaps(p);
	if (!r)
		r = add_go(p);
	if (!r)
		r = add_debug_frame(p);
	if (!r)
		r = add_code(p);
	if (!r)
		r = add_entry(p);
	if (!r && !p->n)
		r = -ENOENT;
	if (!r)
		sort_places(p);
	return r;
}

void places_free(struct places *p)
{
	free(p->section[0]);
	free(p->section[1]);
	free(p->gaps);
	code_free(p->code);
	gorows_free(p->gorows);
	free(p->go_funcs);
	free(p->v);
}
