/* insn_quick.c - the commonest instructions of compilers, by their bytes, an order of magnitude
 * faster than by a decoder that must know them all. Tests hold it against that one.
 *
 * Intel SDM volume 2: chapter 2 (formats), appendix A (opcode maps). Without prefixes but REX. Whatever
 * might write rsp or rbp in another way than by push, pop or not at all is left to the full decoder.
 */
#include "unwind/insn.h"

/* What follows an opcode. */
enum {
	NO,		/* not for us */
	MODRM,		/* ModRM: reg and r/m may be written */
	MODRM_8,	/* and a byte */
	MODRM_32,	/* and four */
	GROUP,		/* reg is a part of the opcode: r/m may be written */
	GROUP_8,
	GROUP_32,
	ONLY_0_8,	/* likewise, and only reg 0 is for us */
	ONLY_0_32,
	READS,		/* no general register is written: cmp, test */
	ADDRESS,	/* lea */
};

static const uint8_t one_byte[256] = {
	[0x00] = MODRM, MODRM, MODRM, MODRM,	/* add */
	[0x08] = MODRM, MODRM, MODRM, MODRM,	/* or */
	[0x10] = MODRM, MODRM, MODRM, MODRM,	/* adc */
	[0x18] = MODRM, MODRM, MODRM, MODRM,	/* sbb */
	[0x20] = MODRM, MODRM, MODRM, MODRM,	/* and */
	[0x28] = MODRM, MODRM, MODRM, MODRM,	/* sub */
	[0x30] = MODRM, MODRM, MODRM, MODRM,	/* xor */
	[0x38] = READS, READS, READS, READS,	/* cmp */
	[0x63] = MODRM,				/* movsxd */
	[0x69] = MODRM_32, [0x6b] = MODRM_8,	/* imul */
	[0x80] = GROUP_8, GROUP_32, [0x83] = GROUP_8,	/* add ... cmp, immediate */
	[0x84] = READS, READS,			/* test */
	[0x88] = MODRM, MODRM, MODRM, MODRM,	/* mov */
	[0x8d] = ADDRESS,
	[0xc0] = GROUP_8, GROUP_8, [0xc6] = ONLY_0_8, ONLY_0_32,	/* shifts; mov, immediate */
	[0xd0] = GROUP, GROUP, GROUP, GROUP,	/* shifts */
};

static const uint8_t two_byte[256] = {
	[0x10] = READS, READS, [0x28] = READS, READS, [0x2e] = READS, READS,	/* mov*ps, ucomiss */
	[0x40] = MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM,	/* cmov */
	[0x48] = MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM,
	[0x54] = READS, [0x57] = READS,		/* andps, xorps */
	[0x90] = GROUP, GROUP, GROUP, GROUP, GROUP, GROUP, GROUP, GROUP,	/* set */
	[0x98] = GROUP, GROUP, GROUP, GROUP, GROUP, GROUP, GROUP, GROUP,
	[0xa3] = READS,				/* bt */
	[0xaf] = MODRM,				/* imul */
	[0xb6] = MODRM, MODRM, [0xbe] = MODRM, MODRM,	/* movzx, movsx */
};

/* Bytes behind the operands. */
static const uint8_t immediate[] = {
	[MODRM_8] = 1, [GROUP_8] = 1, [ONLY_0_8] = 1,
	[MODRM_32] = 4, [GROUP_32] = 4, [ONLY_0_32] = 4, [ADDRESS] = 0,
};

enum { REX_W = 8, REX_R = 4, REX_B = 1, RSP = 4, RBP = 5 };

static bool is_stack_register(unsigned int n)
{
	return n == RSP || n == RBP;
}

static int32_t signed_at(const uint8_t *p, size_t n)
{
	int32_t v;

	if (n == 1)
		return (int8_t)*p;
	memcpy(&v, p, sizeof(v));
	return v;
}

/* Bytes from ModRM to the end of the displacement; 0: not all there. */
static size_t operand_size(const uint8_t *p, size_t n)
{
	unsigned int mod = p[0] >> 6, rm = p[0] & 7;
	bool sib = mod != 3 && rm == 4;
	size_t size = 1 + sib;

	if (sib && n < 2)
		return 0;
	if (mod == 1)
		size += 1;
	else if (mod == 2 || (!mod && (rm == 5 || (sib && (p[1] & 7) == 5))))
		size += 4;
	return size <= n ? size : 0;
}

/* An instruction with a ModRM byte at p[at]. */
static bool with_modrm(const uint8_t *p, size_t n, size_t at, unsigned int rex, uint8_t kind,
		       struct insn *ret)
{
	unsigned int mod, reg, rm;
	size_t size;

	if (kind == NO || at >= n)
		return false;
	mod = p[at] >> 6;
	reg = (p[at] >> 3 & 7) | (rex & REX_R ? 8 : 0);
	rm = (p[at] & 7) | (rex & REX_B ? 8 : 0);
	/* r/m of a memory operand isn't written; lea of a register there is none */
	if (kind == ADDRESS && (mod == 3 || (!mod && (p[at] & 7) == 5)))
		return false;
	if (kind <= MODRM_32 || kind == ADDRESS)
		if (is_stack_register(reg))
			return false;
	if (kind <= ONLY_0_32 && mod == 3 && is_stack_register(rm))
		return false;
	if ((kind == ONLY_0_8 || kind == ONLY_0_32) && reg & 7)
		return false;
	size = operand_size(p + at, n - at);
	if (!size)
		return false;
	size += immediate[kind];
	if (at + size > n)
		return false;
	*ret = (struct insn){ .size = (uint8_t)(at + size) };
	return true;
}

/* A jump, branch or call whose distance, of `wide` bytes, is at p[at]. */
static bool relative(const uint8_t *p, size_t n, size_t at, size_t wide, enum insn_flow flow,
		     struct insn *ret)
{
	if (at + wide > n)
		return false;
	*ret = (struct insn){ .size = (uint8_t)(at + wide), .flow = (uint8_t)flow, .has_target = true };
	ret->target = (int64_t)signed_at(p + at, wide) + ret->size;
	return true;
}

static bool push_pop(uint8_t op, size_t size, unsigned int rex, struct insn *ret)
{
	unsigned int reg = (op & 7) | (rex & REX_B ? 8 : 0);
	bool pop = op & 8;

	if (reg == RSP)
		return false;
	*ret = (struct insn){ .size = (uint8_t)size, .stack = INSN_ADD_SP, .n = pop ? 8 : -8 };
	if (reg == RBP)
		*ret = (struct insn){ .size = (uint8_t)size, .stack = pop ? INSN_POP_FP : INSN_PUSH_FP };
	return true;
}

/* mov $n, register */
static bool move_immediate(uint8_t op, size_t n, size_t at, unsigned int rex, struct insn *ret)
{
	size_t size = at + (rex & REX_W ? 8 : 4);

	if (is_stack_register((op & 7) | (rex & REX_B ? 8 : 0)) || size > n)
		return false;
	*ret = (struct insn){ .size = (uint8_t)size };
	return true;
}

/* Opcodes without ModRM. at is behind the opcode. */
static bool without_modrm(const uint8_t *p, size_t n, size_t at, unsigned int rex, uint8_t op,
			  struct insn *ret)
{
	if (op >= 0x50 && op < 0x60)
		return push_pop(op, at, rex, ret);
	if (op >= 0xb8 && op < 0xc0)
		return move_immediate(op, n, at, rex, ret);
	if (rex)
		return false;
	if (op >= 0x70 && op < 0x80)
		return relative(p, n, at, 1, INSN_BRANCH, ret);
	switch (op) {
	case 0xe8:
		return relative(p, n, at, 4, INSN_CALL, ret);
	case 0xe9:
		return relative(p, n, at, 4, INSN_JUMP, ret);
	case 0xeb:
		return relative(p, n, at, 1, INSN_JUMP, ret);
	case 0xc3:
		*ret = (struct insn){ .size = 1, .flow = INSN_RETURN };
		return true;
	default:
		return false;
	}
}

bool insn_quick(const uint8_t *p, size_t n, struct insn *ret)
{
	unsigned int rex = 0;
	size_t at = 0;
	uint8_t op;

	if (n && (p[0] & 0xf0) == 0x40)
		rex = p[at++];
	if (at >= n)
		return false;
	op = p[at++];
	if (op != 0x0f)
		return one_byte[op] ? with_modrm(p, n, at, rex, one_byte[op], ret)
				    : without_modrm(p, n, at, rex, op, ret);
	if (at >= n)
		return false;
	op = p[at++];
	if (op >= 0x80 && op < 0x90)
		return !rex && relative(p, n, at, 4, INSN_BRANCH, ret);
	return with_modrm(p, n, at, rex, two_byte[op], ret);
}
