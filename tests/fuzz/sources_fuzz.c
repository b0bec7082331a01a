/* Any bytes as an ELF file: everything that gives names to code besides .symtab and .dynsym, which
 * elf_fuzz has. The debug file itself is looked for where there is none. */
#include "symbol/bounds.h"
#include "symbol/debugfile.h"
#include "symbol/gopclntab.h"
#include "symbol/minidebug.h"
#include "symbol/plt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
	if (!condition)
		abort();
}

static void bounds(const struct elf *e)
{
	struct bounds *b cleanup(bounds_cleanup) = NULL;
	uint64_t start;

	if (bounds_build(e, &b))
		return;
	must(bounds_count(b) > 0);
	for (uint64_t at = 0x400000; at < 0x400400; at += 7)
		if (bounds_lookup(b, at, &start))
			must(start <= at && bounds_lookup(b, start, &start));
	(void)bounds_lookup(b, UINT64_MAX, &start);
}

static void files(const struct elf *e)
{
	struct elf *mini cleanup(elf_cleanup) = NULL;
	void *image cleanup(freep_cleanup) = NULL;
	struct debugfile d;

	if (!minidebug_open(e, &mini, &image))
		must(elf_size(mini) <= MINIDEBUG_MAX);
	elf_free(take(mini));	/* before its image */
	must(debugfile_open(e, "/nonexistent/bin/x", "/nonexistent", &d) != 0);
}

static void names(const struct elf *e)
{
	struct symtab_limits limits = { 5000, 1u << 20, 1u << 20 };
	struct symtab_builder *b cleanup(symtab_builder_cleanup) = NULL;
	struct symtab *t cleanup(symtab_cleanup) = NULL;
	struct symbol s;

	if (symtab_builder_new(e, &limits, &b))
		return;
	(void)!gopclntab_add(b, e);
	(void)!plt_add(b, e);
	if (symtab_builder_finish(take(b), &t))
		return;
	must(symtab_count(t) <= limits.symbols);
	for (size_t i = 0; i < symtab_count(t); i++) {
		symtab_get(t, i, &s);
		must(s.size && strlen(s.name) <= SYMTAB_NAME_MAX);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf *e cleanup(elf_cleanup) = NULL;

	if (elf_open_memory(data, size, &e, NULL))
		return 0;
	bounds(e);
	files(e);
	names(e);
	return 0;
}
