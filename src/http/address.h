/* address.h - where a server listens: "127.0.0.1:9425", "[::1]:9425", ":9425" (every address).
 *
 *	r = address_parse("0.0.0.0:9425", &a, &e);
 *	if (!address_is_loopback(&a)) ... others can reach it ...
 *
 * Numbers only, but "localhost" is 127.0.0.1: a name could mean another address tomorrow, and
 * whether a token is needed follows from the address.
 */
#ifndef WICK_ADDRESS_H
#define WICK_ADDRESS_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/base.h"

struct address {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	};
};

/* Port 0 is any free one. 0, or -EINVAL with a sentence that quotes the text. */
int must_check address_parse(const char *text, struct address *ret, struct err *e);
/* Only processes of this host (of its network namespace) can connect: 127.0.0.0/8, ::1 and
 * ::ffff:127.0.0.0/104. */
bool address_is_loopback(const struct address *a);

#endif
