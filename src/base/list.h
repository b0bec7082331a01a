/* list.h - growable arrays of what options collect: texts, numbers, and small structs.
 *
 *	struct str_list l = { 0 };
 *	r = str_list_add(&l, "copied");
 *	str_list_free(&l);
 *
 * All have the same three members, so that array_grow() and the option table serve each of them.
 * Zeroed is empty. Ownership: a list owns its elements.
 */
#ifndef WICK_BASE_LIST_H
#define WICK_BASE_LIST_H

#include "base/base.h"

struct str_list {
	char **v;
	size_t n, cap;
};

struct u32_list {
	uint32_t *v;
	size_t n, cap;
};

/* Copies. 0, -ENOMEM, -E2BIG. */
static inline maybe_unused must_check int str_list_add(struct str_list *l, const char *text)
{
	char *copy;
	int r = array_grow(&l->v, &l->cap, l->n + 1, sizeof(*l->v));

	if (r)
		return r;
	copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	l->v[l->n++] = copy;
	return 0;
}

static inline maybe_unused void str_list_free(struct str_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i]);
	free(l->v);
	*l = (struct str_list){ 0 };
}

#endif
