/* shares [SECONDS] - hot_a does three times the work of hot_b, for so long. */
#include "work.h"

static NOINLINE void hot_a(unsigned long units)
{
	WORK(3 * units);
}

static NOINLINE void hot_b(unsigned long units)
{
	WORK(units);
}

static NOINLINE void round_of_both(void)
{
	unsigned long units = work_units();

	hot_a(units);
	hot_b(units);
}

int main(int argc, char **argv)
{
	double seconds = seconds_argument(argc, argv, 1, 1.0);

	while (seconds_worked() < seconds)
		round_of_both();
	return 0;
}
