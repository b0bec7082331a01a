/* answers.c - see answers.h. */
#include "symbol/answers.h"

const struct answer *answers_find(const struct answers *a, uint64_t key)
{
	uint32_t n = map_find(&a->keys, &key);

	return n == MAP_NONE ? NULL : &a->values[n];
}

int answers_add(struct answers *a, uint64_t key, const struct answer *answer,
		const struct answer **ret)
{
	uint32_t n;
	int r = array_grow(&a->values, &a->values_cap, a->keys.n + 1, sizeof(*a->values));

	if (!r)
		r = map_put(&a->keys, &key, &n, NULL);
	if (r)
		return -ENOMEM;
	a->values[n] = *answer;
	*ret = &a->values[n];
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

static int make_name(struct answers *a, const char *system_name, enum demangle_mode mode,
		     const struct answer_name **ret)
{
	struct answer_name *name = arena_alloc(&a->arena, sizeof(*name));
	char *text cleanup(freep_cleanup) = NULL;

	if (!name)
		return -ENOMEM;
	name->system_name = arena_string(&a->arena, system_name, strlen(system_name));
	name->text = name->system_name;
	if (!demangle_symbol(system_name, mode, &text) && strcmp(text, system_name))
		name->text = arena_string(&a->arena, text, strlen(text));
	if (!name->text)
		return -ENOMEM;
	*ret = name;
	return 0;
}

int answers_name(struct answers *a, const struct symbol *symbol, enum demangle_mode mode,
		 const struct answer_name **ret)
{
	const uint64_t key[2] = { symbol->start, symbol->size };
	const struct answer_name *name = NULL;
	uint32_t n = map_find(&a->functions, key);
	int r;

	if (n != MAP_NONE) {
		*ret = a->names[n];
		return 0;
	}
	r = make_name(a, symbol->name, mode, &name);
	if (!r)
		r = array_grow(&a->names, &a->names_cap, a->functions.n + 1, sizeof(*a->names));
	if (!r)
		r = map_put(&a->functions, key, &n, NULL);
	if (r)
		return -ENOMEM;
	a->names[n] = *ret = name;
	return 0;
}

size_t answers_bytes(const struct answers *a)
{
	return map_bytes(&a->keys) + a->values_cap * sizeof(*a->values) +
	       map_bytes(&a->functions) + a->names_cap * sizeof(*a->names) + a->arena.bytes;
}

void answers_free(struct answers *a)
{
	map_free(&a->keys);
	map_free(&a->functions);
	free(a->values);
	free(a->names);
	arena_free(&a->arena);
	*a = (struct answers)ANSWERS_INIT;
}
