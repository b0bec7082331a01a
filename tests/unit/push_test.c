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
#include "profile/pprof.h"
#include "push.pb-c.h"
#include "small_profile.h"

static struct err e;

/* ---- targets ---- */

START_TEST(parses_targets)
{
	cleanup(push_target_cleanup) struct push_target *t = NULL;

	ck_assert_int_eq(push_parse("pyroscope+http://me:secret@host", &t, &e), 0);
	ck_assert_str_eq(push_name(t), "pyroscope+http://host:4040");
	push_target_free(take(t));
	ck_assert_int_eq(push_parse("http://me:secret@host", &t, &e), -EINVAL);
	ck_assert_ptr_null(t);
	ck_assert(strstr(e.msg, "'http://host' has no protocol") && !strstr(e.msg, "secret"));
}
END_TEST

static void masked(const char *url, const char *shown)
{
	char text[128];

	snprintf(text, sizeof(text), "%s", url);
	push_mask(text);
	ck_assert_str_eq(text, shown);
}

START_TEST(masks_passwords)
{
	masked("pyroscope+http://me:se:c@ret@host:1/x", "pyroscope+http://me:********@host:1/x");
	masked("--push=pyroscope+http://me:secret@host", "--push=pyroscope+http://me:******@host");
	masked("pyroscope+http://me@host:4040", "pyroscope+http://me@host:4040");
	masked("pyroscope+http://host:4040", "pyroscope+http://host:4040");
	masked("a:b@c", "a:b@c");
	masked("", "");
}
END_TEST

/* ---- labels ---- */

static void bad_label(const char *text, const char *why)
{
	cleanup(labels_cleanup) struct labels l = LABELS_INIT;

	ck_assert_int_eq(push_label_add(&l, text, &e), -EINVAL);
	ck_assert_uint_eq(l.n, 0);
	ck_assert_msg(strstr(e.msg, why), "%s", e.msg);
}

START_TEST(parses_labels)
{
	cleanup(labels_cleanup) struct labels l = LABELS_INIT;

	ck_assert_int_eq(push_label_add(&l, "env=a=b \u00e9", &e), 0);
	ck_assert_int_eq(push_label_add(&l, "_a1_Z=x", NULL), 0);
	ck_assert_str_eq(labels_get(&l, "env"), "a=b \u00e9");
	ck_assert_int_eq(push_label_add(&l, "env=c", &e), -EINVAL);
	ck_assert(strstr(e.msg, "'env' is given twice"));

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

/* NAME=VALUE of so many bytes each, and an end that may be bad. */
static void long_label(struct buf *b, size_t name, size_t value, char c)
{
	buf_reset(b);
	for (size_t i = 0; i < name; i++)
		buf_char(b, 'n');
	buf_char(b, '=');
	for (size_t i = 0; i < value; i++)
		buf_char(b, c);
}

START_TEST(limits_labels)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(1 << 16);
	cleanup(labels_cleanup) struct labels l = LABELS_INIT;
	char text[32];

	long_label(&b, LABEL_NAME_MAX - 1, LABEL_VALUE_MAX - 1, 'v');
	ck_assert_int_eq(push_label_add(&l, b.data, &e), 0);
	long_label(&b, LABEL_NAME_MAX, 1, 'v');
	bad_label(b.data, "has 1024 bytes, the limit is 1023");
	long_label(&b, 1, LABEL_VALUE_MAX, 'v');
	bad_label(b.data, "has 2048 bytes, the limit is 2047");
	/* bytes that are each replaced by three must not pass the limit in disguise */
	long_label(&b, 1, LABEL_VALUE_MAX - 1, '\xff');
	bad_label(b.data, "is not UTF-8");

	for (int i = 1; i < LABELS_MAX; i++) {
		snprintf(text, sizeof(text), "n%d=v", i);
		ck_assert_int_eq(push_label_add(&l, text, &e), 0);
	}
	ck_assert_int_eq(push_label_add(&l, "one=more", &e), -EINVAL);
	ck_assert(strstr(e.msg, "more than 28 labels besides service_name"));
	ck_assert_int_eq(push_label_add(&l, "service_name=s", &e), 0);
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

static int push(const char *format, const struct labels *labels, const struct profile *p)
{
	cleanup(push_target_cleanup) struct push_target *t = NULL;
	char url[128];
	int r;

	snprintf(url, sizeof(url), "%s:%d/prefix?timeout=%s", format, server.port,
		 server.behaviour == HANG ? "400ms" : "10s");	/* the others are done when done */
	ck_assert_msg(!push_parse(url, &t, &e), "%s", e.msg);
	e.msg[0] = '\0';
	result.status = -1;
	r = push_send(t, labels, p, &result, &e);
	ck_assert_msg(!strstr(e.msg, "secret"), "%s", e.msg);
	return r;
}

/* So many samples, with stacks of their own. */
static struct profile *profile_of(int samples)
{
	struct profile *p = small_profile();
	char name[32];

	p->time_nanos = 1796100000000000000;
	p->duration_nanos = 1000000000;
	for (int i = 0; i < samples; i++) {
		snprintf(name, sizeof(name), "function_%d", i);
		uint32_t ids[] = { small_location(p, 0, 0x1000 + 16 * (uint64_t)i, name), 0 };

		small_sample(p, ids, "comm", 1, 1, 1);
	}
	return p;
}

/* One push to a server that does this; its errno, with the sentence in e. */
static int push_to(enum behaviour behaviour, const char *answer)
{
	static const struct labels none = LABELS_INIT;
	cleanup(profile_cleanup) struct profile *p = profile_of(1);
	int r;

	server_start(behaviour, answer);
	r = push("pyroscope+http://me:secret@127.0.0.1", &none, p);
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

START_TEST(sends_what_servers_want)
{
	cleanup(labels_cleanup) struct labels labels = LABELS_INIT;
	cleanup(profile_cleanup) struct profile *p = profile_of(3000);
	cleanup(buf_cleanup) struct buf gz = BUF_INIT(1 << 20);
	const Push__V1__RawProfileSeries *s;
	Push__V1__PushRequest *request;

	ck_assert_int_eq(labels_set(&labels, "env", "prod \u00e9"), 0);
	ck_assert_int_eq(labels_set(&labels, "service_name", "web"), 0);
	ck_assert_int_eq(pprof_write(p, true, &gz), 0);
	server_start(ANSWER, OK_ANSWER);
	ck_assert_msg(!push("pyroscope+http://me:secret@127.0.0.1", &labels, p), "%s", e.msg);
	server_stop();
	ck_assert_int_eq(result.status, 200);
	ck_assert_uint_eq(result.sent, server.body_len);
	ck_assert_uint_eq(result.parts, 1);
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
	ck_assert_uint_eq(s->samples[0]->raw_profile.len, gz.len);
	ck_assert(!memcmp(s->samples[0]->raw_profile.data, gz.data, gz.len));
	push__v1__push_request__free_unpacked(request, NULL);
	buf_free(&server.request);
}
END_TEST

START_TEST(names_a_service)
{
	Push__V1__PushRequest *request;
	cleanup(profile_cleanup) struct profile *p = profile_of(1);
	struct labels none = LABELS_INIT;

	server_start(ANSWER, OK_ANSWER);
	ck_assert_int_eq(push("pyroscope+http://127.0.0.1", &none, p), 0);
	server_stop();
	ck_assert_ptr_null(strstr(server.request.data, "\r\nAuthorization:"));
	request = push__v1__push_request__unpack(NULL, server.body_len, (uint8_t *)server.body);
	ck_assert_ptr_nonnull(request);
	ck_assert_uint_eq(request->series[0]->n_labels, 2);
	expect_pair(request->series[0], "service_name", ITEM_DEFAULT_SERVICE);
	push__v1__push_request__free_unpacked(request, NULL);
	buf_free(&server.request);
}
END_TEST

START_TEST(sends_nothing_that_servers_choke_on)
{
	cleanup(profile_cleanup) struct profile *empty = profile_of(0), *p = profile_of(1);
	struct labels none = LABELS_INIT;

	server_start(ANSWER, OK_ANSWER);
	ck_assert_int_eq(push("pyroscope+http://127.0.0.1", &none, empty), 0);
	ck_assert_uint_eq(result.parts, 0);
	p->duration_nanos = 0;
	ck_assert_int_eq(push("pyroscope+http://127.0.0.1", &none, p), -EINVAL);
	expect_message("lacks types, a period or a time");
	server_stop();
	ck_assert_uint_eq(server.request.len, 0);
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
	{ 413, -E2BIG, "\r\n", "", "too large" },
	{ 415, -EREMOTEIO, "\r\n", "", "this content type" },
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
	cleanup(profile_cleanup) struct profile *p = profile_of(1);
	struct labels none = LABELS_INIT;
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
	ck_assert_int_eq(push("pyroscope+http://127.0.0.1", &none, p), -ECONNREFUSED);
	server_start(CLOSE_EARLY, "HTTP/1.1 400 Bad Request\r\n\r\nplain HTTP, no TLS");
	ck_assert_int_eq(push("pyroscope+https://me:secret@127.0.0.1", &none, p), -EPROTO);
	expect_message("can't push to pyroscope+https://127.0.0.1:");
	server_stop();
	buf_free(&server.request);

	/* RFC 6761: this name never resolves; without a network it takes for ever not to */
	ck_assert_int_eq(push_parse("pyroscope+http://me:secret@wick.invalid?timeout=3s", &t, &e), 0);
	r = push_send(t, &none, p, &result, &e);
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
	tcase_add_test(t, parses_targets);
	tcase_add_test(t, masks_passwords);
	tcase_add_test(t, parses_labels);
	tcase_add_test(t, limits_labels);
	tcase_add_test(t, sends_what_servers_want);
	tcase_add_test(t, names_a_service);
	tcase_add_test(t, sends_nothing_that_servers_choke_on);
	tcase_add_loop_test(t, tells_what_the_server_said, 0, ARRAY_SIZE(answers));
	tcase_add_test(t, mistrusts_a_stray_200);
	tcase_add_test(t, tells_why_there_was_no_answer);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
