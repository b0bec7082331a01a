/* spin.c - known work for a profiler: spin SECONDS
 *
 * User time goes 3:1 to hot_a and hot_b, in slices much shorter than a tick; a part of the whole is
 * spent in the kernel, under ask_kernel. Everything has its stack below main and work. The slices'
 * lengths are random: equal ones can fall into step with the ticks, which then hit one function more
 * than its share for seconds, most of all where a processor is emulated. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#ifdef __clang__
#define HOT __attribute__((noinline))
#else
#define HOT __attribute__((noipa))	/* nor merged with its twin */
#endif

enum { UNITS_MAX = 8192, READ_BYTES = 2048 };

static volatile unsigned int sink;

/* The same text twice, so that an iteration costs the same in both. */
HOT static void hot_a(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		sink = sink * 1664525 + 1013904223;
}

HOT static void hot_b(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		sink = sink * 1664525 + 1013904223;
}

HOT static long ask_kernel(int fd)
{
	static char buffer[READ_BYTES];

	long n = read(fd, buffer, sizeof(buffer));

	sink += (unsigned int)n;	/* something to return for: no tail call, so we stay on the stack */
	return n;
}

/* 1 to UNITS_MAX, the same in every run: xorshift32 (Marsaglia, 2003). */
static unsigned int random_units(void)
{
	static uint32_t state = 2463534242;

	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state % UNITS_MAX + 1;
}

HOT static void work(int fd)
{
	unsigned int units = random_units();

	hot_a(3 * units);
	hot_b(units);
	if (ask_kernel(fd) != READ_BYTES)
		exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	int fd = open("/dev/urandom", O_RDONLY);	/* busy in the kernel for every byte */
	double end = now() + (argc > 1 ? atof(argv[1]) : 1);

	if (fd < 0) {
		perror("/dev/urandom");
		return 1;
	}
	while (now() < end)
		work(fd);
	return 0;
}
