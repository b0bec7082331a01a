/* unit.c - see unit.h. */
#include "profile/unit.h"

#include <inttypes.h>

struct scale {
	const char *suffix;
	double size;	/* in the smallest unit */
};

static const struct scale times[] = {
	{ "h", 3600e9 }, { "min", 60e9 }, { "s", 1e9 }, { "ms", 1e6 }, { "us", 1e3 }, { "ns", 1 },
};
static const struct scale sizes[] = {
	{ "TiB", 0x1p40 }, { "GiB", 0x1p30 }, { "MiB", 0x1p20 }, { "KiB", 0x1p10 }, { "B", 1 },
};

static const char *scaled(double v, const struct scale *s, char *text)
{
	double size = v < 0 ? -v : v;

	while (s->size > 1 && size < s->size)
		s++;
	size /= s->size;
	snprintf(text, UNIT_TEXT_MAX, "%.*f%s",
		 s->size <= 1 || size >= 100 ? 0 : size >= 10 ? 1 : 2, v / s->size, s->suffix);
	return text;
}

const char *unit_format(int64_t value, const char *unit, char ret_text[static UNIT_TEXT_MAX])
{
	static const struct scale known[] = {
		{ "nanoseconds", 1 }, { "microseconds", 1e3 }, { "milliseconds", 1e6 },
		{ "seconds", 1e9 },
	};

	if (!value) {
		snprintf(ret_text, UNIT_TEXT_MAX, "0");
		return ret_text;
	}
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(unit, known[i].suffix))
			return scaled((double)value * known[i].size, times, ret_text);
	if (!strcmp(unit, "bytes"))
		return scaled((double)value, sizes, ret_text);
	snprintf(ret_text, UNIT_TEXT_MAX, "%" PRId64, value);
	return ret_text;
}

const char *unit_percent(int64_t value, int64_t total, char ret_text[static UNIT_TEXT_MAX])
{
	if (total)
		snprintf(ret_text, UNIT_TEXT_MAX, "%.1f%%",
			 100 * (double)value / (double)total);
	else
		snprintf(ret_text, UNIT_TEXT_MAX, "-");
	return ret_text;
}
