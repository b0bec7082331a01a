/* maps_fuzz.c - any bytes as the text of /proc/PID/maps: what is found must lie within the text and
 * keep what the header promises. */
#include "proc/maps.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct text {
	const char *start, *end;
};

static int check_area(const struct maps_area *a, void *arg)
{
	const struct text *t = arg;
	struct maps_area found;
	char path[64];
	size_t n;

	assert(a->start < a->end);
	assert(a->perms <= (MAPS_R | MAPS_W | MAPS_X | MAPS_SHARED));
	assert(a->path >= t->start && a->path + a->path_len <= t->end);
	assert(!memchr(a->path, '\n', a->path_len));
	n = maps_path(a, path, sizeof(path));
	assert(n < sizeof(path) && n <= a->path_len && path[n] == '\0');
	/* an earlier area may overlap this one, but one must be found */
	assert(!maps_find(t->start, (size_t)(t->end - t->start), a->start, &found));
	assert(a->start >= found.start && a->start < found.end);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct text t = { (const char *)data, (const char *)data + size };
	size_t bad = 0;

	assert(!maps_each(t.start, size, check_area, &t, &bad));
	assert(bad <= size);
	return 0;
}
