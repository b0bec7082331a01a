/* moved SECONDS [spoil] - moves its own code, but for the first page, to anonymous memory, as programs do that
 * want it on huge pages, and works there. spoil: changes a byte of it first, in a page that is never run. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "work.h"

enum { PAGE = 4096 };

#define PAGED __attribute__((noinline, noclone, aligned(PAGE)))

PAGED void never(void)
{
	WORK(1);
}

PAGED static void hot_moved(void)
{
	WORK(work_units());
}

PAGED static void caller_of_moved(void)
{
	hot_moved();
	WORK(100);
}

/* The mapping that holds an address. */
static int mapping_of(void *addr, unsigned long *start, unsigned long *end)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[4096];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx", start, end) == 2 && (unsigned long)addr >= *start &&
		    (unsigned long)addr < *end) {
			fclose(f);
			return 0;
		}
	return -1;
}

static int move_text(int spoil)
{
	unsigned long start, end;
	char *copy;

	if (mapping_of((void *)hot_moved, &start, &end))
		return -1;
	start += PAGE;
	copy = mmap(NULL, end - start, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy == MAP_FAILED)
		return -1;
	memcpy(copy, (void *)start, end - start);
	if (spoil)
		copy[(unsigned long)never - start] ^= 1;
	if (mprotect(copy, end - start, PROT_READ | PROT_EXEC))
		return -1;
	return mremap(copy, end - start, end - start, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)start) ==
	       (void *)start ? 0 : -1;
}

int main(int argc, char **argv)
{
	double seconds = seconds_argument(argc, argv, 1, 1.0);

	if (move_text(argc > 2)) {
		perror("moved");
		return 1;
	}
	while (seconds_worked() < seconds)
		caller_of_moved();
	return 0;
}
