/* httpd.c - see httpd.h.
 *
 * One thread, serve(), owns libmicrohttpd: it runs the daemon's epoll loop itself, so that every
 * callback, every deadline and every change of a connection happens in it, without locks. Only
 * /debug/pprof/profile takes time: its connection is suspended, a thread of its own makes the
 * profile, and serve() is woken to resume the connection and reply.
 */
#include "http/httpd.h"

#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <time.h>

#include "base/clock.h"
#include "http/listen.h"
#include "http/auth.h"
#include "http/pages.h"

enum {
	TICK_MS = 250,		/* how often deadlines are looked at */
	NO_DEADLINE = 0,
};

#define INDEX_PATH   "/debug/pprof/"
#define PROFILE_PATH "/debug/pprof/profile"

/* A connection, from its start to its end. */
struct conn {
	struct httpd *d;
	struct conn *prev, *next;
	int fd;
	uint64_t deadline;	/* CLOCK_MONOTONIC, ms */
};

/* A profile that is being made. */
struct job {
	struct httpd *d;
	struct job *next;
	struct MHD_Connection *connection;
	struct conn *conn;
	pthread_t thread;
	struct profile_request request;
	uint64_t until;		/* when it should be over, ms */
	/* set by its thread before `done` */
	struct buf profile;
	struct err err;
	int result;
	atomic_bool done;
};

/* A request, from its first line to its reply. */
struct request {
	char *query;		/* "" if there is none; the URL's undecoded bytes */
	struct job *job;	/* NULL: no profile asked for, or not yet */
	bool complete;
};

struct httpd {
	struct httpd_handler handler;
	struct query_limits limits;
	uint32_t max_callers, request_ms, reply_ms;
	char *token_file;
	struct MHD_Daemon *mhd;
	pthread_t thread;
	int wake;		/* eventfd: a job is done, or `stop` */
	int epoll;		/* the daemon's */
	uint16_t port;
	atomic_bool stop;
	struct conn *conns;	/* serve()'s */
	struct job *jobs;	/* serve()'s */
	pthread_mutex_t lock;
	struct httpd_stats stats;	/* under `lock` */
};

static uint64_t now_ms(void)
{
	return clock_monotonic() / 1000000;
}

static void count(struct httpd *d, uint64_t *counter)
{
	pthread_mutex_lock(&d->lock);
	++*counter;
	pthread_mutex_unlock(&d->lock);
}

static void add(struct httpd *d, uint32_t *gauge, int by)
{
	pthread_mutex_lock(&d->lock);
	*gauge += (uint32_t)by;
	pthread_mutex_unlock(&d->lock);
}

static void wake(struct httpd *d)
{
	uint64_t one = 1;
	ssize_t n = write(d->wake, &one, sizeof(one));

	(void)n;	/* it can only fail because it is full of wakes already */
}

struct httpd_stats httpd_stats(struct httpd *d)
{
	struct httpd_stats s;

	pthread_mutex_lock(&d->lock);
	s = d->stats;
	pthread_mutex_unlock(&d->lock);
	return s;
}

/* ---- replies ---- */

struct reply {
	unsigned int status;
	const char *type;		/* Content-Type; NULL: text */
	const char *name, *value;	/* one more header, or NULL */
	uint32_t retry_after;		/* seconds; 0: no such header */
};

static struct conn *conn_of(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info->socket_context;
}

/* Queues the bytes of b, which is empty afterwards. MHD_NO, which ends the connection, without
 * memory. */
static enum MHD_Result reply(struct MHD_Connection *c, const struct reply *how, struct buf *b)
{
	struct conn *conn = conn_of(c);
	struct MHD_Response *response;
	enum MHD_Result ok;
	char seconds[16];
	char *bytes;
	size_t n;

	if (buf_take(b, &bytes, &n)) {
		buf_free(b);
		return MHD_NO;
	}
	response = MHD_create_response_from_buffer(n, bytes, MHD_RESPMEM_MUST_FREE);
	if (!response) {
		free(bytes);
		return MHD_NO;
	}
	MHD_add_response_header(response, "Content-Type",
				how->type ? how->type : "text/plain; charset=utf-8");
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(response, "Cache-Control", "no-store");
	if (how->name)
		MHD_add_response_header(response, how->name, how->value);
	snprintf(seconds, sizeof(seconds), "%u", how->retry_after);
	if (how->retry_after)
		MHD_add_response_header(response, "Retry-After", seconds);
	ok = MHD_queue_response(c, how->status, response);
	MHD_destroy_response(response);
	conn->deadline = now_ms() + conn->d->reply_ms;
	if (how->status / 100 < ARRAY_SIZE(conn->d->stats.replies))
		count(conn->d, &conn->d->stats.replies[how->status / 100]);
	return ok;
}

static enum MHD_Result reply_text(struct MHD_Connection *c, unsigned int status, const char *text)
{
	struct reply how = { .status = status };
	struct buf b = BUF_INIT(4096);

	buf_printf(&b, "%s\n", text);
	return reply(c, &how, &b);
}

/* ---- profiles ---- */

/* As Go's handler has it; scrapers look at the type (application/x-protobuf is refused by some). */
static const struct reply profile_reply = {
	.status = MHD_HTTP_OK,
	.type = "application/octet-stream",
	.name = "Content-Disposition",
	.value = "attachment; filename=\"profile\"",
};

bool httpd_gone(void *caller)
{
	struct job *job = caller;
	struct pollfd p = { .fd = job->conn->fd, .events = POLLRDHUP };

	/* A caller that has only closed its own side is taken for gone: none that waits for a
	 * reply does that, and Go's server sees it the same way. */
	return atomic_load(&job->d->stop) ||
	       (poll(&p, 1, 0) > 0 && p.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL));
}

static void *make_profile(void *arg)
{
	struct job *job = arg;
	struct httpd *d = job->d;

	job->result = d->handler.profile(d->handler.ctx, &job->request, &job->profile, &job->err);
	if (!job->result)
		job->result = job->profile.err;
	atomic_store(&job->done, true);
	wake(d);
	return NULL;
}

/* Seconds until the first of those that are being made should be over. */
static uint32_t busy_seconds(const struct httpd *d)
{
	uint64_t now = now_ms(), until = UINT64_MAX;

	for (const struct job *j = d->jobs; j; j = j->next)
		until = MIN(until, j->until);
	return until <= now || until == UINT64_MAX ? 1 : (uint32_t)((until - now) / 1000 + 1);
}

static enum MHD_Result reply_busy(struct MHD_Connection *c, struct httpd *d)
{
	struct reply how = { .status = MHD_HTTP_TOO_MANY_REQUESTS,
			     .retry_after = busy_seconds(d) };
	struct buf b = BUF_INIT(4096);

	buf_printf(&b, "%u profiles are being made already (listen-max-callers)\n",
		   d->max_callers);
	count(d, &d->stats.busy);
	return reply(c, &how, &b);
}

static int start_job(struct httpd *d, struct MHD_Connection *c, const struct profile_request *q,
		     struct job **ret)
{
	struct job *job = calloc(1, sizeof(*job));
	int r;

	if (!job)
		return -ENOMEM;
	*job = (struct job){ .d = d, .connection = c, .conn = conn_of(c), .request = *q,
			     .profile = BUF_INIT(HTTPD_REPLY_MAX) };
	job->request.caller = job;
	job->until = now_ms() + q->duration_ns / 1000000;
	r = pthread_create(&job->thread, NULL, make_profile, job);
	if (r) {
		free(job);
		return -r;
	}
	job->conn->deadline = NO_DEADLINE;
	job->next = d->jobs;
	d->jobs = job;
	add(d, &d->stats.callers, 1);
	*ret = job;
	return 0;
}

/* Starts making a profile; the connection sleeps until finish_jobs() wakes it. */
static enum MHD_Result begin_profile(struct httpd *d, struct MHD_Connection *c,
				     struct request *request, bool head)
{
	struct buf none = BUF_INIT(0);
	struct profile_request q;
	struct err e = { "" };
	int r = query_parse(request->query, strlen(request->query), &d->limits, &q, &e);

	if (r)
		return reply_text(c, MHD_HTTP_BAD_REQUEST, e.msg);
	if (head)
		return reply(c, &profile_reply, &none);
	if (atomic_load(&d->stop))
		return reply_text(c, MHD_HTTP_SERVICE_UNAVAILABLE, "the agent is ending");
	if (httpd_stats(d).callers >= d->max_callers)
		return reply_busy(c, d);
	r = start_job(d, c, &q, &request->job);
	if (r)
		return reply_text(c, MHD_HTTP_INTERNAL_SERVER_ERROR, strerror(-r));
	MHD_suspend_connection(c);
	return MHD_YES;
}

static unsigned int status_of(int result)
{
	switch (result) {
	case -EINVAL:
		return MHD_HTTP_BAD_REQUEST;
	case -ENOENT:
		return MHD_HTTP_NOT_FOUND;
	case -EBUSY:
	case -EAGAIN:
	case -ESHUTDOWN:
		return MHD_HTTP_SERVICE_UNAVAILABLE;
	default:
		return MHD_HTTP_INTERNAL_SERVER_ERROR;
	}
}

/* The connection has been resumed: what its job has made is the reply. */
static enum MHD_Result end_profile(struct MHD_Connection *c, struct job *job)
{
	struct reply how = { .status = status_of(job->result) };
	struct buf text = BUF_INIT(4096);

	if (!job->result)
		return reply(c, &profile_reply, &job->profile);
	if (job->result == -ECANCELED)
		return MHD_NO;
	if (how.status == MHD_HTTP_SERVICE_UNAVAILABLE)
		how.retry_after = busy_seconds(job->d);
	buf_printf(&text, "%s\n", job->err.msg[0] ? job->err.msg : strerror(-job->result));
	return reply(c, &how, &text);
}

/* Resumes the connections whose profiles are there. The jobs live on until their requests end. */
static void finish_jobs(struct httpd *d)
{
	struct job **link = &d->jobs, *job;

	while ((job = *link)) {
		if (!atomic_load(&job->done)) {
			link = &job->next;
			continue;
		}
		*link = job->next;
		pthread_join(job->thread, NULL);
		add(d, &d->stats.callers, -1);
		if (job->result == -ECANCELED)
			count(d, &d->stats.gone);
		MHD_resume_connection(job->connection);
	}
}

/* ---- requests ---- */

static enum MHD_Result reply_ready(struct httpd *d, struct MHD_Connection *c, bool trusted)
{
	struct buf why = BUF_INIT(64 << 10);
	bool ready = d->handler.ready(d->handler.ctx, &why);
	struct reply how = { .status = ready ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE };

	if (!trusted || why.err || !why.len) {
		buf_reset(&why);
		buf_str(&why, ready ? "ok\n" : "not ready\n");
	}
	return reply(c, &how, &why);
}

static enum MHD_Result reply_metrics(struct httpd *d, struct MHD_Connection *c)
{
	struct reply how = { .status = MHD_HTTP_OK,
			     .type = "text/plain; version=0.0.4; charset=utf-8" };
	struct buf b = BUF_INIT(HTTPD_REPLY_MAX);

	d->handler.metrics(d->handler.ctx, &b);
	if (b.err) {
		buf_free(&b);
		return reply_text(c, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory");
	}
	return reply(c, &how, &b);
}

static enum MHD_Result reply_page(struct httpd *d, struct MHD_Connection *c, const char *path)
{
	struct reply how = { .status = MHD_HTTP_OK };
	struct buf b = BUF_INIT(16 << 10);

	if (!strcmp(path, "/")) {
		pages_root(&b);
	} else if (!strcmp(path, INDEX_PATH)) {
		how.type = "text/html; charset=utf-8";
		pages_index(&d->limits, &b);
	} else if (!strcmp(path, "/debug/pprof")) {
		how = (struct reply){ .status = MHD_HTTP_MOVED_PERMANENTLY, .name = "Location",
				      .value = INDEX_PATH };
	} else {
		how.status = MHD_HTTP_NOT_FOUND;
		pages_missing(path, &b);
	}
	return reply(c, &how, &b);
}

static enum MHD_Result reply_unauthorized(struct httpd *d, struct MHD_Connection *c)
{
	struct reply how = { .status = MHD_HTTP_UNAUTHORIZED, .name = "WWW-Authenticate",
			     .value = "Bearer" };
	struct buf b = BUF_INIT(4096);

	buf_str(&b, "a token is needed: Authorization: Bearer TOKEN\n");
	count(d, &d->stats.unauthorized);
	return reply(c, &how, &b);
}

static enum MHD_Result reply_method(struct MHD_Connection *c)
{
	struct reply how = { .status = MHD_HTTP_METHOD_NOT_ALLOWED, .name = "Allow",
			     .value = "GET, HEAD" };
	struct buf b = BUF_INIT(4096);

	buf_str(&b, "GET and HEAD are understood, without a body\n");
	return reply(c, &how, &b);
}

/* RFC 9112, 6: these two announce a body. */
static bool has_body(struct MHD_Connection *c)
{
	const char *length = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Content-Length");

	return (length && strcmp(length, "0") != 0) ||
	       MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Transfer-Encoding");
}

/* Called when the headers are there, when all of the request is (a reply before that would end the
 * connection, which is right only where a body would follow), and again after a suspension. */
static enum MHD_Result answer(void *arg, struct MHD_Connection *c, const char *path,
			      const char *method, const char *version, const char *body,
			      size_t *body_len, void **state)
{
	struct httpd *d = arg;
	struct request *request = *state;
	bool head = !strcmp(method, MHD_HTTP_METHOD_HEAD), trusted;

	(void)version;
	(void)body;
	(void)body_len;
	if (!request || !conn_of(c))
		return MHD_NO;	/* no memory when it began */
	if (request->job)
		return end_profile(c, request->job);
	if ((!head && strcmp(method, MHD_HTTP_METHOD_GET) != 0) || has_body(c))
		return reply_method(c);
	if (!request->complete) {
		request->complete = true;
		return MHD_YES;
	}
	if (!strcmp(path, "/healthz"))
		return reply_text(c, MHD_HTTP_OK, "ok");
	trusted = !d->token_file ||
		  auth_bearer(d->token_file, MHD_lookup_connection_value(c, MHD_HEADER_KIND,
									 "Authorization"));
	if (!strcmp(path, "/readyz"))
		return reply_ready(d, c, trusted);
	if (!trusted)
		return reply_unauthorized(d, c);
	if (!strcmp(path, "/metrics"))
		return reply_metrics(d, c);
	if (!strcmp(path, PROFILE_PATH))
		return begin_profile(d, c, request, head);
	return reply_page(d, c, path);
}

/* The URL as it was sent, before the daemon decodes it. */
static void *begin_request(void *arg, const char *uri, struct MHD_Connection *c)
{
	struct request *request = calloc(1, sizeof(*request));
	const char *query = strchr(uri, '?');

	(void)arg;
	(void)c;
	if (!request)
		return NULL;
	request->query = strdup(query ? query + 1 : "");
	if (!request->query)
		free(take(request));
	return request;
}

static void end_request(void *arg, struct MHD_Connection *c, void **state,
			enum MHD_RequestTerminationCode code)
{
	struct request *request = *state;
	struct conn *conn = conn_of(c);

	(void)arg;
	(void)code;
	if (conn)
		conn->deadline = now_ms() + conn->d->request_ms;
	if (!request)
		return;
	if (request->job)
		buf_free(&request->job->profile);
	free(request->job);
	free(request->query);
	free(request);
	*state = NULL;
}

/* ---- connections ---- */

static void watch_connection(void *arg, struct MHD_Connection *c, void **context,
			     enum MHD_ConnectionNotificationCode code)
{
	struct httpd *d = arg;
	struct conn *conn = *context;
	const union MHD_ConnectionInfo *info;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		conn = calloc(1, sizeof(*conn));
		*context = conn;
		if (!conn)
			return;		/* answer() ends it */
		conn->d = d;
		info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
		conn->fd = info->connect_fd;
		conn->deadline = now_ms() + d->request_ms;
		conn->next = d->conns;
		if (conn->next)
			conn->next->prev = conn;
		d->conns = conn;
		add(d, &d->stats.connections, 1);
	} else if (conn) {
		if (conn->next)
			conn->next->prev = conn->prev;
		*(conn->prev ? &conn->prev->next : &d->conns) = conn->next;
		add(d, &d->stats.connections, -1);
		free(conn);
		*context = NULL;
	}
}

/* Cuts the connections whose time is over. The daemon sees the end and cleans up. */
static void cut_slow(struct httpd *d)
{
	uint64_t now = now_ms();

	for (struct conn *c = d->conns; c; c = c->next)
		if (c->deadline != NO_DEADLINE && c->deadline <= now) {
			c->deadline = NO_DEADLINE;
			count(d, &d->stats.cut);
			shutdown(c->fd, SHUT_RDWR);
		}
}

/* ---- life ---- */

/* Waits until the daemon, a job or a deadline wants something. */
static void wait_for_work(struct httpd *d)
{
	struct pollfd p[] = { { .fd = d->epoll, .events = POLLIN },
			      { .fd = d->wake, .events = POLLIN } };
	MHD_UNSIGNED_LONG_LONG ms;
	int timeout = TICK_MS;
	uint64_t wakes;

	if (MHD_get_timeout(d->mhd, &ms) == MHD_YES && ms < TICK_MS)
		timeout = (int)ms;
	if (poll(p, 2, timeout) > 0 && p[1].revents && read(d->wake, &wakes, sizeof(wakes)) < 0)
		return;		/* nothing to reset */
}

static void *serve(void *arg)
{
	struct httpd *d = arg;

	while (!atomic_load(&d->stop) || d->jobs) {
		wait_for_work(d);
		finish_jobs(d);
		MHD_run(d->mhd);
		cut_slow(d);
	}
	return NULL;
}

static int start_daemon(struct httpd *d, const struct httpd_options *o, int fd, struct err *e)
{
	const union MHD_DaemonInfo *info;

	d->mhd = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, answer, d,
		MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned int)o->max_connections,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTPD_HEADER_MAX,
		MHD_OPTION_STRICT_FOR_CLIENT, 1,
		MHD_OPTION_NOTIFY_CONNECTION, watch_connection, d,
		MHD_OPTION_URI_LOG_CALLBACK, begin_request, d,
		MHD_OPTION_NOTIFY_COMPLETED, end_request, d,
		MHD_OPTION_END);
	if (!d->mhd)
		return err_set(e, -ENOMEM, "the HTTP server doesn't start");
	info = MHD_get_daemon_info(d->mhd, MHD_DAEMON_INFO_EPOLL_FD);
	if (!info)
		return err_set(e, -ENOTSUP, "this libmicrohttpd has no epoll");
	d->epoll = info->epoll_fd;
	return 0;
}

/* Signals are for the agent's loop. */
static int start_thread(struct httpd *d, struct err *e)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&d->thread, NULL, serve, d);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r ? err_set(e, -r, "can't start a thread: %s", strerror(r)) : 0;
}

static int check_access(const struct httpd_options *o, const struct listen_address *a,
			struct err *e)
{
	if (o->token_file)
		return auth_check_file(o->token_file, HTTPD_TOKEN_MIN, HTTPD_TOKEN_MAX, e);
	if (listen_is_loopback(a))
		return 0;
	return err_set(e, -EINVAL, "%.100s can be reached from other hosts: that takes a token",
		       o->listen);
}

/* Listens and starts; on failure the caller stops what has started. */
static int start(struct httpd *d, const struct httpd_options *o, struct err *e)
{
	cleanup(fd_cleanup) int fd = -1;
	struct listen_address a;
	int r = listen_parse(o->listen, &a, e);

	if (!r)
		r = check_access(o, &a, e);
	if (r)
		return r;
	if (o->token_file && !(d->token_file = strdup(o->token_file)))
		return err_set(e, -ENOMEM, "out of memory");
	d->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (d->wake < 0)
		return err_set(e, -errno, "eventfd: %s", strerror(errno));
	r = listen_open(&a, &fd, &d->port, e);
	if (!r)
		r = start_daemon(d, o, fd, e);
	if (d->mhd)
		fd = -1;	/* the daemon's */
	return r ? r : start_thread(d, e);
}

static void stop(struct httpd *d)
{
	if (d->mhd)
		MHD_stop_daemon(d->mhd);	/* ends all connections and their requests */
	if (d->wake >= 0)
		close(d->wake);
	pthread_mutex_destroy(&d->lock);
	free(d->token_file);
	free(d);
}

int httpd_new(const struct httpd_options *o, const struct httpd_handler *handler,
	      struct httpd **ret, struct err *e)
{
	struct httpd *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return err_set(e, -ENOMEM, "out of memory");
	d->handler = *handler;
	d->limits = o->limits;
	d->max_callers = o->max_callers;
	d->request_ms = o->request_ms ? o->request_ms : HTTPD_REQUEST_MS;
	d->reply_ms = o->reply_ms ? o->reply_ms : HTTPD_REPLY_MS;
	d->wake = -1;
	pthread_mutex_init(&d->lock, NULL);
	r = start(d, o, e);
	if (r)
		stop(d);
	else
		*ret = d;
	return r;
}

void httpd_free(struct httpd *d)
{
	if (!d)
		return;
	atomic_store(&d->stop, true);
	wake(d);
	pthread_join(d->thread, NULL);
	stop(d);
}

uint16_t httpd_port(const struct httpd *d)
{
	return d->port;
}
