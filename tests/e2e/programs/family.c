/* family SECONDS - waits half a second, then forks: the parent works in hot_parent, the child in
 * hot_child, for so long. */
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

static NOINLINE void hot_parent(double end)
{
	while (seconds_now(CLOCK_MONOTONIC) < end)
		WORK(20000UL);
}

static NOINLINE void hot_child(double end)
{
	while (seconds_now(CLOCK_MONOTONIC) < end)
		WORK(20000UL);
}

int main(int argc, char **argv)
{
	double end;
	pid_t child;

	usleep(500000);
	end = seconds_now(CLOCK_MONOTONIC) + seconds_argument(argc, argv, 1, 1.0);
	child = fork();
	if (!child) {
		hot_child(end);
		_exit(0);
	}
	hot_parent(end);
	return child < 0 || waitpid(child, NULL, 0) != child;
}
