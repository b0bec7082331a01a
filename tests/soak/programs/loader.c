/* loader SECONDS LIBRARY... - one process whose mappings never rest. Threads:
 *	soak-NNN	loads a library, runs it, unloads it, and so on with the next, which often comes to
 *			lie where the one before has been
 *	soak-map	(two) map and unmap memory, and the libraries as files, elsewhere
 *	soak-jit	writes code, runs it, and throws it away
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { PAUSE_US = 2000, MAPPINGS = 16 };

static char **libraries;
static int nlibraries;
static atomic_bool stop;

static void *load(void *arg)
{
	(void)arg;
	for (int i = 0; !stop; i = (i + 1) % nlibraries) {
		void *library = dlopen(libraries[i], RTLD_NOW);
		void (*run)(double) = library ? (void (*)(double))dlsym(library, "variant_run") : NULL;

		if (!run)
			abort();
		run(4);
		prctl(PR_SET_NAME, "soak-load");	/* what unloads it isn't it any more */
		dlclose(library);
		usleep(PAUSE_US);
	}
	return NULL;
}

static void *map(void *arg)
{
	unsigned int x = (unsigned int)(uintptr_t)arg;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	prctl(PR_SET_NAME, "soak-map");
	while (!stop) {
		int fd = open(libraries[x % (unsigned int)nlibraries], O_RDONLY | O_CLOEXEC);
		void *memory[MAPPINGS], *file;
		size_t sizes[MAPPINGS];

		for (size_t i = 0; i < MAPPINGS; i++) {
			x = x * 1664525 + 1013904223;
			sizes[i] = (1 + (x >> 28)) * page;
			memory[i] = mmap(NULL, sizes[i], PROT_READ | PROT_WRITE | PROT_EXEC,
					 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		}
		file = mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		close(fd);
		usleep(PAUSE_US);
		if (file != MAP_FAILED)
			munmap(file, page);
		for (size_t i = 0; i < MAPPINGS; i++)
			if (memory[i] != MAP_FAILED)
				munmap(memory[i], sizes[i]);
	}
	return NULL;
}

#ifdef __x86_64__
static void *jit(void *arg)
{
	/* mov $1000000, %ecx; 1: dec %ecx; jne 1b; ret */
	static const uint8_t code[] = { 0xb9, 0x40, 0x42, 0x0f, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0xc3 };
	size_t page = (size_t)sysconf(_SC_PAGESIZE), at = 0;

	(void)arg;
	prctl(PR_SET_NAME, "soak-jit");
	for (; !stop; at = (at + 64) % (page - sizeof(code))) {
		uint8_t *p = mmap(NULL, page, PROT_READ | PROT_WRITE | PROT_EXEC,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			abort();
		memcpy(p + at, code, sizeof(code));
		((void (*)(void))(p + at))();
		munmap(p, page);
		usleep(PAUSE_US);
	}
	return NULL;
}
#endif

int main(int argc, char **argv)
{
	pthread_t threads[4];
	int n = 0;

	if (argc < 3)
		return 2;
	libraries = argv + 2;
	nlibraries = argc - 2;
	pthread_create(&threads[n++], NULL, load, NULL);
	pthread_create(&threads[n++], NULL, map, (void *)1);
	pthread_create(&threads[n++], NULL, map, (void *)2);
#ifdef __x86_64__
	pthread_create(&threads[n++], NULL, jit, NULL);
#endif
	sleep((unsigned int)atoi(argv[1]));
	stop = true;
	while (n)
		pthread_join(threads[--n], NULL);
	return 0;
}
