/* mounts_fuzz.c - any bytes as a line of mountinfo: who mounts chooses its names. */
#include "proc/mounts.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *line = malloc(size), type[8];	/* exactly so long, to be seen by the sanitizer */
	uint32_t dev = 0;

	assert(line || !size);
	if (size)
		memcpy(line, data, size);
	if (mounts_parse_line(line ? line : "", size, &dev, type, sizeof(type))) {
		assert(type[0] && strlen(type) < sizeof(type) && !strchr(type, ' '));
		assert(memmem(data, size, type, strlen(type)));
	}
	free(line);
	return 0;
}
