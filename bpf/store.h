/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* store.h - put a finished walk into this CPU's region of the active half (wick_abi.h, windows). */
#ifndef WICK_STORE_H
#define WICK_STORE_H

/* Room behind words[region_words], so that one bound serves every entry. */
enum { STORE_SLACK = 1 + WK_USER_FRAMES };

/* The slot of a hash: the one that holds it (found), else a free one, else one to overwrite. The
 * cache may forget, see wick_abi.h. */
static __always_inline struct wk_slot *find_slot(struct wk_region *r, const u64 h[2], bool *found)
{
	u32 first = (u32)h[0] & (WK_SLOTS - 1) & ~(WK_SLOT_WAYS - 1);
	u32 best = first + ((h[0] >> 32) & (WK_SLOT_WAYS - 1));

	*found = false;
	for (u32 i = 0; i < WK_SLOT_WAYS; i++) {
		struct wk_slot *s = &r->slots[(first + i) & (WK_SLOTS - 1)];

		if (!s->ref) {
			best = first + i;
			break;
		}
		if (s->hash == h[0] && s->hash2 == (u32)h[1]) {
			*found = true;
			return s;
		}
	}
	return &r->slots[BOUND(best, WK_SLOTS)];
}

static __always_inline void fill_slot(struct wk_slot *s, const u64 h[2], u32 index)
{
	s->hash = h[0];
	s->hash2 = (u32)h[1];
	s->ref = index + 1;
}

/* Stores nr frames (a ring beyond WK_LEAF_FRAMES) or finds them stored: index in words[],
 * WK_NO_STACK when the region is full. Global for the verifier's sake: scalars only. */
static __noinline u32 store_stack(struct wk_region *r, const u64 *frames, u32 total, const u64 h[2])
{
	u32 n = total, at = r->used;
	u64 bytes;
	struct wk_entry *e;
	struct wk_slot *s;
	bool found;

	s = find_slot(r, h, &found);
	if (found)
		return s->ref - 1;
	if (n > WK_USER_FRAMES)
		n = WK_USER_FRAMES;
	if (at >= cfg.region_words)
		return WK_NO_STACK;
	e = (void *)&r->words[at];
	e->type = WK_ENTRY_STACK;
	e->pad = 0;
	e->words = n + 1;
	e->total = total;
	bytes = n * sizeof(u64);
	asm volatile("" : "+r"(bytes));	/* verifier: before 6.3 a bound is lost when it is spilled */
	if (bytes > WK_USER_FRAMES * sizeof(u64) ||
	    bpf_probe_read_kernel(&r->words[at + 1], bytes, frames))
		return WK_NO_STACK;
	r->used = at + n + 1;
	fill_slot(s, h, at);
	return at;
}

static __always_inline bool add_sample(struct wk_region *r, struct walk *w, u64 weight)
{
	const u64 *key = (const void *)&w->sample.start_time;
	struct wk_sample *stored;
	struct wk_slot *s;
	u32 at = r->used;
	bool found;
	u64 h[2];

	hash_start(h);
	hash_word(h, WK_ENTRY_SAMPLE);	/* never equal to a stack's */
	for (u32 i = 0; i < WK_SAMPLE_KEY_SIZE / sizeof(u64); i++)
		hash_word(h, key[i]);
	s = find_slot(r, h, &found);
	if (found) {
		at = s->ref - 1;
		if (at >= cfg.region_words)	/* verifier: always false */
			return false;
		stored = (void *)&r->words[at];
		stored->count++;
		stored->weight += weight;
		return true;
	}
	if (at >= cfg.region_words)
		return false;
	w->sample.entry.type = WK_ENTRY_SAMPLE;
	w->sample.entry.words = sizeof(struct wk_sample) / sizeof(u64);
	w->sample.count = 1;
	w->sample.weight = weight;
	stored = (void *)&r->words[at];
	*stored = w->sample;
	r->used = at + sizeof(struct wk_sample) / sizeof(u64);
	fill_slot(s, h, at);
	return true;
}

/* Tells userspace, once per half, that this region is half full. */
static __always_inline void notify_pressure(u32 before, u32 after)
{
	u64 type = WK_EVENT_PRESSURE;

	if (before < cfg.region_words / 2 && after >= cfg.region_words / 2)
		bpf_ringbuf_output(&events, &type, sizeof(type), BPF_RB_FORCE_WAKEUP);
}

/* The fate of the tick: WK_RECORDED or a loss. */
static __always_inline u32 store_walk(struct walk *w, u64 weight)
{
	u32 zero = 0, cpu = bpf_get_smp_processor_id(), before;
	struct wk_sample *s = &w->sample;
	struct wk_region *r;
	void *half = bpf_map_lookup_elem(&windows, &zero);

	if (!half)
		return WK_LOST_NO_WINDOW;
	r = bpf_map_lookup_elem(half, &cpu);
	if (!r)
		return WK_LOST_NO_WINDOW;
	before = r->used;
	s->user_stack = s->kernel_stack = WK_NO_STACK;
	if (w->nr_user) {
		s->user_stack = store_stack(r, w->user, w->nr_user, w->hash);
		if (s->user_stack == WK_NO_STACK)
			return WK_LOST_WINDOW_FULL;
	}
	if (w->nr_kernel) {
		s->kernel_stack = store_stack(r, w->kernel, w->nr_kernel, w->kernel_hash);
		if (s->kernel_stack == WK_NO_STACK)
			return WK_LOST_WINDOW_FULL;
	}
	if (!add_sample(r, w, weight))
		return WK_LOST_WINDOW_FULL;
	notify_pressure(before, r->used);
	count(s->user_outcome);
	if (w->nr_user > WK_USER_FRAMES)
		count(WK_CUT);
	return WK_RECORDED;
}

#endif
