/* config_fuzz.c - any text as a configuration file: refused with a sentence that has a line, or
 * accepted, and then what config_print makes of it says the same. */
#include "cli/config.h"

struct inner {
	uint32_t given;
	char *url;
	struct str_list headers;
	uint64_t timeout;
};

struct opts {
	uint32_t freq, mode;
	uint64_t bytes, age;
	bool quiet;
	char *name;
	struct str_list labels;
	struct u32_list pids;
	struct { struct inner *v; size_t n, cap; } push;
};

static const char *const modes[] = { "off", "auto", NULL };

static const struct option_row inner_rows[] = {
	{ OPT_STRING, 0, "url", "URL", "", offsetof(struct inner, url) },
	{ OPT_LIST, 0, "headers", "H", "", offsetof(struct inner, headers), .joint = ": " },
	{ OPT_SECONDS, 0, "timeout", "S", "", offsetof(struct inner, timeout) },
	{ .type = OPT_END },
};

static const struct option_row rows[] = {
	{ OPT_U32, 0, "freq", "HZ", "", offsetof(struct opts, freq), .min = 1, .max = 1000 },
	{ OPT_CHOICE, 0, "kube-mode", "M", "", offsetof(struct opts, mode), .choices = modes },
	{ OPT_SIZE, 0, "spool-bytes", "B", "", offsetof(struct opts, bytes) },
	{ OPT_SECONDS, 0, "spool-age", "S", "", offsetof(struct opts, age) },
	{ OPT_FLAG, 0, "quiet", NULL, "", offsetof(struct opts, quiet) },
	{ OPT_STRING, 0, "node-name", "N", "", offsetof(struct opts, name) },
	{ OPT_LIST, 0, "label", "L", "", offsetof(struct opts, labels), .key = "labels",
	  .joint = "=" },
	{ OPT_U32_LIST, 0, "pid", "P", "", offsetof(struct opts, pids), .min = 1 },
	{ OPT_STRUCTS, 0, "push", "URL", "", offsetof(struct opts, push), .rows = inner_rows,
	  .size = sizeof(struct inner) },
	{ .type = OPT_END },
};

static int read_text(struct opts *o, uint8_t *sources, const char *text, size_t n,
		     struct buf *printed)
{
	struct option_values v = { .rows = rows, .opts = o, .sources = sources };
	struct err e = { "" };
	int r = config_text(&v, "f", text, n, &e);

	if (r && strncmp(e.msg, "f:", 2) != 0)
		abort();
	if (!r)
		config_print(&v, printed);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t sources[ARRAY_SIZE(rows)] = { 0 }, again[ARRAY_SIZE(rows)] = { 0 };
	struct buf first = BUF_INIT(64 << 20), second = BUF_INIT(64 << 20);
	struct opts a = { 0 }, b = { 0 };

	if (size <= CONFIG_MAX_BYTES && !read_text(&a, sources, (const char *)data, size, &first)) {
		if (read_text(&b, again, first.data, first.len, &second))
			abort();
		for (size_t i = 0; rows[i].type != OPT_END; i++)
			if (!config_same(&rows[i], &a, &b))
				abort();
	}
	options_free(rows, &a);
	options_free(rows, &b);
	buf_free(&first);
	buf_free(&second);
	return 0;
}
