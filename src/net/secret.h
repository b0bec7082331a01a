/* secret.h - a password or token, given as it is or as a file that is read again when it changes.
 *
 *	r = secret_set(&s, NULL, "/run/secrets/token", &e);
 *	secret_refresh(&s);			// before each use
 *	secret_value(&s) -> "eyJhbGciOi..."
 *	secret_done(&s);
 *
 * Kubernetes renews tokens of service accounts in place, so a value is only as old as its file's
 * mtime. White space at both ends isn't part of it. While the file can't be read, the last value
 * stays. Memory that held a value is cleared before it is freed.
 */
#ifndef WICK_NET_SECRET_H
#define WICK_NET_SECRET_H

#include <time.h>

#include "base/base.h"

enum { SECRET_MAX = 16 << 10 };	/* bytes */

struct secret {
	char *value, *path;
	struct timespec mtime;
};

/* At most one of value and path; with neither, there is no secret. Copies. 0, -ENOMEM, -EINVAL:
 * empty, longer than SECRET_MAX or with a control character in it; -errno of open(2) and read(2),
 * with a sentence that names the file and never the value. *s is zeroed before. */
int must_check secret_set(struct secret *s, const char *value, const char *path, struct err *e);
void secret_refresh(struct secret *s);
static inline const char *secret_value(const struct secret *s)	/* NULL: none */
{
	return s->value;
}
void secret_done(struct secret *s);

#endif
