/* maps.c - see maps.h.
 *
 * Fields are read by hand over (pointer, end): the text has no NUL that could be relied on, and
 * sscanf accepts too much (signs, spaces, overflow).
 */
#include "proc/maps.h"
#include "proc/host.h"

struct cursor {
	const char *p, *end;
	bool bad; /* sticky: one check after the last field */
};

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1; /* the kernel writes lower case */
}

static uint64_t number(struct cursor *c, unsigned int base, uint64_t max)
{
	const char *start = c->p;
	uint64_t v = 0;
	int d;

	for (; c->p < c->end; c->p++) {
		d = digit_value(*c->p);
		if (d < 0 || (unsigned int)d >= base)
			break;
		if (__builtin_mul_overflow(v, base, &v) ||
		    __builtin_add_overflow(v, (unsigned int)d, &v) || v > max)
			c->bad = true;
	}
	c->bad |= c->p == start;
	return v;
}

static void skip(struct cursor *c, char wanted)
{
	if (c->p < c->end && *c->p == wanted)
		c->p++;
	else
		c->bad = true;
}

static unsigned int permissions(struct cursor *c)
{
	static const char set[] = "rwxs", unset[] = "---p";
	unsigned int i, perms = 0;

	if (c->end - c->p < 4) {
		c->bad = true;
		return 0;
	}
	for (i = 0; i < 4; i++) {
		if (c->p[i] == set[i])
			perms |= 1U << i;
		else if (c->p[i] != unset[i])
			c->bad = true;
	}
	c->p += 4;
	return perms;
}

static bool starts_with(const struct maps_area *a, const char *prefix)
{
	size_t n = strlen(prefix);

	return a->path_len >= n && !memcmp(a->path, prefix, n);
}

/* What the name says. That of a file begins with "/", or with letters where its file system makes
 * names up ("anon_inode:[perf_event]"); all that begin with a bracket are the kernel's own. */
static void classify(struct maps_area *a)
{
	static const char deleted[] = " (deleted)";
	size_t n = strlen(deleted);

	if (!a->path_len) {
		a->kind = a->inode ? MAPS_FILE : MAPS_ANON;
		return;
	}
	if (a->path[0] == '[') {
		a->kind = starts_with(a, "[anon:") || starts_with(a, "[anon_shmem:") ? MAPS_ANON
										     : MAPS_SPECIAL;
		return;
	}
	a->kind = MAPS_FILE;
	if (a->path_len > n && !memcmp(a->path + a->path_len - n, deleted, n)) {
		a->deleted = true;
		a->path_len -= n;
	}
}

/* start-end perms offset major:minor inode   path */
int maps_parse_line(const char *line, size_t len, struct maps_area *ret)
{
	struct cursor c = { line, line + len, false };
	struct maps_area a = { 0 };

	a.start = number(&c, 16, UINT64_MAX);
	skip(&c, '-');
	a.end = number(&c, 16, UINT64_MAX);
	skip(&c, ' ');
	a.perms = permissions(&c);
	skip(&c, ' ');
	a.offset = number(&c, 16, UINT64_MAX);
	skip(&c, ' ');
	a.major = (uint32_t)number(&c, 16, UINT32_MAX);
	skip(&c, ':');
	a.minor = (uint32_t)number(&c, 16, UINT32_MAX);
	skip(&c, ' ');
	a.inode = number(&c, 10, UINT64_MAX);
	if (c.p < c.end)
		skip(&c, ' ');
	if (c.bad || a.start >= a.end)
		return -EINVAL;
	while (c.p < c.end && *c.p == ' ') /* padding up to the path's column */
		c.p++;
	a.path = c.p;
	a.path_len = (size_t)(c.end - c.p);
	classify(&a);
	*ret = a;
	return 0;
}

/* The next line of *text, moved behind it; false at the end. */
static bool next_line(const char **text, size_t *len, const char **ret_line, size_t *ret_len)
{
	const char *nl;
	size_t n;

	if (!*len)
		return false;
	nl = memchr(*text, '\n', *len);
	n = nl ? (size_t)(nl - *text) : *len;
	*ret_line = *text;
	*ret_len = n;
	n += nl != NULL;
	*text += n;
	*len -= n;
	return true;
}

int maps_each(const char *text, size_t len, int (*fn)(const struct maps_area *a, void *arg),
	      void *arg, size_t *bad)
{
	struct maps_area a;
	const char *line;
	size_t n;
	int r;

	while (next_line(&text, &len, &line, &n)) {
		if (maps_parse_line(line, n, &a)) {
			if (bad)
				++*bad;
			continue;
		}
		r = fn(&a, arg);
		if (r)
			return r;
	}
	return 0;
}

struct wanted {
	uint64_t addr;
	struct maps_area *ret;
};

static int is_around(const struct maps_area *a, void *arg)
{
	struct wanted *w = arg;

	if (w->addr < a->start || w->addr >= a->end)
		return 0;
	*w->ret = *a;
	return 1;
}

int maps_find(const char *text, size_t len, uint64_t addr, struct maps_area *ret)
{
	struct wanted w = { addr, ret };

	return maps_each(text, len, is_around, &w, NULL) ? 0 : -ENOENT;
}

size_t maps_path(const struct maps_area *a, char *ret, size_t size)
{
	static const char newline[] = "\\012";
	size_t i, n = 0, step = strlen(newline);

	for (i = 0; i < a->path_len && n < size - 1; n++) {
		if (a->path_len - i >= step && !memcmp(a->path + i, newline, step)) {
			ret[n] = '\n';
			i += step;
		} else {
			ret[n] = a->path[i++];
		}
	}
	ret[n] = '\0';
	return n;
}

int maps_read(int pid, struct buf *b)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	return host_read_file("", path, b);
}
