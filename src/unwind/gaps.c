/* gaps.c - see gaps.h. */
#include <elf.h>

#include "elf/dynsym.h"
#include "unwind/gaps.h"

enum {
	CHUNK = 1024,		/* symbols read at a time */
	WINDOW = 64 << 10, OVERLAP = 15,	/* bytes searched at a time; and seen twice */
	NAME_MAX_READ = 256,	/* bytes of a name in which ".cold" is looked for */
};

static int add_gaps(struct code *c, const struct elf *elf, const struct gap *gaps, size_t n,
		    uint64_t max, size_t *ret_added, uint64_t *ret_left)
{
	uint8_t *bytes;
	int r;

	for (size_t i = 0; i < n; i++) {
		if (gaps[i].size < GAPS_MIN)
			continue;
		if (gaps[i].size > max) {
			*ret_left += gaps[i].size;
			continue;
		}
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

/* Assembly may not say what a symbol is; a global one in code is a function (Go's crosscall1). */
static bool is_function(const Elf64_Sym *s)
{
	unsigned int kind = ELF64_ST_TYPE(s->st_info);

	return kind == STT_FUNC || kind == STT_GNU_IFUNC ||
	       (kind == STT_NOTYPE && ELF64_ST_BIND(s->st_info) == STB_GLOBAL &&
		s->st_shndx < SHN_LORESERVE);
}

/* entry is the outermost function, which is no function like others. */
static int add_symbols(struct code *c, const struct elf *e, uint32_t type, uint64_t entry,
		       bool *ret_stripped)
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

			if (is_function(s) && s->st_shndx != SHN_UNDEF && s->st_value != entry &&
			    code_holds(c, s->st_value) && !is_cold_part(e, &t, s))
				r = code_function(c, s->st_value);
		}
		*ret_stripped = *ret_stripped && type != SHT_SYMTAB;
	}
	return r;
}

/* Pointers to functions: the words of data and, in position-independent files, the addends of their
 * relocations, which are words as well. */
static int add_words(struct code *c, const uint8_t *p, size_t n)
{
	int r = 0;

	for (size_t at = 0; at + 8 <= n && !r; at += 8) {
		uint64_t word;

		memcpy(&word, p + at, 8);
		if (word)
			r = code_ref(c, word);
	}
	return r;
}

/* What code elsewhere calls, or takes the address of: call and lea x(%rip), wherever bytes look so. */
static int add_distances(struct code *c, const uint8_t *p, size_t n, uint64_t vaddr)
{
	int r = 0;

	for (size_t at = 1; at + 4 <= n && !r; at++) {
		int32_t distance;

		if (p[at - 1] != 0xe8 && (at < 2 || p[at - 2] != 0x8d || (p[at - 1] & 0xc7) != 5))
			continue;
		memcpy(&distance, p + at, 4);
		r = code_ref(c, vaddr + at + 4 + (uint64_t)(int64_t)distance);
	}
	return r;
}

static int search_segment(struct code *c, const struct elf *e, const struct elf_segment *s,
			  uint8_t *window)
{
	size_t first = -s->vaddr & 7;	/* words are where their addresses say; WINDOW is of whole ones */
	int r = 0;

	for (uint64_t at = 0; at < s->filesz && !r; at += WINDOW) {
		size_t n = MIN(s->filesz - at, (uint64_t)(WINDOW + OVERLAP));

		if (elf_read(e, s->offset + at, window, n))
			return 0;
		if (s->flags & PF_X)
			r = add_distances(c, window, n, s->vaddr + at);
		if (!r && n > first)
			r = add_words(c, window + first, n - first);
	}
	return r;
}

/* In a stripped file: what may point to functions, from all that is loaded. Files in which hardly anything
 * is to be found aren't searched if they are large. */
static int add_references(struct code *c, const struct elf *e)
{
	cleanup(freep_cleanup) uint8_t *window = malloc(WINDOW + OVERLAP);
	size_t n;
	const struct elf_segment *s = elf_segments(e, &n);
	int r = window ? 0 : -ENOMEM;

	if (elf_size(e) > GAPS_SEARCH_MAX && code_bytes(c) < elf_size(e) / GAPS_SEARCH_SHARE)
		return r;
	for (size_t i = 0; i < n && !r; i++)
		if (s[i].type == PT_LOAD)
			r = search_segment(c, e, &s[i], window);
	return r;
}

int gaps_trace(const struct elf *elf, const struct elf *debug, uint64_t entry,
	       const struct gap *gaps, size_t n, uint64_t max, struct code **ret, uint64_t *ret_left)
{
	cleanup(code_cleanup) struct code *c = NULL;
	bool stripped = true;
	size_t added = 0;
	int r = code_new(&c);

	if (!r)
		r = add_gaps(c, elf, gaps, n, max, &added, ret_left);
	if (!r && !added)
		r = -ENOENT;
	if (!r && entry)
		r = code_root(c, entry);
	if (!r)
		r = add_symbols(c, elf, SHT_SYMTAB, entry, &stripped);
	if (!r)
		r = add_symbols(c, elf, SHT_DYNSYM, entry, &stripped);
	if (!r && debug)
		r = add_symbols(c, debug, SHT_SYMTAB, entry, &stripped);
	if (!r)
		r = stripped ? add_references(c, elf) : 0;
	if (!r)
		r = code_trace(c, stripped);
	if (!r)
		*ret = take(c);
	return r;
}
