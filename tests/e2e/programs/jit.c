/* jit SECONDS [NAME...] - writes a function with a frame pointer into anonymous memory and works in it.
 * With names, for so many seconds under each of them in turn, as the perf map says. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "work.h"

#if defined(__x86_64__)
static const unsigned char code[] = {
	0x55,			/* push %rbp */
	0x48, 0x89, 0xe5,	/* mov %rsp, %rbp */
	0x48, 0xff, 0xcf,	/* dec %rdi */
	0x75, 0xfb,		/* jnz back to it */
	0x5d,			/* pop %rbp */
	0xc3,			/* ret */
};
#elif defined(__aarch64__)
static const unsigned int code[] = {
	0xa9bf7bfd,		/* stp x29, x30, [sp, #-16]! */
	0x910003fd,		/* mov x29, sp */
	0xf1000400,		/* subs x0, x0, #1 */
	0x54ffffe1,		/* b.ne back to it */
	0xa8c17bfd,		/* ldp x29, x30, [sp], #16 */
	0xd65f03c0,		/* ret */
};
#else
#error "no code for this machine"
#endif

static NOINLINE void call_generated(void (*generated)(unsigned long))
{
	generated(100000);
	work_sink++;
}

static void say(const void *code_start, const char *name)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	f = fopen(path, "a");
	if (!f)
		return;
	fprintf(f, "%lx %zx %s\n", (unsigned long)code_start, sizeof(code), name);
	fclose(f);
}

int main(int argc, char **argv)
{
	double seconds = seconds_argument(argc, argv, 1, 1.0), until = seconds;
	void *p = mmap(NULL, sizeof(code), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);

	if (p == MAP_FAILED)
		return 1;
	memcpy(p, code, sizeof(code));
	if (mprotect(p, sizeof(code), PROT_READ | PROT_EXEC))
		return 1;
	__builtin___clear_cache((char *)p, (char *)p + sizeof(code));
	for (int i = 2; i == 2 || i < argc; i++, until += seconds) {
		if (i < argc)
			say(p, argv[i]);
		while (seconds_worked() < until)
			call_generated((void (*)(unsigned long))p);
	}
	return 0;
}
