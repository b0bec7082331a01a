/* budget.c - see budget.h. */
#include "agent/budget.h"

void budget_init(struct budget *b, const struct budget_limits *limits)
{
	*b = (struct budget){ .limits = *limits, .freq = limits->freq };
}

void budget_change(struct budget *b, const struct budget_limits *limits)
{
	bool lowered = b->freq < b->limits.freq;

	b->limits = *limits;
	b->freq = lowered ? MIN(b->freq, limits->freq) : limits->freq;
}

static bool over_cpu(struct budget *b, const struct budget_use *use)
{
	double share = use->wall_ns ? (double)use->cpu_ns / (double)use->wall_ns : 0;
	bool fits = !b->limits.cpu || 2 * share <= 0.8 * b->limits.cpu;
	bool over = b->limits.cpu && share > b->limits.cpu;

	b->above = over ? b->above + 1 : 0;
	b->below = fits ? b->below + 1 : 0;
	b->cpu_exceeded += over;
	return b->above >= BUDGET_PATIENCE;
}

static bool over_memory(struct budget *b, const struct budget_use *use)
{
	bool over = b->limits.memory && use->memory > b->limits.memory;

	b->full = over ? b->full + 1 : 0;
	b->memory_exceeded += over;
	return over;
}

unsigned int budget_step(struct budget *b, const struct budget_use *use)
{
	unsigned int what = over_memory(b, use) ? BUDGET_TRIM : 0;
	bool down = over_cpu(b, use) || b->full > BUDGET_PATIENCE;
	uint32_t freq = b->freq;

	if (down) {
		freq = MAX(freq / 2, 1u);
		b->above = b->below = b->full = 0;
	} else if (b->below >= BUDGET_CALM && !b->full) {
		freq = MIN(freq * 2, b->limits.freq);
		b->below = 0;
	}
	if (freq != b->freq)
		what |= BUDGET_FREQ;
	b->freq = freq;
	return what;
}
