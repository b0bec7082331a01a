/* httpd_test.c - the HTTP side over real connections: what it answers, to whom, and how it treats
 * callers that are slow, many, rude, or gone. */
#include <arpa/inet.h>
#include <check.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <time.h>

#include "base/buf.h"
#include "http/httpd.h"

#define TOKEN "correct-horse-battery"

static struct httpd *d;
static atomic_bool is_ready, hold, large;
static atomic_int making, gone;
static int result;
static struct profile_request last;	/* under the lock: callers come several at a time */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char answer[128 << 10];

/* ---- the agent ---- */

static void metrics(void *ctx, struct buf *ret)
{
	ck_assert_ptr_eq(ctx, answer);
	buf_str(ret, "wick_up 1\n");
	while (large && ret->len < 32 << 20)
		buf_str(ret, "wick_filler{of=\"a page that nobody reads, as long as can be\"} 1\n");
}

static bool ready(void *ctx, struct buf *ret_why)
{
	(void)ctx;
	buf_str(ret_why, is_ready ? "pushed 3 s ago\n" : "no push for 90 s to http://server\n");
	return is_ready;
}

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
}

static void swap_last(struct profile_request *q)
{
	struct profile_request before;

	pthread_mutex_lock(&lock);
	before = last;
	last = *q;
	pthread_mutex_unlock(&lock);
	*q = before;
}

static int profile(void *ctx, const struct profile_request *q, struct buf *ret, struct err *e)
{
	struct profile_request copy = *q;

	(void)ctx;
	swap_last(&copy);
	making++;
	while (hold && !httpd_gone(q->caller))
		nap();
	making--;
	if (httpd_gone(q->caller)) {
		gone++;
		return -ECANCELED;
	}
	buf_bytes(ret, "\x1f\x8b profile", 10);
	return result ? err_set(e, result, "because of the test") : 0;
}

static int start(const char *listen_at, const char *token_file, struct err *e)
{
	struct httpd_options o = {
		.listen = listen_at,
		.token_file = token_file,
		.limits = { .max_duration_ns = 20000000000ULL, .max_hz = 99 },
		.max_callers = 2,
		.max_connections = 16,
		.request_ms = 300,
		.reply_ms = 300,
	};
	struct httpd_handler h = { .ctx = answer, .metrics = metrics, .ready = ready,
				   .profile = profile };

	is_ready = true;
	hold = large = false;
	result = 0;
	return httpd_new(&o, &h, &d, e);
}

static void setup(void)
{
	struct err e = { "" };

	ck_assert_msg(!start("127.0.0.1:0", NULL, &e), "%s", e.msg);
}

static void teardown(void)
{
	httpd_free(d);
	d = NULL;
}

/* ---- the callers ---- */

static int dial(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(httpd_port(d)),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static void say(int fd, const char *text)
{
	size_t n = strlen(text);

	ck_assert_int_eq(send(fd, text, n, MSG_NOSIGNAL), (ssize_t)n);
}

/* Reads to the connection's end. */
static const char *hear(int fd)
{
	size_t len = 0;
	ssize_t n;

	while ((n = recv(fd, answer + len, sizeof(answer) - 1 - len, 0)) > 0)
		len += (size_t)n;
	answer[len] = '\0';
	close(fd);
	return answer;
}

/* One request, headers in `more`; the status. */
static int ask(const char *method, const char *path, const char *more)
{
	char text[512];
	int fd = dial(), status = 0;

	snprintf(text, sizeof(text), "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n",
		 method, path, more);
	say(fd, text);
	sscanf(hear(fd), "HTTP/1.1 %d", &status);
	return status;
}

static int get(const char *path)
{
	return ask("GET", path, "");
}

static bool said(const char *part)
{
	return strstr(answer, part) != NULL;
}

static int begin(const char *path)
{
	char text[512];
	int fd = dial();

	snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
		 path);
	say(fd, text);
	return fd;
}

static void wait_for(atomic_int *value, int wanted)
{
	while (*value != wanted)
		nap();
}

/* ---- tests ---- */

START_TEST(test_health)
{
	ck_assert_int_eq(get("/healthz"), 200);
	ck_assert(said("\r\n\r\nok\n"));
	ck_assert_int_eq(get("/readyz"), 200);
	ck_assert(said("pushed 3 s ago"));
	is_ready = false;
	ck_assert_int_eq(get("/readyz"), 503);
	ck_assert(said("no push for 90 s"));
	ck_assert_int_eq(get("/healthz"), 200);
}
END_TEST

START_TEST(test_metrics)
{
	ck_assert_int_eq(get("/metrics"), 200);
	ck_assert(said("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
	ck_assert(said("\r\n\r\nwick_up 1\n"));
	ck_assert_int_eq(ask("HEAD", "/metrics", ""), 200);
	ck_assert(said("Content-Length: 10\r\n"));
	ck_assert(!said("wick_up"));
}
END_TEST

START_TEST(test_pages)
{
	ck_assert_int_eq(get("/"), 200);
	ck_assert(said("/debug/pprof/profile"));
	ck_assert_int_eq(get("/debug/pprof"), 301);
	ck_assert(said("Location: /debug/pprof/\r\n"));
	ck_assert_int_eq(get("/debug/pprof/"), 200);
	ck_assert(said("Content-Type: text/html; charset=utf-8\r\n"));
	ck_assert(said("<a href=\"profile?seconds=10\">profile</a>"));
	ck_assert(said("0.1 to 20"));
	ck_assert_int_eq(get("/debug/pprof/heap"), 404);
	ck_assert(said("There is no heap here"));
	ck_assert_int_eq(get("/favicon.ico"), 404);
	ck_assert(said("There is nothing at this address"));
}
END_TEST

START_TEST(test_profile)
{
	struct profile_request q = { 0 };

	ck_assert_int_eq(get("/debug/pprof/profile?seconds=1&hz=99&pid=7&comm=%61b"), 200);
	ck_assert(said("Content-Type: application/octet-stream\r\n"));
	ck_assert(said("Content-Disposition: attachment; filename=\"profile\"\r\n"));
	ck_assert(said("Content-Length: 10\r\n"));
	ck_assert(said("\r\n\r\n\x1f\x8b profile"));
	swap_last(&q);
	ck_assert_uint_eq(q.duration_ns, 1000000000);
	ck_assert_uint_eq(q.hz, 99);
	ck_assert_uint_eq(q.pid, 7);
	ck_assert_str_eq(q.comm, "ab");
	ck_assert_int_eq(ask("HEAD", "/debug/pprof/profile?seconds=1&pid=7", ""), 200);
	ck_assert(said("Content-Type: application/octet-stream\r\n"));
	swap_last(&q);
	ck_assert_uint_eq(q.pid, 0);	/* what was put there: HEAD makes no profile */
}
END_TEST

static const struct {
	int result, status;
} failures[] = {
	{ -EINVAL, 400 }, { -ENOENT, 404 }, { -EBUSY, 503 },
	{ -EAGAIN, 503 }, { -ESHUTDOWN, 503 }, { -EIO, 500 },
};

START_TEST(test_profile_fails)
{
	result = failures[_i].result;
	ck_assert_int_eq(get("/debug/pprof/profile?seconds=1"), failures[_i].status);
	ck_assert(said("because of the test\n"));
	ck_assert(said("Content-Type: text/plain"));
	ck_assert_int_eq(said("Retry-After: "), failures[_i].status == 503);
}
END_TEST

START_TEST(test_bad_requests)
{
	ck_assert_int_eq(get("/debug/pprof/profile?seconds=21"), 400);
	ck_assert(said("seconds: '21' is not a number from 0.1 to 20\n"));
	ck_assert_int_eq(get("/debug/pprof/profile?hz=100"), 400);
	ck_assert_int_eq(get("/debug/pprof/profile?comm=%00"), 400);
	ck_assert_int_eq(ask("POST", "/metrics", "Content-Length: 0\r\n"), 405);
	ck_assert(said("Allow: GET, HEAD\r\n"));
	ck_assert_int_eq(ask("DELETE", "/", ""), 405);
	ck_assert_int_eq(ask("BREW", "/", ""), 405);
	ck_assert_int_eq(ask("GET", "/metrics", "Content-Length: 5\r\n"), 405);
	ck_assert_int_eq(ask("GET", "/metrics", "Content-Length: 0\r\n"), 200);
}
END_TEST

START_TEST(test_busy)
{
	int a, b;
	struct httpd_stats s;

	hold = true;
	a = begin("/debug/pprof/profile?seconds=5");
	b = begin("/debug/pprof/profile?seconds=7");
	wait_for(&making, 2);
	ck_assert_uint_eq(httpd_stats(d).callers, 2);
	ck_assert_int_eq(get("/debug/pprof/profile?seconds=1"), 429);
	ck_assert(said("Retry-After: 5\r\n") || said("Retry-After: 6\r\n"));
	ck_assert(said("2 profiles are being made already"));
	ck_assert_int_eq(get("/healthz"), 200);	/* others are served meanwhile */
	hold = false;
	ck_assert_ptr_nonnull(strstr(hear(a), "200 OK"));
	ck_assert_ptr_nonnull(strstr(hear(b), "200 OK"));
	ck_assert_int_eq(get("/debug/pprof/profile?seconds=1"), 200);
	s = httpd_stats(d);
	ck_assert_uint_eq(s.busy, 1);
	ck_assert_uint_eq(s.callers, 0);
	ck_assert_uint_eq(s.replies[2], 4);
	ck_assert_uint_eq(s.replies[4], 1);
}
END_TEST

START_TEST(test_caller_goes)
{
	int before = gone, fd;

	hold = true;
	fd = begin("/debug/pprof/profile?seconds=5");
	wait_for(&making, 1);
	close(fd);
	wait_for(&gone, before + 1);
	while (httpd_stats(d).gone != 1)
		nap();
	hold = false;
	ck_assert_int_eq(get("/debug/pprof/profile?seconds=1"), 200);
}
END_TEST

START_TEST(test_end_with_callers)
{
	int before = gone, fd;

	hold = true;
	fd = begin("/debug/pprof/profile?seconds=20");
	wait_for(&making, 1);
	httpd_free(d);
	d = NULL;
	ck_assert_int_eq(gone, before + 1);
	hear(fd);
}
END_TEST

/* Several requests on one connection, the first two at once. */
START_TEST(test_pipelined)
{
	int fd = dial();

	say(fd, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
		"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
	say(fd, "GET /debug/pprof/profile?seconds=1 HTTP/1.1\r\nHost: x\r\n"
		"Connection: close\r\n\r\n");
	hear(fd);
	ck_assert(said("ok\n"));
	ck_assert(said("wick_up 1\n"));
	ck_assert(said("\x1f\x8b profile"));
}
END_TEST

/* A caller that says a byte now and then is cut when its time is over, however lively it is. */
START_TEST(test_slow_request)
{
	const char *text = "GET /healthz HTTP/1.1\r\nHost: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
			   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
	struct pollfd p = { .events = POLLRDHUP };
	int fd = dial(), silent = dial();

	p.fd = fd;
	for (; *text && !poll(&p, 1, 20); text++)
		if (send(fd, text, 1, MSG_NOSIGNAL) != 1)
			break;
	ck_assert_msg(*text, "all of it was listened to");
	hear(fd);
	ck_assert(!said("200 OK"));
	hear(silent);
	ck_assert_str_eq(answer, "");
	ck_assert_uint_eq(httpd_stats(d).cut, 2);
	ck_assert_int_eq(get("/healthz"), 200);
}
END_TEST

/* One that takes its reply drop by drop is cut too. */
START_TEST(test_slow_reader)
{
	char drop[16];
	int fd;

	large = true;
	fd = begin("/metrics");
	while (!httpd_stats(d).cut) {
		if (recv(fd, drop, sizeof(drop), 0) <= 0)
			break;
		nap();
	}
	close(fd);
	while (httpd_stats(d).connections)
		nap();
	ck_assert_uint_eq(httpd_stats(d).cut, 1);
	large = false;
	ck_assert_int_eq(get("/metrics"), 200);
}
END_TEST

/* A connection that is full of idle callers is theirs only until their time is over. */
START_TEST(test_many_connections)
{
	int fds[40];

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = dial();
	ck_assert_int_eq(get("/healthz"), 200);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
}
END_TEST

START_TEST(test_oversized)
{
	char *big = calloc(1, 2 * HTTPD_HEADER_MAX);
	int fd, status = 0;

	memset(big, 'a', 2 * HTTPD_HEADER_MAX - 1);
	fd = dial();
	say(fd, "GET /");
	send(fd, big, 2 * HTTPD_HEADER_MAX - 1, MSG_NOSIGNAL);
	sscanf(hear(fd), "HTTP/1.1 %d", &status);
	ck_assert_int_ne(status, 200);
	fd = dial();
	say(fd, "GET /healthz HTTP/1.1\r\nHost: ");
	send(fd, big, 2 * HTTPD_HEADER_MAX - 1, MSG_NOSIGNAL);
	status = 0;
	sscanf(hear(fd), "HTTP/1.1 %d", &status);
	ck_assert_int_ne(status, 200);
	free(big);
	ck_assert_int_eq(get("/healthz"), 200);
}
END_TEST

static const char *const malformed[] = {
	"\r\n\r\n\r\n\r\n", "GET\r\n\r\n", "GET /healthz\r\n\r\n", "\x16\x03\x01\x02\x00\x01",
	"GET /healthz HTTP/9.9\r\n\r\n", "GET  HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /healthz HTTP/1.1\r\n\r\n", "GET /healthz HTTP/1.1\r\nHost\r\n\r\n",
	"GET /healthz HTTP/1.1\r\n Host: x\r\n\r\n",
	"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
	"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
	"POST /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
	"GET http://[ HTTP/1.1\r\nHost: x\r\n\r\n", "GET /%zz%00%ff HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /debug/pprof/profile?%%%&&&=== HTTP/1.1\r\nHost: x\r\n\r\n",
};

START_TEST(test_malformed)
{
	int fd = dial();

	say(fd, malformed[_i]);
	hear(fd);
	ck_assert(!said(" 200 ") && !said(" 500 "));
	ck_assert_int_eq(get("/healthz"), 200);
}
END_TEST

START_TEST(test_token)
{
	char path[] = "/tmp/wick-httpd-XXXXXX";
	struct err e = { "" };
	int fd = mkstemp(path);

	ck_assert_int_eq(write(fd, TOKEN "\n", strlen(TOKEN) + 1), (ssize_t)strlen(TOKEN) + 1);
	close(fd);
	ck_assert_msg(!start("0.0.0.0:0", path, &e), "%s", e.msg);
	ck_assert_int_eq(get("/metrics"), 401);
	ck_assert(said("WWW-Authenticate: Bearer\r\n"));
	ck_assert_int_eq(get("/debug/pprof/profile?seconds=1"), 401);
	ck_assert_int_eq(get("/debug/pprof/"), 401);
	ck_assert_int_eq(get("/nothing"), 401);
	ck_assert_int_eq(ask("GET", "/metrics", "Authorization: Bearer correct-horse\r\n"), 401);
	ck_assert_int_eq(ask("GET", "/metrics", "Authorization: Bearer " TOKEN "\r\n"), 200);
	ck_assert_int_eq(ask("GET", "/debug/pprof/profile?seconds=1",
			     "authorization: Bearer " TOKEN "\r\n"), 200);
	ck_assert_int_eq(get("/healthz"), 200);
	is_ready = false;
	ck_assert_int_eq(get("/readyz"), 503);
	ck_assert(said("\r\n\r\nnot ready\n"));
	ck_assert(!said("http://server"));
	ck_assert_int_eq(ask("GET", "/readyz", "Authorization: Bearer " TOKEN "\r\n"), 503);
	ck_assert(said("http://server"));
	ck_assert_uint_eq(httpd_stats(d).unauthorized, 5);
	httpd_free(d);
	unlink(path);
}
END_TEST

START_TEST(test_refuses_to_start)
{
	struct err e;
	char at[32];
	struct httpd *first;

	ck_assert_int_eq(start("0.0.0.0:0", NULL, &e), -EINVAL);
	ck_assert_ptr_nonnull(strstr(e.msg, "takes a token"));
	ck_assert_int_eq(start("nonsense", NULL, &e), -EINVAL);
	ck_assert_int_eq(start("127.0.0.1:0", "/nonexistent/token", &e), -EINVAL);
	ck_assert_int_eq(start("127.0.0.1:0", NULL, &e), 0);
	first = d;
	snprintf(at, sizeof(at), "127.0.0.1:%u", httpd_port(first));
	ck_assert_int_eq(start(at, NULL, &e), -EADDRINUSE);
	httpd_free(first);
	httpd_free(NULL);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("httpd");
	TCase *open_ = tcase_create("loopback"), *own = tcase_create("own");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(open_, setup, teardown);
	tcase_set_timeout(open_, 30);
	tcase_add_test(open_, test_health);
	tcase_add_test(open_, test_metrics);
	tcase_add_test(open_, test_pages);
	tcase_add_test(open_, test_profile);
	tcase_add_loop_test(open_, test_profile_fails, 0, ARRAY_SIZE(failures));
	tcase_add_test(open_, test_bad_requests);
	tcase_add_test(open_, test_busy);
	tcase_add_test(open_, test_caller_goes);
	tcase_add_test(open_, test_end_with_callers);
	tcase_add_test(open_, test_pipelined);
	tcase_add_test(open_, test_slow_request);
	tcase_add_test(open_, test_slow_reader);
	tcase_add_test(open_, test_many_connections);
	tcase_add_test(open_, test_oversized);
	tcase_add_loop_test(open_, test_malformed, 0, ARRAY_SIZE(malformed));
	tcase_set_timeout(own, 30);
	tcase_add_test(own, test_token);
	tcase_add_test(own, test_refuses_to_start);
	suite_add_tcase(s, open_);
	suite_add_tcase(s, own);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
