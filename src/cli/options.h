/* options.h - one table of options per command drives flags, defaults, ranges, help and errors.
 *
 *	struct record_options { uint32_t freq; struct str_list push; bool quiet; };
 *	static const struct option_row rows[] = {
 *		{ OPT_U32,  'F', "freq", "HZ", "samples per second and CPU",
 *		  offsetof(struct record_options, freq), .min = 1, .max = 1000, .def = "99" },
 *		{ OPT_LIST, 0, "push", "URL", "also send the result there (repeatable)",
 *		  .offset = offsetof(struct record_options, push) },
 *		{ OPT_FLAG, 'q', "quiet", NULL, "no summary",
 *		  .offset = offsetof(struct record_options, quiet) },
 *		{ .type = OPT_END } };
 *	r = options_parse(&cmd, &opts, argc, argv, &operands, &e);
 *
 * Accepted forms: -F99, -F 99, --freq=99, --freq 99, -qv (flags joined), "--" ends options. Flags
 * also as --quiet=yes, --quiet=no and --no-quiet. A long name is written out in full: what an
 * abbreviation means would change with the next option. The last value counts; lists collect. What
 * is left over are operands; options and operands may mix unless the command takes a COMMAND
 * operand, where the first operand ends the options. An unknown flag suggests the nearest one. A
 * command that also listens to a file and the environment (config.h) keeps struct option_values:
 * each row's source beside its value. Sources are read from the lowest to the highest; a higher one
 * replaces what a lower one has set, lists as a whole. Errors: -EINVAL with a sentence that names
 * the flag, the value and what is accepted, e.g. "--freq: 'abc' is not a number from 1 to 1000".
 * The caller prints it and exits 2. An empty value is an error for every type: --push="$URL" with
 * URL unset is a mistake, not a wish. Ownership: strings are copied; options_free() releases
 * everything the rows own.
 */
#ifndef WICK_OPTIONS_H
#define WICK_OPTIONS_H

#include "base/buf.h"
#include "base/list.h"

enum opt_type {
	OPT_END,
	OPT_FLAG,	/* bool; --no-NAME clears it; as text: yes no true false on off 1 0 */
	OPT_U32,	/* uint32_t, min..max; decimal digits only */
	OPT_SIZE,	/* uint64_t bytes, min..max; suffixes K M G, also k m g (powers of 1024) */
	OPT_SECONDS,	/* uint64_t nanoseconds from "10", "0.5", "250ms", "2m", "1h", with at most
			 * nine digits after the point; what is below 1 ns is cut; min..max in ns */
	OPT_STRING,	/* char * or NULL */
	OPT_CHOICE,	/* uint32_t index into choices */
	OPT_LIST,	/* struct str_list, repeatable */
	OPT_U32_LIST,	/* struct u32_list, comma-separated and repeatable, each min..max */
	OPT_FILE,	/* char * or NULL: path of a regular file, not empty, that can be read */
	OPT_STRUCTS,	/* array of structs, repeatable: see struct option_row, rows */
};

/* Where a value came from; the higher wins. */
enum option_source {
	SOURCE_NONE,
	SOURCE_DEFAULT,
	SOURCE_FILE,
	SOURCE_ENVIRONMENT,
	SOURCE_FLAG,
};

struct option_row {
	enum opt_type type;
	char letter;			/* 0: none */
	const char *name;		/* without the dashes */
	const char *arg;		/* shown in help: "HZ"; NULL for OPT_FLAG */
	const char *help;		/* one line */
	size_t offset;			/* of the field in the options struct */
	uint64_t min, max;		/* numbers; max 0 = no upper limit but the field's own */
	const char *def;		/* parsed like a value before the flags; NULL: zeroed.
					 * Lists start empty: flags would add to a default */
	const char *const *choices;	/* OPT_CHOICE: names, NULL-terminated */
	/* Judges a text beyond its type (strings, lists), or NULL: 0, or -EINVAL with a sentence
	 * that goes on after "--NAME: ". */
	int (*check)(const char *text, struct err *e);

	/* OPT_STRUCTS: the field is { struct element *v; size_t n, cap; }, the element's first
	 * member is uint32_t given, in which option_set_member() sets bit i for rows[i], and the
	 * rows' offsets count from the element. As text it is the value of rows[0] alone, or with
	 * pairs NAME=VALUE,... */
	const struct option_row *rows;
	size_t size;			/* of an element */
	bool pairs;

	/* For a file and the environment (config.h): */
	const char *key;		/* the name in a file, if that isn't the flag's */
	const char *joint;		/* OPT_LIST: key and value of a mapping, joined by this,
					 * are an element */
	bool no_key;			/* only a flag and a variable of the environment */
	bool live;			/* SIGHUP changes it while the command runs */
	/* Appends the text with what is secret in it replaced, for printing; NULL: nothing is. */
	void (*mask)(const char *text, struct buf *ret);
};

struct option_values {
	const struct option_row *rows;
	void *opts;			/* the struct, zeroed at first */
	uint8_t *sources;		/* enum option_source of each row, zeroed at first */
};

struct operands {
	char **v;			/* borrowed from argv, whose elements are moved around */
	int n;
};

struct command {
	const char *name;		/* "record" */
	const char *operands;		/* for usage: "[-- COMMAND [ARG...]]", "FILE..."; "": none
					 * are accepted */
	const char *help;		/* one line for `wick --help` */
	const char *notes;		/* more lines under `wick NAME --help`, or NULL */
	const struct option_row *rows;
	bool runs_command;		/* the first operand ends the options */
	/* argv[0] is the command's name; returns the exit status. */
	int (*run)(int argc, char **argv);
};

/* Exit statuses (DESIGN): */
enum { EXIT_OK = 0, EXIT_FAIL = 1, EXIT_USAGE = 2 };

/* Sets the defaults, then the flags. 0; 1 if --help or -h was asked for and the help printed to
 * stdout (the caller exits 0); -EINVAL with e; -ENOMEM with e. opts must be zeroed before; whatever
 * the result, options_free() releases it. A default that its own row refuses is a bug: -EINVAL. */
int must_check options_parse(const struct command *cmd, void *opts, int argc, char **argv,
			     struct operands *ret, struct err *e);
/* The two halves of it, for a command with more sources. options_flags() leaves argv as it is,
 * since a command that reads its sources again needs it again; such a command takes no operands. */
int must_check options_defaults(const struct option_values *v, struct err *e);
int must_check options_flags(const struct command *cmd, const struct option_values *v, int argc,
			     char *const *argv, struct err *e);
/* Sets one option from text. 0, or -EINVAL, -ENOMEM with e, and the field is as before. */
int must_check option_set(const struct option_row *row, void *opts, const char *text,
			  struct err *e);
/* The same, with its source: the first value of a higher source empties a list. -EINVAL also for
 * rows that the source isn't for. */
int must_check option_set_from(const struct option_values *v, const struct option_row *row,
			       enum option_source source, const char *text, struct err *e);
/* Frees what one field owns and zeroes it; numbers stay. */
void option_clear(const struct option_row *row, void *opts);
/* OPT_STRUCTS: adds an empty element, and sets one of its members. option_set_from()'s rule applies
 * to both together. *ret is borrowed until the next call. */
int must_check option_add(const struct option_values *v, const struct option_row *row,
			  enum option_source source, void **ret, struct err *e);
int must_check option_set_member(const struct option_row *member, const struct option_row *row,
				 void *element, const char *text, struct err *e);
int must_check option_add_element(const struct option_row *row, void *opts, void **ret,
				  struct err *e);	/* without a source */
/* Appends the range, the choices and the default, for help: "from 1 to 1000; default: 99". */
void option_limits(const struct option_row *row, struct buf *ret);
/* Appends the value as its own parser reads it, for every type but lists; nothing for an unset
 * string. */
void option_text(const struct option_row *row, const void *opts, struct buf *ret);
/* Frees strings and lists, and zeroes these fields. */
void options_free(const struct option_row *rows, void *opts);
/* Usage, every option with its argument, range and default, the notes; 80 columns. */
void options_help(const struct command *cmd, FILE *out);

size_t options_count(const struct option_row *rows);	/* without OPT_END */
/* NULL: none has this name. */
const struct option_row *option_by_name(const struct option_row *rows, const char *name,
					size_t len);

/* The one of n words that a user who typed `word` most likely meant, or NULL if none is near: a
 * word that begins with it, else the one with the fewest letters to change, at most a third of
 * them. words[i] is at (const char *)base + i * stride, a const char *, so that an array of
 * structs serves as it is; NULL elements are skipped. */
const char *nearest_word(const char *word, const void *base, size_t n, size_t stride);

/* Prints "wick NAME: sentence" to stderr and returns the exit status to use: EXIT_USAGE (with a
 * hint at --help) or EXIT_FAIL. */
int usage_error(const struct command *cmd, const struct err *e);
int run_error(const struct command *cmd, const struct err *e);

#endif
