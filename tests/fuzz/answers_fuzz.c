/* answers_fuzz.c - any bytes as what a server answers: each protocol must come to a verdict, in clean
 * text. The first two bytes choose protocol and status, a line of headers follows, the rest is body. */
#include <assert.h>

#include "net/sink.h"
#include "net/transfer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char urls[][40] = { "pyroscope+http://h", "pyroscope-ingest+http://h", "profefe+http://h",
			   "parca+grpc://h", "otlp+http://h" };
static struct sink *sinks[ARRAY_SIZE(urls)];

static void make_sinks(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(urls) && !sinks[i]; i++)
		if (sink_new(&(struct sink_options){ .url = urls[i] }, &sinks[i], NULL))
			abort();
}

static void check_text(const char *s, size_t size)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(1 << 20);

	assert(memchr(s, 0, size));
	buf_utf8(&b, s, strlen(s));
	assert(b.len == strlen(s));
	for (; *s; s++)
		assert((unsigned char)*s >= 0x20 && *s != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const short status[] = { 200, 200, 200, 302, 400, 404, 422, 429, 500, 503 };
	static const char *const types[] = { "", "application/proto", "application/json",
					     "application/grpc", "application/x-protobuf" };
	struct sink_answer a = { .grpc_status = -1 };
	struct sink_request r = { 0 };
	struct sink_verdict v;
	const uint8_t *line;

	make_sinks();
	if (size < 2)
		return 0;
	a.status = status[data[1] % ARRAY_SIZE(status)];
	snprintf(a.type, sizeof(a.type), "%s", types[data[1] / 16 % ARRAY_SIZE(types)]);
	line = memchr(data + 2, '\n', size - 2);
	if (line)
		transfer_header(&a, (const char *)data + 2, (size_t)(line - data) - 2);
	a.body = line ? (const char *)line + 1 : (const char *)data + 2;
	a.len = size - (size_t)((const uint8_t *)a.body - data);
	assert(a.grpc_status >= -1 && a.grpc_status < 10000);
	check_text(a.grpc_message, sizeof(a.grpc_message));
	sink_judge(sinks[data[0] % ARRAY_SIZE(urls)], &r, &a, &v);
	assert((v.fate == SINK_STORED) == (v.err == 0));
	assert(v.err <= 0);
	check_text(v.message, sizeof(v.message));
	return 0;
}
