/* genrows.c - see genrows.h. What is followed is followed in passes: from the function's start, from each
 * unreached part, and from behind each call, which may not return. seen[] has the pass in which an instruction
 * was reached, and states[] in what state; a pass that comes to a contradiction is undone. */
#include "unwind/genrows.h"

enum {
	UNSEEN = 0,
	INSIDE = UINT16_MAX,	/* of an instruction */
	PASSES = INSIDE - 1,
	FAILURES = 64,		/* calls that don't return */
	WORK = 4,		/* instructions followed per byte */
};

struct genrows_path {
	uint32_t at;
	bool called;		/* it comes back from a call, if that returns */
	struct code_state state;
};

void genrows_free(struct genrows *g)
{
	free(g->seen);
	free(g->states);
	free(g->paths);
	free(g->later);
	*g = (struct genrows)GENROWS_INIT;
}

static bool is_entry(const struct code_state *s)
{
	return s->sp == STATE_WORD && s->same;
}

/* The state with which a path comes to an instruction. 1: that is news, on from there in p->state. */
static int visit(struct genrows *g, struct genrows_path *p)
{
	struct code_state *known = &g->states[p->at];
	uint16_t pass = g->seen[p->at];

	if (pass == INSIDE || (pass != UNSEEN && state_contradict(known, &p->state))) {
		g->wrong |= !p->called;	/* else the call doesn't return */
		return 0;
	}
	if (pass != UNSEEN) {
		struct code_state both = state_meet(known, &p->state);

		if (state_equal(&both, known))
			return 0;
		if (pass != g->pass) {	/* of an earlier pass, which stands */
			g->wrong = true;
			return 0;
		}
		p->state = both;
	}
	g->seen[p->at] = g->pass;
	*known = p->state;
	return 1;
}

/* Whether the bytes behind the first of an instruction are free, and are its own now. */
static bool occupy(struct genrows *g, uint32_t at, uint32_t size)
{
	for (uint32_t i = at + 1; i < at + size; i++) {
		if (g->seen[i] != UNSEEN && g->seen[i] != INSIDE)
			return false;
		g->seen[i] = INSIDE;
	}
	return true;
}

static void at_return(struct genrows *g, const struct code_state *s)
{
	if (is_entry(s))
		g->returned = true;
	else if (g->first && s->sp != STATE_UNKNOWN && s->sp && (!g->depth || g->depth == s->sp))
		g->depth = s->sp;	/* perhaps that is what it takes over */
	else
		g->wrong = true;
}

/* To another function, in its own stead. */
static void at_exit(struct genrows *g, const struct code_state *s)
{
	if (g->saved && is_entry(s))
		g->returned = true;
	else
		g->leaves = true;
}

static void at_jump(struct genrows *g, const struct code_state *s)
{
	if (is_entry(s)) {
		at_exit(g, s);
		return;
	}
	g->leaves = true;
	if (g->jumps && !state_equal(s, &g->jump))
		g->jump.sp = STATE_UNKNOWN;
	else
		g->jump = *s;
	g->jumps = true;
}

static int push(struct genrows_path **v, size_t *n, size_t *cap, uint32_t at, bool called,
		const struct code_state *s)
{
	int r = array_grow(v, cap, *n + 1, sizeof(**v));

	if (!r)
		(*v)[(*n)++] = (struct genrows_path){ at, called, *s };
	return r;
}

/* Executes one instruction. 1: on to p->at. */
static int follow(struct genrows *g, struct genrows_path *p)
{
	struct insn i;
	int64_t target;
	int r;

	if (p->at >= g->n) {
		g->wrong |= !p->called;
		return 0;
	}
	r = visit(g, p);
	if (r <= 0)
		return r;
	if (!g->work || insn_decode(g->code + p->at, g->n - p->at, &i) || !occupy(g, p->at, i.size)) {
		g->wrong = true;
		return 0;
	}
	g->work--;
	target = (int64_t)p->at + i.target;
	if (i.flow == INSN_RETURN)
		at_return(g, &p->state);
	else if (i.flow == INSN_JUMP_INDIRECT)
		at_jump(g, &p->state);
	if (i.flow == INSN_CALL)
		g->frameless |= !p->state.frame;
	state_apply(&p->state, &i, false);
	g->wrong |= p->state.sp == STATE_UNKNOWN && !p->state.frame;
	g->framed |= p->state.frame != 0;
	g->moved |= p->state.sp != STATE_WORD;
	g->saved |= p->state.slot == 2 * STATE_WORD;
	if (i.flow == INSN_JUMP && (target < 0 || target >= g->n))
		at_exit(g, &p->state);
	if ((i.flow == INSN_JUMP || i.flow == INSN_BRANCH) && target >= 0 && target < g->n) {
		r = push(&g->paths, &g->npaths, &g->paths_cap, (uint32_t)target, false, &p->state);
		if (r)
			return r;
	}
	p->at += i.size;
	p->called = i.flow == INSN_CALL;
	if (p->called)	/* when all else has been followed: it may not return */
		return push(&g->later, &g->nlater, &g->later_cap, p->at, true, &p->state);
	return i.flow == INSN_NEXT || i.flow == INSN_BRANCH;
}

/* Undoes the passes from one on. Bytes inside of an instruction go with it. */
static void undo(struct genrows *g, uint16_t from)
{
	bool ours = false;

	for (uint32_t i = 0; i < g->n; i++) {
		if (g->seen[i] != INSIDE)
			ours = g->seen[i] >= from;
		if (ours)
			g->seen[i] = UNSEEN;
	}
}

/* One pass. What lies behind its calls is left for later. */
static int run_pass(struct genrows *g, struct genrows_path p)
{
	int r;

	g->npaths = 0;
	for (;;) {
		do
			r = follow(g, &p);
		while (r == 1 && !g->wrong);
		if (r < 0 || g->wrong)
			return MIN(r, 0);
		if (!g->npaths)
			return 0;
		p = g->paths[--g->npaths];
	}
}

/* From one place on, in a state, as far as it goes. g->wrong: it can't be so, all is undone. */
static int run(struct genrows *g, uint32_t at, const struct code_state *s)
{
	uint16_t from = ++g->pass;
	int failures = 0, r;

	g->nlater = 0;
	g->wrong = g->returned = false;
	r = run_pass(g, (struct genrows_path){ at, false, *s });
	while (!r && !g->wrong && g->nlater) {
		struct genrows_path p = g->later[--g->nlater];
		size_t nlater = g->nlater;

		if (g->pass >= PASSES - 1 || failures > FAILURES) {
			g->wrong = true;
			break;
		}
		g->pass++;
		r = run_pass(g, p);
		if (g->wrong) {	/* the call doesn't return */
			undo(g, g->pass);
			g->nlater = nlater;
			g->wrong = false;
			failures++;
		}
	}
	if (g->wrong)
		undo(g, from);
	return r;
}

/* The whole function, from its start. */
static int run_first(struct genrows *g, const struct code_state *entry)
{
	int r;

	memset(g->seen, UNSEEN, g->n * sizeof(*g->seen));
	g->frameless = g->jumps = g->framed = g->moved = g->leaves = g->saved = false;
	g->depth = 0;
	g->pass = UNSEEN;
	g->first = true;
	r = run(g, 0, entry);
	g->first = false;
	return r;
}

/* The next unreached place, padding aside; n: none. */
static uint32_t next_gap(const struct genrows *g, uint32_t at)
{
	struct insn i;

	while (at < g->n) {
		if (g->seen[at] != UNSEEN)
			at++;
		else if (!insn_decode(g->code + at, g->n - at, &i) && (i.nop || i.flow == INSN_STOP))
			at += i.size;
		else
			break;
	}
	return MIN(at, g->n);
}

static int run_gaps(struct genrows *g)
{
	static const struct code_state entry = STATE_AT_ENTRY;
	bool by_table = g->jumps && g->jump.sp != STATE_UNKNOWN;
	uint32_t at = 0;

	for (int i = 0; i < GENROWS_GAPS_MAX; i++) {
		bool frameless = g->frameless;
		uint16_t from = g->pass + 1;
		int r;

		at = next_gap(g, at);
		if (at >= g->n || from >= PASSES)
			break;
		r = run(g, at, by_table ? &g->jump : &entry);
		if (r)
			return r;
		if (g->wrong || (!by_table && !g->returned)) {
			undo(g, from);
			g->frameless = frameless;
			while (at < g->n && g->seen[at] == UNSEEN)	/* to what is reached */
				at++;
		}
	}
	return 0;
}

int genrows_trace(struct genrows *g, const uint8_t *code, size_t n)
{
	struct code_state entry = STATE_AT_ENTRY;
	int r;

	if (!n || n > GENROWS_BYTES_MAX)
		return -E2BIG;
	r = array_grow(&g->seen, &g->seen_cap, n, sizeof(*g->seen));
	if (!r)
		r = array_grow(&g->states, &g->states_cap, n, sizeof(*g->states));
	if (r)
		return r;
	g->code = code;
	g->n = (uint32_t)n;
	g->work = WORK * (uint64_t)n;
	r = run_first(g, &entry);
	/* It has taken over so much, rbp and a return address above. */
	if (!r && !g->wrong && g->depth < 0 && !g->returned) {
		int32_t sp = 2 * STATE_WORD - g->depth;

		entry = (struct code_state){ .sp = sp, .frame = 2 * STATE_WORD, .slot = 2 * STATE_WORD };
		r = run_first(g, &entry);
	}
	if (!r && (g->wrong || g->depth || !(g->returned || (g->saved && !g->leaves))))
		r = -ENOENT;
	g->frameless |= g->moved && !g->framed;
	return r ? r : run_gaps(g);
}

int genrows_each(const struct genrows *g, genrows_row_fn *row, void *arg)
{
	struct wk_row last = { 0 }, now;
	int r = 0;

	for (uint32_t i = 0; i < g->n && !r; i++) {
		if (g->seen[i] == INSIDE)
			continue;
		now = (struct wk_row){ .cfa = WK_CFA_NONE };
		if (g->seen[i] != UNSEEN)
			now = state_row(&g->states[i]);
		if (!i || memcmp(&now, &last, sizeof(now)))
			r = row(arg, i, &now);
		last = now;
	}
	return r;
}
