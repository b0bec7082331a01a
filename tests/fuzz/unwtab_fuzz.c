/* Any bytes as an ELF file, compiled into an unwind table with small limits. What must hold: the
 * table's shape is as wick_rows.h says, rows ascend, neighbours differ, and for offsets all over it
 * the look-up by index and halving finds the row that counting from the start finds. */
#include "elf/elf.h"
#include "unwind/unwtab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
	if (!condition)
		abort();
}

struct view {
	const struct unwtab *t;
	const struct wk_table *table;
	const uint64_t *words;
	size_t n;
};

static struct wk_row row_at(const struct view *v, uint32_t i)
{
	struct wk_row row;

	memcpy(&row, &v->words[WK_TABLE_ROWS(v->table) + i], sizeof(row));
	return row;
}

/* Rules, that is: not the addresses. */
static bool differ(struct wk_row a, struct wk_row b)
{
	a.pc = b.pc;
	return memcmp(&a, &b, sizeof(a));
}

static void same(const struct view *v, uint64_t offset, struct wk_row expected)
{
	struct wk_side side;
	struct wk_row row;

	must(!unwtab_lookup(v->t, offset, &row, &side));
	must(!memcmp(&row, &expected, sizeof(row)));
}

/* Goes through the blocks, with the rows that start in each. */
static void check_rows(const struct view *v)
{
	const uint32_t *index = (const uint32_t *)v->words;
	struct wk_row row = row_at(v, 0), next;
	uint32_t n = 0;

	must(index[v->table->blocks] == v->table->rows - 1);
	must(row_at(v, v->table->rows - 1).cfa == WK_CFA_NONE);
	for (uint32_t b = 0; b < v->table->blocks; b++) {
		uint64_t start = v->table->base + (uint64_t)b * WK_BLOCK, last = start;

		must(index[b] <= index[b + 1]);
		while (n + 1 < v->table->rows) {
			uint64_t at;

			next = row_at(v, n + 1);
			at = start + (uint16_t)(next.pc - (uint16_t)start);
			if (n + 1 > index[b + 1] || at >= start + WK_BLOCK)
				break;
			must(at > last || (at == start && n + 1 == index[b]));
			must(differ(row, next));
			if (at > last)
				same(v, at - 1, row);
			same(v, at, next);
			row = next;
			last = at;
			n++;
		}
		same(v, start + WK_BLOCK - 1, row);
	}
	must(n == v->table->rows - 1);
}

static void check(const struct unwtab *t, const struct unwtab_limits *limits)
{
	struct view v = { .t = t, .table = unwtab_table(t) };
	const struct unwtab_stats *s = unwtab_stats(t);
	struct wk_side side;
	struct wk_row row;

	v.words = unwtab_words(t, &v.n);
	must(v.table->blocks && v.table->rows && v.table->rows <= limits->rows);
	must(v.table->base % WK_BLOCK == 0 && v.n * 8 == s->bytes);
	must(v.n == WK_TABLE_SIDES(v.table) + (size_t)s->sides * WK_SIDE_WORDS);
	check_rows(&v);
	must(unwtab_lookup(t, v.table->base - 1, &row, &side));
	must(unwtab_lookup(t, v.table->base + (uint64_t)v.table->blocks * WK_BLOCK, &row, &side));
}

static const struct elf *give(void *elf)
{
	return elf;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct unwtab_limits limits = { 1u << 20, 5000, 20000, 8u << 20, 1u << 20, 1u << 20 };
	struct elf *e cleanup(elf_cleanup) = NULL;
	struct unwtab *t cleanup(unwtab_cleanup) = NULL;
	struct unwtab_debug debug = { give };
	int r;

	if (elf_open_memory(data, size, &e, NULL))
		return 0;
	debug.arg = e;
	r = unwtab_compile(e, &debug, &limits, &t);
	if (!r)
		check(t, &limits);
	else
		must(r == -ENOENT || r == -E2BIG || r == -ENOTSUP || r == -EBADMSG);
	return 0;
}
