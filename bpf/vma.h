/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* vma.h - address to mapping, by the kernel's own VMA tree, without a lock.
 *
 * Each read is fault-safe, and nothing read is trusted before vma_holds() has checked it: while
 * another thread changes the tree a walk may find nothing or a wrong VMA, never crash, and the
 * check turns wrong into nothing. bpf_find_vma() would fail with -EBUSY more than half the time
 * beside a thread that maps memory, and costs 20 times as much.
 *
 * Maple tree, 6.1 and later (lib/maple_tree.c, "Maple Tree design overview"): a pointer to a node
 * carries its type in bits 3 to 6; the first pivot >= address, or a 0 pivot after the first,
 * chooses the slot. A node being replaced stays reachable: dead nodes point to themselves as parent
 * and have their first pivot overwritten, so in a dead leaf slot 0 is judged by its own VMA, and in
 * a dead inner node the walk ignores slot 0 first, prefers it on the second try (`alt`).
 */
#ifndef WICK_VMA_H
#define WICK_VMA_H

enum {
	MAPLE_LEAVES = 2,	/* enum maple_type: dense and leaf_64 are leaves */
	MAPLE_ARANGE_64 = 3,
	MAPLE_SLOTS = 16,	/* MAPLE_RANGE64_SLOTS, MAPLE_ARANGE64_SLOTS */
	MAPLE_ARANGE_SLOTS = 10,
	MAPLE_DEPTH = 6,	/* 20,000 VMAs make 5 levels */
	RB_DEPTH = 40,		/* 20,000 VMAs make 25 */
};

/* Both trees: the VMA whose range holds addr, 0 if none does. ret_last, unless it is NULL at
 * compile time: then the last address before the next VMA (or ~0), to go through all of them. */
static __always_inline u64 rb_find(u64 mm, u64 addr, u64 *ret_last)
{
	struct rb_node___rb *n = BPF_CORE_READ((struct mm_struct___rb *)mm, mm_rb.rb_node);
	const u64 off = bpf_core_field_offset(struct vm_area_struct___rb, vm_rb);

	for (int i = 0; i < RB_DEPTH && n; i++) {
		struct vm_area_struct___rb *v = (void *)n - off;
		u64 range[2];	/* vm_start, vm_end are neighbours */

		if (bpf_core_read(range, sizeof(range), &v->vm_start))
			return 0;
		if (addr >= range[0] && addr < range[1])
			return (u64)v;
		if (ret_last && addr < range[0])
			*ret_last = range[0] - 1;
		if (bpf_core_read(&n, sizeof(n), addr < range[0] ? &n->rb_left : &n->rb_right))
			return 0;
	}
	return 0;
}

/* The slot of a node that addr belongs to, and in n[] the node's first words: parent, then the pivots, of one
 * read, so that they belong together. MAPLE_SLOTS: unreadable. */
static __always_inline u32 maple_slot(u64 entry, u64 addr, u32 alt, u64 n[MAPLE_SLOTS])
{
	u64 type = (entry >> 3) & 15, node = entry & ~255ULL;
	struct maple_range_64 *r = (void *)node;
	u32 slot, slots = type == MAPLE_ARANGE_64 ? MAPLE_ARANGE_SLOTS : MAPLE_SLOTS;

	if (bpf_core_read(n, MAPLE_SLOTS * sizeof(*n), &r->parent))
		return MAPLE_SLOTS;
	if ((n[0] & ~255ULL) == node) {	/* dead */
		if (type < MAPLE_LEAVES) {
			u64 v0 = 0, end = 0;

			bpf_core_read(&v0, sizeof(v0), &r->slot[0]);
			if (v0)
				bpf_core_read(&end, sizeof(end), &((struct vm_area_struct *)v0)->vm_end);
			n[1] = addr < end ? ~0ULL : 0;
		} else {
			n[1] = !alt ? 0 : n[2] ? n[2] : ~0ULL;
		}
	}
	for (slot = 0; slot < MAPLE_SLOTS - 1; slot++)	/* the last slot has no pivot */
		if (slot >= slots - 1 || (n[1 + slot] == 0 && slot) || addr <= n[1 + slot])
			break;
	return slot;
}

/* Kernels with the other tree verify global functions of this one, too. Nothing of it must move in front. */
#define MAPLE_ONLY()                                                                               \
	do {                                                                                       \
		if (!bpf_core_field_exists(struct mm_struct, mm_mt))                               \
			return 0;                                                                  \
		asm volatile("" ::: "memory");                                                     \
	} while (0)

/* What the slot of an address holds: a VMA if the node is a leaf, else a node; 0 for nothing. Global, as
 * maple_last() is: verified once, not for each level. */
__noinline u64 maple_child(u64 entry, u64 addr, u32 alt)
{
	u64 n[MAPLE_SLOTS], node = entry & ~255ULL, child;
	struct maple_range_64 *r = (void *)node;
	struct maple_arange_64 *a = (void *)node;
	u32 slot;

	MAPLE_ONLY();
	slot = maple_slot(entry, addr, alt, n);
	if (slot >= MAPLE_SLOTS ||
	    bpf_core_read(&child, sizeof(child), ((entry >> 3) & 15) == MAPLE_ARANGE_64 ? &a->slot[slot] :
									   &r->slot[slot]))
		return 0;
	return child;
}

/* The last address of the slot of an address, 0 if its node doesn't tell. */
__noinline u64 maple_last(u64 entry, u64 addr)
{
	u64 n[MAPLE_SLOTS];
	u32 slots = ((entry >> 3) & 15) == MAPLE_ARANGE_64 ? MAPLE_ARANGE_SLOTS : MAPLE_SLOTS;
	u32 slot;

	MAPLE_ONLY();
	slot = maple_slot(entry, addr, 0, n);
	return slot < slots - 1 ? n[1 + (slot & (MAPLE_SLOTS - 1))] : 0;
}

static __always_inline u64 maple_find(u64 mm, u64 addr, u32 alt, u64 *ret_last)
{
	u64 entry = (u64)BPF_CORE_READ((struct mm_struct *)mm, mm_mt.ma_root), node;

	if (entry <= 4096)	/* empty, or a reserved value */
		return 0;
	if ((entry & 3) != 2)	/* a lone VMA stands in the root itself */
		return entry;
	for (int depth = 0; depth < MAPLE_DEPTH; depth++) {
		node = entry;
		if (ret_last) {
			u64 last = maple_last(node, addr);

			if (last)
				*ret_last = last;
		}
		entry = maple_child(node, addr, alt);
		if (!entry || ((node >> 3) & 15) < MAPLE_LEAVES)
			return entry;
	}
	return 0;
}

/* Not inlined, so that no relocation for the other tree moves in front of its guard. */
static __noinline u64 maple_vma(u64 mm, u64 addr, u32 alt)
{
	return maple_find(mm, addr, alt, NULL);
}

static __noinline u64 rb_vma(u64 mm, u64 addr)
{
	return rb_find(mm, addr, NULL);
}

static __noinline u64 maple_gap(u64 mm, u64 addr)
{
	u64 last = ~0ULL;

	maple_find(mm, addr, 0, &last);
	return last;
}

static __noinline u64 rb_gap(u64 mm, u64 addr)
{
	u64 last = ~0ULL;

	rb_find(mm, addr, &last);
	return last;
}

/* Inlined, because calls may be no deeper than eight. */
static __always_inline u64 vma_find(u64 mm, u64 addr, u32 alt)
{
	if (bpf_core_field_exists(struct mm_struct, mm_mt))
		return maple_vma(mm, addr, alt);
	return rb_vma(mm, addr);
}

/* The last address before the next VMA, for an addr that none holds. Global: verified once, however often it is
 * called. Scalars only, for 5.10. */
__noinline u64 vma_gap_end(u64 mm, u64 addr)
{
	if (bpf_core_field_exists(struct mm_struct, mm_mt))
		return maple_gap(mm, addr);
	return rb_gap(mm, addr);
}

#endif
