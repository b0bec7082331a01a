/* relative.c - see relative.h. */
#include "elf/relative.h"

#include <elf.h>

#define CHUNK	    512
#define DYNAMIC_MAX 4096	/* entries; real files have 40 */

/* Which one is looked for: by its slot or by its addend. */
struct wanted {
	bool by_addend;
	uint64_t key;
	unsigned int skip;	/* so many that fit */
	uint64_t left;		/* that may still be looked at */
	Elf64_Rela found;
};

/* 0: found. */
static int scan(const struct elf *e, uint64_t offset, uint64_t size, struct wanted *w)
{
	uint32_t relative = elf_machine(e) == EM_X86_64 ? R_X86_64_RELATIVE : R_AARCH64_RELATIVE;
	Elf64_Rela chunk[CHUNK];
	uint64_t count;

	if (offset > elf_size(e) || size > elf_size(e) - offset)
		return -ENOENT;
	count = MIN(size / sizeof(*chunk), w->left);
	w->left -= count;
	for (uint64_t at = 0; at < count; at += CHUNK) {
		size_t n = (size_t)MIN(CHUNK, count - at);
		int r = elf_read(e, offset + at * sizeof(*chunk), chunk, n * sizeof(*chunk));

		if (r)
			return r;
		for (size_t i = 0; i < n; i++) {
			uint64_t key = w->by_addend ? (uint64_t)chunk[i].r_addend : chunk[i].r_offset;

			if (key != w->key || ELF64_R_TYPE(chunk[i].r_info) != relative || w->skip-- > 0)
				continue;
			w->found = chunk[i];
			return 0;
		}
	}
	return -ENOENT;
}

/* By PT_DYNAMIC (gABI "Dynamic Section"). */
static int scan_dynamic(const struct elf *e, struct wanted *w)
{
	const struct elf_segment *s = elf_segment_by_type(e, PT_DYNAMIC);
	uint64_t rela = 0, size = 0, offset, n = s ? MIN(s->filesz / sizeof(Elf64_Dyn), DYNAMIC_MAX) : 0;
	int r;

	for (uint64_t i = 0; i < n; i++) {
		Elf64_Dyn d;

		r = elf_read(e, s->offset + i * sizeof(d), &d, sizeof(d));
		if (r)
			return r;
		if (d.d_tag == DT_NULL)
			break;
		rela = d.d_tag == DT_RELA ? d.d_un.d_ptr : rela;
		size = d.d_tag == DT_RELASZ ? d.d_un.d_val : size;
	}
	if (!rela || !size)
		return -ENOENT;
	r = elf_vaddr_to_offset(e, rela, &offset);
	return r ? r : scan(e, offset, size, w);
}

static int find(const struct elf *e, struct wanted *w)
{
	int r = -ENOENT;

	w->left = RELATIVE_SCAN_MAX;
	if (!elf_section_count(e))
		return scan_dynamic(e, w);
	for (size_t i = 0; i < elf_section_count(e) && r == -ENOENT; i++) {
		const struct elf_section *s = elf_section(e, i);

		if (s->type == SHT_RELA && s->flags & SHF_ALLOC)
			r = scan(e, s->offset, s->size, w);
	}
	return r;
}

int relative_addend(const struct elf *e, uint64_t slot, uint64_t *ret)
{
	struct wanted w = { .key = slot };
	int r = find(e, &w);

	if (!r)
		*ret = (uint64_t)w.found.r_addend;
	return r;
}

int relative_slot(const struct elf *e, uint64_t addend, unsigned int n, uint64_t *ret)
{
	struct wanted w = { .by_addend = true, .key = addend, .skip = n };
	int r = find(e, &w);

	if (!r)
		*ret = w.found.r_offset;
	return r;
}
