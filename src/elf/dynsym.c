/* dynsym.c - see dynsym.h. */
#include "elf/dynsym.h"

#include <elf.h>

#define DYNAMIC_MAX (64u << 10)	/* bytes of PT_DYNAMIC; 4,096 entries, real files have 40 */

static bool inside_file(const struct elf *e, uint64_t offset, uint64_t n)
{
	return offset <= elf_size(e) && n <= elf_size(e) - offset;
}

static int checked(const struct elf *e, struct elf_symbols s, struct elf_symbols *ret)
{
	if (s.count > elf_size(e) / sizeof(Elf64_Sym) ||
	    !inside_file(e, s.offset, s.count * sizeof(Elf64_Sym)) ||
	    !inside_file(e, s.strings, s.strings_size))
		return -EBADMSG;
	*ret = s;
	return 0;
}

static int from_section(const struct elf *e, const struct elf_section *sec,
			struct elf_symbols *ret)
{
	const struct elf_section *str = elf_section(e, sec->link);

	if (!str || str->type != SHT_STRTAB || (sec->flags | str->flags) & SHF_COMPRESSED)
		return -EBADMSG;
	return checked(e, (struct elf_symbols){ sec->offset, sec->size / sizeof(Elf64_Sym),
						str->offset, str->size }, ret);
}

/* What .dynamic says, as addresses; 0 is "not there". */
struct dynamic {
	uint64_t symtab, strtab, strsz, hash, gnu_hash;
};

static int read_dynamic(const struct elf *e, struct dynamic *ret)
{
	const struct elf_segment *seg = elf_segment_by_type(e, PT_DYNAMIC);
	Elf64_Dyn *dyn cleanup(freep_cleanup) = NULL;
	struct dynamic d = { 0 };
	size_t n;
	int r;

	if (!seg)
		return -ENOENT;
	n = MIN(seg->filesz, DYNAMIC_MAX) / sizeof(*dyn);
	dyn = calloc(n + 1, sizeof(*dyn));	/* + 1: ends with DT_NULL whatever the file has */
	if (!dyn)
		return -ENOMEM;
	r = elf_read(e, seg->offset, dyn, n * sizeof(*dyn));
	if (r)
		return r;
	for (const Elf64_Dyn *p = dyn; p->d_tag != DT_NULL; p++) {
		switch (p->d_tag) {
		case DT_SYMTAB:
			d.symtab = p->d_un.d_ptr;
			break;
		case DT_STRTAB:
			d.strtab = p->d_un.d_ptr;
			break;
		case DT_STRSZ:
			d.strsz = p->d_un.d_val;
			break;
		case DT_HASH:
			d.hash = p->d_un.d_ptr;
			break;
		case DT_GNU_HASH:
			d.gnu_hash = p->d_un.d_ptr;
			break;
		default:
			break;
		}
	}
	*ret = d;
	return 0;
}

/* gABI "Hash Table": nbucket, nchain; there is one chain entry per symbol. */
static int hash_count(const struct elf *e, uint64_t vaddr, uint64_t *ret)
{
	uint64_t offset;
	uint32_t head[2];
	int r = elf_vaddr_to_offset(e, vaddr, &offset);

	if (!r)
		r = elf_read(e, offset, head, sizeof(head));
	if (!r)
		*ret = head[1];
	return r;
}

/* Reads 32-bit words of the file in order. */
struct words {
	const struct elf *e;
	uint64_t offset;
	size_t n, i;
	uint32_t w[1024];
};

static int next_word(struct words *s, uint32_t *ret)
{
	int r;

	if (s->i == s->n) {
		s->n = (size_t)MIN(ARRAY_SIZE(s->w), (elf_size(s->e) - s->offset) / 4);
		s->i = 0;
		r = s->n ? elf_read(s->e, s->offset, s->w, s->n * 4) : -EBADMSG;
		if (r) {
			s->n = 0;
			return r;
		}
		s->offset += s->n * 4;
	}
	*ret = s->w[s->i++];
	return 0;
}

/* The GNU hash table doesn't say how many symbols there are: they are sorted by bucket, so the
 * last one ends the chain (low bit set) of the bucket that starts highest. Layout: nbuckets,
 * first hashed symbol, Bloom words, Bloom shift; 8-byte Bloom words; buckets; chains. */
static int gnu_hash_count(const struct elf *e, uint64_t vaddr, uint64_t *ret)
{
	struct words words = { .e = e };
	uint64_t offset, buckets, chains, last = 0;
	uint32_t head[4], w = 0;
	int r = elf_vaddr_to_offset(e, vaddr, &offset);

	if (!r)
		r = elf_read(e, offset, head, sizeof(head));
	if (r)
		return r;
	buckets = offset + sizeof(head) + 8ull * head[2];
	chains = buckets + 4ull * head[0];
	if (chains > elf_size(e))
		return -EBADMSG;
	words.offset = buckets;
	for (uint32_t i = 0; i < head[0]; i++) {
		r = next_word(&words, &w);
		if (r)
			return r;
		last = MAX(last, w);
	}
	if (last < head[1]) {	/* nothing is hashed: only imported symbols */
		*ret = head[1];
		return 0;
	}
	words.n = words.i = 0;
	words.offset = chains + 4 * (last - head[1]);
	if (words.offset > elf_size(e))
		return -EBADMSG;
	for (w = 0; !(w & 1); last++) {
		r = next_word(&words, &w);
		if (r)
			return r;
	}
	*ret = last;
	return 0;
}

static int from_dynamic(const struct elf *e, struct elf_symbols *ret)
{
	struct elf_symbols s = { 0 };
	struct dynamic d;
	int r = read_dynamic(e, &d);

	if (r)
		return r;
	if (!d.symtab || !d.strtab || (!d.hash && !d.gnu_hash))
		return -ENOENT;
	s.strings_size = d.strsz;
	if (elf_vaddr_to_offset(e, d.symtab, &s.offset) ||
	    elf_vaddr_to_offset(e, d.strtab, &s.strings))
		return -EBADMSG;
	r = d.hash ? hash_count(e, d.hash, &s.count) : gnu_hash_count(e, d.gnu_hash, &s.count);
	if (r)
		return r == -ENOENT ? -EBADMSG : r;
	return checked(e, s, ret);
}

int elf_symbols(const struct elf *e, uint32_t type, struct elf_symbols *ret)
{
	const struct elf_section *sec = elf_section_by_type(e, type);

	if (sec)
		return from_section(e, sec, ret);
	/* A debug file's PT_DYNAMIC still says where .dynamic was in the file it came from, so
	 * program headers are asked only where sections can't be. */
	if (type != SHT_DYNSYM || elf_section_count(e))
		return -ENOENT;
	return from_dynamic(e, ret);
}

/* ---- one symbol ---- */

static bool has_name(const char *strings, uint64_t size, const Elf64_Sym *sym, const char *name)
{
	size_t n = strlen(name) + 1;

	return sym->st_name < size && n <= size - sym->st_name &&
	       !memcmp(strings + sym->st_name, name, n);
}

int elf_symbol_value(const struct elf *e, uint32_t type, const char *name, uint64_t *ret)
{
	char *strings cleanup(freep_cleanup) = NULL;
	Elf64_Sym syms[512];
	struct elf_symbols s;
	int r = elf_symbols(e, type, &s);

	if (r)
		return r;
	if (s.strings_size > ELF_STRINGS_MAX)
		return -E2BIG;
	strings = malloc(s.strings_size + 1);
	if (!strings)
		return -ENOMEM;
	r = elf_read(e, s.strings, strings, s.strings_size);
	for (uint64_t at = 0; at < s.count && !r; at += ARRAY_SIZE(syms)) {
		size_t n = (size_t)MIN(s.count - at, (uint64_t)ARRAY_SIZE(syms));

		r = elf_read(e, s.offset + at * sizeof(*syms), syms, n * sizeof(*syms));
		for (size_t i = 0; i < n && !r; i++) {
			if (syms[i].st_shndx == SHN_UNDEF ||
			    !has_name(strings, s.strings_size, &syms[i], name))
				continue;
			*ret = syms[i].st_value;
			return 0;
		}
	}
	return r ? r : -ENOENT;
}
