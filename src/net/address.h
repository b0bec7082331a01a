/* address.h - the parts of an address that profiles are sent to (sink.h says what they look like).
 *
 *	struct address a;
 *	r = address_parse("parca+grpcs://user:pw@host?tenant=x", &a, &e);
 *	a.scheme "parca+grpcs"  a.base "https://host"  a.user "user"  ...
 *	address_done(&a);
 */
#ifndef WICK_NET_ADDRESS_H
#define WICK_NET_ADDRESS_H

#include "base/base.h"

enum {
	ADDRESS_MAX = 4096,	/* bytes of an address */
	ADDRESS_SHOWN = 120,	/* of it in a message */
	ADDRESS_OPTIONS = 16,
};

struct address_option {
	char *name, *value;	/* percent-decoded */
};

struct address {
	char *scheme;
	char *base;		/* http[s]://host:port/prefix without a slash at its end; of file: the path */
	char *user, *password;	/* NULL: none */
	struct address_option options[ADDRESS_OPTIONS];
	size_t noptions;
};

/* port: used for an http base without one; NULL: none. 0, -ENOMEM, -EINVAL: *ret_why says what is
 * wrong, e.g. "is not a URL". *ret is overwritten, address_done() it also after a failure. */
int must_check address_parse(const char *url, bool tls, const char *port, struct address *ret,
			     const char **ret_why);
void address_done(struct address *a);
/* Bytes of the scheme without "://", 0 if there is none (RFC 3986 section 3.1). */
size_t address_scheme(const char *url);
/* See sink_redact. */
void address_redact(const char *url, char *ret, size_t size);
/* Overwrites the password in it with '*', if it has one. */
void address_mask(char *url);

#endif
