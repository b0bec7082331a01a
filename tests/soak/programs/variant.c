/* variant.c - one of many short-lived programs, and libraries, each with a function name of its own: HOT.
 * As a program: variant MILLISECONDS, of CPU time. As a library: variant_run(). COMM is the thread's name
 * while HOT may be on its stack, so a sample tells by itself whether the function's name is right. */
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#define NOINLINE __attribute__((noinline, noclone))

void variant_run(double milliseconds);

static double cpu_milliseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static NOINLINE unsigned int HOT(unsigned int x)
{
	for (int i = 0; i < 20000; i++)
		x = x * 1664525 + 1013904223;
	return x;
}

void variant_run(double milliseconds)
{
	static volatile unsigned int sink;
	double end = cpu_milliseconds() + milliseconds;

	prctl(PR_SET_NAME, COMM);
	while (cpu_milliseconds() < end)
		sink = HOT(sink);
}

#ifndef LIBRARY
int main(int argc, char **argv)
{
	variant_run(argc > 1 ? atof(argv[1]) : 1);
	return 0;
}
#endif
