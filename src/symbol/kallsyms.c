/* kallsyms.c - see kallsyms.h. */
#include "symbol/kallsyms.h"

#include <fcntl.h>

#include "base/map.h"
#include "symbol/alias.h"

#define NO_NAME	    UINT32_MAX	/* a symbol that only ends the one before it */
#define KERNEL_HALF (1ull << 63)
#define CHUNK	    (64u << 10)

enum { CORE = 0 };	/* module number of the core kernel; others are ids of the module table */

/* A line while loading. */
struct line {
	uint64_t addr;
	uint32_t name;		/* in names, or NO_NAME */
	uint32_t rank;		/* see alias.h */
	uint32_t module;
};

struct extra {
	char *name;
	size_t len;
	uint64_t addr;
	bool found, core;
};

struct kallsyms {
	uint64_t *addrs;	/* sorted, unique */
	uint32_t *name_at;	/* of each address: in names, or NO_NAME */
	uint16_t *module_of;
	size_t n, named;
	char *names;
	size_t names_size;
	struct strtab modules;	/* id 0, "", is the core kernel */
	uint32_t bpf;		/* id of "bpf", 0 if there are no BPF programs */
	struct extra *extra;
	size_t nextra;
};

struct loader {
	struct kallsyms *k;
	struct err *err;
	struct line *lines;
	size_t n, cap, names_cap;
	uint64_t stext, etext;		/* 0: no such mark */
	size_t text_lines, zero_lines;
	uint32_t prefixed;		/* the last line's name if it was __pfx_..., or NO_NAME */
	size_t prefixed_len;
	uint32_t last_module;		/* module lines come in runs */
	bool sorted;
};

/* One line cut into its fields; the strings aren't terminated. */
struct fields {
	uint64_t addr;
	char type;
	const char *name, *module;
	size_t name_len, module_len;	/* module_len 0: core kernel */
};

static const char prefix[] = "__pfx_"; /* x86: the padding before a function, Linux 6.2 */
#define PREFIX_LEN (sizeof(prefix) - 1)

/* Value + 1 of each hexadecimal digit, 0 for anything else: 120,000 lines have 2 million. */
static const unsigned char hex[256] = {
	['0'] = 1,  ['1'] = 2,	['2'] = 3,  ['3'] = 4,	['4'] = 5,  ['5'] = 6,	['6'] = 7,
	['7'] = 8,  ['8'] = 9,	['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14,
	['e'] = 15, ['f'] = 16, ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15,
	['F'] = 16,
};

/* "ffffffff81000010 T name" or "ffffffffc0001000 t name\t[module]", without the newline. A 64-bit
 * kernel always prints 16 digits. */
static bool split(const char *p, const char *end, struct fields *ret)
{
	unsigned int digit, valid = 1;
	const char *tab;

	if (end - p < 20 || p[16] != ' ' || p[18] != ' ')
		return false;
	ret->addr = 0;
	for (int i = 0; i < 16; i++) {	/* no early exit: it mispredicts, this unrolls */
		digit = hex[(unsigned char)p[i]];
		valid &= digit != 0;
		ret->addr = ret->addr << 4 | ((digit - 1) & 15);
	}
	ret->type = p[17];
	ret->name = p + 19;
	tab = memchr(ret->name, '\t', (size_t)(end - ret->name));
	ret->name_len = (size_t)((tab ? tab : end) - ret->name);
	ret->module = NULL;
	ret->module_len = 0;
	if (tab && end - tab >= 4 && tab[1] == '[' && end[-1] == ']') {
		ret->module = tab + 2;
		ret->module_len = (size_t)(end - 1 - ret->module);
	}
	return valid && ret->name_len && ret->name_len <= KALLSYMS_NAME_MAX &&
	       (!tab || ret->module_len);
}

static bool name_is(const struct fields *f, const char *name, size_t len)
{
	return f->name_len == len && !memcmp(f->name, name, len);
}

static void note_extra(struct kallsyms *k, const struct fields *f)
{
	for (size_t i = 0; i < k->nextra; i++) {
		struct extra *x = &k->extra[i];

		if (!name_is(f, x->name, x->len))
			continue;
		if (x->found && (x->core || f->module_len))
			continue;
		x->addr = f->addr;
		x->found = true;
		x->core = !f->module_len;
	}
}

static int module_id(struct loader *l, const struct fields *f, uint32_t *ret)
{
	struct strtab *t = &l->k->modules;
	int r;

	*ret = CORE;
	if (!f->module_len)
		return 0;
	*ret = l->last_module;
	if (strtab_len(t, *ret) == f->module_len &&
	    !memcmp(strtab_get(t, *ret), f->module, f->module_len))
		return 0;
	r = strtab_put(t, f->module, f->module_len, ret);
	if (r)
		return r;
	if (*ret > KALLSYMS_MODULES_MAX)
		return -E2BIG;
	l->last_module = *ret;
	return 0;
}

/* Stores the name, or finds it as the tail of the __pfx_ name just before. */
static int store_name(struct loader *l, const struct fields *f, uint32_t *ret)
{
	struct kallsyms *k = l->k;
	uint32_t shared = l->prefixed;
	int r;

	l->prefixed = NO_NAME;
	if (shared != NO_NAME && name_is(f, k->names + shared + PREFIX_LEN,
					 l->prefixed_len - PREFIX_LEN)) {
		*ret = shared + PREFIX_LEN;
		return 0;
	}
	if (k->names_size + f->name_len + 1 > KALLSYMS_NAMES_MAX)
		return -E2BIG;
	r = array_grow(&k->names, &l->names_cap, k->names_size + f->name_len + 1, 1);
	if (r)
		return r;
	*ret = (uint32_t)k->names_size;
	memcpy(k->names + k->names_size, f->name, f->name_len);
	k->names_size += f->name_len;
	k->names[k->names_size++] = '\0';
	if (f->name_len > PREFIX_LEN && !memcmp(f->name, prefix, PREFIX_LEN)) {
		l->prefixed = *ret;
		l->prefixed_len = f->name_len;
	}
	return 0;
}

static bool is_text(char type)
{
	return type == 't' || type == 'T' || type == 'w' || type == 'W';
}

static int add_line(struct loader *l, const struct fields *f)
{
	bool text = is_text(f->type);
	struct line line = { .addr = f->addr, .name = NO_NAME, .rank = UINT32_MAX };
	int r = 0;

	note_extra(l->k, f);
	if (text) {
		l->text_lines++;
		l->zero_lines += !f->addr;
	}
	if (text && !f->module_len && f->name_len == 6) {
		if (!memcmp(f->name, "_stext", 6))
			l->stext = f->addr;
		else if (!memcmp(f->name, "_etext", 6))
			l->etext = f->addr;
	}
	/* Data ends the text of a module; the core kernel's text is ended by _etext. */
	if (f->addr < KERNEL_HALF || (!text && !f->module_len))
		return 0;
	if (l->n >= KALLSYMS_SYMBOLS_MAX)
		return -E2BIG;
	if (text)
		r = store_name(l, f, &line.name);
	if (!r)
		r = module_id(l, f, &line.module);
	if (!r)
		r = array_grow(&l->lines, &l->cap, l->n + 1, sizeof(line));
	if (r)
		return r;
	if (text)
		line.rank = alias_rank(f->name, f->name_len, false,
				       f->type == 't' || f->type == 'w');
	l->sorted &= !l->n || l->lines[l->n - 1].addr <= line.addr;
	l->lines[l->n++] = line;
	return 0;
}

/* Takes the whole lines of a buffer; *ret_used is where the first incomplete one starts. */
static int add_text(struct loader *l, const char *p, size_t size, size_t *ret_used)
{
	const char *start = p, *end = p + size, *newline;
	struct fields f;
	int r;

	while (p < end && (newline = memchr(p, '\n', (size_t)(end - p)))) {
		if (!split(p, newline, &f))
			return err_set(l->err, -EBADMSG, "not in the format of /proc/kallsyms: "
				       "'%.*s'", (int)MIN(newline - p, 80), p);
		r = add_line(l, &f);
		if (r == -E2BIG)
			return err_set(l->err, r, "more kernel symbols than wick's limits allow");
		if (r)
			return r;
		p = newline + 1;
	}
	*ret_used = (size_t)(p - start);
	return 0;
}

static int compare_lines(const void *pa, const void *pb, void *names)
{
	const struct line *a = pa, *b = pb;
	const char *s = names;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	if (a->name == NO_NAME || b->name == NO_NAME)
		return (a->name == NO_NAME) - (b->name == NO_NAME);
	return alias_compare(a->rank, s + a->name, b->rank, s + b->name);
}

static void sort_lines(struct loader *l)
{
	size_t end;

	if (!l->sorted) {
		qsort_r(l->lines, l->n, sizeof(*l->lines), compare_lines, l->k->names);
		return;
	}
	for (size_t i = 0; i < l->n; i = end) {	/* only names of one address are in disorder */
		for (end = i + 1; end < l->n && l->lines[end].addr == l->lines[i].addr; end++)
			;
		if (end - i > 1)
			qsort_r(l->lines + i, end - i, sizeof(*l->lines), compare_lines,
				l->k->names);
	}
}

/* Core symbols outside of the kernel's text name nothing, but they end what comes before. */
static bool outside_text(const struct loader *l, const struct line *line)
{
	return line->module == CORE && ((l->stext && line->addr < l->stext) ||
					(l->etext && line->addr >= l->etext));
}

static int build(struct loader *l)
{
	struct kallsyms *k = l->k;
	size_t n = MAX(l->n, (size_t)1);

	sort_lines(l);
	k->addrs = calloc(n, sizeof(*k->addrs));
	k->name_at = calloc(n, sizeof(*k->name_at));
	k->module_of = calloc(n, sizeof(*k->module_of));
	if (!k->addrs || !k->name_at || !k->module_of)
		return -ENOMEM;
	for (size_t i = 0; i < l->n; i++) {
		const struct line *line = &l->lines[i];

		if (k->n && k->addrs[k->n - 1] == line->addr)
			continue;	/* the better alias is in already */
		k->addrs[k->n] = line->addr;
		k->module_of[k->n] = (uint16_t)line->module;
		k->name_at[k->n] = outside_text(l, line) ? NO_NAME : line->name;
		k->named += k->name_at[k->n++] != NO_NAME;
	}
	return 0;
}

static int finish(struct loader *l, struct kallsyms **ret)
{
	int r;

	if (!l->text_lines)
		return err_set(l->err, -EBADMSG, "the list of kernel symbols is empty");
	if (l->zero_lines == l->text_lines)
		return err_set(l->err, -EPERM, "kernel addresses are hidden from this process: it "
			       "needs CAP_SYSLOG, and sysctl kernel.kptr_restrict must be 0 or 1");
	r = build(l);
	if (r)
		return r;
	l->k->bpf = CORE;
	for (uint32_t i = 1; i < strtab_count(&l->k->modules); i++)
		if (!strcmp(strtab_get(&l->k->modules, i), "bpf"))
			l->k->bpf = i;
	*ret = take(l->k);
	return 0;
}

static int loader_init(struct loader *l, const char *const *extra, struct err *e)
{
	uint32_t id;
	size_t n = 0;
	int r;

	*l = (struct loader){ .err = e, .prefixed = NO_NAME, .sorted = true };
	l->k = calloc(1, sizeof(*l->k));
	if (!l->k)
		return -ENOMEM;
	l->k->modules = (struct strtab)STRTAB_INIT;
	r = strtab_put(&l->k->modules, "", 0, &id);	/* so that 0 is the core kernel */
	if (r)
		return r;
	while (extra && extra[n])
		n++;
	l->k->extra = calloc(n + 1, sizeof(*l->k->extra));
	if (!l->k->extra)
		return -ENOMEM;
	for (; l->k->nextra < n; l->k->nextra++) {
		struct extra *x = &l->k->extra[l->k->nextra];

		x->name = strdup(extra[l->k->nextra]);
		if (!x->name)
			return -ENOMEM;
		x->len = strlen(x->name);
	}
	return 0;
}

static void loader_cleanup(struct loader *l)
{
	kallsyms_free(l->k);
	free(l->lines);
}

/* Pseudo files have no size: read until there is no more, carrying the cut line over. */
static int read_all(struct loader *l, int fd, const char *path)
{
	char *buf cleanup(freep_cleanup) = malloc(CHUNK);
	size_t have = 0, used;
	ssize_t n;
	int r;

	if (!buf)
		return -ENOMEM;
	for (;;) {
		n = read(fd, buf + have, CHUNK - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(l->err, -errno, "%s: %s", path, strerror(errno));
		if (n == 0 && !have)
			return 0;
		have += (size_t)n;
		if (n == 0)
			buf[have++] = '\n';	/* a last line without newline; there is room */
		r = add_text(l, buf, have, &used);
		if (r)
			return r;
		have -= used;
		memmove(buf, buf + used, have);
		if (have >= CHUNK / 2)
			return err_set(l->err, -EBADMSG, "%s: a line of more than %u bytes", path,
				       CHUNK / 2);
	}
}

int kallsyms_load(const char *path, const char *const *extra, struct kallsyms **ret,
		  struct err *e)
{
	int fd cleanup(fd_cleanup) = open(path, O_RDONLY | O_CLOEXEC);
	struct loader l cleanup(loader_cleanup) = { 0 };
	int r;

	if (fd < 0)
		return err_set(e, -errno, "%s: %s", path, strerror(errno));
	r = loader_init(&l, extra, e);
	if (!r)
		r = read_all(&l, fd, path);
	return r ? r : finish(&l, ret);
}

int kallsyms_parse(const char *text, size_t size, const char *const *extra,
		   struct kallsyms **ret, struct err *e)
{
	struct loader l cleanup(loader_cleanup) = { 0 };
	size_t used = 0;
	int r = loader_init(&l, extra, e);

	if (!r)
		r = add_text(&l, text, size, &used);
	if (!r && used < size)
		r = err_set(e, -EBADMSG, "the last line has no end");
	return r ? r : finish(&l, ret);
}

void kallsyms_free(struct kallsyms *k)
{
	if (!k)
		return;
	for (size_t i = 0; i < k->nextra; i++)
		free(k->extra[i].name);
	free(k->extra);
	free(k->addrs);
	free(k->name_at);
	free(k->module_of);
	free(k->names);
	strtab_free(&k->modules);
	free(k);
}

/* Where the i-th symbol ends: at the next one, or before that where the gap can't be its own. */
static uint64_t symbol_end(const struct kallsyms *k, size_t i)
{
	uint64_t next = i + 1 < k->n ? k->addrs[i + 1] : UINT64_MAX;
	uint64_t most = UINT64_MAX;

	if (k->module_of[i] == CORE)
		return next;
	if (k->module_of[i] == k->bpf)
		most = KALLSYMS_BPF_MAX;
	else if (i + 1 == k->n || k->module_of[i + 1] != k->module_of[i])
		most = KALLSYMS_MODULE_TAIL;
	return next - k->addrs[i] > most ? k->addrs[i] + most : next;
}

bool kallsyms_lookup(const struct kallsyms *k, uint64_t addr, struct kallsym *ret)
{
	size_t lo = 0, hi = k->n, mid;
	uint64_t end;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (k->addrs[mid] <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || k->name_at[lo - 1] == NO_NAME)
		return false;
	end = symbol_end(k, lo - 1);
	if (addr >= end)
		return false;
	ret->name = k->names + k->name_at[lo - 1];
	ret->module = NULL;
	if (k->module_of[lo - 1] != CORE)
		ret->module = strtab_get(&k->modules, k->module_of[lo - 1]);
	ret->start = k->addrs[lo - 1];
	ret->end = end;
	return true;
}

bool kallsyms_find(const struct kallsyms *k, const char *name, uint64_t *ret)
{
	for (size_t i = 0; i < k->nextra; i++)
		if (k->extra[i].found && !strcmp(k->extra[i].name, name)) {
			*ret = k->extra[i].addr;
			return true;
		}
	return false;
}

size_t kallsyms_count(const struct kallsyms *k)
{
	return k->named;
}

size_t kallsyms_bytes(const struct kallsyms *k)
{
	return sizeof(*k) + k->n * (sizeof(*k->addrs) + sizeof(*k->name_at) +
				    sizeof(*k->module_of)) + k->names_size;
}
