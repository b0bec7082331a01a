/* symbolizer.c - see symbolizer.h. What is known of a frame is kept with its module, under its file offset
 * or its kernel address; a module under what identifies it: the file's key, or a name for the rest. */
#include "symbol/symbolizer.h"

#include <elf.h>

#include "base/clock.h"
#include "base/map.h"
#include "symbol/answers.h"
#include "symbol/bounds.h"
#include "symbol/debuginfod.h"
#include "symbol/symtab.h"
#include "symbol/vdso.h"

enum table_state {
	TABLES_UNTRIED,
	TABLES_HERE,
	TABLES_DROPPED,		/* they were here; their answers are */
	TABLES_NONE,		/* the file can't be read */
};

struct loaded {			/* a module and what naming needs of it */
	struct module m;
	char *path;		/* m.path of files */
	enum table_state state;
	struct elf *elf;	/* its program headers; of the vDSO all */
	struct symtab *symtab;
	struct bounds *bounds;	/* read when the first address has no name */
	bool bounds_tried;
	enum symbol_source source;
	struct answers answers;
	struct chains chains;	/* lines of the answers */
	uint64_t tables_used, used;	/* round in which tables, or answers, were last asked */
	uint32_t failed_id;	/* under which it could not be opened ... */
	uint64_t failed_round;	/* ... in this round */
	uint32_t id;		/* under which it was opened */
	struct wk_file_key key;	/* of files */
	struct debugfile_await await;
	bool doomed;
};

struct module_key {		/* a file, or (file id 0) the string of a special module */
	struct wk_file_key file;
	uint64_t string;
};

struct symbolizer {
	struct symbolizer_options o;
	struct files *files;
	struct map module_keys;	/* -> slots[] */
	uint32_t *slots;	/* in modules[] */
	size_t slots_cap;
	struct loaded **modules;/* NULL: a free slot */
	size_t modules_cap;
	uint32_t nmodules;
	struct strtab specials;	/* names of special modules: of the kernel's, a few hundred at most */
	char **special_texts;	/* where they stay */
	size_t special_cap;
	struct answers kernel;	/* by address; each names its module */
	struct answers code;	/* by frame word, likewise; until the next trim */
	void *vdso;
	struct lines *lines;	/* NULL: not wanted */
	struct symbol_line *out;/* of the frame at hand, for the caller */
	size_t out_cap;
	uint64_t round;		/* trims so far */
	struct symbolizer_stats stats;
};

static const struct module no_module = { .kind = MODULE_SPECIAL, .path = "", .name = "" };

int symbolizer_new(const struct symbolizer_options *o, struct files *files,
		   struct symbolizer **ret)
{
	struct symbolizer *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->o = *o;
	if (!s->o.bytes)
		s->o.bytes = SYMBOLIZER_BYTES_DEFAULT;
	s->files = files;
	s->module_keys = (struct map)MAP_INIT(sizeof(struct module_key));
	s->specials = (struct strtab)STRTAB_INIT;
	s->kernel = (struct answers)ANSWERS_INIT;
	s->code = (struct answers)ANSWERS_INIT;
	r = o->want_lines ? lines_new(&o->lines, &s->lines) : 0;
	if (r) {
		symbolizer_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

static void drop_tables(struct loaded *l)
{
	symtab_free(take(l->symtab));
	bounds_free(take(l->bounds));
	l->bounds_tried = false;
	l->state = TABLES_DROPPED;
}

static void loaded_free(struct loaded *l)
{
	if (!l)
		return;
	drop_tables(l);
	elf_free(l->elf);
	answers_free(&l->answers);
	chains_free(&l->chains);
	free(l->path);
	free(l);
}

void symbolizer_free(struct symbolizer *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->nmodules; i++)
		loaded_free(s->modules[i]);
	for (size_t i = 0; i < s->special_cap; i++)
		free(s->special_texts[i]);
	free(s->special_texts);
	free(s->modules);
	free(s->slots);
	free(s->vdso);
	free(s->out);
	lines_free(s->lines);
	answers_free(&s->kernel);
	answers_free(&s->code);
	map_free(&s->module_keys);
	strtab_free(&s->specials);
	free(s);
}

/* ---- modules ---- */

static int free_slot(struct symbolizer *s, uint32_t *ret)
{
	uint32_t i = 0;
	int r;

	while (i < s->nmodules && s->modules[i])
		i++;
	r = array_grow(&s->modules, &s->modules_cap, (size_t)i + 1, sizeof(*s->modules));
	if (!r)
		*ret = i;
	return r;
}

static int find_module(struct symbolizer *s, const struct module_key *key, uint32_t *ret,
		       struct loaded **ret_module)
{
	struct loaded *l;
	uint32_t n = map_find(&s->module_keys, key), slot;
	int r;

	if (n != MAP_NONE) {
		*ret = s->slots[n];
		*ret_module = s->modules[*ret];
		return 0;
	}
	r = free_slot(s, &slot);
	if (!r)
		r = array_grow(&s->slots, &s->slots_cap, s->module_keys.n + 1, sizeof(*s->slots));
	l = r ? NULL : calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	r = map_put(&s->module_keys, key, &n, NULL);
	if (r) {
		free(l);
		return r;
	}
	l->m = no_module;
	l->answers = (struct answers)ANSWERS_INIT;
	l->chains = (struct chains)CHAINS_INIT;
	s->slots[n] = *ret = slot;
	s->modules[slot] = *ret_module = l;
	s->nmodules = MAX(s->nmodules, slot + 1);
	return 0;
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* The string of a special module's name, and where it stays. */
static int special_name(struct symbolizer *s, const char *name, uint32_t *ret, const char **ret_text)
{
	size_t old = s->special_cap;
	uint32_t id;
	int r = strtab_puts(&s->specials, name, &id);

	if (!r)
		r = array_grow(&s->special_texts, &s->special_cap, (size_t)id + 1,
			       sizeof(*s->special_texts));
	if (r)
		return r;
	memset(s->special_texts + old, 0, (s->special_cap - old) * sizeof(*s->special_texts));
	if (!s->special_texts[id])
		s->special_texts[id] = strdup(name);
	if (!s->special_texts[id])
		return -ENOMEM;
	*ret = id;
	*ret_text = s->special_texts[id];
	return 0;
}

static int special_module(struct symbolizer *s, enum module_kind kind, const char *name,
			  uint32_t *ret)
{
	struct module_key key = { .string = 0 };
	struct loaded *l;
	const char *text;
	uint32_t id;
	int r = special_name(s, name, &id, &text);

	if (r)
		return r;
	key.string = id;
	r = find_module(s, &key, ret, &l);
	if (r)
		return r;
	l->m.kind = kind;
	l->m.path = l->m.name = text;
	return 0;
}

/* A program rather than a library. PIEs are ET_DYN like libraries; linkers mark them with DF_1_PIE.
 * Those of older linkers ask for an interpreter and have no DT_SONAME (libc.so.6 has both). */
static bool is_program(const struct elf *e)
{
	enum { ENTRIES_MAX = 1024 };
	const struct elf_segment *dyn = elf_segment_by_type(e, PT_DYNAMIC);
	bool interpreted = elf_segment_by_type(e, PT_INTERP) != NULL;
	Elf64_Dyn d;

	if (elf_type(e) == ET_EXEC || !dyn)
		return elf_type(e) == ET_EXEC || interpreted;
	for (uint64_t i = 0; i < MIN(dyn->filesz / sizeof(d), (uint64_t)ENTRIES_MAX); i++) {
		if (elf_read(e, dyn->offset + i * sizeof(d), &d, sizeof(d)) || d.d_tag == DT_NULL)
			break;
		if (d.d_tag == DT_FLAGS_1 && d.d_un.d_val & DF_1_PIE)
			return true;
		if (d.d_tag == DT_SONAME)
			interpreted = false;
	}
	return interpreted;
}

/* What the headers say, for the profile's mapping. */
static void describe_elf(struct module *m, const struct elf *e)
{
	unsigned char id[ELF_BUILD_ID_MAX];
	const struct elf_segment *seg;
	size_t n;

	if (!elf_build_id(e, id, &n))
		elf_build_id_hex(id, n, m->build_id);
	m->executable = is_program(e);
	seg = elf_segments(e, &n);
	for (size_t i = 0; i < n; i++)
		if (seg[i].type == PT_LOAD && seg[i].flags & PF_X) {
			uint64_t skew = seg[i].vaddr & 4095;

			if (skew > seg[i].offset)
				skew = 0;
			m->start = seg[i].vaddr - skew;
			m->offset = seg[i].offset - skew;
			m->limit = seg[i].vaddr + seg[i].memsz;
			break;
		}
}

/* ---- tables ---- */

static size_t tables_bytes(const struct loaded *l)
{
	return (l->symtab ? symtab_bytes(l->symtab) : 0) + (l->bounds ? bounds_bytes(l->bounds) : 0);
}

static size_t kept_bytes(const struct loaded *l)
{
	return sizeof(*l) + (l->elf ? elf_bytes(l->elf) : 0) + answers_bytes(&l->answers) +
	       chains_bytes(&l->chains);
}

/* Frees tables of the files asked about least lately until all fit into `bytes` and hold few enough
 * descriptors; not those of `keep`. */
static void limit_tables(struct symbolizer *s, uint64_t bytes, const struct loaded *keep)
{
	for (;;) {
		struct loaded *oldest = NULL;
		uint64_t sum = 0, fds = 0;

		for (uint32_t i = 0; i < s->nmodules; i++) {
			struct loaded *l = s->modules[i];
			size_t n = l ? tables_bytes(l) : 0;

			sum += n;
			fds += l && l->symtab ? symtab_files(l->symtab) : 0;
			if (n && l != keep && l->m.kind == MODULE_FILE &&
			    (!oldest || l->tables_used < oldest->tables_used))
				oldest = l;
		}
		if ((sum <= bytes && fds <= SYMBOLIZER_FDS_MAX) || !oldest)
			return;
		drop_tables(oldest);
		s->stats.tables_dropped++;
	}
}

/* where: of its debug file. */
static void load_tables(struct symbolizer *s, struct loaded *l, const struct elf *e,
			struct debugfile_where where)
{
	int r;

	where.deadline = clock_monotonic() + SYMBOLIZER_FILE_NS;
	where.await = &l->await;
	l->await.size = 0;
	r = sources_build(e, &where, &l->symtab, &l->source);
	l->m.has_symbols = !r && l->source >= SYMBOLS_SYMTAB;
	l->m.error = r;
	l->m.limited = r ? 0 : symtab_limited(l->symtab);
	l->state = TABLES_HERE;
	l->tables_used = s->round;
	s->stats.loads++;
	limit_tables(s, s->o.bytes, l);
}

/* Reads a file's headers, the first time, and its tables. */
static void load_file(struct symbolizer *s, struct loaded *l, uint32_t id, const struct file *f)
{
	cleanup(fd_cleanup) int fd = -1, process = -1;
	cleanup(elf_cleanup) struct elf *e = NULL;
	bool again = l->state == TABLES_DROPPED;
	int r;

	if (l->failed_id == id && l->failed_round == s->round)
		return;
	fd = files_open(s->files, id);
	r = fd < 0 ? fd : elf_open_fd(fd, &e, NULL);
	if (r) {
		l->m.error = r;
		if (fd >= 0)	/* else another id, or process, may lead to it */
			l->state = TABLES_NONE;
		l->failed_id = id;
		l->failed_round = s->round;
		return;
	}
	if (!again)
		describe_elf(&l->m, e);
	process = f->on_host ? -1 : files_process(s->files, id);
	load_tables(s, l, e, (struct debugfile_where){ .path = f->path, .on_host = f->on_host,
						       .process = process,
						       .servers = s->o.servers });
	l->id = id;
	l->key = f->key;
	elf_detach(e);
	elf_free(l->elf);
	l->elf = take(e);
	s->stats.reloads += again;
}

static int set_path(struct loaded *l, const char *path)
{
	char *copy = strdup(path);	/* f goes when its id gets another file */

	if (!copy)
		return -ENOMEM;
	free(l->path);
	l->path = copy;
	l->m.path = copy;
	l->m.name = last_part(copy);
	return 0;
}

static int file_module(struct symbolizer *s, uint32_t id, uint32_t *ret, struct loaded **ret_module)
{
	const struct file *f = files_get(s->files, id);
	struct module_key key = { .string = 0 };
	struct loaded *l;
	int r;

	if (!f) {	/* its announcement was lost */
		*ret_module = NULL;
		return special_module(s, MODULE_SPECIAL, "[unknown]", ret);
	}
	key.file = f->key;
	r = find_module(s, &key, ret, &l);
	if (r)
		return r;
	l->m.kind = MODULE_FILE;
	if (!l->path || (l->state == TABLES_UNTRIED && !f->open_error))
		r = set_path(l, f->path);
	if (!r && l->state == TABLES_UNTRIED && f->open_error) {
		l->m.error = f->open_error;
	} else if (!r && l->state == TABLES_UNTRIED) {
		chains_free(&l->chains);
		answers_free(&l->answers);	/* of an id under which it could not be opened */
		load_file(s, l, id, f);
	}
	*ret_module = l;
	return r;
}

static int vdso_module(struct symbolizer *s, uint32_t *ret, struct loaded **ret_module)
{
	struct loaded *l;
	int r = special_module(s, MODULE_VDSO, "[vdso]", ret);

	if (r)
		return r;
	*ret_module = l = s->modules[*ret];
	if (l->state != TABLES_UNTRIED)
		return 0;
	l->state = TABLES_NONE;
	l->m.error = vdso_open(&l->elf, &s->vdso);
	if (!l->m.error) {
		describe_elf(&l->m, l->elf);
		load_tables(s, l, l->elf, (struct debugfile_where){ .process = -1 });
	}
	return 0;
}

/* Where the function begins that an address without a name lies in; 0: unknown. */
static uint64_t function_start(struct symbolizer *s, struct loaded *l, uint32_t id, uint64_t address)
{
	cleanup(elf_cleanup) struct elf *e = NULL;
	cleanup(fd_cleanup) int fd = -1;
	uint64_t start = 0;

	if (!l->bounds_tried) {
		l->bounds_tried = true;
		fd = l->m.kind == MODULE_FILE ? files_open(s->files, id) : -1;
		if (fd < 0 || elf_open_fd(fd, &e, NULL))
			e = NULL;
		if (bounds_build(e ? e : l->elf, &l->bounds))
			l->bounds = NULL;
		limit_tables(s, s->o.bytes, l);
	}
	return l->bounds && bounds_lookup(l->bounds, address, &start) ? start : 0;
}

/* ---- frames ---- */

static int open_vmlinux(void *ctx)
{
	return vmlinux_dup(ctx);
}

static int add_kernel_lines(struct symbolizer *s, struct answer *a)
{
	const struct debugfile_where where = { .path = vmlinux_path(s->o.vmlinux), .on_host = true,
					       .process = -1 };
	struct lines_file file = { .number = a->module, .where = &where, .open = open_vmlinux,
				   .ctx = (void *)s->o.vmlinux };
	struct line_chain c;
	uint64_t vaddr;
	int r = vmlinux_address(s->o.vmlinux, a->address, &vaddr) ?
			lines_lookup(s->lines, &file, vaddr, &c) :
			-ENOENT;

	if (r)
		return r == -ENOENT ? 0 : r;
	return chains_add(&s->modules[a->module]->chains, &c, s->o.demangle, &a->lines);
}

static int resolve_kernel(struct symbolizer *s, uint64_t frame, struct answer *a)
{
	char module[128] = "[kernel.kallsyms]";
	struct symbol sym;
	struct kallsym k;
	bool found;
	int r;

	a->address = frame;
	if (frame >> 12 == 0xffffffffff600ULL)	/* fixed address, arch/x86/entry/vsyscall */
		return special_module(s, MODULE_SPECIAL, "[vsyscall]", &a->module);
	if (!s->o.kallsyms)
		return special_module(s, MODULE_KERNEL, "[kernel]", &a->module);
	found = kallsyms_lookup(s->o.kallsyms, frame, &k);
	if (found && k.module)
		snprintf(module, sizeof(module), "[%.100s]", k.module);
	r = special_module(s, MODULE_KERNEL, module, &a->module);
	if (r || !found)
		return r;
	a->function = k.start;
	sym = (struct symbol){ k.name, k.start, k.end - k.start };
	r = answers_name(&s->kernel, &sym, s->o.demangle, &a->name);
	return !r && !k.module && s->lines && s->o.vmlinux ? add_kernel_lines(s, a) : r;
}

struct opener {			/* a file of the sampled ones, for lines.h */
	struct files *files;
	uint32_t id;
	struct debugfile_where where;
};

static int open_sampled(void *ctx)
{
	struct opener *o = ctx;

	if (!o->where.on_host && o->where.process < 0)
		o->where.process = files_process(o->files, o->id);
	o->where.deadline = clock_monotonic() + SYMBOLIZER_FILE_NS;
	return files_open(o->files, o->id);
}

/* Lines and inlined calls of an answer whose symbol is known. An address without a symbol gets its
 * name from here, too. */
static int add_lines(struct symbolizer *s, struct loaded *l, uint32_t id, struct answer *a)
{
	const struct file *f = files_get(s->files, id);
	struct opener opener = { s->files, id, { .path = f ? f->path : NULL,
						 .on_host = f && f->on_host, .process = -1,
						 .servers = s->o.servers } };
	struct lines_file file = { .number = a->module, .where = &opener.where,
				   .open = open_sampled, .ctx = &opener };
	struct line_chain c;
	int r = lines_lookup(s->lines, &file, a->address, &c);

	if (opener.where.process >= 0)
		close(opener.where.process);
	if (r)
		return r == -ENOENT ? 0 : r;
	if (!a->name && c.v[c.n - 1].name) {
		struct symbol sym = { c.v[c.n - 1].name, a->address, 0 };

		r = answers_name(&l->answers, &sym, s->o.demangle, &a->name);
	}
	return r ? r : chains_add(&l->chains, &c, s->o.demangle, &a->lines);
}

static int resolve_offset(struct symbolizer *s, struct loaded *l, uint32_t id, uint64_t offset,
			  struct answer *a)
{
	const struct file *f;
	struct symbol sym;
	int r = 0;

	a->address = offset;
	if (!l->elf || elf_offset_to_vaddr(l->elf, offset, &a->address))
		return 0;
	if (l->state == TABLES_DROPPED) {
		f = files_get(s->files, id);
		if (f)
			load_file(s, l, id, f);
	}
	l->tables_used = s->round;
	if (l->symtab && symtab_lookup(l->symtab, a->address, &sym)) {
		a->function = sym.start;
		r = answers_name(&l->answers, &sym, s->o.demangle, &a->name);
	} else {
		a->function = function_start(s, l, id, a->address);
	}
	if (!r && s->lines && l->m.kind == MODULE_FILE)
		r = add_lines(s, l, id, a);
	return r;
}

static int resolve_file(struct symbolizer *s, uint64_t frame, struct answer *a)
{
	uint32_t id = WK_FRAME_FILE_ID(frame);
	uint64_t offset = WK_FRAME_FILE_OFF(frame);
	const struct answer *known;
	struct loaded *l = NULL;
	int r = id == WK_FILE_VDSO ? vdso_module(s, &a->module, &l) :
				     file_module(s, id, &a->module, &l);

	a->address = offset;
	if (r || !l)
		return r;
	l->used = s->round;
	known = answers_find(&l->answers, offset);
	if (known) {
		*a = *known;
		return 0;
	}
	r = resolve_offset(s, l, id, offset, a);
	return r ? r : answers_add(&l->answers, offset, a, &known);
}

/* Kept by frame word, and only once it is named: its runtime may do that later. */
static int resolve_code(struct symbolizer *s, uint64_t frame, struct answer *a)
{
	const struct answer *known = answers_find(&s->code, frame);
	struct process_symbol code;
	struct symbol sym;
	int r;

	if (known) {
		*a = *known;
		return 0;
	}
	a->address = 0;
	if (!s->o.processes || processes_lookup(s->o.processes, frame, &code))
		return special_module(s, MODULE_ANON, "//anon", &a->module);
	a->address = code.address;
	if (!code.name[0])
		return special_module(s, MODULE_ANON, "//anon", &a->module);
	a->function = code.start;
	sym = (struct symbol){ code.name, frame, 0 };	/* no other symbol has that start */
	r = special_module(s, MODULE_ANON, "[jit]", &a->module);
	if (!r)
		r = answers_name(&s->code, &sym, s->o.demangle, &a->name);
	return r ? r : answers_add(&s->code, frame, a, &known);
}

static int resolve(struct symbolizer *s, uint64_t frame, struct answer *a)
{
	const struct answer *known;
	int r;

	*a = (struct answer){ .address = frame };
	if (WK_FRAME_IS_KERNEL(frame)) {
		known = answers_find(&s->kernel, frame);
		if (known) {
			*a = *known;
			return 0;
		}
		r = resolve_kernel(s, frame, a);
		return r ? r : answers_add(&s->kernel, frame, a, &known);
	}
	if (WK_FRAME_TAG(frame) == WK_FRAME_FILE)
		return resolve_file(s, frame, a);
	if (WK_FRAME_TAG(frame) == WK_FRAME_CODE)
		return resolve_code(s, frame, a);
	if (WK_FRAME_TAG(frame) == WK_FRAME_RAW)
		return special_module(s, MODULE_ANON, "//anon", &a->module);
	a->address = 0;
	return special_module(s, MODULE_SPECIAL, "[unknown]", &a->module);
}

/* An answer's lines in the caller's terms; the outermost is the function, whose name is known. */
static int give_lines(struct symbolizer *s, const struct answer *a, struct symbol_frame *ret)
{
	size_t n = a->name ? a->lines.n : 0;
	int r = array_grow(&s->out, &s->out_cap, n, sizeof(*s->out));

	if (r)
		return r;
	for (size_t i = 0; i < n; i++)
		chains_get(&s->modules[a->module]->chains, a->lines, i, &s->out[i]);
	if (n) {
		s->out[n - 1].name = a->name->text;
		s->out[n - 1].system_name = a->name->system_name;
	}
	ret->lines = s->out;
	ret->nlines = n;
	return 0;
}

int symbolizer_resolve(struct symbolizer *s, uint64_t frame, struct symbol_frame *ret)
{
	struct answer a;
	int r = resolve(s, frame, &a);

	if (r)
		return r;
	*ret = (struct symbol_frame){
		.module = a.module,
		.address = a.address,
		.function = a.function,
		.name = a.name ? a.name->text : NULL,
		.system_name = a.name ? a.name->system_name : NULL,
	};
	return give_lines(s, &a, ret);
}

const struct module *symbolizer_module(const struct symbolizer *s, uint32_t module)
{
	return module < s->nmodules && s->modules[module] ? &s->modules[module]->m : &no_module;
}

uint32_t symbolizer_module_count(const struct symbolizer *s)
{
	return s->nmodules;
}

/* ---- bounds ---- */

static uint64_t answers_sum(const struct symbolizer *s)
{
	uint64_t sum = answers_bytes(&s->kernel) + answers_bytes(&s->code);

	for (uint32_t i = 0; i < s->nmodules; i++)
		sum += s->modules[i] ? kept_bytes(s->modules[i]) : 0;
	return sum;
}

/* Frees the doomed modules. Their keys go by making a new map of the others; without the memory for that
 * all stay. */
static void free_doomed(struct symbolizer *s)
{
	struct map keys = MAP_INIT(sizeof(struct module_key));
	uint32_t n, k = 0;
	int r = 0;

	for (uint32_t i = 0; i < s->module_keys.n && !r; i++)
		if (!s->modules[s->slots[i]]->doomed)
			r = map_put(&keys, map_key(&s->module_keys, i), &n, NULL);
	if (r) {
		map_free(&keys);
		return;
	}
	for (uint32_t i = 0; i < s->module_keys.n; i++) {
		uint32_t slot = s->slots[i];

		if (!s->modules[slot]->doomed) {
			s->slots[k++] = slot;
			continue;
		}
		loaded_free(take(s->modules[slot]));
		if (s->lines)
			lines_forget(s->lines, slot);
		s->stats.files_dropped++;
	}
	map_free(&s->module_keys);
	s->module_keys = keys;
}

static void forget_kernel(struct symbolizer *s)
{
	answers_free(&s->kernel);
	for (uint32_t i = 0; i < s->nmodules; i++)
		if (s->modules[i] && s->modules[i]->m.kind == MODULE_KERNEL)
			chains_free(&s->modules[i]->chains);
}

/* Lets whole files go, those asked about least lately first, until what is left fits into `bytes`. */
static void limit_answers(struct symbolizer *s, uint64_t bytes)
{
	uint64_t sum = answers_sum(s);
	bool some = false;

	while (sum > bytes) {
		struct loaded *oldest = NULL;

		for (uint32_t i = 0; i < s->nmodules; i++) {
			struct loaded *l = s->modules[i];

			if (l && l->m.kind == MODULE_FILE && !l->doomed &&
			    (!oldest || l->used < oldest->used))
				oldest = l;
		}
		if (!oldest)
			break;
		sum -= kept_bytes(oldest);
		oldest->doomed = some = true;
	}
	if (sum > bytes)	/* whatever is left is the kernel's */
		forget_kernel(s);
	if (some)
		free_doomed(s);
}

/* ---- debug files that come later ---- */

static bool has_come(const struct symbolizer *s, const struct debugfile_await *a)
{
	return a->size && !debuginfod_ask(s->o.servers, a->id, a->size);
}

/* Whether there is something new for a file, and it can be read to use it. */
static bool is_improvable(const struct symbolizer *s, uint32_t slot)
{
	const struct loaded *l = s->modules[slot];
	cleanup(fd_cleanup) int fd = -1;
	const struct file *f;

	if (!l || l->m.kind != MODULE_FILE ||
	    (!has_come(s, &l->await) && !(s->lines && has_come(s, lines_await(s->lines, slot)))))
		return false;
	f = files_get(s->files, l->id);
	if (!f || memcmp(&f->key, &l->key, sizeof(l->key)))
		return false;
	fd = files_open(s->files, l->id);
	return fd >= 0;
}

bool symbolizer_improvable(const struct symbolizer *s)
{
	for (uint32_t i = 0; s->o.servers && i < s->nmodules; i++)
		if (is_improvable(s, i))
			return true;
	return false;
}

static void improve(struct symbolizer *s)
{
	for (uint32_t i = 0; s->o.servers && i < s->nmodules; i++) {
		struct loaded *l = s->modules[i];

		if (!is_improvable(s, i))
			continue;
		drop_tables(l);
		answers_free(&l->answers);
		chains_free(&l->chains);
		l->await.size = 0;
		l->state = TABLES_UNTRIED;
		if (s->lines)
			lines_forget(s->lines, i);
		s->stats.improved++;
	}
}

void symbolizer_trim(struct symbolizer *s)
{
	uint64_t kept;

	improve(s);
	s->round++;
	answers_free(&s->code);
	if (s->lines)
		lines_begin(s->lines);
	limit_answers(s, s->o.bytes / 2);
	kept = answers_sum(s);
	limit_tables(s, s->o.bytes - MIN(kept, s->o.bytes), NULL);
}

void symbolizer_set_kallsyms(struct symbolizer *s, const struct kallsyms *k)
{
	forget_kernel(s);
	s->o.kallsyms = k;
}

struct symbolizer_stats symbolizer_stats(const struct symbolizer *s)
{
	struct symbolizer_stats ret = s->stats;

	ret.answers_bytes = answers_sum(s);
	for (uint32_t i = 0; i < s->nmodules; i++) {
		const struct loaded *l = s->modules[i];

		if (!l || l->m.kind != MODULE_FILE)
			continue;
		ret.files++;
		ret.by_source[l->source]++;
		ret.unreadable += l->m.error != 0;
		ret.limited += l->m.limited != 0;
		ret.symtabs_bytes += l->symtab ? symtab_bytes(l->symtab) : 0;
		ret.bounds_bytes += l->bounds ? bounds_bytes(l->bounds) : 0;
	}
	return ret;
}

struct lines_state symbolizer_lines_state(const struct symbolizer *s, uint32_t module)
{
	return s->lines ? lines_state(s->lines, module) : (struct lines_state){ 0 };
}

struct lines_stats symbolizer_lines_stats(const struct symbolizer *s)
{
	return s->lines ? lines_stats(s->lines) : (struct lines_stats){ 0 };
}
