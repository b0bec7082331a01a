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
 * abbreviation means would change with the next option. The last value counts; lists collect.
 * What is left over are operands; options and operands may mix unless the command takes a COMMAND
 * operand, where the first operand ends the options. An unknown flag suggests the nearest one.
 * The same setter serves a configuration file and the environment later (option_set).
 * Errors: -EINVAL with a sentence that names the flag, the value and what is accepted, e.g.
 * "--freq: 'abc' is not a number from 1 to 1000". The caller prints it and exits 2. An empty value
 * is an error for every type: --push="$URL" with URL unset is a mistake, not a wish.
 * Ownership: strings are copied; options_free() releases everything the rows own.
 */
#ifndef WICK_OPTIONS_H
#define WICK_OPTIONS_H

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
/* Sets one option from text, as a configuration file does. 0, or -EINVAL, -ENOMEM with e, and the
 * field is as before. */
int must_check option_set(const struct option_row *row, void *opts, const char *text,
			  struct err *e);
/* Frees strings and lists, and zeroes these fields. */
void options_free(const struct option_row *rows, void *opts);
/* Usage, every option with its argument, range and default, the notes; 80 columns. */
void options_help(const struct command *cmd, FILE *out);

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
