/* options.c - see options.h.
 *
 * Three parts, top to bottom: text to value (one function for each type, all behind option_set),
 * argv to texts (the walk), and help. Whether an option takes a value follows from its type alone,
 * so that a row can't contradict itself.
 */
#include "cli/options.h"

#include "base/buf.h"

#include <ctype.h>

enum {
	MAX_WORD = 32, /* longer words get no suggestion */
	TEXT_MAX = 32, /* a number, size or time in words */
	RANGE_MAX = 2 * TEXT_MAX + 16,
	HELP_COLUMNS = 80,
	HELP_INDENT = 27,
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

/* OPT_STRING and OPT_LIST */
static int set_text(const struct option_row *row, void *opts, const char *text, struct err *e)
{
	char **string = field(row, opts);
	char *copy;

	if (!*text)
		return err_set(e, -EINVAL, "--%s: the value (%s) is empty", row->name, row->arg);
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
		return set_text(row, opts, text, e);
	case OPT_U32_LIST:
		return set_u32_list(row, opts, text, e);
	case OPT_END:
		break;
	}
	return err_set(e, -EINVAL, "--%s: not an option", row->name);
}

void options_free(const struct option_row *rows, void *opts)
{
	const struct option_row *row;

	for (row = rows; row->type != OPT_END; row++) {
		if (row->type == OPT_STRING) {
			free(*(char **)field(row, opts));
			*(char **)field(row, opts) = NULL;
		} else if (row->type == OPT_LIST) {
			str_list_free(field(row, opts));
		} else if (row->type == OPT_U32_LIST) {
			free(((struct u32_list *)field(row, opts))->v);
			*(struct u32_list *)field(row, opts) = (struct u32_list){ 0 };
		}
	}
}

/* ---- suggestions ---- */

/* Letters to insert, delete, change or swap with the next to turn a into b (optimal string
 * alignment). Both at most MAX_WORD long; three rows of the usual table are enough. */
static size_t edit_distance(const char *a, const char *b)
{
	size_t rows[3][MAX_WORD + 1];
	size_t *prev2 = rows[0], *prev = rows[1], *cur = rows[2], *spare;
	size_t i, j, m = strlen(a), n = strlen(b);

	for (j = 0; j <= n; j++)
		prev[j] = j;
	for (i = 1; i <= m; i++) {
		cur[0] = i;
		for (j = 1; j <= n; j++) {
			cur[j] = MIN(prev[j], cur[j - 1]) + 1;
			cur[j] = MIN(cur[j], prev[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				cur[j] = MIN(cur[j], prev2[j - 2] + 1);
		}
		spare = prev2;
		prev2 = prev;
		prev = cur;
		cur = spare;
	}
	return prev[n];
}

const char *nearest_word(const char *word, const void *base, size_t n, size_t stride)
{
	size_t i, d, limit, best = SIZE_MAX, len = strlen(word);
	const char *w, *ret = NULL;

	for (i = 0; i < n; i++) {
		memcpy(&w, (const char *)base + i * stride, sizeof(w));
		if (!w || len > MAX_WORD || strlen(w) > MAX_WORD)
			continue;
		limit = MAX(MAX(len, strlen(w)) / 3, 1);
		d = len >= 2 && !strncmp(w, word, len) ? 0 : edit_distance(word, w);
		if (d <= limit && d < best && d < MAX(len, strlen(w))) {
			best = d;
			ret = w;
		}
	}
	return ret;
}

static size_t count_rows(const struct option_row *rows)
{
	size_t n = 0;

	while (rows[n].type != OPT_END)
		n++;
	return n;
}

static int unknown_long(const struct command *cmd, const char *name, size_t len, struct err *e)
{
	char word[MAX_WORD + 2];
	const char *near;

	snprintf(word, sizeof(word), "%.*s", (int)MIN(len, sizeof(word)), name);
	near = nearest_word(word, &cmd->rows->name, count_rows(cmd->rows), sizeof(*cmd->rows));
	if (!near && len == 1)
		return err_set(e, -EINVAL, "unknown option '--%s' (one letter takes one dash)",
			       word);
	return err_set(e, -EINVAL, "unknown option '--%.*s'%s%s%s", (int)MIN(len, 100), name,
		       near ? " (did you mean --" : "", near ? near : "", near ? "?)" : "");
}

static int unknown_letter(const struct command *cmd, char letter, const char *word, struct err *e)
{
	const struct option_row *row;

	/* "-freq 99" */
	for (row = cmd->rows; row->type != OPT_END; row++)
		if (strlen(word) > 2 && !strcmp(word + 1, row->name))
			return err_set(e, -EINVAL, "unknown option '%s' (did you mean --%s?)", word,
				       row->name);
	for (row = cmd->rows; row->type != OPT_END; row++)
		if (row->letter && tolower(row->letter) == tolower((unsigned char)letter))
			return err_set(e, -EINVAL, "unknown option '-%c' (did you mean -%c, --%s?)",
				       letter, row->letter, row->name);
	if (!isprint((unsigned char)letter))
		letter = '?';
	return err_set(e, -EINVAL, "unknown option '-%c'", letter);
}

/* ---- the walk over argv ---- */

enum { HELP_ASKED = 1 }; /* beside 0 and -errno */

struct walk {
	const struct command *cmd;
	void *opts;
	char **argv;
	int argc, next; /* argv[next] is read next */
	int n;		/* operands so far, collected in argv[1..n] */
};

/* The value of an option that needs one: what is joined to it, else the next word. */
static int take_value(struct walk *w, const struct option_row *row, const char *joined,
		      struct err *e)
{
	if (!joined) {
		if (w->next == w->argc)
			return err_set(e, -EINVAL, "--%s: the value (%s) is missing", row->name,
				       row->arg);
		joined = w->argv[w->next++];
	}
	return option_set(row, w->opts, joined, e);
}

static const struct option_row *find_long(const struct option_row *rows, const char *name,
					  size_t len)
{
	for (; rows->type != OPT_END; rows++)
		if (strlen(rows->name) == len && !memcmp(rows->name, name, len))
			return rows;
	return NULL;
}

/* name is behind the dashes: "freq=99" */
static int parse_long(struct walk *w, const char *name, struct err *e)
{
	size_t len = strcspn(name, "=");
	const char *value = name[len] ? name + len + 1 : NULL;
	const struct option_row *row = find_long(w->cmd->rows, name, len);

	if (row && row->type == OPT_FLAG)
		return option_set(row, w->opts, value ? value : "yes", e);
	if (row)
		return take_value(w, row, value, e);
	if (len == 4 && !value && !memcmp(name, "help", 4))
		return HELP_ASKED;
	if (len > 3 && !memcmp(name, "no-", 3)) {
		row = find_long(w->cmd->rows, name + 3, len - 3);
		if (row && row->type == OPT_FLAG && !value)
			return option_set(row, w->opts, "no", e);
		if (row && row->type == OPT_FLAG)
			return err_set(e, -EINVAL, "--no-%s takes no value", row->name);
	}
	return unknown_long(w->cmd, name, len, e);
}

/* word is "-qF99": flags until one that takes the rest, or the next word, as its value. */
static int parse_letters(struct walk *w, const char *word, struct err *e)
{
	const struct option_row *row;
	const char *s;
	int r;

	for (s = word + 1; *s; s++) {
		for (row = w->cmd->rows; row->type != OPT_END; row++)
			if (row->letter == *s)
				break;
		if (row->type == OPT_END)
			return *s == 'h' ? HELP_ASKED : unknown_letter(w->cmd, *s, word, e);
		if (row->type != OPT_FLAG)
			return take_value(w, row, s[1] ? s + 1 : NULL, e);
		r = option_set(row, w->opts, "yes", e);
		if (r)
			return r;
	}
	return 0;
}

static int set_defaults(const struct command *cmd, void *opts, struct err *e)
{
	const struct option_row *row;
	int r = 0;

	for (row = cmd->rows; !r && row->type != OPT_END; row++)
		if (row->def)
			r = option_set(row, opts, row->def, e);
	return r;
}

int options_parse(const struct command *cmd, void *opts, int argc, char **argv,
		  struct operands *ret, struct err *e)
{
	struct walk w = { .cmd = cmd, .opts = opts, .argv = argv, .argc = argc, .next = 1 };
	bool options_end = false;
	char *word;
	int r = set_defaults(cmd, opts, e);

	while (!r && w.next < argc) {
		word = argv[w.next++];
		if (options_end || word[0] != '-' || !word[1]) {
			argv[++w.n] = word; /* n < next: never ahead of what was read */
			options_end |= cmd->runs_command;
		} else if (!strcmp(word, "--")) {
			options_end = true;
		} else {
			r = word[1] == '-' ? parse_long(&w, word + 2, e)
					   : parse_letters(&w, word, e);
		}
	}
	if (r == HELP_ASKED)
		options_help(cmd, stdout);
	if (r)
		return r;
	if (w.n && !cmd->operands[0])
		return err_set(e, -EINVAL, "unexpected argument '%.100s'", argv[1]);
	argv[1 + w.n] = NULL;	/* n + 1 <= argc: at worst the NULL that is there */
	*ret = (struct operands){ .v = argv + 1, .n = w.n };
	return 0;
}

/* ---- help and messages ---- */

/* Prints text from column `at`, broken at spaces, further lines indented by HELP_INDENT. */
static void print_wrapped(FILE *out, size_t at, const char *text)
{
	size_t len;

	for (; *text; text += len) {
		text += strspn(text, " ");
		len = strcspn(text, " ");
		if (at > HELP_INDENT && at + 1 + len > HELP_COLUMNS) {
			fprintf(out, "\n%*s", HELP_INDENT, "");
			at = HELP_INDENT;
		} else if (at > HELP_INDENT) {
			fputc(' ', out);
			at++;
		}
		fprintf(out, "%.*s", (int)len, text);
		at += len;
	}
	fputc('\n', out);
}

/* What follows the help text: " (from 1 to 1000; default: 99)", or nothing. */
static void limits_text(const struct option_row *row, struct buf *b)
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
}

static void print_row(const struct option_row *row, FILE *out)
{
	struct buf limits = BUF_INIT(4096), text = BUF_INIT(8192);
	int n;

	if (row->letter)
		n = fprintf(out, "  -%c, ", row->letter);
	else
		n = fprintf(out, "      ");
	n += fprintf(out, "--%s%s%s", row->name, row->arg ? " " : "", row->arg ? row->arg : "");
	if (n + 2 > HELP_INDENT) {
		fputc('\n', out);
		n = 0;
	}
	fprintf(out, "%*s", HELP_INDENT - n, "");
	limits_text(row, &limits);
	buf_str(&text, row->help);
	if (limits.len)
		buf_printf(&text, " (%s)", limits.data);
	print_wrapped(out, HELP_INDENT, text.data ? text.data : row->help);
	buf_free(&limits);
	buf_free(&text);
}

void options_help(const struct command *cmd, FILE *out)
{
	static const struct option_row help = { .letter = 'h',
						.name = "help",
						.help = "this text" };
	static const struct option_row help_long = { .name = "help", .help = "this text" };
	const struct option_row *row;
	bool h_is_free = true;

	for (row = cmd->rows; row->type != OPT_END; row++)
		h_is_free &= row->letter != 'h';
	fprintf(out, "Usage: wick %s [OPTION...]%s%s\n%c%s.\n\nOptions:\n", cmd->name,
		cmd->operands[0] ? " " : "", cmd->operands, toupper((unsigned char)cmd->help[0]),
		cmd->help + 1);
	for (row = cmd->rows; row->type != OPT_END; row++)
		print_row(row, out);
	print_row(h_is_free ? &help : &help_long, out);
	if (cmd->notes)
		fprintf(out, "\n%s", cmd->notes);
}

int usage_error(const struct command *cmd, const struct err *e)
{
	fprintf(stderr, "wick %s: %s\nTry `wick %s --help`.\n", cmd->name, e->msg, cmd->name);
	return EXIT_USAGE;
}

int run_error(const struct command *cmd, const struct err *e)
{
	fprintf(stderr, "wick %s: %s\n", cmd->name, e->msg);
	return EXIT_FAIL;
}
