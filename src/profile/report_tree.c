/* report_tree.c - the call tree of report.h.
 *
 * A node is its parent and a row; a sample adds its value to each node on its path. Then the nodes
 * are sorted by parent and weight, so that the children of a node stand together, and the tree is
 * walked with a stack of our own: hostile profiles are as deep as they like. */
#include "profile/report_frames.h"

#include "profile/unit.h"

struct node_key {
	uint32_t parent, row;	/* node numbers count from 1; 0 is the root */
};

struct node {
	int64_t self, total;
	uint32_t parent, row;
	uint32_t id;
};

struct tree {
	const struct report *r;
	struct map keys;
	struct node *nodes;	/* by number at first, then by (parent, weight) */
	uint32_t *first;	/* of each node's children in nodes; [id + 1] is the end */
	size_t cap;
};

static void tree_release(struct tree *t)
{
	map_free(&t->keys);
	free(t->nodes);
	free(t->first);
}

static int step_down(struct tree *t, uint32_t parent, uint32_t row, int64_t value, uint32_t *ret)
{
	const struct node_key key = { parent, row };
	uint32_t n;
	bool added;
	int r = map_put(&t->keys, &key, &n, &added);

	if (!r && added)
		r = array_grow(&t->nodes, &t->cap, t->keys.n, sizeof(*t->nodes));
	if (r)
		return r;
	if (added)
		t->nodes[n] = (struct node){ .parent = parent, .row = row, .id = n + 1 };
	t->nodes[n].total = profile_add(t->nodes[n].total, value);
	*ret = n + 1;
	return 0;
}

static int add_sample(struct tree *t, uint32_t n)
{
	const struct report *rep = t->r;
	const int64_t value = profile_values(rep->p, n)[rep->type];
	uint32_t at = 0, before = 0;
	int r = 0;

	for (size_t i = profile_depth(rep->p, n); !r && i-- > 0;) {
		const uint32_t loc = profile_frame(rep->p, n, i);

		for (uint32_t f = rep->first[loc + 1]; !r && f-- > rep->first[loc];) {
			/* A module calling itself is no news; a function is. */
			if (rep->o->by && !strcmp(rep->o->by, "module") &&
			    rep->frames[f] == before)
				continue;
			before = rep->frames[f];
			r = step_down(t, at, before, value, &at);
		}
	}
	if (!r && at)
		t->nodes[at - 1].self = profile_add(t->nodes[at - 1].self, value);
	return r;
}

static int by_parent_and_weight(const void *pa, const void *pb)
{
	const struct node *a = pa, *b = pb;

	if (a->parent != b->parent)
		return a->parent < b->parent ? -1 : 1;
	if (a->total != b->total)
		return a->total < b->total ? 1 : -1;
	return a->row < b->row ? -1 : a->row > b->row;
}

static int index_children(struct tree *t)
{
	const size_t n = t->keys.n;

	t->first = calloc(n + 2, sizeof(*t->first));
	if (!t->first)
		return -ENOMEM;
	if (n)
		qsort(t->nodes, n, sizeof(*t->nodes), by_parent_and_weight);
	for (size_t i = 0; i < n; i++)
		t->first[t->nodes[i].parent + 1]++;
	for (size_t i = 1; i < n + 2; i++)
		t->first[i] += t->first[i - 1];
	return 0;
}

static void put_node(const struct tree *t, const struct node *n, size_t depth, struct buf *out)
{
	const struct report *r = t->r;
	const char *unit = profile_str(r->p, r->p->types[r->type].unit);
	char total[UNIT_TEXT_MAX], share[UNIT_TEXT_MAX], self[UNIT_TEXT_MAX];

	buf_printf(out, "%10s %7s %10s  ", unit_format(n->total, unit, total),
		   unit_percent(n->total, r->total, share),
		   n->self ? unit_format(n->self, unit, self) : ".");
	for (size_t i = 0; i < depth; i++)
		buf_str(out, "  ");
	buf_bytes(out, strtab_get(&r->rows, n->row), strtab_len(&r->rows, n->row));
	buf_char(out, '\n');
}

/* Depth first. path holds, for each level, the next child to show. */
static int walk(const struct tree *t, struct buf *out)
{
	cleanup(freep_cleanup) struct level { uint32_t next, end; } *path = NULL;
	size_t cap = 0, depth = 0, rows = 0, hidden = 0;
	int r = array_grow(&path, &cap, 1, sizeof(*path));

	if (r)
		return r;
	path[depth++] = (struct level){ t->first[0], t->first[1] };
	while (depth && !out->err) {
		struct level *l = &path[depth - 1];
		const struct node *n;

		if (l->next == l->end) {
			depth--;
			continue;
		}
		n = &t->nodes[l->next++];
		if (report_is_minor(t->r, n->total) || (t->r->o->limit && rows >= t->r->o->limit)) {
			hidden++;
			continue;
		}
		put_node(t, n, depth - 1, out);
		rows++;
		r = array_grow(&path, &cap, depth + 1, sizeof(*path));
		if (r)
			return r;
		path[depth++] = (struct level){ t->first[n->id], t->first[n->id + 1] };
	}
	if (hidden)
		buf_printf(out, "\n%zu smaller subtrees are not shown\n", hidden);
	return 0;
}

int report_tree(const struct report *r, struct buf *out)
{
	cleanup(tree_release) struct tree t = { .r = r,
						.keys = MAP_INIT(sizeof(struct node_key)) };
	int err = 0;

	for (uint32_t i = 0; !err && i < profile_sample_count(r->p); i++)
		if (report_selects(r, i))
			err = add_sample(&t, i);
	if (!err)
		err = index_children(&t);
	if (err)
		return err;
	buf_printf(out, "\n%10s %7s %10s  %s\n", "total", "total%", "self",
		   r->o->by ? r->o->by : "function");
	return walk(&t, out);
}
