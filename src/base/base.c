/* base.c - see base.h. */
#include "base/base.h"

int err_set(struct err *e, int r, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return r;
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	return r;
}

int array_grow(void *ret_p, size_t *cap, size_t need, size_t size)
{
	size_t n = *cap ? *cap : 16;
	void *old, *p;

	if (need <= *cap)
		return 0;
	while (n < need) {
		if (n > SIZE_MAX / 4)
			return -E2BIG;
		n *= 2;
	}
	if (n > SIZE_MAX / 2 / size)
		return -E2BIG;
	memcpy(&old, ret_p, sizeof(old));	/* the caller's pointer may have any type */
	p = realloc(old, n * size);
	if (!p)
		return -ENOMEM;
	memcpy(ret_p, &p, sizeof(p));
	*cap = n;
	return 0;
}

int write_all(int fd, const void *p, size_t n)
{
	while (n) {
		ssize_t done = write(fd, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		p = (const char *)p + done;
		n -= (size_t)done;
	}
	return 0;
}
