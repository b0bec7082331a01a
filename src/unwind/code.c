/* code.c - see code.h: where to start, and what was found. code_run.h follows the code. */
#include "unwind/code_run.h"

static const struct code_state at_entry = STATE_AT_ENTRY;

int code_new(struct code **ret)
{
	struct code *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->states = (struct map)MAP_INIT(sizeof(struct code_state));
	c->functions = (struct map)MAP_INIT(sizeof(uint32_t));
	c->returnless = (struct map)MAP_INIT(sizeof(uint32_t));
	c->own = (struct map)MAP_INIT(sizeof(uint32_t));
	*ret = c;
	return 0;
}

void code_free(struct code *c)
{
	if (!c)
		return;
	free(c->pieces);
	free(c->bytes);
	free(c->marks);
	map_free(&c->states);
	map_free(&c->functions);
	map_free(&c->returnless);
	map_free(&c->own);
	free(c->roots.v);
	free(c->refs.v);
	free(c->found.v);
	free(c->jumps.v);
	free(c->paths);
	free(c->later);
	free(c->changes);
	free(c->arrivals);
	free(c);
}

/* ---- pieces --------------------------------------------------------------------------------- */

int code_add(struct code *c, uint64_t vaddr, size_t size, uint8_t **ret_bytes)
{
	const struct piece *last = c->npieces ? &c->pieces[c->npieces - 1] : NULL;
	int r;

	if (!size || vaddr + size < vaddr || (last && vaddr < last->vaddr + last->n))
		return -EINVAL;
	if (size > CODE_BYTES_MAX - c->n)
		return -E2BIG;
	r = array_grow(&c->pieces, &c->pieces_cap, c->npieces + 1, sizeof(*c->pieces));
	if (!r)
		r = array_grow(&c->bytes, &c->bytes_cap, c->n + size, sizeof(*c->bytes));
	if (!r)
		r = array_grow(&c->marks, &c->marks_cap, c->n + size, sizeof(*c->marks));
	if (r)
		return r;
	c->pieces[c->npieces++] = (struct piece){ vaddr, (uint32_t)c->n, (uint32_t)size };
	memset(c->marks + c->n, 0, size * sizeof(*c->marks));
	memset(c->bytes + c->n, 0, size);
	*ret_bytes = c->bytes + c->n;
	c->n += size;
	c->work += (uint64_t)size * CODE_WORK;
	return 0;
}

bool code_holds(const struct code *c, uint64_t vaddr)
{
	return code_piece_at(c, vaddr);
}

int code_function(struct code *c, uint64_t vaddr)
{
	uint32_t at = code_index_of(c, vaddr), n;

	return at == NOWHERE ? 0 : map_put(&c->functions, &at, &n, NULL);
}

int code_root(struct code *c, uint64_t vaddr)
{
	uint32_t at = code_index_of(c, vaddr);

	return at == NOWHERE ? 0 : code_list_add(&c->roots, at);
}

int code_ref(struct code *c, uint64_t vaddr)
{
	uint32_t at = code_index_of(c, vaddr);

	return at == NOWHERE ? 0 : code_list_add(&c->refs, at);
}

/* ---- where to start ------------------------------------------------------------------------- */

/* Functions known by now and, as they are found, those that they call. */
static int run_functions(struct code *c)
{
	bool good;
	int r = 0;

	while (c->functions_done < c->functions.n && !r) {
		const uint32_t *at = map_key(&c->functions, (uint32_t)c->functions_done++);

		r = code_run(c, *at, &at_entry, &good);
	}
	return r;
}

static int run_roots(struct code *c)
{
	static const struct code_state root = { .sp = STATE_UNKNOWN, .root = STATE_ENTRY };
	bool good;
	int r = 0;

	for (size_t i = 0; i < c->roots.n && !r; i++)
		r = code_run(c, c->roots.v[i], &root, &good);
	return r;
}

/* Unseen, and where compilers put functions. */
static bool may_start(struct code *c, uint32_t at)
{
	return c->marks[at] == UNSEEN && code_vaddr_of(c, at) % ALIGNMENT == 0;
}

/* Padding at `at`: its bytes. 0: none. */
static uint32_t padding_at(struct code *c, uint32_t at)
{
	struct insn i;

	if (c->bytes[at] == 0xcc)
		return 1;
	return !code_decode(c, at, &i) && i.nop ? i.size : 0;
}

/* Whether what stands before is a block that was followed, or padding. */
static bool is_behind_end(struct code *c, const struct piece *p, uint32_t at)
{
	if (at == p->at || c->marks[at - 1] != UNSEEN || c->bytes[at - 1] == 0xcc)
		return true;
	if (c->bytes[at - 1] != 0x90 && c->bytes[at - 1])	/* how nops end */
		return false;
	for (uint32_t k = 1; k < INSN_SIZE_MAX && at - p->at >= k; k++)
		if (padding_at(c, at - k) == k)
			return true;
	return false;
}

static int by_at(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Sorts; each address once. */
static void make_set(struct list *l)
{
	size_t n = 0;

	if (l->n)
		qsort(l->v, l->n, sizeof(*l->v), by_at);
	for (size_t i = 0; i < l->n; i++)
		if (!n || l->v[n - 1] != l->v[i])
			l->v[n++] = l->v[i];
	l->n = n;
}

/* A run from what may be a function. *ret says whether all that it came to agrees. */
static int run_guess(struct code *c, uint32_t at, bool *ret)
{
	int r;

	c->guess = c->unproven = true;
	r = code_run(c, at, &at_entry, ret);
	c->guess = c->unproven = false;
	return r;
}

/* Addresses that something takes are functions, or labels that a jump table has. Only the former agree
 * with what is around them. Those behind which nothing is known yet wait for another round; between
 * sections zeros are padding. */
static int run_refs(struct code *c)
{
	size_t kept = 0;
	int r = 0;

	make_set(&c->refs);
	for (size_t i = 0; i < c->refs.n && !r; i++) {
		uint32_t at = c->refs.v[i], n;
		bool good = false;

		if (c->marks[at] != UNSEEN)
			continue;
		if (!is_behind_end(c, code_piece_of(c, at), at) &&
		    (!may_start(c, at) || c->bytes[at - 1])) {
			c->refs.v[kept++] = at;
			continue;
		}
		r = run_guess(c, at, &good);
		if (!r && good)
			r = map_put(&c->functions, &at, &n, NULL);
		if (!r)
			r = run_functions(c);
	}
	c->refs.n = kept;
	return r;
}

/* For files without symbols. */
static int run_prologues(struct code *c)
{
	uint32_t n;
	int r = 0;

	for (size_t i = 0; i < c->npieces && !r; i++) {
		const struct piece *p = &c->pieces[i];
		uint64_t first = (ALIGNMENT - p->vaddr % ALIGNMENT) % ALIGNMENT;

		for (uint64_t k = first; k < p->n && !r; k += ALIGNMENT) {
			uint32_t at = p->at + (uint32_t)k;

			if (may_start(c, at) && code_is_prologue(c, at) && is_behind_end(c, p, at))
				r = map_put(&c->functions, &at, &n, NULL);
			if (!r)
				r = run_functions(c);
		}
	}
	return r;
}

/* ---- jump tables ---------------------------------------------------------------------------- */

/* Runs from each unseen block of [from, to), all reached in one state. */
static int run_between(struct code *c, uint32_t from, uint32_t to, const struct code_state *s)
{
	int r = 0;

	while (from < to && !r) {
		uint32_t padding;
		bool good;

		if (c->marks[from] != UNSEEN) {
			from++;
			continue;
		}
		padding = padding_at(c, from);
		if (padding) {
			from += padding;
			continue;
		}
		c->guess = true;
		/* A landing pad of an exception, or another function that no symbol told us of? */
		c->unproven = c->stripped || state_equal(s, &at_entry);
		r = code_run(c, from, s, &good);
		c->guess = c->unproven = false;
		/* else data: on behind the next block that was reached */
		while (!good && from < to && c->marks[from] == UNSEEN)
			from++;
	}
	return r;
}

/* The one state of these jumps, all of one function. A jump through memory or a register in the state
 * of the entry may as well be a call in tail position; it counts if there is no other, and if it is known
 * where the function ends. */
static bool state_of_jumps(const struct code *c, const uint32_t *jumps, size_t n, struct code_state *ret)
{
	const struct code_state *one = &at_entry;

	for (size_t i = 0; i < n; i++) {
		const struct code_state *s = code_state_of(c, c->marks[jumps[i]]);

		if (state_equal(s, &at_entry))
			continue;
		if (!state_equal(one, &at_entry) && !state_equal(one, s))
			return false;
		one = s;
	}
	*ret = *one;
	return !c->stripped || !state_equal(one, &at_entry);
}

/* jumps and starts (of functions) are sorted. */
static int run_tables_of(struct code *c, const struct list *jumps, const struct list *starts)
{
	size_t k = 0, more;
	struct code_state s;
	int r = 0;

	for (size_t i = 0; i < jumps->n && !r; i += more) {
		const struct piece *p = code_piece_of(c, jumps->v[i]);
		uint32_t from = p->at, to = p->at + p->n;

		while (k < starts->n && starts->v[k] <= jumps->v[i])
			k++;
		if (k)
			from = MAX(from, starts->v[k - 1]);
		if (k < starts->n)
			to = MIN(to, starts->v[k]);
		for (more = 1; i + more < jumps->n && jumps->v[i + more] < to;)
			more++;
		if (state_of_jumps(c, &jumps->v[i], more, &s))
			r = run_between(c, from, to, &s);
	}
	return r;
}

static int run_jump_tables(struct code *c)
{
	struct list jumps = c->jumps, starts = { 0 };
	int r = 0;

	c->jumps = (struct list){ 0 };	/* for those found by the way */
	for (uint32_t i = 0; i < c->functions.n && !r; i++)
		r = code_list_add(&starts, *(const uint32_t *)map_key(&c->functions, i));
	if (!r && jumps.n && starts.n) {
		qsort(jumps.v, jumps.n, sizeof(*jumps.v), by_at);
		qsort(starts.v, starts.n, sizeof(*starts.v), by_at);
		r = run_tables_of(c, &jumps, &starts);
	}
	free(jumps.v);
	free(starts.v);
	return r;
}

int code_trace(struct code *c, bool stripped)
{
	size_t functions;
	int r = run_roots(c);

	c->stripped = stripped;
	do {
		functions = c->functions.n;
		if (!r)
			r = run_functions(c);
		if (!r)
			r = run_refs(c);
		if (!r && stripped)
			r = run_prologues(c);
		if (!r)
			r = run_jump_tables(c);
	} while (!r && (c->functions.n > functions || c->jumps.n));
	return r;
}

/* ---- what was found ------------------------------------------------------------------------- */

bool code_next(const struct code *c, size_t *n, uint64_t *ret_start, uint64_t *ret_end)
{
	while (*n < c->npieces) {
		const struct piece *p = &c->pieces[(*n)++];
		uint32_t from = p->at, to = p->at + p->n;

		while (from < to && c->marks[from] == UNSEEN)
			from++;
		while (to > from && c->marks[to - 1] == UNSEEN)
			to--;
		if (from == to)
			continue;
		*ret_start = p->vaddr + (from - p->at);
		*ret_end = p->vaddr + (to - p->at);
		return true;
	}
	return false;
}

void code_rows(const struct code *c, size_t n, code_row_fn *row, void *arg)
{
	static const struct wk_row none = { .cfa = WK_CFA_NONE };
	const struct piece *p = &c->pieces[n];
	uint32_t unseen = 0, end = p->at + p->n;
	uint16_t last = UNSEEN;

	while (end > p->at && c->marks[end - 1] == UNSEEN)
		end--;
	for (uint32_t at = p->at; at < end; at++) {
		uint16_t mark = c->marks[at];
		struct wk_row r;

		if (mark == UNSEEN) {
			/* Padding between functions belongs to what stands before it. */
			if (++unseen == PADDING_MAX + 1 && last != UNSEEN) {
				row(arg, p->vaddr + (at - PADDING_MAX - p->at), &none);
				last = UNSEEN;
			}
			continue;
		}
		unseen = 0;
		if (mark == INSIDE || mark == last)
			continue;
		last = mark;
		r = state_row(code_state_of(c, mark));
		row(arg, p->vaddr + (at - p->at), &r);
	}
}

uint64_t code_bytes(const struct code *c)
{
	return c->n;
}

uint64_t code_known_bytes(const struct code *c)
{
	uint64_t n = 0;
	bool known = false;

	for (size_t at = 0; at < c->n; at++) {
		if (c->marks[at] != INSIDE)
			known = c->marks[at] != UNSEEN &&
				state_row(code_state_of(c, c->marks[at])).cfa != WK_CFA_NONE;
		n += known;
	}
	return n;
}
