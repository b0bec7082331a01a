/* debuginfo.c - see debuginfo.h. Offsets of entries are those of .debug_info. */
#include "symbol/debuginfo.h"

#include <dwarf.h>
#include <fcntl.h>

#include "base/clock.h"
#include "base/map.h"
#include "symbol/dwarfdie.h"
#include "symbol/lineprog.h"
#include "symbol/ranges.h"
#include "symbol/splitdwarf.h"

#define CHECK_EVERY   256	/* entries between looks at the clock */
#define RSS_EVERY     64	/* of these looks between looks at the memory */
#define HEADER_NEEDED 4096	/* bytes of a unit that hold its first entry */

struct place {
	const char *file;	/* NULL: not asked for yet */
	uint32_t line, column;
};

struct call {			/* an inlined call */
	Dwarf_Off die;
	uint32_t parent;	/* call + 1; 0: the function */
	struct place site;	/* in its caller */
};

struct function {
	Dwarf_Off die;
	bool looked;		/* for calls */
	int error;		/* of looking */
	struct call *calls;
	size_t ncalls, calls_cap;
	struct ranges ranges;	/* of the calls, in the file's order */
};

struct scope {			/* a namespace, type or function that others lie in */
	const char *name;
	uint32_t parent;	/* scope + 1; 0: the unit */
};

struct scoped {			/* a function, declared or defined */
	Dwarf_Off die;		/* ascending */
	uint32_t scope;		/* + 1; 0: the unit */
};

enum state { FRESH, READY, FAILED };

struct unit {
	Dwarf_Off start, end, die;
	enum state state;
	int error;		/* FAILED: why */
	bool loaded;		/* its entries are in the image */
	bool deep;		/* functions inside of functions were listed, too */
	struct splitdwarf *split;	/* has the functions; NULL: they are here */
	uint64_t base;		/* of ranges there that don't say theirs */
	struct lineprog *lines;	/* NULL: none */
	struct lineprog *files;	/* NULL: not read, `lines` serves, or none */
	const char **paths;	/* by file number; NULL: not asked for yet */
	size_t paths_cap;
	struct function *functions;
	size_t nfunctions, functions_cap;
	struct ranges ranges;	/* of functions */
	bool has_scopes;	/* by its language */
	struct scope *scopes;
	struct scoped *scoped;
	size_t nscopes, scopes_cap, nscoped, scoped_cap;
};

struct entry_key {		/* an entry: of the file, or of a unit's split file */
	Dwarf_Off offset;
	uint64_t split;		/* unit + 1 */
};

struct described {		/* a function's names */
	const char *name, *scope, *file;
	uint32_t line;
};

struct debuginfo {
	struct debuginfo_options o;
	struct dwarfimage *image;
	Elf *elf;
	Dwarf *dwarf;
	char *path;		/* of options, copied */
	int process;		/* likewise */
	struct dwarfimage *alt_image;
	Elf *alt_elf;
	Dwarf *alt;
	struct unit *units;
	size_t nunits, units_cap;
	struct ranges ranges;	/* of units */
	struct unit *at;	/* the unit at hand */
	uint64_t split_missing;
	struct map known;	/* entry_key -> described[] */
	struct described *described;
	size_t described_cap;
	struct strtab texts;	/* ids only: its bytes move */
	char **stable;		/* of each text */
	size_t stable_cap;
	struct line_frame *frames;
	size_t frames_cap;
	uint64_t deadline, steps, rss;
	uint64_t memory;
	struct die_reader reader;
};

/* ---- limits ---- */

/* Pages of this process in memory, in bytes; 0: unknown. */
static uint64_t rss(void)
{
	FILE *f cleanup(file_cleanup) = fopen("/proc/self/statm", "re");
	unsigned long long total, resident;

	if (!f || fscanf(f, "%llu %llu", &total, &resident) != 2)
		return 0;
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Before each entry that is looked at. */
static int step(struct debuginfo *d)
{
	uint64_t now;

	if (++d->steps % CHECK_EVERY)
		return 0;
	if (clock_monotonic() > d->deadline)
		return -ETIME;
	if (d->steps % (CHECK_EVERY * RSS_EVERY))
		return 0;
	now = rss();
	return now > d->rss && now - d->rss > 2 * d->o.max_bytes ? -E2BIG : 0;
}

/* ---- ranges ---- */

/* What is added to a range of a split file: nothing if it is in the unit as it is. */
static uint64_t base_of(const struct debuginfo *d, uint64_t low)
{
	const struct unit *u = d->at;
	uint32_t in = u && u->split && u->base ? ranges_find(&d->ranges, low, RANGES_FIRST) : RANGES_NONE;

	return !u || !u->split || (in != RANGES_NONE && &d->units[in] == u) ? 0 : u->base;
}

/* All that an entry has, those that aren't living code left out. */
static int add_ranges(struct debuginfo *d, Dwarf_Die *die, struct ranges *t, uint32_t of)
{
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;
	int r = 0;

	while (!r && (at = dwarf_ranges(die, at, &base, &low, &high)) > 0) {
		uint64_t more = base_of(d, low);

		if (low < high && elf_exec_segment(d->o.code, low + more))
			r = ranges_add(t, low + more, high + more, of);
		if (!r)
			r = step(d);
	}
	return r;
}

/* ---- units ---- */

/* The unit of an entry; NULL: it is none of this file's. */
static struct unit *unit_of(struct debuginfo *d, Dwarf_Die *die)
{
	Dwarf_Off offset = dwarf_dieoffset(die);
	Dwarf *dwarf = dwarf_cu_getdwarf(die->cu);
	size_t low = 0, high = d->nunits;

	if (dwarf != d->dwarf)	/* files are numbered by the skeleton; another's numbers are unknown */
		return d->at && d->at->split && dwarf == splitdwarf_dwarf(d->at->split) ? d->at : NULL;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (d->units[mid].end <= offset)
			low = mid + 1;
		else
			high = mid;
	}
	return low < d->nunits && d->units[low].start <= offset ? &d->units[low] : NULL;
}

/* Makes all of a unit real. */
static int load_unit(struct debuginfo *d, struct unit *u)
{
	int r = u->loaded ? 0 : dwarfimage_need(d->image, u->start, u->end - u->start);

	u->loaded = !r;
	return r;
}

/* die_reader.need */
static int need(void *ctx, Dwarf_Die *die)
{
	struct debuginfo *d = ctx;
	struct unit *u;

	if (dwarf_cu_getdwarf(die->cu) != d->dwarf)
		return 0;	/* the others are read whole */
	u = unit_of(d, die);
	return u ? load_unit(d, u) : -ENOENT;
}

static int unit_die(struct debuginfo *d, const struct unit *u, Dwarf_Die *ret)
{
	return dwarf_offdie(d->dwarf, u->die, ret) ? 0 : -EBADMSG;
}

/* An entry of the unit at hand: a function or call. */
static int entry_die(struct debuginfo *d, Dwarf_Off offset, Dwarf_Die *ret)
{
	Dwarf *dwarf = d->at->split ? splitdwarf_dwarf(d->at->split) : d->dwarf;

	return dwarf_offdie(dwarf, offset, ret) ? 0 : -EBADMSG;
}

/* The next unit: 1, 0 at the end (or where the rest is malformed), negative errno. */
static int next_unit(struct debuginfo *d, Dwarf_Off *at)
{
	Dwarf_Off next;
	size_t header;
	Dwarf_Half version;
	Dwarf_Die die;
	struct unit *u;
	int r = dwarfimage_need(d->image, *at, HEADER_NEEDED);

	if (r)
		return r;
	if (dwarf_next_unit(d->dwarf, *at, &next, &header, &version, NULL, NULL, NULL, NULL, NULL) ||
	    next <= *at || d->nunits >= DEBUGINFO_UNITS_MAX)
		return 0;
	r = array_grow(&d->units, &d->units_cap, d->nunits + 1, sizeof(*d->units));
	if (r)
		return r;
	u = &d->units[d->nunits++];
	*u = (struct unit){ .start = *at, .end = next, .die = *at + header };
	*at = next;
	if (unit_die(d, u, &die))
		return 1;
	if (dwarf_tag(&die) == DW_TAG_compile_unit || dwarf_tag(&die) == DW_TAG_skeleton_unit)
		r = add_ranges(d, &die, &d->ranges, (uint32_t)(d->nunits - 1));
	return r ? r : 1;
}

static int list_units(struct debuginfo *d)
{
	Dwarf_Off at = 0;
	int r = 1;

	while (r > 0) {
		r = next_unit(d, &at);
		if (r > 0 && step(d))
			r = -ETIME;
	}
	ranges_sort(&d->ranges);
	return r;
}

/* ---- functions of a unit ---- */

/* Entries that may hold functions. */
static bool holds_functions(int tag)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
		return true;
	}
	return false;
}

static int add_function(struct debuginfo *d, struct unit *u, Dwarf_Die *die)
{
	int r = array_grow(&u->functions, &u->functions_cap, u->nfunctions + 1,
			   sizeof(*u->functions));

	if (r)
		return r;
	u->functions[u->nfunctions] = (struct function){ .die = dwarf_dieoffset(die) };
	return add_ranges(d, die, &u->ranges, (uint32_t)u->nfunctions++);
}

/* The scope that an entry makes within another; that one itself if it makes none. */
static int add_scope(struct unit *u, Dwarf_Die *die, uint32_t within, uint32_t *ret)
{
	const char *name = die_scope_name(die);
	int r = name ? array_grow(&u->scopes, &u->scopes_cap, u->nscopes + 1, sizeof(*u->scopes)) : 0;

	if (r)
		return r;
	if (name)
		u->scopes[u->nscopes++] = (struct scope){ name, within };
	*ret = name ? (uint32_t)u->nscopes : within;
	return 0;
}

static int list_function(struct debuginfo *d, struct unit *u, Dwarf_Die *die, uint32_t scope)
{
	int r = 0;

	if (die_has_code(die))
		r = add_function(d, u, die);
	if (r || !u->has_scopes || !scope)
		return r;
	r = array_grow(&u->scoped, &u->scoped_cap, u->nscoped + 1, sizeof(*u->scoped));
	if (!r)
		u->scoped[u->nscoped++] = (struct scoped){ dwarf_dieoffset(die), scope };
	return r;
}

/* Depth first. u->deep: also inside of functions (nested ones of Ada, Fortran, GNU C). */
static int list_functions(struct debuginfo *d, struct unit *u, Dwarf_Die *parent, uint32_t scope,
			  int depth)
{
	Dwarf_Die die;
	int more = dwarf_child(parent, &die), r = 0;

	while (!more && !r) {
		int tag = dwarf_tag(&die);
		uint32_t inner = scope;

		r = step(d);
		if (!r && tag == DW_TAG_subprogram)
			r = list_function(d, u, &die, scope);
		if (!r && depth < DEBUGINFO_DEPTH_MAX && (u->deep || holds_functions(tag)) &&
		    dwarf_haschildren(&die) == 1) {
			r = u->has_scopes ? add_scope(u, &die, scope, &inner) : 0;
			if (!r)
				r = list_functions(d, u, &die, inner, depth + 1);
		}
		more = dwarf_siblingof(&die, &die);
	}
	return r;
}

static void forget_functions(struct unit *u)
{
	for (size_t i = 0; i < u->nfunctions; i++) {
		free(u->functions[i].calls);
		free(u->functions[i].ranges.v);
	}
	u->nfunctions = u->ranges.n = u->nscopes = u->nscoped = 0;
}

static int read_functions(struct debuginfo *d, struct unit *u, bool deep)
{
	Dwarf_Die die;
	int r = u->split ? entry_die(d, splitdwarf_unit(u->split), &die) : unit_die(d, u, &die);

	forget_functions(u);
	u->deep = deep;
	if (!r) {
		u->has_scopes = die_language_has_scopes(die_number(&die, DW_AT_language));
		r = list_functions(d, u, &die, 0, 0);
	}
	ranges_sort(&u->ranges);
	d->memory += u->functions_cap * sizeof(*u->functions) + u->ranges.cap * sizeof(struct range) +
		     u->scopes_cap * sizeof(*u->scopes) + u->scoped_cap * sizeof(*u->scoped);
	return r;
}

/* Without its split file a unit has lines, but no functions. */
static int read_split(struct debuginfo *d, struct unit *u, Dwarf_Die *die)
{
	struct splitdwarf_options o = { .path = d->path, .process = d->process,
					.image = d->image, .max = d->o.max_bytes };
	int r = splitdwarf_open(&o, die, &u->split);
	Dwarf_Addr base;

	if (r) {
		d->split_missing++;
		return r == -ENOMEM ? r : 0;
	}
	d->memory += splitdwarf_memory(u->split);
	u->base = dwarf_lowpc(die, &base) ? 0 : base;
	return 0;
}

static int read_unit(struct debuginfo *d, struct unit *u)
{
	Dwarf_Die die;
	int r = load_unit(d, u);

	if (!r)
		r = unit_die(d, u, &die);
	if (!r && dwarf_hasattr(&die, DW_AT_stmt_list)) {
		r = lineprog_read(d->image, d->o.code, die_number(&die, DW_AT_stmt_list),
				  d->deadline, &u->lines);
		if (!r)
			d->memory += lineprog_memory(u->lines);
		else if (r != -ENOMEM && r != -ETIME)
			r = 0;	/* names are something, too */
	}
	if (!r && splitdwarf_is_skeleton(&die))
		r = read_split(d, u, &die);
	return r ? r : read_functions(d, u, false);
}

static int ready(struct debuginfo *d, struct unit *u)
{
	int r;

	if (u->state != FRESH)
		return u->state == FAILED ? u->error : 0;
	d->rss = rss();	/* what else grew since the last unit isn't ours */
	r = read_unit(d, u);
	u->state = r ? FAILED : READY;
	u->error = r;
	return r;
}

/* ---- calls of a function ---- */

static bool holds_calls(int tag)
{
	return tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block ||
	       tag == DW_TAG_try_block || tag == DW_TAG_catch_block;
}

/* Depth first; parent is the call + 1 around the entries. */
static int list_calls(struct debuginfo *d, struct function *f, Dwarf_Die *around, uint32_t parent,
		      int depth)
{
	Dwarf_Die die;
	int more = dwarf_child(around, &die), r = 0;

	while (!more && !r) {
		int tag = dwarf_tag(&die);
		uint32_t call = parent;

		r = step(d);
		if (!r && tag == DW_TAG_inlined_subroutine && f->ranges.n < DEBUGINFO_CALLS_MAX) {
			r = array_grow(&f->calls, &f->calls_cap, f->ncalls + 1, sizeof(*f->calls));
			if (r)
				break;
			f->calls[f->ncalls] = (struct call){ .die = dwarf_dieoffset(&die),
							     .parent = parent };
			r = add_ranges(d, &die, &f->ranges, (uint32_t)f->ncalls++);
			call = (uint32_t)f->ncalls;
		}
		if (!r && depth < DEBUGINFO_DEPTH_MAX && holds_calls(tag))
			r = list_calls(d, f, &die, call, depth + 1);
		more = dwarf_siblingof(&die, &die);
	}
	return r;
}

static int look_for_calls(struct debuginfo *d, struct function *f)
{
	Dwarf_Die die;
	int r;

	if (f->looked)
		return f->error;
	f->looked = true;
	r = entry_die(d, f->die, &die);
	if (!r)
		r = list_calls(d, f, &die, 0, 0);
	ranges_sort(&f->ranges);
	d->memory += f->calls_cap * sizeof(*f->calls) + f->ranges.cap * sizeof(struct range);
	f->error = r;
	return r;
}

/* ---- texts ---- */

static int keep(struct debuginfo *d, const char *text, size_t n, const char **ret)
{
	size_t old = d->stable_cap;
	uint32_t id;
	int r = strtab_put(&d->texts, text, n, &id);

	if (!r)
		r = array_grow(&d->stable, &d->stable_cap, (size_t)id + 1, sizeof(*d->stable));
	if (r)
		return r;
	memset(d->stable + old, 0, (d->stable_cap - old) * sizeof(*d->stable));
	if (!d->stable[id])
		d->stable[id] = strndup(text, n);
	if (!d->stable[id])
		return -ENOMEM;
	d->memory += 2 * n;
	*ret = d->stable[id];
	return 0;
}

/* The path of a file of a unit; "" if there is none. */
static int path_of(struct debuginfo *d, struct unit *u, uint64_t file, const char **ret)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(LINEPROG_PATH_MAX);
	const struct lineprog *table = u->lines ? u->lines : u->files;
	size_t old = u->paths_cap;
	const char *dir;
	Dwarf_Die die;
	int r = 0;

	if (file < u->paths_cap && u->paths[file]) {
		*ret = u->paths[file];
		return 0;
	}
	*ret = "";
	if (file >= LINEPROG_FILES_MAX || unit_die(d, u, &die))
		return 0;
	if (!table && dwarf_hasattr(&die, DW_AT_stmt_list)) {
		r = lineprog_read_files(d->image, die_number(&die, DW_AT_stmt_list), &u->files);
		table = r ? NULL : u->files;
	}
	if (!table)
		return r == -ENOMEM ? r : 0;
	r = array_grow(&u->paths, &u->paths_cap, file + 1, sizeof(*u->paths));
	if (r)
		return r;
	memset(u->paths + old, 0, (u->paths_cap - old) * sizeof(*u->paths));
	dir = die_string(&die, DW_AT_comp_dir);
	u->paths[file] = "";
	if (lineprog_path(table, file, dir ? dir : "", &b))
		r = keep(d, b.data, b.len, &u->paths[file]);
	*ret = u->paths[file];
	return r;
}

/* The scope of a function, "ns::type": "" if it has none, or lies in a unit that wasn't listed. */
static int scope_of(struct debuginfo *d, Dwarf_Die *die, const char **ret)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(4096);
	const char *names[DEBUGINFO_DEPTH_MAX];
	const struct unit *u = unit_of(d, die);
	Dwarf_Off offset = dwarf_dieoffset(die);
	size_t low = 0, high = u ? u->nscoped : 0, n = 0;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (u->scoped[mid].die < offset)
			low = mid + 1;
		else
			high = mid;
	}
	if (!u || low == u->nscoped || u->scoped[low].die != offset)
		return 0;
	for (uint32_t at = u->scoped[low].scope; at && n < ARRAY_SIZE(names);
	     at = u->scopes[at - 1].parent)
		names[n++] = u->scopes[at - 1].name;
	while (n) {
		buf_str(&b, names[--n]);
		buf_str(&b, n ? "::" : "");
	}
	if (b.err)	/* longer than any name */
		return b.err == -ENOMEM ? -ENOMEM : 0;
	return keep(d, b.data, b.len, ret);
}

static int describe_new(struct debuginfo *d, Dwarf_Die *die, struct described *ret)
{
	struct die_function f;
	struct unit *u;
	int r = 0;

	*ret = (struct described){ .scope = "", .file = "" };
	die_describe(&d->reader, die, &f);
	ret->name = f.linkage ? f.linkage : f.name;
	ret->line = f.decl_line;
	u = f.decl_line ? unit_of(d, &f.declared) : NULL;
	if (u)
		r = path_of(d, u, f.decl_file, &ret->file);
	if (!r && !f.linkage && f.name)
		r = scope_of(d, &f.named, &ret->scope);
	return r;
}

/* Names and place of the function of an entry, worked out once. */
static int describe(struct debuginfo *d, Dwarf_Off offset, struct described *ret)
{
	struct entry_key key = { offset, d->at->split ? (uint64_t)(d->at - d->units) + 1 : 0 };
	uint32_t n = map_find(&d->known, &key);
	struct described fresh;
	Dwarf_Die die;
	int r;

	if (n == MAP_NONE) {
		r = entry_die(d, offset, &die);
		if (!r)
			r = describe_new(d, &die, &fresh);
		if (!r)
			r = array_grow(&d->described, &d->described_cap, d->known.n + 1,
				       sizeof(fresh));
		if (!r)
			r = map_put(&d->known, &key, &n, NULL);
		if (r)
			return r;
		d->described[n] = fresh;
		d->memory += sizeof(fresh) + 32;
	}
	*ret = d->described[n];
	return 0;
}

/* ---- an address ---- */

static int push(struct debuginfo *d, size_t n, Dwarf_Off function, const struct place *at)
{
	struct described what = { .scope = "", .file = "" };
	int r = array_grow(&d->frames, &d->frames_cap, n + 1, sizeof(*d->frames));

	if (!r && function)
		r = describe(d, function, &what);
	if (r)
		return r;
	d->frames[n] = (struct line_frame){
		.name = what.name,
		.scope = what.scope,
		.file = at->file,
		.line = at->line,
		.column = at->column,
		.start_line = *at->file && !strcmp(what.file, at->file) ? what.line : 0,
	};
	return 0;
}

/* Where an inlined call stands in its caller, worked out once. */
static int call_site(struct debuginfo *d, struct unit *u, struct call *c, struct place *ret)
{
	struct place *site = &c->site;
	Dwarf_Die die;
	int r = 0;

	if (!site->file) {
		site->file = "";
		if (!entry_die(d, c->die, &die)) {
			site->line = (uint32_t)MIN(die_number(&die, DW_AT_call_line), UINT32_MAX);
			site->column = (uint32_t)MIN(die_number(&die, DW_AT_call_column), UINT32_MAX);
			r = path_of(d, u, die_number(&die, DW_AT_call_file), &site->file);
		}
	}
	*ret = *site;
	return r;
}

/* The calls around an address, innermost first, then the function. */
static int chain(struct debuginfo *d, struct unit *u, struct function *f, uint64_t vaddr,
		 struct place at, struct line_chain *ret)
{
	uint32_t call = RANGES_NONE;
	size_t n = 0;
	int r = 0;

	if (d->o.inlines) {
		r = look_for_calls(d, f);
		call = ranges_find(&f->ranges, vaddr, RANGES_LAST);
	}
	for (call = call == RANGES_NONE ? 0 : call + 1; call && !r; call = f->calls[call - 1].parent) {
		r = push(d, n++, f->calls[call - 1].die, &at);
		if (!r)
			r = call_site(d, u, &f->calls[call - 1], &at);
	}
	if (!r)
		r = push(d, n++, f->die, &at);
	if (!r)
		*ret = (struct line_chain){ d->frames, n };
	return r;
}

static int find_function(struct debuginfo *d, struct unit *u, uint64_t vaddr, uint32_t *ret)
{
	int r = 0;

	*ret = ranges_find(&u->ranges, vaddr, RANGES_LAST);
	if (*ret == RANGES_NONE && !u->deep) {
		r = read_functions(d, u, true);
		*ret = ranges_find(&u->ranges, vaddr, RANGES_LAST);
	}
	return r;
}

int debuginfo_lookup(struct debuginfo *d, uint64_t vaddr, uint64_t deadline, struct line_chain *ret)
{
	uint32_t unit = ranges_find(&d->ranges, vaddr, RANGES_FIRST), function;
	struct lineprog_row row;
	struct place at = { .file = "" };
	struct unit *u;
	int r;

	if (unit == RANGES_NONE)
		return -ENOENT;
	d->at = u = &d->units[unit];
	d->deadline = deadline;
	r = ready(d, u);
	if (r)
		return r;
	if (u->lines && lineprog_lookup(u->lines, vaddr, &row)) {
		at.line = row.line;
		at.column = row.column;
		r = path_of(d, u, row.file, &at.file);
	}
	if (!r)
		r = find_function(d, u, vaddr, &function);
	if (r)
		return r;
	if (function != RANGES_NONE)
		return chain(d, u, &u->functions[function], vaddr, at, ret);
	if (!*at.file)
		return -ENOENT;
	r = push(d, 0, 0, &at);
	if (!r)
		*ret = (struct line_chain){ d->frames, 1 };
	return r;
}

/* ---- open and free ---- */

static int begin(struct dwarfimage *image, Elf **ret_elf, Dwarf **ret)
{
	size_t size;
	char *bytes = dwarfimage_bytes(image, &size);

	elf_version(EV_CURRENT);
	*ret_elf = elf_memory(bytes, size);
	if (*ret_elf)
		*ret = dwarf_begin_elf(*ret_elf, DWARF_C_READ, NULL);
	return *ret ? 0 : -EBADMSG;
}

/* What dwz has moved to a file that several share. Without it names are missing, no more. */
static int begin_alt(struct debuginfo *d)
{
	int r = dwarfimage_new(d->o.alt, d->o.max_bytes, &d->alt_image);

	if (!r)
		r = dwarfimage_need(d->alt_image, 0, UINT64_MAX);
	if (!r)
		r = begin(d->alt_image, &d->alt_elf, &d->alt);
	if (!r)
		dwarf_setalt(d->dwarf, d->alt);
	return r == -ENOMEM ? r : 0;
}

/* Where split units are. Without a descriptor left for it they are missing, no more. */
static int keep_place(struct debuginfo *d)
{
	if (!d->o.path)
		return 0;
	if (d->o.process >= 0) {
		d->process = fcntl(d->o.process, F_DUPFD_CLOEXEC, 3);
		if (d->process < 0)
			return 0;
	}
	d->path = strdup(d->o.path);
	return d->path ? 0 : -ENOMEM;
}

int debuginfo_open(const struct debuginfo_options *o, struct debuginfo **ret)
{
	cleanup(debuginfo_cleanup) struct debuginfo *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	d->o = *o;
	d->deadline = o->deadline;
	d->rss = rss();
	d->known = (struct map)MAP_INIT(sizeof(struct entry_key));
	d->texts = (struct strtab)STRTAB_INIT;
	d->reader = (struct die_reader){ need, d };
	d->process = -1;
	r = keep_place(d);
	if (!r)
		r = dwarfimage_new(o->elf, o->max_bytes, &d->image);
	if (!r)
		r = begin(d->image, &d->elf, &d->dwarf);
	if (!r && o->alt)
		r = begin_alt(d);
	if (!r)
		r = list_units(d);
	if (r)
		return r;
	d->memory = d->units_cap * sizeof(*d->units) + d->ranges.cap * sizeof(struct range);
	*ret = take(d);
	return 0;
}

static void unit_done(struct unit *u)
{
	forget_functions(u);
	free(u->functions);
	free(u->ranges.v);
	free(u->scopes);
	free(u->scoped);
	free(u->paths);
	lineprog_free(u->lines);
	lineprog_free(u->files);
	splitdwarf_free(u->split);
}

void debuginfo_free(struct debuginfo *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->nunits; i++)
		unit_done(&d->units[i]);
	for (size_t i = 0; i < d->stable_cap; i++)
		free(d->stable[i]);
	dwarf_end(d->dwarf);
	dwarf_end(d->alt);
	elf_end(d->elf);
	elf_end(d->alt_elf);
	dwarfimage_free(d->image);
	dwarfimage_free(d->alt_image);
	free(d->path);
	if (d->process >= 0)
		close(d->process);
	map_free(&d->known);
	strtab_free(&d->texts);
	free(d->units);
	free(d->ranges.v);
	free(d->described);
	free(d->stable);
	free(d->frames);
	free(d);
}

uint64_t debuginfo_memory(const struct debuginfo *d)
{
	return dwarfimage_memory(d->image) + (d->alt_image ? dwarfimage_memory(d->alt_image) : 0) +
	       d->memory;
}

uint64_t debuginfo_split_missing(const struct debuginfo *d)
{
	return d->split_missing;
}
