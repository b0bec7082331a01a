/* chains.c - see chains.h. */
#include "symbol/chains.h"

struct chain_frame {
	uint32_t name, system_name, file;	/* texts */
	uint32_t line, column, start_line;
};

/* A mangled name as people write it, worked out once. */
static int readable(struct chains *c, uint32_t mangled, enum demangle_mode mode, uint32_t *ret)
{
	char *text cleanup(freep_cleanup) = NULL;
	uint32_t n = map_find(&c->mangled, &mangled), id = mangled;
	int r;

	if (n != MAP_NONE) {
		*ret = c->readable[n];
		return 0;
	}
	r = array_grow(&c->readable, &c->readable_cap, c->mangled.n + 1, sizeof(*c->readable));
	if (!r && !demangle(strtab_get(&c->texts, mangled), mode, &text))
		r = strtab_puts(&c->texts, text, &id);
	if (!r)
		r = map_put(&c->mangled, &mangled, &n, NULL);
	if (r)
		return r;
	c->readable[n] = *ret = id;
	return 0;
}

static int add_names(struct chains *c, const struct line_frame *f, enum demangle_mode mode,
		     struct chain_frame *ret)
{
	char *text cleanup(freep_cleanup) = NULL;
	int r = strtab_puts(&c->texts, f->name ? f->name : "", &ret->system_name);

	if (r || !*f->scope)
		return r ? r : readable(c, ret->system_name, mode, &ret->name);
	if (asprintf(&text, "%s::%s", f->scope, f->name) < 0)
		return -ENOMEM;
	return strtab_puts(&c->texts, text, &ret->name);
}

int chains_add(struct chains *c, const struct line_chain *chain, enum demangle_mode mode,
	       struct chain_ref *ret)
{
	size_t first = c->n;
	int r = first + chain->n > INT32_MAX ? -E2BIG :
		array_grow(&c->frames, &c->cap, first + chain->n, sizeof(*c->frames));

	for (size_t i = 0; i < chain->n && !r; i++) {
		const struct line_frame *f = &chain->v[i];
		struct chain_frame *to = &c->frames[first + i];

		*to = (struct chain_frame){ .line = f->line, .column = f->column,
					    .start_line = f->start_line };
		r = strtab_puts(&c->texts, f->file, &to->file);
		if (!r)
			r = add_names(c, f, mode, to);
	}
	if (r)
		return r;
	c->n += chain->n;
	*ret = (struct chain_ref){ (uint32_t)first, (uint32_t)chain->n };
	return 0;
}

void chains_get(const struct chains *c, struct chain_ref ref, size_t i, struct symbol_line *ret)
{
	const struct chain_frame *f = &c->frames[ref.first + i];

	*ret = (struct symbol_line){
		.name = strtab_get(&c->texts, f->name),
		.system_name = strtab_get(&c->texts, f->system_name),
		.file = strtab_get(&c->texts, f->file),
		.line = f->line,
		.column = f->column,
		.start_line = f->start_line,
	};
}

size_t chains_bytes(const struct chains *c)
{
	return map_bytes(&c->texts.refs) + c->texts.cap + map_bytes(&c->mangled) +
	       c->readable_cap * sizeof(*c->readable) + c->cap * sizeof(*c->frames);
}

void chains_free(struct chains *c)
{
	strtab_free(&c->texts);
	map_free(&c->mangled);
	free(c->readable);
	free(c->frames);
	*c = (struct chains)CHAINS_INIT;
}
