/* threads SECONDS - two threads that work for so long: "steady" in hot_steady; and one that works
 * in hot_first while called "first", then, for three times as long, in hot_second as "second".
 * The main thread waits. Prints "steady TID" and "renamed TID" first. */
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "work.h"

static double duration;

static NOINLINE void hot_steady(void)
{
	WORK(20000UL);
}

static NOINLINE void hot_first(void)
{
	WORK(20000UL);
}

static NOINLINE void hot_second(void)
{
	WORK(20000UL);
}

static void call_for(void (*work)(void), double seconds)
{
	double end = seconds_now(CLOCK_THREAD_CPUTIME_ID) + seconds;

	while (seconds_now(CLOCK_THREAD_CPUTIME_ID) < end)
		work();
}

static void announce(const char *what)
{
	printf("%s %ld\n", what, (long)syscall(SYS_gettid));
	fflush(stdout);
}

static void *steady(void *arg)
{
	prctl(PR_SET_NAME, "steady");
	announce("steady");
	call_for(hot_steady, duration);
	return arg;
}

static void *renamed(void *arg)
{
	prctl(PR_SET_NAME, "first");
	announce("renamed");
	call_for(hot_first, duration / 4);
	prctl(PR_SET_NAME, "second");
	call_for(hot_second, duration * 3 / 4);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t a, b;

	duration = seconds_argument(argc, argv, 1, 1.0);
	pthread_create(&a, NULL, steady, NULL);
	pthread_create(&b, NULL, renamed, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	return 0;
}
