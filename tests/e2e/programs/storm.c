/* storm COUNT PARALLEL SECONDS PROGRAM... - starts COUNT short processes, PARALLEL at a time, of
 * the programs in turn, each told to run for SECONDS. Prints how many ended well. */
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>

#include "work.h"

static int reap(void)
{
	int status;

	return wait(&status) > 0 && WIFEXITED(status) && !WEXITSTATUS(status);
}

int main(int argc, char **argv, char **env)
{
	long count, parallel, running = 0, good = 0;

	if (argc < 5)
		return 2;
	count = strtol(argv[1], NULL, 10);
	parallel = strtol(argv[2], NULL, 10);
	for (long i = 0; i < count; i++) {
		char *program = argv[4 + i % (argc - 4)];
		char *args[] = { program, argv[3], NULL };
		pid_t pid;

		if (running == parallel) {
			good += reap();
			running--;
		}
		running += !posix_spawn(&pid, program, NULL, NULL, args, env);
	}
	for (; running; running--)
		good += reap();
	printf("%ld\n", good);
	return 0;
}
