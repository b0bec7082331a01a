/* address.c - see address.h. */
#include "net/address.h"

#include <curl/curl.h>

#include "net/connect_error.h"

enum { SCHEME_SHOWN = 32 };	/* of a scheme whose password is left out behind it */

size_t address_scheme(const char *url)
{
	size_t n = strspn(url, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			       "0123456789+-.");

	return n && !strncmp(url + n, "://", 3) ? n : 0;
}

/* Up to the last @, since a password may hold any of the characters that end an authority; and
 * without the query, whose options may be secrets too. */
void address_redact(const char *url, char *ret, size_t size)
{
	const char *at = strrchr(url, '@');
	size_t scheme = address_scheme(url);
	char shown[ADDRESS_SHOWN];

	if (at)
		snprintf(shown, sizeof(shown), "%.*s%s",
			 (int)(scheme ? MIN(scheme + 3, SCHEME_SHOWN) : 0), url, at + 1);
	else
		snprintf(shown, sizeof(shown), "%s", url);
	shown[strcspn(shown, "?#")] = '\0';
	clean_text(shown, strlen(shown), ret, size);
}

void address_mask(char *url)
{
	char *start = strstr(url, "://"), *at = strrchr(url, '@');
	char *colon = start && at ? strchr(start + 3, ':') : NULL;

	for (; colon && colon + 1 < at; colon++)
		colon[1] = '*';
}

static void url_cleanup(CURLU **u)
{
	curl_url_cleanup(*u);
}

/* A part of the URL as a string of ours; NULL in *ret if it has no such part. */
static int url_part(CURLU *u, CURLUPart part, unsigned int flags, char **ret)
{
	char *s = NULL, *copy = NULL;
	CURLUcode c = curl_url_get(u, part, &s, flags);

	if (c == CURLUE_OUT_OF_MEMORY)
		return -ENOMEM;
	if (!c) {
		copy = strdup(s);
		curl_free(s);
		if (!copy)
			return -ENOMEM;
	} else if (c == CURLUE_URLDECODE) {
		return -EINVAL;
	}
	*ret = copy;
	return 0;
}

static int hex(char c)
{
	return c >= '0' && c <= '9'		? c - '0'
	       : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
						    : -1;
}

/* Percent-decodes in place; -EINVAL for a broken escape or a NUL. */
static int decode(char *s)
{
	char *out = s;

	for (; *s; s++) {
		if (*s != '%') {
			*out++ = *s;
			continue;
		}
		if (hex(s[1]) < 0 || hex(s[2]) < 0 || !(hex(s[1]) | hex(s[2])))
			return -EINVAL;
		*out++ = (char)(hex(s[1]) << 4 | hex(s[2]));
		s += 2;
	}
	*out = '\0';
	return 0;
}

static int parse_options(char *query, struct address *a, const char **ret_why)
{
	char *rest = query, *one, *equal;

	*ret_why = "has options that aren't NAME=VALUE";
	while ((one = strsep(&rest, "&"))) {
		struct address_option *o = &a->options[a->noptions];

		equal = strchr(one, '=');
		if (!equal || equal == one || !equal[1] || a->noptions == ADDRESS_OPTIONS)
			return -EINVAL;
		*equal++ = '\0';
		if (decode(one) || decode(equal))
			return -EINVAL;
		a->noptions++;
		o->name = strdup(one);
		o->value = strdup(equal);
		if (!o->name || !o->value)
			return -ENOMEM;
	}
	return 0;
}

/* Takes fragment and query off, which must be done before curl sees the rest: "file" isn't a URL of
 * its, and everybody's query has the same form here. */
static int split_query(char *text, struct address *a, const char **ret_why)
{
	char *query = strrchr(text, '@');

	query = strpbrk(query ? query : text, "?#");
	if (!query)
		return 0;
	if (*query == '#' || strchr(query, '#')) {
		*ret_why = "has a fragment";
		return -EINVAL;
	}
	*query++ = '\0';
	return parse_options(query, a, ret_why);
}

static int parse_http(const char *rest, bool tls, const char *port, struct address *a,
		      const char **ret_why)
{
	cleanup(url_cleanup) CURLU *u = curl_url();
	cleanup(freep_cleanup) char *text = NULL, *given = NULL, *query = NULL;
	int r;

	if (!u || asprintf(&text, "%s%s", tls ? "https" : "http", rest) < 0)
		return -ENOMEM;
	*ret_why = "is not a URL";
	if (curl_url_set(u, CURLUPART_URL, text, 0))
		return -EINVAL;
	r = url_part(u, CURLUPART_QUERY, 0, &query);
	*ret_why = "has an @ behind its ?, where it must be %40";
	if (!r && query)
		return -EINVAL;
	if (!r)
		r = url_part(u, CURLUPART_PORT, 0, &given);
	if (!r && !given && !tls && port && curl_url_set(u, CURLUPART_PORT, port, 0))
		r = -ENOMEM;
	*ret_why = "has a user or password that can't be decoded";
	if (!r)
		r = url_part(u, CURLUPART_USER, CURLU_URLDECODE, &a->user);
	if (!r)
		r = url_part(u, CURLUPART_PASSWORD, CURLU_URLDECODE, &a->password);
	if (r)
		return r;
	if (curl_url_set(u, CURLUPART_USER, NULL, 0) || curl_url_set(u, CURLUPART_PASSWORD, NULL, 0))
		return -ENOMEM;
	r = url_part(u, CURLUPART_URL, 0, &a->base);
	return r || a->base ? r : -ENOMEM;
}

static int parse_file(const char *rest, struct address *a, const char **ret_why)
{
	*ret_why = "doesn't name a directory with its whole path";
	if (strncmp(rest, ":///", 4))
		return -EINVAL;
	a->base = strdup(rest + 3);
	if (!a->base)
		return -ENOMEM;
	return decode(a->base);
}

int address_parse(const char *url, bool tls, const char *port, struct address *ret,
		  const char **ret_why)
{
	cleanup(freep_cleanup) char *text = strdup(url);
	size_t scheme = address_scheme(url), len;
	int r;

	*ret = (struct address){ 0 };
	*ret_why = "has no protocol";
	if (!scheme)
		return -EINVAL;
	*ret_why = "is too long";
	if (strlen(url) > ADDRESS_MAX)
		return -EINVAL;
	ret->scheme = strndup(url, scheme);
	if (!text || !ret->scheme)
		return -ENOMEM;
	r = split_query(text, ret, ret_why);
	if (!r && !strcmp(ret->scheme, "file"))
		r = parse_file(text + scheme, ret, ret_why);
	else if (!r)
		r = parse_http(text + scheme, tls, port, ret, ret_why);
	if (r)
		return r;
	len = strlen(ret->base);
	while (len > 1 && ret->base[len - 1] == '/')
		ret->base[--len] = '\0';
	return 0;
}

static void forget(char *s)
{
	if (s)
		explicit_bzero(s, strlen(s));
	free(s);
}

void address_done(struct address *a)
{
	free(a->scheme);
	free(a->base);
	free(a->user);
	forget(a->password);
	for (size_t i = 0; i < a->noptions; i++) {
		free(a->options[i].name);
		free(a->options[i].value);
	}
	*a = (struct address){ 0 };
}
