/* minidebug.c - see minidebug.h. */
#include "symbol/minidebug.h"

#include <elf.h>
#include <lzma.h>

struct input {
	const struct elf *e;
	uint64_t offset, left;
	uint8_t chunk[16384];
};

/* Hands the decoder the next bytes of the section; at its end none. */
static int refill(struct input *in, lzma_stream *z)
{
	size_t n = (size_t)MIN(in->left, sizeof(in->chunk));
	int r = n ? elf_read(in->e, in->offset, in->chunk, n) : 0;

	if (r)
		return r;
	in->offset += n;
	in->left -= n;
	z->next_in = in->chunk;
	z->avail_in = n;
	return 0;
}

static int error_of(lzma_ret zr)
{
	switch (zr) {
	case LZMA_OK:
	case LZMA_STREAM_END:
		return 0;
	case LZMA_MEM_ERROR:
		return -ENOMEM;
	case LZMA_MEMLIMIT_ERROR:
		return -E2BIG;
	default:
		return -EBADMSG;
	}
}

/* Runs the decoder to the end of its stream. *image and *size are set also on failure. */
static int decode(lzma_stream *z, struct input *in, uint64_t max, uint8_t **image, size_t *size)
{
	lzma_ret zr = LZMA_OK;
	size_t cap = 0;
	int r = 0;

	while (!r && zr == LZMA_OK) {
		if (!z->avail_in)
			r = refill(in, z);
		if (!r && *size == cap)
			r = cap >= max ? -E2BIG : array_grow(image, &cap, cap + 65536, 1);
		if (r)
			return r;
		z->next_out = *image + *size;
		z->avail_out = cap - *size;
		zr = lzma_code(z, in->left || z->avail_in ? LZMA_RUN : LZMA_FINISH);
		*size = cap - z->avail_out;
		r = error_of(zr);
	}
	return r;
}

int minidebug_open(const struct elf *e, struct elf **ret, void **ret_image)
{
	const struct elf_section *s = elf_section_by_name(e, ".gnu_debugdata");
	uint8_t *image cleanup(freep_cleanup) = NULL;
	struct elf *mini cleanup(elf_cleanup) = NULL;
	lzma_stream z = LZMA_STREAM_INIT;
	struct input in = { .e = e };
	size_t size = 0;
	int r;

	if (!s || s->type == SHT_NOBITS)
		return -ENOENT;
	in.offset = s->offset;
	in.left = s->size;
	r = error_of(lzma_stream_decoder(&z, MINIDEBUG_DECODER_MAX, 0));
	if (!r)
		r = decode(&z, &in, MIN(s->size, MINIDEBUG_MAX / MINIDEBUG_RATIO) * MINIDEBUG_RATIO,
			   &image, &size);
	lzma_end(&z);
	if (!r)
		r = elf_open_memory(image, size, &mini, NULL);
	if (r)
		return r == -ENOEXEC ? -EBADMSG : r;
	if (elf_machine(mini) != elf_machine(e))
		return -EBADMSG;
	*ret = take(mini);
	*ret_image = take(image);
	return 0;
}
