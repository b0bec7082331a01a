/* plt.c - see plt.h. */
#include "symbol/plt.h"

#include <elf.h>

#include "base/buf.h"
#include "elf/dynsym.h"
#include "symbol/alias.h"

#define SUFFIX "@plt"
#define CHUNK  512	/* symbols or relocations read at once */

_Static_assert(SYMTAB_NAME_MAX <= ALIAS_NAME_MAX, "a rank holds the length of every name");

struct reloc {
	uint64_t slot;
	uint64_t what;		/* index of a symbol, or the address of a resolver */
	bool resolver;
};

struct ifunc {
	uint64_t resolver;
	uint32_t rank;		/* alias.h */
	uint32_t name;		/* in names */
};

struct plt {
	struct symtab_builder *b;
	const struct elf *e;
	struct elf_symbols dynsym;	/* count is 0 in a static program */
	struct reloc *relocs;	/* by slot */
	size_t nrelocs, relocs_cap;
	struct ifunc *ifuncs;	/* by resolver, the best name first */
	size_t nifuncs, ifuncs_cap;
	size_t ifuncs_left, scan_left, bytes_left;	/* of the header's limits */
	struct buf names;
	char name[SYMTAB_NAME_MAX + 1];
};

/* ---- names ---- */

/* The name at an offset of a string table, cut off at "@VERSION"; with room for the suffix. Its
 * length, 0 without one, or -errno. */
static int read_name(struct plt *p, const struct elf_symbols *s, uint32_t at)
{
	size_t max = sizeof(p->name) - sizeof(SUFFIX), n;
	char *version;
	int r;

	if (at >= s->strings_size)
		return 0;
	n = (size_t)MIN(max, s->strings_size - at);
	r = elf_read(p->e, s->strings + at, p->name, n);
	if (r)
		return r;
	p->name[n] = '\0';
	n = strlen(p->name);
	if (n == max)
		return 0;	/* cut off: no name is better */
	version = n ? strchr(p->name + 1, '@') : NULL;
	return version ? (int)(version - p->name) : (int)n;
}

static int add_ifunc(struct plt *p, const struct elf_symbols *s, const Elf64_Sym *sym)
{
	int len, r;

	if (ELF64_ST_TYPE(sym->st_info) != STT_GNU_IFUNC || sym->st_shndx == SHN_UNDEF ||
	    !p->ifuncs_left)
		return 0;
	p->ifuncs_left--;
	len = read_name(p, s, sym->st_name);
	if (len <= 0)
		return len;
	r = array_grow(&p->ifuncs, &p->ifuncs_cap, p->nifuncs + 1, sizeof(*p->ifuncs));
	if (r)
		return r;
	p->ifuncs[p->nifuncs++] = (struct ifunc){
		.resolver = sym->st_value,
		.rank = alias_rank(p->name, (size_t)len, false,
				   ELF64_ST_BIND(sym->st_info) == STB_LOCAL),
		.name = (uint32_t)p->names.len,
	};
	buf_bytes(&p->names, p->name, (size_t)len);
	buf_char(&p->names, '\0');
	return p->names.err;
}

static int read_ifuncs(struct plt *p, uint32_t table)
{
	struct elf_symbols s;
	Elf64_Sym chunk[CHUNK];
	int r = elf_symbols(p->e, table, &s);

	if (r)
		return r == -ENOMEM ? r : 0;
	s.count = MIN(s.count, p->scan_left);
	p->scan_left -= s.count;
	for (uint64_t i = 0; i < s.count && !r; i += CHUNK) {
		size_t n = (size_t)MIN(CHUNK, s.count - i);

		r = elf_read(p->e, s.offset + i * sizeof(*chunk), chunk, n * sizeof(*chunk));
		for (size_t j = 0; j < n && !r; j++)
			r = add_ifunc(p, &s, &chunk[j]);
	}
	return r;
}

static int compare_ifuncs(const void *pa, const void *pb, void *names)
{
	const struct ifunc *a = pa, *b = pb;
	const char *s = names;

	if (a->resolver != b->resolver)
		return a->resolver < b->resolver ? -1 : 1;
	return alias_compare(a->rank, s + a->name, b->rank, s + b->name);
}

static const char *ifunc_name(const struct plt *p, uint64_t resolver)
{
	size_t lo = 0, hi = p->nifuncs, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (p->ifuncs[mid].resolver < resolver)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < p->nifuncs && p->ifuncs[lo].resolver == resolver ?
		       p->names.data + p->ifuncs[lo].name : NULL;
}

/* ---- relocations ---- */

/* False: not of a kind that fills a slot for a call. */
static bool parse_reloc(const struct elf *e, const Elf64_Rela *from, struct reloc *ret)
{
	uint32_t type = ELF64_R_TYPE(from->r_info);
	bool x86 = elf_machine(e) == EM_X86_64;
	uint32_t resolver = x86 ? R_X86_64_IRELATIVE : R_AARCH64_IRELATIVE;
	uint32_t jump = x86 ? R_X86_64_JUMP_SLOT : R_AARCH64_JUMP_SLOT;
	uint32_t data = x86 ? R_X86_64_GLOB_DAT : R_AARCH64_GLOB_DAT;

	if (type != resolver && type != jump && type != data)
		return false;
	ret->slot = from->r_offset;
	ret->resolver = type == resolver;
	ret->what = ret->resolver ? (uint64_t)from->r_addend : ELF64_R_SYM(from->r_info);
	return true;
}

static int read_relocs(struct plt *p, const struct elf_section *s)
{
	Elf64_Rela chunk[CHUNK];
	uint64_t count = MIN(s->size / sizeof(*chunk), p->scan_left);
	struct reloc reloc;
	int r = 0;

	if (s->offset > elf_size(p->e) || s->size > elf_size(p->e) - s->offset)
		return 0;	/* nonsense, or a debug file: the other sections count */
	p->scan_left -= count;
	for (uint64_t i = 0; i < count && !r; i += CHUNK) {
		size_t n = (size_t)MIN(CHUNK, count - i);

		r = elf_read(p->e, s->offset + i * sizeof(*chunk), chunk, n * sizeof(*chunk));
		for (size_t j = 0; j < n && !r; j++) {
			if (!parse_reloc(p->e, &chunk[j], &reloc))
				continue;
			if (p->nrelocs == PLT_RELOCS_MAX)
				return 0;
			r = array_grow(&p->relocs, &p->relocs_cap, p->nrelocs + 1, sizeof(reloc));
			if (!r)
				p->relocs[p->nrelocs++] = reloc;
		}
	}
	return r;
}

static int compare_relocs(const void *pa, const void *pb)
{
	const struct reloc *a = pa, *b = pb;

	return a->slot < b->slot ? -1 : a->slot > b->slot;
}

static const struct reloc *reloc_of(const struct plt *p, uint64_t slot)
{
	struct reloc key = { .slot = slot };

	if (!p->nrelocs)
		return NULL;
	return bsearch(&key, p->relocs, p->nrelocs, sizeof(key), compare_relocs);
}

/* ---- stubs ---- */

/* A piece of a section that may be a stub. */
struct code {
	const uint8_t *p;
	size_t n;
	uint64_t vaddr;
};

static int name_stub(struct plt *p, uint64_t start, uint64_t size, const struct reloc *reloc)
{
	const char *resolved;
	Elf64_Sym sym;
	int len = 0, r;

	if (reloc->resolver) {
		resolved = ifunc_name(p, reloc->what);
		if (resolved)
			len = (int)strlen(strcpy(p->name, resolved));
	} else if (reloc->what && reloc->what < p->dynsym.count) {
		r = elf_read(p->e, p->dynsym.offset + reloc->what * sizeof(sym), &sym, sizeof(sym));
		if (r)
			return r;
		len = read_name(p, &p->dynsym, sym.st_name);
	}
	if (len <= 0)
		return len;
	memcpy(p->name + len, SUFFIX, sizeof(SUFFIX));
	return symtab_builder_add(p->b, p->name, (size_t)len + sizeof(SUFFIX) - 1, start, size,
				  SYMTAB_LOCAL);
}

static bool skip(struct code *c, const uint8_t *bytes, size_t n)
{
	if (c->n < n || memcmp(c->p, bytes, n))
		return false;
	*c = (struct code){ c->p + n, c->n - n, c->vaddr + n };
	return true;
}

/* The n-th relocation of .rela.plt, for the entries of .plt that push it. */
static bool nth_reloc(const struct plt *p, uint32_t n, struct reloc *ret)
{
	const struct elf_section *s = elf_section_by_name(p->e, ".rela.plt");
	Elf64_Rela rela;

	return s && s->type == SHT_RELA && n < s->size / sizeof(rela) &&
	       s->offset <= UINT64_MAX - (n + UINT64_C(1)) * sizeof(rela) &&
	       !elf_read(p->e, s->offset + n * sizeof(rela), &rela, sizeof(rela)) &&
	       parse_reloc(p->e, &rela, ret);
}

static int x86_stub(struct plt *p, const struct code *stub)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa }, bnd[] = { 0xf2 };
	static const uint8_t push[] = { 0x68 }, jmp[] = { 0xff, 0x25 };
	const struct reloc *reloc = NULL;
	struct code c = *stub;
	struct reloc nth;
	uint32_t n;

	skip(&c, endbr64, sizeof(endbr64));
	if (skip(&c, push, sizeof(push)) && c.n >= sizeof(n)) {
		memcpy(&n, c.p, sizeof(n));
		reloc = nth_reloc(p, n, &nth) ? &nth : NULL;
	} else {
		skip(&c, bnd, sizeof(bnd));
		if (skip(&c, jmp, sizeof(jmp)) && c.n >= sizeof(n)) {
			memcpy(&n, c.p, sizeof(n));
			reloc = reloc_of(p, c.vaddr + sizeof(n) + (uint64_t)(int64_t)(int32_t)n);
		}
	}
	return reloc ? name_stub(p, stub->vaddr, stub->n, reloc) : 0;
}

static int x86_section(struct plt *p, const struct elf_section *s, const uint8_t *bytes, size_t n)
{
	size_t size = s->entsize == 8 || s->entsize == 32 ? s->entsize : 16;
	int r = 0;

	for (size_t at = 0; n - at >= size && !r; at += size)
		r = x86_stub(p, &(struct code){ bytes + at, size, s->addr + at });
	return r;
}

static uint32_t instruction(const uint8_t *bytes)
{
	uint32_t i;

	memcpy(&i, bytes, sizeof(i));
	return i;
}

/* adrp x16, PAGE; ldr x17, [x16, #OFFSET] (Arm ARM, C6.2.13 and C6.2.198). False: not these. */
static bool arm64_slot(const uint8_t *bytes, uint64_t vaddr, uint64_t *ret)
{
	uint32_t adrp = instruction(bytes), ldr = instruction(bytes + 4);
	uint64_t page;

	if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
		return false;
	page = (adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3);
	page = (page ^ 1 << 20) - (1 << 20);	/* sign of 21 bits */
	*ret = (vaddr & ~UINT64_C(4095)) + (page << 12) + (uint64_t)(ldr >> 10 & 0xfff) * 8;
	return true;
}

/* Stubs of 16 or 24 bytes, told apart by their first and last instructions. */
static int arm64_section(struct plt *p, const struct elf_section *s, const uint8_t *bytes, size_t n)
{
	const uint32_t bti_c = 0xd503245f, br_x17 = 0xd61f0220;
	const struct reloc *reloc;
	uint64_t slot;
	int r = 0;

	for (size_t at = 0; n - at >= 8 && !r; at += 4) {
		size_t start = at, end = at + 8;

		if (!arm64_slot(bytes + at, s->addr + at, &slot))
			continue;
		if (at && instruction(bytes + at - 4) == bti_c)
			start = at - 4;
		while (n - end >= 4 && end - start < 24 && instruction(bytes + end) != br_x17)
			end += 4;
		end += n - end >= 4 && end - start < 24 ? 4 : 0;
		reloc = reloc_of(p, slot);
		if (reloc)
			r = name_stub(p, s->addr + start, end - start, reloc);
	}
	return r;
}

static bool is_plt(const struct elf_section *s)
{
	static const char *const names[] = { ".plt", ".plt.sec", ".plt.got", ".iplt" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(s->name, names[i]))
			return s->type == SHT_PROGBITS && s->flags & SHF_EXECINSTR;
	return false;
}

static int add_section(struct plt *p, const struct elf_section *s)
{
	void *bytes cleanup(freep_cleanup) = NULL;
	size_t n;
	int r;

	if (s->addr > UINT64_MAX - s->size)
		return -EBADMSG;
	r = elf_section_read(p->e, s, p->bytes_left, &bytes, &n);
	if (r)
		return r;
	p->bytes_left -= n;
	return elf_machine(p->e) == EM_X86_64 ? x86_section(p, s, bytes, n) :
						arm64_section(p, s, bytes, n);
}

static int prepare(struct plt *p)
{
	int r = elf_symbols(p->e, SHT_DYNSYM, &p->dynsym);
	bool resolvers = false;

	if (r == -ENOMEM)
		return r;
	for (size_t i = 0; i < elf_section_count(p->e); i++) {
		const struct elf_section *s = elf_section(p->e, i);

		r = s->type == SHT_RELA && s->flags & SHF_ALLOC ? read_relocs(p, s) : 0;
		if (r)
			return r;
	}
	if (p->nrelocs)
		qsort(p->relocs, p->nrelocs, sizeof(*p->relocs), compare_relocs);
	for (size_t i = 0; i < p->nrelocs && !resolvers; i++)
		resolvers = p->relocs[i].resolver;
	if (!resolvers)
		return 0;
	r = read_ifuncs(p, SHT_DYNSYM);
	if (!r)
		r = read_ifuncs(p, SHT_SYMTAB);
	if (!r && p->nifuncs)
		qsort_r(p->ifuncs, p->nifuncs, sizeof(*p->ifuncs), compare_ifuncs, p->names.data);
	return r;
}

int plt_add(struct symtab_builder *b, const struct elf *e)
{
	struct plt p = {
		.b = b,
		.e = e,
		.ifuncs_left = PLT_IFUNCS_MAX,
		.scan_left = PLT_SCAN_MAX,
		.bytes_left = PLT_BYTES_MAX,
		.names = BUF_INIT(PLT_IFUNCS_MAX * 1024),
	};
	bool any = false;
	int r = -ENOENT;

	for (size_t i = 0; i < elf_section_count(e) && !any; i++)
		any = is_plt(elf_section(e, i));
	if (any)
		r = prepare(&p);
	for (size_t i = 0; i < elf_section_count(e) && !r; i++)
		if (is_plt(elf_section(e, i)))
			r = add_section(&p, elf_section(e, i));
	free(p.relocs);
	free(p.ifuncs);
	buf_free(&p.names);
	return r;
}
