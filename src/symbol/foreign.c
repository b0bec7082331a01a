/* foreign.c - see foreign.h. */
#include "symbol/foreign.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "base/clock.h"
#include "proc/mounts.h"
#include "proc/offload.h"
#include "proc/pid.h"
#include "symbol/fileopen.h"

struct copy {
	dev_t dev;
	ino_t ino;
	struct timespec mtime;
	uint64_t size, used;
	int fd;
};

static struct {			/* one for the process, as the limit is */
	pthread_mutex_t lock;
	uint64_t limit, turn;
	uint64_t bytes;		/* of v, and of what is being copied */
	struct copy v[FOREIGN_COPIES];
	size_t n;
	struct foreign_stats stats;
	struct silent {
		dev_t dev;
		uint64_t until;
	} silent[FOREIGN_SILENT];	/* the oldest is overwritten */
	size_t next_silent;
} copies = { .lock = PTHREAD_MUTEX_INITIALIZER, .limit = FOREIGN_BYTES_DEFAULT };

void foreign_limit(uint64_t bytes)
{
	copies.limit = bytes;
}

bool foreign_is_name(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && flags & O_PATH;
}

int foreign_stat(int fd, struct stat *ret)
{
	struct statx x;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_BASIC_STATS, &x))
		return -errno;
	*ret = (struct stat){
		.st_dev = makedev(x.stx_dev_major, x.stx_dev_minor),
		.st_ino = x.stx_ino,
		.st_mode = x.stx_mode,
		.st_nlink = x.stx_nlink,
		.st_uid = x.stx_uid,
		.st_gid = x.stx_gid,
		.st_size = (off_t)x.stx_size,
		.st_mtim = { x.stx_mtime.tv_sec, x.stx_mtime.tv_nsec },
	};
	return 0;
}

/* ---- in the worker ---- */

struct look {
	unsigned int flags;
	bool ours;
	char path[PATH_MAX];
};

struct seen {
	struct stat st;
	bool local;
};

static int open_as(int process, const struct look *q, struct stat *st)
{
	if (process < 0)
		return fileopen_regular(q->path, q->flags & FOREIGN_FOLLOW ? 0 : O_NOFOLLOW, st);
	if (q->flags & FOREIGN_LINK)
		return pid_open_link(process, q->path, st);
	return q->flags & FOREIGN_FOLLOW ? pid_open_target(process, q->path, st) :
					   pid_open_file(process, q->path, st);
}

static int look(const void *request, const int *fds, void *reply, int *ret_fd)
{
	const struct look *q = request;
	struct seen *a = reply;
	char self[64];
	int fd = open_as(fds[0], q, &a->st);

	if (fd < 0)
		return fd;
	a->local = mounts_judge_open(fd, q->ours) == MOUNTS_LOCAL;
	if (!a->local) {
		snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
		*ret_fd = open(self, O_PATH | O_CLOEXEC);
		close(fd);
		return *ret_fd < 0 ? -errno : 0;
	}
	*ret_fd = fd;
	return 0;
}

struct range {
	uint64_t from, to;
};

/* From the file behind fds[0] into fds[1]; the reply is where it ended. */
static int copy_range(const void *request, const int *fds, void *reply, int *ret_fd)
{
	const struct range *q = request;
	uint64_t *at = reply;
	static char chunk[256 << 10];
	cleanup(fd_cleanup) int fd = -1;
	char self[64];
	ssize_t n;

	(void)ret_fd;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fds[0]);
	fd = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	for (*at = q->from; *at < q->to; *at += (uint64_t)n) {
		n = pread(fd, chunk, (size_t)MIN(q->to - *at, sizeof(chunk)), (off_t)*at);
		if (n < 0)
			return -errno;
		if (!n)
			break;
		if (pwrite(fds[1], chunk, (size_t)n, (off_t)*at) != n)
			return -ENOMEM;
	}
	return 0;
}

/* ---- copies; the lock is held ---- */

static void drop(size_t i)
{
	struct copy *c = &copies.v[i];

	(void)!ftruncate(c->fd, 0);	/* others may have it open */
	close(c->fd);
	copies.bytes -= c->size;
	copies.v[i] = copies.v[--copies.n];
}

static size_t find(const struct stat *st)
{
	size_t i = 0;

	while (i < copies.n && (copies.v[i].dev != st->st_dev || copies.v[i].ino != st->st_ino))
		i++;
	return i;
}

static bool is_current(const struct copy *c, const struct stat *st)
{
	return c->size == (uint64_t)st->st_size && !memcmp(&c->mtime, &st->st_mtim, sizeof(c->mtime));
}

/* Room for so many bytes, and for one more file, by the least recently asked ones but for one. */
static int make_room(uint64_t bytes, dev_t dev, ino_t ino)
{
	while (copies.bytes + bytes > copies.limit || copies.n == FOREIGN_COPIES) {
		size_t oldest = copies.n;

		for (size_t i = 0; i < copies.n; i++)
			if ((copies.v[i].dev != dev || copies.v[i].ino != ino) &&
			    (oldest == copies.n || copies.v[i].used < copies.v[oldest].used))
				oldest = i;
		if (oldest == copies.n)
			return -ENOSPC;		/* others are being copied */
		drop(oldest);
		copies.stats.dropped++;
	}
	return 0;
}

static int dup_of(struct copy *c)
{
	int fd = fcntl(c->fd, F_DUPFD_CLOEXEC, 3);

	c->used = ++copies.turn;
	return fd < 0 ? -errno : fd;
}

static bool is_silent(dev_t dev)
{
	uint64_t now = clock_monotonic();

	for (size_t i = 0; i < FOREIGN_SILENT; i++)
		if (copies.silent[i].until > now && copies.silent[i].dev == dev)
			return true;
	return false;
}

/* A copy as far as there is one: *ret_from bytes of it are there already. -EEXIST: all of it, in *ret_fd. */
static int begin(const struct stat *st, bool grows, int *ret_fd, uint64_t *ret_from)
{
	uint64_t size = (uint64_t)st->st_size;
	size_t i = find(st);
	int fd, r;

	*ret_from = 0;
	if (i < copies.n && is_current(&copies.v[i], st)) {
		fd = dup_of(&copies.v[i]);
		*ret_fd = fd;
		return fd < 0 ? fd : -EEXIST;
	}
	if (is_silent(st->st_dev)) {
		copies.stats.paused++;
		return -EBUSY;
	}
	if (size > copies.limit / 2) {
		copies.stats.too_large++;
		return -EFBIG;
	}
	if (i < copies.n && grows && size > copies.v[i].size) {
		fd = dup_of(&copies.v[i]);
		*ret_from = copies.v[i].size;
	} else {
		if (i < copies.n)
			drop(i);
		fd = memfd_create("wick-copy", MFD_CLOEXEC);
		fd = fd < 0 ? -errno : fd;
	}
	r = fd < 0 ? fd : make_room(size - *ret_from, st->st_dev, st->st_ino);
	if (r) {
		if (fd >= 0)
			close(fd);
		return r;
	}
	copies.bytes += size - *ret_from;	/* from here on it counts */
	*ret_fd = fd;
	return 0;
}

/* It was copied from `from` up to `end`; or not: r. */
static int finish(const struct stat *st, int fd, uint64_t from, uint64_t end, int r)
{
	size_t i = find(st);
	struct copy *c = &copies.v[i];
	int kept = -1;

	if (r == -ETIMEDOUT) {
		copies.silent[copies.next_silent] = (struct silent){ st->st_dev,
								     clock_monotonic() + FOREIGN_PAUSE_NS };
		copies.next_silent = (copies.next_silent + 1) % FOREIGN_SILENT;
	}
	copies.bytes -= (uint64_t)st->st_size - from;
	if (i < copies.n && (!from || c->size != from))
		r = r ? r : -EAGAIN;	/* somebody else was faster */
	else if (i == copies.n && (from || i == FOREIGN_COPIES))
		r = r ? r : -EAGAIN;	/* it was dropped meanwhile */
	else if (!r && i == copies.n)
		kept = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (!r && i == copies.n && kept < 0)
		r = -errno;
	if (r) {
		(void)!ftruncate(fd, (off_t)from);
		return r;
	}
	if (kept >= 0)
		copies.v[copies.n++] = (struct copy){ .dev = st->st_dev, .ino = st->st_ino, .fd = kept };
	c->size = end;
	c->mtime = st->st_mtim;
	c->used = ++copies.turn;
	copies.bytes += end - from;
	copies.stats.copies++;
	copies.stats.bytes_copied += end - from;
	return 0;
}

/* ---- */

static int copy_of(int name, const struct stat *st, bool grows)
{
	struct range range = { .to = (uint64_t)st->st_size };
	uint64_t end = 0;
	int fd = -1, r;

	pthread_mutex_lock(&copies.lock);
	r = begin(st, grows, &fd, &range.from);
	pthread_mutex_unlock(&copies.lock);
	if (r)
		return r == -EEXIST ? fd : r;
	r = offload(&(struct offload_call){ .kind = OFFLOAD_COPY, .fn = copy_range, .request = &range,
					    .request_size = sizeof(range), .fds = { name, fd }, .nfds = 2,
					    .reply = &end, .reply_size = sizeof(end) }, NULL);
	pthread_mutex_lock(&copies.lock);
	r = finish(st, fd, range.from, end, r);
	pthread_mutex_unlock(&copies.lock);
	if (r) {
		close(fd);
		return r;
	}
	return fd;
}

int foreign_open(int process, const char *path, unsigned int flags, struct foreign_file *ret)
{
	struct look q = { .flags = flags, .ours = process < 0 || pid_is_ours(process) };
	struct seen a;
	cleanup(fd_cleanup) int fd = -1;
	size_t n = strlen(path);
	int r;

	if (n >= sizeof(q.path))
		return -ENAMETOOLONG;
	memcpy(q.path, path, n + 1);
	r = offload(&(struct offload_call){ .kind = q.ours ? OFFLOAD_OURS : OFFLOAD_FOREIGN, .fn = look,
					    .request = &q, .request_size = offsetof(struct look, path) + n + 1,
					    .fds = { process }, .nfds = process >= 0,
					    .reply = &a, .reply_size = sizeof(a) }, &fd);
	if (r)
		return r;
	*ret = (struct foreign_file){ .st = a.st, .copied = !a.local };
	if (!a.local)
		return copy_of(fd, &a.st, flags & FOREIGN_GROWS);
	r = fd;
	fd = -1;
	return r;
}

int foreign_readable(int fd)
{
	struct stat st;
	int r;

	if (!foreign_is_name(fd)) {
		r = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		return r < 0 ? -errno : r;
	}
	r = foreign_stat(fd, &st);
	if (r)
		return r;
	return S_ISREG(st.st_mode) ? copy_of(fd, &st, false) : -EINVAL;
}

void foreign_stats(struct foreign_stats *ret)
{
	pthread_mutex_lock(&copies.lock);
	*ret = copies.stats;
	ret->bytes = copies.bytes;
	pthread_mutex_unlock(&copies.lock);
}
