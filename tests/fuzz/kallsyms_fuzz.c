/* Any bytes as /proc/kallsyms, then look-ups around every address that it names. */
#include "symbol/kallsyms.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
	if (!condition)
		abort();
}

static void look_up(const struct kallsyms *k, uint64_t addr)
{
	struct kallsym s;

	if (!kallsyms_lookup(k, addr, &s))
		return;
	must(s.start <= addr && addr < s.end && s.name && s.module != s.name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const extra[] = { "_stext", "init_task", NULL };
	struct kallsyms *k cleanup(kallsyms_cleanup) = NULL;
	const char *text = (const char *)data, *line = text;
	struct err err;
	uint64_t addr = 0;
	char digits[17] = "";

	if (kallsyms_parse(text, size, extra, &k, &err))
		return 0;
	while (line && (size_t)(line - text) + 16 < size) {
		memcpy(digits, line, 16);
		addr = strtoull(digits, NULL, 16);
		look_up(k, addr - 1);
		look_up(k, addr);
		look_up(k, addr + KALLSYMS_MODULE_TAIL);
		line = memchr(line, '\n', size - (size_t)(line - text));
		line = line ? line + 1 : NULL;
	}
	(void)kallsyms_find(k, "_stext", &addr);
	must(kallsyms_bytes(k) > 0);
	return 0;
}
