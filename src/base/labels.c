/* labels.c - see labels.h. */
#include "base/labels.h"

static bool name_char(char c, bool first)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
	       (!first && c >= '0' && c <= '9');
}

/* -EINVAL for "". */
static int clean_name(const char *name, char ret[static LABEL_NAME_MAX])
{
	size_t n = 0;

	if (!*name)
		return -EINVAL;
	if (!name_char(*name, true) && name_char(*name, false))
		ret[n++] = '_';		/* a digit: keep it */
	else if (name[0] == '_' && name[1] == '_')
		name++;
	for (; *name && n < LABEL_NAME_MAX - 1; name++) {
		ret[n] = name_char(*name, n == 0) ? *name : '_';
		/* "..a" would become the servers' own "__a" */
		if (n != 1 || ret[0] != '_' || ret[1] != '_')
			n++;
	}
	ret[n] = 0;
	return 0;
}

/* Cuts at the end of a character: bytes 10xxxxxx continue one. */
static size_t cut(const char *s, size_t n, size_t max)
{
	if (n <= max)
		return n;
	while (max && ((unsigned char)s[max] & 0xc0) == 0x80)
		max--;
	return max;
}

static int clean_value(const char *value, char **ret)
{
	struct buf b = BUF_INIT(8 * LABEL_VALUE_MAX);
	size_t n;
	int r;

	buf_utf8(&b, value, strnlen(value, LABEL_VALUE_MAX));
	r = buf_take(&b, ret, &n);
	if (r)
		return r;
	(*ret)[cut(*ret, n, LABEL_VALUE_MAX - 1)] = 0;
	for (char *c = *ret; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = ' ';
	return 0;
}

/* The index of name, or of where it belongs. */
static size_t find(const struct labels *l, const char *name, bool *ret_found)
{
	size_t i = 0;
	int order = 1;

	while (i < l->n && (order = strcmp(l->v[i].name, name)) < 0)
		i++;
	*ret_found = i < l->n && order == 0;
	return i;
}

static void drop(struct labels *l, size_t i)
{
	free(l->v[i].name);
	free(l->v[i].value);
	memmove(l->v + i, l->v + i + 1, (l->n - i - 1) * sizeof(*l->v));
	l->n--;
}

static int insert(struct labels *l, size_t i, const char *name, char *value)
{
	const bool service = !strcmp(name, LABELS_SERVICE);
	char *copy;
	int r;

	if (!service && l->n - !!labels_get(l, LABELS_SERVICE) >= LABELS_MAX)
		return -E2BIG;
	r = array_grow(&l->v, &l->cap, l->n + 1, sizeof(*l->v));
	if (r)
		return r;
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	memmove(l->v + i + 1, l->v + i, (l->n - i) * sizeof(*l->v));
	l->v[i] = (struct label){ copy, value };
	l->n++;
	return 0;
}

int labels_set(struct labels *l, const char *name, const char *value)
{
	char clean[LABEL_NAME_MAX], *text;
	bool found;
	size_t i;
	int r = clean_name(name, clean);

	if (!r && !*value) {
		labels_remove(l, clean);
		return 0;
	}
	if (!r)
		r = clean_value(value, &text);
	if (r)
		return r;
	i = find(l, clean, &found);
	if (found) {
		free(l->v[i].value);
		l->v[i].value = text;
		return 0;
	}
	r = insert(l, i, clean, text);
	if (r)
		free(text);
	return r;
}

int labels_default(struct labels *l, const char *name, const char *value)
{
	return labels_get(l, name) ? 0 : labels_set(l, name, value);
}

void labels_remove(struct labels *l, const char *name)
{
	char clean[LABEL_NAME_MAX];
	bool found;
	size_t i;

	if (clean_name(name, clean))
		return;
	i = find(l, clean, &found);
	if (found)
		drop(l, i);
}

const char *labels_get(const struct labels *l, const char *name)
{
	char clean[LABEL_NAME_MAX];
	bool found;
	size_t i;

	if (clean_name(name, clean))
		return NULL;
	i = find(l, clean, &found);
	return found ? l->v[i].value : NULL;
}

int labels_copy(const struct labels *from, struct labels *ret)
{
	struct labels copy = LABELS_INIT;

	for (size_t i = 0; i < from->n; i++) {
		int r = labels_set(&copy, from->v[i].name, from->v[i].value);

		if (r) {
			labels_free(&copy);
			return r;
		}
	}
	*ret = copy;
	return 0;
}

void labels_free(struct labels *l)
{
	while (l->n)
		drop(l, l->n - 1);
	free(l->v);
	*l = (struct labels)LABELS_INIT;
}

int labels_compare(const struct labels *a, const struct labels *b)
{
	for (size_t i = 0; i < a->n && i < b->n; i++) {
		int order = strcmp(a->v[i].name, b->v[i].name);

		if (!order)
			order = strcmp(a->v[i].value, b->v[i].value);
		if (order)
			return order;
	}
	return (a->n > b->n) - (a->n < b->n);
}

void labels_text(const struct labels *l, struct buf *b)
{
	buf_char(b, '{');
	for (size_t i = 0; i < l->n; i++) {
		buf_printf(b, "%s%s=\"", i ? "," : "", l->v[i].name);
		for (const char *c = l->v[i].value; *c; c++) {
			if (*c == '"' || *c == '\\')
				buf_char(b, '\\');
			buf_char(b, *c);
		}
		buf_char(b, '"');
	}
	buf_char(b, '}');
}
