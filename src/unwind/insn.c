/* insn.c - see insn.h. */
#include <Zydis/Zydis.h>

#include "unwind/insn.h"

struct decoded {
	ZydisDecodedInstruction i;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
};

/* Operand n is this 64-bit register itself. */
static bool is_reg(const struct decoded *d, unsigned int n, ZydisRegister reg)
{
	return n < d->i.operand_count_visible && d->ops[n].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       d->ops[n].reg.value == reg;
}

static bool is_immediate(const struct decoded *d, unsigned int n)
{
	return n < d->i.operand_count_visible && d->ops[n].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
}

/* Operand n is memory at, or the address of, base + *ret. */
static bool is_memory(const struct decoded *d, unsigned int n, ZydisRegister base, int64_t *ret)
{
	const ZydisDecodedOperandMem *m = &d->ops[n].mem;

	if (n >= d->i.operand_count_visible || d->ops[n].type != ZYDIS_OPERAND_TYPE_MEMORY ||
	    m->base != base || m->index != ZYDIS_REGISTER_NONE ||
	    m->segment == ZYDIS_REGISTER_FS || m->segment == ZYDIS_REGISTER_GS)
		return false;
	*ret = m->disp.has_displacement ? m->disp.value : 0;
	return true;
}

/* Whether any part of a register is written, on the face of it or not. */
static bool writes(const struct decoded *d, ZydisRegister reg)
{
	for (unsigned int n = 0; n < d->i.operand_count; n++)
		if (d->ops[n].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    d->ops[n].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
		    ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64,
						     d->ops[n].reg.value) == reg)
			return true;
	return false;
}

static void push_pop(const struct decoded *d, struct insn *ret)
{
	bool pop = d->i.mnemonic == ZYDIS_MNEMONIC_POP || d->i.mnemonic == ZYDIS_MNEMONIC_POPFQ;

	if (is_reg(d, 0, ZYDIS_REGISTER_RBP)) {
		ret->stack = pop ? INSN_POP_FP : INSN_PUSH_FP;
	} else if (pop && is_reg(d, 0, ZYDIS_REGISTER_RSP)) {
		ret->stack = INSN_LOSE_SP;
	} else {
		ret->stack = INSN_ADD_SP;
		ret->n = d->i.operand_width == 16 ? 2 : 8;
		if (!pop)
			ret->n = -ret->n;
	}
}

static void move(const struct decoded *d, struct insn *ret)
{
	if (is_reg(d, 0, ZYDIS_REGISTER_RSP) && is_reg(d, 1, ZYDIS_REGISTER_RBP))
		ret->stack = INSN_SET_SP;
	else if (is_reg(d, 0, ZYDIS_REGISTER_RBP) && is_reg(d, 1, ZYDIS_REGISTER_RSP))
		ret->stack = INSN_SET_FP;
	else if (is_reg(d, 1, ZYDIS_REGISTER_RBP) &&
		 is_memory(d, 0, ZYDIS_REGISTER_RSP, &ret->n))
		ret->stack = INSN_STORE_FP;
	else if (is_reg(d, 0, ZYDIS_REGISTER_RBP) &&
		 is_memory(d, 1, ZYDIS_REGISTER_RSP, &ret->n))
		ret->stack = INSN_LOAD_FP;
}

static void load_address(const struct decoded *d, struct insn *ret)
{
	if (is_reg(d, 0, ZYDIS_REGISTER_RSP)) {
		if (is_memory(d, 1, ZYDIS_REGISTER_RSP, &ret->n))
			ret->stack = INSN_ADD_SP;
		else if (is_memory(d, 1, ZYDIS_REGISTER_RBP, &ret->n))
			ret->stack = INSN_SET_SP;
	} else if (is_reg(d, 0, ZYDIS_REGISTER_RBP) &&
		   is_memory(d, 1, ZYDIS_REGISTER_RSP, &ret->n)) {
		ret->stack = INSN_SET_FP;
	} else if (is_memory(d, 1, ZYDIS_REGISTER_RIP, &ret->target)) {
		ret->has_ref = true;
		ret->target += d->i.length;
	}
}

static void add_sub(const struct decoded *d, struct insn *ret)
{
	if (!is_reg(d, 0, ZYDIS_REGISTER_RSP) || !is_immediate(d, 1))
		return;
	ret->stack = INSN_ADD_SP;
	ret->n = d->ops[1].imm.value.s;
	if (d->i.mnemonic == ZYDIS_MNEMONIC_SUB)
		ret->n = -ret->n;
}

static void stack_effect(const struct decoded *d, struct insn *ret)
{
	switch (d->i.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
	case ZYDIS_MNEMONIC_POP:
	case ZYDIS_MNEMONIC_PUSHFQ:
	case ZYDIS_MNEMONIC_POPFQ:
		push_pop(d, ret);
		return;
	case ZYDIS_MNEMONIC_MOV:
		move(d, ret);
		break;
	case ZYDIS_MNEMONIC_LEA:
		if (is_reg(d, 0, ZYDIS_REGISTER_RBP) && is_memory(d, 1, ZYDIS_REGISTER_RBP, &ret->n) && !ret->n)
			return;		/* Mono's padding */
		ret->n = 0;
		load_address(d, ret);
		break;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		add_sub(d, ret);
		break;
	case ZYDIS_MNEMONIC_LEAVE:
		ret->stack = d->i.operand_width == 16 ? INSN_LOSE_SP : INSN_LEAVE;
		return;
	case ZYDIS_MNEMONIC_XOR:
		if ((is_reg(d, 0, ZYDIS_REGISTER_EBP) && is_reg(d, 1, ZYDIS_REGISTER_EBP)) ||
		    (is_reg(d, 0, ZYDIS_REGISTER_RBP) && is_reg(d, 1, ZYDIS_REGISTER_RBP)))
			ret->stack = INSN_CLEAR_FP;
		break;
	default:
		break;
	}
	/* A call comes back with rsp as it was. */
	if (ret->stack != INSN_KEEP || ret->flow == INSN_CALL || ret->flow == INSN_RETURN)
		return;
	if (writes(d, ZYDIS_REGISTER_RSP))
		ret->stack = writes(d, ZYDIS_REGISTER_RBP) ? INSN_LOSE_BOTH : INSN_LOSE_SP;
	else if (writes(d, ZYDIS_REGISTER_RBP))
		ret->stack = INSN_LOSE_FP;
}

static void control_flow(const struct decoded *d, struct insn *ret)
{
	bool relative = is_immediate(d, 0) && d->ops[0].imm.is_relative;

	if (relative) {
		ret->has_target = true;
		ret->target = d->ops[0].imm.value.s + d->i.length;
	}
	switch (d->i.meta.category) {
	case ZYDIS_CATEGORY_CALL:
		ret->flow = INSN_CALL;
		return;
	case ZYDIS_CATEGORY_RET:	/* iret and sysret too */
		ret->flow = d->i.mnemonic == ZYDIS_MNEMONIC_RET ? INSN_RETURN : INSN_STOP;
		return;
	case ZYDIS_CATEGORY_UNCOND_BR:
		ret->flow = relative ? INSN_JUMP : INSN_JUMP_INDIRECT;
		return;
	case ZYDIS_CATEGORY_COND_BR:
		ret->flow = relative ? INSN_BRANCH : INSN_STOP;
		return;
	default:
		break;
	}
	switch (d->i.mnemonic) {
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
		ret->flow = INSN_STOP;
		return;
	default:
		/* xbegin has a target too, for when its transaction aborts */
		ret->flow = relative ? INSN_BRANCH : INSN_NEXT;
	}
}

int insn_full(const uint8_t *p, size_t size, struct insn *ret)
{
	struct insn insn = { 0 };
	ZydisDecoder decoder;
	struct decoded d;

	if (ZYAN_FAILED(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64,
					 ZYDIS_STACK_WIDTH_64)) ||
	    ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, p, MIN(size, (size_t)INSN_SIZE_MAX), &d.i,
					       d.ops)))
		return -EBADMSG;
	insn.size = d.i.length;
	insn.nop = d.i.meta.category == ZYDIS_CATEGORY_NOP ||
		   d.i.meta.category == ZYDIS_CATEGORY_WIDENOP;
	control_flow(&d, &insn);
	stack_effect(&d, &insn);
	*ret = insn;
	return 0;
}

int insn_decode(const uint8_t *p, size_t size, struct insn *ret)
{
	return insn_quick(p, size, ret) ? 0 : insn_full(p, size, ret);
}
