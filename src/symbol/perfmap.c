/* perfmap.c - see perfmap.h. */
#include "symbol/perfmap.h"

#include <sys/stat.h>

#include "base/clock.h"

enum { CHUNK = 64 << 10 };

/* A hexadecimal number and the blanks after it. Moves *p; false: none here, or over 64 bits. */
static bool hex_field(const char **p, const char *end, uint64_t *ret)
{
	const char *q = *p;
	uint64_t v = 0;

	if (end - q > 2 && q[0] == '0' && (q[1] == 'x' || q[1] == 'X'))
		q += 2;
	*p = q;
	for (; q < end; q++) {
		unsigned int c = (unsigned char)*q, digit;

		if (c - '0' < 10)
			digit = c - '0';
		else if ((c | 32) - 'a' < 6)
			digit = (c | 32) - 'a' + 10;
		else
			break;
		if (v >> 60)
			return false;
		v = v << 4 | digit;
	}
	if (q == *p || q == end || (*q != ' ' && *q != '\t'))
		return false;
	while (q < end && (*q == ' ' || *q == '\t'))
		q++;
	*p = q;
	*ret = v;
	return true;
}

int perfmap_parse_line(const char *line, size_t len, struct perfmap_line *ret)
{
	const char *p = line, *end = line + len;
	uint64_t start, size;

	if (!hex_field(&p, end, &start) || !hex_field(&p, end, &size))
		return -EINVAL;
	if (end > p && end[-1] == '\r')
		end--;
	if (p == end || !size || start >= PERFMAP_ADDR_MAX || size > PERFMAP_ADDR_MAX - start)
		return -EINVAL;
	*ret = (struct perfmap_line){ start, start + size, p, (size_t)(end - p) };
	return 0;
}

void perfmap_init(struct perfmap *m, int fd)
{
	*m = (struct perfmap){ .fd = fd };
}

void perfmap_close(struct perfmap *m)
{
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
}

/* Bytes at a place; fewer only at the end of the file. */
static ssize_t read_at(int fd, void *buf, size_t n, uint64_t at)
{
	size_t have = 0;

	while (have < n) {
		ssize_t k = pread(fd, (char *)buf + have, n - have, (off_t)(at + have));

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return -errno;
		if (!k)
			break;
		have += (size_t)k;
	}
	return (ssize_t)have;
}

/* Whether what was read is no longer what the file begins with. */
static bool rewritten(const struct perfmap *m, uint64_t size)
{
	size_t n = (size_t)MIN(m->read, (uint64_t)PERFMAP_TAIL);
	char now[PERFMAP_TAIL];

	return size < m->read || read_at(m->fd, now, n, m->read - n) != (ssize_t)n ||
	       memcmp(now, m->tail, n);
}

static void remember_tail(struct perfmap *m)
{
	size_t n = (size_t)MIN(m->read, (uint64_t)PERFMAP_TAIL);

	if (read_at(m->fd, m->tail, n, m->read - n) != (ssize_t)n)
		memset(m->tail, 0, sizeof(m->tail));	/* it shrinks just now: the next update sees */
}

/* Takes the whole lines of text, which lies at m->read. *ret_used: bytes of it that are done. */
static int add_lines(struct perfmap *m, struct codemap *codes, const char *text, size_t len,
		     size_t *ret_used)
{
	const char *p = text, *end = text + len, *newline;
	struct perfmap_line line;
	int r;

	while (p < end && (newline = memchr(p, '\n', (size_t)(end - p)))) {
		m->lines++;
		if (m->skipping || perfmap_parse_line(p, (size_t)(newline - p), &line)) {
			m->bad++;
			m->skipping = false;
		} else {
			r = codemap_add(codes, line.start, line.end, m->read + (size_t)(p - text));
			if (r)
				return r;
		}
		p = newline + 1;
	}
	if (end - p > PERFMAP_LINE_MAX) {	/* its bytes are done, its newline is to come */
		m->skipping = true;
		p = end;
	}
	*ret_used = (size_t)(p - text);
	return 0;
}

/* One chunk. *ret_more: there may be another. */
static int read_chunk(struct perfmap *m, struct codemap *codes, char *buf, bool *ret_more)
{
	size_t want = (size_t)MIN((uint64_t)CHUNK, PERFMAP_BYTES_MAX - m->read), used;
	ssize_t n = read_at(m->fd, buf, want, m->read);
	int r;

	*ret_more = false;
	if (n < 0)
		return (int)n;
	m->capped = !want;
	r = add_lines(m, codes, buf, (size_t)n, &used);
	if (r)
		return r;
	m->read += used;
	*ret_more = used && n == CHUNK;
	return 0;
}

int perfmap_update(struct perfmap *m, struct codemap *codes, uint64_t deadline, bool *ret_changed)
{
	char *buf cleanup(freep_cleanup) = NULL;
	uint64_t before;
	struct stat st;
	bool more = true, changed = false;
	int r = 0, s;

	if (fstat(m->fd, &st))
		return -errno;
	if (m->read && rewritten(m, (uint64_t)st.st_size)) {
		codemap_clear(codes);
		m->read = 0;
		m->rewrites++;
		m->skipping = false;
		changed = true;
	}
	before = m->lines;
	if ((uint64_t)st.st_size > m->read) {
		buf = malloc(CHUNK);
		if (!buf)
			return -ENOMEM;
	}
	while (buf && more && !r) {
		r = read_chunk(m, codes, buf, &more);
		if (!r && more && clock_monotonic() >= deadline)
			r = -EAGAIN;
	}
	if (buf)
		remember_tail(m);
	s = codemap_settle(codes);
	*ret_changed = changed || m->lines != before;
	return s ? s : r;
}

int perfmap_name(const struct perfmap *m, uint64_t where, uint64_t addr, uint64_t *ret_start,
		 char *name, size_t size)
{
	char buf[PERFMAP_NAME_MAX + 64];	/* numbers, blanks and the longest name */
	struct perfmap_line line;
	const char *newline;
	ssize_t n = read_at(m->fd, buf, sizeof(buf), where);
	size_t len;

	if (n <= 0)
		return -ESTALE;
	newline = memchr(buf, '\n', (size_t)n);
	len = newline ? (size_t)(newline - buf) : (size_t)n;
	if (perfmap_parse_line(buf, len, &line) || addr < line.start || addr >= line.end)
		return -ESTALE;
	len = MIN(line.name_len, size - 1);
	len = MIN(len, (size_t)PERFMAP_NAME_MAX);
	memcpy(name, line.name, len);
	name[len] = '\0';
	*ret_start = line.start;
	return 0;
}
