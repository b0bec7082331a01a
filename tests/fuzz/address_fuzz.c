/* address_fuzz.c - any text as an address to push to: a sink with a name, or a sentence; never its
 * password. */
#include <assert.h>

#include "net/address.h"
#include "net/sink.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup(freep_cleanup) char *url = malloc(size + 1);
	char shown[ADDRESS_SHOWN];
	struct sink *s = NULL;
	struct err e = { "" };
	int r;

	memcpy(url, data, size);
	url[size] = '\0';
	sink_redact(url, shown, sizeof(shown));
	assert(!strchr(shown, '@') && !strchr(shown, '#'));
	r = sink_new(&(struct sink_options){ .url = url }, &s, &e);
	assert(r ? !s && *e.msg : *sink_name(s) && !*e.msg);
	sink_free(s);
	address_mask(url);
	return 0;
}
