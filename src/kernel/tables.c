/* tables.c - see tables.h. */
#include "kernel/tables.h"

#include <bpf/bpf.h>
#include <sys/mman.h>

enum {
	LINE_WORDS = 8,		/* of an inner array's value: a cache line (bpf/maps.h) */
	PAGE = 4096,		/* mappings are rounded to it; larger pages round further by themselves */
};

static int make(const uint64_t *words, size_t n, struct tables_entry *ret)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE | BPF_F_INNER_MAP);
	size_t lines = (n + LINE_WORDS - 1) / LINE_WORDS, bytes = (lines * 64 + PAGE - 1) & ~(PAGE - 1UL);
	cleanup(fd_cleanup) int fd = -1;
	void *p;

	if (!n || lines > UINT32_MAX / 64)
		return -E2BIG;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "wick_rows", sizeof(uint32_t), 8 * LINE_WORDS,
			    (uint32_t)lines, &opts);
	if (fd < 0)
		return -errno;
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	memcpy(p, words, n * sizeof(*words));
	munmap(p, bytes);
	*ret = (struct tables_entry){ .fd = fd, .n = n, .bytes = bytes };
	fd = -1;
	return 0;
}

static void unmap(struct tables *t, struct tables_entry *e)
{
	if (!e->words)
		return;
	munmap((void *)e->words, e->bytes);
	e->words = NULL;
	t->mapped -= e->bytes;
}

static void forget(struct tables *t, struct tables_entry *e)
{
	if (!e->bytes)
		return;
	unmap(t, e);
	close(e->fd);
	t->bytes -= e->bytes;
	*e = (struct tables_entry){ 0 };
}

int tables_put(struct tables *t, const struct wk_file *f, const uint64_t *words, size_t n)
{
	struct tables_entry e = { 0 };
	size_t old = t->cap;
	int r = array_grow(&t->entries, &t->cap, (size_t)f->id + 1, sizeof(*t->entries));

	if (r)
		return r;
	memset(t->entries + old, 0, (t->cap - old) * sizeof(*t->entries));
	r = make(words, n, &e);
	if (r)
		return r;
	e.table = f->table;
	forget(t, &t->entries[f->id]);
	t->entries[f->id] = e;
	t->bytes += e.bytes;
	return bpf_map_update_elem(t->outer, &f->id, &e.fd, BPF_ANY) ? -errno : 0;
}

void tables_drop(struct tables *t, uint32_t id)
{
	(void)bpf_map_delete_elem(t->outer, &id);
	if (id < t->cap)
		forget(t, &t->entries[id]);
}

const uint64_t *tables_get(struct tables *t, uint32_t id, struct wk_table *ret, size_t *ret_n)
{
	struct tables_entry *e = id < t->cap ? &t->entries[id] : NULL;
	void *p;

	if (!e || !e->bytes)
		return NULL;
	if (!e->words) {
		p = mmap(NULL, e->bytes, PROT_READ, MAP_SHARED, e->fd, 0);
		if (p == MAP_FAILED)
			return NULL;
		e->words = p;
		t->mapped += e->bytes;
	}
	*ret = e->table;
	*ret_n = e->n;
	return e->words;
}

void tables_unmap(struct tables *t)
{
	for (size_t i = 0; i < t->cap && t->mapped; i++)
		unmap(t, &t->entries[i]);
}

void tables_free(struct tables *t)
{
	for (size_t i = 0; i < t->cap; i++)
		forget(t, &t->entries[i]);
	free(t->entries);
	*t = (struct tables){ 0 };
}
