/* fault SECONDS FILE - runs code that keeps no frame pointer, and lists more of it in memory that is FILE's. Whoever
 * reads that waits for who serves the file. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "work.h"

enum { PAGE = 4096, FUNCTIONS = 20, FAR = 64 * PAGE };

/* push %rbx; call *%rdi; pop %rbx; ret */
static const unsigned char frameless[] = { 0x53, 0xff, 0xd7, 0x5b, 0xc3 };

static NOINLINE void work(void)
{
	WORK(work_units());
}

int main(int argc, char **argv)
{
	double seconds = seconds_argument(argc, argv, 1, 1.0);
	unsigned char *code = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = argc > 2 ? open(argv[2], O_RDONLY) : -1;
	char map[64];
	FILE *f;

	if (code == MAP_FAILED || fd < 0 ||
	    mmap(code + PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, FAR) != code + PAGE)
		return 1;
	memcpy(code, frameless, sizeof(frameless));
	snprintf(map, sizeof(map), "/tmp/perf-%d.map", (int)getpid());
	f = fopen(map, "w");
	if (!f)
		return 1;
	fprintf(f, "%lx %zx made_by_fault\n", (unsigned long)(uintptr_t)code, sizeof(frameless));
	for (int i = 0; i < FUNCTIONS; i++)
		fprintf(f, "%lx 40 never_%d\n", (unsigned long)(uintptr_t)(code + PAGE + i * 0x40), i);
	fclose(f);
	puts("ready");
	fflush(stdout);
	while (seconds_worked() < seconds)
		((void (*)(void (*)(void)))(uintptr_t)code)(work);
	unlink(map);
	return 0;
}
