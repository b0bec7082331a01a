/* check_files.c - see check_files.h. */
#include "cli/check_files.h"

#include "base/buf.h"
#include "collect/mapped.h"
#include "kernel/outcome.h"

enum { SOURCES_MAX_BYTES = 128 };

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static uint64_t covered(const struct unwtab_stats *s)
{
	return s->eh_frame_bytes + s->debug_frame_bytes + s->code_bytes + s->go_bytes;
}

static void add_source(struct buf *b, const char *name, uint64_t bytes, const struct unwtab_stats *s)
{
	if (bytes)
		buf_printf(b, "%s%s %.1f %%", b->len ? ", " : "", name, percent(bytes, s->text_bytes));
}

/* Where the rows come from, with the share of the text that each source covers. */
static void add_sources(struct buf *b, const struct mapped_file *f)
{
	const struct unwtab_stats *s = &f->stats;

	if (f->error == -ENOENT)
		buf_str(b, "none");
	else if (f->error)
		buf_printf(b, "none: %s", strerror(-f->error));
	else if (s->go)
		buf_str(b, s->go_bytes ? "" : "go (frame pointers; .debug_frame for leaves)");
	add_source(b, ".eh_frame", s->eh_frame_bytes, s);
	if (!s->go)
		add_source(b, ".debug_frame", s->debug_frame_bytes, s);
	add_source(b, "code", s->code_bytes, s);
	add_source(b, "over the limit", s->code_left, s);
	add_source(b, "gopclntab", s->go_bytes, s);
}

static void print_file(const struct mapped_file *f)
{
	cleanup(buf_cleanup) struct buf sources = BUF_INIT(SOURCES_MAX_BYTES);
	cleanup(buf_cleanup) struct buf path = BUF_INIT(64 << 10);
	const struct unwtab_stats *s = &f->stats;

	add_sources(&sources, f);
	buf_utf8(&path, f->path, strlen(f->path));
	printf("%8u %8.1f %8.1f %8.1f  %-36s %s\n", s->rows, (double)s->bytes / 1024,
	       (double)f->took_ns * 1e-6, percent(covered(s), s->text_bytes),
	       sources.data ? sources.data : "", path.data ? path.data : "");
}

static void print_tables(const struct mapped *m)
{
	uint64_t bytes = 0, took = 0;

	printf("%8s %8s %8s %8s  %-36s %s\n", "rows", "KiB", "ms", "% known", "source, % of the text",
	       "file");
	for (size_t i = 0; i < m->n; i++) {
		print_file(&m->v[i]);
		bytes += m->v[i].stats.bytes;
		took += m->v[i].took_ns;
	}
	printf("%zu files, %.1f KiB of rows, compiled in %.1f ms\n", m->n, (double)bytes / 1024,
	       (double)took * 1e-6);
	if (m->left_out)
		printf("%zu mappings of further files were left out\n", m->left_out);
}

/* A reason for which stacks were truncated in one file. */
struct failure {
	const struct mapped_file *file;
	unsigned int outcome;
	uint64_t stacks;
};

static int by_stacks(const void *a, const void *b)
{
	const struct failure *x = a, *y = b;

	return x->stacks < y->stacks ? 1 : x->stacks > y->stacks ? -1 : 0;
}

static size_t add_failures(const struct mapped_file *f, struct failure *v)
{
	size_t n = 0;

	for (unsigned int o = WK_USER_FIRST; o <= WK_USER_LAST; o++)
		if (f->ended[o])
			v[n++] = (struct failure){ f, o, f->ended[o] };
	return n;
}

static int print_failures(const struct mapped *m, uint64_t duration_ns)
{
	cleanup(freep_cleanup) struct failure *v =
		calloc((m->n + 1) * (WK_USER_LAST - WK_USER_FIRST + 1), sizeof(*v));
	uint64_t failed = m->stacks - m->rooted;
	size_t n = 0;

	if (!v)
		return -ENOMEM;
	printf("\nSampled for %.1f s: %llu user stacks, %llu of them (%.2f %%) don't reach their root\n",
	       (double)duration_ns * 1e-9, (unsigned long long)m->stacks, (unsigned long long)failed,
	       percent(failed, m->stacks));
	for (size_t i = 0; i < m->n; i++)
		n += add_failures(&m->v[i], v + n);
	n += add_failures(&m->other, v + n);
	qsort(v, n, sizeof(*v), by_stacks);
	for (size_t i = 0; i < n; i++) {
		cleanup(buf_cleanup) struct buf path = BUF_INIT(64 << 10);

		if (v[i].file->path)
			buf_utf8(&path, v[i].file->path, strlen(v[i].file->path));
		printf("%7.1f %%  %-28s %s\n", percent(v[i].stacks, failed), outcome_text(v[i].outcome),
		       path.data ? path.data : "code of no file in the table");
	}
	return 0;
}

int check_files(uint32_t pid, uint64_t duration_ns, bool unsafe_kernel, struct err *e)
{
	cleanup(mapped_cleanup) struct mapped m = { 0 };
	int r = mapped_read(pid, &m, e);

	if (r)
		return r;
	print_tables(&m);
	if (!duration_ns)
		return 0;
	fflush(stdout);
	r = mapped_sample(&m, duration_ns, unsafe_kernel, e);
	return r ? r : print_failures(&m, duration_ns);
}
