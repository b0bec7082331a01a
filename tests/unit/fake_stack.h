/* fake_stack.h - memory for tests of bpf/step.h: words at a stack's address, nothing elsewhere. */
#ifndef WICK_TESTS_FAKE_STACK_H
#define WICK_TESTS_FAKE_STACK_H

#include <check.h>

#include "base/base.h"

#define STACK	    UINT64_C(0x7ffc00100000) /* address of the first word */
#define STACK_WORDS 256

static uint64_t stack[STACK_WORDS];
static unsigned int reads; /* how often memory was read since fake_reset */

static inline int fake_read(void *dst, size_t n, uint64_t addr)
{
	reads++;
	if (addr < STACK || addr - STACK > sizeof(stack) - n)
		return -EFAULT;
	memcpy(dst, (char *)stack + (addr - STACK), n);
	return 0;
}
#define WK_READ_USER(dst, len, addr) fake_read(dst, len, addr)

#define CODE UINT64_C(0x401000)
static uint8_t text[4096];

static inline int fake_read_code(void *dst, size_t n, uint64_t addr)
{
	if (addr < CODE || addr - CODE > sizeof(text) - n)
		return -EFAULT;
	memcpy(dst, text + (addr - CODE), n);
	return 0;
}
#define WK_READ_CODE(dst, len, addr) fake_read_code(dst, len, addr)

/* Address of a word of the stack. */
static inline uint64_t at(size_t word)
{
	return STACK + 8 * word;
}

/* Each word's content is recognisable, and canonical as a code address. */
static inline uint64_t content(size_t word)
{
	return UINT64_C(0x555500000000) + word;
}

static inline void fake_reset(void)
{
	for (size_t i = 0; i < STACK_WORDS; i++)
		stack[i] = content(i);
	memset(text, 0x90, sizeof(text));
	reads = 0;
}

#endif
