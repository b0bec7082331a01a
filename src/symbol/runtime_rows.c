/* runtime_rows.c - see runtime_rows.h. */
#include "symbol/runtime_rows.h"

#include <sys/mman.h>

#include "base/clock.h"
#include "proc/memory.h"
#include "unwind/genrows.h"

struct rule {			/* from a byte of its function on */
	uint32_t offset;
	struct wk_row row;
};

struct function {
	uint64_t start, end, where;
	uint32_t first, n;	/* of its rules; none: it can't be followed */
};

struct list {			/* in order of address, disjoint */
	struct function *v;
	size_t n, cap;
	struct rule *rules;
	size_t nrules, rules_cap;
};

static uint64_t list_bytes(const struct list *l)
{
	return l->n * sizeof(*l->v) + l->nrules * sizeof(*l->rules);
}

struct runtime_rows {
	struct list now;
	uint64_t seen;		/* what of the runtime's list is in it */
	bool all;		/* all of that */
	uint64_t left_out;
	struct genrows g;
	uint8_t *code;
	size_t code_cap;
};

int runtime_rows_new(struct runtime_rows **ret)
{
	struct runtime_rows *rr = calloc(1, sizeof(*rr));

	if (!rr)
		return -ENOMEM;
	*ret = rr;
	return 0;
}

static void list_free(struct list *l)
{
	free(l->v);
	free(l->rules);
	*l = (struct list){ 0 };
}

void runtime_rows_free(struct runtime_rows *rr)
{
	if (!rr)
		return;
	list_free(&rr->now);
	genrows_free(&rr->g);
	free(rr->code);
	free(rr);
}

int runtime_rows_needed(const struct runtime *rt, uint64_t addr)
{
#ifdef __x86_64__
	cleanup(genrows_cleanup) struct genrows g = GENROWS_INIT;
	cleanup(freep_cleanup) uint8_t *code = NULL;
	int process cleanup(fd_cleanup) = runtime_open_process(rt);
	int copy cleanup(fd_cleanup) = -1, r;
	struct memory_range m;
	uint64_t start, end;
	bool ok;

	if (process < 0 || !runtime_piece(rt, addr, &start, &end) || end - start > GENROWS_BYTES_MAX)
		return 0;
	m = (struct memory_range){ start, (uint32_t)(end - start), 0 };
	code = malloc(m.size);
	copy = memfd_create("wick-code", MFD_CLOEXEC);
	if (!code || copy < 0)
		return 0;
	r = memory_read(process, &m, 1, copy, &ok);
	if (r || !ok || pread(copy, code, m.size, 0) != (ssize_t)m.size)
		return r == -ETIMEDOUT ? r : 0;
	return !genrows_trace(&g, code, m.size) && g.frameless;
#else
	(void)rt;
	(void)addr;
	return 0;
#endif
}

static int add_rule(void *arg, uint32_t offset, const struct wk_row *row)
{
	struct list *l = arg;
	int r = array_grow(&l->rules, &l->rules_cap, l->nrules + 1, sizeof(*l->rules));

	if (!r)
		l->rules[l->nrules++] = (struct rule){ offset, *row };
	return r;
}

/* What is known of the function at *at or behind, which moves up to it. */
static const struct function *known(const struct list *l, size_t *at, const struct function *f)
{
	const struct function *k;

	while (*at < l->n && l->v[*at].start < f->start)
		++*at;
	k = *at < l->n ? &l->v[*at] : NULL;
	return k && k->start == f->start && k->end == f->end && k->where == f->where ? k : NULL;
}

struct update {
	struct runtime_rows *rr;
	struct list next;
	size_t at;		/* in the list before */
	int process, copy;
	uint64_t max_bytes, deadline;
	bool late;
	uint64_t left_out;
	/* what isn't known, in order, and how much of it has been read: a part at a time */
	struct memory_range *wanted;
	size_t nwanted, wanted_cap, at_wanted;
	size_t part, read_to;	/* [part, read_to) is in the copy */
	uint64_t offset;	/* there */
	bool ok[MEMORY_RANGES];
};

static void update_cleanup(struct update *u)
{
	list_free(&u->next);
	free(u->wanted);
	if (u->process >= 0)
		close(u->process);
	if (u->copy >= 0)
		close(u->copy);
}

static int note_wanted(void *arg, uint64_t start, uint64_t end, uint64_t where)
{
	struct update *u = arg;
	const struct function f = { .start = start, .end = end, .where = where };
	int r;

	if (known(&u->rr->now, &u->at, &f) || end - start > GENROWS_BYTES_MAX)
		return 0;
	r = array_grow(&u->wanted, &u->wanted_cap, u->nwanted + 1, sizeof(*u->wanted));
	if (!r)
		u->wanted[u->nwanted++] = (struct memory_range){ start, (uint32_t)(end - start), 0 };
	return r;
}

/* The next part of what is wanted. 0; -EBUSY: not now; -ETIMEDOUT. */
static int read_part(struct update *u)
{
	uint64_t bytes = 0;
	size_t n = 0;
	int r;

	while (n < MEMORY_RANGES && u->read_to + n < u->nwanted &&
	       bytes + u->wanted[u->read_to + n].size <= MEMORY_BYTES)
		bytes += u->wanted[u->read_to + n++].size;
	memset(u->ok, 0, sizeof(u->ok));
	r = memory_read(u->process, u->wanted + u->read_to, n, u->copy, u->ok);
	if (r == -EBUSY || r == -ETIMEDOUT)
		return r;
	u->part = u->read_to;
	u->read_to += n;
	u->offset = 0;
	return 0;
}

/* The code of a function that is wanted; they come in order. 0; -ENOENT: it can't be read; of read_part(); -ENOMEM. */
static int read_code(struct update *u, uint64_t start)
{
	const struct memory_range *m;
	uint64_t at;
	size_t i;
	int r = 0;

	if (u->at_wanted == u->nwanted || u->wanted[u->at_wanted].start != start)
		return -ENOENT;
	if (u->at_wanted == u->read_to)
		r = read_part(u);
	if (r)
		return r;
	i = u->at_wanted++;
	m = &u->wanted[i];
	at = u->offset;
	u->offset += m->size;
	if (!u->ok[i - u->part])
		return -ENOENT;
	r = array_grow(&u->rr->code, &u->rr->code_cap, m->size, 1);
	if (r)
		return r;
	return pread(u->copy, u->rr->code, m->size, (off_t)at) == (ssize_t)m->size ? 0 : -ENOENT;
}
/* Adds the rules of a function that isn't known, if it can be read and followed. */
static int follow(struct update *u, uint64_t start, uint64_t end)
{
	int r = read_code(u, start);

	if (!r)
		r = genrows_trace(&u->rr->g, u->rr->code, (size_t)(end - start));
	if (!r)
		return genrows_each(&u->rr->g, add_rule, &u->next);
	return r == -ENOENT || r == -E2BIG ? 0 : r;
}

static int add_function(void *arg, uint64_t start, uint64_t end, uint64_t where)
{
	struct update *u = arg;
	struct function f = { .start = start, .end = end, .where = where,
			      .first = (uint32_t)u->next.nrules };
	const struct function *k = known(&u->rr->now, &u->at, &f);
	int r = array_grow(&u->next.v, &u->next.cap, u->next.n + 1, sizeof(f));

	if (!r && list_bytes(&u->next) >= u->max_bytes) {
		u->left_out++;
		return 0;
	}
	if (r)
		return r;
	if (!k && (u->late |= clock_monotonic() >= u->deadline))
		return 0;
	if (k) {
		for (uint32_t i = 0; i < k->n && !r; i++)
			r = add_rule(&u->next, u->rr->now.rules[k->first + i].offset,
				     &u->rr->now.rules[k->first + i].row);
	} else {
		r = follow(u, start, end);
		if (r == -EBUSY) {
			u->late = true;
			return 0;
		}
	}
	f.n = (uint32_t)u->next.nrules - f.first;
	if (!r)
		u->next.v[u->next.n++] = f;
	return r;
}

/* What can be followed counts: lists hold tables of jumps as well. */
static uint64_t weight(const struct function *f)
{
	return f->n ? f->end - f->start : 0;
}

/* [*lo, *hi) of the list: within a span, most code. */
static void cluster(const struct list *l, size_t *lo, size_t *hi)
{
	uint64_t bytes = 0, best = 0;

	for (size_t from = 0, to = 0; to < l->n; to++) {
		bytes += weight(&l->v[to]);
		for (; from <= to && l->v[to].end - l->v[from].start > RUNTIME_ROWS_SPAN; from++)
			bytes -= weight(&l->v[from]);
		if (bytes > best) {
			best = bytes;
			*lo = from;
			*hi = to + 1;
		}
	}
}

static int put(struct unwtab_rule **v, size_t *n, size_t *cap, uint64_t addr, struct wk_row row)
{
	int r = array_grow(v, cap, *n + 1, sizeof(**v));

	if (!r)
		(*v)[(*n)++] = (struct unwtab_rule){ addr, row };
	return r;
}

/* Adds to *left_out. */
static int make_table(const struct list *l, uint64_t *left_out, struct unwtab **ret)
{
	const struct wk_row none = { .cfa = WK_CFA_NONE };
	struct unwtab_rule *v cleanup(freep_cleanup) = NULL;
	size_t n = 0, cap = 0, lo = 0, hi = 0;
	int r = 0;

	cluster(l, &lo, &hi);
	for (size_t i = 0; i < l->n; i++)
		*left_out += l->v[i].n && (i < lo || i >= hi);
	for (size_t i = lo; i < hi && !r; i++) {
		const struct function *f = &l->v[i];

		for (uint32_t k = f->first; k < f->first + f->n && !r; k++)
			r = put(&v, &n, &cap, f->start + l->rules[k].offset, l->rules[k].row);
		if (!r && f->n && (i + 1 == hi || l->v[i + 1].start != f->end || !l->v[i + 1].n))
			r = put(&v, &n, &cap, f->end, none);
	}
	if (!r && n)
		r = unwtab_build(v, n, &UNWTAB_LIMITS_DEFAULT, ret);
	return r == -E2BIG ? 0 : r;
}

int runtime_rows_update(struct runtime_rows *rr, const struct runtime *rt, uint64_t max_bytes,
			uint64_t deadline, struct unwtab **ret)
{
	cleanup(update_cleanup) struct update u = { .rr = rr, .process = -1, .copy = -1, .max_bytes = max_bytes,
						    .deadline = deadline };
	uint64_t changes = runtime_changes(rt);
	int r;

	*ret = NULL;
	if (changes == rr->seen && rr->all)
		return 0;
	u.process = runtime_open_process(rt);
	if (u.process < 0)
		return 0;
	u.copy = memfd_create("wick-code", MFD_CLOEXEC);
	if (u.copy < 0)
		return -EAGAIN;
	r = runtime_each_piece(rt, note_wanted, &u);
	u.at = 0;
	if (!r)
		r = runtime_each_piece(rt, add_function, &u);
	if (r)
		return r;
	list_free(&rr->now);
	rr->now = u.next;
	u.next = (struct list){ 0 };
	rr->seen = changes;
	rr->all = !u.late;
	rr->left_out = u.left_out;
	r = make_table(&rr->now, &rr->left_out, ret);
	return !r && u.late ? -EAGAIN : r;
}

uint64_t runtime_rows_bytes(const struct runtime_rows *rr)
{
	return rr ? list_bytes(&rr->now) : 0;
}

uint64_t runtime_rows_left_out(const struct runtime_rows *rr)
{
	return rr ? rr->left_out : 0;
}
