/* code_run.c - see code_run.h. */
#include "unwind/code_run.h"

enum {
	STATES_MAX = UINT16_MAX - 1,	/* states 1 .. STATES_MAX - 1 */
	RETRIES = 64,			/* of a run; each learns of one call that doesn't return */
	PATIENCE = 4096,		/* instructions until something that is only likely is proven */
};

int code_list_add(struct list *l, uint32_t at)
{
	int r = array_grow(&l->v, &l->cap, l->n + 1, sizeof(*l->v));

	if (!r)
		l->v[l->n++] = at;
	return r;
}

/* ---- places in the code ----------------------------------------------------------------------- */

/* The piece that an address lies in, or NULL. */
const struct piece *code_piece_at(const struct code *c, uint64_t vaddr)
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

uint32_t code_index_of(const struct code *c, uint64_t vaddr)
{
	const struct piece *p = code_piece_at(c, vaddr);

	return p ? p->at + (uint32_t)(vaddr - p->vaddr) : NOWHERE;
}

/* The piece that holds at: mostly the one asked for before. */
const struct piece *code_piece_of(struct code *c, uint32_t at)
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

uint64_t code_vaddr_of(struct code *c, uint32_t at)
{
	const struct piece *p = code_piece_of(c, at);

	return p->vaddr + (at - p->at);
}

int code_decode(struct code *c, uint32_t at, struct insn *ret)
{
	const struct piece *p = code_piece_of(c, at);

	return insn_decode(c->bytes + at, p->at + p->n - at, ret);
}

bool code_is_function(const struct code *c, uint32_t at)
{
	return map_find(&c->functions, &at) != MAP_NONE;
}

/* endbr64; push of a register that the callee saves; sub $n, %rsp. */
bool code_is_prologue(struct code *c, uint32_t at)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	const struct piece *p = code_piece_of(c, at);
	const uint8_t *b = c->bytes + at;
	struct insn i;

	if (p->at + p->n - at < sizeof(endbr64))
		return false;
	if (!memcmp(b, endbr64, sizeof(endbr64)) || b[0] == 0x55 || b[0] == 0x53 ||
	    (b[0] == 0x41 && b[1] >= 0x54 && b[1] <= 0x57))
		return true;
	return !code_decode(c, at, &i) && i.stack == INSN_ADD_SP && i.n < -STATE_WORD;
}

/* ---- states --------------------------------------------------------------------------------- */

const struct code_state *code_state_of(const struct code *c, uint16_t mark)
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
	if (c->mark && state_equal(s, code_state_of(c, c->mark))) {
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
	uint32_t n;
	int r;

	if (mark == INSIDE)
		return 0;
	if (mark != UNSEEN) {
		old = *code_state_of(c, mark);
		if (state_contradict(&old, &p->state)) {
			uint32_t call = arrived_from(c, p->at);

			if (p->call != NOWHERE)	/* it doesn't: others came here otherwise */
				return 0;
			if (call != NOWHERE || c->guess)
				return contradiction(c, call);
		}
		p->state = state_meet(&old, &p->state);
		if (state_equal(&old, &p->state)) {
			c->confirmed |= map_find(&c->own, &p->at) == MAP_NONE;
			return 0;
		}
	}
	r = mark_of(c, &p->state, &mark);
	if (!r)
		r = set_mark(c, p->at, mark);
	if (!r && c->unproven)
		r = map_put(&c->own, &p->at, &n, NULL);
	return r ? r : 1;
}

static int note_target(struct code *c, uint64_t vaddr, const struct insn *i)
{
	uint32_t to = code_index_of(c, vaddr + (uint64_t)i->target);

	if (to == NOWHERE)
		return 0;
	if (i->flow == INSN_CALL && i->target != i->size)	/* that one only asks for the pc */
		return code_list_add(&c->found, to);
	return i->has_ref ? code_list_add(&c->refs, to) : 0;
}

/* On to the target of a jump, if it is code of ours. */
static int follow_jump(struct code *c, const struct path *p, uint64_t vaddr, const struct insn *i)
{
	struct path to = *p;

	to.at = code_index_of(c, vaddr + (uint64_t)i->target);
	to.call = NOWHERE;
	return to.at == NOWHERE ? 0 : push_path(&c->paths, &c->npaths, &c->paths_cap, &to);
}

/* Moves on to the instruction behind. 1: there is one that this path may reach. */
static int follow_next(struct code *c, struct path *p, uint64_t vaddr, const struct insn *i)
{
	const struct piece *piece = code_piece_of(c, p->at);
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
	if (code_is_function(c, p->at))
		return 0;
	if ((vaddr + i->size) % ALIGNMENT == 0) {
		/* padding, then a prologue: another function, which nobody has told us of */
		if (i->nop && code_is_prologue(c, p->at))
			return code_list_add(&c->found, p->at);
		p->suspect = p->call;
	}
	return i->flow == INSN_CALL ? push_path(&c->later, &c->nlater, &c->later_cap, p) : 1;
}

/* Executes one instruction of a path. 1: the path goes on. */
static int follow(struct code *c, struct path *p)
{
	uint64_t vaddr = code_vaddr_of(c, p->at);
	bool first = c->marks[p->at] == UNSEEN;
	struct insn i;
	int r = visit(c, p);

	if (r <= 0 || c->wrong)
		return r;
	if (!c->work || !c->patience) {
		c->wrong = true;
		return 0;
	}
	c->work--;
	c->patience--;
	if (code_decode(c, p->at, &i))
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
		return code_list_add(&c->jumps, p->at);
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
	map_clear(&c->own);
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

int code_run(struct code *c, uint32_t at, const struct code_state *s, bool *ret_good)
{
	size_t njumps = c->jumps.n, nrefs = c->refs.n;
	uint32_t n;
	int r;

	c->no_clearing = false;
	c->patience = c->unproven ? PATIENCE : UINT64_MAX;
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
	*ret_good = !c->wrong;
	return r;
}
