/* agent_options.h - the table of the agent's options, and their sources put together.
 *
 *	struct agent_config c;
 *	r = agent_config_read(&cmd, argc, argv, environ, &c, &e);
 *	... c.o ...
 *	agent_config_free(&c);
 *
 * Flags go over the environment, that over the file (--config), that over the defaults. The same
 * argv can be read again later: that is how SIGHUP works.
 */
#ifndef WICK_AGENT_CONFIG_H
#define WICK_AGENT_CONFIG_H

#include "agent/options.h"
#include "cli/config.h"

struct agent_config {
	struct agent_options o;
	char *file;			/* --config; NULL: none */
	bool check;			/* --check-config */
	struct buf unknown;		/* variables WICK_... that mean nothing, one a line */
	uint8_t *sources;		/* of each row */
};

extern const struct option_row agent_rows[];	/* offsets count from struct agent_config */

/* 0; 1 if --help was asked for and printed; -EINVAL with a sentence that says where the mistake is
 * (flag, variable, or file with line and column); -ENOMEM. Whatever the result,
 * agent_config_free(). */
int must_check agent_config_read(const struct command *cmd, int argc, char *const *argv,
				 char *const *variables, struct agent_config *ret, struct err *e);
void agent_config_free(struct agent_config *c);
/* Appends the effective configuration as a file, secrets masked. */
void agent_config_print(const struct agent_config *c, struct buf *ret);
/* Appends the names of the options that differ and aren't live, separated by ", ". */
void agent_config_changed(const struct agent_config *a, const struct agent_config *b,
			  struct buf *ret);

#endif
