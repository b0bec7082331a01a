/* symtab.c - see symtab.h. */
#include "symbol/symtab.h"

#include <elf.h>

#include "base/clock.h"
#include "elf/dynsym.h"
#include "symbol/alias.h"
#include "symbol/symnames.h"

#define NONE UINT32_MAX

_Static_assert(SYMTAB_NAME_MAX <= ALIAS_NAME_MAX, "a rank holds the length of every name");

/* What an entry's or an alias's name says besides the reference (symnames.h). */
enum {
	NAME_REF = SYMNAMES_REF_MAX - 1,
	NAME_GROUP = SYMNAMES_REF_MAX,	/* of an entry: the rest is an index into aliases */
	NAME_LOCAL = NAME_GROUP << 1,
	NAME_LABEL = NAME_GROUP << 2,
	NAME_MORE = NAME_GROUP << 3,	/* of an alias: another one follows */
};

/* One function; the table is sorted by (start ascending, size descending). */
struct entry {
	uint32_t start;		/* from base */
	uint32_t size;
	uint32_t name;
};

struct symtab {
	uint64_t base;
	struct entry *entries;
	uint32_t *outer;	/* of each entry: the nearest that may enclose it; or NULL */
	uint32_t *aliases;	/* names of the same code, one group after another */
	struct symnames names;
	char *text;		/* the last name that was read from a file; NULL: there is none */
	size_t n, naliases, dropped;
	int limited;
};

/* A symbol of some source; it may become an entry. */
struct candidate {
	uint32_t start;
	uint32_t size;		/* of an unsized one: at most this much */
	uint32_t name;		/* with NAME_LOCAL and NAME_LABEL */
	bool open;		/* unsized, reaches to the next */
	bool exact;		/* unsized, one address */
};

struct symtab_builder {
	uint64_t base;
	struct symtab_limits limits;
	struct candidate *candidates;
	size_t n, cap;
	struct symnames names;
	size_t dropped;
	int limited;
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
	symnames_free(&b->names);
	free(b);
}

/* Leaves a symbol out; because of a limit, or (0) because it is malformed. */
static void drop(struct symtab_builder *b, int limit)
{
	b->dropped++;
	if (limit)
		b->limited = limit;
}

/* Adds a candidate whose name is in strings already. 0, or -ENOMEM. */
static int add_candidate(struct symtab_builder *b, uint64_t start, uint64_t size,
			 struct candidate c)
{
	int r;

	if (start < b->base || start - b->base > UINT32_MAX || b->n >= b->limits.symbols) {
		drop(b, b->n >= b->limits.symbols ? -E2BIG : 0);
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

/* The same with a name that is copied; over a limit it is dropped. */
static int add_packed(struct symtab_builder *b, uint64_t start, uint64_t size, const char *name,
		      size_t len, struct candidate c)
{
	uint32_t ref = 0;
	int r;

	if (!len || len > SYMTAB_NAME_MAX) {
		drop(b, 0);
		return 0;
	}
	if (b->n >= b->limits.symbols ||
	    len >= b->limits.names - MIN(b->names.packed_size, (size_t)b->limits.names))
		r = -E2BIG;
	else
		r = symnames_add(&b->names, name, len, &ref);
	if (r == -E2BIG) {
		drop(b, r);
		return 0;
	}
	c.name |= ref;
	return r ? r : add_candidate(b, start, size, c);
}

int symtab_builder_add(struct symtab_builder *b, const char *name, size_t len, uint64_t start,
		       uint64_t size, unsigned int flags)
{
	struct candidate c = {
		.name = (flags & SYMTAB_LABEL ? (uint32_t)NAME_LABEL : 0) |
			(flags & SYMTAB_LOCAL ? (uint32_t)NAME_LOCAL : 0),
		.open = flags & SYMTAB_OPEN,
		.exact = !size && !(flags & SYMTAB_OPEN),
	};

	return add_packed(b, start, size, name, len, c);
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

/* Whether a symbol of that name counts. Names in files are looked at only where it is likely to matter,
 * in labels; and again when one is shown. */
static bool is_name(const char *name, size_t len, bool label)
{
	return len && !is_mapping_symbol(name) && !(label && name[0] == '.');
}

/* A table of symbols as it is read. */
struct reading {
	struct symtab_builder *b;
	const struct elf *e;
	bool dynamic;
	char *strings;		/* NULL: they stay in the file */
	uint32_t base;		/* then: the reference of the first */
	uint64_t strings_size;
	int strings_limited;	/* -E2BIG: there are more */
};

static int add_named(struct reading *t, const Elf64_Sym *sym, uint64_t size, struct candidate c)
{
	struct symtab_builder *b = t->b;
	bool label = c.name & NAME_LABEL;
	const char *name, *at;
	size_t len;

	if (!t->strings) {
		if (!sym->st_name)
			return 0;
		if (label && symnames_get(&b->names, t->base + sym->st_name, &name, &len) &&
		    !is_name(name, len, label))
			return 0;
		c.name |= t->base + sym->st_name;
		return add_candidate(b, sym->st_value, size, c);
	}
	name = t->strings + sym->st_name;
	len = strnlen(name, SYMTAB_NAME_MAX + 1);
	at = len ? memchr(name + 1, '@', len - 1) : NULL;
	if (at)
		len = (size_t)(at - name);
	return is_name(name, len, label) ? add_packed(b, sym->st_value, size, name, len, c) : 0;
}

static int add_symbol(struct reading *t, const Elf64_Sym *sym)
{
	unsigned int type = ELF64_ST_TYPE(sym->st_info), bind = ELF64_ST_BIND(sym->st_info);
	bool label = type == STT_NOTYPE;
	struct candidate c = {
		.name = (label ? (uint32_t)NAME_LABEL : 0) |
			(bind == STB_LOCAL ? (uint32_t)NAME_LOCAL : 0),
		.open = !sym->st_size && !t->dynamic,
		.exact = !sym->st_size && t->dynamic,
	};
	uint64_t max;

	if (type != STT_FUNC && type != STT_GNU_IFUNC && !label)
		return 0;
	if (sym->st_shndx == SHN_UNDEF ||
	    (sym->st_shndx >= SHN_LORESERVE && sym->st_shndx != SHN_XINDEX))
		return 0;
	max = room(t->e, sym);
	if (!max)
		return 0;
	if (sym->st_name >= t->strings_size) {
		drop(t->b, t->strings_limited);
		return 0;
	}
	return add_named(t, sym, sym->st_size ? MIN(sym->st_size, max) : max, c);
}

/* Finds the names: small string tables are read to be packed, large ones stay where they are. */
static int find_strings(struct reading *t, const struct elf_symbols *s)
{
	uint64_t n = MIN(s->strings_size, (uint64_t)t->b->limits.strings);
	int r = n > SYMTAB_PACK_MAX ? symnames_add_table(&t->b->names, t->e, s->strings, n, &t->base) :
				      -EBADF;

	t->strings_size = r == -E2BIG ? 0 : n;
	t->strings_limited = t->strings_size < s->strings_size ? -E2BIG : 0;
	if (r == -E2BIG)
		return 0;
	if (r != -EBADF)
		return r;
	t->strings = malloc(n + 1);	/* also of a file in memory, whatever its size */
	if (!t->strings)
		return -ENOMEM;
	t->strings[n] = '\0';
	return n ? elf_read(t->e, s->strings, t->strings, n) : 0;
}

static int read_symbols(struct reading *t, const struct elf_symbols *s)
{
	const size_t max = 4096;
	Elf64_Sym *chunk cleanup(freep_cleanup) = malloc(max * sizeof(*chunk));
	uint64_t n = MIN(s->count, SYMTAB_SCAN_MAX);
	int r = chunk ? 0 : -ENOMEM;

	for (uint64_t i = 0; i < n && !r; i += max) {
		size_t k = (size_t)MIN(max, n - i);

		if (t->b->limits.deadline && clock_monotonic() > t->b->limits.deadline) {
			t->b->limited = -ETIME;
			n = i;
			break;
		}
		r = elf_read(t->e, s->offset + i * sizeof(*chunk), chunk, k * sizeof(*chunk));
		for (size_t j = 0; !r && j < k; j++)
			r = add_symbol(t, &chunk[j]);
	}
	t->b->dropped += s->count - n;
	if (s->count > SYMTAB_SCAN_MAX)
		t->b->limited = -E2BIG;
	return r;
}

static int add_table(struct symtab_builder *b, const struct elf *e, uint32_t type)
{
	struct reading t = { .b = b, .e = e, .dynamic = type == SHT_DYNSYM };
	struct elf_symbols s;
	int r = elf_symbols(e, type, &s);

	if (r == -ENOENT || r == -EBADMSG)
		return 0;	/* one broken table must not cost the other */
	if (!r)
		r = find_strings(&t, &s);
	if (!r)
		r = read_symbols(&t, &s);
	free(t.strings);
	return r;
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

/* Within one start: sized before unsized, long before short; then whatever makes the order certain, those
 * that alias.h prefers first. */
static int compare_candidates(const void *pa, const void *pb)
{
	const struct candidate *a = pa, *b = pb;

	if (unsized(a) != unsized(b))
		return unsized(a) ? 1 : -1;
	if (!unsized(a) && a->size != b->size)
		return a->size > b->size ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name;
}

/* What finish() knows while it walks the candidates by address. */
struct sweep {
	struct symtab_builder *b;
	struct symtab *t;
	size_t aliases_cap;
	uint32_t top;		/* innermost entry that has not ended yet, or NONE */
	bool nested;
};

static int add_aliases(struct sweep *w, const struct candidate *c, size_t n, uint32_t *ret)
{
	struct symtab *t = w->t;
	int r = array_grow(&t->aliases, &w->aliases_cap, t->naliases + n, sizeof(*t->aliases));

	if (r)
		return r;
	*ret = (uint32_t)t->naliases | NAME_GROUP;
	for (size_t i = 0; i < n; i++)
		t->aliases[t->naliases++] = c[i].name | (i + 1 < n ? (uint32_t)NAME_MORE : 0);
	return 0;
}

/* An entry for n candidates of the same code. */
static int emit(struct sweep *w, const struct candidate *c, size_t n, uint32_t size)
{
	struct symtab *t = w->t;
	uint32_t name = c->name;
	int r = n > 1 ? add_aliases(w, c, MIN(n, (size_t)SYMTAB_ALIASES_MAX), &name) : 0;

	if (r)
		return r;
	t->entries[t->n] = (struct entry){ c->start, size, name };
	t->outer[t->n] = w->top;
	w->nested |= w->top != NONE;
	w->top = (uint32_t)t->n++;
	return 0;
}

/* The entries of one start, whose candidates are sorted. next is the start after it. */
static int emit_group(struct sweep *w, const struct candidate *c, size_t n, uint64_t next)
{
	uint64_t size = 1;
	size_t end;
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
		return emit(w, c, n, (uint32_t)MIN(size, UINT32_MAX));
	}
	for (size_t i = 0; !r && i < n && !unsized(&c[i]); i = end) {
		for (end = i + 1; end < n && !unsized(&c[end]) && c[end].size == c[i].size; end++)
			;
		r = emit(w, &c[i], end - i, c[i].size);
	}
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
			qsort(c + i, end - i, sizeof(*c), compare_candidates);
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
	t->limited = b->limited;
	t->names = b->names;
	b->names = (struct symnames)SYMNAMES_INIT;
	t->entries = calloc(MAX(b->n, (size_t)1), sizeof(*t->entries));
	t->outer = calloc(MAX(b->n, (size_t)1), sizeof(*t->outer));
	if (!t->entries || !t->outer)
		return -ENOMEM;
	r = emit_all(&w);
	if (r)
		return r;
	shrink(&t->entries, t->n * sizeof(*t->entries));
	symnames_shrink(&t->names);
	shrink(&t->aliases, t->naliases * sizeof(*t->aliases));
	if (t->names.ntables) {
		t->text = malloc(SYMTAB_NAME_MAX + 1);
		if (!t->text)
			return -ENOMEM;
	}
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
	free(t->aliases);
	free(t->text);
	symnames_free(&t->names);
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

/* The name of an alias if it is better than the best so far, whose rank *rank is (UINT32_MAX: there is none
 * yet). A better one that lies in a file is copied to t->text, since the next may displace it. */
static void consider(struct symtab *t, uint32_t alias, const char **best, uint32_t *rank)
{
	bool label = alias & NAME_LABEL;
	uint32_t ref = alias & NAME_REF, r;
	const char *name;
	size_t len;

	if (!symnames_get(&t->names, ref, &name, &len) || !is_name(name, len, label))
		return;
	r = alias_rank(name, len, label, alias & NAME_LOCAL);
	if (*best && alias_compare(r, name, *rank, *best) >= 0)
		return;
	*rank = r;
	if (ref < SYMNAMES_SPACE) {
		*best = name;
	} else {
		memcpy(t->text, name, len);
		t->text[len] = '\0';
		*best = t->text;
	}
}

/* The name of an entry, or NULL: it has none that can be read. */
static const char *name_of(struct symtab *t, const struct entry *e)
{
	uint32_t rank = UINT32_MAX;
	const char *best = NULL;

	if (!(e->name & NAME_GROUP)) {
		consider(t, e->name, &best, &rank);
		return best;
	}
	for (size_t i = e->name & NAME_REF;; i++) {
		consider(t, t->aliases[i], &best, &rank);
		if (!(t->aliases[i] & NAME_MORE))
			return best;
	}
}

bool symtab_lookup(struct symtab *t, uint64_t vaddr, struct symbol *ret)
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
			if (ret->name[0])
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
	       t->naliases * sizeof(*t->aliases) + symnames_bytes(&t->names) +
	       (t->text ? SYMTAB_NAME_MAX + 1 : 0);
}

size_t symtab_files(const struct symtab *t)
{
	return t->names.ntables;
}

size_t symtab_dropped(const struct symtab *t)
{
	return t->dropped;
}

int symtab_limited(const struct symtab *t)
{
	return t->limited;
}

void symtab_get(struct symtab *t, size_t n, struct symbol *ret)
{
	const struct entry *e = &t->entries[n];
	const char *name = name_of(t, e);

	*ret = (struct symbol){ name ? name : "", t->base + e->start, e->size };
}
