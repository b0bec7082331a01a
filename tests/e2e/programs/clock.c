/* clock [SECONDS] - does nothing but ask for the time: the vDSO is hot, called by ask_for_time. */
#include "work.h"

static NOINLINE double ask_for_time(void)
{
	double t = 0;

	for (int i = 0; i < 20000; i++)
		t += seconds_now(CLOCK_MONOTONIC);
	return t / 20000;
}

int main(int argc, char **argv)
{
	double seconds = seconds_argument(argc, argv, 1, 1.0);

	while (seconds_worked() < seconds)
		ask_for_time();
	return 0;
}
