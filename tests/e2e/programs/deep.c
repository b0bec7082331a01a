/* deep DEPTH SECONDS [vary] - works at the bottom of DEPTH nested calls. With "vary" each descent
 * takes another way (left or right at each step) to another depth: hardly a stack comes twice. */
#include <string.h>

#include "work.h"

static unsigned int path_seed = 1;
static int vary;

static void descend(unsigned long depth);

static NOINLINE void bottom(void)
{
	WORK(work_units());
}

static NOINLINE void left(unsigned long depth)
{
	descend(depth);
	work_sink++;	/* no tail call */
}

static NOINLINE void right(unsigned long depth)
{
	descend(depth);
	work_sink++;
}

static NOINLINE void descend(unsigned long depth)
{
	if (depth < 2)
		bottom();
	else if (vary && rand_r(&path_seed) & 1)
		right(depth - 2);
	else
		left(depth - 2);
	work_sink++;
}

static NOINLINE void top_of_descent(unsigned long depth)
{
	descend(vary ? depth / 2 + (unsigned long)rand_r(&path_seed) % (depth / 2 + 1) : depth);
	work_sink++;
}

int main(int argc, char **argv)
{
	unsigned long depth = argc > 1 ? strtoul(argv[1], NULL, 10) : 2000;
	double seconds = seconds_argument(argc, argv, 2, 1.0);

	vary = argc > 3 && !strcmp(argv[3], "vary");
	while (seconds_worked() < seconds)
		top_of_descent(depth);
	return 0;
}
