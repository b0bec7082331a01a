/* auth.h - the bearer token that callers from other hosts must send (RFC 6750, section 2.1).
 *
 *	r = auth_check_file("/etc/wick/token", 16, 4096, &e);	// at the start
 *	if (!auth_bearer("/etc/wick/token", header)) ... 401 ...
 *
 * The token is what the file holds, without white space at its ends; it is read for each request,
 * so that it can be exchanged while the server runs. The time that a comparison takes depends on
 * what the caller sent, not on how much of it is right.
 */
#ifndef WICK_AUTH_H
#define WICK_AUTH_H

#include "base/base.h"

/* 0; -EINVAL with a sentence: unreadable, or fewer than min or more than max bytes. */
int must_check auth_check_file(const char *path, size_t min, size_t max, struct err *e);
/* Whether the header's value (NULL: there is none) is "Bearer " and the token, in any case of
 * "Bearer". False too if the file can't be read now. */
bool auth_bearer(const char *path, const char *header);

#endif
