/* family SECONDS - waits for a line of input, then forks: the parent works in hot_parent, the child
 * in hot_child, for so long. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

static NOINLINE void hot_parent(double seconds)
{
	while (seconds_worked() < seconds)
		WORK(20000UL);
}

static NOINLINE void hot_child(double seconds)
{
	while (seconds_worked() < seconds)
		WORK(20000UL);
}

int main(int argc, char **argv)
{
	double seconds = seconds_argument(argc, argv, 1, 1.0);
	pid_t child;

	if (getchar() == EOF)
		return 1;
	child = fork();
	if (!child) {
		hot_child(seconds);
		_exit(0);
	}
	hot_parent(seconds);
	return child < 0 || waitpid(child, NULL, 0) != child;
}
