/* connect_error.c - see connect_error.h. JSON is RFC 8259. */
#include "net/connect_error.h"

enum {
	REPLACEMENT = 0xfffd, /* for what is no character */
	KEY_MAX = 16,	      /* longer than the keys we look for */
};

struct text {
	const char *p, *end;
};

/* ---- characters ---- */

struct out {
	char *p;
	size_t len, size; /* size includes the NUL */
	bool full;
};

/* Appends a character whole or, from the first that doesn't fit on, not at all. */
static void put(struct out *o, uint32_t c)
{
	unsigned char u[4];
	size_t n;

	if (c == '\t' || c == '\n' || c == '\r')
		c = ' '; /* messages are one line */
	else if (c < 0x20 || (c >= 0x7f && c < 0xa0))
		c = '?';
	if (c < 0x80) {
		u[0] = (unsigned char)c;
		n = 1;
	} else if (c < 0x800) {
		u[0] = (unsigned char)(0xc0 | c >> 6);
		n = 2;
	} else if (c < 0x10000) {
		u[0] = (unsigned char)(0xe0 | c >> 12);
		n = 3;
	} else {
		u[0] = (unsigned char)(0xf0 | c >> 18);
		n = 4;
	}
	for (size_t i = 1; i < n; i++)
		u[i] = (unsigned char)(0x80 | (c >> 6 * (n - 1 - i) & 0x3f));
	if (o->full || n >= o->size - o->len) {
		o->full = true;
		return;
	}
	memcpy(o->p + o->len, u, n);
	o->len += n;
}

/* Reads one character of UTF-8 (RFC 3629 section 4); a byte that belongs to none counts as one. */
static uint32_t get(struct text *t)
{
	static const uint32_t lowest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *u = (const unsigned char *)t->p;
	size_t left = (size_t)(t->end - t->p);
	size_t n = u[0] < 0x80	 ? 1
		   : u[0] < 0xc0 ? 0
		   : u[0] < 0xe0 ? 2
		   : u[0] < 0xf0 ? 3
		   : u[0] < 0xf8 ? 4
				 : 0;
	uint32_t c;

	t->p++;
	if (n == 1)
		return u[0];
	if (!n || n > left)
		return REPLACEMENT;
	c = u[0] & (0x7fU >> n);
	for (size_t i = 1; i < n; i++) {
		if ((u[i] & 0xc0) != 0x80)
			return REPLACEMENT;
		c = c << 6 | (u[i] & 0x3f);
	}
	if (c < lowest[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return REPLACEMENT;
	t->p += n - 1;
	return c;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

void clean_text(const char *s, size_t n, char *ret, size_t size)
{
	struct text t = { s, s + n };
	struct out o = { .p = ret, .size = size };

	while (t.p < t.end && is_space(*t.p))
		t.p++;
	while (t.p < t.end && is_space(t.end[-1]))
		t.end--;
	while (t.p < t.end)
		put(&o, get(&t));
	ret[o.len] = '\0';
}

/* ---- JSON ---- */

static void skip_space(struct text *t)
{
	while (t->p < t->end && is_space(*t->p))
		t->p++;
}

static bool eat(struct text *t, char c)
{
	skip_space(t);
	if (t->p == t->end || *t->p != c)
		return false;
	t->p++;
	return true;
}

/* The four digits behind \u; nothing is consumed if they aren't there. */
static bool hex4(struct text *t, uint32_t *ret)
{
	static const char digits[] = "0123456789abcdef";
	uint32_t v = 0;
	const char *d;

	if (t->end - t->p < 4)
		return false;
	for (int i = 0; i < 4; i++) {
		d = memchr(digits, t->p[i] >= 'A' && t->p[i] <= 'F' ? t->p[i] + 32 : t->p[i], 16);
		if (!d)
			return false;
		v = v << 4 | (uint32_t)(d - digits);
	}
	t->p += 4;
	*ret = v;
	return true;
}

/* Behind "\u": one character beyond U+FFFF is written as two surrogates (RFC 8259 section 7). */
static uint32_t unicode_escape(struct text *t)
{
	uint32_t c, low;
	struct text ahead;

	if (!hex4(t, &c))
		return REPLACEMENT;
	if (c < 0xd800 || c > 0xdfff)
		return c;
	ahead = *t;
	if (c > 0xdbff || ahead.end - ahead.p < 2 || ahead.p[0] != '\\' || ahead.p[1] != 'u')
		return REPLACEMENT;
	ahead.p += 2;
	if (!hex4(&ahead, &low) || low < 0xdc00 || low > 0xdfff)
		return REPLACEMENT;
	*t = ahead;
	return 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
}

/* Behind a backslash. What may not stand there stands for itself. */
static uint32_t escape(struct text *t)
{
	static const char letters[] = "bfnrt", controls[] = "\b\f\n\r\t";
	const char *letter;

	if (*t->p == 'u') {
		t->p++;
		return unicode_escape(t);
	}
	letter = memchr(letters, *t->p, sizeof(letters) - 1);
	if (!letter)
		return get(t);
	t->p++;
	return (uint32_t)controls[letter - letters];
}

/* Behind the opening quote: unescapes up to the closing one, which is consumed. False without. */
static bool string(struct text *t, char *ret, size_t size)
{
	struct out o = { .p = ret, .size = size };

	while (t->p < t->end && *t->p != '"') {
		if (*t->p != '\\') {
			put(&o, get(t));
			continue;
		}
		if (++t->p == t->end)
			break;
		put(&o, escape(t));
	}
	ret[o.len] = '\0';
	if (t->p == t->end)
		return false;
	t->p++;
	return true;
}

/* Skips a value of any kind. Brackets are only counted, so depth costs nothing. */
static bool skip_value(struct text *t)
{
	size_t depth = 0;
	char none[1];

	for (; t->p < t->end; t->p++) {
		if (!depth && (*t->p == ',' || *t->p == '}'))
			return true;
		if (*t->p == '{' || *t->p == '[') {
			depth++;
		} else if (*t->p == '}' || *t->p == ']') {
			if (!depth)
				return false;
			depth--;
		} else if (*t->p == '"') {
			t->p++;
			if (!string(t, none, sizeof(none)))
				return false;
			t->p--;
		}
	}
	return false;
}

/* One "key": value. A code or message that isn't text is skipped like anything else. */
static bool member(struct text *t, struct connect_error *ce)
{
	char key[KEY_MAX];

	if (!eat(t, '"') || !string(t, key, sizeof(key)) || !eat(t, ':'))
		return false;
	skip_space(t);
	if (t->p < t->end && *t->p == '"') {
		if (!strcmp(key, "code")) {
			t->p++;
			return string(t, ce->code, sizeof(ce->code));
		}
		if (!strcmp(key, "message") || !strcmp(key, "error")) {
			t->p++;
			return string(t, ce->message, sizeof(ce->message));
		}
	}
	return skip_value(t);
}

bool connect_error_parse(const void *body, size_t n, struct connect_error *ret)
{
	struct connect_error ce = { "", "" };
	struct text t;

	if (!n)
		return false;
	t = (struct text){ body, (const char *)body + n };
	if (!eat(&t, '{'))
		return false;
	do {
		if (!member(&t, &ce))
			break; /* what was read before the body broke off still helps */
	} while (eat(&t, ','));
	if (!ce.code[0] && !ce.message[0])
		return false;
	*ret = ce;
	return true;
}
