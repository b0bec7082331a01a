/* demangle_fuzz.c - any text as a symbol's name: bounded text or none, and the name itself is never changed
 * where it isn't mangled. */
#include "symbol/demangle.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *name cleanup(freep_cleanup) = strndup((const char *)data, size);

	assert(name);
	for (int mode = DEMANGLE_NONE; mode <= DEMANGLE_FULL; mode++) {
		char *text cleanup(freep_cleanup) = NULL;
		int r = demangle(name, (enum demangle_mode)mode, &text);

		assert(r == 0 || r == -ENOENT);
		assert(r == 0 ? text && *text && strlen(text) <= DEMANGLE_MAX_TEXT : !text);
		assert(mode != DEMANGLE_NONE || r);
	}
	return 0;
}
