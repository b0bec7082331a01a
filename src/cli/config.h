/* config.h - options from a YAML file and from the environment, by the same table as flags.
 *
 *	freq: 49                        # --freq, WICK_FREQ
 *	spool: { dir: /var/lib/wick }   # --spool-dir, WICK_SPOOL_DIR
 *	spool_bytes: 64M                # the same as bytes: in spool
 *	labels: { team: a, env: prod }  # --label team=a --label env=prod
 *	push:                           # --push, and what only a file can say: of one server alone
 *	  - https://one
 *	  - { url: https://two, tenant: b }
 *
 * One rule makes the names: an option's flag is its path of keys in the file joined by dashes, and
 * "_" and "." in a key are dashes; a variable is WICK_ and the flag in capitals with underscores.
 * (A row's `key` is another name that is accepted in the file.) Values are texts that option_set
 * understands, so that a size is "64M" everywhere.
 *
 * Accepted is the part of YAML that says one thing in one way: one document, block or flow style,
 * quoted or plain. Anchors, aliases, tags and merge keys are refused, null isn't a value, and no
 * key may stand twice. Cost: one pass; a file of at most CONFIG_MAX_BYTES.
 */
#ifndef WICK_CONFIG_H
#define WICK_CONFIG_H

#include "cli/options.h"

enum { CONFIG_MAX_BYTES = 1 << 20 };

#define CONFIG_ENVIRONMENT_PREFIX "WICK_"

/* Reads a file. 0; -EINVAL with a sentence that begins with "PATH:LINE:COLUMN: " (or "PATH: " if it
 * can't be read); -ENOMEM. After a failure some options are set. */
int must_check config_file(const struct option_values *v, const char *path, struct err *e);
/* The same for n bytes of text; name stands for the path in messages. */
int must_check config_text(const struct option_values *v, const char *name, const char *text,
			   size_t n, struct err *e);

/* Takes what variables (as environ has them) say. The elements of a list are separated by ";" or
 * stand on lines of their own. 0; -EINVAL with a sentence that begins with the variable's name;
 * -ENOMEM. Variables that begin with WICK_ and mean nothing are left alone and appended to
 * ret_unknown, unless that is NULL, each followed by a newline: Kubernetes makes WICK_PORT and the
 * like for a Service named wick, so they are no error; those that look like a Service's aren't
 * listed. */
int must_check config_environment(const struct option_values *v, char *const *variables,
				  struct buf *ret_unknown, struct err *e);

/* Appends all values as a file that config_text() reads back, each with its source in a comment,
 * secrets replaced (row->mask). */
void config_print(const struct option_values *v, struct buf *ret);
/* Whether two structs have the same value there. */
bool config_same(const struct option_row *row, const void *a, const void *b);

#endif
