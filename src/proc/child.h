/* child.h - start a command that waits until we are ready to watch it.
 *
 *	r = child_start(argv, &c, &e);		// forked, not yet executed
 *	... select c.pid ...
 *	r = child_go(&c, &e);			// executes now; -ENOENT: no such command
 *	... SIGCHLD ...
 *	if (child_reap(&c))
 *		status = child_exit_status(&c);	// its status, or 128 + signal
 *
 * The command runs with the signals and the session it would have without us. If we die before
 * child_go it exits without executing anything. One thread.
 */
#ifndef WICK_CHILD_H
#define WICK_CHILD_H

#include "base/base.h"

#include <sys/types.h>

struct child {
	pid_t pid;	/* 0: none, or reaped */
	int go;		/* a byte here starts it */
	int failed;	/* the errno of a failed exec arrives here */
	int status;	/* of waitpid, once reaped */
};

#define CHILD_INIT { .go = -1, .failed = -1 }

int must_check child_start(char **argv, struct child *ret, struct err *e);
int must_check child_go(struct child *c, struct err *e);
/* Whether it has ended; never waits. */
bool child_reap(struct child *c);
int child_exit_status(const struct child *c);
/* SIGTERM, then waits up to two seconds, then SIGKILL. For a child that still runs. */
void child_stop(struct child *c);
void child_done(struct child *c);	/* closes what is open; kills a child that never executed */

#endif
