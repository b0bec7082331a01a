/* Any bytes as an ELF file: its DWARF and Go's table, asked for addresses all over its code. The work is
 * bounded as in lines.h, and every answer is well formed. */
#include "base/clock.h"
#include "symbol/chains.h"
#include "symbol/debuginfo.h"
#include "symbol/dwarfimage.h"
#include "symbol/golines.h"

enum { ADDRESSES = 24, MAX_BYTES = 4 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
	if (!condition)
		abort();
}

static void check(struct chains *kept, const struct line_chain *c)
{
	struct chain_ref ref;
	struct symbol_line line;

	must(c->n >= 1);
	for (size_t i = 0; i < c->n; i++)
		must(strlen(c->v[i].file) < 8192 && c->v[i].scope);
	if (chains_add(kept, c, DEMANGLE_SIMPLE, &ref))
		return;
	for (size_t i = 0; i < ref.n; i++) {
		chains_get(kept, ref, i, &line);
		must(line.line == c->v[i].line && !strcmp(line.file, c->v[i].file));
	}
}

/* The n-th of ADDRESSES addresses, spread over the code. */
static uint64_t address(const struct elf *e, size_t n)
{
	const struct elf_segment *s;
	size_t segments;

	s = elf_segments(e, &segments);
	for (size_t i = 0; i < segments; i++)
		if (s[i].flags & 1 && elf_exec_segment(e, s[i].vaddr))
			return s[i].vaddr + s[i].memsz / ADDRESSES * n + n;
	return n;
}

static void dwarf(const struct elf *e, struct chains *kept)
{
	struct debuginfo_options o = { .elf = e, .code = e, .alt = e, .inlines = true,
				       .max_bytes = MAX_BYTES, .path = "/nonexistent/bin/x", .process = -1 };
	cleanup(debuginfo_cleanup) struct debuginfo *d = NULL;
	struct line_chain c;

	o.deadline = clock_monotonic() + 500000000;
	if (debuginfo_open(&o, &d))
		return;
	for (size_t i = 0; i < ADDRESSES; i++)
		if (!debuginfo_lookup(d, address(e, i), o.deadline, &c))
			check(kept, &c);
}

static void go(const struct elf *e, struct chains *kept)
{
	cleanup(golines_cleanup) struct golines *g = NULL;
	struct line_chain c;

	if (golines_open(e, true, &g))
		return;
	for (size_t i = 0; i < ADDRESSES; i++)
		if (!golines_lookup(g, address(e, i), &c))
			check(kept, &c);
}

/* The file as a split unit of itself, cut anyhow. */
static void split(const struct elf *e, const uint8_t *data, size_t size)
{
	struct dwarfimage_slice slices[DWARF_SECTIONS];
	struct dwarfimage *from cleanup(dwarfimage_cleanup) = NULL;
	struct dwarfimage *d cleanup(dwarfimage_cleanup) = NULL;
	struct dwarfimage_split s = { .elf = e, .max = MAX_BYTES };

	for (size_t i = 0; i < DWARF_SECTIONS; i++)
		slices[i] = (struct dwarfimage_slice){ data[i] & 15, data[size - 1 - i] };
	if (dwarfimage_new(e, MAX_BYTES, &from))
		return;
	s.slices = data[size - 1] & 1 ? slices : NULL;
	s.from = from;
	s.addr_base = data[size - 2];
	(void)!dwarfimage_new_split(&s, &d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct chains kept = CHAINS_INIT;
	struct elf *e cleanup(elf_cleanup) = NULL;

	if (elf_open_memory(data, size, &e, NULL))
		return 0;
	dwarf(e, &kept);
	go(e, &kept);
	split(e, data, size);
	chains_free(&kept);
	return 0;
}
