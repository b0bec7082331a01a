/* plt.c - calls next to nothing but tiny functions of a shared library, through the PLT. Built twice from
 * this file: with -DLIBRARY -shared, and the program. The argument is the number of seconds. */
#ifdef LIBRARY
unsigned long tiny_a(unsigned long n);
unsigned long tiny_b(unsigned long n);

unsigned long tiny_a(unsigned long n)
{
	return n + 1;
}

unsigned long tiny_b(unsigned long n)
{
	return n ^ 5;
}
#else
#include <stdlib.h>
#include <time.h>

extern unsigned long tiny_a(unsigned long n);
extern unsigned long tiny_b(unsigned long n);

__attribute__((noinline)) static unsigned long round_of(unsigned long n)
{
	for (int i = 0; i < 100000; i++)
		n = tiny_b(tiny_a(n));
	return n;
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);
	volatile unsigned long n = 0;

	while (time(NULL) < end)
		n = round_of(n);
	return 0;
}
#endif
