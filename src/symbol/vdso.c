/* vdso.c - see vdso.h. */
#include "symbol/vdso.h"

#include <elf.h>
#include <sys/auxv.h>

enum { VDSO_MAX = 64 << 10 };	/* bytes; 4 to 12 KiB are usual */

/* Section headers come last in it; the kernel maps whole pages. */
static size_t image_size(const unsigned char *image)
{
	Elf64_Ehdr h;
	uint64_t size, page = (uint64_t)sysconf(_SC_PAGESIZE);

	memcpy(&h, image, sizeof(h));
	size = h.e_shoff + (uint64_t)h.e_shnum * h.e_shentsize;
	return MIN((size + page - 1) & ~(page - 1), (uint64_t)VDSO_MAX);
}

int vdso_open(struct elf **ret, void **ret_image)
{
	const unsigned char *image = (const void *)getauxval(AT_SYSINFO_EHDR);
	cleanup(freep_cleanup) void *copy = NULL;
	size_t n;
	int r;

	if (!image)
		return -ENOENT;
	n = image_size(image);
	copy = malloc(n);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, image, n);
	r = elf_open_memory(copy, n, ret, NULL);
	if (!r)
		*ret_image = take(copy);
	return r;
}
