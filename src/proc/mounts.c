/* mounts.c - see mounts.h. */
#include "proc/mounts.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "proc/host.h"
#include "proc/pid.h"

enum { MOUNTINFO_MAX = 16 << 20, DISKS = 64, TYPE_MAX = 32 };

static const struct {
	const char *name;	/* in mountinfo */
	unsigned long magic;	/* linux/magic.h, and those files' own headers */
} local[] = {
	{ "overlay", 0x794c7630 },	/* first: it is a case of its own */
	{ "ext4", 0xef53 },	 { "ext3", 0xef53 },	  { "ext2", 0xef53 },
	{ "xfs", 0x58465342 },	 { "btrfs", 0x9123683e }, { "tmpfs", 0x01021994 },
	{ "devtmpfs", 0x01021994 }, { "ramfs", 0x858458f6 }, { "rootfs", 0x858458f6 },
	{ "hugetlbfs", 0x958458f6 }, { "squashfs", 0x73717368 }, { "erofs", 0xe0f5e1e2 },
	{ "f2fs", 0xf2f52010 },	 { "zfs", 0x2fc12fc1 },	  { "bcachefs", 0xca451a4e },
	{ "iso9660", 0x9660 },	 { "vfat", 0x4d44 },	  { "msdos", 0x4d44 },
	{ "exfat", 0x2011bab0 }, { "ntfs3", 0x7366746e }, { "jfs", 0x3153464a },
	{ "nilfs2", 0x3434 },	 { "reiserfs", 0x52654973 }, { "udf", 0x15013346 },
};

static bool is_overlay(size_t type)
{
	return !type;
}

/* ARRAY_SIZE(local): none of them. */
static size_t find_name(const char *name)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(local) && strcmp(local[i].name, name))
		i++;
	return i;
}

enum mounts_verdict mounts_judge_open(int fd, bool ours)
{
	struct statfs fs;

	if (fstatfs(fd, &fs))
		return MOUNTS_SERVED;
	for (size_t i = 0; i < ARRAY_SIZE(local); i++)
		if (local[i].magic == (unsigned long)fs.f_type)
			return is_overlay(i) && !ours ? MOUNTS_SERVED : MOUNTS_LOCAL;
	return MOUNTS_SERVED;
}

/* "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue": blanks in names are escaped. */
bool mounts_parse_line(const char *line, size_t len, uint32_t *ret_dev, char *ret_type, size_t size)
{
	const char *type = memmem(line, len, " - ", 3), *end = line + len, *p = line;
	unsigned int maj, min;
	char number[24];
	size_t n;

	for (int field = 0; field < 2 && p; field++) {
		p = memchr(p, ' ', (size_t)(end - p));
		p = p ? p + 1 : NULL;
	}
	if (!p || !type || type < p)
		return false;
	n = MIN((size_t)(type - p), sizeof(number) - 1);
	memcpy(number, p, n);
	number[n] = '\0';
	if (sscanf(number, "%u:%u ", &maj, &min) != 2 || maj >= 1 << 12 || min >= 1 << 20)
		return false;
	type += 3;
	n = (size_t)(end - type);
	for (size_t i = 0; i < n; i++)
		if (type[i] == ' ')
			n = i;
	if (!n || n >= size || memchr(type, 0, n))
		return false;
	*ret_dev = maj << 20 | min;
	memcpy(ret_type, type, n);
	ret_type[n] = '\0';
	return true;
}

/* The type of a device in a mountinfo; -ENOENT: none with it. */
static int find_dev(const char *path, uint32_t dev, size_t *ret)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(MOUNTINFO_MAX);
	char type[TYPE_MAX];
	const char *p, *newline;
	uint32_t d;
	int r = host_read_file("", path, &b);

	if (r || !b.data)
		return r ? r : -ENOENT;
	for (p = b.data; (newline = memchr(p, '\n', b.len - (size_t)(p - b.data))); p = newline + 1)
		if (mounts_parse_line(p, (size_t)(newline - p), &d, type, sizeof(type)) && d == dev) {
			*ret = find_name(type);
			return 0;
		}
	return -ENOENT;
}

/* Shared anonymous memory and memfds lie on a file system that is mounted nowhere. */
static bool is_memory(uint32_t dev)
{
	static uint32_t memory;		/* found out by whoever comes first, the same by all */
	uint32_t known = __atomic_load_n(&memory, __ATOMIC_RELAXED);
	cleanup(fd_cleanup) int fd = -1;
	struct stat st;

	if (!known) {
		fd = memfd_create("wick", MFD_CLOEXEC);
		if (fd < 0 || fstat(fd, &st))
			return false;
		known = major(st.st_dev) << 20 | minor(st.st_dev);
		__atomic_store_n(&memory, known, __ATOMIC_RELAXED);
	}
	return dev == known;
}

/* Disks keep their number and what is on them, as far as it matters here; numbers without one (major 0) go to
 * the next file system that is mounted. */
static struct {
	pthread_mutex_t lock;
	uint32_t v[DISKS];
	size_t n;
} disks = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool is_known_disk(uint32_t dev)
{
	bool found = false;

	pthread_mutex_lock(&disks.lock);
	for (size_t i = 0; i < disks.n; i++)
		found |= disks.v[i] == dev;
	pthread_mutex_unlock(&disks.lock);
	return found;
}

static void remember_disk(uint32_t dev)
{
	pthread_mutex_lock(&disks.lock);
	if (disks.n < DISKS)
		disks.v[disks.n++] = dev;
	pthread_mutex_unlock(&disks.lock);
}

/* One's own mounts, if one of our user namespace has made them; else those of this host. */
static int find_type(uint32_t pid, uint32_t dev, bool *ours, size_t *ret)
{
	char path[64];
	int r = -ENOENT;

	if (pid) {
		snprintf(path, sizeof(path), "/proc/%u/mountinfo", pid);
		r = *ours ? find_dev(path, dev, ret) : -ENOENT;
	}
	if (r)
		r = find_dev("/proc/self/mountinfo", dev, ret);
	if (r)
		r = find_dev("/proc/1/mountinfo", dev, ret);
	if (r && pid && !*ours) {	/* what anybody may have mounted, but memory is memory */
		r = find_dev(path, dev, ret);
		if (!r && is_overlay(*ret))
			*ret = ARRAY_SIZE(local);
	}
	return r;
}

enum mounts_verdict mounts_judge(uint32_t pid, uint32_t dev, bool *ret_ours)
{
	cleanup(fd_cleanup) int dir = pid ? pid_open(pid, 0) : -ESRCH;
	size_t type;

	*ret_ours = dir >= 0 ? pid_is_ours(dir) : dir == -ESRCH;
	if (is_memory(dev) || (dev >> 20 && is_known_disk(dev)))
		return MOUNTS_LOCAL;
	if (find_type(dir >= 0 ? pid : 0, dev, ret_ours, &type) || type == ARRAY_SIZE(local))
		return MOUNTS_SERVED;
	if (dev >> 20)
		remember_disk(dev);
	return MOUNTS_LOCAL;
}
