/* sources.c - see sources.h. */
#include "symbol/sources.h"

#include <elf.h>

#include "symbol/debugfile.h"
#include "symbol/gopclntab.h"
#include "symbol/minidebug.h"
#include "symbol/plt.h"

static int add_debugfile(struct symtab_builder *b, const struct elf *e, const char *path)
{
	struct debugfile d;
	int r = debugfile_open(e, path, DEBUGFILE_DIR, &d);

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
static int add_own(struct symtab_builder *b, const struct elf *e, const char *path,
		   enum symbol_source *ret)
{
	enum symbol_source source = SYMBOLS_SYMTAB;
	int r = elf_section_by_type(e, SHT_SYMTAB) ? 0 : -ENOENT;

	if (r) {
		source = SYMBOLS_DEBUGFILE;
		r = add_debugfile(b, e, path);
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

int sources_build(const struct elf *e, const char *path, struct symtab **ret,
		  enum symbol_source *ret_source)
{
	struct symtab_builder *b cleanup(symtab_builder_cleanup) = NULL;
	enum symbol_source source = SYMBOLS_NONE;
	int r = symtab_builder_new(e, NULL, &b);

	if (!r)
		r = symtab_builder_add_elf(b, e);
	if (!r && symtab_builder_count(b))
		source = SYMBOLS_DYNSYM;
	if (!r)
		r = add_own(b, e, path, &source);
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
