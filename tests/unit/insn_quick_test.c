/* Tests of unwind/insn_quick.c: whatever it knows the full decoder must say as well, over every opcode
 * and ModRM byte, and over this program's own code. */
#include "made_elf.h"

#include <fcntl.h>

#include "unwind/insn.h"

static unsigned long known;

/* size: of the bytes that are there. */
static void compare(const uint8_t *p, size_t size)
{
	struct insn quick = { 0 }, full = { 0 };

	if (!insn_quick(p, size, &quick))
		return;
	known++;
	ck_assert_msg(!insn_full(p, size, &full), "%02x %02x %02x %02x: no instruction", p[0], p[1], p[2],
		      p[3]);
	ck_assert_msg(quick.size == full.size && quick.flow == full.flow && quick.stack == full.stack &&
			      quick.n == full.n && quick.nop == full.nop &&
			      quick.has_target == full.has_target && quick.has_ref == full.has_ref &&
			      quick.target == full.target,
		      "%02x %02x %02x %02x: size %u, %u; flow %u, %u; stack %u, %u", p[0], p[1], p[2],
		      p[3], quick.size, full.size, quick.flow, full.flow, quick.stack, full.stack);
}

/* Each opcode with each ModRM byte, a few SIBs, with and without REX prefixes. */
START_TEST(test_every_opcode)
{
	static const uint8_t prefixes[] = { 0, 0x40, 0x41, 0x44, 0x48, 0x4d, 0x4f };
	static const uint8_t sibs[] = { 0x24, 0x25, 0x05, 0xe5, 0x2c };
	uint8_t p[16] = { 0 };

	known = 0;
	for (size_t r = 0; r < ARRAY_SIZE(prefixes); r++)
		for (unsigned int op = 0; op < 512; op++)
			for (unsigned int modrm = 0; modrm < 256; modrm++)
				for (size_t s = 0; s < ARRAY_SIZE(sibs); s++) {
					size_t n = 0;

					memset(p, 0x81, sizeof(p));
					if (prefixes[r])
						p[n++] = prefixes[r];
					if (op >= 256)
						p[n++] = 0x0f;
					p[n++] = (uint8_t)op;
					p[n++] = (uint8_t)modrm;
					p[n++] = sibs[s];
					compare(p, sizeof(p));
				}
	ck_assert_uint_gt(known, 100000);
}
END_TEST

/* Cut off anywhere, nothing behind the end is read, and a longer instruction isn't claimed. */
START_TEST(test_cut)
{
	static const uint8_t whole[][8] = {
		{ 0x48, 0x81, 0x7c, 0x24, 0x08, 1, 2, 3 }, { 0xe8, 1, 2, 3, 4 },
		{ 0x0f, 0x84, 1, 2, 3, 4 }, { 0x8b, 0x04, 0x25, 1, 2, 3, 4 }, { 0x41, 0x54 },
	};
	struct insn i;

	for (size_t k = 0; k < ARRAY_SIZE(whole); k++)
		for (size_t n = 0; n < sizeof(whole[k]); n++) {
			uint8_t *exact = malloc(n + !n);

			ck_assert_ptr_nonnull(exact);
			memcpy(exact, whole[k], n);
			if (insn_quick(exact, n, &i))
				ck_assert_uint_le(i.size, n);
			free(exact);
		}
}
END_TEST

START_TEST(test_own_code)
{
	cleanup(fd_cleanup) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	cleanup(elf_cleanup) struct elf *e = NULL;
	cleanup(freep_cleanup) uint8_t *code = NULL;
	unsigned long all = 0;
	size_t size;
	struct insn i;

	ck_assert_int_eq(elf_open_fd(fd, &e, NULL), 0);
	if (elf_machine(e) != EM_X86_64)
		return;
	ck_assert_int_eq(elf_section_read(e, elf_section_by_name(e, ".text"), 64 << 20, (void **)&code,
					  &size), 0);
	known = 0;
	for (size_t at = 0; at < size; at += i.size, all++) {
		compare(code + at, size - at);
		if (insn_full(code + at, size - at, &i))
			i.size = 1;
	}
	ck_assert_uint_gt(known, all / 3);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { test_every_opcode, test_cut, test_own_code };

	return made_run("insn_quick", tests, ARRAY_SIZE(tests));
}
