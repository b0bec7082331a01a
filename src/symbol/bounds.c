/* bounds.c - see bounds.h. */
#include "symbol/bounds.h"

#include <elf.h>

#include "unwind/cfi.h"

/* One function; sorted by start. Relative to the lowest executable address, like symtab.c. */
struct span {
	uint32_t start, size;
};

struct bounds {
	uint64_t base, limit;	/* of executable memory */
	struct span *spans;
	size_t n, cap;
};

static void find_code(struct bounds *b, const struct elf *e)
{
	const struct elf_segment *s;
	size_t n;

	b->base = UINT64_MAX;
	s = elf_segments(e, &n);
	for (size_t i = 0; i < n; i++)
		if (s[i].type == PT_LOAD && s[i].flags & PF_X) {
			b->base = MIN(b->base, s[i].vaddr);
			b->limit = MAX(b->limit, s[i].vaddr + s[i].memsz);
		}
}

static int add_fde(struct bounds *b, const struct cfi_fde *fde)
{
	uint64_t rel = fde->start - b->base;
	int r;

	if (fde->start < b->base || fde->start >= b->limit || rel > UINT32_MAX)
		return 0;
	r = array_grow(&b->spans, &b->cap, b->n + 1, sizeof(*b->spans));
	if (r)
		return r;
	b->spans[b->n++] = (struct span){ (uint32_t)rel, (uint32_t)MIN(fde->size, UINT32_MAX) };
	return 0;
}

/* By start; the longest of one start last, where a search from above meets it first. */
static int compare_spans(const void *pa, const void *pb)
{
	const struct span *a = pa, *b = pb;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->size < b->size ? -1 : a->size > b->size;
}

static void finish(struct bounds *b)
{
	struct span *shrunk;
	bool sorted = true;
	size_t kept = 0;

	/* Linkers mostly write FDEs in the order of the code. */
	for (size_t i = 1; i < b->n && sorted; i++)
		sorted = compare_spans(&b->spans[i - 1], &b->spans[i]) <= 0;
	if (!sorted)
		qsort(b->spans, b->n, sizeof(*b->spans), compare_spans);
	for (size_t i = 0; i < b->n; i++)
		if (i + 1 == b->n || b->spans[i].start != b->spans[i + 1].start)
			b->spans[kept++] = b->spans[i];
	b->n = kept;
	shrunk = realloc(b->spans, kept * sizeof(*shrunk));
	if (shrunk)
		b->spans = shrunk;
}

int bounds_build(const struct elf *e, struct bounds **ret)
{
	const struct elf_section *s = elf_section_by_name(e, ".eh_frame");
	struct bounds *b cleanup(bounds_cleanup) = calloc(1, sizeof(*b));
	void *data cleanup(freep_cleanup) = NULL;
	struct cfi cfi = { .machine = elf_machine(e) };
	struct cfi_fde fde;
	size_t pos = 0;
	int r;

	if (!b)
		return -ENOMEM;
	if (!s)
		return -ENOENT;
	find_code(b, e);
	r = elf_section_read(e, s, BOUNDS_SECTION_MAX, &data, &cfi.size);
	if (r)
		return r;
	cfi.data = data;
	cfi.vaddr = s->addr;
	while ((r = cfi_next(&cfi, &pos, &fde)) != -ENOENT) {
		r = r ? 0 : add_fde(b, &fde);
		if (r)
			return r;
	}
	if (!b->n)
		return -ENOENT;
	finish(b);
	*ret = take(b);
	return 0;
}

void bounds_free(struct bounds *b)
{
	if (!b)
		return;
	free(b->spans);
	free(b);
}

bool bounds_lookup(const struct bounds *b, uint64_t vaddr, uint64_t *ret_start)
{
	uint64_t rel = vaddr - b->base;
	size_t lo = 0, hi = b->n, mid;

	if (vaddr < b->base)
		return false;
	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (b->spans[mid].start <= rel)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || rel - b->spans[lo - 1].start >= b->spans[lo - 1].size)
		return false;
	*ret_start = b->base + b->spans[lo - 1].start;
	return true;
}

size_t bounds_count(const struct bounds *b)
{
	return b->n;
}

size_t bounds_bytes(const struct bounds *b)
{
	return sizeof(*b) + b->n * sizeof(*b->spans);
}
