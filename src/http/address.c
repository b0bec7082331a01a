/* address.c - see address.h. */
#include "http/address.h"

#include <arpa/inet.h>

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

int address_parse(const char *text, struct address *ret, struct err *e)
{
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN + 2];
	struct address a;
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

bool address_is_loopback(const struct address *a)
{
	if (a->any.sa_family == AF_INET)
		return ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
	if (IN6_IS_ADDR_V4MAPPED(&a->v6.sin6_addr))
		return a->v6.sin6_addr.s6_addr[12] == 127;
	return IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr);
}
