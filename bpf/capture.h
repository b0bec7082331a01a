/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* capture.h - copy a stack whose unwind rows are on their way (wick_abi.h, copied stacks).
 *
 * Costs 20 to 100 us, but only for the first samples of a file. */
#ifndef WICK_CAPTURE_H
#define WICK_CAPTURE_H

/* A record under construction for each CPU: too large for a per-CPU map. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct wk_capture);
} capture_buffers SEC(".maps");

/* 2 MiB: about 100 stacks of usual size; drained at once. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 2 * 1024 * 1024);
} captures SEC(".maps");

enum { CAPTURE_LOOKUPS = 512 };	/* of mappings */

/* The mapping of an address that a frame may turn out to have: if it is executable it is learnt as one
 * that a walk meets, so its file is known or announced, and put into the record. Other mappings, and
 * gaps, are remembered to be passed over. Global, so that the loops around it cost the verifier
 * nothing. 0: no more. */
__noinline u32 capture_mapping(u64 addr)
{
	u32 cpu = bpf_get_smp_processor_id(), slot, n;
	struct wk_capture *c = bpf_map_lookup_elem(&capture_buffers, &cpu);
	struct walk *w = this_walk();
	struct vma_entry *e;

	if (!c || !w || w->lookups >= CAPTURE_LOOKUPS)
		return 0;
	for (n = 0; n < PASSED; n++)
		if (addr >= w->passed[n].start && addr < w->passed[n].end)
			return 1;
	for (n = 0; n < WK_CAPTURE_VMAS; n++) {
		if (n >= c->nr_vmas)
			break;
		if (addr >= c->vmas[n].start && addr < c->vmas[n].end)
			return 1;
	}
	if (c->nr_vmas >= WK_CAPTURE_VMAS)
		return 0;
	w->lookups++;
	slot = vma_learn(addr);
	e = &w->vmas[BOUND(slot, VMA_CACHE)];
	if (slot < VMA_CACHE && e->exec) {
		c->vmas[BOUND(c->nr_vmas, WK_CAPTURE_VMAS)] =
			(struct wk_capture_vma){ e->start, e->end, e->frame };
		c->nr_vmas++;
		return 1;
	}
	n = w->lookups;
	if (slot < VMA_CACHE) {
		w->passed[BOUND(n, PASSED)] = (struct wk_range){ e->start, e->end };
	} else {
		u64 end = vma_gap_end(w->mm, addr) + 1;

		w->passed[BOUND(n, PASSED)] = (struct wk_range){ addr, end };
	}
	return 1;
}

/* A word that may be a return address; not if it is a small number, nor beyond user space. */
static __always_inline void capture_word(u64 word)
{
	if (word - WK_CAPTURE_CHUNK < USER_END)
		capture_mapping(word - 1);
}

enum { CAPTURE_WORDS = 32 };

/* Some words of the copied stack from byte `first` on, each of which may be a return address. A few at a
 * time: the verifier follows each turn of a loop, but a global function once. 0: no more. */
__noinline u32 capture_words(u32 first)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct wk_capture *c = bpf_map_lookup_elem(&capture_buffers, &cpu);
	u64 word, last = 0, mask = cfg.pac_mask;	/* page of the one before */

	if (!c || first >= c->stack_bytes)
		return 0;
	if (c->missing & 1U << first / WK_CAPTURE_CHUNK)
		return 1;
	for (u32 i = 0; i < CAPTURE_WORDS; i++) {
		u32 at = first + i * sizeof(word);

		word = *(u64 *)&c->stack[BOUND(at, WK_CAPTURE_STACK) & ~7ULL] & ~mask;
		if (word >> 12 != last)
			capture_word(word);
		last = word >> 12;
	}
	return 1;
}

/* Chunk i of a stack of n bytes. Not 0: it isn't in memory, or can't be read. Global, so that its outcomes don't
 * make ever more paths of the loop around it. */
__noinline u32 copy_chunk(u32 i, u64 n)
{
	u32 cpu = bpf_get_smp_processor_id(), at = BOUND(i * WK_CAPTURE_CHUNK, WK_CAPTURE_STACK);
	struct wk_capture *c = bpf_map_lookup_elem(&capture_buffers, &cpu);
	u64 left = n - at;

	if (!c || at >= n)
		return 1;
	if (left > WK_CAPTURE_CHUNK)
		left = WK_CAPTURE_CHUNK;
	asm volatile("" : "+r"(left));	/* verifier: the bound must be seen on what is used */
	if (left > WK_CAPTURE_CHUNK)
		return 1;
	return bpf_probe_read_user(&c->stack[at & ~(WK_CAPTURE_CHUNK - 1)], left,
				   (void *)(c->stack_start + at)) != 0;
}

/* Global like capture_mapping(): its loop's exits would each be followed to the end of the program. Bytes
 * copied, 0 for none. */
__noinline u32 copy_stack(void)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct wk_capture *c = bpf_map_lookup_elem(&capture_buffers, &cpu);
	struct walk *w = this_walk();
	struct vm_area_struct *v;
	u64 start, end, n;

	if (!c || !w)
		return 0;
	/* Whole pages: one that was never touched (a large buffer in some frame, the random gap above
	 * the first frame) fails alone. */
	start = (w->regs.sp - WK_RED_ZONE) & ~(WK_CAPTURE_CHUNK - 1ULL);
	v = (void *)vma_holding(w->mm, start);
	if (!v)		/* sp at the very start of its mapping */
		v = (void *)vma_holding(w->mm, start += WK_CAPTURE_CHUNK);
	end = BPF_CORE_READ(v, vm_end);
	n = end - start;
	if (!v || start >= end)
		return 0;
	c->stack_start = start;
	if (n > WK_CAPTURE_STACK)
		n = WK_CAPTURE_STACK;
	c->missing = 0;
	for (u32 i = 0; i < WK_CAPTURE_STACK / WK_CAPTURE_CHUNK && i * WK_CAPTURE_CHUNK < n; i++)
		c->missing |= copy_chunk(i, n) << i;
	return n;
}

static __always_inline void copy_registers(const struct wk_regs *r, struct wk_capture *c)
{
	c->regs[0] = r->pc;
	c->regs[1] = r->sp;
	c->regs[2] = r->fp;
	c->regs[3] = r->lr;
	__builtin_memcpy(&c->regs[4], r->general, 16 * sizeof(u64));
	c->bx_at = r->bx_at;
	c->exact = r->exact;
	c->leaf = r->leaf;
	c->kept = r->kept;
	c->chained = r->chained;
	c->guessed = r->guessed;
}

static __always_inline void copy_bytes(struct wk_capture_code *code, u32 n, u64 addr)
{
	code->addr = bpf_probe_read_user(code->bytes, n, (void *)addr) ? 0 : addr;
}

/* What wk_leaf_step() will want to see. */
static __always_inline void copy_code(const struct wk_regs *r, struct wk_capture *c)
{
#if defined(__TARGET_ARCH_arm64)
	copy_bytes(&c->code[0], 4, (r->lr & ~r->pac_mask) - 4);
	c->code[1].addr = 0;
#else
	u64 ra = 0;

	bpf_probe_read_user(&ra, sizeof(ra), (void *)r->sp);
	copy_bytes(&c->code[0], 4, r->pc - 1);
	copy_bytes(&c->code[1], 5, ra - 5);
#endif
}

/* The mappings that the walk may come through: of pc, of what is in registers (a return address may be),
 * of the words of the stack. Their number is in the record. A process may have hundreds, few of which
 * matter to one stack. */
__noinline u32 copy_vmas(void)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct wk_capture *c = bpf_map_lookup_elem(&capture_buffers, &cpu);
	struct walk *w = this_walk();

	if (!c || !w)
		return 0;
	c->nr_vmas = 0;
	w->lookups = 0;
	for (u32 i = 0; i < PASSED; i++)
		w->passed[i].start = w->passed[i].end = 0;
	capture_mapping(w->regs.pc - !w->regs.exact);
	capture_word(w->regs.lr & ~w->regs.pac_mask);
	for (u32 i = 0; i < WK_GENERAL; i++)
		capture_word(w->regs.general[i]);
	for (u32 i = 0; i < WK_CAPTURE_STACK; i += CAPTURE_WORDS * sizeof(u64))
		if (!capture_words(i))
			break;
	return 1;
}

/* What the walk starts from, or goes on from, into this CPU's buffer. */
static __always_inline bool capture_state(struct walk *w)
{
	u32 cpu = bpf_get_smp_processor_id(), n;
	struct wk_capture *c = bpf_map_lookup_elem(&capture_buffers, &cpu);

	if (!c)
		return false;
	copy_registers(&w->regs, c);
	copy_code(&w->regs, c);
	n = copy_stack();
	if (!n)
		return false;
	c->stack_bytes = n;
	copy_vmas();
	return true;
}

/* Whether what capture_state() left, with the frames walked by now, is on its way to userspace. */
static __always_inline bool capture_send(struct walk *w, u32 walked)
{
	u32 cpu = bpf_get_smp_processor_id(), n = w->nr_user;
	struct wk_capture *c = bpf_map_lookup_elem(&capture_buffers, &cpu);
	u64 size;

	if (!c)
		return false;
	if (n > WK_CAPTURE_FRAMES)
		n = WK_CAPTURE_FRAMES;
	c->sample = w->sample;
	c->walked = walked;
	c->nr_kernel = w->nr_kernel;
	c->nr_user = n;
	if (bpf_probe_read_kernel(c->kernel, sizeof(c->kernel), w->kernel) ||
	    bpf_probe_read_kernel(c->user, sizeof(c->user), w->user))
		return false;
	size = __builtin_offsetof(struct wk_capture, stack) + (u64)c->stack_bytes;
	asm volatile("" : "+r"(size));
	if (size > sizeof(*c))
		return false;
	if (bpf_ringbuf_output(&captures, c, size, BPF_RB_FORCE_WAKEUP)) {
		count(WK_NOTE_CAPTURE_FULL);
		return false;
	}
	return true;
}

static __always_inline bool capture_walk(struct walk *w)
{
	return w->nr_user <= WK_CAPTURE_FRAMES && capture_state(w) && capture_send(w, 0);
}

#endif
