/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* maps.h - every map of the BPF object, with the reason for its size.
 *
 * Sizes given here are placeholders where userspace sets them before load (sampler.c): windows by
 * the number of CPUs and the frequency, files by --max-files.
 */
#ifndef WICK_MAPS_H
#define WICK_MAPS_H

/* Fixed before load; the verifier sees constants and drops what is switched off. */
const volatile struct wk_config cfg = {};

/* Set between load and start: reading the kernel's symbols takes as long as the verifier does. */
struct wk_marks marks;

/* enum wk_outcome -> count. Per CPU: no atomics; read and summed by userspace. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, WK_OUTCOME_MAX);
	__type(key, u32);
	__type(value, u64);
} counters SEC(".maps");

/* One half of the windows: a region per possible CPU. Userspace maps it into memory and reads it
 * there. Its value size is set before load; BPF_F_INNER_MAP (5.10) lets the real halves have more
 * entries than this template. */
struct half {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct wk_region) + 64 * 1024);
};

/* [0] is the active half. Replacing it is the flip: the kernel's update of a map in a map returns
 * only when no program can still be using the old one (maybe_wait_bpf_programs(), a grace period),
 * so userspace then reads a half at rest, without a lock. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__array(values, struct half);
} windows SEC(".maps");

/* The files met so far. Preallocated: perf_event programs may not allocate before 6.1, and with
 * NO_PREALLOC most first updates fail after it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct wk_file_key);
	__type(value, struct wk_file);
} files SEC(".maps");

/* Unwind rows of a file (wick_rows.h), by file id: arrays of exactly the size needed, in lines of
 * eight words so that a look-up helper is paid once a cache line. */
struct table {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, 64);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 4096);
	__uint(key_size, sizeof(u32));
	__array(values, struct table);
} tables SEC(".maps");

/* File ids that are free, filled by userspace. A queue, because a fetch-and-add with a result needs
 * 5.12, and because ids come back when a file is evicted. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 4096);
	__uint(value_size, sizeof(u32));
} free_ids SEC(".maps");

/* struct wk_file_event and pressure notices. 512 KiB: about 450 files met between two reads. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 512 * 1024);
} events SEC(".maps");

/* -p and -t (and their forks): 32,768 is the default of kernel.pid_max. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, u32);
	__type(value, struct wk_target);
} targets SEC(".maps");

/* Verdicts of userspace, by cgroup id and by process; the values say nothing. One entry each where
 * wk_config.skip is off. Not LRU: whoever decides also forgets. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, u8);
} skipped_cgroups SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct wk_process_key);
	__type(value, u8);
} skipped_processes SEC(".maps");

enum { PROG_WALK, PROG_STORE, PROG_CAPTURE, PROG_MAX };
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, PROG_MAX);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} programs SEC(".maps");

#endif
