/* push_test.c - addresses, labels, and whole pushes to a server of our own (push.h). */
#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "net/push.h"
#include "push.pb-c.h"

static struct err e;

/* ---- addresses ---- */

static void target(const char *url, const char *name, const char *user, const char *password)
{
	cleanup(push_target_cleanup) struct push_target *t = NULL;
	char post[512];

	ck_assert_msg(!push_parse(url, &t, &e), "%s: %s", url, e.msg);
	ck_assert_str_eq(push_name(t), name);
	snprintf(post, sizeof(post), "%s/push.v1.PusherService/Push", name + strlen("pyroscope+"));
	ck_assert_str_eq(t->url, post);
	ck_assert_pstr_eq(t->user, user);
	ck_assert_pstr_eq(t->password, password);
	ck_assert_int_eq(t->connect_ms, PUSH_CONNECT_MS);
	ck_assert_int_eq(t->total_ms, PUSH_TOTAL_MS);
}

START_TEST(parses_addresses)
{
	target("pyroscope+http://localhost:4040", "pyroscope+http://localhost:4040", NULL, NULL);
	target("pyroscope+http://host", "pyroscope+http://host:4040", NULL, NULL);
	target("pyroscope+http://host:80", "pyroscope+http://host:80", NULL, NULL);
	target("pyroscope+https://host/", "pyroscope+https://host", NULL, NULL);
	target("pyroscope+http://[::1]:1/a/b//", "pyroscope+http://[::1]:1/a/b", NULL, NULL);
	target("pyroscope+https://u:p%40%3Aq@host/x", "pyroscope+https://host/x", "u", "p@:q");
	target("pyroscope+http://me@host:1", "pyroscope+http://host:1", "me", NULL);
}
END_TEST

static void bad_target(const char *url, const char *shown, const char *why)
{
	struct push_target *t = (struct push_target *)&e;

	ck_assert_int_eq(push_parse(url, &t, &e), -EINVAL);
	ck_assert_ptr_eq(t, &e);
	ck_assert_msg(strstr(e.msg, shown) && strstr(e.msg, why), "%s", e.msg);
	ck_assert_msg(strstr(e.msg, "pyroscope+http://HOST:PORT"), "%s", e.msg);
	ck_assert_msg(!strstr(e.msg, "secret"), "%s", e.msg);
}

START_TEST(refuses_addresses)
{
	bad_target("http://x", "--push: 'http://x'", "has no protocol");
	bad_target("localhost:4040", "'localhost:4040'", "has no protocol");
	bad_target("", "''", "has no protocol");
	bad_target("otlp+http://x:4318", "'otlp+http://x:4318'", "isn't supported");
	bad_target("pyroscope+ftp://x", "'pyroscope+ftp://x'", "isn't supported");
	bad_target("pyroscope+http://", "'pyroscope+http://'", "is not a URL");
	bad_target("pyroscope+http://x:99999", "x:99999", "is not a URL");
	bad_target("pyroscope+http://a b", "a b", "is not a URL");
	bad_target("pyroscope+http://x?a=b", "x?a=b", "query");
	bad_target("pyroscope+http://x#a", "x#a", "fragment");
	bad_target("http://me:secret@x", "'http://x'", "has no protocol");
	bad_target("me:secret@x", "'x'", "has no protocol");
	bad_target("me:secret+@x", "'x'", "has no protocol");
	bad_target("me:secret@x/://y", "'x/://y'", "has no protocol");
	bad_target("file:///tmp", "'file:///tmp'", "isn't supported");
	bad_target("parca+grpc://me:secret@x", "'parca+grpc://x'", "isn't supported");
	bad_target("pyroscope+http://me:sec/secret@x?y", "'pyroscope+http://x?y'", "");
	bad_target("pyroscope+http://me:secret%00@x", "'pyroscope+http://x'", "decoded");
	bad_target("x\033[31m\n", "'x?[31m'", "has no protocol");
}
END_TEST

START_TEST(refuses_long_address)
{
	char url[8192] = "pyroscope+http://me:secret@";

	memset(url + strlen(url), 'h', sizeof(url) - strlen(url) - 1);
	url[sizeof(url) - 1] = '\0';
	bad_target(url, "hhh", "too long");
}
END_TEST

/* ---- labels ---- */

static void bad_label(const char *text, const char *why)
{
	struct push_label l = { NULL, NULL };

	ck_assert_int_eq(push_label_parse(text, &l, &e), -EINVAL);
	ck_assert_ptr_null(l.name);
	ck_assert_msg(strstr(e.msg, "--label: ") == e.msg && strstr(e.msg, why), "%s", e.msg);
}

START_TEST(parses_labels)
{
	struct push_label l;

	ck_assert_int_eq(push_label_parse("env=a=b \u00e9", &l, &e), 0);
	ck_assert_str_eq(l.name, "env");
	ck_assert_str_eq(l.value, "a=b \u00e9");
	push_label_free(&l);
	ck_assert_int_eq(push_label_parse("_a1_Z=x", &l, NULL), 0);
	push_label_free(&l);
	ck_assert_ptr_null(l.name);

	bad_label("env", "'env' is not NAME=VALUE");
	bad_label("", "is not NAME=VALUE");
	bad_label("=x", "letters, digits and _");
	bad_label("a-b=x", "'a-b'");
	bad_label("a.b=x", "letters, digits and _");
	bad_label("1a=x", "doesn't start with a digit");
	bad_label("\u00e9=x", "letters, digits and _");
	bad_label("__name__=x", "reserved");
	bad_label("__x=x", "reserved");
	bad_label("a=", "'a' has an empty value");
	bad_label("a=\xff", "is not UTF-8");
}
END_TEST

START_TEST(limits_labels)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(1 << 16);
	struct push_label l;

	for (int extra = 0; extra < 2; extra++) {
		buf_reset(&b);
		for (int i = 0; i < PUSH_NAME_MAX + extra; i++)
			buf_char(&b, 'n');
		buf_str(&b, "=v");
		if (extra)
			bad_label(b.data, "has 1025 bytes, the limit is 1024");
		else
			ck_assert_int_eq(push_label_parse(b.data, &l, &e), 0);
	}
	push_label_free(&l);
	for (int extra = 0; extra < 2; extra++) {
		buf_reset(&b);
		buf_str(&b, "n=");
		for (int i = 0; i < PUSH_VALUE_MAX + extra; i++)
			buf_char(&b, 'v');
		if (extra)
			bad_label(b.data, "has 2049 bytes, the limit is 2048");
		else
			ck_assert_int_eq(push_label_parse(b.data, &l, &e), 0);
	}
	push_label_free(&l);
	/* bytes that are each replaced by three must not pass the limit in disguise */
	buf_reset(&b);
	buf_str(&b, "n=");
	for (int i = 0; i < PUSH_VALUE_MAX; i++)
		buf_char(&b, '\xff');
	bad_label(b.data, "is not UTF-8");
}
END_TEST

START_TEST(checks_labels_together)
{
	char names[PUSH_LABELS_MAX][16], value[] = "v", service[] = "service_name";
	struct push_label l[PUSH_LABELS_MAX];

	for (int i = 0; i < PUSH_LABELS_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "n%d", i);
		l[i] = (struct push_label){ names[i], value };
	}
	ck_assert_int_eq(push_labels_check(NULL, 0, &e), 0);
	ck_assert_int_eq(push_labels_check(l, 28, &e), 0);
	ck_assert_int_eq(push_labels_check(l, 29, &e), -EINVAL);
	ck_assert_msg(strstr(e.msg, "31 labels, the limit is 30"), "%s", e.msg);
	l[3].name = service;
	ck_assert_int_eq(push_labels_check(l, 29, &e), 0);
	ck_assert_int_eq(push_labels_check(l, 30, &e), -EINVAL);
	l[7].name = names[2];
	ck_assert_int_eq(push_labels_check(l, 10, &e), -EINVAL);
	ck_assert_msg(strstr(e.msg, "'n2' is given twice"), "%s", e.msg);
	l[7].name = names[7];
	names[7][0] = '-';
	ck_assert_int_eq(push_labels_check(l, 10, &e), -EINVAL);
}
END_TEST

/* ---- a server for one request ---- */

enum behaviour { ANSWER, HANG, CLOSE_EARLY, FLOOD };

static struct server {
	enum behaviour behaviour;
	const char *answer;
	int listener, port;
	pthread_t thread;
	struct buf request; /* as received, headers and body */
	char *body;	    /* in it */
	size_t body_len;
} server;

static size_t content_length(const char *headers)
{
	const char *line = strcasestr(headers, "\r\nContent-Length:");

	return line ? strtoul(line + 17, NULL, 10) : 0;
}

static void read_request(struct server *s, int fd)
{
	char bytes[16384], *end;
	ssize_t n;

	while ((n = read(fd, bytes, sizeof(bytes))) > 0) {
		buf_bytes(&s->request, bytes, (size_t)n);
		end = strstr(s->request.data, "\r\n\r\n");
		if (!end)
			continue;
		s->body = end + 4;
		s->body_len = s->request.len - (size_t)(s->body - s->request.data);
		if (s->body_len >= content_length(s->request.data))
			return;
	}
}

static void send_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);

		if (sent <= 0)
			return;
		p += sent;
		n -= (size_t)sent;
	}
}

/* Until the client has closed. */
static void wait_for_close(int fd)
{
	char byte;

	while (read(fd, &byte, 1) > 0)
		;
}

static void *serve(void *arg)
{
	static const char flood[4096] = "xxxxxxxx";
	struct server *s = arg;
	int fd = accept(s->listener, NULL, NULL);

	if (fd < 0)
		return NULL;
	if (s->behaviour != CLOSE_EARLY)
		read_request(s, fd);
	if (s->answer)
		send_all(fd, s->answer, strlen(s->answer));
	if (s->behaviour == FLOOD)
		for (int i = 0; i < 64; i++)
			send_all(fd, flood, sizeof(flood));
	if (s->behaviour == HANG)
		wait_for_close(fd);
	close(fd);
	return NULL;
}

static void server_start(enum behaviour behaviour, const char *answer)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);

	server = (struct server){ .behaviour = behaviour,
				  .answer = answer,
				  .request = BUF_INIT(64 << 20) };
	server.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(server.listener, (struct sockaddr *)&a, sizeof(a)), 0);
	ck_assert_int_eq(listen(server.listener, 1), 0);
	getsockname(server.listener, (struct sockaddr *)&a, &len);
	server.port = ntohs(a.sin_port);
	pthread_create(&server.thread, NULL, serve, &server);
}

static void server_stop(void)
{
	shutdown(server.listener, SHUT_RDWR); /* wakes an accept that nobody came for */
	pthread_join(server.thread, NULL);
	close(server.listener);
}

static struct push_result result;

static int push(const char *format, const struct push_label *labels, size_t n, const void *gz,
		size_t len)
{
	cleanup(push_target_cleanup) struct push_target *t = NULL;
	char url[128];
	int r;

	snprintf(url, sizeof(url), "%s:%d/prefix", format, server.port);
	ck_assert_msg(!push_parse(url, &t, &e), "%s", e.msg);
	t->total_ms = server.behaviour == HANG ? 400 : 10000; /* the others are done when done */
	e.msg[0] = '\0';
	result.status = -1;
	r = push_send(t, labels, n, gz, len, &result, &e);
	ck_assert_msg(!strstr(e.msg, "secret"), "%s", e.msg);
	return r;
}

/* One push to a server that does this; its errno, with the sentence in e. */
static int push_to(enum behaviour behaviour, const char *answer)
{
	int r;

	server_start(behaviour, answer);
	r = push("pyroscope+http://me:secret@127.0.0.1", NULL, 0, "gz", 2);
	server_stop();
	buf_free(&server.request);
	return r;
}

static void expect_message(const char *text)
{
	ck_assert_msg(strstr(e.msg, text), "'%s' is not in '%s'", text, e.msg);
}

/* ---- whole pushes ---- */

#define OK_ANSWER "HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\nContent-Length: 0\r\n\r\n"

static void expect_header(const char *line)
{
	char whole[256];

	snprintf(whole, sizeof(whole), "\r\n%s\r\n", line);
	ck_assert_msg(strstr(server.request.data, whole), "no '%s' in %s", line,
		      server.request.data);
}

static void expect_pair(const Push__V1__RawProfileSeries *s, const char *name, const char *value)
{
	size_t found = 0;

	for (size_t i = 0; i < s->n_labels; i++)
		if (!strcmp(s->labels[i]->name, name)) {
			ck_assert_str_eq(s->labels[i]->value, value);
			found++;
		}
	ck_assert_uint_eq(found, 1);
}

/* Larger than what fits in socket buffers, any byte. */
enum { BIG = 8 << 20 };

START_TEST(sends_what_servers_want)
{
	char env[] = "env", prod[] = "prod \u00e9", service[] = "service_name", web[] = "web";
	struct push_label labels[] = { { env, prod }, { service, web } };
	cleanup(freep_cleanup) uint8_t *gz = malloc(BIG);
	const Push__V1__RawProfileSeries *s;
	Push__V1__PushRequest *request;

	for (size_t i = 0; i < BIG; i++)
		gz[i] = (uint8_t)(i * 7 + (i >> 8));
	server_start(ANSWER, OK_ANSWER);
	ck_assert_msg(!push("pyroscope+http://me:secret@127.0.0.1", labels, 2, gz, BIG), "%s",
		      e.msg);
	server_stop();
	ck_assert_int_eq(result.status, 200);
	ck_assert_uint_eq(result.sent, server.body_len);
	ck_assert_str_eq(result.message, "");

	ck_assert(!strncmp(server.request.data,
			   "POST /prefix/push.v1.PusherService/Push HTTP/1.1\r\n", 50));
	expect_header("Content-Type: application/proto");
	expect_header("Connect-Protocol-Version: 1");
	expect_header("Authorization: Basic bWU6c2VjcmV0");
	ck_assert_ptr_null(strstr(server.request.data, "\r\nExpect:"));
	ck_assert_ptr_null(strstr(server.request.data, "\r\nContent-Encoding:"));

	request = push__v1__push_request__unpack(NULL, server.body_len, (uint8_t *)server.body);
	ck_assert_ptr_nonnull(request);
	ck_assert_uint_eq(request->n_series, 1);
	s = request->series[0];
	ck_assert_uint_eq(s->n_labels, 3);
	expect_pair(s, "__name__", "process_cpu");
	expect_pair(s, "service_name", "web");
	expect_pair(s, "env", "prod \u00e9");
	ck_assert_uint_eq(s->n_samples, 1);
	ck_assert_uint_eq(s->samples[0]->raw_profile.len, BIG);
	ck_assert(!memcmp(s->samples[0]->raw_profile.data, gz, BIG));
	push__v1__push_request__free_unpacked(request, NULL);
	buf_free(&server.request);
}
END_TEST

START_TEST(names_a_service)
{
	Push__V1__PushRequest *request;

	server_start(ANSWER, OK_ANSWER);
	ck_assert_int_eq(push("pyroscope+http://127.0.0.1", NULL, 0, "gz", 2), 0);
	server_stop();
	ck_assert_ptr_null(strstr(server.request.data, "\r\nAuthorization:"));
	request = push__v1__push_request__unpack(NULL, server.body_len, (uint8_t *)server.body);
	ck_assert_ptr_nonnull(request);
	ck_assert_uint_eq(request->series[0]->n_labels, 2);
	expect_pair(request->series[0], "service_name", PUSH_DEFAULT_SERVICE);
	push__v1__push_request__free_unpacked(request, NULL);
	buf_free(&server.request);
}
END_TEST

START_TEST(sends_no_bad_labels)
{
	char bad[] = "a-b", value[] = "v";
	struct push_label label = { bad, value };

	server_start(ANSWER, OK_ANSWER);
	ck_assert_int_eq(push("pyroscope+http://127.0.0.1", &label, 1, "gz", 2), -EINVAL);
	server_stop();
	ck_assert_uint_eq(server.request.len, 0);
	ck_assert_int_eq(result.status, 0);
}
END_TEST

static const struct {
	int status, err;
	const char *rest, *message, *in_error;
} answers[] = {
	{ 400, -EINVAL,
	  "Content-Type: application/json\r\n\r\n{\"code\":\"invalid_argument\",\"message\":"
	  "\"profile with labels '{env=\\\"x\\\"}' is outside of ingestion window\"}",
	  "profile with labels '{env=\"x\"}' is outside of ingestion window",
	  "answered 400 (invalid_argument): profile with labels '{env=\"x\"}' is outside" },
	{ 401, -EACCES, "\r\n{\"code\":\"unauthenticated\",\"message\":\"no org id\"}", "no org id",
	  "401 (unauthenticated): no org id" },
	{ 401, -EACCES, "\r\n", "", "USER:PASSWORD" },
	{ 403, -EACCES, "\r\n<html>go away</html>", "<html>go away</html>", "access denied" },
	{ 404, -ENOENT, "\r\n404 page not found\n", "404 page not found", "no Pyroscope at this" },
	{ 413, -EINVAL, "\r\n", "", "too large" },
	{ 415, -EREMOTEIO, "\r\n", "", "no Pyroscope 1.0 or later" },
	{ 418, -EREMOTEIO, "\r\nshort and stout\033[31m\n", "short and stout?[31m",
	  "418: short and" },
	{ 429, -EAGAIN, "\r\n{\"code\":\"resource_exhausted\",\"message\":\"rate\"}", "rate",
	  ": rate" },
	{ 429, -EAGAIN, "\r\n", "", "no more at the moment" },
	{ 500, -EREMOTEIO, "\r\n{\"code\":\"unknown\",\"message\":\"gzip: invalid header\"}",
	  "gzip: invalid header", "500 (unknown): gzip: invalid header" },
	{ 500, -EREMOTEIO, "\r\n", "", "didn't say why" },
	{ 501, -EREMOTEIO, "\r\n{\"code\":\"unimplemented\"}", "",
	  "501 (unimplemented): it didn't say" },
	{ 503, -EAGAIN, "\r\n", "", "not available at the moment" },
	{ 302, -EREMOTEIO, "Location: https://u:secret@other/x\r\n\r\n", "",
	  "sends us to https://other/x" },
	{ 204, -EREMOTEIO, "\r\n", "", "answered 204" },
};

START_TEST(tells_what_the_server_said)
{
	char answer[1024];

	snprintf(answer, sizeof(answer), "HTTP/1.1 %d X\r\nConnection: close\r\n%s",
		 answers[_i].status, answers[_i].rest);
	ck_assert_int_eq(push_to(ANSWER, answer), answers[_i].err);
	ck_assert_int_eq(result.status, answers[_i].status);
	ck_assert_str_eq(result.message, answers[_i].message);
	expect_message(answers[_i].in_error);
	expect_message("pyroscope+http://127.0.0.1:");
}
END_TEST

#define SLOW_DOWN "HTTP/1.1 429 X\r\nConnection: close\r\n\r\n{\"message\":\"slow down\"}"

/* A push of what says, in a gzip trailer's last four bytes, that it has so many before gzip. */
static int push_raw(uint32_t raw)
{
	uint8_t gz[20] = { 0x1f, 0x8b };
	int r;

	for (int i = 0; i < 4; i++)
		gz[16 + i] = (uint8_t)(raw >> 8 * i);
	server_start(ANSWER, SLOW_DOWN);
	r = push("pyroscope+http://127.0.0.1", NULL, 0, gz, sizeof(gz));
	server_stop();
	buf_free(&server.request);
	return r;
}

START_TEST(says_when_a_profile_must_be_split)
{
	char size[64];

	ck_assert_int_eq(push_raw(3 << 20), -E2BIG);
	snprintf(size, sizeof(size), "have %zu bytes before gzip", (3 << 20) + result.sent - 20);
	expect_message(size);
	expect_message("take 2097152: slow down");
	ck_assert_int_eq(push_raw(PUSH_RAW_MAX - 10), -E2BIG); /* labels are what is too much */
	ck_assert_int_eq(push_raw(PUSH_RAW_MAX / 2), -EAGAIN);
}
END_TEST

START_TEST(mistrusts_a_stray_200)
{
	ck_assert_int_eq(push_to(ANSWER, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), 0);
	ck_assert_int_eq(push_to(ANSWER, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
					 "Content-Length: 4\r\n\r\n<hi>"),
			 -EPROTO);
	expect_message("Content-Type 'text/html'");
	ck_assert_int_eq(
	    push_to(FLOOD, "HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\n\r\n"), -EPROTO);
	ck_assert_int_eq(push_to(FLOOD, "HTTP/1.1 500 OK\r\n\r\n"), -EREMOTEIO);
	ck_assert_int_eq(result.status, 500);
}
END_TEST

START_TEST(tells_why_there_was_no_answer)
{
	cleanup(push_target_cleanup) struct push_target *t = NULL;
	int r;

	ck_assert_int_eq(push_to(HANG, NULL), -ETIMEDOUT);
	expect_message("can't push to pyroscope+http://127.0.0.1:");
	ck_assert_int_eq(result.status, 0);
	ck_assert_int_eq(push_to(HANG, "HTTP/1.1 200 OK\r\nContent-Type: appl"), -ETIMEDOUT);
	ck_assert_int_eq(push_to(CLOSE_EARLY, NULL), -ECONNRESET);
	ck_assert_int_eq(push_to(ANSWER, NULL), -ECONNRESET);
	ck_assert_int_eq(push_to(ANSWER, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"),
			 -ECONNRESET);
	ck_assert_int_eq(push_to(ANSWER, "\x15\x03\x01 not HTTP at all\r\n\r\n"), -EPROTO);

	server_start(ANSWER, OK_ANSWER);
	server_stop(); /* its port is free now */
	ck_assert_int_eq(push("pyroscope+http://127.0.0.1", NULL, 0, "gz", 2), -ECONNREFUSED);
	server_start(CLOSE_EARLY, "HTTP/1.1 400 Bad Request\r\n\r\nplain HTTP, no TLS");
	ck_assert_int_eq(push("pyroscope+https://me:secret@127.0.0.1", NULL, 0, "gz", 2), -EPROTO);
	expect_message("can't push to pyroscope+https://127.0.0.1:");
	server_stop();
	buf_free(&server.request);

	/* RFC 6761: this name never resolves; without a network it takes for ever not to */
	ck_assert_int_eq(push_parse("pyroscope+http://me:secret@wick.invalid", &t, &e), 0);
	r = push_send(t, NULL, 0, "gz", 2, &result, &e);
	ck_assert_msg(r == -EHOSTUNREACH || r == -ETIMEDOUT, "%d: %s", r, e.msg);
	expect_message("pyroscope+http://wick.invalid:4040");
}
END_TEST

static void no_proxy(void)
{
	setenv("no_proxy", "*", 1);
}

int main(void)
{
	Suite *s = suite_create("push");
	TCase *t = tcase_create("all");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 20);
	tcase_add_checked_fixture(t, no_proxy, NULL);
	tcase_add_test(t, parses_addresses);
	tcase_add_test(t, refuses_addresses);
	tcase_add_test(t, refuses_long_address);
	tcase_add_test(t, parses_labels);
	tcase_add_test(t, limits_labels);
	tcase_add_test(t, checks_labels_together);
	tcase_add_test(t, sends_what_servers_want);
	tcase_add_test(t, names_a_service);
	tcase_add_test(t, sends_no_bad_labels);
	tcase_add_loop_test(t, tells_what_the_server_said, 0, ARRAY_SIZE(answers));
	tcase_add_test(t, says_when_a_profile_must_be_split);
	tcase_add_test(t, mistrusts_a_stray_200);
	tcase_add_test(t, tells_why_there_was_no_answer);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
