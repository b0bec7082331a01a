/* gaps.c - see gaps.h. */
#include <elf.h>

#include "elf/dynsym.h"
#include "unwind/gaps.h"

enum {
	CHUNK = 1024,		/* symbols read at a time */
	NAME_MAX_READ = 256,	/* bytes of a name in which ".cold" is looked for */
};

static int add_gaps(struct code *c, const struct elf *elf, const struct gap *gaps, size_t n,
		    uint64_t max, size_t *ret_added)
{
	uint8_t *bytes;
	int r;

	for (size_t i = 0; i < n; i++) {
		if (gaps[i].size < GAPS_MIN || gaps[i].size > max)
			continue;
		r = code_add(c, gaps[i].vaddr, gaps[i].size, &bytes);
		if (r == -ENOMEM)
			return r;
		if (r)		/* segments that overlap in memory */
			continue;
		r = elf_read(elf, gaps[i].offset, bytes, gaps[i].size);
		if (r && r != -EBADMSG)		/* cut off: zeros, which are no code */
			return r;
		max -= gaps[i].size;
		(*ret_added)++;
	}
	return 0;
}

/* GCC and clang move unlikely parts of a function away under a symbol of their own. They are jumped
 * to, with the function's frame on the stack. */
static bool is_cold_part(const struct elf *e, const struct elf_symbols *t, const Elf64_Sym *s)
{
	char name[NAME_MAX_READ + 1] = "";
	size_t n;

	if (s->st_name >= t->strings_size)
		return false;
	n = MIN(t->strings_size - s->st_name, (uint64_t)NAME_MAX_READ);
	return !elf_read(e, t->strings + s->st_name, name, n) && strstr(name, ".cold");
}

static int add_symbols(struct code *c, const struct elf *e, uint32_t type, bool *ret_stripped)
{
	cleanup(freep_cleanup) Elf64_Sym *chunk = NULL;
	struct elf_symbols t;
	uint64_t count;
	int r = 0;

	if (elf_symbols(e, type, &t))
		return 0;
	chunk = malloc(CHUNK * sizeof(*chunk));
	if (!chunk)
		return -ENOMEM;
	count = MIN(t.count, (uint64_t)GAPS_SYMBOLS_MAX);
	for (uint64_t i = 0; i < count && !r; i += CHUNK) {
		size_t m = MIN(count - i, (uint64_t)CHUNK);

		if (elf_read(e, t.offset + i * sizeof(*chunk), chunk, m * sizeof(*chunk)))
			return 0;
		for (size_t k = 0; k < m && !r; k++) {
			const Elf64_Sym *s = &chunk[k];
			unsigned int kind = ELF64_ST_TYPE(s->st_info);

			if ((kind == STT_FUNC || kind == STT_GNU_IFUNC) && s->st_shndx != SHN_UNDEF &&
			    code_holds(c, s->st_value) && !is_cold_part(e, &t, s))
				r = code_function(c, s->st_value);
		}
		*ret_stripped = *ret_stripped && type != SHT_SYMTAB;
	}
	return r;
}

int gaps_trace(const struct elf *elf, const struct elf *debug, uint64_t entry,
	       const struct gap *gaps, size_t n, uint64_t max, struct code **ret)
{
	cleanup(code_cleanup) struct code *c = NULL;
	bool stripped = true;
	size_t added = 0;
	int r = code_new(&c);

	if (!r)
		r = add_gaps(c, elf, gaps, n, max, &added);
	if (!r && !added)
		r = -ENOENT;
	if (!r && entry)
		r = code_root(c, entry);
	if (!r)
		r = add_symbols(c, elf, SHT_SYMTAB, &stripped);
	if (!r)
		r = add_symbols(c, elf, SHT_DYNSYM, &stripped);
	if (!r && debug)
		r = add_symbols(c, debug, SHT_SYMTAB, &stripped);
	if (!r)
		r = code_trace(c, stripped);
	if (!r)
		*ret = take(c);
	return r;
}
