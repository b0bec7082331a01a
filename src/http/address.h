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
/* A listening socket there, close-on-exec and non-blocking; every IPv6 address means every IPv4
 * address too, and that alone where the kernel has no IPv6. 0, or -errno with a sentence; *ret_port
 * is the one that was free. */
int must_check address_listen(const struct address *a, int *ret_fd, uint16_t *ret_port,
			      struct err *e);

#endif
