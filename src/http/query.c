/* query.c - see query.h. */
#include "http/query.h"

#include "base/buf.h"

enum {
	NAME_MAX_BYTES = 32,	/* of a parameter, NUL included */
	PARAMETERS = 10,
};

#define NS_PER_SECOND 1000000000ULL

static const struct parameter {
	const char *name;
	size_t text;		/* offset of its text in struct profile_request; 0: a number */
} parameters[PARAMETERS] = {
	{ "seconds", 0 },
	{ "hz", 0 },
	{ "pid", 0 },
	{ "comm", offsetof(struct profile_request, comm) },
	{ "container", offsetof(struct profile_request, container) },
	{ "pod", offsetof(struct profile_request, pod) },
	{ "namespace", offsetof(struct profile_request, namespace) },
	{ "unit", offsetof(struct profile_request, unit) },
	{ "exe", offsetof(struct profile_request, exe) },
	{ "event", offsetof(struct profile_request, event) },
};

/* ---- bytes ---- */

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* Decodes n bytes into a text of at most size bytes. False if it is too long, an escape is broken,
 * or what comes out is a control character (a line feed in a log, a zero byte that ends the text).
 * */
static bool decode(const char *s, size_t n, char *ret, size_t size)
{
	size_t len = 0;
	int c;

	for (size_t i = 0; i < n; i++) {
		c = (unsigned char)s[i];
		if (c == '+') {
			c = ' ';
		} else if (c == '%') {
			if (n - i < 3 || hex(s[i + 1]) < 0 || hex(s[i + 2]) < 0)
				return false;
			c = hex(s[i + 1]) << 4 | hex(s[i + 2]);
			i += 2;
		}
		if (c < 0x20 || c == 0x7f || len + 1 >= size)
			return false;
		ret[len++] = (char)c;
	}
	ret[len] = '\0';
	return true;
}

/* Whether buf_utf8() would leave it as it is. */
static bool is_utf8(const char *s)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(4 * QUERY_TEXT_MAX);

	buf_utf8(&b, s, strlen(s));
	return !*s || (!b.err && !strcmp(b.data, s));
}

/* ---- numbers ---- */

static bool read_digits(const char **s, uint64_t limit, uint64_t *ret)
{
	uint64_t v = 0;

	if (**s < '0' || **s > '9')
		return false;
	for (; **s >= '0' && **s <= '9'; ++*s) {
		v = v * 10 + (uint64_t)(**s - '0');
		if (v > limit)
			return false;
	}
	*ret = v;
	return true;
}

/* "10", "0.5": nine digits after the point at most. */
static bool read_seconds(const char *s, uint64_t *ret_ns)
{
	uint64_t whole, fraction = 0, unit = NS_PER_SECOND;

	if (!read_digits(&s, UINT32_MAX, &whole))
		return false;
	if (*s == '.') {
		if (!s[1])
			return false;
		for (s++; *s >= '0' && *s <= '9' && unit > 1; s++) {
			unit /= 10;
			fraction += unit * (uint64_t)(*s - '0');
		}
	}
	*ret_ns = whole * NS_PER_SECOND + fraction;
	return !*s;
}

static bool read_number(const char *s, uint32_t max, uint32_t *ret)
{
	uint64_t v;

	if (!read_digits(&s, max, &v) || *s || !v)
		return false;
	*ret = (uint32_t)v;
	return true;
}

/* ---- parameters ---- */

static int set_number(struct profile_request *q, const char *name, const char *value,
		      const struct query_limits *l, struct err *e)
{
	uint64_t ns;

	if (!strcmp(name, "seconds")) {
		if (!read_seconds(value, &ns) || ns < QUERY_MIN_NS || ns > l->max_duration_ns)
			return err_set(e, -EINVAL, "seconds: '%s' is not a number from 0.1 to %g",
				       value, (double)l->max_duration_ns / NS_PER_SECOND);
		q->duration_ns = ns;
	} else if (!strcmp(name, "hz")) {
		if (!read_number(value, l->max_hz, &q->hz))
			return err_set(e, -EINVAL, "hz: '%s' is not a number from 1 to %u", value,
				       l->max_hz);
	} else if (!read_number(value, INT32_MAX, &q->pid)) {
		return err_set(e, -EINVAL, "pid: '%s' is not a number from 1 to %d", value,
			       INT32_MAX);
	}
	return 0;
}

static int unknown(const char *name, struct err *e)
{
	char known[PARAMETERS * NAME_MAX_BYTES];
	size_t len = 0;

	for (size_t i = 0; i < PARAMETERS; i++)
		len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s", i ? ", " : "",
					parameters[i].name);
	return err_set(e, -EINVAL, "unknown parameter '%s'; there are %s", name, known);
}

/* One NAME=VALUE of n bytes. *seen has a bit for each parameter. */
static int set_pair(const char *pair, size_t n, uint32_t *seen, const struct query_limits *l,
		    struct profile_request *q, struct err *e)
{
	const char *equals = memchr(pair, '=', n);
	size_t i, name_len = equals ? (size_t)(equals - pair) : n;
	char name[NAME_MAX_BYTES], value[QUERY_TEXT_MAX] = "";

	if (!decode(pair, name_len, name, sizeof(name)) || !is_utf8(name))
		return err_set(e, -EINVAL, "a parameter's name is too long or not text");
	for (i = 0; i < PARAMETERS && strcmp(name, parameters[i].name) != 0; i++)
		;
	if (i == PARAMETERS)
		return unknown(name, e);
	if (*seen & 1U << i)
		return err_set(e, -EINVAL, "%s is given twice", name);
	*seen |= 1U << i;
	if (equals && !decode(equals + 1, n - name_len - 1, value, sizeof(value)))
		return err_set(e, -EINVAL, "%s: not a text of at most %d bytes without control "
					   "characters", name, QUERY_TEXT_MAX - 1);
	if (!is_utf8(value))
		return err_set(e, -EINVAL, "%s: not UTF-8", name);
	if (!*value)
		return err_set(e, -EINVAL, "%s has no value", name);
	if (!parameters[i].text)
		return set_number(q, name, value, l, e);
	memcpy((char *)q + parameters[i].text, value, sizeof(value));
	return 0;
}

int query_parse(const char *query, size_t n, const struct query_limits *limits,
		struct profile_request *ret, struct err *e)
{
	struct profile_request q = { .duration_ns = QUERY_SECONDS * NS_PER_SECOND };
	uint32_t seen = 0;
	size_t len;
	int r;

	q.duration_ns = MIN(q.duration_ns, limits->max_duration_ns);
	for (; n; query += len, n -= len) {
		const char *end = memchr(query, '&', n);

		len = end ? (size_t)(end - query) : n;
		if (len) {	/* "a=1&&b=2&" has nothing to misunderstand */
			r = set_pair(query, len, &seen, limits, &q, e);
			if (r)
				return r;
		}
		len += end ? 1 : 0;
	}
	*ret = q;
	return 0;
}
