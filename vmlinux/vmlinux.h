/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* vmlinux.h - the kernel types that wick's BPF programs read, reduced by hand.
 *
 * Not generated: only the fields we touch, in the kernel's names. preserve_access_index makes each
 * access a CO-RE relocation, so sizes and offsets here mean nothing; libbpf patches in those of the
 * running kernel. So wick builds on a host without BTF and for another architecture. Where kernels
 * differ, a flavour (struct name___suffix) describes the other shape, and bpf_core_*_exists()
 * chooses; each flavour names the versions it is for.
 */
#ifndef WICK_VMLINUX_H
#define WICK_VMLINUX_H

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef _Bool bool;
enum { false = 0, true = 1 };

/* include/uapi/linux/bpf.h: only the values that the programs name. */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_HASH_OF_MAPS = 13,
	BPF_MAP_TYPE_QUEUE = 22,
	BPF_MAP_TYPE_RINGBUF = 27,
};
enum { BPF_ANY = 0, BPF_NOEXIST = 1, BPF_EXIST = 2 };
enum { BPF_F_MMAPABLE = 1U << 10, BPF_F_INNER_MAP = 1U << 12 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };
enum bpf_func_id {	/* for bpf_core_enum_value_exists() */
	BPF_FUNC_get_current_task_btf = 158,
	BPF_FUNC_task_pt_regs = 175,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];	/* level + 1 of them */
};

enum pid_type { PIDTYPE_PID, PIDTYPE_TGID };

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live;
	struct pid *pids[4];
};

struct kernfs_node {
	u64 id;
};

struct cgroup;
struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};

struct cgroup_root;
struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
	struct cgroup_root *root;
};

struct css_set {
	struct cgroup_subsys_state *subsys[16];
	struct cgroup *dfl_cgrp;
};

struct task_struct {
	void *stack;
	unsigned int flags;
	int pid;
	int tgid;
	struct task_struct *group_leader;
	struct mm_struct *mm;
	struct signal_struct *signal;
	struct pid *thread_pid;
	struct css_set *cgroups;
	u64 start_boottime;	/* 5.5 and later */
	u64 self_exec_id;
	char comm[16];
};

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
};

struct path {
	struct dentry *dentry;
};

struct super_block {
	u32 s_dev;
};

struct timespec64 {
	s64 tv_sec;
	long tv_nsec;
};

struct inode {
	unsigned long i_ino;
	u32 i_generation;
	struct super_block *i_sb;
};

struct inode___mtime {		/* up to 6.6 */
	struct timespec64 i_mtime;
};

struct inode___hidden_mtime {	/* 6.7 to 6.10 */
	struct timespec64 __i_mtime;
};

struct inode___split_mtime {	/* 6.11 and later */
	s64 i_mtime_sec;
	u32 i_mtime_nsec;
};

struct file {
	struct inode *f_inode;
	struct path f_path;
};

typedef struct {
	void *vdso;
} mm_context_t;

/* maple tree: 6.1 and later. lib/maple_tree.c describes nodes and their encoding. */
struct maple_tree {
	void *ma_root;
};

struct maple_range_64 {
	void *parent;
	unsigned long pivot[15];
	void *slot[16];
};

struct maple_arange_64 {
	void *parent;
	unsigned long pivot[9];
	void *slot[10];
};

struct mm_struct {
	struct maple_tree mm_mt;
	unsigned long start_code;
	struct file *exe_file;
	mm_context_t context;
};

/* rb tree of VMAs: before 6.1. */
struct rb_node___rb {
	struct rb_node___rb *rb_right, *rb_left;
};

struct rb_root___rb {
	struct rb_node___rb *rb_node;
};

struct mm_struct___rb {
	struct rb_root___rb mm_rb;
};

struct vm_area_struct___rb {
	unsigned long vm_start, vm_end;
	struct rb_node___rb vm_rb;
};

struct vm_area_struct {
	unsigned long vm_start, vm_end;
	struct mm_struct *vm_mm;
	unsigned long vm_flags;
	unsigned long vm_pgoff;
	struct file *vm_file;
};

/* Registers as ptrace shows them: x86-64 arch/x86/include/asm/ptrace.h, arm64 user_pt_regs. */
#if defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	u64 regs[31];
	u64 sp;
	u64 pc;
	u64 pstate;
};
struct pt_regs {
	struct user_pt_regs user_regs;
	u64 orig_x0;	/* unused, but the whole is copied: it has to be as long as the kernel's */
	s32 syscallno;
};
#else
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
	unsigned long orig_ax, ip, cs, flags, sp, ss;
};
#endif

#pragma clang attribute pop

#endif
