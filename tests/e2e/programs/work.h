/* work.h - what the test programs share: CPU work in known proportions.
 *
 * A unit of work is a number of turns of a loop through memory, which costs the same on every turn.
 * How much is done in one round varies at random, alike for all functions of the round, so that
 * the rounds can't fall into step with the sampling. How long a program works is CPU time, so that
 * it is sampled as often on a busy machine.
 */
#ifndef WORK_H
#define WORK_H

#include <stdlib.h>
#include <time.h>

#define NOINLINE __attribute__((noinline, noclone))

static volatile unsigned long work_sink;

/* In the body of a function that is to be found hot: no call, the function itself is the leaf. */
#define WORK(units)                                                                                \
	do {                                                                                       \
		const unsigned long turns_ = (units);                                              \
                                                                                                   \
		for (unsigned long turn_ = 0; turn_ < turns_; turn_++)                             \
			work_sink += turn_;                                                        \
	} while (0)

static inline double seconds_now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* CPU time that this process has used since the first call: since exec that is, not since fork. A function of
 * its own, by which the tests know the clock from the work. */
static NOINLINE __attribute__((unused)) double seconds_worked(void)
{
	static double start;
	double now = seconds_now(CLOCK_PROCESS_CPUTIME_ID);

	if (!start)
		start = now;
	return now - start;
}

/* A number from 10,000 to 30,000: a unit of 20 to 60 us or so. */
static inline unsigned long work_units(void)
{
	static unsigned int seed = 1;

	return 10000 + (unsigned long)rand_r(&seed) % 20001;
}

static inline double seconds_argument(int argc, char **argv, int i, double otherwise)
{
	return argc > i ? strtod(argv[i], NULL) : otherwise;
}

#endif
