/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* walk.h - the state of the walk in progress on this CPU, and the naming of its addresses.
 *
 * One tick is handled by up to three programs joined by tail calls (tick, walk, store); what they
 * hand on lies in `walks`. Programs on one CPU can't interleave: the kernel refuses to run a second
 * perf_event program above one that is running (bpf_prog_active), so the state needs no lock.
 */
#ifndef WICK_WALK_H
#define WICK_WALK_H

enum {
	VMA_CACHE = 8,	/* mappings remembered within one walk */
	PASSED = 16,	/* ranges without code remembered while a stack is copied */
	WALK_STEP = 128,/* frames per program: 28 programs x 128 = 3,584 steps and room to store */
	WALK_CALLS = 28,/* tail calls; the kernel allows 32 (5.10) or 33 in a row */
};

#define USER_END ((1ULL << 56) - 1)	/* no user address is beyond: five-level page tables */

/* Ground truth only: what this walk starts from. */
enum walk_copy {
	COPY_NONE,
	COPY_MADE,	/* in the capture buffer */
	COPY_GONE,	/* failed, or overwritten for a walk that has to wait for rows */
};

struct vma_entry {
	u64 start, end;
	u64 frame;		/* frame word of `start`: add the distance */
	u64 exec;
	struct wk_file file;	/* id 0: none behind it */
};

struct walk {
	struct wk_sample sample;
	u64 mm;
	struct wk_regs regs;
	struct wk_row row;	/* of the frame at hand; all 0: none */
	struct wk_side side;
	u64 hash[2], kernel_hash[2];
	u32 nr_user, nr_kernel;
	u32 calls;
	u32 nr_vmas;
	u32 in_exec;
	u32 no_capture;	/* it was tried; on with frame pointers */
	u32 copy;	/* enum walk_copy */
	struct wk_range range;	/* of the mapping that vma_holding() has found */
	u32 lookups;	/* of mappings, for a copied stack */
	struct wk_range passed[PASSED]; /* and what needn't be looked up again */
	struct vma_entry vmas[VMA_CACHE];
	struct wk_file_event event;
	u64 kernel[WK_KERNEL_FRAMES + 1];
	u64 user[WK_USER_FRAMES];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct walk);
} walks SEC(".maps");

static __always_inline struct walk *this_walk(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&walks, &zero);
}

static __always_inline void count(u32 outcome)
{
	u64 *n = bpf_map_lookup_elem(&counters, &outcome);

	if (n)
		(*n)++;
}

/* Two lanes of multiply and fold, keyed by a random seed: 96 bits of them decide equality. */
static __always_inline void hash_start(u64 h[2])
{
	h[0] = cfg.hash_seed;
	h[1] = ~cfg.hash_seed;
}

static __always_inline void hash_word(u64 h[2], u64 w)
{
	h[0] = (h[0] ^ w) * 0x9e3779b97f4a7c15ULL;
	h[0] ^= h[0] >> 29;
	h[1] = (h[1] + w) * 0xd6e8feb86659fd93ULL;
	h[1] ^= h[1] >> 32;
}

static __always_inline u64 inode_mtime(struct inode *inode)
{
	if (bpf_core_field_exists(struct inode___split_mtime, i_mtime_sec)) {
		struct inode___split_mtime *i = (void *)inode;

		return BPF_CORE_READ(i, i_mtime_sec) * 1000000000ULL + BPF_CORE_READ(i, i_mtime_nsec);
	}
	if (bpf_core_field_exists(struct inode___hidden_mtime, __i_mtime)) {
		struct inode___hidden_mtime *i = (void *)inode;

		return BPF_CORE_READ(i, __i_mtime.tv_sec) * 1000000000ULL +
		       BPF_CORE_READ(i, __i_mtime.tv_nsec);
	}
	{
		struct inode___mtime *i = (void *)inode;

		return BPF_CORE_READ(i, i_mtime.tv_sec) * 1000000000ULL +
		       BPF_CORE_READ(i, i_mtime.tv_nsec);
	}
}

/* The names from the file up to the root of its file system, for a process that will be gone. */
static __noinline void read_path(struct file *file, struct wk_file_event *e)
{
	struct dentry *d = BPF_CORE_READ(file, f_path.dentry), *up;
	u32 off = 0;

	for (int i = 0; i < 16; i++) {
		const unsigned char *name;
		long n;

		up = BPF_CORE_READ(d, d_parent);
		if (!up || up == d || off > WK_PATH_BYTES - 256)
			break;
		name = BPF_CORE_READ(d, d_name.name);
		/* verifier: off <= 767, so 256 more bytes fit */
		n = bpf_probe_read_kernel_str(&e->path[off & 1023], 256, name);
		if (n <= 0)
			break;
		off += n & 511;
		d = up;
	}
	e->path_len = off;
}

/* False: the ring is full, and this file has no id. The sample at hand must not carry the one it would have
 * had: that is free again. */
static __always_inline bool announce(struct walk *w, u64 vma, struct file *file)
{
	struct wk_file_event *e = &w->event;
	struct vm_area_struct *v = (void *)vma;

	e->type = WK_EVENT_FILE;
	e->vm_start = BPF_CORE_READ(v, vm_start);
	e->vm_end = BPF_CORE_READ(v, vm_end);
	e->pgoff = BPF_CORE_READ(v, vm_pgoff) << cfg.page_shift;
	e->start_time = w->sample.start_time;
	e->pid = w->sample.pid;
	e->tid = pid_in_namespace(
		BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), thread_pid));
	read_path(file, e);
	if (!bpf_ringbuf_output(&events, e, sizeof(*e), BPF_RB_FORCE_WAKEUP))
		return true;
	/* Forget it, so that its next sight announces it again. */
	count(WK_NOTE_RING_FULL);
	bpf_map_delete_elem(&files, &e->key);
	bpf_map_push_elem(&free_ids, &e->id, BPF_ANY);
	return false;
}

static __always_inline void file_key(struct file *file, struct wk_file_key *key)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);

	key->ino = BPF_CORE_READ(inode, i_ino);
	key->generation = BPF_CORE_READ(inode, i_generation);
	key->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	key->mtime_ns = inode_mtime(inode);
}

/* What is known of the file behind a VMA, whose key is in w->event; false if the file table, or the ring, is
 * full. */
static __noinline bool find_file(struct walk *w, u64 vma, struct file *file, struct wk_file *ret)
{
	struct wk_file_key *key = &w->event.key;
	struct wk_file *known;

	known = bpf_map_lookup_elem(&files, key);
	if (known) {
		*ret = *known;
		return true;
	}
	__builtin_memset(ret, 0, sizeof(*ret));
	if (bpf_map_pop_elem(&free_ids, &ret->id)) {
		count(WK_NOTE_FILES_FULL);
		return false;
	}
	if (bpf_map_update_elem(&files, key, ret, BPF_NOEXIST)) {
		/* another CPU was first, or the table is full */
		bpf_map_push_elem(&free_ids, &ret->id, BPF_ANY);
		known = bpf_map_lookup_elem(&files, key);
		if (!known) {
			ret->id = WK_FILE_NONE;
			return false;
		}
		*ret = *known;
		return true;
	}
	w->event.id = ret->id;
	if (announce(w, vma, file))
		return true;
	ret->id = WK_FILE_NONE;
	return false;
}

static __always_inline bool is_code_beside(struct vm_area_struct *v, u64 mm, u64 start, u64 end)
{
	return v && (u64)BPF_CORE_READ(v, vm_mm) == mm && BPF_CORE_READ(v, vm_flags) & 4 &&
	       BPF_CORE_READ(v, vm_file) &&
	       (BPF_CORE_READ(v, vm_end) == start || BPF_CORE_READ(v, vm_start) == end);
}

/* Anonymous code beside a file's may be a copy of that file's (WK_DEV_COPIED): userspace looks, and until it
 * has looked stacks are copied. */
static __noinline void find_copied(struct walk *w, struct vma_entry *e)
{
	struct wk_file_key *key = &w->event.key;
	struct vm_area_struct *v = (void *)vma_find(w->mm, e->start - 1, 0);

	if (!is_code_beside(v, w->mm, e->start, e->end)) {
		v = (void *)vma_find(w->mm, e->end, 0);
		if (!is_code_beside(v, w->mm, e->start, e->end))
			return;
	}
	key->ino = e->start;
	key->mtime_ns = w->sample.start_time + w->sample.exec_id;
	key->dev = WK_DEV_COPIED;
	key->generation = (e->end - e->start) >> cfg.page_shift;
	/* where this would be in the file; a wrapped one is refused as too large */
	w->range.start = (BPF_CORE_READ(v, vm_pgoff) << cfg.page_shift) + e->start - BPF_CORE_READ(v, vm_start);
	w->range.end = w->range.start + (e->end - e->start);
	if (w->range.end > WK_FILE_OFF_MAX || w->range.start > w->range.end)
		return;
	if (find_file(w, (u64)v, BPF_CORE_READ(v, vm_file), &e->file) && e->file.rows != WK_ROWS_ANON)
		e->frame = WK_FRAME_MAKE_FILE(e->file.id, w->range.start);
}

/* The vDSO has no inode: userspace puts its rows under the all-zero key. */
static __always_inline void find_vdso(struct wk_file *ret)
{
	struct wk_file_key key = {};
	struct wk_file *known = bpf_map_lookup_elem(&files, &key);

	if (known)
		*ret = *known;
}

/* Rows of code that the process has made, if there are any. */
static __noinline void find_generated(struct walk *w, struct wk_file *ret)
{
	struct wk_file_key *key = &w->event.key;
	struct wk_file *known;

	key->ino = w->sample.start_time;
	key->mtime_ns = w->sample.exec_id;
	key->dev = WK_DEV_GENERATED;
	key->generation = w->sample.pid;
	known = bpf_map_lookup_elem(&files, key);
	if (known)
		*ret = *known;
}

/* The mapping that holds addr, 0 if none does; its range in w->range. A second try when the first finds
 * something else: a tree that is being changed, by another thread or by the very system call that the
 * tick has hit. */
__noinline u64 vma_holding(u64 mm, u64 addr)
{
	struct walk *w = this_walk();
	u64 range[2];	/* vm_start and vm_end are neighbours: one read, so that they belong together */

	if (!w)
		return 0;
	for (u32 alt = 0; alt < 2; alt++) {
		struct vm_area_struct *v = (void *)vma_find(mm, addr, alt);

		if (v && !bpf_core_read(range, sizeof(range), &v->vm_start) && addr >= range[0] &&
		    addr < range[1] && (u64)BPF_CORE_READ(v, vm_mm) == mm) {
			if (alt)
				count(WK_NOTE_TREE_MISS);
			w->range.start = range[0];
			w->range.end = range[1];
			return (u64)v;
		}
	}
	return 0;
}

/* Looks addr up in the tree and remembers its mapping. Global, so verified once. Returns the index
 * in w->vmas, or VMA_CACHE when no mapping holds the address. */
__noinline u32 vma_learn(u64 addr)
{
	struct walk *w = this_walk();
	struct vm_area_struct *v;
	struct vma_entry *e;
	struct mm_struct *mm;	/* own copy: a CO-RE read through w would relocate struct walk */
	struct file *file;
	u64 vma, start, end;
	u32 n;

	if (!w)
		return VMA_CACHE;
	mm = (void *)w->mm;
	vma = vma_holding((u64)mm, addr);
	if (!vma)
		return VMA_CACHE;
	v = (void *)vma;
	start = w->range.start;
	end = w->range.end;
	n = w->nr_vmas++ % VMA_CACHE;
	e = &w->vmas[n];
	e->start = start;
	e->end = end;
	e->exec = BPF_CORE_READ(v, vm_flags) & 4;	/* VM_EXEC */
	e->frame = start;
	e->file.id = WK_FILE_NONE;
	file = BPF_CORE_READ(v, vm_file);
	if (file) {
		u64 off = BPF_CORE_READ(v, vm_pgoff) << cfg.page_shift;

		if (!e->exec || off + (end - start) > WK_FILE_OFF_MAX)
			return n;
		file_key(file, &w->event.key);
		if (find_file(w, vma, file, &e->file) && e->file.rows != WK_ROWS_ANON)
			e->frame = WK_FRAME_MAKE_FILE(e->file.id, off);
		if (e->exec && e->file.rows == WK_ROWS_ANON)
			find_generated(w, &e->file);
	} else if (start == (u64)BPF_CORE_READ(mm, context.vdso)) {
		find_vdso(&e->file);
		e->frame = WK_FRAME_MAKE_FILE(WK_FILE_VDSO, 0);
	} else if (e->exec) {
		if (!(BPF_CORE_READ(v, vm_flags) & 2))	/* VM_WRITE: code that may change */
			find_copied(w, e);
		if (e->file.id == WK_FILE_NONE || e->file.rows == WK_ROWS_ANON)
			find_generated(w, &e->file);
	}
	return n;
}

/* verifier: an index that it has lost sight of (a comparison made on a copy, or after the pointer was
 * computed) is masked where it is used; the empty asm keeps the compiler from dropping the mask. */
#define BOUND(n, size)                                                                             \
	({                                                                                         \
		u64 n_ = (n);                                                                      \
		asm volatile("" : "+r"(n_));                                                       \
		n_ & ((size) - 1);                                                                 \
	})

/* The mapping of an address: from this walk's memory, else from the tree. Its index in w->vmas, or VMA_CACHE. */
static __always_inline u32 vma_of(struct walk *w, u64 addr)
{
	for (u32 n = 0; n < VMA_CACHE; n++) {
		if (n >= w->nr_vmas)	/* the rest is an earlier tick's */
			break;
		if (addr >= w->vmas[n].start && addr < w->vmas[n].end)
			return n;
	}
	return vma_learn(addr);
}

/* Word n of a table, which is a map: rows.h's reader. */
static __noinline int table_word(void *table, u64 n, u64 *ret)
{
	u32 line = n / 8;
	u64 *words = bpf_map_lookup_elem(table, &line);

	if (!words)
		return -1;
	*ret = words[n & 7];
	return 0;
}
#define WK_ROW_WORD(words, n, dst) table_word((void *)(words), n, dst)
#include "rows.h"

/* The rule of the frame at an offset into the file behind a mapping, by its index in w->vmas; it goes to w->row
 * and w->side. 0, or a stop. Global, so that what follows isn't verified for each end of the search. */
__noinline u32 find_row(u32 vma, u64 offset)
{
	struct walk *w = this_walk();
	const struct wk_file *f;
	const void *words;
	u32 id;

	if (!w)
		return WK_USER_INTERNAL;
	f = &w->vmas[BOUND(vma, VMA_CACHE)].file;
	id = f->id;
	words = bpf_map_lookup_elem(&tables, &id);
	if (!words || wk_rows_find(&f->table, words, offset, &w->row))
		return WK_USER_NO_INFO;
	if (w->row.cfa == WK_CFA_SIDE && wk_rows_side(&f->table, words, w->row, &w->side))
		return WK_USER_INTERNAL;
	return 0;
}

static __always_inline void push_frame(struct walk *w, u64 frame)
{
	u32 n = w->nr_user;

	if (n >= WK_LEAF_FRAMES)
		n = WK_LEAF_FRAMES + ((n - WK_LEAF_FRAMES) & (WK_ROOT_FRAMES - 1));
	if (n < WK_USER_FRAMES)	/* verifier: always true */
		w->user[n] = frame;
	w->nr_user++;
	hash_word(w->hash, frame);
}

#endif
