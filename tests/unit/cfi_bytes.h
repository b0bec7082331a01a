/* cfi_bytes.h - sections of call frame information, made entry by entry for tests. */
#ifndef WICK_TESTS_CFI_BYTES_H
#define WICK_TESTS_CFI_BYTES_H

#include <check.h>

#include "base/base.h"

struct section {
	uint8_t data[8192];
	size_t n;
	size_t entry;	  /* offset of the entry being written */
	bool wide, debug; /* 64-bit lengths; .debug_frame */
};

static inline void put(struct section *s, const void *p, size_t n)
{
	ck_assert_uint_le(s->n + n, sizeof(s->data));
	memcpy(s->data + s->n, p, n);
	s->n += n;
}

static inline void put_uint(struct section *s, uint64_t v, size_t n)
{
	put(s, &v, n); /* little-endian hosts only, as wick is */
}

/* A program, or any bytes: BYTES(s, 0x41, 0x0e, 16). */
#define BYTES(s, ...)                                                                              \
	put(s, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static inline size_t begin(struct section *s)
{
	s->entry = s->n;
	if (s->wide)
		put_uint(s, UINT32_MAX, 4);
	put_uint(s, 0, s->wide ? 8 : 4);
	return s->entry;
}

/* Pads with DW_CFA_nop and fills in the length. */
static inline void end(struct section *s)
{
	size_t head = s->entry + (s->wide ? 12 : 4);
	uint64_t length;

	while ((s->n - head) % 8 != 4)
		put_uint(s, 0, 1);
	length = s->n - head;
	memcpy(s->data + head - (s->wide ? 8 : 4), &length, s->wide ? 8 : 4);
}

/* Up to and including the return address register; augmentation data and program follow. */
static inline size_t begin_cie(struct section *s, uint8_t version, const char *augmentation,
			       uint8_t ra)
{
	size_t at = begin(s);

	put_uint(s, s->debug ? UINT64_MAX : 0, s->wide && s->debug ? 8 : 4);
	put_uint(s, version, 1);
	put(s, augmentation, strlen(augmentation) + 1);
	if (version == 4)
		BYTES(s, 8, 0);
	BYTES(s, 1, 0x78, ra); /* code alignment 1, data alignment -8 */
	return at;
}

/* What compilers for x86-64 start with: CFA = rsp + 8, return address at CFA - 8. */
static inline size_t usual_cie(struct section *s)
{
	size_t at = begin_cie(s, 1, "zR", 16);

	BYTES(s, 1, 0x1b); /* addresses: pcrel | sdata4 */
	BYTES(s, 0x0c, 7, 8, 0x90, 1);
	end(s);
	return at;
}

/* Up to the augmentation data of an FDE of .eh_frame with pcrel | sdata4 addresses. base is the
 * section's address. */
static inline size_t begin_fde(struct section *s, size_t cie, uint64_t base, uint64_t start,
			       uint32_t size)
{
	size_t at = begin(s);

	put_uint(s, s->n - cie, 4);
	put_uint(s, start - (base + s->n), 4);
	put_uint(s, size, 4);
	put_uint(s, 0, 1);
	return at;
}

#endif
