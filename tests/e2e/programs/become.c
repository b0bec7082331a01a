/* become SECONDS PROGRAM [ARG...] - works in hot_before for so long, then becomes PROGRAM. */
#include <unistd.h>

#include "work.h"

static NOINLINE void hot_before(double seconds)
{
	while (seconds_worked() < seconds)
		WORK(20000UL);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	hot_before(seconds_argument(argc, argv, 1, 0.5));
	execv(argv[2], argv + 2);
	return 1;
}
