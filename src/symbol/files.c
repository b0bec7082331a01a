/* files.c - see files.h. */
#include "symbol/files.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "base/buf.h"
#include "proc/host.h"

#define BTRFS_MAGIC	0x9123683e	/* linux/magic.h */
#define OVERLAYFS_MAGIC 0x794c7630

struct files {
	struct file **by_id;
	size_t cap;
	uint32_t count, unopened, fds, max_fds;
};

int files_new(uint32_t max_fds, struct files **ret)
{
	struct files *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->max_fds = max_fds;
	*ret = f;
	return 0;
}

static void file_free(struct file *f)
{
	if (!f)
		return;
	if (f->fd >= 0)
		close(f->fd);
	free(f->path);
	free(f);
}

void files_free(struct files *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->cap; i++)
		file_free(f->by_id[i]);
	free(f->by_id);
	free(f);
}

/* ---- identity ---- */

/* The kernel's own dev_t (major << 20 | minor) from the one of stat(2). */
static uint32_t kernel_dev(dev_t dev)
{
	return major(dev) << 20 | minor(dev);
}

static bool same_inode(const struct wk_file_key *key, const struct stat *st)
{
	return st->st_ino == key->ino && kernel_dev(st->st_dev) == key->dev;
}

static bool is_same_file(const struct wk_file_key *key, int fd, const struct stat *st)
{
	uint64_t mtime = (uint64_t)st->st_mtim.tv_sec * 1000000000 + (uint64_t)st->st_mtim.tv_nsec;
	struct statfs fs;

	if (mtime != key->mtime_ns)
		return false;
	if (same_inode(key, st))
		return true;
	return !fstatfs(fd, &fs) && ((unsigned long)fs.f_type == OVERLAYFS_MAGIC ||
				     (unsigned long)fs.f_type == BTRFS_MAGIC);
}

/* Opens path for reading if it is the key's file. O_PATH first: opening a FIFO or a device for
 * real would have effects, and only the descriptor at hand is then re-opened. */
static int open_if_same(const char *path, int flags, const struct wk_file_key *key)
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
	if (!is_same_file(key, probe, &st))
		return -ESTALE;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", probe);
	fd = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

/* ---- the ways in ---- */

static int open_mapping(const struct wk_file_event *e, char *link, size_t size)
{
	uint32_t ids[] = { e->pid, e->tid };	/* a main thread that has exited has no map_files */
	char path[128];
	int fd = -ESRCH;

	for (size_t i = 0; i < ARRAY_SIZE(ids) && fd < 0; i++) {
		ssize_t n;

		if (!ids[i] || (i && ids[i] == ids[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%u/map_files/%llx-%llx", ids[i], e->vm_start,
			 e->vm_end);
		n = readlink(path, link, size - 1);
		fd = open_if_same(path, 0, &e->key);
		if (n > 0)
			link[n] = '\0';
	}
	return fd;
}

/* The path within its file system, from the names that BPF sent leaf first. */
static void event_path(const struct wk_file_event *e, char *out, size_t size)
{
	size_t end = MIN((size_t)e->path_len, (size_t)WK_PATH_BYTES), n = 0;

	out[0] = '\0';
	while (end > 0) {
		size_t start = end - 1;		/* at the NUL of the last name */

		while (start > 0 && e->path[start - 1])
			start--;
		n += (size_t)snprintf(out + n, size - n, "/%.*s", (int)(end - 1 - start),
				      e->path + start);
		if (n >= size)
			break;
		end = start;
	}
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
static int open_in_mount(char *line, const struct wk_file_event *e, const char *path,
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
	return open_if_same(found, O_NOFOLLOW, &e->key);
}

static int open_by_path(const struct wk_file_event *e, char *found, size_t size)
{
	cleanup(buf_cleanup) struct buf mounts = BUF_INIT(16 << 20);
	char path[WK_PATH_BYTES + 1], *save = NULL;
	int fd = -ENOENT;

	event_path(e, path, sizeof(path));
	if (!path[0] || host_read_file("", "/proc/self/mountinfo", &mounts))
		return -ENOENT;
	for (char *line = strtok_r(mounts.data, "\n", &save); line && fd < 0;
	     line = strtok_r(NULL, "\n", &save))
		fd = open_in_mount(line, e, path, found, size);
	return fd;
}

static void describe(struct file *f, char *link)
{
	static const char deleted[] = " (deleted)";
	size_t n = strlen(link), d = sizeof(deleted) - 1;
	struct stat st;

	if (n > d && !strcmp(link + n - d, deleted)) {
		link[n - d] = '\0';
		f->deleted = true;
	}
	f->path = strdup(link);
	f->on_host = f->path && !f->deleted && !lstat(f->path, &st) && same_inode(&f->key, &st);
}

static struct file *open_file(struct files *fs, const struct wk_file_event *e)
{
	struct file *f = calloc(1, sizeof(*f));
	char link[PATH_MAX] = "", found[PATH_MAX] = "";

	if (!f)
		return NULL;
	f->key = e->key;
	if (fs->fds >= fs->max_fds) {
		f->fd = -1;
		f->open_error = -EMFILE;
		event_path(e, link, sizeof(link));
	} else {
		f->fd = open_mapping(e, link, sizeof(link));
		if (f->fd < 0) {
			f->open_error = f->fd;
			f->fd = open_by_path(e, found, sizeof(found));
			snprintf(link, sizeof(link), "%s", f->fd >= 0 ? found : "");
		}
		if (f->fd < 0)
			f->fd = -1;
		else
			f->open_error = 0;
		if (!link[0])
			event_path(e, link, sizeof(link));
	}
	describe(f, link[0] ? link : (char[]){ "[unknown]" });
	if (!f->path) {
		file_free(f);
		return NULL;
	}
	return f;
}

/* An id was given back because the ring was full, and now has another file. */
static void forget(struct files *fs, uint32_t id)
{
	struct file *f = fs->by_id[id];

	if (!f)
		return;
	fs->count--;
	fs->fds -= f->fd >= 0;
	fs->unopened -= f->fd < 0;
	file_free(f);
	fs->by_id[id] = NULL;
}

int files_announce(struct files *fs, const struct wk_file_event *e, const struct file **ret)
{
	size_t old = fs->cap;
	struct file *f;
	int r;

	if (e->id < WK_FILE_FIRST || e->id > WK_FILE_ID_MAX)
		return -EINVAL;
	r = array_grow(&fs->by_id, &fs->cap, (size_t)e->id + 1, sizeof(struct file *));
	if (r)
		return r;
	memset(fs->by_id + old, 0, (fs->cap - old) * sizeof(struct file *));
	forget(fs, e->id);	/* first: its descriptor may be the last one allowed */
	f = open_file(fs, e);
	if (!f)
		return -ENOMEM;
	fs->by_id[e->id] = f;
	fs->count++;
	fs->fds += f->fd >= 0;
	fs->unopened += f->fd < 0;
	*ret = f;
	return 0;
}

const struct file *files_get(const struct files *fs, uint32_t id)
{
	return id < fs->cap ? fs->by_id[id] : NULL;
}

uint32_t files_count(const struct files *fs)
{
	return fs->count;
}

uint32_t files_unopened(const struct files *fs)
{
	return fs->unopened;
}
