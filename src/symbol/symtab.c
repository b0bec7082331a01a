/* symtab.c - see symtab.h. */
#include "symbol/symtab.h"

#include <elf.h>

#include "elf/dynsym.h"
#include "symbol/alias.h"

#define NONE UINT32_MAX

_Static_assert(SYMTAB_NAME_MAX <= ALIAS_NAME_MAX, "a rank holds the length of every name");

/* One function; the table is sorted by (start ascending, size descending). */
struct entry {
	uint32_t start;		/* from base */
	uint32_t size;
	uint32_t name;		/* in names */
};

struct symtab {
	uint64_t base;
	struct entry *entries;
	uint32_t *outer;	/* of each entry: the nearest that may enclose it; or NULL */
	char *names;
	size_t n, names_size, dropped;
};

/* A symbol of some source; it may become an entry. */
struct candidate {
	uint32_t start;
	uint32_t size;		/* of an unsized one: at most this much */
	uint32_t name;		/* in strings */
	uint32_t rank : 30;	/* see alias.h */
	uint32_t open : 1;	/* unsized, reaches to the next */
	uint32_t exact : 1;	/* unsized, one address */
};

struct symtab_builder {
	uint64_t base;
	struct symtab_limits limits;
	struct candidate *candidates;
	size_t n, cap;
	char *strings;		/* string tables and added names, one after another */
	size_t strings_size, strings_cap;
	size_t dropped;
};

int symtab_builder_new(const struct elf *of, const struct symtab_limits *limits,
		       struct symtab_builder **ret)
{
	static const struct symtab_limits defaults = SYMTAB_LIMITS_DEFAULT;
	struct symtab_builder *b = calloc(1, sizeof(*b));
	const struct elf_segment *s;
	size_t n;

	if (!b)
		return -ENOMEM;
	b->limits = limits ? *limits : defaults;
	b->base = UINT64_MAX;
	s = elf_segments(of, &n);
	for (size_t i = 0; i < n; i++)
		if (s[i].type == PT_LOAD && s[i].flags & PF_X)
			b->base = MIN(b->base, s[i].vaddr);
	if (b->base == UINT64_MAX)
		b->base = 0;
	*ret = b;
	return 0;
}

void symtab_builder_free(struct symtab_builder *b)
{
	if (!b)
		return;
	free(b->candidates);
	free(b->strings);
	free(b);
}

/* Makes room for n more bytes of strings and a NUL; 0, -ENOMEM, or -E2BIG over the limit. */
static int reserve_strings(struct symtab_builder *b, uint64_t n)
{
	if (n >= b->limits.strings - MIN(b->strings_size, b->limits.strings))
		return -E2BIG;
	return array_grow(&b->strings, &b->strings_cap, b->strings_size + n + 1, 1);
}

/* Adds a candidate whose name is in strings already. 0, or -ENOMEM. */
static int add_candidate(struct symtab_builder *b, uint64_t start, uint64_t size,
			 struct candidate c)
{
	int r;

	if (start < b->base || start - b->base > UINT32_MAX || b->n >= b->limits.symbols) {
		b->dropped++;
		return 0;
	}
	r = array_grow(&b->candidates, &b->cap, b->n + 1, sizeof(c));
	if (r)
		return -ENOMEM;
	c.start = (uint32_t)(start - b->base);
	c.size = (uint32_t)MIN(size, UINT32_MAX);
	b->candidates[b->n++] = c;
	return 0;
}

int symtab_builder_add(struct symtab_builder *b, const char *name, size_t len, uint64_t start,
		       uint64_t size, unsigned int flags)
{
	struct candidate c = { .name = (uint32_t)b->strings_size };
	int r;

	if (!len || len > SYMTAB_NAME_MAX) {
		b->dropped++;
		return 0;
	}
	r = reserve_strings(b, len);
	if (r == -E2BIG) {
		b->dropped++;
		return 0;
	}
	if (r)
		return r;
	memcpy(b->strings + b->strings_size, name, len);
	b->strings_size += len;
	b->strings[b->strings_size++] = '\0';
	c.rank = alias_rank(name, len, flags & SYMTAB_LABEL, flags & SYMTAB_LOCAL);
	c.open = !!(flags & SYMTAB_OPEN);
	c.exact = !size && !c.open;
	return add_candidate(b, start, size, c);
}

/* The executable memory that a symbol lies in, as far as the file says: its section, in a file
 * without sections its segment. Returns the bytes from the symbol to the end, 0 for "not code". */
static uint64_t room(const struct elf *e, const Elf64_Sym *sym)
{
	const struct elf_section *sec;
	const struct elf_segment *seg;

	if (!elf_section_count(e) || sym->st_shndx == SHN_XINDEX) {
		seg = elf_exec_segment(e, sym->st_value);
		return seg ? seg->memsz - (sym->st_value - seg->vaddr) : 0;
	}
	sec = elf_section(e, sym->st_shndx);
	if (!sec || !(sec->flags & SHF_EXECINSTR) || sym->st_value < sec->addr ||
	    sym->st_value - sec->addr >= sec->size)
		return 0;
	return sec->size - (sym->st_value - sec->addr);
}

static bool is_mapping_symbol(const char *name)
{
	return name[0] == '$' && name[1] && strchr("adtx", name[1]) && (!name[2] || name[2] == '.');
}

/* One symbol of a file, whose names start at strings_at and fill size bytes and a NUL. */
static int add_symbol(struct symtab_builder *b, const struct elf *e, const Elf64_Sym *sym,
		      bool dynamic, size_t strings_at, size_t size)
{
	unsigned int type = ELF64_ST_TYPE(sym->st_info), bind = ELF64_ST_BIND(sym->st_info);
	bool label = type == STT_NOTYPE;
	struct candidate c = { .open = !sym->st_size && !dynamic,
			       .exact = !sym->st_size && dynamic };
	uint64_t max;
	size_t len;
	const char *name, *at;

	if (type != STT_FUNC && type != STT_GNU_IFUNC && !label)
		return 0;
	if (sym->st_shndx == SHN_UNDEF ||
	    (sym->st_shndx >= SHN_LORESERVE && sym->st_shndx != SHN_XINDEX))
		return 0;
	max = room(e, sym);
	if (!max)
		return 0;
	if (sym->st_name >= size) {
		b->dropped++;
		return 0;
	}
	name = b->strings + strings_at + sym->st_name;
	len = strnlen(name, SYMTAB_NAME_MAX + 1);
	at = len ? memchr(name + 1, '@', len - 1) : NULL;
	if (at)
		len = (size_t)(at - name);
	if (!len || is_mapping_symbol(name) || (label && name[0] == '.'))
		return 0;
	if (len > SYMTAB_NAME_MAX) {
		b->dropped++;
		return 0;
	}
	c.name = (uint32_t)(strings_at + sym->st_name);
	c.rank = alias_rank(name, len, label, bind == STB_LOCAL);
	return add_candidate(b, sym->st_value, sym->st_size ? MIN(sym->st_size, max) : max, c);
}

/* Reads a string table behind what is there, or as much of it as the limit allows. */
static int read_strings(struct symtab_builder *b, const struct elf *e,
			const struct elf_symbols *s, size_t *ret_size)
{
	uint64_t left = b->limits.strings - MIN(b->strings_size, b->limits.strings);
	uint64_t n = MIN(s->strings_size, left ? left - 1 : 0);
	int r = n ? reserve_strings(b, n) : 0;

	if (!r && n)
		r = elf_read(e, s->strings, b->strings + b->strings_size, n);
	if (r)
		return r;
	if (n) {
		b->strings_size += n;
		b->strings[b->strings_size++] = '\0';
	}
	*ret_size = n;
	return 0;
}

static int add_table(struct symtab_builder *b, const struct elf *e, uint32_t type)
{
	size_t strings_at = b->strings_size, size = 0;
	struct elf_symbols s;
	Elf64_Sym chunk[512];
	uint64_t n;
	int r = elf_symbols(e, type, &s);

	if (r == -ENOENT || r == -EBADMSG)
		return 0;	/* one broken table must not cost the other */
	if (!r)
		r = read_strings(b, e, &s, &size);
	if (r)
		return r;
	n = MIN(s.count, SYMTAB_SCAN_MAX);
	b->dropped += s.count - n;
	for (uint64_t i = 0; i < n; i += ARRAY_SIZE(chunk)) {
		size_t k = (size_t)MIN(ARRAY_SIZE(chunk), n - i);

		r = elf_read(e, s.offset + i * sizeof(*chunk), chunk, k * sizeof(*chunk));
		for (size_t j = 0; !r && j < k; j++)
			r = add_symbol(b, e, &chunk[j], type == SHT_DYNSYM, strings_at, size);
		if (r)
			return r;
	}
	return 0;
}

int symtab_builder_add_elf(struct symtab_builder *b, const struct elf *e)
{
	int r;

	if (elf_type(e) == ET_REL)
		return -ENOTSUP;
	r = add_table(b, e, SHT_SYMTAB);
	return r ? r : add_table(b, e, SHT_DYNSYM);
}

size_t symtab_builder_count(const struct symtab_builder *b)
{
	return b->n;
}

/* Stable radix sort by start: three passes of 11 bits. A comparison sort of the million symbols
 * of a browser takes several times as long. */
static int sort_candidates(struct symtab_builder *b)
{
	struct candidate *from = b->candidates, *to, *swap;
	size_t counts[1 << 11], sum, n;

	to = malloc(MAX(b->n, (size_t)1) * sizeof(*to));
	if (!to)
		return -ENOMEM;
	for (unsigned int shift = 0; shift < 32; shift += 11) {
		memset(counts, 0, sizeof(counts));
		for (size_t i = 0; i < b->n; i++)
			counts[from[i].start >> shift & 0x7ff]++;
		sum = 0;
		for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
			n = counts[i];
			counts[i] = sum;
			sum += n;
		}
		for (size_t i = 0; i < b->n; i++)
			to[counts[from[i].start >> shift & 0x7ff]++] = from[i];
		swap = from;
		from = to;
		to = swap;
	}
	b->candidates = from;
	b->cap = b->n;
	free(to);
	return 0;
}

static bool unsized(const struct candidate *c)
{
	return c->open || c->exact;
}

/* Within one start: sized before unsized, long before short, the better alias first. */
static int compare_candidates(const void *pa, const void *pb, void *strings)
{
	const struct candidate *a = pa, *b = pb;
	const char *s = strings;

	if (unsized(a) != unsized(b))
		return unsized(a) ? 1 : -1;
	if (!unsized(a) && a->size != b->size)
		return a->size > b->size ? -1 : 1;
	return alias_compare(a->rank, s + a->name, b->rank, s + b->name);
}

/* What finish() knows while it walks the candidates by address. */
struct sweep {
	struct symtab_builder *b;
	struct symtab *t;
	size_t names_cap;
	uint32_t top;		/* innermost entry that has not ended yet, or NONE */
	bool nested;
};

static int emit(struct sweep *w, const struct candidate *c, uint32_t size)
{
	struct symtab *t = w->t;
	size_t len = alias_length(c->rank);
	int r;

	if (len >= w->b->limits.names - MIN(t->names_size, w->b->limits.names)) {
		t->dropped++;
		return 0;
	}
	r = array_grow(&t->names, &w->names_cap, t->names_size + len + 1, 1);
	if (r)
		return r;
	t->entries[t->n] = (struct entry){ c->start, size, (uint32_t)t->names_size };
	t->outer[t->n] = w->top;
	w->nested |= w->top != NONE;
	w->top = (uint32_t)t->n++;
	memcpy(t->names + t->names_size, w->b->strings + c->name, len);
	t->names[t->names_size + len] = '\0';
	t->names_size += len + 1;
	return 0;
}

/* The entries of one start, whose candidates are sorted. next is the start after it. */
static int emit_group(struct sweep *w, const struct candidate *c, size_t n, uint64_t next)
{
	uint64_t size = 1;
	int r = 0;

	while (w->top != NONE && (uint64_t)w->t->entries[w->top].start +
					 w->t->entries[w->top].size <= c->start)
		w->top = w->t->outer[w->top];
	if (unsized(c)) {
		if (w->top != NONE)
			return 0;	/* a label inside a function */
		for (size_t i = 0; i < n; i++)
			if (c[i].open)
				size = MAX(size, MIN(c[i].size, next - c->start));
		return emit(w, c, (uint32_t)MIN(size, UINT32_MAX));
	}
	for (size_t i = 0; !r && i < n && !unsized(&c[i]); i++)
		if (!i || c[i].size != c[i - 1].size)
			r = emit(w, &c[i], c[i].size);
	return r;
}

static int emit_all(struct sweep *w)
{
	struct candidate *c = w->b->candidates;
	size_t n = w->b->n, end;
	int r;

	for (size_t i = 0; i < n; i = end) {
		for (end = i + 1; end < n && c[end].start == c[i].start; end++)
			;
		if (end - i > 1)
			qsort_r(c + i, end - i, sizeof(*c), compare_candidates, w->b->strings);
		r = emit_group(w, c + i, end - i, end < n ? c[end].start : UINT64_MAX);
		if (r)
			return r;
	}
	return 0;
}

/* Gives back what was allocated for the worst case. Failing to shrink is no failure. */
static void shrink(void *p_array, size_t bytes)
{
	void *p, *old;

	memcpy(&old, p_array, sizeof(old));
	p = realloc(old, MAX(bytes, (size_t)1));
	if (p)
		memcpy(p_array, &p, sizeof(p));
}

int symtab_builder_finish(struct symtab_builder *b, struct symtab **ret)
{
	struct symtab_builder *owned cleanup(symtab_builder_cleanup) = b;
	struct symtab *t cleanup(symtab_cleanup) = calloc(1, sizeof(*t));
	struct sweep w = { .b = b, .t = t, .top = NONE };
	int r;

	if (!t)
		return -ENOMEM;
	r = sort_candidates(owned);
	if (r)
		return r;
	t->base = b->base;
	t->dropped = b->dropped;
	t->entries = calloc(MAX(b->n, (size_t)1), sizeof(*t->entries));
	t->outer = calloc(MAX(b->n, (size_t)1), sizeof(*t->outer));
	if (!t->entries || !t->outer)
		return -ENOMEM;
	r = emit_all(&w);
	if (r)
		return r;
	shrink(&t->entries, t->n * sizeof(*t->entries));
	shrink(&t->names, t->names_size);
	if (w.nested) {
		shrink(&t->outer, t->n * sizeof(*t->outer));
	} else {
		free(t->outer);
		t->outer = NULL;
	}
	*ret = take(t);
	return 0;
}

int symtab_build(const struct elf *e, const struct symtab_limits *limits, struct symtab **ret)
{
	struct symtab_builder *b cleanup(symtab_builder_cleanup) = NULL;
	int r = symtab_builder_new(e, limits, &b);

	if (!r)
		r = symtab_builder_add_elf(b, e);
	return r ? r : symtab_builder_finish(take(b), ret);
}

void symtab_free(struct symtab *t)
{
	if (!t)
		return;
	free(t->entries);
	free(t->outer);
	free(t->names);
	free(t);
}

/* The number of entries that start at or before rel. */
static size_t upper_bound(const struct symtab *t, uint32_t rel)
{
	size_t lo = 0, hi = t->n, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (t->entries[mid].start <= rel)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

bool symtab_lookup(const struct symtab *t, uint64_t vaddr, struct symbol *ret)
{
	uint32_t rel = (uint32_t)(vaddr - t->base), i;
	size_t after;

	if (vaddr < t->base || vaddr - t->base > UINT32_MAX)
		return false;
	after = upper_bound(t, rel);
	i = after ? (uint32_t)(after - 1) : NONE;
	for (int depth = 0; i != NONE && depth <= SYMTAB_NESTING_MAX; depth++) {
		if (rel - t->entries[i].start < t->entries[i].size) {
			symtab_get(t, i, ret);
			return true;
		}
		i = t->outer ? t->outer[i] : NONE;
	}
	return false;
}

size_t symtab_count(const struct symtab *t)
{
	return t->n;
}

size_t symtab_bytes(const struct symtab *t)
{
	return sizeof(*t) + t->n * (sizeof(*t->entries) + (t->outer ? sizeof(*t->outer) : 0)) +
	       t->names_size;
}

size_t symtab_dropped(const struct symtab *t)
{
	return t->dropped;
}

void symtab_get(const struct symtab *t, size_t n, struct symbol *ret)
{
	const struct entry *e = &t->entries[n];

	*ret = (struct symbol){ t->names + e->name, t->base + e->start, e->size };
}
