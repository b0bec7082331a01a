/* address_test.c - addresses that profiles are sent to (address.h). */
#include "sink_check.h"

#include "net/address.h"

static void good(const char *url, bool tls, const char *base, const char *user, const char *password)
{
	struct address a;
	const char *why;
	int r = address_parse(url, tls, "4040", &a, &why);

	ck_assert_msg(!r, "%s: %s", url, why);
	ck_assert_str_eq(a.base, base);
	ck_assert_pstr_eq(a.user, user);
	ck_assert_pstr_eq(a.password, password);
	address_done(&a);
}

START_TEST(parses)
{
	good("p+http://localhost:4040", false, "http://localhost:4040", NULL, NULL);
	good("p+http://host", false, "http://host:4040", NULL, NULL);
	good("p+http://host:80", false, "http://host:80", NULL, NULL);
	good("p+https://host/", true, "https://host", NULL, NULL);
	good("p+grpcs://host/", true, "https://host", NULL, NULL);
	good("p+http://[::1]:1/a/b//", false, "http://[::1]:1/a/b", NULL, NULL);
	good("p+https://u:p%40%3Aq@host/x", true, "https://host/x", "u", "p@:q");
	good("p+http://me@host:1", false, "http://host:1", "me", NULL);
	good("file:///a%20b/c/", false, "/a b/c", NULL, NULL);
	good("file:///", false, "/", NULL, NULL);
}
END_TEST

START_TEST(parses_options)
{
	struct address a;
	const char *why;

	MUST(address_parse("p+http://u:a%3Fb@h/x?tenant=a%26b&ca-file=/x", false, NULL, &a, &why));
	ck_assert_str_eq(a.base, "http://h/x");
	ck_assert_str_eq(a.password, "a?b");
	ck_assert_uint_eq(a.noptions, 2);
	ck_assert_str_eq(a.options[0].name, "tenant");
	ck_assert_str_eq(a.options[0].value, "a&b");
	ck_assert_str_eq(a.options[1].value, "/x");
	address_done(&a);
}
END_TEST

static void bad(const char *url, const char *expected)
{
	struct address a;
	const char *why = "";

	ck_assert_int_eq(address_parse(url, false, "1", &a, &why), -EINVAL);
	ck_assert_msg(strstr(why, expected), "%s: %s", url, why);
	address_done(&a);
}

START_TEST(refuses)
{
	char url[8192] = "p+http://me:secret@";

	bad("", "has no protocol");
	bad("localhost:4040", "has no protocol");
	bad("me:secret@x/://y", "has no protocol");
	bad("p+http://", "is not a URL");
	bad("p+http://x:99999", "is not a URL");
	bad("p+http://a b", "is not a URL");
	bad("p+http://x#a", "fragment");
	bad("p+http://x?a=b#a", "fragment");
	bad("p+http://x?a", "NAME=VALUE");
	bad("p+http://x?a=", "NAME=VALUE");
	bad("p+http://x?=a", "NAME=VALUE");
	bad("p+http://x?a=b&", "NAME=VALUE");
	bad("p+http://x?a=%0", "NAME=VALUE");
	bad("p+http://x?a=%00", "NAME=VALUE");
	bad("p+http://x?a=1&a=1&a=1&a=1&a=1&a=1&a=1&a=1&a=1&a=1&a=1&a=1&a=1&a=1&a=1&a=1&a=1", "NAME");
	bad("p+http://me:secret%00@x", "decoded");
	bad("p+http://x?tenant=a@b", "%40");
	bad("file://x", "directory");
	memset(url + strlen(url), 'h', sizeof(url) - strlen(url) - 1);
	bad(url, "too long");
}
END_TEST

static void shown(const char *url, const char *expected)
{
	char text[ADDRESS_SHOWN];

	address_redact(url, text, sizeof(text));
	ck_assert_str_eq(text, expected);
	ck_assert(!strstr(text, "secret"));
}

START_TEST(redacts)
{
	shown("http://me:secret@x", "http://x");
	shown("me:secret@x", "x");
	shown("me:secret+@x", "x");
	shown("p+http://me:sec/secret@x", "p+http://x");
	shown("p+http://x?bearer=secret", "p+http://x");
	shown("p+http://secret@x?a=secret@y", "p+http://y");
	shown("x\033[31m\n", "x?[31m");
	shown("", "");
}
END_TEST

START_TEST(masks)
{
	char text[] = "p+http://me:se:cret@host:1";

	address_mask(text);
	ck_assert_str_eq(text, "p+http://me:*******@host:1");
}
END_TEST

RUN_ALL("address", parses, parses_options, refuses, redacts, masks)
