/* offload.c - see offload.h. wick -> the one that forks: a socket's end per worker. wick <-> worker: one message
 * each way per call, descriptors beside it (unix(7), SCM_RIGHTS). */
#include "proc/offload.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "base/clock.h"

enum {
	SPAWN_MS = 2000,	/* for a worker to be there */
	DEATH_MS = 20,		/* for a killed one to be gone, before it counts as left behind */
	CREDIT_SHARE = 10,	/* it comes back at this fraction of time */
	LEAST_SHARE = 5,	/* of all credit: with less a busy machine might be late */
};

enum state { FREE, IDLE, BUSY, STUCK };

struct worker {
	enum state state;
	enum offload_kind kind;	/* of the call, when STUCK */
	int socket, pidfd;
};

struct kind {
	int64_t credit;		/* ns */
	uint64_t updated;
	struct offload_stats stats;
};

/* One for the process, as the limits are. */
static struct {
	pthread_mutex_t lock;
	int forker;		/* -1: not started */
	struct worker workers[OFFLOAD_WORKERS];
	struct kind kinds[OFFLOAD_KINDS];
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER, .forker = -1 };

struct header {
	offload_fn *fn;
	uint32_t request_size, reply_size;
};

/* ---- messages ---- */

union control {
	char bytes[CMSG_SPACE(OFFLOAD_FDS * sizeof(int))];
	struct cmsghdr align;
};

static int put(int socket, const struct iovec *iov, size_t n, const int *fds, size_t nfds)
{
	union control control = { .bytes = { 0 } };
	struct msghdr m = { .msg_iov = (struct iovec *)iov, .msg_iovlen = n };
	struct cmsghdr *c;

	if (nfds) {
		m.msg_control = control.bytes;
		m.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
	}
	while (sendmsg(socket, &m, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

/* Bytes of the message; 0: the other end is closed. fds: OFFLOAD_FDS of them, -1 or the caller's. */
static ssize_t get(int socket, const struct iovec *iov, size_t n, int *fds, int flags)
{
	union control control;
	struct msghdr m = { .msg_iov = (struct iovec *)iov, .msg_iovlen = n,
			    .msg_control = control.bytes, .msg_controllen = sizeof(control) };
	struct cmsghdr *c;
	ssize_t r;

	for (size_t i = 0; i < OFFLOAD_FDS; i++)
		fds[i] = -1;
	while ((r = recvmsg(socket, &m, MSG_CMSG_CLOEXEC | flags)) < 0)
		if (errno != EINTR)
			return -errno;
	c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(fds, CMSG_DATA(c), MIN(c->cmsg_len - CMSG_LEN(0), OFFLOAD_FDS * sizeof(int)));
	return r;
}

static void close_fds(int *fds)
{
	for (size_t i = 0; i < OFFLOAD_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/* ---- the other processes ---- */

static void serve(int socket) __attribute__((noreturn));
static void serve(int socket)
{
	static _Alignas(16) char request[OFFLOAD_BYTES], reply[OFFLOAD_BYTES];
	struct header h;
	int fds[OFFLOAD_FDS], out, r = 0;
	int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	struct iovec in[] = { { &h, sizeof(h) }, { request, sizeof(request) } };
	struct iovec back[] = { { &r, sizeof(r) }, { reply, 0 } };

	if (self < 0 || put(socket, back, 1, &self, 1))
		_exit(1);
	close(self);
	while (get(socket, in, 2, fds, 0) >= (ssize_t)sizeof(h)) {
		out = -1;
		memset(reply, 0, h.reply_size);
		r = h.fn(request, fds, reply, &out);
		back[1].iov_len = h.reply_size;
		if (put(socket, back, 2, &out, out >= 0))
			_exit(1);
		if (out >= 0)
			close(out);
		close_fds(fds);
	}
	_exit(0);
}

/* Ends when the sockets are closed, that is with wick, whatever becomes of that. A signal for a whole group of
 * processes isn't for us: after it wick still has names to look up. */
static void fork_workers(int forker) __attribute__((noreturn));
static void fork_workers(int forker)
{
	static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGCHLD };
	int fds[OFFLOAD_FDS], null;
	char byte;
	struct iovec iov = { &byte, 1 };
	sigset_t none;

	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		signal(ignored[i], SIG_IGN);	/* children that have ended need no wait(2) then, either */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	(void)setsid();
	if (chdir("/"))
		_exit(1);
	(void)prctl(PR_SET_NAME, "wick-files");
	if (dup2(forker, 3) < 0 || syscall(SYS_close_range, 4, ~0U, 0))
		_exit(1);
	null = open("/dev/null", O_RDWR);
	for (int i = 0; i < 3; i++)
		if (dup2(null, i) < 0)
			_exit(1);
	close(null);
	while (get(3, &iov, 1, fds, 0) > 0) {
		if (fds[0] >= 0 && !fork()) {
			close(3);
			serve(fds[0]);
		}
		close_fds(fds);
	}
	_exit(0);
}

int offload_start(struct err *e)
{
	int pair[2], status;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return err_set(e, -errno, "can't make a socket: %s", strerror(errno));
	pid = fork();
	if (!pid) {		/* its child is nobody's who waits for children of his own */
		pid = fork();
		if (!pid)
			fork_workers(pair[1]);
		_exit(pid < 0);
	}
	close(pair[1]);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status) {
		close(pair[0]);
		return err_set(e, -EAGAIN, "can't fork the process that opens files");
	}
	pool.forker = pair[0];
	for (size_t i = 0; i < OFFLOAD_KINDS; i++)
		pool.kinds[i] = (struct kind){
			.credit = i == OFFLOAD_COPY ? OFFLOAD_COPY_NS : OFFLOAD_LOOKS_NS,
			.updated = clock_monotonic(),
		};
	return 0;
}

/* ---- workers ---- */

static void drop(struct worker *w)
{
	close(w->socket);
	close(w->pidfd);
	*w = (struct worker){ .state = FREE };
}

static bool is_gone(const struct worker *w, int wait_ms)
{
	struct pollfd p = { .fd = w->pidfd, .events = POLLIN };

	return poll(&p, 1, wait_ms) > 0;
}

/* The lock is held. */
static void bury(void)
{
	for (size_t i = 0; i < OFFLOAD_WORKERS; i++) {
		struct worker *w = &pool.workers[i];

		if (w->state == STUCK && is_gone(w, 0)) {
			pool.kinds[w->kind].stats.stuck--;
			drop(w);
		}
	}
}

static int spawn(struct worker *w)
{
	int pair[2], fds[OFFLOAD_FDS], r;
	char byte = 0;
	struct iovec out = { &byte, 1 }, in = { &r, sizeof(r) };
	struct pollfd p = { .events = POLLIN };

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	r = put(pool.forker, &out, 1, &pair[1], 1);
	close(pair[1]);
	p.fd = pair[0];
	if (!r && poll(&p, 1, SPAWN_MS) <= 0)
		r = -ETIMEDOUT;
	if (!r && (get(pair[0], &in, 1, fds, MSG_DONTWAIT) <= 0 || fds[0] < 0))
		r = -ECHILD;
	if (r) {
		close(pair[0]);
		return r;
	}
	w->socket = pair[0];
	w->pidfd = fds[0];
	return 0;
}

/* What may be waited for a call now, in ns; 0: it is refused. The lock is held. */
static uint64_t allowance(enum offload_kind kind)
{
	struct kind *k = &pool.kinds[kind];
	int64_t most = kind == OFFLOAD_COPY ? OFFLOAD_COPY_NS : OFFLOAD_LOOKS_NS;
	uint64_t now = clock_monotonic(), longest = kind == OFFLOAD_COPY ? OFFLOAD_COPY_NS : OFFLOAD_LOOK_NS;

	k->credit = MIN(most, k->credit + (int64_t)((now - k->updated) / CREDIT_SHARE));
	k->updated = now;
	if (k->credit < most / LEAST_SHARE || k->stats.stuck >= OFFLOAD_STUCK)
		return 0;
	return MIN(longest, (uint64_t)k->credit);
}

/* A worker that nobody else uses. */
static int hire(enum offload_kind kind, uint64_t *ret_wait, struct worker **ret)
{
	struct worker *w = NULL;
	int r = 0;

	pthread_mutex_lock(&pool.lock);
	bury();
	*ret_wait = allowance(kind);
	for (size_t i = 0; i < OFFLOAD_WORKERS; i++)
		if (pool.workers[i].state == IDLE || (pool.workers[i].state == FREE && !w))
			w = &pool.workers[i];
	if (!*ret_wait || !w) {
		pool.kinds[kind].stats.refused++;
		r = -EBUSY;
	} else {
		pool.kinds[kind].stats.calls++;
		r = w->state == FREE;		/* to be made */
		w->state = BUSY;
		w->kind = kind;
	}
	pthread_mutex_unlock(&pool.lock);
	if (r == 1) {
		r = spawn(w);
		if (r) {
			pthread_mutex_lock(&pool.lock);
			w->state = FREE;
			pthread_mutex_unlock(&pool.lock);
		}
	}
	*ret = w;
	return r;
}

static int ask(const struct worker *w, const struct offload_call *c, uint64_t wait, int *ret_fd)
{
	struct header h = { c->fn, (uint32_t)c->request_size, (uint32_t)c->reply_size };
	struct iovec out[] = { { &h, sizeof(h) }, { (void *)c->request, c->request_size } };
	struct pollfd p = { .fd = w->socket, .events = POLLIN };
	uint64_t until = clock_monotonic() + wait, now;
	int fds[OFFLOAD_FDS], answer, n;
	struct iovec in[] = { { &answer, sizeof(answer) }, { c->reply, c->reply_size } };
	int r = put(w->socket, out, 2, c->fds, c->nfds);

	if (r)
		return r;
	do {
		now = clock_monotonic();
		n = now < until ? poll(&p, 1, (int)((until - now + 999999) / 1000000)) : 0;
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return -ETIMEDOUT;
	if (get(w->socket, in, 2, fds, MSG_DONTWAIT) != (ssize_t)(sizeof(answer) + c->reply_size))
		return -ECHILD;		/* it has died of what it has read */
	*ret_fd = fds[0];
	return answer == -ETIMEDOUT || answer == -ECHILD ? -EIO : answer;
}

/* It hasn't answered, or has died. */
static void dismiss(struct worker *w, enum offload_kind kind)
{
	bool gone;

	(void)syscall(SYS_pidfd_send_signal, w->pidfd, SIGKILL, NULL, 0);
	gone = is_gone(w, DEATH_MS);
	pthread_mutex_lock(&pool.lock);
	if (gone) {
		drop(w);
	} else {
		w->state = STUCK;
		pool.kinds[kind].stats.stuck++;
	}
	pthread_mutex_unlock(&pool.lock);
}

static int call(const struct offload_call *c, int *ret_fd)
{
	struct worker *w;
	uint64_t wait, begun;
	int r = hire(c->kind, &wait, &w);
	bool lost;

	if (r)
		return r;
	begun = clock_monotonic();
	r = ask(w, c, wait, ret_fd);
	lost = r == -ETIMEDOUT || r == -ECHILD;
	if (lost)
		dismiss(w, c->kind);
	pthread_mutex_lock(&pool.lock);
	if (!lost)
		w->state = IDLE;
	pool.kinds[c->kind].credit -= (int64_t)(clock_monotonic() - begun);
	pool.kinds[c->kind].stats.timeouts += r == -ETIMEDOUT;
	pthread_mutex_unlock(&pool.lock);
	return r;
}

int offload(const struct offload_call *c, int *ret_fd)
{
	int fds[OFFLOAD_FDS], fd = -1, r;

	if (c->request_size > OFFLOAD_BYTES || c->reply_size > OFFLOAD_BYTES || c->nfds > OFFLOAD_FDS)
		return -E2BIG;
	if (pool.forker >= 0) {
		r = call(c, &fd);
	} else {
		for (size_t i = 0; i < OFFLOAD_FDS; i++)
			fds[i] = i < c->nfds ? c->fds[i] : -1;
		memset(c->reply, 0, c->reply_size);
		r = c->fn(c->request, fds, c->reply, &fd);
	}
	if (ret_fd)
		*ret_fd = fd;
	else if (fd >= 0)
		close(fd);
	return r;
}

void offload_stop(void)
{
	pthread_mutex_lock(&pool.lock);
	for (size_t i = 0; i < OFFLOAD_WORKERS; i++)
		if (pool.workers[i].state != FREE)
			drop(&pool.workers[i]);
	if (pool.forker >= 0)
		close(pool.forker);
	pool.forker = -1;
	pthread_mutex_unlock(&pool.lock);
}

void offload_stats(enum offload_kind kind, struct offload_stats *ret)
{
	pthread_mutex_lock(&pool.lock);
	bury();
	*ret = pool.kinds[kind].stats;
	pthread_mutex_unlock(&pool.lock);
}

const char *offload_kind_label(enum offload_kind kind)
{
	static const char *const labels[] = { "ours", "foreign", "copy" };

	return labels[kind];
}
