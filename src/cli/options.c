/* options.c - see options.h.
 *
 * Three parts, top to bottom: sources, argv to texts (the walk), and help. What a text means is in
 * option_value.c. Whether an option takes a value follows from its type alone, so that a row can't
 * contradict itself.
 */
#include "cli/options.h"

#include <ctype.h>

enum {
	MAX_WORD = 32, /* longer words get no suggestion */
	HELP_COLUMNS = 80,
	HELP_INDENT = 27,
};

static int no_memory(struct err *e)
{
	return err_set(e, -ENOMEM, "out of memory");
}

const struct option_row *option_by_name(const struct option_row *rows, const char *name,
					size_t len)
{
	for (; rows->type != OPT_END; rows++)
		if (strlen(rows->name) == len && !memcmp(rows->name, name, len))
			return rows;
	return NULL;
}

/* ---- sources ---- */

/* Claims a row for a source: a list of a lower one is forgotten. */
static int claim(const struct option_values *v, const struct option_row *row,
		 enum option_source source, struct err *e)
{
	uint8_t *from = &v->sources[row - v->rows];
	bool is_list = row->type == OPT_LIST || row->type == OPT_U32_LIST ||
		       row->type == OPT_STRUCTS;

	if (source == SOURCE_FILE && row->no_key)
		return err_set(e, -EINVAL, "--%s: only on the command line", row->name);
	if (*from < source && is_list)
		option_clear(row, v->opts);
	*from = (uint8_t)source;
	return 0;
}

int option_set_from(const struct option_values *v, const struct option_row *row,
		    enum option_source source, const char *text, struct err *e)
{
	int r = claim(v, row, source, e);

	return r ? r : option_set(row, v->opts, text, e);
}

int option_add(const struct option_values *v, const struct option_row *row,
	       enum option_source source, void **ret, struct err *e)
{
	int r = claim(v, row, source, e);

	return r ? r : option_add_element(row, v->opts, ret, e);
}

int options_defaults(const struct option_values *v, struct err *e)
{
	const struct option_row *row;
	int r = 0;

	for (row = v->rows; !r && row->type != OPT_END; row++)
		if (row->def)
			r = option_set_from(v, row, SOURCE_DEFAULT, row->def, e);
	return r;
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

size_t options_count(const struct option_row *rows)
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
	near = nearest_word(word, &cmd->rows->name, options_count(cmd->rows), sizeof(*cmd->rows));
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
	const struct option_values *v;
	char *const *argv;
	int argc, next; /* argv[next] is read next */
};

static int set_flagged(struct walk *w, const struct option_row *row, const char *text,
		       struct err *e)
{
	return option_set_from(w->v, row, SOURCE_FLAG, text, e);
}

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
	return set_flagged(w, row, joined, e);
}

/* name is behind the dashes: "freq=99" */
static int parse_long(struct walk *w, const char *name, struct err *e)
{
	size_t len = strcspn(name, "=");
	const char *value = name[len] ? name + len + 1 : NULL;
	const struct option_row *row = option_by_name(w->cmd->rows, name, len);

	if (row && row->type == OPT_FLAG)
		return set_flagged(w, row, value ? value : "yes", e);
	if (row)
		return take_value(w, row, value, e);
	if (len == 4 && !value && !memcmp(name, "help", 4))
		return HELP_ASKED;
	if (len > 3 && !memcmp(name, "no-", 3)) {
		row = option_by_name(w->cmd->rows, name + 3, len - 3);
		if (row && row->type == OPT_FLAG && !value)
			return set_flagged(w, row, "no", e);
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
		r = set_flagged(w, row, "yes", e);
		if (r)
			return r;
	}
	return 0;
}

/* Walks over argv; operands are counted, and collected in operands[1..n] unless that is NULL (it
 * may be argv itself, since no more are collected than were read). */
static int walk(struct walk *w, char **operands, int *ret_n, struct err *e)
{
	bool options_end = false;
	char *word;
	int r = 0;

	*ret_n = 0;
	while (!r && w->next < w->argc) {
		word = w->argv[w->next++];
		if (options_end || word[0] != '-' || !word[1]) {
			++*ret_n;
			if (!w->cmd->operands[0])
				return err_set(e, -EINVAL, "unexpected argument '%.100s'", word);
			if (operands)
				operands[*ret_n] = word;
			options_end |= w->cmd->runs_command;
		} else if (!strcmp(word, "--")) {
			options_end = true;
		} else {
			r = word[1] == '-' ? parse_long(w, word + 2, e)
					   : parse_letters(w, word, e);
		}
	}
	if (r == HELP_ASKED)
		options_help(w->cmd, stdout);
	return r;
}

int options_flags(const struct command *cmd, const struct option_values *v, int argc,
		  char *const *argv, struct err *e)
{
	struct walk w = { .cmd = cmd, .v = v, .argv = argv, .argc = argc, .next = 1 };
	int n;

	return walk(&w, NULL, &n, e);
}

int options_parse(const struct command *cmd, void *opts, int argc, char **argv,
		  struct operands *ret, struct err *e)
{
	cleanup(freep_cleanup) uint8_t *sources = calloc(options_count(cmd->rows) + 1, 1);
	struct option_values v = { .rows = cmd->rows, .opts = opts, .sources = sources };
	struct walk w = { .cmd = cmd, .v = &v, .argv = argv, .argc = argc, .next = 1 };
	int n, r = sources ? options_defaults(&v, e) : no_memory(e);

	if (!r)
		r = walk(&w, argv, &n, e);
	if (r)
		return r;
	argv[1 + n] = NULL;	/* n + 1 <= argc: at worst the NULL that is there */
	*ret = (struct operands){ .v = argv + 1, .n = n };
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
	option_limits(row, &limits);
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
