/* lines.c - see lines.h. */
#include "symbol/lines.h"

#include <elf.h>

#include "base/clock.h"
#include "symbol/debugfile.h"
#include "symbol/debuginfo.h"
#include "symbol/golines.h"

#define FILE_SHARE 4	/* one file may use 1/4 of the time, while others want some, too */

struct source {			/* one file */
	struct elf *elf;	/* NULL: closed */
	int fd;			/* -1: closed */
	struct debugfile debug;	/* elf: NULL, none or not needed */
	struct debugfile alt;	/* likewise */
	struct golines *go;	/* NULL: not Go's */
	struct debuginfo *dwarf;
	int error;		/* of opening, or a budget; 0 */
	int dwarf_error;	/* beside Go's table */
	bool found;
	uint64_t ns, refused, used;
	bool split_missing;
	struct debugfile_await await;
};

struct lines {
	struct lines_options o;
	struct source *sources;
	size_t nsources, sources_cap;
	uint64_t clock;		/* counts look-ups: who was asked for last */
	uint64_t ns, evicted, refused;
};

int lines_new(const struct lines_options *o, struct lines **ret)
{
	struct lines *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->o = *o;
	*ret = l;
	return 0;
}

static void close_source(struct source *s)
{
	debuginfo_free(take(s->dwarf));
	golines_free(take(s->go));
	if (s->debug.elf)
		debugfile_close(&s->debug);
	if (s->alt.elf)
		debugfile_close(&s->alt);
	s->debug.elf = s->alt.elf = NULL;
	elf_free(take(s->elf));
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

void lines_free(struct lines *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->nsources; i++)
		close_source(&l->sources[i]);
	free(l->sources);
	free(l);
}

void lines_forget(struct lines *l, uint32_t number)
{
	if (number >= l->nsources)
		return;
	close_source(&l->sources[number]);
	l->sources[number] = (struct source){ .fd = -1 };
}

void lines_begin(struct lines *l)
{
	l->ns = 0;
	for (size_t i = 0; i < l->nsources; i++) {
		l->sources[i].ns = 0;
		if (l->sources[i].error == -ETIME) {
			close_source(&l->sources[i]);
			l->sources[i].error = 0;
		}
	}
}

static uint64_t memory_of(const struct source *s)
{
	return (s->dwarf ? debuginfo_memory(s->dwarf) : 0) + (s->go ? GOLINES_BYTES : 0);
}

/* Closes files, those first that weren't asked for longest, until all but one fit with it. */
static void make_room(struct lines *l, const struct source *keep)
{
	for (;;) {
		struct source *oldest = NULL;
		uint64_t sum = 0;
		size_t open = 0;

		for (size_t i = 0; i < l->nsources; i++) {
			struct source *s = &l->sources[i];

			sum += memory_of(s);
			open += s->elf != NULL;
			if (s->elf && s != keep && (!oldest || s->used < oldest->used))
				oldest = s;
		}
		if ((sum <= l->o.max_bytes && open <= LINES_OPEN_MAX) || !oldest)
			return;
		close_source(oldest);
		l->evicted++;
	}
}

static bool has_dwarf(const struct elf *e)
{
	const struct elf_section *s = elf_section_by_name(e, ".debug_info");

	return s && s->type != SHT_NOBITS;
}

/* Opens DWARF: the file's own or its debug file's. */
static int open_dwarf(struct lines *l, struct source *s, const struct debugfile_where *where,
		      uint64_t deadline)
{
	struct debuginfo_options o = { .elf = s->elf, .code = s->elf, .max_bytes = l->o.max_bytes,
				       .inlines = l->o.inlines, .deadline = deadline,
				       .process = where->on_host ? -1 : where->process };
	struct debugfile_where w = *where;
	int r;

	w.await = &s->await;
	if (w.on_host || w.process >= 0)
		o.path = w.path;
	if (!has_dwarf(s->elf)) {
		r = debugfile_find(s->elf, &w, &s->debug);
		if (r)
			return r;
		o.elf = s->debug.elf;
		if (!has_dwarf(o.elf))
			return -ENOENT;
	}
	r = debugfile_alt(o.elf, &w, &s->alt);
	if (r == -ENOMEM)
		return r;
	o.alt = r ? NULL : s->alt.elf;
	r = debuginfo_open(&o, &s->dwarf);
	if (!r)
		make_room(l, s);
	return r;
}

/* What a file that has Go's table has in DWARF (C code) is opened when it is asked for. */
static int open_source(struct lines *l, struct source *s, const struct lines_file *file,
		       uint64_t deadline)
{
	int r;

	s->fd = file->open(file->ctx);
	if (s->fd < 0)
		return s->fd;
	r = elf_open_fd(s->fd, &s->elf, NULL);
	if (!r && golines_open(s->elf, l->o.inlines, &s->go))
		r = open_dwarf(l, s, file->where, deadline);
	if (r)
		close_source(s);
	else
		make_room(l, s);
	return r;
}

static bool is_budget(int error)
{
	return error == -ETIME || error == -E2BIG;
}

/* Until when a file may work: monotonic, now if it has had its time. */
static uint64_t deadline_of(const struct lines *l, const struct source *s, uint64_t now)
{
	uint64_t all = l->o.max_ns - MIN(l->ns, l->o.max_ns);
	uint64_t own = l->o.max_ns / FILE_SHARE;

	return now + MIN(all, own - MIN(s->ns, own));
}

/* -ENOTSUP of Go's table: of a version that it can't read. */
static int ask_go(struct lines *l, struct source *s, const struct lines_file *file,
		  uint64_t deadline, uint64_t vaddr, struct line_chain *ret)
{
	int r = golines_lookup(s->go, vaddr, ret);

	if (r != -ENOENT && r != -ENOTSUP)
		return r;
	if (!s->dwarf && !s->dwarf_error)
		s->dwarf_error = open_dwarf(l, s, file->where, deadline);
	return s->dwarf ? debuginfo_lookup(s->dwarf, vaddr, deadline, ret) : s->dwarf_error;
}

static int ask(struct lines *l, struct source *s, const struct lines_file *file, uint64_t vaddr,
	       struct line_chain *ret)
{
	uint64_t deadline = deadline_of(l, s, clock_monotonic());
	int r;

	if (s->error)
		return s->error;
	if (!s->elf)
		s->error = open_source(l, s, file, deadline);
	if (s->error)
		return s->error;
	s->found = true;
	r = s->go ? ask_go(l, s, file, deadline, vaddr, ret) :
		    debuginfo_lookup(s->dwarf, vaddr, deadline, ret);
	if (is_budget(r))
		s->error = r;
	s->split_missing = s->dwarf && debuginfo_split_missing(s->dwarf);
	return r;
}

static int source_of(struct lines *l, uint32_t number, struct source **ret)
{
	int r = number < LINES_FILES_MAX ? 0 : -ENOENT;

	if (!r)
		r = array_grow(&l->sources, &l->sources_cap, (size_t)number + 1,
			       sizeof(*l->sources));
	if (r)
		return r;
	while (l->nsources <= number)
		l->sources[l->nsources++] = (struct source){ .fd = -1 };
	*ret = &l->sources[number];
	return 0;
}

int lines_lookup(struct lines *l, const struct lines_file *file, uint64_t vaddr,
		 struct line_chain *ret)
{
	uint64_t start = clock_monotonic(), spent;
	struct source *s;
	int r = source_of(l, file->number, &s);

	if (r)
		return r;
	s->used = ++l->clock;
	r = ask(l, s, file, vaddr, ret);
	spent = clock_monotonic() - start;
	s->ns += spent;
	l->ns += spent;
	if (is_budget(r) || (!r && s->split_missing && !ret->v[ret->n - 1].name)) {
		s->refused++;
		l->refused++;
	}
	return !r || r == -ENOMEM ? r : -ENOENT;
}

const struct debugfile_await *lines_await(const struct lines *l, uint32_t number)
{
	static const struct debugfile_await none;

	return number < l->nsources ? &l->sources[number].await : &none;
}

static const char *hint_of(int error)
{
	switch (error) {
	case -ETIME:
		return "it took longer than --lines-time allows";
	case -E2BIG:
		return "it needs more memory than --lines-bytes allows";
	case -ENOTSUP:
		return "compressed in a way that isn't known";
	}
	return NULL;
}

struct lines_state lines_state(const struct lines *l, uint32_t number)
{
	const struct source *s;

	if (number >= l->nsources)
		return (struct lines_state){ .error = -ENOENT };
	s = &l->sources[number];
	return (struct lines_state){
		.found = s->found,
		.error = s->error,
		.refused = s->refused,
		.hint = s->split_missing ? "its .dwo files, or a .dwp beside it, have its functions" :
					   hint_of(s->error),
	};
}

struct lines_stats lines_stats(const struct lines *l)
{
	struct lines_stats st = { .evicted = l->evicted, .refused = l->refused, .ns = l->ns };

	for (size_t i = 0; i < l->nsources; i++)
		st.bytes += memory_of(&l->sources[i]);
	return st;
}
