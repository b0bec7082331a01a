/* churn SECONDS A.so B.so - loads one, runs it below via_a or via_b, unloads it, and again with the
 * other one, which the loader puts at the same address. Prints how often that was so, and how often
 * it loaded one. */
#include <dlfcn.h>
#include <stdio.h>

#include "work.h"

typedef void run(void);	/* what plugin_run is */

static NOINLINE void via_a(run *plugin_run)
{
	plugin_run();
	work_sink++;
}

static NOINLINE void via_b(run *plugin_run)
{
	plugin_run();
	work_sink++;
}

int main(int argc, char **argv)
{
	double seconds = seconds_argument(argc, argv, 1, 1.0);
	unsigned long loads = 0, same = 0;
	run *plugin_run, *before = NULL;
	void *library;

	if (argc < 4)
		return 2;
	while (seconds_worked() < seconds) {
		library = dlopen(argv[2 + loads % 2], RTLD_NOW);
		if (!library)
			return 1;
		plugin_run = (run *)dlsym(library, "plugin_run");
		same += plugin_run == before;
		(loads % 2 ? via_b : via_a)(plugin_run);
		before = plugin_run;
		loads++;
		dlclose(library);
	}
	printf("%lu %lu\n", same, loads);
	return 0;
}
