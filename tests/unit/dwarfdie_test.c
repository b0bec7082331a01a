/* Tests of symbol/dwarfdie.h: names, scopes and places of functions of small programs. */
#include "lines_corpus.h"

#include <dwarf.h>

#include "symbol/dwarfdie.h"
#include "symbol/dwarfimage.h"

static int need_nothing(void *ctx, Dwarf_Die *die)
{
	(void)die;
	++*(unsigned int *)ctx;
	return 0;
}

/* Depth first: the entry of that tag and name. */
static bool find(Dwarf_Die *parent, int tag, const char *name, Dwarf_Die *ret)
{
	Dwarf_Die die;
	int more = dwarf_child(parent, &die);

	for (; !more; more = dwarf_siblingof(&die, &die)) {
		const char *its = die_string(&die, DW_AT_name);

		if (dwarf_tag(&die) == tag && (name ? its && !strcmp(its, name) : !its)) {
			*ret = die;
			return true;
		}
		if (find(&die, tag, name, ret))
			return true;
	}
	return false;
}

struct file {
	struct corpus c;
	struct dwarfimage *image;
	Elf *elf;
	Dwarf *dwarf;
	Dwarf_Die unit;
};

static struct file file_open(const char *name)
{
	struct file f = { .c = corpus_open(name) };
	Dwarf_Off next;
	size_t size, header;
	char *bytes;

	ck_assert_int_eq(dwarfimage_new(f.c.e, 1 << 20, &f.image), 0);
	ck_assert_int_eq(dwarfimage_need(f.image, 0, UINT64_MAX), 0);
	bytes = dwarfimage_bytes(f.image, &size);
	elf_version(EV_CURRENT);
	f.elf = elf_memory(bytes, size);
	f.dwarf = dwarf_begin_elf(f.elf, DWARF_C_READ, NULL);
	ck_assert_int_eq(dwarf_nextcu(f.dwarf, 0, &next, &header, NULL, NULL, NULL), 0);
	ck_assert_ptr_nonnull(dwarf_offdie(f.dwarf, header, &f.unit));
	return f;
}

static void file_close(struct file *f)
{
	dwarf_end(f->dwarf);
	elf_end(f->elf);
	dwarfimage_free(f->image);
	corpus_close(&f->c);
}

START_TEST(inlined_calls)
{
	struct file f cleanup(file_close) = file_open("c-5");
	unsigned int asked = 0;
	const struct die_reader r = { need_nothing, &asked };
	struct die_function fn;
	Dwarf_Die call;

	ck_assert(find(&f.unit, DW_TAG_inlined_subroutine, NULL, &call));
	ck_assert(die_has_code(&call));
	die_describe(&r, &call, &fn);	/* its name is behind DW_AT_abstract_origin */
	ck_assert_ptr_nonnull(fn.name);
	ck_assert_ptr_null(fn.linkage);
	ck_assert_uint_gt(asked, 0);
	ck_assert(fn.decl_line >= 1 && fn.decl_line <= 3);
	ck_assert_uint_eq(die_number(&call, DW_AT_call_line) > 0, 1);
	ck_assert_uint_eq(die_number(&call, DW_AT_name), 0);
}
END_TEST

START_TEST(scopes)
{
	struct file f cleanup(file_close) = file_open("cxx-5");
	unsigned int asked = 0;
	const struct die_reader r = { need_nothing, &asked };
	struct die_function fn;
	Dwarf_Die ns, type, go;

	ck_assert(find(&f.unit, DW_TAG_namespace, "ns", &ns));
	ck_assert_str_eq(die_scope_name(&ns), "ns");
	ck_assert(find(&ns, DW_TAG_structure_type, "B<int>", &type));
	ck_assert_str_eq(die_scope_name(&type), "B<int>");
	ck_assert_ptr_null(die_scope_name(&f.unit));
	ck_assert(find(&f.unit, DW_TAG_subprogram, "go", &go));
	die_describe(&r, &go, &fn);
	ck_assert_str_eq(fn.linkage, "_ZN2ns2goEi");
}
END_TEST

START_TEST(languages)
{
	ck_assert(die_language_has_scopes(DW_LANG_C_plus_plus_14));
	ck_assert(die_language_has_scopes(DW_LANG_Rust));
	ck_assert(!die_language_has_scopes(DW_LANG_C99));
	ck_assert(!die_language_has_scopes(0));
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { inlined_calls, scopes, languages };

	return made_run("dwarfdie", tests, ARRAY_SIZE(tests));
}
