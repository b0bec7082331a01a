/* listen.c - see listen.h. */
#include "http/listen.h"

#include <arpa/inet.h>

enum { BACKLOG = 64 };	/* connections that wait to be accepted */

static int refuse(const char *text, struct err *e)
{
	return err_set(e, -EINVAL,
		       "'%.100s' is not ADDRESS:PORT (127.0.0.1:9425, [::1]:9425, :9425)", text);
}

/* Decimal digits only: strtoul would take " +1" as well. */
static bool parse_port(const char *s, uint16_t *ret)
{
	uint32_t port = 0;

	if (!*s)
		return false;
	for (; *s; s++) {
		if (*s < '0' || *s > '9')
			return false;
		port = port * 10 + (uint32_t)(*s - '0');
		if (port > UINT16_MAX)
			return false;
	}
	*ret = (uint16_t)port;
	return true;
}

int listen_parse(const char *text, struct listen_address *ret, struct err *e)
{
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN + 2];
	struct listen_address a;
	size_t n;
	uint16_t port;

	if (!colon || !parse_port(colon + 1, &port))
		return refuse(text, e);
	n = (size_t)(colon - text);
	if (n >= sizeof(host))
		return refuse(text, e);
	memcpy(host, text, n);
	host[n] = '\0';
	memset(&a, 0, sizeof(a));
	if (n > 2 && host[0] == '[' && host[n - 1] == ']') {
		host[n - 1] = '\0';
		a.v6.sin6_family = AF_INET6;
		a.v6.sin6_port = htons(port);
		if (inet_pton(AF_INET6, host + 1, &a.v6.sin6_addr) != 1)
			return refuse(text, e);
	} else if (!n) {
		a.v6.sin6_family = AF_INET6;	/* takes IPv4 as well */
		a.v6.sin6_port = htons(port);
		a.v6.sin6_addr = in6addr_any;
	} else {
		a.v4.sin_family = AF_INET;
		a.v4.sin_port = htons(port);
		if (inet_pton(AF_INET, strcmp(host, "localhost") ? host : "127.0.0.1",
			      &a.v4.sin_addr) != 1)
			return refuse(text, e);
	}
	*ret = a;
	return 0;
}

bool listen_is_loopback(const struct listen_address *a)
{
	if (a->any.sa_family == AF_INET)
		return ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
	if (IN6_IS_ADDR_V4MAPPED(&a->v6.sin6_addr))
		return a->v6.sin6_addr.s6_addr[12] == 127;
	return IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr);
}

static socklen_t length(const struct listen_address *a)
{
	return a->any.sa_family == AF_INET ? sizeof(a->v4) : sizeof(a->v6);
}

/* "127.0.0.1:80" for messages */
static void listen_text(const struct listen_address *a, char ret[static INET6_ADDRSTRLEN + 16])
{
	char host[INET6_ADDRSTRLEN] = "?";
	bool v6 = a->any.sa_family == AF_INET6;

	if (v6)
		inet_ntop(AF_INET6, &a->v6.sin6_addr, host, sizeof(host));
	else
		inet_ntop(AF_INET, &a->v4.sin_addr, host, sizeof(host));
	snprintf(ret, INET6_ADDRSTRLEN + 16, v6 ? "[%s]:%u" : "%s:%u", host,
		 ntohs(v6 ? a->v6.sin6_port : a->v4.sin_port));
}

static int open_socket(const struct listen_address *a, int *ret)
{
	int fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1, off = 0;

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    (a->any.sa_family == AF_INET6 &&
	     setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off))) ||
	    bind(fd, &a->any, length(a)) || listen(fd, BACKLOG)) {
		int r = -errno;

		close(fd);
		return r;
	}
	*ret = fd;
	return 0;
}

int listen_open(const struct listen_address *a, int *ret_fd, uint16_t *ret_port, struct err *e)
{
	struct listen_address v4 = { .v4 = { .sin_family = AF_INET, .sin_port = a->v6.sin6_port } };
	struct listen_address bound;
	char text[INET6_ADDRSTRLEN + 16];
	socklen_t size = sizeof(bound);
	int fd, r = open_socket(a, &fd);

	if (r == -EAFNOSUPPORT && a->any.sa_family == AF_INET6 &&
	    IN6_IS_ADDR_UNSPECIFIED(&a->v6.sin6_addr))
		r = open_socket(&v4, &fd);
	listen_text(a, text);
	if (r)
		return err_set(e, r, "can't listen at %s: %s", text, strerror(-r));
	if (getsockname(fd, &bound.any, &size)) {
		r = -errno;
		close(fd);
		return err_set(e, r, "getsockname: %s", strerror(-r));
	}
	*ret_fd = fd;
	*ret_port = ntohs(bound.any.sa_family == AF_INET ? bound.v4.sin_port : bound.v6.sin6_port);
	return 0;
}
