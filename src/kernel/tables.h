/* tables.h - unwind tables in BPF maps, one inner array of exactly the size needed for each file.
 *
 * Userspace reads the very rows that BPF does, mapped when it first asks for them, and keeps no copy:
 * its resident memory has only the pages that it looked at.
 * Ownership: words are copied into the kernel's array. Threads: one.
 */
#ifndef WICK_TABLES_H
#define WICK_TABLES_H

#include "base/base.h"
#include "wick_file.h"

struct tables_entry {
	struct wk_table table;
	int fd;			/* of the inner array */
	const uint64_t *words;	/* mapped; NULL: not yet */
	size_t n, bytes;	/* 0: no table */
};

struct tables {
	int outer;		/* the map of maps; borrowed */
	struct tables_entry *entries;	/* by file id */
	size_t cap;
	uint64_t bytes;		/* of all tables */
	uint64_t mapped;	/* of those that are mapped: resident memory of ours while they are */
};

/* Makes the table of f->id from words and f->table. -E2BIG (4 GiB, or none), -ENOMEM, -errno of
 * bpf(2). */
int must_check tables_put(struct tables *t, const struct wk_file *f, const uint64_t *words, size_t n);
void tables_drop(struct tables *t, uint32_t id);
/* Maps the table. NULL: that file has none. Borrowed until it is put or dropped again, or tables_unmap. */
const uint64_t *tables_get(struct tables *t, uint32_t id, struct wk_table *ret, size_t *ret_n);
/* Unmaps all of them: after a round of look-ups. */
void tables_unmap(struct tables *t);
void tables_free(struct tables *t);

#endif
