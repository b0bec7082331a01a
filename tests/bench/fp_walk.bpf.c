/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fp_walk.bpf.c - the yardstick of bench.py: at a tick, the kernel's own frame-pointer walk. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define FRAMES_MAX 127	/* kernel.perf_event_max_stack */

struct walk {
	__u64 frames;	/* of all ticks so far */
	__u64 stack[FRAMES_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct walk);
} walks SEC(".maps");

SEC("perf_event")
int fp_walk(void *ctx)
{
	__u32 zero = 0;
	struct walk *w = bpf_map_lookup_elem(&walks, &zero);
	long bytes;

	if (!w)
		return 0;
	bytes = bpf_get_stack(ctx, w->stack, sizeof(w->stack), BPF_F_USER_STACK);
	if (bytes > 0)
		w->frames += (__u64)bytes / sizeof(w->stack[0]);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
