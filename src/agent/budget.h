/* budget.h - the agent's own cost, held below what it was given.
 *
 *	struct budget b;
 *	budget_init(&b, &(struct budget_limits){ .freq = 19, .cpu = 0.02, .memory = 64 << 20 });
 *	once a window:
 *	what = budget_step(&b, &(struct budget_use){ .cpu_ns = ..., .wall_ns = ..., .memory = ... });
 *	if (what & BUDGET_FREQ)		sampler_set_frequency(s, b.freq)
 *	if (what & BUDGET_TRIM)		caches down to what is in use
 *
 * Above the CPU budget for BUDGET_PATIENCE windows in a row (the start and new programs cost tables and
 * names once, whatever the frequency) the frequency is halved, down to 1 Hz. It is doubled again when four windows in a row have shown that
 * twice their cost would fit in four fifths of the budget: cost doesn't grow faster than the frequency,
 * so this doesn't swing. Above the memory budget caches are trimmed, in each window anew; if that
 * hasn't helped after as many, the frequency goes down as well: fewer samples need fewer tables.
 *
 * Pure: no clock, no allocation.
 */
#ifndef WICK_BUDGET_H
#define WICK_BUDGET_H

#include "base/base.h"

enum {
	BUDGET_PATIENCE = 4,	/* windows above before the frequency goes down */
	BUDGET_CALM = 4,	/* windows well below before it goes up */
};

enum { BUDGET_FREQ = 1, BUDGET_TRIM = 2 };

struct budget_limits {
	uint32_t freq;		/* wanted, Hz */
	double cpu;		/* of one CPU; 0: no limit */
	uint64_t memory;	/* bytes, resident and in the kernel; 0: no limit */
};

struct budget_use {
	uint64_t cpu_ns, wall_ns;	/* since the last step */
	uint64_t memory;
};

struct budget {
	struct budget_limits limits;
	uint32_t freq;			/* in force */
	uint32_t above, below, full;	/* windows in a row: over the CPU's, well under, over memory's */
	uint64_t cpu_exceeded, memory_exceeded;	/* windows, ever */
};

void budget_init(struct budget *b, const struct budget_limits *limits);
/* Other limits from now on (a configuration that was read again); keeps what was learned. */
void budget_change(struct budget *b, const struct budget_limits *limits);
/* What the caller should do: bits of BUDGET_. */
unsigned int budget_step(struct budget *b, const struct budget_use *use);

#endif
