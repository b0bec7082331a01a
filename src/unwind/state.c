/* state.c - see state.h. */
#include "unwind/state.h"

struct code_state state_meet(const struct code_state *a, const struct code_state *b)
{
	return (struct code_state){
		.sp = a->sp == b->sp && a->root == b->root ? a->sp : STATE_UNKNOWN,
		.frame = a->frame == b->frame && a->root == b->root ? a->frame : 0,
		.slot = a->slot == b->slot ? a->slot : 0,
		.same = a->same && b->same,
		.root = a->root == b->root ? a->root : STATE_INNER,
	};
}

bool state_contradict(const struct code_state *a, const struct code_state *b)
{
	return a->root != b->root ||
	       (a->sp != b->sp && a->sp != STATE_UNKNOWN && b->sp != STATE_UNKNOWN) ||
	       (a->frame != b->frame && a->frame && b->frame);
}

/* What lies above the stack pointer isn't the function's any more. */
static void move_sp(struct code_state *s, int64_t sp)
{
	s->sp = sp < -STATE_OFFSET_MAX || sp > STATE_OFFSET_MAX ? STATE_UNKNOWN : (int32_t)sp;
	if (s->sp != STATE_UNKNOWN && s->slot > s->sp)
		s->slot = 0;
}

static void pop_fp(struct code_state *s)
{
	s->same = s->slot && s->sp == s->slot;
	s->frame = 0;
	if (s->sp != STATE_UNKNOWN)
		move_sp(s, (int64_t)s->sp - STATE_WORD);
}

static void set_fp(struct code_state *s, int64_t n)
{
	int64_t frame = s->sp == STATE_UNKNOWN ? 0 : s->sp - n;

	s->same = 0;
	s->frame = frame > 0 && frame <= STATE_OFFSET_MAX && frame % STATE_WORD == 0 ? (int32_t)frame : 0;
}

static void set_sp(struct code_state *s, int64_t n)
{
	if (s->frame)
		move_sp(s, s->frame - n);
	else
		s->sp = STATE_UNKNOWN;
}

static void clear_fp(struct code_state *s, bool may_be_root)
{
	if (may_be_root && s->same && !s->slot && s->sp == STATE_WORD)
		*s = (struct code_state){ .sp = STATE_UNKNOWN, .root = STATE_CLEARED };
	s->same = 0;
	s->frame = 0;
}

/* *(rsp + n) = rbp. The first place is the one that lasts: later ones are arguments and spills. */
static void store_fp(struct code_state *s, int64_t n)
{
	int64_t slot = s->sp - n;

	if (s->sp != STATE_UNKNOWN && s->same && !s->slot && slot > STATE_WORD && slot <= s->sp)
		s->slot = (int32_t)slot;
}

void state_apply(struct code_state *s, const struct insn *i, bool may_be_root)
{
	if (s->root)
		return;
	switch (i->stack) {
	case INSN_ADD_SP:
		if (s->sp != STATE_UNKNOWN)
			move_sp(s, s->sp - i->n);
		break;
	case INSN_PUSH_FP:
		if (s->sp != STATE_UNKNOWN)
			move_sp(s, (int64_t)s->sp + STATE_WORD);
		store_fp(s, 0);
		break;
	case INSN_STORE_FP:
		store_fp(s, i->n);
		break;
	case INSN_POP_FP:
		pop_fp(s);
		break;
	case INSN_LOAD_FP:
		s->same = s->slot && s->sp != STATE_UNKNOWN && s->sp - i->n == s->slot;
		s->frame = 0;
		break;
	case INSN_SET_FP:
		set_fp(s, i->n);
		break;
	case INSN_SET_SP:
		set_sp(s, i->n);
		break;
	case INSN_LEAVE:
		set_sp(s, 0);
		pop_fp(s);
		break;
	case INSN_CLEAR_FP:
		clear_fp(s, may_be_root);
		break;
	case INSN_LOSE_SP:
		s->sp = STATE_UNKNOWN;
		break;
	case INSN_LOSE_BOTH:
		s->sp = STATE_UNKNOWN;
		/* fall through */
	case INSN_LOSE_FP:
		s->same = 0;
		s->frame = 0;
		break;
	default:
		break;
	}
}

struct wk_row state_row(const struct code_state *s)
{
	struct wk_row row = { .cfa = WK_CFA_NONE };

	if (s->root) {
		row.cfa = WK_CFA_ROOT;
		return row;
	}
	if (s->frame) {
		row.cfa = WK_CFA_FP;
		row.cfa_off = (__s16)(s->frame / STATE_WORD);
	} else if (s->sp != STATE_UNKNOWN && s->sp >= STATE_WORD && s->sp % STATE_WORD == 0) {
		row.cfa = WK_CFA_SP;
		row.cfa_off = (__s16)(s->sp / STATE_WORD);
	} else {
		return row;
	}
	if (s->slot && s->slot % STATE_WORD == 0) {
		row.fp_ra = WK_FP_SAVED;
		row.fp_off = (__s16)(-s->slot / STATE_WORD);
	} else if (!s->same) {
		row.fp_ra = WK_FP_UNDEFINED;
	}
	return row;
}
