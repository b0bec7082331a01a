/* event.h - the perf events that wick samples by, under perf's names.
 *
 * The clock is the default: it needs no PMU and ticks in every virtual machine. Counting events
 * sample about HZ times a second and CPU (frequency mode); each sample weighs the events since the
 * last one. A hardware event on a host without a PMU is an error that says so; `cycles` alone falls
 * back to the clock, as both answer "where does CPU time go".
 */
#ifndef WICK_EVENT_H
#define WICK_EVENT_H

#include "base/base.h"

struct event {
	const char *name;	/* as perf list has it */
	uint32_t type;		/* PERF_TYPE_* */
	uint64_t config;
	bool clock;		/* samples are time: value = count x period */
	bool falls_back;	/* to cpu-clock without a PMU */
};

/* NULL: no such event; names() lists them for the message. */
const struct event *event_by_name(const char *name);
const struct event *event_clock(void);		/* cpu-clock */
void event_names(char *buf, size_t size);	/* "cpu-clock, task-clock, ..." */

#endif
