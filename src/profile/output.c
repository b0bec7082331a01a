/* output.c - see output.h. */
#include "profile/output.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sys/random.h>
#include <sys/stat.h>

static int in_place(const char *path, const void *p, size_t n)
{
	cleanup(fd_cleanup) int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : write_all(fd, p, n);
}

/* A short name of its own: the final one plus a suffix might be too long. */
static int temporary_path(const char *path, char **ret)
{
	const char *slash = strrchr(path, '/');
	const int dir = slash ? (int)(slash - path + 1) : 0;
	uint64_t unique;

	if (getrandom(&unique, sizeof(unique), 0) != sizeof(unique))
		return -EIO;
	return asprintf(ret, "%.*s.wick-%016" PRIx64 ".tmp", dir, path, unique) < 0 ? -ENOMEM : 0;
}

static int write_new(const char *path, const void *p, size_t n)
{
	cleanup(fd_cleanup) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	int r;

	if (fd < 0)
		return -errno;
	r = write_all(fd, p, n);
	if (!r && fsync(fd) < 0)
		r = -errno;
	if (!r) {	/* network file systems report a full disk here */
		r = close(fd) < 0 ? -errno : 0;
		fd = -1;
	}
	if (r)
		unlink(path);
	return r;
}

/* The rename lasts through a power cut only once the directory is on disk. Where that can't be
 * had (the directory isn't readable), the file is still whole. */
static void sync_directory(const char *path)
{
	const char *slash = strrchr(path, '/');
	cleanup(freep_cleanup) char *dir =
		slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	cleanup(fd_cleanup) int fd =
		dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (fd >= 0)
		(void)fsync(fd);
}

static int replace(const char *path, const void *p, size_t n)
{
	cleanup(freep_cleanup) char *tmp = NULL;
	int r = temporary_path(path, &tmp);

	if (!r)
		r = write_new(tmp, p, n);
	if (r)
		return r;
	if (rename(tmp, path) < 0) {
		r = -errno;
		unlink(tmp);
		return r;
	}
	sync_directory(path);
	return 0;
}

static bool below(const char *path, const char *dir)
{
	return !strncmp(path, dir, strlen(dir));
}

static int write_path(const char *path, const void *p, size_t n)
{
	cleanup(freep_cleanup) char *target = NULL;
	struct stat st;

	if (!strcmp(path, "-"))
		return write_all(STDOUT_FILENO, p, n);
	if (!*path)
		return -ENOENT;
	if (below(path, "/dev/") || below(path, "/proc/"))
		return in_place(path, p, n);
	if (stat(path, &st) < 0)
		return errno == ENOENT ? replace(path, p, n) : -errno;
	if (!S_ISREG(st.st_mode))
		return in_place(path, p, n);
	target = realpath(path, NULL);
	return target ? replace(target, p, n) : -errno;
}

int output_write(const char *path, const void *p, size_t n, struct err *e)
{
	int r = write_path(path, p, n);

	if (r)
		return err_set(e, r, "%s: %s", strcmp(path, "-") ? path : "standard output",
			       strerror(-r));
	return 0;
}
