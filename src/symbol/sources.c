/* sources.c - see sources.h. */
#include "symbol/sources.h"

#include <elf.h>

#include "symbol/gopclntab.h"
#include "symbol/minidebug.h"
#include "symbol/plt.h"

static int add_debugfile(struct symtab_builder *b, const struct elf *e,
			 const struct debugfile_where *w)
{
	struct debugfile d;
	int r = debugfile_find(e, w, &d);

	if (r)
		return r;
	r = symtab_builder_add_elf(b, d.elf);
	debugfile_close(&d);
	return r;
}

static int add_minidebug(struct symtab_builder *b, const struct elf *e)
{
	void *image cleanup(freep_cleanup) = NULL;
	struct elf *mini cleanup(elf_cleanup) = NULL;
	int r = minidebug_open(e, &mini, &image);

	return r ? r : symtab_builder_add_elf(b, mini);
}

/* The names of functions that aren't exported: by the first source that has them. */
static int add_own(struct symtab_builder *b, const struct elf *e,
		   const struct debugfile_where *w, enum symbol_source *ret)
{
	enum symbol_source source = SYMBOLS_SYMTAB;
	int r = elf_section_by_type(e, SHT_SYMTAB) ? 0 : -ENOENT;

	if (r) {
		source = SYMBOLS_DEBUGFILE;
		r = add_debugfile(b, e, w);
	}
	if (r && r != -ENOMEM) {
		source = SYMBOLS_MINIDEBUG;
		r = add_minidebug(b, e);
	}
	if (r && r != -ENOMEM) {
		source = SYMBOLS_GO;
		r = gopclntab_add(b, e);
	}
	if (!r)
		*ret = source;
	return r == -ENOMEM ? r : 0;
}

int sources_build(const struct elf *e, const struct debugfile_where *w, struct symtab **ret,
		  enum symbol_source *ret_source)
{
	static const struct debugfile_where nowhere = { .process = -1 };
	struct symtab_limits limits = SYMTAB_LIMITS_DEFAULT;
	struct symtab_builder *b cleanup(symtab_builder_cleanup) = NULL;
	enum symbol_source source = SYMBOLS_NONE;
	int r;

	if (!w)
		w = &nowhere;
	limits.deadline = w->deadline;
	r = symtab_builder_new(e, &limits, &b);
	if (!r)
		r = symtab_builder_add_elf(b, e);
	if (!r && symtab_builder_count(b))
		source = SYMBOLS_DYNSYM;
	if (!r)
		r = add_own(b, e, w, &source);
	if (!r)
		r = plt_add(b, e) == -ENOMEM ? -ENOMEM : 0;
	if (!r)
		r = symtab_builder_finish(take(b), ret);
	if (!r)
		*ret_source = source;
	return r;
}

const char *symbol_source_label(enum symbol_source source)
{
	static const char *const labels[] = {
#define SOURCE_LABEL(constant, label) [constant] = label,
		SYMBOL_SOURCES(SOURCE_LABEL)
#undef SOURCE_LABEL
	};

	return labels[source];
}
