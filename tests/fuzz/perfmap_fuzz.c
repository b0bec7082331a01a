/* perfmap_fuzz.c - any bytes as perf-PID.map, read in two goes as if it had grown meanwhile: what is
 * found must have a name that holds its address, and the pieces must be disjoint. */
#include "symbol/perfmap.h"

#include <assert.h>
#include <sys/mman.h>

#include "base/clock.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put(int fd, const uint8_t *data, size_t size, size_t at)
{
	if (size)
		assert(pwrite(fd, data, size, (off_t)at) == (ssize_t)size);
}

static void check_codes(const struct perfmap *m, const struct codemap *codes)
{
	char name[PERFMAP_NAME_MAX + 1];
	uint64_t start;

	for (size_t i = 0; i < codes->n; i++) {
		const struct code_piece *p = &codes->v[i];

		assert(p->start < p->end && p->end <= PERFMAP_ADDR_MAX);
		assert(!i || codes->v[i - 1].end <= p->start);
		assert(codemap_find(codes, p->start) == p && codemap_find(codes, p->end - 1) == p);
		assert(!perfmap_name(m, p->where, p->start, &start, name, sizeof(name)));
		assert(start <= p->start && name[0] && strlen(name) <= PERFMAP_NAME_MAX);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct codemap codes cleanup(codemap_cleanup) = CODEMAP_INIT;
	struct perfmap m;
	size_t half = size / 2;
	bool changed;
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (memchr(data, '\0', size))	/* names end there */
		return close(fd), 0;
	assert(fd >= 0);
	perfmap_init(&m, fd);
	put(fd, data, half, 0);
	assert(!perfmap_update(&m, &codes, UINT64_MAX, &changed));
	check_codes(&m, &codes);
	put(fd, data + half, size - half, half);
	assert(!perfmap_update(&m, &codes, UINT64_MAX, &changed));
	assert(!m.rewrites);
	check_codes(&m, &codes);
	perfmap_close(&m);
	return 0;
}
