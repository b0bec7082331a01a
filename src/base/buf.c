/* buf.c - see buf.h. */
#include "base/buf.h"

static bool reserve(struct buf *b, size_t n)
{
	int r;

	if (b->err)
		return false;
	if (n > b->max || b->len > b->max - n) {
		b->err = -E2BIG;
		return false;
	}
	r = array_grow(&b->data, &b->cap, b->len + n + 1, 1);	/* + 1: the NUL */
	if (r)
		b->err = r;
	return !r;
}

void buf_bytes(struct buf *b, const void *p, size_t n)
{
	if (!reserve(b, n))
		return;
	if (n)
		memcpy(b->data + b->len, p, n);
	b->len += n;
	b->data[b->len] = '\0';
}

void buf_str(struct buf *b, const char *s)
{
	buf_bytes(b, s, strlen(s));
}

void buf_char(struct buf *b, char c)
{
	buf_bytes(b, &c, 1);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0 || !reserve(b, (size_t)n))
		return;
	va_start(ap, fmt);
	vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
}

/* Length of the well-formed UTF-8 sequence at s, 0 if there is none (RFC 3629 section 4). */
static size_t utf8_sequence(const unsigned char *s, size_t n)
{
	size_t len = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 :
								 s[0] < 0xf5 ? 4 : 0;

	if (!len || len > n)
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;	/* overlong, surrogate, beyond U+10FFFF */
	return len;
}

void buf_utf8(struct buf *b, const char *s, size_t n)
{
	size_t len;

	for (size_t i = 0; i < n; i += len) {
		len = utf8_sequence((const unsigned char *)s + i, n - i);
		if (len) {
			buf_bytes(b, s + i, len);
		} else {
			buf_str(b, "\xef\xbf\xbd");
			len = 1;
		}
	}
}

void buf_reset(struct buf *b)
{
	b->len = 0;
	b->err = 0;
	if (b->data)
		b->data[0] = '\0';
}

void buf_free(struct buf *b)
{
	free(b->data);
	*b = (struct buf)BUF_INIT(b->max);
}

int buf_take(struct buf *b, char **ret, size_t *ret_len)
{
	buf_bytes(b, "", 0);	/* so that an empty one has its NUL */
	if (b->err)
		return b->err;
	*ret = take(b->data);
	*ret_len = b->len;
	*b = (struct buf)BUF_INIT(b->max);
	return 0;
}
