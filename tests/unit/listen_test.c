/* listen_test.c - what is an address, what is loopback, and listening. */
#include <arpa/inet.h>
#include <check.h>

#include "http/listen.h"

static const struct {
	const char *text;
	bool loopback;
} good[] = {
	{ "127.0.0.1:9425", true },	 { "127.1.2.3:0", true },  { "localhost:80", true },
	{ "[::1]:9425", true },		 { "0.0.0.0:9425", false }, { ":9425", false },
	{ "10.0.0.1:65535", false },	 { "[::]:1", false },	   { "[2001:db8::1]:1", false },
	{ "[::ffff:127.0.0.1]:1", true }, { "[::ffff:10.0.0.1]:1", false },
};

static const char *const bad[] = {
	"", "9425", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1: 80",
	"127.0.0.1:8x", "example.com:80", "::1:9425", "[::1:9425", "[::1]9425", "[]:1", "127.1:80",
	"[127.0.0.1]:80", "[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0001]:80",
};

START_TEST(test_good)
{
	struct listen_address a;
	struct err e;

	ck_assert_int_eq(listen_parse(good[_i].text, &a, &e), 0);
	ck_assert_int_eq(listen_is_loopback(&a), good[_i].loopback);
}
END_TEST

START_TEST(test_bad)
{
	struct listen_address a;
	struct err e;

	ck_assert_int_eq(listen_parse(bad[_i], &a, &e), -EINVAL);
	ck_assert_ptr_nonnull(strstr(e.msg, "is not ADDRESS:PORT"));
}
END_TEST

START_TEST(test_listen)
{
	struct listen_address a;
	struct err e;
	char text[32];
	uint16_t port, again;
	int fd, second;

	ck_assert_int_eq(listen_parse("127.0.0.1:0", &a, &e), 0);
	ck_assert_int_eq(listen_open(&a, &fd, &port, &e), 0);
	ck_assert_uint_ne(port, 0);
	snprintf(text, sizeof(text), "127.0.0.1:%u", port);
	ck_assert_int_eq(listen_parse(text, &a, &e), 0);
	ck_assert_int_eq(listen_open(&a, &second, &again, &e), -EADDRINUSE);
	ck_assert_ptr_nonnull(strstr(e.msg, text));
	close(fd);
	ck_assert_int_eq(listen_parse("192.0.2.1:0", &a, &e), 0);
	ck_assert_int_eq(listen_open(&a, &fd, &port, &e), -EADDRNOTAVAIL);
}
END_TEST

START_TEST(test_listen_everywhere)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct listen_address a;
	struct err e;
	uint16_t port;
	int fd, client;

	ck_assert_int_eq(listen_parse(":0", &a, &e), 0);
	ck_assert_int_eq(listen_open(&a, &fd, &port, &e), 0);
	to.sin_port = htons(port);
	client = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(connect(client, (struct sockaddr *)&to, sizeof(to)), 0);
	close(client);
	close(fd);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("listen");
	TCase *t = tcase_create("listen");
	SRunner *r;
	int failed;

	tcase_add_loop_test(t, test_good, 0, ARRAY_SIZE(good));
	tcase_add_loop_test(t, test_bad, 0, ARRAY_SIZE(bad));
	tcase_add_test(t, test_listen);
	tcase_add_test(t, test_listen_everywhere);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
