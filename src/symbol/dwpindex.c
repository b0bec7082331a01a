/* dwpindex.c - see dwpindex.h. */
#include "symbol/dwpindex.h"

#include "base/bytes.h"

/* Columns of the index as sections. */
static bool section_of(uint64_t column, bool gnu, enum dwarf_section *ret)
{
	switch (column) {
	case 1:
		*ret = DWARF_INFO;
		return true;
	case 3:
		*ret = DWARF_ABBREV;
		return true;
	case 6:
		*ret = DWARF_STR_OFFSETS;
		return true;
	case 8:
		*ret = DWARF_RNGLISTS;
		return !gnu;
	}
	return false;
}

/* The row of a unit's id, from 1; 0: none. A hash table of `slots` ids, then as many row numbers. */
static uint32_t row_of(const uint8_t *table, uint64_t slots, uint64_t id)
{
	uint64_t mask = slots - 1, at = id & mask, step = (id >> 32 & mask) | 1;

	for (uint64_t i = 0; i < slots; i++, at = (at + step) & mask) {
		uint64_t here;
		uint32_t row;

		memcpy(&here, table + at * sizeof(here), sizeof(here));
		memcpy(&row, table + slots * sizeof(here) + at * sizeof(row), sizeof(row));
		if (!row || here == id)
			return row;
	}
	return 0;
}

int dwpindex_find(const void *p, size_t size, uint64_t id,
		  struct dwarfimage_slice ret[static DWARF_SECTIONS])
{
	struct dwarfimage_slice slices[DWARF_SECTIONS] = { 0 };
	struct bytes b = bytes_of(p, size), sections, offsets, sizes;
	uint32_t version = (uint32_t)bytes_uint(&b, 4) & 0xffff;
	uint64_t columns = bytes_uint(&b, 4), units = bytes_uint(&b, 4), slots = bytes_uint(&b, 4);
	const uint8_t *table = bytes_get(&b, slots * 12);
	uint32_t row;

	if (b.bad || (version != 2 && version != 5) || !slots || slots & (slots - 1) || columns > 16)
		return -EBADMSG;
	row = row_of(table, slots, id);
	if (!row || row > units)
		return row ? -EBADMSG : -ESTALE;
	sections = b;
	bytes_get(&b, columns * 4);
	offsets = b;
	bytes_get(&offsets, (row - 1) * columns * 4);
	bytes_get(&b, units * columns * 4);
	sizes = b;
	bytes_get(&sizes, (row - 1) * columns * 4);
	for (uint64_t i = 0; i < columns; i++) {
		uint64_t column = bytes_uint(&sections, 4);
		struct dwarfimage_slice slice = { .offset = bytes_uint(&offsets, 4) };
		enum dwarf_section s;

		slice.size = bytes_uint(&sizes, 4);
		if (section_of(column, version == 2, &s))
			slices[s] = slice;
	}
	if (sections.bad || offsets.bad || sizes.bad)
		return -EBADMSG;
	memcpy(ret, slices, sizeof(slices));
	return 0;
}
