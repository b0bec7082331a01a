/* mappings [SECONDS] - makes two thousand mappings, half of them executable, in front of its own, works in
 * a callback of qsort, and is gone. Without frame pointers its stacks are whole only by unwind tables. */
#include <sys/mman.h>

#include "work.h"

enum { MAPPINGS = 2000, PAGE = 4096, SORTED = 16 };

static NOINLINE int hot_compare(const void *a, const void *b)
{
	WORK(2000);
	return *(const int *)a - *(const int *)b;
}

int main(int argc, char **argv)
{
	double seconds = seconds_argument(argc, argv, 1, 0.06);
	int numbers[SORTED] = { 3, 1, 2 };

	/* neighbours differ, or they would be one mapping */
	for (int i = 0; i < MAPPINGS; i++)
		(void)mmap(NULL, PAGE, i & 1 ? PROT_READ | PROT_EXEC : PROT_READ,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	while (seconds_worked() < seconds)
		qsort(numbers, SORTED, sizeof(*numbers), hot_compare);
	return 0;
}
