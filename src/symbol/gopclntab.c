/* gopclntab.c - see gopclntab.h. */
#include "symbol/gopclntab.h"

#include "elf/gotab.h"

_Static_assert(GOTAB_NAME_MAX == SYMTAB_NAME_MAX, "a symbol's name is a function's");

int gopclntab_add(struct symtab_builder *b, const struct elf *e)
{
	cleanup(gotab_cleanup) struct gotab *t = NULL;
	struct gotab_func f;
	int r = gotab_open(e, &t);

	if (r)
		return r;
	while (!(r = gotab_next(t, &f))) {
		const char *name;
		size_t n;

		r = gotab_name(t, &f, &name, &n);
		if (!r)
			r = symtab_builder_add(b, name, n, f.start, f.end - f.start, SYMTAB_LOCAL);
		else if (r == -ENOENT)	/* too long */
			r = 0;
		if (r)
			return r;
	}
	return r == -ENOENT ? 0 : r;
}
