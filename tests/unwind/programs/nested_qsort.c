/* nested_qsort.c - comparison functions that sort, and search, in turn; the argument is the number of
 * seconds. */
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ITEMS = 6, LEVELS = 6 };

static int level;
static volatile unsigned long sink;

static int plain(const void *a, const void *b)
{
	return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

static int compare(const void *a, const void *b)
{
	int v[ITEMS];

	if (level < LEVELS) {
		level++;
		for (int i = 0; i < ITEMS; i++)
			v[i] = (*(const int *)a * 31 + *(const int *)b * 17 + i * 7919) % 97;
		qsort(v, level < 4 ? 3 : 2, sizeof(*v), compare);
		sink += (unsigned long)(bsearch(&v[0], v, ITEMS, sizeof(*v), plain) != NULL);
		level--;
	}
	return plain(a, b);
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);
	int v[64];

	while (time(NULL) < end) {
		for (int i = 0; i < 64; i++)
			v[i] = (i * 7919) % 67;
		qsort(v, 64, sizeof(*v), compare);
	}
	return 0;
}
