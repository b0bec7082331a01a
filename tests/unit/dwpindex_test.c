/* Tests of symbol/dwpindex.h: both versions, ids that aren't there, indices cut off and damaged. */
#include "made_elf.h"

#include "symbol/dwpindex.h"

enum { SLOTS = 4, UNITS = 2, COLUMNS = 5 };

static const uint64_t first = 0x1122334455667788, second = 0xffeeddcc00000004;

struct index {
	uint32_t version, columns, units, slots;
	uint64_t ids[SLOTS];
	uint32_t rows[SLOTS], sections[COLUMNS], offsets[UNITS][COLUMNS], sizes[UNITS][COLUMNS];
} __attribute__((packed));

/* Both ids begin at slot 0: the second is found by a second step, of 1 (first >> 32 & 3 is 0, | 1). */
static struct index made(uint32_t version)
{
	return (struct index){
		.version = version, .columns = COLUMNS, .units = UNITS, .slots = SLOTS,
		.ids = { first, second }, .rows = { 1, 2 },
		.sections = { 1, 3, 4, 6, 8 },	/* info, abbrev, line, str_offsets; macro or rnglists */
		.offsets = { { 0, 0, 0, 0, 0 }, { 100, 10, 7, 20, 30 } },
		.sizes = { { 100, 10, 7, 20, 30 }, { 200, 11, 8, 21, 31 } },
	};
}

static int find(const void *p, size_t n, uint64_t id, struct dwarfimage_slice *ret)
{
	memset(ret, 0xff, DWARF_SECTIONS * sizeof(*ret));
	return dwpindex_find(p, n, id, ret);
}

START_TEST(both_versions)
{
	static const uint32_t versions[] = { 5, 2 };
	struct dwarfimage_slice s[DWARF_SECTIONS];

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		struct index x = made(versions[i]);

		ck_assert_int_eq(find(&x, sizeof(x), first, s), 0);
		ck_assert(s[DWARF_INFO].offset == 0 && s[DWARF_INFO].size == 100);
		ck_assert_int_eq(find(&x, sizeof(x), second, s), 0);
		ck_assert(s[DWARF_INFO].offset == 100 && s[DWARF_INFO].size == 200);
		ck_assert(s[DWARF_ABBREV].offset == 10 && s[DWARF_ABBREV].size == 11);
		ck_assert(s[DWARF_STR_OFFSETS].offset == 20 && s[DWARF_STR_OFFSETS].size == 21);
		/* column 8 is .debug_macro in version 2 */
		ck_assert_uint_eq(s[DWARF_RNGLISTS].size, versions[i] == 5 ? 31 : 0);
		ck_assert_uint_eq(s[DWARF_LINE].size, 0);
		ck_assert_int_eq(find(&x, sizeof(x), first + 4, s), -ESTALE);
	}
}
END_TEST

START_TEST(damaged)
{
	struct dwarfimage_slice s[DWARF_SECTIONS];
	struct index x = made(5);

	for (size_t n = 0; n < sizeof(x); n++)
		ck_assert_int_eq(find(&x, n, second, s), -EBADMSG);
	x.version = 3;
	ck_assert_int_eq(find(&x, sizeof(x), first, s), -EBADMSG);
	x = made(5);
	x.slots = 3;	/* not a power of two */
	ck_assert_int_eq(find(&x, sizeof(x), first, s), -EBADMSG);
	x.slots = 0;
	ck_assert_int_eq(find(&x, sizeof(x), first, s), -EBADMSG);
	x.slots = 1u << 31;
	ck_assert_int_eq(find(&x, sizeof(x), first, s), -EBADMSG);
	x = made(5);
	x.rows[0] = UNITS + 1;
	ck_assert_int_eq(find(&x, sizeof(x), first, s), -EBADMSG);
	x = made(5);
	x.columns = UINT32_MAX;
	ck_assert_int_eq(find(&x, sizeof(x), first, s), -EBADMSG);
	x = made(5);	/* full of others: the search ends */
	for (size_t i = 0; i < SLOTS; i++)
		x.ids[i] = 8, x.rows[i] = 1;
	ck_assert_int_eq(find(&x, sizeof(x), first, s), -ESTALE);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { both_versions, damaged };

	return made_run("dwpindex", tests, ARRAY_SIZE(tests));
}
