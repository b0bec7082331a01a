/* auth.c - see auth.h. */
#include "http/auth.h"

#include <fcntl.h>
#include <strings.h>

enum { FILE_MAX = 8192 };	/* bytes of the file; a longer one is cut, and fits no caller */

/* Reads the token into ret. 0 or -errno. */
static int read_token(const char *path, char ret[static FILE_MAX], size_t *ret_len)
{
	cleanup(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t len = 0, start = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	while ((n = read(fd, ret + len, FILE_MAX - len)) > 0)
		len += (size_t)n;
	if (n < 0)
		return -errno;
	while (len && strchr(" \t\r\n", ret[len - 1]))
		len--;
	while (start < len && strchr(" \t\r\n", ret[start]))
		start++;
	memmove(ret, ret + start, len - start);
	*ret_len = len - start;
	return 0;
}

int auth_check_file(const char *path, size_t min, size_t max, struct err *e)
{
	char token[FILE_MAX];
	size_t n;
	int r = read_token(path, token, &n);

	if (r)
		r = err_set(e, -EINVAL, "token file %.200s: %s", path, strerror(-r));
	else if (n < min || n > max)
		r = err_set(e, -EINVAL, "token file %.200s: the token has %zu bytes, accepted are "
					"%zu to %zu", path, n, min, max);
	explicit_bzero(token, sizeof(token));
	return r;
}

/* Every byte of `given` is looked at, whatever the others were. n > 0. */
static bool same(const char *given, size_t len, const char *token, size_t n)
{
	unsigned int differs = len != n;

	for (size_t i = 0; i < len; i++)
		differs |= (unsigned char)given[i] ^ (unsigned char)token[i % n];
	return !differs;
}

bool auth_bearer(const char *path, const char *header)
{
	const size_t scheme = strlen("Bearer ");
	char token[FILE_MAX];
	size_t n;
	bool ok;

	if (!header || strncasecmp(header, "Bearer ", scheme) != 0)
		return false;
	if (read_token(path, token, &n) || !n)
		return false;
	ok = same(header + scheme, strlen(header + scheme), token, n);
	explicit_bzero(token, sizeof(token));
	return ok;
}
