/* compare_code.c - compares rules made from code with those of .eh_frame, in files that have both.
 *
 *	compare_code [-v] FILE...
 *
 * All executable code of each file is followed as if it had no call frame information (code.h). Then for
 * each byte that .eh_frame describes in a way that a plain row can say: is there a rule, is the CFA
 * the same, is the caller's frame pointer found. Printed per file: the bytes, the share of them with
 * a rule of ours (covered), of the latter those with the same CFA (right), and frame pointer (fp).
 * -v shows where rows begin that differ. Exit status 1 if a file's figures are below the bounds, which
 * are lower for files without .symtab: there functions that only data points to aren't known.
 *
 * Not all that differs is ours to blame: some CFI of hand-written assembly forgets a push.
 */
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <time.h>

#include "unwind/gaps.h"
#include "unwind/unwtab.h"

#define COVERED_MIN	     0.95
#define RIGHT_MIN	     0.999
#define STRIPPED_COVERED_MIN 0.85
#define STRIPPED_RIGHT_MIN   0.998

enum { SECTIONS_MAX = 64, SHOWN_MAX = 40 };

struct comparison {
	const struct unwtab *cfi;
	uint64_t bytes, claimed, right, fp_right, shown;
	bool verbose;
	uint64_t to_offset;	/* address + to_offset = file offset */
	uint64_t start;		/* of the pending row */
	struct wk_row row;
};

/* Whether two rows say the same of the caller's frame pointer. A register that was just popped is as
 * good as the word below rsp from which it came. */
static bool same_fp(const struct wk_row *cfi, const struct wk_row *ours)
{
	if (WK_ROW_FP(*cfi) == WK_ROW_FP(*ours))
		return WK_ROW_FP(*cfi) != WK_FP_SAVED || cfi->fp_off == ours->fp_off;
	if (WK_ROW_FP(*cfi) == WK_FP_SAVED && WK_ROW_FP(*ours) == WK_FP_SAME)
		return cfi->cfa == WK_CFA_SP && -cfi->fp_off > cfi->cfa_off;
	return WK_ROW_FP(*ours) == WK_FP_SAVED && WK_ROW_FP(*cfi) == WK_FP_SAME;
}

static void show(struct comparison *c, uint64_t vaddr, const struct wk_row *cfi)
{
	if (c->verbose && c->shown++ < SHOWN_MAX)
		printf("  %#" PRIx64 ": cfi %d%+d, fp %d%+d; code %d%+d, fp %d%+d\n", vaddr, cfi->cfa,
		       cfi->cfa_off, WK_ROW_FP(*cfi), cfi->fp_off, c->row.cfa, c->row.cfa_off,
		       WK_ROW_FP(c->row), c->row.fp_off);
}

static void compare_byte(struct comparison *c, uint64_t vaddr)
{
	const struct wk_row *ours = &c->row;
	struct wk_side side;
	struct wk_row cfi;
	bool right, fp;

	if (unwtab_lookup(c->cfi, vaddr + c->to_offset, &cfi, &side) ||
	    (cfi.cfa != WK_CFA_SP && cfi.cfa != WK_CFA_FP))
		return;
	c->bytes++;
	if (ours->cfa == WK_CFA_NONE)
		return;
	fp = same_fp(&cfi, ours);
	/* While rbp is the frame pointer, the CFA may be given by it or by rsp. They say the same if
	 * the caller's was saved at the same place. */
	right = cfi.cfa == ours->cfa ? cfi.cfa_off == ours->cfa_off : ours->cfa != WK_CFA_ROOT && fp;
	c->claimed++;
	c->right += right;
	c->fp_right += right && fp;
	if (vaddr == c->start && !(right && fp))
		show(c, vaddr, &cfi);
}

static void finish_row(struct comparison *c, uint64_t end)
{
	for (uint64_t at = c->start; at < end; at++)
		compare_byte(c, at);
}

static void each_row(void *arg, uint64_t vaddr, const struct wk_row *row)
{
	struct comparison *c = arg;

	finish_row(c, vaddr);
	c->start = vaddr;
	c->row = *row;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The executable sections but PLTs, whose rules are expressions. */
static size_t text_of(const struct elf *e, struct gap *gaps, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < elf_section_count(e) && n < max; i++) {
		const struct elf_section *s = elf_section(e, i);

		if (s->type == SHT_PROGBITS && s->flags & SHF_EXECINSTR && s->size &&
		    strncmp(s->name, ".plt", 4))
			gaps[n++] = (struct gap){ s->offset, s->addr, s->size };
	}
	return n;
}

static void compare_all(struct comparison *c, const struct code *code, const struct gap *gaps,
			size_t ngaps)
{
	uint64_t start, end;

	for (size_t i = 0; i < ngaps; i++) {
		size_t n = i;

		c->row = (struct wk_row){ .cfa = WK_CFA_NONE };
		c->start = gaps[i].vaddr;
		c->to_offset = gaps[i].offset - gaps[i].vaddr;
		if (code_next(code, &n, &start, &end) && n == i + 1)
			code_rows(code, i, each_row, c);
		finish_row(c, gaps[i].vaddr + gaps[i].size);
	}
}

/* 0 if the figures are good. */
static int judge(const struct comparison *c, const char *path, bool stripped, double took)
{
	double covered = (double)c->claimed / (double)c->bytes;
	double right = (double)c->right / (double)c->claimed;
	bool good = covered >= (stripped ? STRIPPED_COVERED_MIN : COVERED_MIN) &&
		    right >= (stripped ? STRIPPED_RIGHT_MIN : RIGHT_MIN);

	printf("%s%s: %" PRIu64 " bytes, covered %.2f %%, right %.4f %%, fp %.4f %%, %.0f ms%s\n", path,
	       stripped ? " (no .symtab)" : "", c->bytes, 100 * covered, 100 * right,
	       100.0 * (double)c->fp_right / (double)c->claimed, took * 1e3,
	       good ? "" : ": BELOW THE BOUNDS");
	return !good;
}

static int compare(const char *path, bool verbose)
{
	cleanup(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC);
	cleanup(elf_cleanup) struct elf *elf = NULL;
	cleanup(unwtab_cleanup) struct unwtab *cfi = NULL;
	cleanup(code_cleanup) struct code *code = NULL;
	struct comparison c = { .verbose = verbose };
	struct gap gaps[SECTIONS_MAX];
	uint64_t left = 0;
	double took;
	size_t n;

	if (fd < 0 || elf_open_fd(fd, &elf, NULL) ||
	    unwtab_compile(elf, NULL, &UNWTAB_LIMITS_DEFAULT, &cfi)) {
		printf("%s: can't be read\n", path);
		return 1;
	}
	n = text_of(elf, gaps, ARRAY_SIZE(gaps));
	took = seconds();
	if (gaps_trace(elf, NULL, 0, gaps, n, CODE_BYTES_MAX, &code, &left)) {
		printf("%s: nothing found\n", path);
		return 1;
	}
	took = seconds() - took;
	c.cfi = cfi;
	compare_all(&c, code, gaps, n);
	return judge(&c, path, !elf_section_by_type(elf, SHT_SYMTAB), took);
}

int main(int argc, char **argv)
{
	bool verbose = argc > 1 && !strcmp(argv[1], "-v");
	int r = 0;

	for (int i = 1 + verbose; i < argc; i++)
		r |= compare(argv[i], verbose);
	return r;
}
