/* agent.h - profile a node continuously and deliver it (`wick agent`).
 *
 *	r = agent_run(&options, &reread, &e);	// until SIGTERM or SIGINT
 *
 *	recorder (this thread) --window--> builder (thread) --series--> delivery (thread) --> servers
 *	       \--tap--> sessions <--- HTTP side (threads): profiles on demand, metrics, health
 *	workloads (thread): cgroups, pods and units give samples their labels
 *
 * Windows are aligned to multiples of their length and contiguous: [start, end). The first one is
 * shorter, and so is the last. If the wall clock is set, the next window starts at the new time.
 *
 * Signals: SIGTERM and SIGINT end the window, build it, deliver what can be delivered within
 * options.grace_ns and leave the rest to the spool. SIGHUP reads the configuration again. The caller
 * must not have threads yet: agent_run() blocks these signals for all that it starts.
 *
 * 0 after a signal; else what kept it from starting or going on, with a sentence.
 */
#ifndef WICK_AGENT_H
#define WICK_AGENT_H

#include "agent/options.h"

/* reread may be NULL: SIGHUP is then ignored. */
int must_check agent_run(const struct agent_options *o, const struct agent_reread *reread,
			 struct err *e);

#endif
