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
	const struct elf_section *from;	/* NULL: the file hasn't got it, or */
	const uint8_t *copy;		/* it is copied from another image */
	uint64_t skip;			/* bytes of the content before it */
	uint64_t at, size;		/* in the image */
};

struct dwarfimage {
	const struct elf *e;
	char *bytes;
	size_t size;
	struct part parts[DWARF_SECTIONS];
	uint8_t *have;		/* pieces of .debug_info that are there; NULL: all */
	uint64_t memory, max;
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

/* Finds the file's sections. */
static int find_sections(struct dwarfimage *d, const char *ending)
{
	char name[64];

	for (size_t i = 0; i < DWARF_SECTIONS; i++) {
		struct part *p = &d->parts[i];
		int r;

		snprintf(name, sizeof(name), "%s%s", names[i], ending);
		p->from = elf_section_by_name(d->e, name);
		if (p->from && p->from->type == SHT_NOBITS)
			p->from = NULL;
		r = p->from ? elf_section_size(d->e, p->from, &p->size) : 0;
		if (r)
			return r;
	}
	return 0;
}

/* Where the sections will lie, and how large all of it is. pieces: .debug_info costs what is needed of it. */
static int lay_out(struct dwarfimage *d, bool pieces)
{
	uint64_t at = sizeof(Elf64_Ehdr), sum = at;

	for (size_t i = 0; i < DWARF_SECTIONS; i++) {
		struct part *p = &d->parts[i];
		uint64_t max = i == DWARF_INFO && pieces ? DWARFIMAGE_INFO_MAX : d->max;

		if (p->size > max || (i == DWARF_ABBREV && p->size > DWARFIMAGE_ABBREV_MAX))
			return -E2BIG;
		p->at = at;
		at = aligned(at + p->size);
		if (i != DWARF_INFO || !pieces)
			sum = aligned(sum + p->size);
		if (sum > d->max)
			return -E2BIG;
	}
	if (!d->parts[DWARF_INFO].size || !d->parts[DWARF_ABBREV].size)
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

static int allocate(struct dwarfimage *d)
{
	d->bytes = calloc(1, d->size);
	if (!d->bytes)
		return -ENOMEM;
	d->memory = d->size;
	write_headers(d);
	return 0;
}

/* One section's bytes into their place. */
static int fill_part(struct dwarfimage *d, const struct part *p)
{
	char *to = d->bytes + p->at;
	void *all cleanup(freep_cleanup) = NULL;
	uint64_t whole;
	int r;

	if (!p->from) {
		if (p->copy)
			memcpy(to, p->copy + p->skip, p->size);
		return 0;
	}
	r = elf_section_size(d->e, p->from, &whole);
	if (r)
		return r;
	if (whole == p->size)
		return elf_section_read_into(d->e, p->from, to, p->size);
	if (!elf_section_is_compressed(p->from))
		return elf_read(d->e, p->from->offset + p->skip, to, p->size);
	all = malloc(whole);
	if (!all)
		return -ENOMEM;
	r = elf_section_read_into(d->e, p->from, all, whole);
	if (!r)
		memcpy(to, (char *)all + p->skip, p->size);
	return r;
}

static int fill(struct dwarfimage *d)
{
	int r = 0;

	for (size_t i = 0; i < DWARF_SECTIONS && !r; i++)
		if (d->parts[i].size && (i != DWARF_INFO || !d->have))
			r = fill_part(d, &d->parts[i]);
	return r;
}

int dwarfimage_new(const struct elf *e, uint64_t max, struct dwarfimage **ret)
{
	struct dwarfimage *d cleanup(dwarfimage_cleanup) = calloc(1, sizeof(*d));
	const struct part *info;
	bool pieces;
	int r;

	if (!d)
		return -ENOMEM;
	d->e = e;
	d->max = max;
	info = &d->parts[DWARF_INFO];
	r = find_sections(d, "");
	pieces = info->from && !elf_section_is_compressed(info->from);
	if (!r)
		r = lay_out(d, pieces);
	if (!r)
		r = allocate(d);
	if (!r && pieces) {
		d->have = calloc(1, info->size / PIECE + 1);
		d->memory -= info->size;
		r = d->have ? 0 : -ENOMEM;
	}
	if (!r)
		r = fill(d);
	if (r)
		return r;
	*ret = take(d);
	return 0;
}

/* ---- split units ---- */

/* The bytes of a section that belong to the unit. */
static int cut(struct dwarfimage *d, const struct dwarfimage_slice *slices)
{
	for (size_t i = 0; i < DWARF_SECTIONS; i++) {
		struct part *p = &d->parts[i];
		/* all units of a .dwp share the strings */
		const struct dwarfimage_slice *s = i == DWARF_STR ? NULL : &slices[i];

		if (!p->from || !s)
			continue;
		if (s->offset > p->size || s->size > p->size - s->offset)
			return -EBADMSG;
		p->skip = s->offset;
		p->size = s->size;
	}
	return 0;
}

static void copy_from(struct dwarfimage *d, enum dwarf_section section,
		      const struct dwarfimage *from, uint64_t base)
{
	struct part *p = &d->parts[section];
	size_t size;
	const uint8_t *bytes = dwarfimage_section(from, section, &size);

	*p = (struct part){ 0 };
	if (base >= size)
		return;
	p->copy = bytes;
	p->skip = base;
	p->size = size - base;
}

/* DWARF 5 section 7.5.1: length, version, and since version 5 the unit's type. */
static void claim_skeletons(struct dwarfimage *d)
{
	const struct part *info = &d->parts[DWARF_INFO];
	uint8_t *p = (uint8_t *)d->bytes + info->at;
	uint64_t at = 0, left = info->size;

	while (left >= 24) {
		uint32_t length;
		uint16_t version;
		uint64_t size;

		memcpy(&length, p + at, sizeof(length));
		memcpy(&version, p + at + sizeof(length), sizeof(version));
		size = sizeof(length) + (uint64_t)length;
		if (version == 5 && p[at + 6] == 5)	/* DW_UT_split_compile -> DW_UT_skeleton */
			p[at + 6] = 4;
		if (length >= 0xfffffff0 || size > left)
			return;
		at += size;
		left -= size;
	}
}

int dwarfimage_new_split(const struct dwarfimage_split *split, struct dwarfimage **ret)
{
	struct dwarfimage *d cleanup(dwarfimage_cleanup) = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	d->e = split->elf;
	d->max = split->max;
	r = find_sections(d, ".dwo");
	if (!r && split->slices)
		r = cut(d, split->slices);
	copy_from(d, DWARF_ADDR, split->from, split->addr_base);
	copy_from(d, DWARF_RANGES, split->from, split->ranges_base);
	if (!r)
		r = lay_out(d, false);
	if (!r)
		r = allocate(d);
	if (!r)
		r = fill(d);
	if (r)
		return r;
	claim_skeletons(d);
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
		if (d->memory > d->max || size > d->max - d->memory)
			return -E2BIG;
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
