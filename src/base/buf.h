/* buf.h - growable bytes with a hard cap and a sticky error.
 *
 *	struct buf b = BUF_INIT(64 << 20);	// never more than 64 MiB
 *	buf_str(&b, "hello");			// appends return nothing ...
 *	buf_printf(&b, " %d", n);
 *	r = buf_take(&b, &bytes, &len);		// ... the one check is here
 *
 * After the first failure (-ENOMEM, -E2BIG over the cap) appends do nothing, so an encoder is
 * straight-line code that checks once. The bytes are always followed by a NUL that is not
 * counted, so text can be used as a C string. Ownership: the buf owns its bytes until buf_take.
 */
#ifndef WICK_BUF_H
#define WICK_BUF_H

#include "base/base.h"

struct buf {
	char *data;	/* NULL while empty */
	size_t len, cap;
	size_t max;	/* hard cap on len */
	int err;	/* 0 or the first failure */
};

#define BUF_INIT(max_bytes) { .max = (max_bytes) }

void buf_bytes(struct buf *b, const void *p, size_t n);
void buf_str(struct buf *b, const char *s);
void buf_char(struct buf *b, char c);
void printf_like(2, 3) buf_printf(struct buf *b, const char *fmt, ...);
/* Appends s as valid UTF-8: each byte that is not part of a well-formed sequence (RFC 3629)
 * becomes U+FFFD. Control characters are kept. */
void buf_utf8(struct buf *b, const char *s, size_t n);

/* Forgets the contents, the error too; keeps the memory. */
void buf_reset(struct buf *b);
void buf_free(struct buf *b);
/* Moves the bytes to the caller, who frees them; the buf is empty again. 0 or the sticky error
 * (nothing is moved then). An empty buf yields an allocated "". */
int must_check buf_take(struct buf *b, char **ret, size_t *ret_len);

static inline maybe_unused void buf_cleanup(struct buf *b)
{
	buf_free(b);
}

#endif
