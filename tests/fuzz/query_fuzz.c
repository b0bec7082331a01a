/* query_fuzz.c - a URL's query into a request: whatever is accepted is within its limits. */
#include "http/query.h"

#include "base/buf.h"

static void check_text(const char *s)
{
	struct buf b = BUF_INIT(4 * QUERY_TEXT_MAX);

	if (strnlen(s, QUERY_TEXT_MAX) == QUERY_TEXT_MAX)
		abort();
	buf_utf8(&b, s, strlen(s));
	if (*s && strcmp(b.data, s) != 0)
		abort();
	for (; *s; s++)
		if ((unsigned char)*s < 0x20)
			abort();
	buf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct query_limits limits = { .max_duration_ns = 60000000000ULL,
						    .max_hz = 499 };
	struct profile_request q;
	struct err e = { "" };

	if (query_parse((const char *)data, size, &limits, &q, &e)) {
		if (!e.msg[0])
			abort();
		return 0;
	}
	if (q.duration_ns < QUERY_MIN_NS || q.duration_ns > limits.max_duration_ns ||
	    q.hz > limits.max_hz || q.pid > INT32_MAX || q.caller)
		abort();
	check_text(q.comm);
	check_text(q.container);
	check_text(q.pod);
	check_text(q.namespace);
	check_text(q.unit);
	check_text(q.exe);
	check_text(q.event);
	return 0;
}
