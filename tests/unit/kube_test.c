/* kube_test.c - which server is asked with what, and that stopping doesn't wait for it. Against a
 * server of a few lines: the answers themselves are tests/e2e/test_workload.py's. */
#include "machine.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "workload/kube.h"

/* Answers each connection with the next of `answers` ("": not at all), keeping what was asked. */
static struct {
	int fd;
	char url[64];
	const char *const *answers;
	size_t nanswers, asked;
	char requests[8][4096];
	pthread_t thread;
	pthread_mutex_t lock;
} server = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void read_head(int fd, char *to, size_t size)
{
	size_t len = 0;
	ssize_t n;

	while (len < size - 1 && (n = read(fd, to + len, size - 1 - len)) > 0) {
		len += (size_t)n;
		to[len] = '\0';
		if (strstr(to, "\r\n\r\n"))
			break;
	}
}

static void *serve(void *arg)
{
	int silent[8], nsilent = 0, fd;

	(void)arg;
	while ((fd = accept(server.fd, NULL, NULL)) >= 0) {
		char request[4096] = "";
		const char *answer;

		read_head(fd, request, sizeof(request));
		pthread_mutex_lock(&server.lock);
		answer = server.asked < server.nanswers ? server.answers[server.asked] : "";
		if (server.asked < ARRAY_SIZE(server.requests))
			strcpy(server.requests[server.asked], request);
		server.asked++;
		pthread_mutex_unlock(&server.lock);
		if (answer[0]) {
			ck_assert_int_gt(dprintf(fd, "HTTP/1.1 %s", answer), 0);
			close(fd);
		} else if (nsilent < 8) {
			silent[nsilent++] = fd;
		}
	}
	while (nsilent)
		close(silent[--nsilent]);
	return NULL;
}

static void start_server(const char *const *answers, size_t n)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);

	server.answers = answers;
	server.nanswers = n;
	server.asked = 0;
	memset(server.requests, 0, sizeof(server.requests));
	server.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert(!bind(server.fd, (void *)&a, sizeof(a)) && !listen(server.fd, 8));
	ck_assert(!getsockname(server.fd, (void *)&a, &len));
	snprintf(server.url, sizeof(server.url), "http://127.0.0.1:%u", ntohs(a.sin_port));
	ck_assert(!pthread_create(&server.thread, NULL, serve, NULL));
}

static void stop_server(void)
{
	shutdown(server.fd, SHUT_RDWR);
	pthread_join(server.thread, NULL);
	close(server.fd);
}

static void wait_until_asked(size_t n)
{
	for (int i = 0; i < 1000; i++) {
		size_t asked;

		pthread_mutex_lock(&server.lock);
		asked = server.asked;
		pthread_mutex_unlock(&server.lock);
		if (asked >= n)
			return;
		usleep(10000);
	}
	ck_abort_msg("the server isn't asked");
}

static size_t npods;

static void on_pod(void *ctx, const json_t *object)
{
	(void)object;
	__atomic_add_fetch((size_t *)ctx, 1, __ATOMIC_RELAXED);
}

static struct kube_options options(enum kube_mode mode)
{
	return (struct kube_options){
		.mode = mode,
		.node_name = "n 1&x",
		.api_url = server.url,
		.kubelet_url = server.url,
		.token_file = "",
		.ca_file = "",
		.reader = { on_pod, &npods },
	};
}

#define LIST "200 OK\r\n\r\n{\"metadata\":{\"resourceVersion\":\"5 6\"},\"items\":[{},{}]}"

static struct kube *kube;
static struct err e;

START_TEST(lists_then_watches)
{
	static const char *const answers[] = { LIST };
	struct kube_options o = options(KUBE_API);
	struct kube_stats st;
	uint64_t begin;

	npods = 0;
	start_server(answers, 1);
	ck_assert_int_eq(kube_start(&o, &kube, &e), 0);
	wait_until_asked(2);
	kube_stats(kube, &st);
	ck_assert(st.synced);
	ck_assert_uint_eq(st.lists, 1);
	ck_assert_uint_eq(st.pods, 2);
	ck_assert_str_eq(st.error, "");
	begin = clock_monotonic();
	kube_stop(kube); /* while the watch hangs */
	ck_assert_uint_lt(clock_monotonic() - begin, 5000000000);
	stop_server();
	ck_assert_uint_eq(npods, 2);
	ck_assert_ptr_nonnull(strstr(server.requests[0],
				     "GET /api/v1/pods?&fieldSelector=spec.nodeName%3Dn%201%26x"
				     "&resourceVersion=0 HTTP/1.1\r\n"));
	ck_assert_ptr_null(strstr(server.requests[0], "Authorization"));
	ck_assert_ptr_nonnull(strstr(server.requests[1], "&watch=true&allowWatchBookmarks=true&"));
	ck_assert_ptr_nonnull(strstr(server.requests[1], "&resourceVersion=5%206 "));
}
END_TEST

START_TEST(sends_the_token)
{
	static const char *const answers[] = {
		"403 Forbidden\r\n\r\n{\"message\":\"pods is forbidden\"}",
		"403 Forbidden\r\n\r\n{\"message\":\"not with s3cr3t\"}",
	};
	struct kube_options o = options(KUBE_KUBELET);
	struct kube_stats st;
	char path[PATH_MAX];

	machine_setup();
	make_file("/token", "s3cr3t\n");
	snprintf(path, sizeof(path), "%s/token", root);
	o.token_file = path;
	start_server(answers, 2);
	ck_assert_int_eq(kube_start(&o, &kube, &e), 0);
	do {
		kube_stats(kube, &st);
		usleep(1000);
	} while (!st.errors);
	ck_assert_ptr_nonnull(strstr(st.error, ": HTTP status 403: pods is forbidden"));
	do {
		kube_stats(kube, &st);
		usleep(1000);
	} while (st.errors < 2);
	ck_assert_ptr_nonnull(strstr(st.error, "403"));
	ck_assert_ptr_null(strstr(st.error, "s3cr3t"));
	kube_stop(kube);
	stop_server();
	ck_assert_ptr_nonnull(strstr(server.requests[0], "GET /pods HTTP/1.1\r\n"));
	ck_assert_ptr_nonnull(strstr(server.requests[0], "\r\nAuthorization: Bearer s3cr3t\r\n"));
	machine_teardown();
}
END_TEST

/* Not sent, and said so. */
START_TEST(odd_tokens)
{
	static const char *const tokens[] = { "", "\n", "a b", "a\nHost: x", "a\x01", "\xc3\xa9" };
	struct kube_stats st;
	char path[PATH_MAX];

	machine_setup();
	start_server(NULL, 0);
	snprintf(path, sizeof(path), "%s/token", root);
	for (size_t i = 0; i <= ARRAY_SIZE(tokens); i++) {
		struct kube_options o = options(KUBE_API);

		if (i < ARRAY_SIZE(tokens))
			make_file("/token", tokens[i]);
		else
			unlink(path);
		o.token_file = path;
		ck_assert_int_eq(kube_start(&o, &kube, &e), 0);
		do {
			kube_stats(kube, &st);
			usleep(1000);
		} while (!st.errors);
		kube_stop(kube);
		ck_assert_ptr_nonnull(strstr(st.error, "token"));
	}
	ck_assert_uint_eq(server.asked, 0);
	stop_server();
	machine_teardown();
}
END_TEST

START_TEST(modes)
{
	struct kube_options o = options(KUBE_OFF);

	unsetenv("KUBERNETES_SERVICE_HOST");
	ck_assert_int_eq(kube_start(&o, &kube, &e), 0);
	ck_assert_ptr_null(kube);
	o.mode = KUBE_AUTO;
	o.api_url = NULL;
	ck_assert_int_eq(kube_start(&o, &kube, &e), 0);
	ck_assert_ptr_null(kube);
	o.mode = KUBE_API;
	ck_assert_int_eq(kube_start(&o, &kube, &e), -EINVAL);
	ck_assert_ptr_nonnull(strstr(e.msg, "KUBERNETES_SERVICE_HOST"));
	kube_stop(NULL);
	kube_hurry(NULL);

	/* nobody listens there: it fails, and stops all the same */
	setenv("KUBERNETES_SERVICE_HOST", "::1", 1);
	setenv("KUBERNETES_SERVICE_PORT", "1", 1);
	ck_assert_int_eq(kube_start(&o, &kube, &e), 0);
	for (struct kube_stats st = { 0 }; !st.errors; usleep(1000)) {
		kube_stats(kube, &st);
		ck_assert(!st.errors || strstr(st.error, "https://[::1]:1: "));
	}
	kube_stop(kube);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kube");
	TCase *t = tcase_create("kube");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_test(t, lists_then_watches);
	tcase_add_test(t, sends_the_token);
	tcase_add_test(t, odd_tokens);
	tcase_add_test(t, modes);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
