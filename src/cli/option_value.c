/* option_value.c - text to value and back, one function for each type, all behind option_set; see
 * options.h. */
#include "cli/options.h"

#include <ctype.h>
#include <fcntl.h>
#include <sys/stat.h>

enum {
	TEXT_MAX = 32, /* a number, size or time in words */
	RANGE_MAX = 2 * TEXT_MAX + 16,
};

#define NS_PER_SECOND 1000000000ULL

static void *field(const struct option_row *row, void *opts)
{
	return (char *)opts + row->offset;
}

/* ---- numbers ---- */

/* Reads decimal digits at *p and moves *p behind them. False if there are none or too many. */
static bool read_digits(const char **p, uint64_t *ret)
{
	const char *s = *p;
	uint64_t v = 0;

	if (!isdigit((unsigned char)*s))
		return false;
	for (; isdigit((unsigned char)*s); s++)
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
			return false;
	*p = s;
	*ret = v;
	return true;
}

static bool parse_number(const char *s, uint64_t *ret)
{
	return read_digits(&s, ret) && !*s;
}

static bool parse_size(const char *s, uint64_t *ret)
{
	static const char units[] = "KMG";
	const char *unit;
	uint64_t v;

	if (!read_digits(&s, &v))
		return false;
	if (*s) {
		unit = strchr(units, toupper((unsigned char)*s));
		if (!unit || s[1])
			return false;
		if (__builtin_mul_overflow(v, 1ULL << (10 * (unit - units + 1)), &v))
			return false;
	}
	*ret = v;
	return true;
}

static const struct unit {
	const char *name;
	uint64_t ns;
} units_of_time[] = {
	/* descending; the first that divides a value is the one to show it in */
	{ "h", 3600 * NS_PER_SECOND },
	{ "m", 60 * NS_PER_SECOND },
	{ "s", NS_PER_SECOND },
	{ "ms", 1000000 },
};

static bool time_unit(const char *name, uint64_t *ret_ns)
{
	size_t i;

	if (!*name) {
		*ret_ns = NS_PER_SECOND;
		return true;
	}
	for (i = 0; i < ARRAY_SIZE(units_of_time); i++)
		if (!strcmp(name, units_of_time[i].name)) {
			*ret_ns = units_of_time[i].ns;
			return true;
		}
	return false;
}

/* "1.5h": the whole and the fraction are multiplied apart, so nothing is rounded by a double. */
static bool parse_seconds(const char *s, uint64_t *ret)
{
	uint64_t whole, fraction = 0, scale = 1, ns;
	const char *start;

	if (!read_digits(&s, &whole))
		return false;
	if (*s == '.') {
		start = ++s;
		if (!read_digits(&s, &fraction) || s - start > 9)
			return false;
		for (; start < s; start++)
			scale *= 10;
	}
	if (!time_unit(s, &ns))
		return false;
	/* less than a unit: the product needs 72 bits, the quotient 42 */
	fraction = (uint64_t)((unsigned __int128)fraction * ns / scale);
	return !__builtin_mul_overflow(whole, ns, &whole) &&
	       !__builtin_add_overflow(whole, fraction, ret);
}

static void size_text(uint64_t v, char text[static TEXT_MAX])
{
	static const char *const suffixes[] = { "", "K", "M", "G" };
	size_t k = ARRAY_SIZE(suffixes) - 1;

	while (k && (!v || v & ((1ULL << 10 * k) - 1)))
		k--;
	snprintf(text, TEXT_MAX, "%llu%s", (unsigned long long)(v >> 10 * k), suffixes[k]);
}

static void seconds_text(uint64_t v, char text[static TEXT_MAX])
{
	size_t i = 0;

	while (i < ARRAY_SIZE(units_of_time) && v % units_of_time[i].ns)
		i++;
	if (!v)
		snprintf(text, TEXT_MAX, "0");
	else if (i < ARRAY_SIZE(units_of_time))
		snprintf(text, TEXT_MAX, "%llu%s", (unsigned long long)(v / units_of_time[i].ns),
			 units_of_time[i].name);
	else
		snprintf(text, TEXT_MAX, "%llu.%09llus", (unsigned long long)(v / NS_PER_SECOND),
			 (unsigned long long)(v % NS_PER_SECOND));
}

/* A value as its own parser would read it back. */
static const char *number_text(enum opt_type type, uint64_t v, char text[static TEXT_MAX])
{
	if (type == OPT_SIZE)
		size_text(v, text);
	else if (type == OPT_SECONDS)
		seconds_text(v, text);
	else
		snprintf(text, TEXT_MAX, "%llu", (unsigned long long)v);
	return text;
}

static bool is_32_bit(const struct option_row *row)
{
	return row->type == OPT_U32 || row->type == OPT_U32_LIST;
}

static uint64_t highest(const struct option_row *row)
{
	uint64_t limit = is_32_bit(row) ? UINT32_MAX : UINT64_MAX;

	return row->max ? MIN(row->max, limit) : limit;
}

static bool in_range(const struct option_row *row, uint64_t v)
{
	return v >= row->min && v <= highest(row);
}

/* "from 1 to 1000", "from 1", or "" if the type alone is the limit. */
static const char *range_text(const struct option_row *row, char text[static RANGE_MAX])
{
	char low[TEXT_MAX], high[TEXT_MAX];
	uint64_t max = highest(row);

	number_text(row->type, row->min, low);
	if (max < (is_32_bit(row) ? UINT32_MAX : UINT64_MAX))
		snprintf(text, RANGE_MAX, "from %s to %s", low, number_text(row->type, max, high));
	else if (row->min)
		snprintf(text, RANGE_MAX, "from %s", low);
	else
		text[0] = '\0';
	return text;
}

/* ---- one setter for each type; the field changes only on success ---- */

static int bad_number(const struct option_row *row, const char *value, struct err *e)
{
	const char *kind = "a number", *example = "";
	char range[RANGE_MAX];

	range_text(row, range);
	if (row->type == OPT_SIZE) {
		kind = "a size";
		example = " (64M, 1G)";
	} else if (row->type == OPT_SECONDS) {
		kind = "a time";
		example = " (10, 0.5, 250ms, 2m, 1h)";
	} else if (!strstr(range, " to ")) {
		snprintf(range, sizeof(range), "from %u to %u", (unsigned int)row->min, UINT32_MAX);
	}
	return err_set(e, -EINVAL, "--%s: '%.100s' is not %s%s%s%s", row->name, value, kind,
		       range[0] ? " " : "", range, example);
}

static int set_number(const struct option_row *row, void *opts, const char *text, struct err *e)
{
	uint64_t v;
	bool ok = row->type == OPT_SIZE	     ? parse_size(text, &v)
		  : row->type == OPT_SECONDS ? parse_seconds(text, &v)
					     : parse_number(text, &v);

	if (!ok || !in_range(row, v))
		return bad_number(row, text, e);
	if (row->type == OPT_U32)
		*(uint32_t *)field(row, opts) = (uint32_t)v;
	else
		*(uint64_t *)field(row, opts) = v;
	return 0;
}

static int set_flag(const struct option_row *row, void *opts, const char *text, struct err *e)
{
	static const char *const words[] = { "no", "yes", "false", "true", "off", "on", "0", "1" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(text, words[i])) {
			*(bool *)field(row, opts) = i % 2;
			return 0;
		}
	return err_set(e, -EINVAL, "--%s: '%.100s' is not yes or no", row->name, text);
}

static int set_choice(const struct option_row *row, void *opts, const char *text, struct err *e)
{
	struct buf list = BUF_INIT(sizeof(e->msg));
	uint32_t i;

	for (i = 0; row->choices[i]; i++) {
		if (!strcmp(text, row->choices[i])) {
			*(uint32_t *)field(row, opts) = i;
			buf_free(&list);
			return 0;
		}
		buf_printf(&list, "%s%s", i ? ", " : "", row->choices[i]);
	}
	err_set(e, -EINVAL, "--%s: '%.100s' is not one of %s", row->name, text,
		list.data ? list.data : "");
	buf_free(&list);
	return -EINVAL;
}

static int no_memory(struct err *e)
{
	return err_set(e, -ENOMEM, "out of memory");
}

/* Something regular, with something in it: a token that is a directory or empty is a mistake that
 * would otherwise show as a refusal by a server, later. What isn't regular isn't even opened. */
static int check_file(const char *path, struct err *e)
{
	cleanup(fd_cleanup) int fd = -1;
	struct stat st;

	if (stat(path, &st))
		return err_set(e, -EINVAL, "'%.200s' can't be read: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "'%.200s' is not a regular file", path);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return err_set(e, -EINVAL, "'%.200s' can't be read: %s", path, strerror(errno));
	return st.st_size ? 0 : err_set(e, -EINVAL, "'%.200s' is empty", path);
}

/* OPT_STRING, OPT_LIST and OPT_FILE */
static int set_text(const struct option_row *row, void *opts, const char *text, struct err *e)
{
	char **string = field(row, opts);
	struct err why = { "" };
	char *copy;
	int r = 0;

	if (!*text)
		return err_set(e, -EINVAL, "--%s: the value (%s) is empty", row->name, row->arg);
	if (row->check)
		r = row->check(text, &why);
	if (!r && row->type == OPT_FILE)
		r = check_file(text, &why);
	if (r)
		return err_set(e, r, "--%s: %s", row->name, why.msg);
	if (row->type == OPT_LIST)
		return str_list_add(field(row, opts), text) ? no_memory(e) : 0;
	copy = strdup(text);
	if (!copy)
		return no_memory(e);
	free(*string);
	*string = copy;
	return 0;
}

/* "1,2,3": on an error list->n is put back, so that half a value is never kept. */
static int set_u32_list(const struct option_row *row, void *opts, const char *text, struct err *e)
{
	struct u32_list *list = field(row, opts);
	size_t before = list->n, nth = 1, len;
	const char *s = text;
	char element[TEXT_MAX];
	uint64_t v;

	for (;; s += len + 1, nth++) {
		len = strcspn(s, ",");
		snprintf(element, sizeof(element), "%.*s", (int)MIN(len, sizeof(element)), s);
		if (!len) {
			list->n = before;
			return err_set(e, -EINVAL, "--%s: '%.100s': element %zu is empty",
				       row->name, text, nth);
		}
		if (!parse_number(element, &v) || !in_range(row, v)) {
			list->n = before;
			return bad_number(row, element, e);
		}
		if (array_grow(&list->v, &list->cap, list->n + 1, sizeof(*list->v))) {
			list->n = before;
			return no_memory(e);
		}
		list->v[list->n++] = (uint32_t)v;
		if (!s[len])
			return 0;
	}
}

/* What every array of structs looks like from here; see array_grow. */
struct any_list {
	char *v;
	size_t n, cap;
};

static struct any_list get_list(const struct option_row *row, const void *opts)
{
	struct any_list l;

	memcpy(&l, (const char *)opts + row->offset, sizeof(l));
	return l;
}

static void put_list(const struct option_row *row, void *opts, struct any_list l)
{
	memcpy(field(row, opts), &l, sizeof(l));
}

int option_add_element(const struct option_row *row, void *opts, void **ret, struct err *e)
{
	struct any_list l = get_list(row, opts);

	if (array_grow(&l.v, &l.cap, l.n + 1, row->size))
		return no_memory(e);
	*ret = memset(l.v + l.n++ * row->size, 0, row->size);
	put_list(row, opts, l);
	return 0;
}

static void drop_last_element(const struct option_row *row, void *opts)
{
	struct any_list l = get_list(row, opts);

	options_free(row->rows, l.v + --l.n * row->size);
	put_list(row, opts, l);
}

int option_set_member(const struct option_row *member, const struct option_row *row, void *element,
		      const char *text, struct err *e)
{
	uint32_t *given = element;
	int r = option_set(member, element, text, e);

	if (!r)
		*given |= 1U << (member - row->rows);
	return r;
}

/* "NAME=VALUE,NAME=VALUE" */
static int set_pairs(const struct option_row *row, void *element, const char *text, struct err *e)
{
	const struct option_row *member;
	cleanup(freep_cleanup) char *copy = strdup(text);
	char *rest = copy, *pair, *value;
	int r = copy ? 0 : no_memory(e);

	while (!r && (pair = strsep(&rest, ","))) {
		value = strchr(pair, '=');
		if (!value)
			return err_set(e, -EINVAL, "--%s: '%.100s' is not %s", row->name, pair,
				       row->arg);
		*value++ = '\0';
		member = option_by_name(row->rows, pair, strlen(pair));
		if (!member)
			return err_set(e, -EINVAL, "--%s: unknown name '%.100s'", row->name, pair);
		r = option_set_member(member, row, element, value, e);
	}
	return r;
}

static int set_struct(const struct option_row *row, void *opts, const char *text, struct err *e)
{
	struct err why = { ":" };
	void *element;
	int r;

	if (!*text)
		return err_set(e, -EINVAL, "--%s: the value (%s) is empty", row->name, row->arg);
	r = option_add_element(row, opts, &element, e);
	if (r)
		return r;
	if (row->pairs)
		r = set_pairs(row, element, text, e);
	else
		r = option_set_member(row->rows, row, element, text, &why);
	if (r)
		drop_last_element(row, opts);
	if (r && !row->pairs)	/* "--url: ..." is about --push here */
		err_set(e, r, "--%s%s", row->name, why.msg + strcspn(why.msg, ":"));
	return r;
}

int option_set(const struct option_row *row, void *opts, const char *text, struct err *e)
{
	switch (row->type) {
	case OPT_FLAG:
		return set_flag(row, opts, text, e);
	case OPT_U32:
	case OPT_SIZE:
	case OPT_SECONDS:
		return set_number(row, opts, text, e);
	case OPT_CHOICE:
		return set_choice(row, opts, text, e);
	case OPT_STRING:
	case OPT_LIST:
	case OPT_FILE:
		return set_text(row, opts, text, e);
	case OPT_U32_LIST:
		return set_u32_list(row, opts, text, e);
	case OPT_STRUCTS:
		return set_struct(row, opts, text, e);
	case OPT_END:
		break;
	}
	return err_set(e, -EINVAL, "--%s: not an option", row->name);
}

void option_clear(const struct option_row *row, void *opts)
{
	struct u32_list *numbers = field(row, opts);
	struct any_list l;

	switch (row->type) {
	case OPT_STRING:
	case OPT_FILE:
		free(*(char **)field(row, opts));
		*(char **)field(row, opts) = NULL;
		break;
	case OPT_LIST:
		str_list_free(field(row, opts));
		break;
	case OPT_U32_LIST:
		free(numbers->v);
		*numbers = (struct u32_list){ 0 };
		break;
	case OPT_STRUCTS:
		while (get_list(row, opts).n)
			drop_last_element(row, opts);
		l = get_list(row, opts);
		free(l.v);
		put_list(row, opts, (struct any_list){ 0 });
		break;
	default:
		break;
	}
}

void options_free(const struct option_row *rows, void *opts)
{
	const struct option_row *row;

	for (row = rows; row->type != OPT_END; row++)
		option_clear(row, opts);
}

void option_text(const struct option_row *row, const void *opts, struct buf *ret)
{
	const char *value = (const char *)opts + row->offset;
	char text[TEXT_MAX], *string;
	uint32_t small;
	uint64_t large;

	memcpy(&small, value, sizeof(small));
	switch (row->type) {
	case OPT_FLAG:
		buf_str(ret, *(const bool *)value ? "yes" : "no");
		break;
	case OPT_U32:
		buf_printf(ret, "%u", small);
		break;
	case OPT_CHOICE:
		buf_str(ret, row->choices[small]);
		break;
	case OPT_SIZE:
	case OPT_SECONDS:
		memcpy(&large, value, sizeof(large));
		buf_str(ret, number_text(row->type, large, text));
		break;
	case OPT_STRING:
	case OPT_FILE:
		memcpy(&string, value, sizeof(string));
		buf_str(ret, string ? string : "");
		break;
	default:
		break;
	}
}

void option_limits(const struct option_row *row, struct buf *b)
{
	char range[RANGE_MAX] = "";
	size_t i, before = b->len;

	if (row->type == OPT_CHOICE)
		for (i = 0; row->choices[i]; i++)
			buf_printf(b, "%s%s", i ? ", " : "one of ", row->choices[i]);
	else if (is_32_bit(row) || row->type == OPT_SIZE || row->type == OPT_SECONDS)
		buf_str(b, range_text(row, range));
	if (row->def)
		buf_printf(b, "%sdefault: %s", b->len > before ? "; " : "", row->def);
	if (row->live)
		buf_printf(b, "%sSIGHUP", b->len > before ? "; " : "");
}
