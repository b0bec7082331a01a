/* deep.c DEPTH - calls itself so often, then wanders through more memory than the caches hold, so
 * that each tick finds the walker's tables as cold as a real program leaves them.
 *
 * For bench.py, built with frame pointers: the kernel's walk and wick's then meet the same stack.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { WORDS = 8 << 20 };

/* Returns when a word has been met 2^64 - 1 times. */
static uint64_t wander(volatile uint64_t *words)
{
	uint64_t at = 1;

	while (++words[(at >> 33) % WORDS] != UINT64_MAX)
		at = at * 6364136223846793005u + 1442695040888963407u;
	return at;
}

/* The addition keeps the call from becoming a jump. */
static __attribute__((noinline)) uint64_t deeper(volatile uint64_t *words, int depth)
{
	return (depth ? deeper(words, depth - 1) : wander(words)) + (uint64_t)depth;
}

int main(int argc, char **argv)
{
	volatile uint64_t *words = calloc(WORDS, sizeof(*words));

	return words && argc == 2 ? (int)deeper(words, atoi(argv[1])) : 1;
}
