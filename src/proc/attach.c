/* attach.c - see attach.h. */
#include "proc/attach.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "base/clock.h"
#include "proc/maps.h"
#include "proc/offload.h"

enum { MAPS_BYTES = 8 << 20 };

void attach_init(struct attach *a, const char *command)
{
	*a = (struct attach){ .command = command, .socket = -1, .tmp = -1 };
}

void attach_done(struct attach *a)
{
	if (a->socket >= 0)
		close(a->socket);
	if (a->tmp >= 0)
		close(a->tmp);
	a->socket = a->tmp = -1;
}

/* ---- waking it up ---- */

static int is_libjvm(const struct maps_area *area, void *arg)
{
	static const char name[] = "/libjvm.so";
	size_t n = sizeof(name) - 1;

	(void)arg;
	return area->kind == MAPS_FILE && area->perms & MAPS_X && area->path_len > n &&
	       !memcmp(area->path + area->path_len - n, name, n);
}

bool attach_is_jvm(const char *maps, size_t len)
{
	return maps_each(maps, len, is_libjvm, NULL, NULL) != 0;
}

static bool is_jvm(int dir)
{
	cleanup(buf_cleanup) struct buf maps = BUF_INIT(MAPS_BYTES);

	return !pid_read_text(dir, "maps", &maps) && maps.data && attach_is_jvm(maps.data, maps.len);
}

/* Its start time has just been compared, and while `dir` answers the number is still its own. */
static int send_quit(int dir, uint32_t pid)
{
	int fd cleanup(fd_cleanup) = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pid_info still;
	int r;

	if (fd < 0)
		return -errno;
	r = pid_read_info(dir, &still);
	if (r)
		return r;
	return syscall(SYS_pidfd_send_signal, fd, SIGQUIT, NULL, 0) ? -errno : 0;
}

static void file_name(const struct pid_info *info, char *ret, size_t size)
{
	snprintf(ret, size, ".attach_pid%u", info->ns_pid);
}

/* What follows leads through directories of the process, and so is done by workers. */
struct whom {
	uint32_t pid;
	struct pid_info info;
};

/* It must be its user's own file. An existing one is another tool's, which does the same just now. */
static int put_file(int tmp, const struct pid_info *info)
{
	int fd cleanup(fd_cleanup) = -1;
	char name[48];

	file_name(info, name, sizeof(name));
	fd = openat(tmp, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno == EEXIST ? 0 : -errno;
	return fchown(fd, info->uids[1], info->gids[1]) ? -errno : 0;
}

static int remove_there(const void *request, const int *fds, void *reply, int *ret_fd)
{
	const struct whom *q = request;
	char name[48];

	(void)reply;
	(void)ret_fd;
	file_name(&q->info, name, sizeof(name));
	return unlinkat(fds[0], name, 0) ? -errno : 0;
}

/* Also hands out the directory in which the file lies. */
static int wake_there(const void *request, const int *fds, void *reply, int *ret_fd)
{
	const struct whom *q = request;
	int r;

	(void)reply;
	if (!(q->info.caught & 1ULL << (SIGQUIT - 1)) || !is_jvm(fds[0]))
		return -ENOTSUP;
	*ret_fd = pid_open_path(fds[0], "tmp", O_DIRECTORY);
	if (*ret_fd < 0)
		return *ret_fd;
	r = put_file(*ret_fd, &q->info);
	return r ? r : send_quit(fds[0], q->pid);
}

static int by_worker(offload_fn *fn, bool ours, int fd, uint32_t pid, const struct pid_info *info, int *ret_fd)
{
	const struct whom q = { pid, *info };
	char none;

	return offload(&(struct offload_call){ .kind = ours ? OFFLOAD_OURS : OFFLOAD_FOREIGN, .fn = fn,
					       .request = &q, .request_size = sizeof(q), .fds = { fd }, .nfds = 1,
					       .reply = &none }, ret_fd);
}

static void remove_file(struct attach *a, const struct pid_info *info)
{
	if (a->tmp < 0)
		return;
	(void)!by_worker(remove_there, a->ours, a->tmp, 0, info, NULL);
	close(a->tmp);		/* O_PATH: asks nobody */
	a->tmp = -1;
}

static int wake(struct attach *a, int dir, uint32_t pid, const struct pid_info *info)
{
	return by_worker(wake_there, a->ours, dir, pid, info, &a->tmp);
}

/* ---- the conversation ---- */

/* -ENOENT: there is no socket (yet). */
static int dial_there(const void *request, const int *fds, void *reply, int *ret_fd)
{
	const struct pid_info *info = &((const struct whom *)request)->info;
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int probe cleanup(fd_cleanup) = -1;
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "tmp/.java_pid%u", info->ns_pid);
	(void)reply;
	probe = pid_open_path(fds[0], path, 0);
	if (probe < 0)
		return probe;
	if (fstat(probe, &st))
		return -errno;
	if (!S_ISSOCK(st.st_mode) || !pid_owns(info, &st))
		return -EPROTO;
	*ret_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*ret_fd < 0)
		return -errno;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d", probe);
	return connect(*ret_fd, (struct sockaddr *)&addr, sizeof(addr)) ? -errno : 0;
}

/* Version, name and three arguments, each with its NUL. */
static int ask(const struct attach *a)
{
	char text[256];
	int n = snprintf(text, sizeof(text), "1%cjcmd%c%s%c%c", 0, 0, a->command, 0, 0);

	if (n < 0 || (size_t)n >= sizeof(text))
		return -EINVAL;
	/* snprintf's own NUL is the last argument's */
	return send(a->socket, text, (size_t)n + 1, MSG_NOSIGNAL) == n + 1 ? 0 : -EPROTO;
}

static int listen_on(struct attach *a)
{
	char rest[1024];
	ssize_t n;

	for (;;) {
		size_t room = sizeof(a->answer) - 1 - a->len;

		n = room ? recv(a->socket, a->answer + a->len, room, 0) :
			   recv(a->socket, rest, sizeof(rest), 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? -EINPROGRESS : -errno;
		if (!n)
			break;
		a->len += room ? (size_t)n : 0;
	}
	a->answer[a->len] = '\0';
	/* the result in decimal on a line of its own, then what the command prints */
	if (!a->len || !strchr(a->answer, '\n'))
		return -EPROTO;
	return !strncmp(a->answer, "0\n", 2) ? 0 : -EREMOTEIO;
}

const char *attach_text(const struct attach *a)
{
	const char *newline = strchr(a->answer, '\n');

	return newline ? newline + 1 : "";
}

/* ---- one step after the other ---- */

static int enter(struct attach *a, enum attach_state state)
{
	a->state = state;
	a->deadline = clock_monotonic() + ATTACH_TIMEOUT_NS;
	return -EINPROGRESS;
}

static int step(struct attach *a, int dir, uint32_t pid, const struct pid_info *info)
{
	int r;

	if (a->state == ATTACH_ANSWERING)
		return listen_on(a);
	a->ours = pid_is_ours(dir);
	r = by_worker(dial_there, a->ours, dir, pid, info, &a->socket);
	if (!r) {
		remove_file(a, info);
		r = ask(a);
		return r ? r : enter(a, ATTACH_ANSWERING);
	}
	if (r == -EBUSY)	/* no worker now */
		return -EINPROGRESS;
	/* -ECONNREFUSED: left by an earlier process of that number */
	if (a->socket >= 0) {
		close(a->socket);
		a->socket = -1;
	}
	if (r != -ENOENT && r != -ECONNREFUSED && r != -EAGAIN)
		return r;
	if (a->state == ATTACH_WAKING)
		return -EINPROGRESS;
	if (r == -EAGAIN)	/* it listens, to others just now */
		return enter(a, ATTACH_WAKING);
	r = wake(a, dir, pid, info);
	return r ? r : enter(a, ATTACH_WAKING);
}

int attach_step(struct attach *a, int dir, uint32_t pid, const struct pid_info *info)
{
	int r;

	if (a->state == ATTACH_OVER)
		return a->error;
	r = step(a, dir, pid, info);
	if (r == -EINPROGRESS && clock_monotonic() >= a->deadline)
		r = -ETIMEDOUT;
	if (r == -EINPROGRESS)
		return r;
	remove_file(a, info);
	attach_done(a);
	a->state = ATTACH_OVER;
	a->error = r;
	return r;
}
