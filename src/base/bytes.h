/* bytes.h - reading numbers and texts out of a piece of memory that someone else has filled.
 *
 *	struct bytes b = bytes_of(data, size);
 *	uint64_t n = bytes_uleb(&b);
 *	const char *name = bytes_text(&b);
 *	if (b.bad)
 *		return -EBADMSG;
 *
 * The first read past the end sets bad and yields 0 (text: "") ever after, so that a parser is a
 * straight line with one check. Numbers are little-endian, as on both machines that wick runs on.
 */
#ifndef WICK_BASE_BYTES_H
#define WICK_BASE_BYTES_H

#include "base/base.h"

struct bytes {
	const uint8_t *p, *end;
	bool bad;
};

static inline struct bytes bytes_of(const void *data, size_t size)
{
	const uint8_t *p = data;

	return (struct bytes){ p, size ? p + size : p, false };
}

static inline size_t bytes_left(const struct bytes *b)
{
	return (size_t)(b->end - b->p);
}

/* n bytes where they lie; NULL: there are fewer. */
static inline const uint8_t *bytes_get(struct bytes *b, uint64_t n)
{
	const uint8_t *p = b->p;

	if (n > bytes_left(b)) {
		b->bad = true;
		b->p = b->end;
		return NULL;
	}
	b->p += n;
	return p;
}

/* n: 0 to 8. */
static inline uint64_t bytes_uint(struct bytes *b, size_t n)
{
	const uint8_t *p = bytes_get(b, n);
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, n);
	return v;
}

/* LEB128 (DWARF 5 section 7.6). More than 64 bits is bad; padding is not. */
static inline uint64_t bytes_uleb(struct bytes *b)
{
	uint64_t v = 0;
	unsigned int shift = 0;

	while (b->p < b->end) {
		uint8_t byte = *b->p++;
		uint64_t low = byte & 0x7f;

		if (low && (shift > 63 || low << shift >> shift != low))
			break;
		if (shift < 64)
			v |= low << shift;
		if (!(byte & 0x80))
			return v;
		shift += 7;
	}
	b->bad = true;
	b->p = b->end;
	return 0;
}

static inline int64_t bytes_sleb(struct bytes *b)
{
	uint64_t v = 0;
	unsigned int shift = 0;

	while (b->p < b->end) {
		uint8_t byte = *b->p++;

		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (byte & 0x80)
			continue;
		if (byte & 0x40 && shift < 64)
			v |= ~UINT64_C(0) << shift;
		return (int64_t)v;
	}
	b->bad = true;
	return 0;
}

/* A NUL-terminated text where it lies. */
static inline const char *bytes_text(struct bytes *b)
{
	const uint8_t *p = b->p, *nul = memchr(p, 0, bytes_left(b));

	if (!bytes_left(b) || !nul) {
		b->bad = true;
		b->p = b->end;
		return "";
	}
	b->p = nul + 1;
	return (const char *)p;
}

#endif
