/* secret.c - see secret.h. */
#include "net/secret.h"

#include <fcntl.h>
#include <sys/stat.h>

static void forget(char *s)
{
	if (s)
		explicit_bzero(s, strlen(s));
	free(s);
}

/* The text between white space at both ends; -EINVAL if it can't be part of a header. */
static int clean(const char *s, size_t n, char **ret)
{
	while (n && strchr(" \t\r\n", s[n - 1]) && s[n - 1])
		n--;
	while (n && strchr(" \t\r\n", *s) && *s)
		s++, n--;
	if (!n || n > SECRET_MAX)
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
			return -EINVAL;
	*ret = strndup(s, n);
	return *ret ? 0 : -ENOMEM;
}

static int read_file(const char *path, char **ret, struct timespec *ret_mtime)
{
	cleanup(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char bytes[SECRET_MAX + 2];
	struct stat st;
	ssize_t got;
	size_t n = 0;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	while (n < sizeof(bytes) && (got = read(fd, bytes + n, sizeof(bytes) - n)) != 0) {
		if (got < 0 && errno != EINTR)
			return -errno;
		n += got < 0 ? 0 : (size_t)got;
	}
	r = clean(bytes, n, ret);
	explicit_bzero(bytes, sizeof(bytes));
	*ret_mtime = st.st_mtim;
	return r;
}

int secret_set(struct secret *s, const char *value, const char *path, struct err *e)
{
	int r = 0;

	if (value && path)
		return err_set(e, -EINVAL, "a secret is given both as a value and as a file");
	if (value) {
		r = clean(value, strlen(value), &s->value);
		return r ? err_set(e, r, "a password or token is empty, too long, or has control "
					 "characters in it")
			 : 0;
	}
	if (!path)
		return 0;
	s->path = strdup(path);
	if (!s->path)
		return err_set(e, -ENOMEM, "out of memory");
	r = read_file(path, &s->value, &s->mtime);
	if (r == -EINVAL)
		return err_set(e, r, "%.200s: no password or token of 1 to %d characters on one line",
			       path, SECRET_MAX);
	return r ? err_set(e, r, "can't read %.200s: %s", path, strerror(-r)) : 0;
}

void secret_refresh(struct secret *s)
{
	struct timespec mtime;
	struct stat st;
	char *value;

	if (!s->path || stat(s->path, &st) < 0 ||
	    (st.st_mtim.tv_sec == s->mtime.tv_sec && st.st_mtim.tv_nsec == s->mtime.tv_nsec))
		return;
	if (read_file(s->path, &value, &mtime))
		return;
	forget(s->value);
	s->value = value;
	s->mtime = mtime;
}

void secret_done(struct secret *s)
{
	forget(s->value);
	free(s->path);
	*s = (struct secret){ 0 };
}
