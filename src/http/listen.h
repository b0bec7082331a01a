/* listen.h - where a server listens: "127.0.0.1:9425", "[::1]:9425", ":9425" (every address).
 *
 *	r = listen_parse("0.0.0.0:9425", &a, &e);
 *	if (!listen_is_loopback(&a)) ... others can reach it ...
 *
 * Numbers only, but "localhost" is 127.0.0.1: a name could mean another address tomorrow, and
 * whether a token is needed follows from the address.
 */
#ifndef WICK_LISTEN_H
#define WICK_LISTEN_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/base.h"

struct listen_address {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	};
};

/* Port 0 is any free one. 0, or -EINVAL with a sentence that quotes the text. */
int must_check listen_parse(const char *text, struct listen_address *ret, struct err *e);
/* Only processes of this host (of its network namespace) can connect: 127.0.0.0/8, ::1 and
 * ::ffff:127.0.0.0/104. */
bool listen_is_loopback(const struct listen_address *a);
/* A listening socket there, close-on-exec and non-blocking; every IPv6 address means every IPv4
 * address too, and that alone where the kernel has no IPv6. 0, or -errno with a sentence; *ret_port
 * is the one that was free. */
int must_check listen_open(const struct listen_address *a, int *ret_fd, uint16_t *ret_port,
			      struct err *e);

#endif
