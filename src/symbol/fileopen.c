/* fileopen.c - see fileopen.h. */
#include "symbol/fileopen.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "base/buf.h"
#include "proc/host.h"
#include "proc/mounts.h"
#include "proc/offload.h"
#include "symbol/foreign.h"

#ifndef RESOLVE_CACHED		/* Linux 5.12 */
#define RESOLVE_CACHED 0x20
#endif

#define BTRFS_MAGIC	0x9123683e	/* linux/magic.h */
#define OVERLAYFS_MAGIC 0x794c7630

/* ---- identity ---- */

/* The kernel's own dev_t (major << 20 | minor) from the one of stat(2). */
static uint32_t kernel_dev(dev_t dev)
{
	return major(dev) << 20 | minor(dev);
}

bool fileopen_same_inode(const struct wk_file_key *key, const struct stat *st)
{
	return st->st_ino == key->ino && kernel_dev(st->st_dev) == key->dev;
}

static bool is_same_file(const struct wk_file_key *key, int fd, const struct stat *st)
{
	uint64_t mtime = (uint64_t)st->st_mtim.tv_sec * 1000000000 + (uint64_t)st->st_mtim.tv_nsec;
	struct statfs fs;

	if (mtime != key->mtime_ns)
		return false;
	if (fileopen_same_inode(key, st))
		return true;
	return !fstatfs(fd, &fs) && ((unsigned long)fs.f_type == OVERLAYFS_MAGIC ||
				     (unsigned long)fs.f_type == BTRFS_MAGIC);
}

/* O_PATH first: opening a FIFO or a device for real would have effects, and only the descriptor at
 * hand is then re-opened. */
int fileopen_regular(const char *path, int flags, struct stat *ret_st)
{
	cleanup(fd_cleanup) int probe = open(path, O_PATH | O_CLOEXEC | flags);
	char self[64];
	struct stat st;
	int fd;

	if (probe < 0)
		return -errno;
	if (fstat(probe, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", probe);
	fd = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	*ret_st = st;
	return fd;
}

/* What stands for a file that isn't to be opened. */
static int name_regular(const char *path, int flags, struct stat *ret_st)
{
	int fd = open(path, O_PATH | O_CLOEXEC | flags), r;

	if (fd < 0)
		return -errno;
	r = foreign_stat(fd, ret_st);
	if (!r && !S_ISREG(ret_st->st_mode))
		r = -EINVAL;
	if (!r)
		return fd;
	close(fd);
	return r;
}

static int open_if_same(const char *path, int flags, const struct wk_file_key *key, bool served)
{
	struct stat st;
	int fd = served ? name_regular(path, flags, &st) : fileopen_regular(path, flags, &st);

	if (fd >= 0 && !is_same_file(key, fd, &st)) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}

/* ---- names ---- */

void fileopen_event_path(const struct wk_file_event *e, char *ret, size_t size)
{
	size_t end = MIN((size_t)e->path_len, (size_t)WK_PATH_BYTES), n = 0;

	ret[0] = '\0';
	while (end > 0) {
		size_t start = end - 1;		/* at the NUL of the last name */

		while (start > 0 && e->path[start - 1])
			start--;
		n += (size_t)snprintf(ret + n, size - n, "/%.*s", (int)(end - 1 - start),
				      e->path + start);
		if (n >= size)
			break;
		end = start;
	}
}

bool fileopen_deleted(const struct wk_file_event *e, const struct stat *st, char *path)
{
	static const char mark[] = " (deleted)";
	const size_t len = strlen(path), m = sizeof(mark) - 1;
	const char *slash = strrchr(path, '/'), *leaf = slash ? slash + 1 : path;
	size_t known = strnlen(e->path, MIN((size_t)e->path_len, (size_t)WK_PATH_BYTES));

	if (len <= m || strcmp(path + len - m, mark))
		return st && !st->st_nlink;
	if (!st || st->st_nlink) {
		/* Linked somewhere: the mark is part of its name unless the directory entry that
		 * was mapped has a shorter one. */
		if (!known || strlen(leaf) != known + m || strncmp(leaf, e->path, known))
			return false;
	}
	path[len - m] = '\0';
	return true;
}

/* ---- the ways in ---- */

/* The file of a mapping; any = whatever it is, else the key's. */
static int open_mapping(const struct wk_file_event *e, bool served, bool any, char *link, size_t size)
{
	uint32_t ids[] = { e->pid, e->tid };	/* a main thread that has exited has no map_files */
	char path[128];
	struct stat st;
	int fd = -ESRCH;

	for (size_t i = 0; i < ARRAY_SIZE(ids) && fd < 0; i++) {
		ssize_t n;

		if (!ids[i] || (i && ids[i] == ids[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%u/map_files/%llx-%llx", ids[i], e->vm_start,
			 e->vm_end);
		n = readlink(path, link, size - 1);
		fd = any ? name_regular(path, 0, &st) : open_if_same(path, 0, &e->key, served);
		if (n > 0)
			link[n] = '\0';
	}
	return fd;
}

/* Octal escapes of /proc/self/mountinfo (proc(5)): space, tab, newline, backslash. */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		unsigned int c;

		if (*s == '\\' && sscanf(s + 1, "%3o", &c) == 1) {
			*to++ = (char)c;
			s += strnlen(s + 1, 3);
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

/* Tries the file beneath one mount, given its line of mountinfo. */
static int open_in_mount(char *line, const struct wk_file_event *e, bool served, const char *path,
			 char *found, size_t size)
{
	char root[PATH_MAX], at[PATH_MAX];	/* "%4095s" below */
	unsigned int maj, min;
	size_t n;

	if (sscanf(line, "%*u %*u %u:%u %4095s %4095s", &maj, &min, root, at) != 4 ||
	    (maj << 20 | min) != e->key.dev)
		return -ENOENT;
	unescape(root);
	unescape(at);
	n = strcmp(root, "/") ? strlen(root) : 0;
	if (strncmp(path, root, n) || (n && path[n] != '/'))
		return -ENOENT;
	if ((size_t)snprintf(found, size, "%s%s", strcmp(at, "/") ? at : "", path + n) >= size)
		return -ENAMETOOLONG;
	return open_if_same(found, O_NOFOLLOW, &e->key, served);
}

static int open_by_path(const struct wk_file_event *e, bool served, char *found, size_t size)
{
	cleanup(buf_cleanup) struct buf mounts = BUF_INIT(16 << 20);
	char path[WK_PATH_BYTES + 1], *save = NULL;
	int fd = -ENOENT;

	fileopen_event_path(e, path, sizeof(path));
	if (!path[0] || host_read_file("", "/proc/self/mountinfo", &mounts))
		return -ENOENT;
	for (char *line = strtok_r(mounts.data, "\n", &save); line && fd < 0;
	     line = strtok_r(NULL, "\n", &save))
		fd = open_in_mount(line, e, served, path, found, size);
	return fd;
}

/* ---- copies ---- */

/* Whether pages of a process are the file's: its first and last, and some between. */
static bool is_copy(int memory, int fd, uint64_t start, uint64_t offset, uint64_t pages, size_t page)
{
	uint64_t step = MAX(pages / FILEOPEN_COPY_PAGES, UINT64_C(1));
	cleanup(freep_cleanup) char *a = malloc(2 * page);
	char *b = a ? a + page : NULL;

	for (uint64_t i = 0; a && i < pages; i = i < pages - 1 ? MIN(i + step, pages - 1) : pages) {
		if (pread(memory, a, page, (off_t)(start + i * page)) != (ssize_t)page ||
		    pread(fd, b, page, (off_t)(offset + i * page)) != (ssize_t)page || memcmp(a, b, page))
			return false;
	}
	return a;
}

/* Code that was copied from the file of the mapping beside it (WK_DEV_COPIED), if that is a local one. */
static int open_copied(const struct wk_file_event *e, bool ours, char *link, size_t size)
{
	cleanup(fd_cleanup) int memory = -1, name = open_mapping(e, false, true, link, size);
	char path[64];
	int fd;

	if (name < 0)
		return name;
	if (mounts_judge_open(name, ours) != MOUNTS_LOCAL)
		return -ENOEXEC;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/%u/mem", e->pid);
	memory = open(path, O_RDONLY | O_CLOEXEC);
	if (memory >= 0 && e->key.generation &&
	    is_copy(memory, fd, e->key.ino, e->pgoff + e->key.ino - e->vm_start, e->key.generation,
		    (size_t)sysconf(_SC_PAGESIZE)))
		return fd;
	close(fd);
	return memory < 0 ? -ESRCH : -ENOEXEC;
}

static int open_now(const struct wk_file_event *e, bool served, char *path, size_t size)
{
	int fd, r;

	path[0] = '\0';
	fd = open_mapping(e, served, false, path, size);
	if (fd >= 0)
		return fd;
	r = fd;
	fd = open_by_path(e, served, path, size);
	if (fd >= 0)
		return fd;
	fileopen_event_path(e, path, size);
	return r;
}

/* ---- by another process ---- */

struct request {
	struct wk_file_event event;
	bool served, ours;
};

static int open_there(const void *request, const int *fds, void *reply, int *ret_fd)
{
	const struct request *q = request;

	(void)fds;
	*ret_fd = q->event.key.dev == WK_DEV_COPIED ? open_copied(&q->event, q->ours, reply, PATH_MAX) :
						      open_now(&q->event, q->served, reply, PATH_MAX);
	return *ret_fd < 0 ? *ret_fd : 0;
}

int fileopen(const struct wk_file_event *e, char *path, size_t size)
{
	bool copied = e->key.dev == WK_DEV_COPIED;	/* reading a process's memory may wait, too (memory.h) */
	struct request q = { .event = *e };
	char found[PATH_MAX] = "";
	int fd, r;

	q.served = mounts_judge(e->pid, e->key.dev, &q.ours) == MOUNTS_SERVED;
	if (q.ours && !q.served && !copied)
		return open_now(e, false, path, size);
	r = offload(&(struct offload_call){ .kind = q.ours ? OFFLOAD_OURS : OFFLOAD_FOREIGN, .fn = open_there,
					    .request = &q, .request_size = sizeof(q),
					    .reply = found, .reply_size = sizeof(found) }, &fd);
	if (copied && r)
		snprintf(found, sizeof(found), "//anon");
	if (!found[0])
		fileopen_event_path(e, found, sizeof(found));
	snprintf(path, size, "%s", found);
	return r ? r : fd;
}

static bool is_inode(const struct wk_file_key *key, const struct stat *opened, const struct stat *st)
{
	if (key->dev != WK_DEV_COPIED)
		return fileopen_same_inode(key, st);
	return opened && st->st_ino == opened->st_ino && st->st_dev == opened->st_dev;
}

bool fileopen_on_host(const struct wk_file_key *key, const struct stat *opened, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC | O_NOFOLLOW, .resolve = RESOLVE_CACHED };
	cleanup(fd_cleanup) int fd = -1;
	struct stat st;

	if (path[0] != '/')
		return false;
	for (int i = 0; i < 3 && fd < 0; i++)	/* a rename(2) somewhere has got in the way */
		fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	if (fd < 0 && errno == EINVAL)		/* before Linux 5.12 */
		return !lstat(path, &st) && is_inode(key, opened, &st);
	return fd >= 0 && !foreign_stat(fd, &st) && is_inode(key, opened, &st);
}
