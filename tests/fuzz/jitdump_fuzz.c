/* jitdump_fuzz.c - any bytes as jit-PID.dump, read up to a time, then whole: pieces must be disjoint,
 * and a name that is given must be text with an end. */
#include "symbol/jitdump.h"

#include <assert.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_codes(const struct jitdump *d, const struct codemap *codes)
{
	struct jitdump_code c;

	for (size_t i = 0; i < MIN(codes->n, (size_t)64); i++) {
		const struct code_piece *p = &codes->v[i];

		assert(p->start < p->end && (!i || codes->v[i - 1].end <= p->start));
		if (jitdump_name(d, p, p->end - 1, &c))
			continue;
		assert(c.name[0] && strlen(c.name) <= JITDUMP_NAME_MAX);
		assert(strlen(c.file) <= JITDUMP_FILE_MAX);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct codemap codes cleanup(codemap_cleanup) = CODEMAP_INIT;
	struct jitdump d;
	bool changed;
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	assert(fd >= 0);
	if (size)
		assert(write(fd, data, size) == (ssize_t)size);
	if (jitdump_open(&d, fd))
		return 0;
	assert(!jitdump_update(&d, &codes, 100, UINT64_MAX, &changed));
	check_codes(&d, &codes);
	(void)jitdump_next_time(&d);
	assert(!jitdump_update(&d, &codes, UINT64_MAX, UINT64_MAX, &changed));
	assert(d.read <= MAX(size, (size_t)4096));	/* the header may be longer than the file */
	check_codes(&d, &codes);
	jitdump_close(&d);
	return 0;
}
