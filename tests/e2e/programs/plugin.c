/* A shared object whose only function works; compiled twice, with -DHOT=hot_plugin_a or _b. */
#include "work.h"

void plugin_run(void);

static NOINLINE void HOT(void)
{
	WORK(200000UL);
}

void plugin_run(void)
{
	for (int i = 0; i < 20; i++)
		HOT();
}
