/* prom.c - see prom.h; the format: Prometheus, "Exposition formats", "Text-based format". */
#include "base/prom.h"

#include <math.h>

static const char *const type_names[] = {
	[PROM_COUNTER] = "counter",
	[PROM_GAUGE] = "gauge",
	[PROM_HISTOGRAM] = "histogram",
};

/* Backslash and line feed are escaped in help, in label values the double quote as well. */
static void escaped(struct buf *b, const char *s, bool quote)
{
	size_t n;

	for (; *s; s += n) {
		n = strcspn(s, quote ? "\\\n\"" : "\\\n");
		if (n) {
			buf_utf8(b, s, n);	/* these three never stand inside a character */
			continue;
		}
		buf_char(b, '\\');
		buf_char(b, *s == '\n' ? 'n' : *s);
		n = 1;
	}
}

void prom_metric(struct buf *b, const char *name, enum prom_type type, const char *help)
{
	buf_printf(b, "# HELP %s ", name);
	escaped(b, help, false);
	buf_printf(b, "\n# TYPE %s %s\n", name, type_names[type]);
}

/* name{pairs,le="bound"}; le is NULL but for buckets. */
static void series(struct buf *b, const char *name, const char *suffix, va_list pairs,
		   const char *le)
{
	const char *label, *lead = "{";
	va_list ap;

	buf_str(b, name);
	buf_str(b, suffix);
	va_copy(ap, pairs);
	while ((label = va_arg(ap, const char *))) {
		buf_printf(b, "%s%s=\"", lead, label);
		escaped(b, va_arg(ap, const char *), true);
		buf_char(b, '"');
		lead = ",";
	}
	va_end(ap);
	if (le)
		buf_printf(b, "%sle=\"%s\"", lead, le);
	if (le || lead[0] == ',')
		buf_char(b, '}');
	buf_char(b, ' ');
}

/* printf's "inf" and "nan" aren't the format's words. */
static void number_text(double v, char ret[static 32])
{
	if (isnan(v))
		snprintf(ret, 32, "NaN");
	else if (isinf(v))
		snprintf(ret, 32, v < 0 ? "-Inf" : "+Inf");
	else
		snprintf(ret, 32, "%.17g", v);
}

/* The shortest text that reads back as the same number: 0.1 rather than 0.10000000000000001. */
static void bound_text(double v, char ret[static 32])
{
	for (int digits = 1; digits < 17; digits++) {
		snprintf(ret, 32, "%.*g", digits, v);
		if (strtod(ret, NULL) == v)
			return;
	}
	number_text(v, ret);
}

void prom_count(struct buf *b, const char *name, uint64_t value, ...)
{
	va_list pairs;

	va_start(pairs, value);
	series(b, name, "", pairs, NULL);
	va_end(pairs);
	buf_printf(b, "%llu\n", (unsigned long long)value);
}

void prom_number(struct buf *b, const char *name, double value, ...)
{
	char text[32];
	va_list pairs;

	number_text(value, text);
	va_start(pairs, value);
	series(b, name, "", pairs, NULL);
	va_end(pairs);
	buf_printf(b, "%s\n", text);
}

void prom_histogram(struct buf *b, const char *name, const struct prom_histogram *h, ...)
{
	uint64_t total = 0;
	char text[32];
	va_list pairs;

	va_start(pairs, h);
	for (size_t i = 0; i <= h->n; i++) {
		total += h->counts[i];
		if (i < h->n)
			bound_text(h->bounds[i], text);
		series(b, name, "_bucket", pairs, i < h->n ? text : "+Inf");
		buf_printf(b, "%llu\n", (unsigned long long)total);
	}
	number_text(h->sum, text);
	series(b, name, "_sum", pairs, NULL);
	buf_printf(b, "%s\n", text);
	series(b, name, "_count", pairs, NULL);
	buf_printf(b, "%llu\n", (unsigned long long)total);
	va_end(pairs);
}
