/* rows.c - what the unwind table of each file costs, as rows of a Markdown table: CPU time of compiling it
 * (the best of some rounds), rows, time a row, size, size per MiB of text.
 *
 *	bench_rows FILE...
 */
#include <fcntl.h>
#include <time.h>

#include "elf/elf.h"
#include "unwind/unwtab.h"

enum { ROUNDS = 5 };

static double milliseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int measure(const char *path)
{
	cleanup(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC);
	cleanup(elf_cleanup) struct elf *elf = NULL;
	cleanup(unwtab_cleanup) struct unwtab *t = NULL;
	const struct unwtab_stats *s;
	double best = 1e9, took;
	int r = fd < 0 ? -errno : elf_open_fd(fd, &elf, NULL);

	for (int i = 0; i < ROUNDS && !r; i++) {
		unwtab_free(take(t));
		took = milliseconds();
		r = unwtab_compile(elf, NULL, &UNWTAB_LIMITS_DEFAULT, &t);
		best = MIN(best, milliseconds() - took);
	}
	if (r) {
		fprintf(stderr, "%s: %s\n", path, strerror(-r));
		return r;
	}
	s = unwtab_stats(t);
	printf("| %s | %.1f | %u | %.0f | %zu | %.0f |\n", path, best, s->rows, best * 1e6 / s->rows,
	       s->bytes >> 10, (double)s->bytes / 1024 / ((double)s->text_bytes / (1 << 20)));
	return 0;
}

int main(int argc, char **argv)
{
	int failed = 0;

	for (int i = 1; i < argc; i++)
		failed |= measure(argv[i]) != 0;
	return failed;
}
