/* storm.c - many short processes: storm SECONDS
 *
 * Each child executes this file anew, burns a few milliseconds in short_life and is gone. Prints
 * how many there were. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned int sink;

__attribute__((noinline)) static void short_life(void)
{
	for (unsigned int i = 0; i < 1000000; i++)
		sink = sink * 1664525 + 1013904223;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int child(void)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		execl("/proc/self/exe", "short", "--child", (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return status;
}

int main(int argc, char **argv)
{
	double end = now() + (argc > 1 ? atof(argv[1]) : 1);
	unsigned int n = 0;

	if (argc > 1 && !strcmp(argv[1], "--child")) {
		short_life();
		return 0;
	}
	for (; now() < end; n++)
		if (child()) {
			fprintf(stderr, "storm: a child failed\n");
			return 1;
		}
	printf("storm: %u processes\n", n);
	return 0;
}
