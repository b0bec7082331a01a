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

enum { CAPTURE_SCAN = 512 };	/* mappings of any kind looked at */

/* Looks at the mapping at w->scan, or passes the gap there, and moves on. Executable ones are learnt
 * like one that a walk meets, so their files are known or announced. 0 at the end. Global, so that the
 * loop around it costs the verifier nothing. */
__noinline u32 capture_next(void)
{
	u32 cpu = bpf_get_smp_processor_id(), slot;
	struct wk_capture *c = bpf_map_lookup_elem(&capture_buffers, &cpu);
	struct walk *w = this_walk();
	struct vm_area_struct *v;
	struct vma_entry *e;
	u64 addr, next;

	if (!c || !w)
		return 0;
	addr = w->scan;
	v = (void *)vma_find(w->mm, addr, 0);
	if (!v)		/* a gap, or a tree in change */
		v = (void *)vma_find(w->mm, addr, 1);
	next = v ? BPF_CORE_READ(v, vm_end) : 0;
	if (next <= addr) {
		/* A gap; or a mapping that the interrupted system call (mprotect, munmap) has made
		 * shorter before it tells the tree: past what the tree says of it. */
		next = vma_gap_end(w->mm, addr) + 1;	/* 0 after the last */
	} else {
		if (BPF_CORE_READ(v, vm_flags) & 4 && c->nr_vmas < WK_CAPTURE_VMAS) {
			slot = vma_learn(addr);
			if (slot < VMA_CACHE) {
				e = &w->vmas[BOUND(slot, VMA_CACHE)];
				c->vmas[BOUND(c->nr_vmas, WK_CAPTURE_VMAS)] =
					(struct wk_capture_vma){ e->start, e->end, e->frame };
				c->nr_vmas++;
			}
		}
	}
	if (next <= addr)	/* the end, or the tree changes beneath us */
		return 0;
	w->scan = next;
	return 1;
}

/* Global like capture_next(): its loop's exits would each be followed to the end of the program. Bytes
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
	for (u32 i = 0; i < WK_CAPTURE_STACK / WK_CAPTURE_CHUNK; i++) {
		u32 at = i * WK_CAPTURE_CHUNK, left = n - at;

		if (at >= n)
			break;
		if (left > WK_CAPTURE_CHUNK)
			left = WK_CAPTURE_CHUNK;
		asm volatile("" : "+r"(left));	/* verifier: the bound must be seen on what is used */
		if (left > WK_CAPTURE_CHUNK)
			return 0;
		if (bpf_probe_read_user(&c->stack[at], left, (void *)(start + at)))
			c->missing |= 1U << i;
	}
	return n;
}

static __always_inline void copy_registers(const struct wk_regs *r, struct wk_capture *c)
{
	c->regs[0] = r->pc;
	c->regs[1] = r->sp;
	c->regs[2] = r->fp;
	c->regs[3] = r->lr;
	__builtin_memcpy(&c->regs[4], r->general, 16 * sizeof(u64));
	c->exact = r->exact;
	c->leaf = r->leaf;
	c->kept = r->kept;
}

/* All of them; its loop has 512 exits. The number is in the record. */
__noinline u32 copy_vmas(void)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct wk_capture *c = bpf_map_lookup_elem(&capture_buffers, &cpu);
	struct walk *w = this_walk();

	if (!c || !w)
		return 0;
	c->nr_vmas = 0;
	w->scan = 0;
	for (u32 i = 0; i < CAPTURE_SCAN; i++)
		if (!capture_next())
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
