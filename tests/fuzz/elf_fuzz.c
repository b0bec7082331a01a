/* Any bytes as an ELF file: every accessor of elf/, then the symbol table and look-ups in it. */
#include <elf.h>

#include "elf/dynsym.h"
#include "elf/elf.h"
#include "symbol/symtab.h"

#define SECTION_CAP (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
	if (!condition)
		abort();
}

static void read_sections(const struct elf *e)
{
	void *bytes;
	size_t n;

	must(!elf_section(e, elf_section_count(e)));
	for (size_t i = 0; i < MIN(elf_section_count(e), (size_t)64); i++) {
		const struct elf_section *s = elf_section(e, i);

		must(elf_section_by_name(e, s->name) != NULL || i == 0 || !s->name[0]);
		if (elf_section_read(e, s, SECTION_CAP, &bytes, &n))
			continue;
		must(n <= SECTION_CAP && !((char *)bytes)[n]);
		free(bytes);
	}
}

static void translate(const struct elf *e)
{
	const struct elf_segment *s;
	uint64_t start = 0, end = 0, v = 0, off = 0;
	size_t n;

	s = elf_segments(e, &n);
	for (size_t i = 0; i < n; i++) {
		if (s[i].type != PT_LOAD || !s[i].filesz)
			continue;
		must(!elf_offset_to_vaddr(e, s[i].offset, &v));
		must(!elf_vaddr_to_offset(e, s[i].vaddr, &off));
		must(!elf_offset_to_vaddr(e, s[i].offset + s[i].filesz - 1, &v));
		if (s[i].flags & PF_X)
			must(elf_exec_segment(e, s[i].vaddr) != NULL);
	}
	if (!elf_exec_range(e, &start, &end))
		must(start < end);
}

static void look_up(const struct elf *e)
{
	struct symtab_limits limits = { 5000, 1u << 20, 1u << 20 };
	struct symtab *t cleanup(symtab_cleanup) = NULL;
	struct symbol s, found;

	if (symtab_build(e, &limits, &t))
		return;
	must(symtab_count(t) <= limits.symbols && symtab_bytes(t) <= 2u << 20);
	for (size_t i = 0; i < symtab_count(t); i++) {
		symtab_get(t, i, &s);
		must(s.size && s.name[0]);
		if (!symtab_lookup(t, s.start, &found))
			abort();	/* what starts here is the innermost */
		must(found.start == s.start);
		if (symtab_lookup(t, s.start + s.size, &found))
			must(found.start <= s.start + s.size &&
			     s.start + s.size - found.start < found.size);
		(void)symtab_lookup(t, s.start - 1, &found);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf *e cleanup(elf_cleanup) = NULL;
	unsigned char id[ELF_BUILD_ID_MAX];
	char hex[ELF_BUILD_ID_HEX];
	struct elf_symbols symbols;
	uint64_t value, again;
	struct err err;
	size_t n;

	if (elf_open_memory(data, size, &e, &err))
		return 0;
	must(elf_size(e) == size);
	(void)elf_segment_by_type(e, PT_DYNAMIC);
	if (!elf_build_id(e, id, &n)) {
		must(n && n <= ELF_BUILD_ID_MAX);
		elf_build_id_hex(id, n, hex);
		must(strlen(hex) == 2 * n);
	}
	if (!elf_symbols(e, SHT_DYNSYM, &symbols))
		must(symbols.offset + symbols.count * sizeof(Elf64_Sym) <= size);
	if (!elf_symbol_value(e, SHT_SYMTAB, "f", &value))
		must(!elf_symbol_value(e, SHT_SYMTAB, "f", &again) && value == again);
	read_sections(e);
	translate(e);
	look_up(e);
	return 0;
}
