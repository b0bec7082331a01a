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

/* The names of functions that aren't exported. */
static int add_own(struct symtab_builder *b, const struct elf *e, const char *path, bool *ret_own)
{
	int r = elf_section_by_type(e, SHT_SYMTAB) ? 0 : -ENOENT;

	if (r && r != -ENOMEM)
		r = add_debugfile(b, e, path);
	if (r && r != -ENOMEM)
		r = add_minidebug(b, e);
	if (r && r != -ENOMEM)
		r = gopclntab_add(b, e);
	*ret_own = !r;
	return r == -ENOMEM ? r : 0;
}

int sources_build(const struct elf *e, const char *path, struct symtab **ret, bool *ret_own)
{
	struct symtab_builder *b cleanup(symtab_builder_cleanup) = NULL;
	bool own = false;
	int r = symtab_builder_new(e, NULL, &b);

	if (!r)
		r = symtab_builder_add_elf(b, e);
	if (!r)
		r = add_own(b, e, path, &own);
	if (!r)
		r = plt_add(b, e) == -ENOMEM ? -ENOMEM : 0;
	if (!r)
		r = symtab_builder_finish(take(b), ret);
	if (!r)
		*ret_own = own;
	return r;
}
