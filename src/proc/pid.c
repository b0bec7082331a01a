/* pid.c - see pid.h. */
#include "proc/pid.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

enum { TASKS_MAX = 64 };	/* threads to try when the main one is gone */

/* ---- the directory ---- */

int pid_parse_start(const char *stat, uint64_t *ret_ticks)
{
	const char *p = strrchr(stat, ')');	/* "pid (comm) state ...": comm may hold anything */
	unsigned long long ticks;

	/* field 22; the state after the ")" is the third */
	for (unsigned int field = 2; p && field < 22; field++) {
		p = strchr(p, ' ');
		p = p ? p + 1 : NULL;
	}
	if (!p || sscanf(p, "%llu", &ticks) != 1)
		return -EBADMSG;
	*ret_ticks = ticks;
	return 0;
}

int pid_read_text(int dir, const char *name, struct buf *b)
{
	int fd cleanup(fd_cleanup) = openat(dir, name, O_RDONLY | O_CLOEXEC);
	char chunk[4096];
	ssize_t n;

	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	for (;;) {
		n = read(fd, chunk, sizeof(chunk));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return b->err;
		buf_bytes(b, chunk, (size_t)n);
		if (b->err)
			return b->err;
	}
}

/* The kernel rounds down to ticks; so do we, and allow one more for a clock that counts otherwise. */
static int check_start(int dir, uint64_t start_time)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(4096);
	uint64_t ticks, expected;
	int r = pid_read_text(dir, "stat", &b);

	if (!r)
		r = b.data ? pid_parse_start(b.data, &ticks) : -ESRCH;
	if (r)
		return r;
	expected = start_time / (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK));
	return ticks + 1 >= expected && ticks <= expected + 1 ? 0 : -ESRCH;
}

/* Of a process whose main thread has exited, the directory of a thread that hasn't. */
static int living_task(int dir)
{
	int fd = openat(dir, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC), found = -ESRCH;
	DIR *tasks = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *d;
	char root[300], link[2];

	if (!tasks) {
		if (fd >= 0)
			close(fd);
		return -ESRCH;
	}
	for (int i = 0; i < TASKS_MAX && found < 0 && (d = readdir(tasks)); i++) {
		if (d->d_name[0] == '.')
			continue;
		snprintf(root, sizeof(root), "%s/root", d->d_name);
		if (readlinkat(fd, root, link, sizeof(link)) > 0)
			found = openat(fd, d->d_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	}
	closedir(tasks);
	return found < 0 ? -ESRCH : found;
}

int pid_open(uint32_t pid, uint64_t start_time)
{
	int dir cleanup(fd_cleanup) = -1;
	char path[32], link[2];
	int r, fd;

	snprintf(path, sizeof(path), "/proc/%u", pid);
	dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	r = start_time ? check_start(dir, start_time) : 0;
	if (r)
		return r;
	if (readlinkat(dir, "root", link, sizeof(link)) < 0 && errno == ENOENT)
		return living_task(dir);
	fd = dir;
	dir = -1;
	return fd;
}

/* ---- what it is ---- */

static bool four_ids(const char *text, const char *name, uint32_t ret[4])
{
	const char *p = strstr(text, name);

	return p && sscanf(p + strlen(name), "%u %u %u %u", &ret[0], &ret[1], &ret[2], &ret[3]) == 4;
}

int pid_parse_status(const char *text, struct pid_info *ret)
{
	struct pid_info i = { 0 };
	unsigned long long caught;
	const char *p, *line_end;

	/* the name, on the first line, has its newlines escaped: a line starts where it seems to */
	if (!four_ids(text, "\nUid:", i.uids) || !four_ids(text, "\nGid:", i.gids))
		return -EBADMSG;
	p = strstr(text, "\nNSpid:");
	line_end = p ? strchr(p + 1, '\n') : NULL;
	if (!line_end)
		return -EBADMSG;
	while (line_end > p && (line_end[-1] == ' ' || line_end[-1] == '\t'))
		line_end--;
	while (line_end > p && line_end[-1] >= '0' && line_end[-1] <= '9')
		line_end--;
	if (sscanf(line_end, "%u", &i.ns_pid) != 1 || !i.ns_pid)
		return -EBADMSG;
	p = strstr(text, "\nSigCgt:");
	if (!p || sscanf(p + 8, "%llx", &caught) != 1)
		return -EBADMSG;
	i.caught = caught;
	*ret = i;
	return 0;
}

int pid_read_info(int dir, struct pid_info *ret)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(64 << 10);
	int r = pid_read_text(dir, "status", &b);

	if (r)
		return r;
	return b.data ? pid_parse_status(b.data, ret) : -EBADMSG;
}

bool pid_is_ours(int dir)
{
	char its[64], own[64];
	ssize_t n = readlinkat(dir, "ns/user", its, sizeof(its));

	return n > 0 && readlink("/proc/self/ns/user", own, sizeof(own)) == n && !memcmp(its, own, (size_t)n);
}

bool pid_owns(const struct pid_info *info, const struct stat *st)
{
	for (size_t i = 0; i < ARRAY_SIZE(info->uids); i++)
		if (st->st_uid == info->uids[i])
			return true;
	return !st->st_uid;
}

/* ---- files ---- */

static int open_in_root(int dir, const char *path, int flags)
{
	int root cleanup(fd_cleanup) = openat(dir, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct open_how how = {
		.flags = (uint64_t)(O_PATH | O_CLOEXEC | flags),
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	long fd;

	if (root < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
	return fd < 0 ? -errno : (int)fd;
}

int pid_open_path(int dir, const char *path, int flags)
{
	return open_in_root(dir, path, O_NOFOLLOW | flags);
}

/* Opens for reading what an O_PATH descriptor stands for. */
static int reopen(int probe, struct stat *ret)
{
	char self[64];
	struct stat st;
	int fd;

	if (fstat(probe, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (!st.st_size)
		return -ENODATA;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", probe);
	fd = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	*ret = st;
	return fd;
}

int pid_open_file(int dir, const char *path, struct stat *ret)
{
	int probe cleanup(fd_cleanup) = pid_open_path(dir, path, 0);

	return probe < 0 ? probe : reopen(probe, ret);
}

int pid_open_target(int dir, const char *path, struct stat *ret)
{
	int probe cleanup(fd_cleanup) = open_in_root(dir, path, 0);

	return probe < 0 ? probe : reopen(probe, ret);
}

int pid_open_link(int dir, const char *link, struct stat *ret)
{
	int probe cleanup(fd_cleanup) = openat(dir, link, O_PATH | O_CLOEXEC);

	return probe < 0 ? -errno : reopen(probe, ret);
}
