/* labels.h - a set of series labels: what tells the profiles of one workload from another's.
 *
 *	struct labels l = LABELS_INIT;
 *	r = labels_set(&l, "service_name", "db");
 *	r = labels_set(&l, "app.kubernetes.io/name", text);	// name becomes app_kubernetes_io_name
 *	labels_get(&l, "service_name") -> "db"
 *	labels_free(&l);
 *
 * Always sorted by name, each name once, and fit for every server that wick pushes to
 * (DESIGN, "Profile identity"): a name is [a-zA-Z_][a-zA-Z0-9_]* and below LABEL_NAME_MAX bytes,
 * every other character has become '_'; a value is valid UTF-8 without control characters and below
 * LABEL_VALUE_MAX bytes, cut at a character's end. Names that begin with "__" are the servers' own
 * and belong to whoever encodes: labels_set turns them into "_".
 *
 * There is always room for LABELS_SERVICE, without which servers make up a name.
 *
 * Ownership: the set copies; pointers it returns are borrowed until the next change. A set that is
 * zeroed is empty. Cost: linear in the labels, of which there are few.
 */
#ifndef WICK_BASE_LABELS_H
#define WICK_BASE_LABELS_H

#include "base/buf.h"

enum {
	LABELS_MAX = 28,	/* besides service_name; servers take 30 and we add __name__ */
	LABEL_NAME_MAX = 1024,	/* bytes, NUL included */
	LABEL_VALUE_MAX = 2048,
};

#define LABELS_SERVICE "service_name"

struct label {
	char *name, *value;
};

struct labels {
	struct label *v;
	size_t n, cap;
};

#define LABELS_INIT { 0 }

/* Adds or replaces. An empty value removes: to the servers, it means no label. 0, -ENOMEM; -E2BIG:
 * there are LABELS_MAX already; -EINVAL: the name is empty. */
int must_check labels_set(struct labels *l, const char *name, const char *value);
/* Adds only if there is no such label yet. */
int must_check labels_default(struct labels *l, const char *name, const char *value);
void labels_remove(struct labels *l, const char *name);
const char *labels_get(const struct labels *l, const char *name);	/* NULL: none */
int must_check labels_copy(const struct labels *from, struct labels *ret);	/* *ret is overwritten */
void labels_free(struct labels *l);
/* <0, 0, >0 by names and values in order. */
int labels_compare(const struct labels *a, const struct labels *b);
/* Appends {a="b",c="d"}, values escaped as Prometheus does: equal texts are equal sets. */
void labels_text(const struct labels *l, struct buf *b);

static inline maybe_unused void labels_cleanup(struct labels *l)
{
	labels_free(l);
}

#endif
