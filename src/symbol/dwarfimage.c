/* dwarfimage.c - see dwarfimage.h. The made file: header, sections, their names, section headers. */
#include "symbol/dwarfimage.h"

#include <elf.h>

#define PIECE (16u << 10)

static const char *const names[DWARF_SECTIONS] = {
	[DWARF_INFO] = ".debug_info",
	[DWARF_ABBREV] = ".debug_abbrev",
	[DWARF_LINE] = ".debug_line",
	[DWARF_LINE_STR] = ".debug_line_str",
	[DWARF_STR] = ".debug_str",
	[DWARF_STR_OFFSETS] = ".debug_str_offsets",
	[DWARF_ADDR] = ".debug_addr",
	[DWARF_RANGES] = ".debug_ranges",
	[DWARF_RNGLISTS] = ".debug_rnglists",
};

static const char shstrtab[] = ".shstrtab";

struct part {
	const struct elf_section *from;	/* NULL: the file hasn't got it */
	uint64_t at, size;		/* in the image */
};

struct dwarfimage {
	const struct elf *e;
	char *bytes;
	size_t size;
	struct part parts[DWARF_SECTIONS];
	uint8_t *have;		/* pieces of .debug_info that are there; NULL: all */
	uint64_t memory;
};

static uint64_t aligned(uint64_t at)
{
	return (at + 15) & ~UINT64_C(15);
}

static size_t names_size(void)
{
	size_t n = 1 + sizeof(shstrtab);

	for (size_t i = 0; i < DWARF_SECTIONS; i++)
		n += strlen(names[i]) + 1;
	return n;
}

/* Which sections there are, where they will lie, and how large all of it is. */
static int lay_out(struct dwarfimage *d, uint64_t max)
{
	uint64_t at = sizeof(Elf64_Ehdr);
	int r;

	for (size_t i = 0; i < DWARF_SECTIONS; i++) {
		struct part *p = &d->parts[i];

		p->from = elf_section_by_name(d->e, names[i]);
		if (p->from && p->from->type == SHT_NOBITS)
			p->from = NULL;
		if (!p->from)
			continue;
		r = elf_section_size(d->e, p->from, &p->size);
		if (r)
			return r;
		if (p->size > max || at > max - p->size ||
		    (i == DWARF_ABBREV && p->size > DWARFIMAGE_ABBREV_MAX))
			return -E2BIG;
		p->at = at;
		at = aligned(at + p->size);
	}
	if (!d->parts[DWARF_INFO].size || !d->parts[DWARF_ABBREV].size ||
	    !d->parts[DWARF_LINE].size)
		return -ENOENT;
	d->size = at + aligned(names_size()) + (DWARF_SECTIONS + 2) * sizeof(Elf64_Shdr);
	return 0;
}

/* .shstrtab and the section headers, behind the sections. */
static void write_headers(struct dwarfimage *d)
{
	uint64_t headers = d->size - (DWARF_SECTIONS + 2) * sizeof(Elf64_Shdr);
	uint64_t texts = headers - aligned(names_size()), name = 1;
	Elf64_Ehdr h = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = elf_machine(d->e),
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(h),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shoff = headers,
		.e_shnum = 1,
	};
	Elf64_Shdr s;

	for (size_t i = 0; i < DWARF_SECTIONS; i++) {
		if (!d->parts[i].size)
			continue;
		s = (Elf64_Shdr){ .sh_name = (Elf64_Word)name, .sh_type = SHT_PROGBITS,
				  .sh_offset = d->parts[i].at, .sh_size = d->parts[i].size,
				  .sh_addralign = 1 };
		memcpy(d->bytes + headers + h.e_shnum++ * sizeof(s), &s, sizeof(s));
		memcpy(d->bytes + texts + name, names[i], strlen(names[i]) + 1);
		name += strlen(names[i]) + 1;
	}
	s = (Elf64_Shdr){ .sh_name = (Elf64_Word)name, .sh_type = SHT_STRTAB, .sh_offset = texts,
			  .sh_size = names_size(), .sh_addralign = 1 };
	memcpy(d->bytes + texts + name, shstrtab, sizeof(shstrtab));
	h.e_shstrndx = h.e_shnum;
	memcpy(d->bytes + headers + h.e_shnum++ * sizeof(s), &s, sizeof(s));
	memcpy(d->bytes, &h, sizeof(h));
}

static int fill(struct dwarfimage *d)
{
	const struct part *info = &d->parts[DWARF_INFO];
	int r = 0;

	d->bytes = calloc(1, d->size);
	if (!d->bytes)
		return -ENOMEM;
	write_headers(d);
	if (!(info->from->flags & SHF_COMPRESSED)) {
		d->have = calloc(1, info->size / PIECE + 1);
		if (!d->have)
			return -ENOMEM;
	}
	d->memory = d->size - (d->have ? info->size : 0);
	for (size_t i = 0; i < DWARF_SECTIONS && !r; i++)
		if (d->parts[i].size && (i != DWARF_INFO || !d->have))
			r = elf_section_read_into(d->e, d->parts[i].from,
						  d->bytes + d->parts[i].at, d->parts[i].size);
	return r;
}

int dwarfimage_new(const struct elf *e, uint64_t max, struct dwarfimage **ret)
{
	struct dwarfimage *d cleanup(dwarfimage_cleanup) = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	d->e = e;
	r = lay_out(d, max);
	if (!r)
		r = fill(d);
	if (r)
		return r;
	*ret = take(d);
	return 0;
}

void dwarfimage_free(struct dwarfimage *d)
{
	if (!d)
		return;
	free(d->bytes);
	free(d->have);
	free(d);
}

char *dwarfimage_bytes(struct dwarfimage *d, size_t *ret_size)
{
	*ret_size = d->size;
	return d->bytes;
}

const uint8_t *dwarfimage_section(const struct dwarfimage *d, enum dwarf_section s,
				  size_t *ret_size)
{
	*ret_size = d->parts[s].size;
	return (const uint8_t *)d->bytes + d->parts[s].at;
}

int dwarfimage_need(struct dwarfimage *d, uint64_t offset, uint64_t n)
{
	const struct part *info = &d->parts[DWARF_INFO];
	int r;

	if (!d->have || offset >= info->size || !n)
		return 0;
	n = MIN(n, info->size - offset);
	for (uint64_t i = offset / PIECE; i <= (offset + n - 1) / PIECE; i++) {
		uint64_t at = i * PIECE, size = MIN(PIECE, info->size - at);

		if (d->have[i])
			continue;
		r = elf_read(d->e, info->from->offset + at, d->bytes + info->at + at, size);
		if (r)
			return r;
		d->have[i] = 1;
		d->memory += size;
	}
	return 0;
}

uint64_t dwarfimage_memory(const struct dwarfimage *d)
{
	return d->memory;
}
