/* symbolizer.c - see symbolizer.h. A frame's answer is kept under its frame word, a module's under
 * what identifies it (the file's key, or a name for the rest). */
#include "symbol/symbolizer.h"

#include <elf.h>
#include "base/map.h"
#include "symbol/bounds.h"
#include "symbol/sources.h"
#include "symbol/symtab.h"
#include "symbol/vdso.h"

struct loaded {		/* a module and what naming needs of it */
	struct module m;
	struct elf *elf;
	struct symtab *symtab;
	struct bounds *bounds;	/* read when the first address has no name */
	bool tried, bounds_tried;
};

struct answer {
	uint64_t address, function;
	uint32_t module;
	uint32_t name, system_name;	/* strings; MAP_NONE: none */
};

struct module_key {	/* a file, or (file id 0) the string of a special module */
	struct wk_file_key file;
	uint64_t string;
};

struct symbolizer {
	struct symbolizer_options o;
	const struct files *files;
	struct map frames, module_keys;
	struct answer *answers;
	size_t answers_cap;
	struct loaded **modules;
	size_t modules_cap;
	struct strtab strings;	/* ids only: its bytes move */
	struct map system_names;/* string of a mangled name -> ... */
	uint32_t *demangled;	/* ... string of the demangled one */
	size_t demangled_cap;
	char **texts;		/* of each string, stable for callers */
	size_t texts_cap;
	void *vdso;
};

int symbolizer_new(const struct symbolizer_options *o, const struct files *files,
		   struct symbolizer **ret)
{
	struct symbolizer *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->o = *o;
	s->files = files;
	s->frames = (struct map)MAP_INIT(sizeof(uint64_t));
	s->module_keys = (struct map)MAP_INIT(sizeof(struct module_key));
	s->system_names = (struct map)MAP_INIT(sizeof(uint32_t));
	s->strings = (struct strtab)STRTAB_INIT;
	*ret = s;
	return 0;
}

void symbolizer_free(struct symbolizer *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->module_keys.n; i++) {
		symtab_free(s->modules[i]->symtab);
		bounds_free(s->modules[i]->bounds);
		elf_free(s->modules[i]->elf);
		free(s->modules[i]);
	}
	for (size_t i = 0; i < s->texts_cap; i++)
		free(s->texts[i]);
	free(s->texts);
	free(s->modules);
	free(s->answers);
	free(s->demangled);
	free(s->vdso);
	map_free(&s->frames);
	map_free(&s->module_keys);
	map_free(&s->system_names);
	strtab_free(&s->strings);
	free(s);
}

/* ---- strings whose addresses last ---- */

static int intern(struct symbolizer *s, const char *text, uint32_t *ret)
{
	size_t old = s->texts_cap;
	uint32_t id;
	int r = strtab_puts(&s->strings, text, &id);

	if (!r)
		r = array_grow(&s->texts, &s->texts_cap, (size_t)id + 1, sizeof(*s->texts));
	if (r)
		return r;
	memset(s->texts + old, 0, (s->texts_cap - old) * sizeof(*s->texts));
	if (!s->texts[id])
		s->texts[id] = strdup(text);
	if (!s->texts[id])
		return -ENOMEM;
	*ret = id;
	return 0;
}

/* demangle(), also of the stub for a function: "name@plt". */
static int demangle_symbol(const char *name, enum demangle_mode mode, char **ret)
{
	static const char plt[] = "@plt";
	char *base cleanup(freep_cleanup) = NULL, *text cleanup(freep_cleanup) = NULL;
	size_t n = strlen(name), suffix = sizeof(plt) - 1;
	int r;

	if (n <= suffix || strcmp(name + n - suffix, plt))
		return demangle(name, mode, ret);
	base = strndup(name, n - suffix);
	if (!base)
		return -ENOMEM;
	r = demangle(base, mode, &text);
	if (r)
		return r;
	return asprintf(ret, "%s%s", text, plt) < 0 ? -ENOMEM : 0;
}

/* The readable form of a mangled name, worked out once per name. */
static int readable(struct symbolizer *s, uint32_t system_name, uint32_t *ret)
{
	uint32_t n, id = system_name;
	char *text = NULL;
	bool added;
	int r = map_put(&s->system_names, &system_name, &n, &added);

	if (r)
		return r;
	if (!added) {
		*ret = s->demangled[n];
		return 0;
	}
	r = array_grow(&s->demangled, &s->demangled_cap, (size_t)n + 1, sizeof(*s->demangled));
	if (!r && !demangle_symbol(s->texts[system_name], s->o.demangle, &text))
		r = intern(s, text, &id);
	free(text);
	if (r)
		return r;
	s->demangled[n] = *ret = id;
	return 0;
}

/* ---- modules ---- */

static int find_module(struct symbolizer *s, const struct module_key *key, uint32_t *ret,
		       bool *ret_added)
{
	struct loaded *m;
	uint32_t n;
	int r = array_grow(&s->modules, &s->modules_cap, s->module_keys.n + 1, sizeof(*s->modules));

	if (r)
		return r;
	n = map_find(&s->module_keys, key);
	*ret_added = n == MAP_NONE;
	if (*ret_added) {
		m = calloc(1, sizeof(*m));
		if (!m)
			return -ENOMEM;
		r = map_put(&s->module_keys, key, &n, NULL);
		if (r) {
			free(m);
			return r;
		}
		s->modules[n] = m;
		m->m.path = m->m.name = "";
	}
	*ret = n;
	return 0;
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static int special_module(struct symbolizer *s, enum module_kind kind, const char *name,
			  uint32_t *ret)
{
	struct module_key key = { .string = 0 };
	uint32_t id, n;
	bool added;
	int r = intern(s, name, &id);

	if (r)
		return r;
	key.string = id;
	r = find_module(s, &key, &n, &added);
	if (r)
		return r;
	s->modules[n]->m.kind = kind;
	s->modules[n]->m.path = s->texts[id];
	s->modules[n]->m.name = s->texts[id];
	*ret = n;
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
static void describe_elf(struct loaded *l)
{
	unsigned char id[ELF_BUILD_ID_MAX];
	const struct elf_segment *seg;
	size_t n;

	if (!elf_build_id(l->elf, id, &n))
		elf_build_id_hex(id, n, l->m.build_id);
	l->m.executable = is_program(l->elf);
	seg = elf_segments(l->elf, &n);
	for (size_t i = 0; i < n; i++)
		if (seg[i].type == PT_LOAD && seg[i].flags & PF_X) {
			uint64_t skew = seg[i].vaddr & 4095;

			if (skew > seg[i].offset)
				skew = 0;
			l->m.start = seg[i].vaddr - skew;
			l->m.offset = seg[i].offset - skew;
			l->m.limit = seg[i].vaddr + seg[i].memsz;
			break;
		}
}

/* path: on this host, NULL if it isn't there. */
static void load_elf(struct loaded *l, const char *path)
{
	int r;

	describe_elf(l);
	r = sources_build(l->elf, path, &l->symtab, &l->m.has_symbols);
	if (r)
		l->m.error = r;
}

/* 0: unknown. */
static uint64_t function_start(struct loaded *l, uint64_t address)
{
	uint64_t start = 0;

	if (!l->bounds_tried && bounds_build(l->elf, &l->bounds))
		l->bounds = NULL;
	l->bounds_tried = true;
	return l->bounds && bounds_lookup(l->bounds, address, &start) ? start : 0;
}

static int file_module(struct symbolizer *s, uint32_t id, uint32_t *ret)
{
	const struct file *f = files_get(s->files, id);
	struct module_key key = { .string = 0 };
	struct loaded *l;
	uint32_t path;
	bool added;
	int r;

	if (!f)		/* its announcement was lost */
		return special_module(s, MODULE_SPECIAL, "[unknown]", ret);
	key.file = f->key;
	r = find_module(s, &key, ret, &added);
	if (r)
		return r;
	l = s->modules[*ret];
	l->m.kind = MODULE_FILE;
	if (!l->m.path[0] || (f->fd >= 0 && !l->elf)) {
		r = intern(s, f->path, &path);	/* f goes when its id gets another file */
		if (r)
			return r;
		l->m.path = s->texts[path];
		l->m.name = last_part(l->m.path);
	}
	if (!l->elf && f->fd >= 0 && !l->tried) {
		l->tried = true;
		l->m.error = elf_open_fd(f->fd, &l->elf, NULL);
		if (!l->m.error)
			load_elf(l, f->on_host ? f->path : NULL);
	} else if (!l->elf && !l->tried) {
		l->m.error = f->open_error;
	}
	return 0;
}

static int vdso_module(struct symbolizer *s, uint32_t *ret)
{
	struct loaded *l;
	int r = special_module(s, MODULE_VDSO, "[vdso]", ret);

	if (r)
		return r;
	l = s->modules[*ret];
	if (l->tried)
		return 0;
	l->tried = true;
	l->m.error = vdso_open(&l->elf, &s->vdso);
	if (!l->m.error)
		load_elf(l, NULL);
	return 0;
}

/* ---- frames ---- */

static int set_name(struct symbolizer *s, struct answer *a, const char *system_name)
{
	int r = intern(s, system_name, &a->system_name);

	return r ? r : readable(s, a->system_name, &a->name);
}

static int resolve_kernel(struct symbolizer *s, uint64_t frame, struct answer *a)
{
	char module[128] = "[kernel.kallsyms]";
	struct kallsym sym;
	bool found;
	int r;

	a->address = frame;
	if (frame >> 12 == 0xffffffffff600ULL)	/* fixed address, arch/x86/entry/vsyscall */
		return special_module(s, MODULE_SPECIAL, "[vsyscall]", &a->module);
	if (!s->o.kallsyms)
		return special_module(s, MODULE_KERNEL, "[kernel]", &a->module);
	found = kallsyms_lookup(s->o.kallsyms, frame, &sym);
	if (found && sym.module)
		snprintf(module, sizeof(module), "[%.100s]", sym.module);
	r = special_module(s, MODULE_KERNEL, module, &a->module);
	if (r || !found)
		return r;
	a->function = sym.start;
	return set_name(s, a, sym.name);
}

static int resolve_file(struct symbolizer *s, uint64_t frame, struct answer *a)
{
	uint32_t id = WK_FRAME_FILE_ID(frame);
	struct symbol sym;
	struct loaded *l;
	int r = id == WK_FILE_VDSO ? vdso_module(s, &a->module) : file_module(s, id, &a->module);

	if (r)
		return r;
	a->address = WK_FRAME_FILE_OFF(frame);
	l = s->modules[a->module];
	if (!l->elf || elf_offset_to_vaddr(l->elf, a->address, &a->address))
		return 0;
	if (!l->symtab || !symtab_lookup(l->symtab, a->address, &sym)) {
		a->function = function_start(l, a->address);
		return 0;
	}
	a->function = sym.start;
	return set_name(s, a, sym.name);
}

static int resolve_code(struct symbolizer *s, uint64_t frame, struct answer *a)
{
	struct process_symbol sym;
	bool known = s->o.processes && !processes_lookup(s->o.processes, frame, &sym);
	int r;

	a->address = known ? sym.address : 0;
	if (!known || !sym.name[0])
		return special_module(s, MODULE_ANON, "//anon", &a->module);
	a->function = sym.start;
	r = special_module(s, MODULE_ANON, "[jit]", &a->module);
	return r ? r : set_name(s, a, sym.name);
}

static int resolve(struct symbolizer *s, uint64_t frame, struct answer *a)
{
	*a = (struct answer){ .name = MAP_NONE, .system_name = MAP_NONE };
	if (WK_FRAME_IS_KERNEL(frame))
		return resolve_kernel(s, frame, a);
	if (WK_FRAME_TAG(frame) == WK_FRAME_FILE)
		return resolve_file(s, frame, a);
	if (WK_FRAME_TAG(frame) == WK_FRAME_CODE)
		return resolve_code(s, frame, a);
	if (WK_FRAME_TAG(frame) != WK_FRAME_RAW)
		return special_module(s, MODULE_SPECIAL, "[unknown]", &a->module);
	a->address = frame;
	return special_module(s, MODULE_ANON, "//anon", &a->module);
}

/* Its runtime may name it by now. */
static bool is_nameless_code(const struct symbolizer *s, uint64_t frame, uint32_t n)
{
	return !WK_FRAME_IS_KERNEL(frame) && WK_FRAME_TAG(frame) == WK_FRAME_CODE &&
	       s->answers[n].name == MAP_NONE;
}

int symbolizer_resolve(struct symbolizer *s, uint64_t frame, struct symbol_frame *ret)
{
	const struct answer *a;
	struct answer fresh;
	uint32_t n = map_find(&s->frames, &frame);
	int r;

	if (n == MAP_NONE || is_nameless_code(s, frame, n)) {
		r = resolve(s, frame, &fresh);
		if (!r)
			r = array_grow(&s->answers, &s->answers_cap, s->frames.n + 1,
				       sizeof(*s->answers));
		if (!r)
			r = map_put(&s->frames, &frame, &n, NULL);
		if (r)
			return r;
		s->answers[n] = fresh;
	}
	a = &s->answers[n];
	*ret = (struct symbol_frame){
		.module = a->module,
		.address = a->address,
		.function = a->function,
	};
	if (a->name != MAP_NONE) {
		ret->name = s->texts[a->name];
		ret->system_name = s->texts[a->system_name];
	}
	return 0;
}

const struct module *symbolizer_module(const struct symbolizer *s, uint32_t module)
{
	return &s->modules[module]->m;
}

uint32_t symbolizer_module_count(const struct symbolizer *s)
{
	return (uint32_t)s->module_keys.n;
}
