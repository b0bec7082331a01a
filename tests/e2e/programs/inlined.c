/* inlined [SECONDS] - the hot loop is two inlined calls below a function. The comments name the lines
 * that the test expects. */
#include "work.h"

#define INLINE static inline __attribute__((always_inline))

INLINE void innermost(unsigned long units)
{
	WORK(units); /* innermost */
}

INLINE void middle(unsigned long units)
{
	innermost(units + 1); /* middle */
}

NOINLINE static void outer(unsigned long units)
{
	middle(units); /* outer */
	work_sink += 1;
}

int main(int argc, char **argv)
{
	double seconds = seconds_argument(argc, argv, 1, 1.0);

	while (seconds_worked() < seconds)
		outer(20000); /* main */
	return 0;
}
