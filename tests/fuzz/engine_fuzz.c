/* engine_fuzz.c - any bytes as the files in which engines keep their containers' names. */
#include "workload/engine.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(void *ctx, const char *id, const char *name)
{
	size_t *n = ctx;

	assert(strlen(id) == 64 && strspn(id, "0123456789abcdef") == 64);
	assert(name[0] && strlen(name) < ENGINE_NAME_MAX && !strchr(name, '/'));
	assert(++*n <= ENGINE_NAMES_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t podman = 0, docker = 0;

	(void)!engine_read_podman((const char *)data, size, check, &podman);
	(void)!engine_read_docker((const char *)data, size, check, &docker);
	assert(docker <= 1);
	return 0;
}
