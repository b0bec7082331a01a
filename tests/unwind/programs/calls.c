/* calls.c - calls of many kinds for a while: recursion, callbacks, allocas, library functions, varargs,
 * tail calls, large frames. Built against several C libraries and by several linkers; the argument is
 * the number of seconds. */
#include <alloca.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static volatile unsigned long sink;

static unsigned int fibonacci(unsigned int n)
{
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

static int by_text(const void *a, const void *b)
{
	char x[32], y[32];

	snprintf(x, sizeof(x), "%d", *(const int *)a);
	snprintf(y, sizeof(y), "%d", *(const int *)b);
	return strcmp(x, y);
}

static void sorted(void)
{
	int v[500];

	for (size_t i = 0; i < 500; i++)
		v[i] = (int)((i * 7919) % 10007);
	qsort(v, 500, sizeof(*v), by_text);
	sink += (unsigned long)v[0];
}

static void variable_frame(size_t n)
{
	char *p = alloca(n * 16 + 1);

	memset(p, 1, n * 16 + 1);
	sink += (unsigned long)p[n];
	if (n)
		variable_frame(n - 1);
}

static void large_frame(int depth)
{
	char buffer[3000];

	memset(buffer, depth, sizeof(buffer));
	sink += (unsigned long)buffer[sink % sizeof(buffer)];
	if (depth)
		large_frame(depth - 1);
}

static double summed(int n, ...)
{
	double sum = 0;
	va_list ap;

	va_start(ap, n);
	while (n--)
		sum += sqrt(va_arg(ap, double)) * cos(sum);
	va_end(ap);
	return sum;
}

static void memory(void)
{
	void *p[64];

	for (size_t i = 0; i < 64; i++) {
		p[i] = malloc(i * 97 + 1);
		memset(p[i], (int)i, i * 97 + 1);
	}
	for (size_t i = 0; i < 64; i++)
		free(p[i]);
}

static void (*const jobs[])(void) = { sorted, memory };

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);

	while (time(NULL) < end)
		for (unsigned int i = 0; i < 20; i++) {
			sink += fibonacci(18);
			jobs[i % 2]();
			variable_frame(30);
			large_frame(8);
			sink += (unsigned long)summed(4, 1.0, 2.0, 3.0, (double)i);
		}
	return 0;
}
