/* code.c - see code.h.
 *
 * All pieces lie one behind the other in one array of bytes; "at" is an index into it. marks[at] says
 * what is known of the byte there: UNSEEN, INSIDE of an instruction, or the number of the state in
 * which the instruction that starts there is reached.
 *
 * A run follows the code from one address. It is a transaction: if it ends at a contradiction, its
 * marks are taken back and what it found is forgotten.
 */
#include "unwind/code.h"

#include "base/map.h"
#include "unwind/state.h"

enum {
	UNSEEN = 0,
	INSIDE = UINT16_MAX,
	STATES_MAX = UINT16_MAX - 1,	/* states 1 .. STATES_MAX - 1 */
	RETRIES = 64,			/* of a run; each learns of one call that doesn't return */
	ALIGNMENT = 16,			/* of functions */
	PADDING_MAX = 15,
};
#define NOWHERE UINT32_MAX

static const struct code_state at_entry = STATE_AT_ENTRY;

struct piece {
	uint64_t vaddr;
	uint32_t at, n;
};

/* A way that execution may take. */
struct path {
	uint32_t at;
	uint32_t call;		/* the call that it comes back from just here, nops aside; or NOWHERE */
	uint32_t last;		/* the last call on it */
	uint32_t suspect;	/* the last behind which another function could start */
	struct code_state state;
};

struct change {
	uint32_t at;
	uint16_t was;
};

struct arrival {	/* at was first reached by coming back from call */
	uint32_t at, call;
};

struct list {		/* of addresses */
	uint32_t *v;
	size_t n, cap;
};

struct code {
	struct piece *pieces;
	size_t npieces, pieces_cap, piece;
	uint8_t *bytes;
	uint16_t *marks;
	size_t n, bytes_cap, marks_cap;
	struct map states;	/* number + 1 of struct code_state */
	uint16_t mark;		/* the last number asked for, or 0 */
	struct map functions;	/* at: in order of discovery */
	struct map returnless;	/* at of calls */
	struct list roots;
	struct list refs;	/* addresses that code takes */
	struct list jumps;	/* indirect ones, not looked at yet */
	size_t functions_done;
	uint64_t work;		/* instructions that may yet be followed */

	/* of the run */
	struct path *paths;	/* to follow */
	struct path *later;	/* when there are no more: those that come back from a call, if it does */
	struct change *changes;
	struct arrival *arrivals;
	struct list found;	/* functions */
	size_t npaths, paths_cap, nlater, later_cap, nchanges, changes_cap, narrivals, arrivals_cap;
	bool wrong, again;	/* contradicted; contradicted and learnt from it */
	bool no_clearing;	/* rbp = 0 doesn't mean the outermost frame */
	bool guess;		/* it starts in a state that is only likely, and must agree with all else */
	bool unproven;		/* likewise, and must come out somewhere */
	bool confirmed;		/* it came to a return, or to what was known, in the right state */
	bool stripped;
};

int code_new(struct code **ret)
{
	struct code *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->states = (struct map)MAP_INIT(sizeof(struct code_state));
	c->functions = (struct map)MAP_INIT(sizeof(uint32_t));
	c->returnless = (struct map)MAP_INIT(sizeof(uint32_t));
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

static int list_add(struct list *l, uint32_t at)
{
	int r = array_grow(&l->v, &l->cap, l->n + 1, sizeof(*l->v));

	if (!r)
		l->v[l->n++] = at;
	return r;
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

/* The piece that an address lies in, or NULL. */
static const struct piece *piece_at(const struct code *c, uint64_t vaddr)
{
	size_t lo = 0, hi = c->npieces;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct piece *p = &c->pieces[mid];

		if (vaddr - p->vaddr < p->n)
			return p;
		if (vaddr < p->vaddr)
			hi = mid;
		else
			lo = mid + 1;
	}
	return NULL;
}

bool code_holds(const struct code *c, uint64_t vaddr)
{
	return piece_at(c, vaddr);
}

static uint32_t index_of(const struct code *c, uint64_t vaddr)
{
	const struct piece *p = piece_at(c, vaddr);

	return p ? p->at + (uint32_t)(vaddr - p->vaddr) : NOWHERE;
}

/* The piece that holds at: mostly the one asked for before. */
static const struct piece *piece_of(struct code *c, uint32_t at)
{
	size_t lo = 0, hi = c->npieces - 1;

	if (at - c->pieces[c->piece].at < c->pieces[c->piece].n)
		return &c->pieces[c->piece];
	while (lo < hi) {
		size_t mid = lo + (hi - lo + 1) / 2;

		if (c->pieces[mid].at <= at)
			lo = mid;
		else
			hi = mid - 1;
	}
	c->piece = lo;
	return &c->pieces[lo];
}

static uint64_t vaddr_of(struct code *c, uint32_t at)
{
	const struct piece *p = piece_of(c, at);

	return p->vaddr + (at - p->at);
}

static int decode(struct code *c, uint32_t at, struct insn *ret)
{
	const struct piece *p = piece_of(c, at);

	return insn_decode(c->bytes + at, p->at + p->n - at, ret);
}

static bool is_function(const struct code *c, uint32_t at)
{
	return map_find(&c->functions, &at) != MAP_NONE;
}

int code_function(struct code *c, uint64_t vaddr)
{
	uint32_t at = index_of(c, vaddr), n;

	return at == NOWHERE ? 0 : map_put(&c->functions, &at, &n, NULL);
}

int code_root(struct code *c, uint64_t vaddr)
{
	uint32_t at = index_of(c, vaddr);

	return at == NOWHERE ? 0 : list_add(&c->roots, at);
}

/* endbr64; push of a register that the callee saves; sub $n, %rsp. */
static bool is_prologue(struct code *c, uint32_t at)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	const struct piece *p = piece_of(c, at);
	const uint8_t *b = c->bytes + at;
	struct insn i;

	if (p->at + p->n - at < sizeof(endbr64))
		return false;
	if (!memcmp(b, endbr64, sizeof(endbr64)) || b[0] == 0x55 || b[0] == 0x53 ||
	    (b[0] == 0x41 && b[1] >= 0x54 && b[1] <= 0x57))
		return true;
	return !decode(c, at, &i) && i.stack == INSN_ADD_SP && i.n < -STATE_WORD;
}

int code_ref(struct code *c, uint64_t vaddr)
{
	uint32_t at = index_of(c, vaddr);

	return at == NOWHERE ? 0 : list_add(&c->refs, at);
}

/* ---- states --------------------------------------------------------------------------------- */

static const struct code_state *state_of(const struct code *c, uint16_t mark)
{
	return map_key(&c->states, mark - 1u);
}

/* The number of a state; the one of "nothing known" when there are too many. */
static int mark_of(struct code *c, const struct code_state *s, uint16_t *ret)
{
	static const struct code_state nothing = { .sp = STATE_UNKNOWN };
	uint32_t n;
	int r = 0;

	/* Most instructions leave it as it was. */
	if (c->mark && state_equal(s, state_of(c, c->mark))) {
		*ret = c->mark;
		return 0;
	}
	n = map_find(&c->states, s);
	if (n == MAP_NONE)
		r = map_put(&c->states, c->states.n < STATES_MAX - 2 ? s : &nothing, &n, NULL);
	if (!r)
		*ret = c->mark = (uint16_t)(n + 1);
	return r;
}

/* ---- a run ---------------------------------------------------------------------------------- */

static int set_mark(struct code *c, uint32_t at, uint16_t mark)
{
	int r = array_grow(&c->changes, &c->changes_cap, c->nchanges + 1, sizeof(*c->changes));

	if (r)
		return r;
	c->changes[c->nchanges++] = (struct change){ at, c->marks[at] };
	c->marks[at] = mark;
	return 0;
}

static int push_path(struct path **paths, size_t *n, size_t *cap, const struct path *p)
{
	int r = array_grow(paths, cap, *n + 1, sizeof(**paths));

	if (!r)
		(*paths)[(*n)++] = *p;
	return r;
}

/* A contradiction. With a call to blame, it doesn't return, and the run is made again. */
static int contradiction(struct code *c, uint32_t call)
{
	uint32_t n;

	c->wrong = true;
	c->again = call != NOWHERE;
	return c->again ? map_put(&c->returnless, &call, &n, NULL) : 0;
}

/* The call to blame for what a path has come to. */
static uint32_t suspect_of(const struct path *p)
{
	return p->suspect != NOWHERE ? p->suspect : p->last;
}

/* Assembly has cleared rbp for another reason. */
static int not_a_root(struct code *c)
{
	c->wrong = c->again = c->no_clearing = true;
	return 0;
}

static bool may_return(const struct code *c, const struct code_state *s)
{
	if (s->root)
		return s->root != STATE_CLEARED;
	return s->sp == STATE_UNKNOWN || (s->sp == STATE_WORD && (s->same || !c->guess));
}

/* The call by coming back from which this run reached at first. */
static uint32_t arrived_from(const struct code *c, uint32_t at)
{
	for (size_t i = c->narrivals; i > 0; i--)
		if (c->arrivals[i - 1].at == at)
			return c->arrivals[i - 1].call;
	return NOWHERE;
}

/* Notes a first visit. */
static int arrive(struct code *c, const struct path *p, const struct insn *i)
{
	int r = 0;

	for (uint32_t k = 1; k < i->size && !r; k++)
		if (c->marks[p->at + k] == UNSEEN)
			r = set_mark(c, p->at + k, INSIDE);
	if (r || p->call == NOWHERE)
		return r;
	r = array_grow(&c->arrivals, &c->arrivals_cap, c->narrivals + 1, sizeof(*c->arrivals));
	if (!r)
		c->arrivals[c->narrivals++] = (struct arrival){ p->at, p->call };
	return r;
}

/* Notes the state in which a path has come to an instruction. 1: that is news, go on from here in
 * p->state. */
static int visit(struct code *c, struct path *p)
{
	uint16_t mark = c->marks[p->at];
	struct code_state old;
	int r;

	if (mark == INSIDE)
		return 0;
	if (mark != UNSEEN) {
		old = *state_of(c, mark);
		if (state_contradict(&old, &p->state)) {
			uint32_t call = arrived_from(c, p->at);

			if (p->call != NOWHERE)	/* it doesn't: others came here otherwise */
				return 0;
			if (call != NOWHERE || c->guess)
				return contradiction(c, call);
		}
		p->state = state_meet(&old, &p->state);
		if (state_equal(&old, &p->state)) {
			c->confirmed = true;
			return 0;
		}
	}
	r = mark_of(c, &p->state, &mark);
	if (!r)
		r = set_mark(c, p->at, mark);
	return r ? r : 1;
}

static int note_target(struct code *c, uint64_t vaddr, const struct insn *i)
{
	uint32_t to = index_of(c, vaddr + (uint64_t)i->target);

	if (to == NOWHERE)
		return 0;
	if (i->flow == INSN_CALL && i->target != i->size)	/* that one only asks for the pc */
		return list_add(&c->found, to);
	return i->has_ref ? list_add(&c->refs, to) : 0;
}

/* On to the target of a jump, if it is code of ours. */
static int follow_jump(struct code *c, const struct path *p, uint64_t vaddr, const struct insn *i)
{
	struct path to = *p;

	to.at = index_of(c, vaddr + (uint64_t)i->target);
	to.call = NOWHERE;
	return to.at == NOWHERE ? 0 : push_path(&c->paths, &c->npaths, &c->paths_cap, &to);
}

/* Moves on to the instruction behind. 1: there is one that this path may reach. */
static int follow_next(struct code *c, struct path *p, uint64_t vaddr, const struct insn *i)
{
	const struct piece *piece = piece_of(c, p->at);
	uint32_t from = p->at;

	p->at += i->size;
	if (p->at >= piece->at + piece->n)
		return 0;
	if (i->flow == INSN_CALL) {
		if (map_find(&c->returnless, &from) != MAP_NONE)
			return 0;
		p->call = p->last = from;
	} else if (!i->nop) {
		p->call = NOWHERE;
	}
	if (p->call == NOWHERE)
		return 1;
	if (is_function(c, p->at))
		return 0;
	if ((vaddr + i->size) % ALIGNMENT == 0) {
		/* padding, then a prologue: another function, which nobody has told us of */
		if (i->nop && is_prologue(c, p->at))
			return list_add(&c->found, p->at);
		p->suspect = p->call;
	}
	return i->flow == INSN_CALL ? push_path(&c->later, &c->nlater, &c->later_cap, p) : 1;
}

/* Executes one instruction of a path. 1: the path goes on. */
static int follow(struct code *c, struct path *p)
{
	uint64_t vaddr = vaddr_of(c, p->at);
	bool first = c->marks[p->at] == UNSEEN;
	struct insn i;
	int r = visit(c, p);

	if (r <= 0 || c->wrong)
		return r;
	if (!c->work) {
		c->wrong = true;
		return 0;
	}
	c->work--;
	if (decode(c, p->at, &i))
		return contradiction(c, suspect_of(p));	/* data, or an instruction cut off */
	r = first ? arrive(c, p, &i) : 0;
	if (r)
		return r;
	if (i.flow == INSN_RETURN && !may_return(c, &p->state))
		return p->state.root ? not_a_root(c) : contradiction(c, suspect_of(p));
	c->confirmed |= i.flow == INSN_RETURN && p->state.sp == STATE_WORD;
	if (i.has_target || i.has_ref)
		r = note_target(c, vaddr, &i);
	if (r < 0)
		return r;
	if (i.flow == INSN_JUMP_INDIRECT)
		return list_add(&c->jumps, p->at);
	state_apply(&p->state, &i, !c->no_clearing);
	if (i.flow == INSN_JUMP || i.flow == INSN_BRANCH) {
		r = follow_jump(c, p, vaddr, &i);
		if (r)
			return r;
	}
	if (i.flow == INSN_JUMP || i.flow == INSN_RETURN || i.flow == INSN_STOP)
		return 0;
	return follow_next(c, p, vaddr, &i);
}

static int run_once(struct code *c, uint32_t at, const struct code_state *s)
{
	struct path p = { .at = at, .call = NOWHERE, .last = NOWHERE, .suspect = NOWHERE, .state = *s };
	int r = 0;

	c->npaths = c->nlater = c->nchanges = c->narrivals = c->found.n = 0;
	c->wrong = c->again = c->confirmed = false;
	for (;;) {
		do
			r = follow(c, &p);
		while (r == 1 && !c->wrong);
		if (r < 0 || c->wrong)
			return r;
		if (c->npaths) {
			p = c->paths[--c->npaths];
		} else if (c->nlater) {
			p = c->later[--c->nlater];
		} else {
			c->wrong = c->unproven && !c->confirmed;
			return 0;
		}
	}
}

/* Follows the code from at. *ret says whether that was without contradiction. */
static int run(struct code *c, uint32_t at, const struct code_state *s, bool *ret)
{
	size_t njumps = c->jumps.n, nrefs = c->refs.n;
	uint32_t n;
	int r;

	c->no_clearing = false;
	for (int i = 0; i < RETRIES; i++) {
		r = run_once(c, at, s);
		if (r || !c->wrong)
			break;
		while (c->nchanges) {
			c->nchanges--;
			c->marks[c->changes[c->nchanges].at] = c->changes[c->nchanges].was;
		}
		c->jumps.n = njumps;
		c->refs.n = nrefs;
		c->found.n = 0;
		if (!c->again)
			break;
	}
	for (size_t i = 0; i < c->found.n && !r; i++)
		r = map_put(&c->functions, &c->found.v[i], &n, NULL);
	*ret = !c->wrong;
	return r;
}

/* ---- where to start ------------------------------------------------------------------------- */

/* Functions known by now and, as they are found, those that they call. */
static int run_functions(struct code *c)
{
	bool good;
	int r = 0;

	while (c->functions_done < c->functions.n && !r) {
		const uint32_t *at = map_key(&c->functions, (uint32_t)c->functions_done++);

		r = run(c, *at, &at_entry, &good);
	}
	return r;
}

static int run_roots(struct code *c)
{
	static const struct code_state root = { .sp = STATE_UNKNOWN, .root = STATE_ENTRY };
	bool good;
	int r = 0;

	for (size_t i = 0; i < c->roots.n && !r; i++)
		r = run(c, c->roots.v[i], &root, &good);
	return r;
}

/* Unseen, and where compilers put functions. */
static bool may_start(struct code *c, uint32_t at)
{
	return c->marks[at] == UNSEEN && vaddr_of(c, at) % ALIGNMENT == 0;
}

/* Padding at `at`: its bytes. 0: none. */
static uint32_t padding_at(struct code *c, uint32_t at)
{
	struct insn i;

	if (c->bytes[at] == 0xcc)
		return 1;
	return !decode(c, at, &i) && i.nop ? i.size : 0;
}

/* Whether what stands before is a block that was followed, or padding. */
static bool is_behind_end(struct code *c, const struct piece *p, uint32_t at)
{
	if (at == p->at || c->marks[at - 1] != UNSEEN || c->bytes[at - 1] == 0xcc)
		return true;
	for (uint32_t k = 1; k < INSN_SIZE_MAX && at - p->at >= k; k++)
		if (padding_at(c, at - k) == k)
			return true;
	return false;
}

/* A run from what may be a function. *ret says whether all that it came to agrees. */
static int run_guess(struct code *c, uint32_t at, bool *ret)
{
	int r;

	c->guess = c->unproven = true;
	r = run(c, at, &at_entry, ret);
	c->guess = c->unproven = false;
	return r;
}

/* Addresses that something takes are functions, or labels that a jump table has. Only the former agree
 * with what is around them. Those behind which nothing is known yet wait for another round. */
static int run_refs(struct code *c)
{
	size_t kept = 0;
	int r = 0;

	for (size_t i = 0; i < c->refs.n && !r; i++) {
		uint32_t at = c->refs.v[i], n;
		bool good = false;

		if (c->marks[at] != UNSEEN)
			continue;
		if (!is_behind_end(c, piece_of(c, at), at)) {
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

			if (may_start(c, at) && is_prologue(c, at) && is_behind_end(c, p, at))
				r = map_put(&c->functions, &at, &n, NULL);
			if (!r)
				r = run_functions(c);
		}
	}
	return r;
}

/* ---- jump tables ---------------------------------------------------------------------------- */

static int by_at(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

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
		r = run(c, from, s, &good);
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
		const struct code_state *s = state_of(c, c->marks[jumps[i]]);

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
		const struct piece *p = piece_of(c, jumps->v[i]);
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
		r = list_add(&starts, *(const uint32_t *)map_key(&c->functions, i));
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
		r = state_row(state_of(c, mark));
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
				state_row(state_of(c, c->marks[at])).cfa != WK_CFA_NONE;
		n += known;
	}
	return n;
}
