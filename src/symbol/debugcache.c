/* debugcache.c - see debugcache.h. */
#include "symbol/debugcache.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "elf/elf.h"
#include "symbol/fileopen.h"

#define FILE_NAME "debuginfo"

struct entry {
	char hex[ELF_BUILD_ID_HEX];
	uint64_t bytes;
	int64_t used;		/* ns since 1970 */
};

/* ---- where ---- */

static int make_directories(char *path)
{
	for (char *p = path + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		if (mkdir(path, 0700) && errno != EEXIST)
			return -errno;
		*p = '/';
	}
	return mkdir(path, 0700) && errno != EEXIST ? -errno : 0;
}

static bool choose(const char *wanted, char *ret, size_t size)
{
	const char *state = getenv("STATE_DIRECTORY");

	if (!wanted || !*wanted)
		wanted = getenv("DEBUGINFOD_CACHE_PATH");
	if (wanted && *wanted)
		return (size_t)snprintf(ret, size, "%s", wanted) < size;
	if (!state || state[0] != '/')
		state = DEBUGCACHE_STATE;
	return (size_t)snprintf(ret, size, "%.*s/debuginfod", (int)strcspn(state, ":"), state) < size;
}

int debugcache_directory(const char *wanted, char *ret, size_t size, struct err *e)
{
	char path[PATH_MAX];
	int r;

	if (!choose(wanted, path, MIN(size, sizeof(path))))
		return err_set(e, -ENAMETOOLONG, "the path of debuginfod's cache is too long");
	r = path[0] == '/' ? make_directories(path) : -EINVAL;
	if (!r && access(path, W_OK | X_OK))
		r = -errno;
	if (r)
		return err_set(e, r, "debuginfod's cache %.200s can't be used: %s; DEBUGINFOD_CACHE_PATH "
				     "names another directory", path, strerror(-r));
	memcpy(ret, path, strlen(path) + 1);
	return 0;
}

/* ---- one file ---- */

static bool path_of(const char *directory, const char *hex, const char *name, char ret[PATH_MAX])
{
	return (size_t)snprintf(ret, PATH_MAX, "%s/%s%s", directory, hex, name) < PATH_MAX;
}

int debugcache_open(const char *directory, const char *hex)
{
	static const struct timespec now[2] = { { 0, UTIME_NOW }, { 0, UTIME_OMIT } };
	char path[PATH_MAX];
	struct stat st;
	int fd = path_of(directory, hex, "/" FILE_NAME, path) ?
			 fileopen_regular(path, O_NOFOLLOW, &st) : -ENAMETOOLONG;

	if (fd < 0)
		return fd;
	if (!st.st_size) {
		close(fd);
		return -ENOENT;
	}
	(void)futimens(fd, now);	/* file systems may not note it by themselves */
	return fd;
}

void debugcache_drop(const char *directory, const char *hex)
{
	char path[PATH_MAX];

	if (path_of(directory, hex, "/" FILE_NAME, path))
		(void)unlink(path);
	if (path_of(directory, hex, "", path))
		(void)rmdir(path);	/* or others of its files stay */
}

/* ---- the limit ---- */

static bool is_build_id(const char *name)
{
	size_t n = strlen(name);

	return n && n < ELF_BUILD_ID_HEX && strspn(name, "0123456789abcdef") == n;
}

static int64_t ns(const struct timespec *t)
{
	return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

static bool look(int dir, const char *hex, struct entry *ret)
{
	char name[ELF_BUILD_ID_HEX + sizeof(FILE_NAME) + 1];
	struct stat st;

	snprintf(name, sizeof(name), "%s/" FILE_NAME, hex);
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return false;
	*ret = (struct entry){ .bytes = (uint64_t)st.st_blocks * 512,
			       .used = MAX(ns(&st.st_atim), ns(&st.st_mtim)) };
	strcpy(ret->hex, hex);
	return true;
}

static int by_use(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return (x->used > y->used) - (x->used < y->used);
}

uint64_t debugcache_limit(const char *directory, uint64_t bytes, const char *keep)
{
	struct entry *v cleanup(freep_cleanup) = NULL, e;
	size_t n = 0, cap = 0;
	uint64_t sum = 0;
	DIR *d = opendir(directory);
	struct dirent *at;

	while (d && (at = readdir(d))) {
		if (!is_build_id(at->d_name) || !look(dirfd(d), at->d_name, &e) ||
		    array_grow(&v, &cap, n + 1, sizeof(*v)))
			continue;
		v[n++] = e;
		sum += e.bytes;
	}
	if (d)
		closedir(d);
	if (n)
		qsort(v, n, sizeof(*v), by_use);
	for (size_t i = 0; i < n && sum > bytes; i++) {
		if (keep && !strcmp(v[i].hex, keep))
			continue;
		debugcache_drop(directory, v[i].hex);
		sum -= v[i].bytes;
	}
	return sum;
}
