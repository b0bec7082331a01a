/* Tests of symbol/symbolizer.h: frames of this very program, of changed copies of it, of the vDSO
 * and of a small kernel. */
#include <elf.h>
#include <link.h>
#include <sys/wait.h>

#include "file_event.h"
#include "symbol/symbolizer.h"
#include "symbol/symtab.h"
#include "symbol/vdso.h"

/* Functions to be found. */
int symbolizer_test_plain(int x);
__attribute__((noinline)) int symbolizer_test_plain(int x)
{
	return x * 3 + 1;
}

int mangled(int x) __asm__("_ZN4wick4test7mangledILi3EEEii");
__attribute__((noinline)) int mangled(int x)
{
	return x * 5 + 1;
}

static const void *code(int (*f)(int))
{
	return (const void *)(uintptr_t)f;
}

/* What a test works with: files, and a symbolizer of them. */
static struct files *files;
static struct symbolizer *sym;
static char dir[64], path[128];

static void set_up(void)
{
	struct symbolizer_options o = { .demangle = DEMANGLE_SIMPLE };

	snprintf(dir, sizeof(dir), "/tmp/symbolizer_test.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/copy", dir);
	files = NULL;
	sym = NULL;
	ck_assert_int_eq(files_new(10, &files), 0);
	ck_assert_int_eq(symbolizer_new(&o, files, &sym), 0);
}

static void tear_down(void)
{
	symbolizer_free(sym);
	files_free(files);
	unlink(path);
	rmdir(dir);
}

static struct symbol_frame resolve(uint64_t frame)
{
	struct symbol_frame f, again;

	ck_assert_int_eq(symbolizer_resolve(sym, frame, &f), 0);
	ck_assert_int_eq(symbolizer_resolve(sym, frame, &again), 0);
	ck_assert_ptr_eq(f.name, again.name);
	ck_assert_ptr_eq(f.system_name, again.system_name);
	ck_assert_uint_eq(f.module, again.module);
	ck_assert_uint_eq(f.address, again.address);
	ck_assert_uint_lt(f.module, symbolizer_module_count(sym));
	ck_assert_int_eq(f.name == NULL, f.system_name == NULL);
	return f;
}

static void ck_named(const struct symbol_frame *f, const char *name)
{
	ck_assert_ptr_nonnull(f->name);
	ck_assert_str_eq(f->name, name);
}

static const struct module *module_of(const struct symbol_frame *f)
{
	return symbolizer_module(sym, f->module);
}

static struct wk_file_event announce(struct wk_file_event e)
{
	const struct file *f = NULL;

	ck_assert_int_eq(files_announce(files, &e, &f), 0);
	return e;
}

/* Announces our own program under an id; false: neither map_files nor the path lead to it. */
static bool announce_self(uint32_t id, struct wk_file_event *ret)
{
	*ret = announce(file_event(id, own_path(), code(symbolizer_test_plain)));
	return files_get(files, id)->fd >= 0;
}

static int first_object(struct dl_phdr_info *info, size_t size, void *ret)
{
	(void)size;
	*(uintptr_t *)ret = info->dlpi_addr;
	return 1;
}

/* Where ld.so put us. */
static uintptr_t load_bias(void)
{
	uintptr_t bias = 0;

	dl_iterate_phdr(first_object, &bias);
	return bias;
}

static struct elf *open_elf(const char *file, int *ret_fd)
{
	struct elf *e = NULL;

	*ret_fd = open(file, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(*ret_fd, 0);
	ck_assert_int_eq(elf_open_fd(*ret_fd, &e, NULL), 0);
	return e;
}

/* ---- files ---- */

START_TEST(own_functions)
{
	struct wk_file_event e;
	struct symbol_frame f, g;

	if (!announce_self(2, &e))
		return;
	f = resolve(event_frame(&e, code(symbolizer_test_plain)));
	ck_named(&f, "symbolizer_test_plain");
	ck_assert_str_eq(f.system_name, "symbolizer_test_plain");
	ck_assert_uint_eq(f.address, (uintptr_t)symbolizer_test_plain - load_bias());
	f = resolve(event_frame(&e, (const char *)code(symbolizer_test_plain) + 1));
	ck_named(&f, "symbolizer_test_plain");
	ck_assert_uint_eq(f.address, (uintptr_t)symbolizer_test_plain - load_bias() + 1);
	ck_assert_uint_eq(f.function, f.address - 1);
	g = resolve(event_frame(&e, code(mangled)));
	ck_named(&g, "wick::test::mangled");
	ck_assert_str_eq(g.system_name, "_ZN4wick4test7mangledILi3EEEii");
	ck_assert_uint_eq(f.module, g.module);
	ck_assert_uint_eq(symbolizer_module_count(sym), 1);
}
END_TEST

START_TEST(demangling_as_asked)
{
	struct symbolizer_options o = { .demangle = DEMANGLE_NONE };
	struct wk_file_event e;
	struct symbol_frame f;

	if (!announce_self(2, &e))
		return;
	symbolizer_free(take(sym));
	ck_assert_int_eq(symbolizer_new(&o, files, &sym), 0);
	f = resolve(event_frame(&e, code(mangled)));
	ck_named(&f, "_ZN4wick4test7mangledILi3EEEii");
	symbolizer_free(take(sym));
	o.demangle = DEMANGLE_FULL;
	ck_assert_int_eq(symbolizer_new(&o, files, &sym), 0);
	f = resolve(event_frame(&e, code(mangled)));
	ck_named(&f, "int wick::test::mangled<3>(int)");
	ck_assert_str_eq(f.system_name, "_ZN4wick4test7mangledILi3EEEii");
}
END_TEST

/* Outside of every symbol there is no name; outside of every segment not even an ELF address. */
START_TEST(between_functions)
{
	struct wk_file_event e;
	struct symbol_frame f;

	if (!announce_self(2, &e))
		return;
	f = resolve(WK_FRAME_MAKE_FILE(2, 0));		/* the ELF header */
	ck_assert_ptr_null(f.name);
	f = resolve(WK_FRAME_MAKE_FILE(2, WK_FILE_OFF_MAX));
	ck_assert_ptr_null(f.name);
	ck_assert_uint_eq(f.address, WK_FILE_OFF_MAX);
	ck_assert_str_eq(module_of(&f)->path, own_path());
}
END_TEST

/* Each function by its first and last byte, and what follows the last byte isn't it. */
START_TEST(bounds_honoured)
{
	struct symtab *t cleanup(symtab_cleanup) = NULL;
	struct elf *elf cleanup(elf_cleanup) = NULL;
	int fd cleanup(fd_cleanup) = -1;
	struct wk_file_event e;

	if (!announce_self(2, &e))
		return;
	elf = open_elf(own_path(), &fd);
	ck_assert_int_eq(symtab_build(elf, NULL, &t), 0);
	ck_assert_uint_gt(symtab_count(t), 50);
	for (size_t i = 0; i < symtab_count(t); i += 1 + symtab_count(t) / 500) {
		struct symbol s, other;
		struct symbol_frame f;
		uint64_t off;

		symtab_get(t, i, &s);
		if (elf_vaddr_to_offset(elf, s.start, &off))
			continue;
		f = resolve(WK_FRAME_MAKE_FILE(2, off));
		ck_assert_uint_eq(f.address, s.start);
		ck_assert_uint_eq(f.function, s.start);
		ck_assert_ptr_nonnull(f.name);
		f = resolve(WK_FRAME_MAKE_FILE(2, off + s.size));
		if (symtab_lookup(t, s.start + s.size, &other))
			ck_assert_str_eq(f.system_name, other.name);
		else	/* stubs have their names from elsewhere */
			ck_assert(!f.name || strstr(f.name, "@plt"));
	}
}
END_TEST

START_TEST(module_of_a_program)
{
	unsigned char id[ELF_BUILD_ID_MAX];
	char hex[ELF_BUILD_ID_HEX] = "";
	struct elf *elf cleanup(elf_cleanup) = NULL;
	int fd cleanup(fd_cleanup) = -1;
	const struct module *m;
	struct symbol_frame f;
	struct wk_file_event e;
	uint64_t vaddr;
	size_t n;

	if (!announce_self(2, &e))
		return;
	f = resolve(event_frame(&e, code(symbolizer_test_plain)));
	m = module_of(&f);
	ck_assert_int_eq(m->kind, MODULE_FILE);
	ck_assert_str_eq(m->path, own_path());
	ck_assert_str_eq(m->name, strrchr(own_path(), '/') + 1);
	ck_assert_int_eq(m->error, 0);
	ck_assert(m->executable && m->has_symbols);
	ck_assert(m->start <= f.address && f.address < m->limit);
	ck_assert_uint_eq(m->offset % 4096, 0);
	elf = open_elf(own_path(), &fd);
	if (!elf_build_id(elf, id, &n))
		elf_build_id_hex(id, n, hex);
	ck_assert_str_eq(m->build_id, hex);
	ck_assert_int_eq(elf_offset_to_vaddr(elf, m->offset, &vaddr), 0);
	ck_assert_uint_eq(vaddr, m->start);
}
END_TEST

/* The loader is ET_DYN without an interpreter; libc.so.6 has one and is a library all the same. */
static int count_libraries(struct dl_phdr_info *info, size_t size, void *ret)
{
	uint32_t *n = ret, id = 10 + *n;
	struct wk_file_event e;
	struct symbol_frame f;
	char real[4096];

	(void)size;
	if (!strstr(info->dlpi_name, "/libc.so.6") && !strstr(info->dlpi_name, "/ld-linux"))
		return 0;
	ck_assert_ptr_nonnull(realpath(info->dlpi_name, real));
	e = announce(file_event(id, real, info->dlpi_phdr));
	if (files_get(files, id)->fd < 0)
		return 0;
	f = resolve(event_frame(&e, info->dlpi_phdr));
	ck_assert_int_eq(module_of(&f)->error, 0);
	ck_assert_msg(!module_of(&f)->executable, "%s", real);
	++*n;
	return 0;
}

START_TEST(libraries_are_no_programs)
{
	uint32_t n = 0;

	dl_iterate_phdr(count_libraries, &n);
	ck_assert_uint_le(n, 2);
}
END_TEST

/* A copy without section headers: only what PT_DYNAMIC exports has names. */
START_TEST(stripped)
{
	static const unsigned char zeros[8];
	struct wk_file_event self;
	struct symbol_frame f, mine;
	void *map;
	int fd;

	if (!announce_self(2, &self))
		return;
	copy_file(own_path(), path);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, zeros, 8, offsetof(Elf64_Ehdr, e_shoff)), 8);
	ck_assert_int_eq(pwrite(fd, zeros, 4, offsetof(Elf64_Ehdr, e_shnum)), 4);
	close(fd);
	map = map_file(path);
	announce(file_event(3, path, map));
	if (files_get(files, 3)->fd < 0)
		return;
	mine = resolve(event_frame(&self, code(symbolizer_test_plain)));
	f = resolve(WK_FRAME_MAKE_FILE(3, WK_FRAME_FILE_OFF(event_frame(
						  &self, code(symbolizer_test_plain)))));
	ck_assert_ptr_null(f.name);
	ck_assert_uint_eq(f.address, mine.address);
	ck_assert(!f.function || f.function == mine.function);	/* by .eh_frame */
	ck_assert_uint_ne(f.module, mine.module);
	ck_assert_str_eq(module_of(&f)->path, path);
	ck_assert_int_eq(module_of(&f)->error, 0);
	ck_assert(!module_of(&f)->has_symbols && module_of(&f)->executable);
	ck_assert_str_eq(module_of(&f)->build_id, module_of(&mine)->build_id);
	ck_assert_uint_eq(module_of(&f)->start, module_of(&mine)->start);
	munmap(map, 4096);
}
END_TEST

START_TEST(not_elf)
{
	struct symbol_frame f;
	struct wk_file_event e;
	void *map;

	copy_file("/proc/self/cmdline", path);
	map = map_file(path);
	e = announce(file_event(2, path, map));
	f = resolve(WK_FRAME_MAKE_FILE(2, 0x123));
	ck_assert_ptr_null(f.name);
	ck_assert_uint_eq(f.address, 0x123);
	ck_assert_int_eq(module_of(&f)->kind, MODULE_FILE);
	ck_assert_str_eq(module_of(&f)->name, "copy");
	ck_assert_int_lt(module_of(&f)->error, 0);
	if (files_get(files, e.id)->fd >= 0)
		ck_assert_int_eq(module_of(&f)->error, -ENOEXEC);
	ck_assert_str_eq(module_of(&f)->build_id, "");
	ck_assert_uint_eq(module_of(&f)->limit, 0);
	munmap(map, 4096);
}
END_TEST

/* Two ids of one file are one module, even when it could be opened only the second time. */
START_TEST(announced_twice)
{
	struct wk_file_event first = file_event(2, own_path(), code(symbolizer_test_plain)), e;
	struct symbol_frame f, g;

	first.pid = first.tid = first.path_len = 0;
	first = announce(first);
	ck_assert_int_lt(files_get(files, 2)->fd, 0);
	f = resolve(event_frame(&first, code(symbolizer_test_plain)));
	ck_assert_ptr_null(f.name);
	ck_assert_int_eq(module_of(&f)->error, files_get(files, 2)->open_error);
	ck_assert_str_eq(module_of(&f)->path, "[unknown]");
	if (!announce_self(3, &e))
		return;
	g = resolve(event_frame(&e, code(symbolizer_test_plain)));
	ck_named(&g, "symbolizer_test_plain");
	ck_assert_uint_eq(g.module, f.module);
	ck_assert_int_eq(module_of(&f)->error, 0);
	ck_assert_str_eq(module_of(&f)->path, own_path());
	f = resolve(event_frame(&first, code(mangled)));	/* not asked for before */
	ck_named(&f, "wick::test::mangled");
	ck_assert_uint_eq(symbolizer_module_count(sym), 1);
}
END_TEST

/* What was returned outlives the file whose id is announced with another one. */
START_TEST(id_used_again)
{
	struct wk_file_event e, other;
	struct symbol_frame f;
	void *map;

	if (!announce_self(2, &e))
		return;
	f = resolve(event_frame(&e, code(symbolizer_test_plain)));
	copy_file("/proc/self/cmdline", path);
	map = map_file(path);
	other = announce(file_event(2, path, map));
	ck_assert_uint_eq(other.id, 2);
	ck_assert_str_eq(module_of(&f)->path, own_path());
	ck_assert_str_eq(f.name, "symbolizer_test_plain");
	munmap(map, 4096);
}
END_TEST

START_TEST(unknown_files)
{
	static const uint32_t ids[] = { WK_FILE_NONE, WK_FILE_FIRST, 1000, WK_FILE_ID_MAX };
	struct symbol_frame f;

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		f = resolve(WK_FRAME_MAKE_FILE(ids[i], 0x1234ull));
		ck_assert_ptr_null(f.name);
		ck_assert_int_eq(module_of(&f)->kind, MODULE_SPECIAL);
		ck_assert_str_eq(module_of(&f)->path, "[unknown]");
	}
	ck_assert_uint_eq(symbolizer_module_count(sym), 1);
}
END_TEST

/* ---- the rest ---- */

START_TEST(vdso)
{
	struct symtab *t cleanup(symtab_cleanup) = NULL;
	struct elf *elf cleanup(elf_cleanup) = NULL;
	cleanup(freep_cleanup) void *image = NULL;
	struct symbol_frame f;
	struct symbol s;
	uint64_t off;
	int r = vdso_open(&elf, &image);

	if (r == -ENOENT)
		return;		/* vdso=0 */
	ck_assert_int_eq(r, 0);
	ck_assert_int_eq(symtab_build(elf, NULL, &t), 0);
	ck_assert_uint_gt(symtab_count(t), 0);
	for (size_t i = 0; i < symtab_count(t); i++) {
		symtab_get(t, i, &s);
		ck_assert_int_eq(elf_vaddr_to_offset(elf, s.start, &off), 0);
		f = resolve(WK_FRAME_MAKE_FILE(WK_FILE_VDSO, off));
		ck_named(&f, s.name);
		ck_assert_uint_eq(f.address, s.start);
	}
	ck_assert_int_eq(module_of(&f)->kind, MODULE_VDSO);
	ck_assert_str_eq(module_of(&f)->path, "[vdso]");
	ck_assert_int_eq(module_of(&f)->error, 0);
	ck_assert(!module_of(&f)->executable);
	ck_assert_uint_eq(symbolizer_module_count(sym), 1);
}
END_TEST

static const char kernel_text[] = "ffffffff81000000 T _stext\n"
				  "ffffffff81000100 T do_one_thing\n"
				  "ffffffff81000200 t do_another\n"
				  "ffffffff81001000 T _etext\n"
				  "ffffffffc0000000 t a_first\t[mod_a]\n"
				  "ffffffffc0000100 t a_last\t[mod_a]\n";

START_TEST(kernel)
{
	struct kallsyms *k cleanup(kallsyms_cleanup) = NULL;
	struct symbolizer_options o = { .demangle = DEMANGLE_SIMPLE };
	struct symbol_frame f;

	ck_assert_int_eq(kallsyms_parse(kernel_text, strlen(kernel_text), NULL, &k, NULL), 0);
	o.kallsyms = k;
	symbolizer_free(take(sym));
	ck_assert_int_eq(symbolizer_new(&o, files, &sym), 0);
	f = resolve(0xffffffff81000123);
	ck_named(&f, "do_one_thing");
	ck_assert_uint_eq(f.address, 0xffffffff81000123);
	ck_assert_uint_eq(f.function, 0xffffffff81000100);
	ck_assert_int_eq(module_of(&f)->kind, MODULE_KERNEL);
	ck_assert_str_eq(module_of(&f)->path, "[kernel.kallsyms]");
	f = resolve(0xffffffffc0000080);
	ck_named(&f, "a_first");
	ck_assert_int_eq(module_of(&f)->kind, MODULE_KERNEL);
	ck_assert_str_eq(module_of(&f)->path, "[mod_a]");
	f = resolve(0xffffffff90000000);	/* nobody's */
	ck_assert_ptr_null(f.name);
	ck_assert_str_eq(module_of(&f)->path, "[kernel.kallsyms]");
	f = resolve(0xffffffffff600400);
	ck_assert_ptr_null(f.name);
	ck_assert_str_eq(module_of(&f)->path, "[vsyscall]");
	ck_assert_uint_eq(symbolizer_module_count(sym), 3);
	symbolizer_free(take(sym));		/* before k */
}
END_TEST

/* The corpus' vmlinux (lines_corpus.h), running 512 MiB from where it was linked. */
static struct vmlinux *corpus_vmlinux(const struct kallsyms *k)
{
	struct {
		Elf64_Nhdr h;
		char name[4], id[20];
	} note = { { 4, 20, NT_GNU_BUILD_ID }, "GNU", "" };
	struct vmlinux *v = NULL;
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	for (size_t i = 0; i < sizeof(note.id); i++)
		note.id[i] = (char)(i + 1);
	ck_assert_int_eq(write(fd, &note, sizeof(note)), sizeof(note));
	close(fd);
	ck_assert_int_eq(vmlinux_open("tests/fuzz/corpus/lines/vmlinux", path, k, &v, NULL), 0);
	return v;
}

/* Addresses of the kernel's h in which f was inlined by g. */
static unsigned int inlined(void)
{
	unsigned int n = 0;

	for (uint64_t at = 0xffffffffa1000010; at < 0xffffffffa1000040; at++) {
		struct symbol_frame f = resolve(at);

		ck_named(&f, "h_as_kallsyms_has_it");
		ck_assert_str_eq(module_of(&f)->path, "[kernel.kallsyms]");
		if (f.nlines < 3 || strcmp(f.lines[0].name, "f"))
			continue;
		ck_assert_uint_eq(f.lines[0].line, 1);
		ck_assert_str_eq(f.lines[1].name, "g");
		ck_assert_uint_eq(f.lines[1].line, 2);
		ck_assert_uint_eq(f.lines[2].line, 5);
		ck_assert_str_eq(f.lines[2].file, "/src/a.c");
		ck_assert_str_eq(f.lines[f.nlines - 1].name, "h_as_kallsyms_has_it");
		n++;
	}
	return n;
}

START_TEST(kernel_lines)
{
	static const char text[] = "ffffffffa1000000 T _stext\nffffffffa1000010 T h_as_kallsyms_has_it\n"
				   "ffffffffa1000040 T x\nffffffffa1001000 T _etext\n"
				   "ffffffffc0000000 t m\t[mod]\n";
	static const char *const marks[] = { "_stext", NULL };
	struct kallsyms *k cleanup(kallsyms_cleanup) = NULL;
	cleanup(vmlinux_cleanup) struct vmlinux *v = NULL;
	struct symbolizer_options o = { .demangle = DEMANGLE_SIMPLE, .want_lines = true,
					.lines = LINES_OPTIONS_DEFAULT };
	struct symbol_frame f;
	unsigned int n;

	ck_assert_int_eq(kallsyms_parse(text, strlen(text), marks, &k, NULL), 0);
	o.kallsyms = k;
	o.vmlinux = v = corpus_vmlinux(k);
	symbolizer_free(take(sym));
	ck_assert_int_eq(symbolizer_new(&o, files, &sym), 0);
	n = inlined();
	ck_assert_uint_gt(n, 10);
	f = resolve(0xffffffffc0000010);	/* a module's own file is another */
	ck_named(&f, "m");
	ck_assert_uint_eq(f.nlines, 0);
	symbolizer_trim(sym);
	ck_assert_uint_eq(inlined(), n);
	symbolizer_set_kallsyms(sym, k);	/* all is forgotten */
	ck_assert_uint_eq(inlined(), n);
	symbolizer_free(take(sym));		/* before v and k */
}
END_TEST

START_TEST(kernel_without_names)
{
	struct symbol_frame f = resolve(0xffffffff81000123);

	ck_assert_ptr_null(f.name);
	ck_assert_uint_eq(f.address, 0xffffffff81000123);
	ck_assert_int_eq(module_of(&f)->kind, MODULE_KERNEL);
	ck_assert_str_eq(module_of(&f)->path, "[kernel]");
}
END_TEST

START_TEST(other_frames)
{
	struct symbol_frame f = resolve(0x7f0012345678);

	ck_assert_ptr_null(f.name);
	ck_assert_uint_eq(f.address, 0x7f0012345678);
	ck_assert_uint_eq(f.function, 0);
	ck_assert_int_eq(module_of(&f)->kind, MODULE_ANON);
	ck_assert_str_eq(module_of(&f)->path, "//anon");
	f = resolve(0);
	ck_assert_int_eq(module_of(&f)->kind, MODULE_ANON);
	f = resolve(WK_FRAME_INTERP << WK_FRAME_TAG_SHIFT | 5);
	ck_assert_ptr_null(f.name);
	ck_assert_int_eq(module_of(&f)->kind, MODULE_SPECIAL);
	ck_assert_str_eq(module_of(&f)->path, "[unknown]");
	ck_assert_uint_eq(symbolizer_module_count(sym), 2);
}
END_TEST

/* Texts stay where they are while thousands of others are added. */
START_TEST(texts_stay)
{
	struct wk_file_event e;
	struct symbol_frame f;
	const char *module_path;

	if (!announce_self(2, &e))
		return;
	f = resolve(event_frame(&e, code(mangled)));
	module_path = module_of(&f)->path;
	for (uint64_t off = 0; off < 20000; off++) {
		struct symbol_frame g;
		uint64_t frame = event_frame(&e, code(symbolizer_test_plain)) + off - 10000;

		ck_assert_int_eq(symbolizer_resolve(sym, frame, &g), 0);
	}
	ck_assert_str_eq(f.name, "wick::test::mangled");
	ck_assert_str_eq(f.system_name, "_ZN4wick4test7mangledILi3EEEii");
	ck_assert_ptr_eq(module_path, module_of(&f)->path);
	ck_assert_str_eq(module_path, own_path());
}
END_TEST

/* ---- the budget ---- */

static void new_symbolizer(uint64_t bytes)
{
	struct symbolizer_options o = { .demangle = DEMANGLE_SIMPLE, .bytes = bytes };

	symbolizer_free(take(sym));
	ck_assert_int_eq(symbolizer_new(&o, files, &sym), 0);
}

/* A copy of our program with other bytes at its end: another file of the same code. */
static void announce_copy(uint32_t id, struct wk_file_event *ret, void **ret_map)
{
	unlink(path);
	copy_file(own_path(), path);
	*ret_map = map_file(path);
	*ret = announce(file_event(id, path, *ret_map));
}

START_TEST(answers_survive_their_tables)
{
	struct wk_file_event e, copy;
	struct symbol_frame f;
	struct symbolizer_stats st;
	uint64_t plain, other;
	void *map;

	new_symbolizer(1);	/* any table is too large; the one at hand stays all the same */
	if (!announce_self(2, &e))
		return;
	plain = event_frame(&e, code(symbolizer_test_plain));
	other = event_frame(&e, code(mangled));
	f = resolve(plain);
	ck_named(&f, "symbolizer_test_plain");
	announce_copy(3, &copy, &map);
	resolve(WK_FRAME_MAKE_FILE(3, WK_FRAME_FILE_OFF(plain)));
	st = symbolizer_stats(sym);
	ck_assert_uint_eq(st.files, 2);
	ck_assert_uint_eq(st.loads, 2);
	ck_assert_uint_eq(st.tables_dropped, 1);
	ck_assert_uint_gt(st.symtabs_bytes, 0);
	ck_assert_str_eq(f.name, "symbolizer_test_plain");
	f = resolve(plain);	/* known */
	ck_named(&f, "symbolizer_test_plain");
	ck_assert_uint_eq(symbolizer_stats(sym).reloads, 0);
	f = resolve(other);	/* not known: its table is read again */
	ck_named(&f, "wick::test::mangled");
	ck_assert_uint_eq(symbolizer_stats(sym).reloads, 1);
	ck_assert_int_eq(module_of(&f)->error, 0);
	munmap(map, 4096);
}
END_TEST

START_TEST(trim_lets_the_least_used_go)
{
	struct symbolizer_stats st;
	struct wk_file_event e, copy;
	struct symbol_frame f, g;
	uint64_t plain, copied;
	void *map;

	if (!announce_self(2, &e))
		return;
	plain = event_frame(&e, code(symbolizer_test_plain));
	copied = WK_FRAME_MAKE_FILE(3, WK_FRAME_FILE_OFF(plain));
	announce_copy(3, &copy, &map);
	f = resolve(plain);
	g = resolve(copied);
	st = symbolizer_stats(sym);
	/* room for the answers of one file, not of two */
	new_symbolizer(st.answers_bytes * 2 - 1);
	f = resolve(plain);
	g = resolve(copied);
	ck_assert_uint_ne(f.module, g.module);
	symbolizer_trim(sym);
	g = resolve(copied);
	symbolizer_trim(sym);
	st = symbolizer_stats(sym);
	ck_assert_uint_eq(st.files, 1);
	ck_assert_uint_eq(st.files_dropped, 1);
	g = resolve(copied);	/* whichever went: both have names again */
	ck_named(&g, "symbolizer_test_plain");
	f = resolve(plain);
	ck_named(&f, "symbolizer_test_plain");
	ck_assert_uint_ne(f.module, g.module);
	ck_assert_str_eq(module_of(&f)->path, own_path());
	ck_assert_str_eq(module_of(&g)->path, path);
	ck_assert_str_eq(symbolizer_module(sym, 1000)->path, "");
	munmap(map, 4096);
}
END_TEST

/* Under a budget that holds nothing, memory doesn't grow with the files that were seen. */
START_TEST(many_files_bounded)
{
	uint64_t most = 0;
	struct wk_file_event e;
	void *map;

	new_symbolizer(64 << 10);
	if (!announce_self(2, &e))
		return;
	for (uint32_t i = 0; i < 12; i++) {
		struct symbolizer_stats st;
		struct wk_file_event copy;

		announce_copy(3 + i, &copy, &map);
		for (uint64_t off = 0; off < 200; off++) {
			struct symbol_frame f;
			uint64_t at = WK_FRAME_FILE_OFF(event_frame(&e, code(mangled)));

			f = resolve(WK_FRAME_MAKE_FILE(3 + i, at - off));
			ck_assert_int_eq(module_of(&f)->error, 0);
		}
		munmap(map, 4096);
		symbolizer_trim(sym);
		st = symbolizer_stats(sym);
		ck_assert_uint_le(st.symtabs_bytes + st.bounds_bytes + st.answers_bytes, 64 << 10);
		if (i == 3)
			most = symbolizer_module_count(sym);
		if (i > 3)
			ck_assert_uint_le(symbolizer_module_count(sym), most + 2);
	}
	ck_assert_uint_gt(symbolizer_stats(sym).files_dropped, 5);
}
END_TEST

/* A name that a newer table of the kernel has. */
START_TEST(kernel_names_anew)
{
	struct kallsyms *k cleanup(kallsyms_cleanup) = NULL;
	struct symbol_frame f = resolve(0xffffffff81000123);

	ck_assert_str_eq(module_of(&f)->path, "[kernel]");
	ck_assert_int_eq(kallsyms_parse(kernel_text, strlen(kernel_text), NULL, &k, NULL), 0);
	symbolizer_set_kallsyms(sym, k);
	f = resolve(0xffffffff81000123);
	ck_named(&f, "do_one_thing");
	symbolizer_set_kallsyms(sym, NULL);
	f = resolve(0xffffffff81000123);
	ck_assert_ptr_null(f.name);
}
END_TEST

/* The file was rewritten after its tables went: no names of the other version. */
START_TEST(rewritten_before_a_reload)
{
	struct wk_file_event e, copy;
	struct symbol_frame f;
	uint64_t plain, other;
	void *map;
	struct timespec times[] = { { .tv_nsec = UTIME_OMIT },
				    { .tv_sec = 1000000000, .tv_nsec = 1 } };

	new_symbolizer(1);
	if (!announce_self(2, &e))
		return;
	plain = event_frame(&e, code(symbolizer_test_plain));
	other = WK_FRAME_MAKE_FILE(3, WK_FRAME_FILE_OFF(event_frame(&e, code(mangled))));
	announce_copy(3, &copy, &map);
	resolve(WK_FRAME_MAKE_FILE(3, WK_FRAME_FILE_OFF(plain)));
	resolve(plain);
	ck_assert_uint_eq(symbolizer_stats(sym).tables_dropped, 1);
	files_close_idle(files, UINT64_MAX);
	ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
	f = resolve(other);
	ck_assert_ptr_null(f.name);
	ck_assert_int_eq(module_of(&f)->error, -ESTALE);
	f = resolve(WK_FRAME_MAKE_FILE(3, WK_FRAME_FILE_OFF(plain)));
	ck_named(&f, "symbolizer_test_plain");
	munmap(map, 4096);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("symbolizer");
	TCase *t = tcase_create("symbolizer");
	SRunner *runner;
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, own_functions);
	tcase_add_test(t, demangling_as_asked);
	tcase_add_test(t, between_functions);
	tcase_add_test(t, bounds_honoured);
	tcase_add_test(t, module_of_a_program);
	tcase_add_test(t, libraries_are_no_programs);
	tcase_add_test(t, stripped);
	tcase_add_test(t, not_elf);
	tcase_add_test(t, announced_twice);
	tcase_add_test(t, id_used_again);
	tcase_add_test(t, unknown_files);
	tcase_add_test(t, vdso);
	tcase_add_test(t, kernel);
	tcase_add_test(t, kernel_lines);
	tcase_add_test(t, kernel_without_names);
	tcase_add_test(t, other_frames);
	tcase_add_test(t, texts_stay);
	tcase_add_test(t, answers_survive_their_tables);
	tcase_add_test(t, trim_lets_the_least_used_go);
	tcase_add_test(t, many_files_bounded);
	tcase_add_test(t, kernel_names_anew);
	tcase_add_test(t, rewritten_before_a_reload);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
