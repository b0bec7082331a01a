/* crowd N MICROSECONDS TURNS - N processes at a time, each called crowd-NUMBER, that work in turn.
 *
 * Says "ready" when all of them are there, then gives each of them that much CPU time TURNS times over, says
 * "done" and waits for the end of its input. Whose turn it is they are told by a signal each: one that has done may
 * be faster at a shared pipe than who waits there. Exit status 1 if not all of them could be made. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { AT_WORK = 2 };		/* turns that are given out at a time */

static volatile unsigned long sink;

static __attribute__((noinline)) void hot_crowd(long microseconds)
{
	struct timespec t, start;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
	do {
		for (unsigned int i = 0; i < 5000; i++)
			sink += i;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	} while ((t.tv_sec - start.tv_sec) * 1000000 + (t.tv_nsec - start.tv_nsec) / 1000 < microseconds);
}

static void be_one(int n, pid_t parent, const sigset_t *turns, int done, long microseconds)
{
	char name[16], byte = 0;
	int turn;

	snprintf(name, sizeof(name), "crowd-%d", n);
	prctl(PR_SET_NAME, name);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	while (!sigwait(turns, &turn)) {
		hot_crowd(microseconds);
		if (write(done, &byte, 1) != 1)
			_exit(1);
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 100, microseconds = argc > 2 ? atol(argv[2]) : 1000;
	long left = n * (argc > 3 ? atol(argv[3]) : 1);
	pid_t *children = calloc((size_t)n, sizeof(*children)), self = getpid();
	sigset_t turns;
	int done[2];
	char byte;

	sigemptyset(&turns);
	sigaddset(&turns, SIGUSR1);
	if (!children || sigprocmask(SIG_BLOCK, &turns, NULL) || pipe(done))
		return 1;
	for (long i = 0; i < n; i++) {
		children[i] = fork();
		if (children[i] < 0) {
			perror("fork");
			return 1;
		}
		if (!children[i])
			be_one((int)i, self, &turns, done[1], microseconds);
	}
	puts("ready");
	fflush(stdout);
	for (long i = 0; i < left; i++) {
		if (kill(children[i % n], SIGUSR1) || (i >= AT_WORK && read(done[0], &byte, 1) != 1))
			return 1;
	}
	puts("done");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
