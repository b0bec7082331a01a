/* Any bytes as the index of a .dwp: asked for every id that it may have, and for one from the input. What it
 * finds is the same each time, and comes from bytes that are there. */
#include "symbol/dwpindex.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const uint8_t *data, size_t size, uint64_t id)
{
	struct dwarfimage_slice a[DWARF_SECTIONS] = { 0 }, b[DWARF_SECTIONS];

	memset(b, 0xff, sizeof(b));
	if (dwpindex_find(data, size, id, a))
		return;
	if (dwpindex_find(data, size, id, b) || memcmp(a, b, sizeof(a)))
		abort();
	for (size_t i = 0; i < DWARF_SECTIONS; i++)
		if (a[i].offset > UINT32_MAX || a[i].size > UINT32_MAX)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *exact cleanup(freep_cleanup) = malloc(size + !size);	/* an overrun is seen at once */
	uint64_t id;

	if (!exact)
		return 0;
	memcpy(exact, data, size);
	ask(exact, size, 0);
	for (size_t at = 0; at + sizeof(id) <= size && at < 1024; at += sizeof(id)) {
		memcpy(&id, exact + at, sizeof(id));
		ask(exact, size, id);
	}
	return 0;
}
