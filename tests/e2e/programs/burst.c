/* burst [SECONDS] - uses so much CPU time in the function HOT and is gone. Compiled several times,
 * as programs of different names whose function is named differently: -DHOT=hot_burst_0. */
#include "work.h"

static NOINLINE void HOT(double seconds)
{
	while (seconds_worked() < seconds)
		WORK(2000);
}

int main(int argc, char **argv)
{
	HOT(seconds_argument(argc, argv, 1, 0.003));
	return 0;
}
