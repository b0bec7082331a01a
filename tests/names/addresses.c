/* addresses.c - wick's names, lines and inlined calls for addresses of one file, in the form of
 * `llvm-symbolizer --inlines --no-demangle`: for each frame its name and file:line:column, an empty
 * line after each address.
 *
 *	addresses [-d] FILE < addresses > answers	-d: names as people write them (DEMANGLE_SIMPLE)
 *
 * The last line on standard error: seconds spent, look-ups a second, resident KiB.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "symbol/demangle.h"
#include "symbol/lines.h"
#include "symbol/sources.h"

static enum demangle_mode mode = DEMANGLE_NONE;

static void print_frame(const char *name, const struct line_frame *f)
{
	char *text cleanup(freep_cleanup) = NULL;

	if (name && !demangle(name, mode, &text))
		name = text;
	printf("%s\n%s:%" PRIu32 ":%" PRIu32 "\n", name ? name : "??",
	       f && *f->file ? f->file : "??", f ? f->line : 0, f ? f->column : 0);
}

static int open_path(void *ctx)
{
	return open(ctx, O_RDONLY | O_CLOEXEC);
}

static void answer(struct lines *l, struct symtab *t, char *path, uint64_t vaddr)
{
	struct debugfile_where where = { .path = path, .on_host = true, .process = -1 };
	struct lines_file f = { .where = &where, .open = open_path, .ctx = path };
	struct line_chain c = { 0 };
	struct symbol sym = { 0 };
	int r = lines_lookup(l, &f, vaddr, &c);

	if (!symtab_lookup(t, vaddr, &sym))
		sym.name = NULL;
	if (r)
		print_frame(sym.name, NULL);
	for (size_t i = 0; !r && i < c.n; i++)
		print_frame(i + 1 == c.n && sym.name ? sym.name : c.v[i].name, &c.v[i]);
	putchar('\n');
}

static int work(const struct elf *e, char *path)
{
	cleanup(lines_cleanup) struct lines *l = NULL;
	cleanup(symtab_cleanup) struct symtab *t = NULL;
	struct lines_options o = { .inlines = true, .max_bytes = UINT64_C(8) << 30,
				   .max_ns = UINT64_C(600000000000) };
	const struct debugfile_where where = { .path = path, .on_host = true, .process = -1 };
	char line[64];
	enum symbol_source source;
	int r = lines_new(&o, &l);

	if (!r)
		r = sources_build(e, &where, &t, &source);
	while (!r && fgets(line, sizeof(line), stdin))
		answer(l, t, path, strtoull(line, NULL, 16));
	return r;
}

int main(int argc, char **argv)
{
	cleanup(elf_cleanup) struct elf *e = NULL;
	bool plain = argc == 3 && !strcmp(argv[1], "-d");
	char *path = argc == 2 || plain ? argv[argc - 1] : NULL;
	cleanup(fd_cleanup) int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	uint64_t start = clock_monotonic();
	struct err why = { "" };
	struct rusage u;
	int r;

	if (fd < 0) {
		fprintf(stderr, "usage: addresses [-d] FILE < addresses\n");
		return 2;
	}
	if (plain)
		mode = DEMANGLE_SIMPLE;
	r = elf_open_fd(fd, &e, &why);
	if (!r)
		r = work(e, path);
	if (r) {
		fprintf(stderr, "%s: %s\n", path, *why.msg ? why.msg : strerror(-r));
		return 1;
	}
	getrusage(RUSAGE_SELF, &u);
	fprintf(stderr, "%.3f s, %ld KiB\n", (double)(clock_monotonic() - start) / 1e9, u.ru_maxrss);
	return 0;
}
