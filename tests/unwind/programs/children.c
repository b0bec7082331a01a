/* children.c - vfork, work in the child on the parent's stack, exec of a small program; the argument is the
 * number of seconds. */
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
static volatile unsigned long sink;

static unsigned int work(unsigned int n)
{
	return n < 2 ? n : work(n - 1) + work(n - 2);
}

static void once(char **argv)
{
	pid_t pid = vfork();

	if (!pid) {
		sink += work(24);
		execv(argv[0], argv);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
	if (!posix_spawn(&pid, argv[0], NULL, NULL, argv, environ))
		waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	char *args[] = { "/bin/true", NULL };
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);

	while (time(NULL) < end)
		once(args);
	return 0;
}
