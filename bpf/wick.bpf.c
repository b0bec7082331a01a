// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/* wick.bpf.c - from a perf tick to a sample in the stack window.
 *
 *	wick_tick   filter, kernel stack, user registers ──tail call──►
 *	wick_walk   WALK_STEP frames of the user stack ──itself until the root──►
 *	wick_store  stacks and count into this CPU's region
 *	wick_capture instead, when rows are missing that are being compiled: copies the stack
 *
 * Every tick ends in exactly one counter (enum wk_outcome); no path returns in silence.
 */
#include "vmlinux.h"

#define NULL ((void *)0)
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "wick_abi.h"
#include "wick_file.h"

#define WK_READ_USER(dst, len, addr) bpf_probe_read_user(dst, len, (void *)(addr))
#define WK_READ_CODE		     WK_READ_USER
#include "step.h"

#include "maps.h"
#include "task.h"
#include "vma.h"
#include "walk.h"
#include "store.h"
#include "capture.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Registers of the context are read one by one at fixed offsets: a load that the compiler merges or
 * offsets becomes a "modified context pointer", which the verifier refuses. Offsets: the user
 * pt_regs at the head of struct bpf_perf_event_data (uapi/linux/bpf_perf_event.h), then
 * sample_period. */
#define CTX_READ(ctx, off)                                                                         \
	({                                                                                         \
		u64 v_;                                                                            \
		asm volatile("%0 = *(u64 *)(%1 + %2)" : "=r"(v_) : "r"(ctx), "i"(off));           \
		v_;                                                                                \
	})
#if defined(__TARGET_ARCH_arm64)
enum { CTX_SP = 248, CTX_PC = 256, CTX_MODE = 264, CTX_FP = 232, CTX_PERIOD = 272 };
#define MODE_IS_USER(m)	  (((m) & 0xf) == 0)	/* PSR_MODE_EL0t */
#define MODE_IS_COMPAT(m) ((m) & 0x10)		/* PSR_MODE32_BIT */
#else
enum { CTX_FP = 32, CTX_PC = 128, CTX_MODE = 136, CTX_SP = 152, CTX_PERIOD = 168 };
#define MODE_IS_USER(m)	  (((m) & 3) == 3)	/* privilege level in cs */
#define MODE_IS_COMPAT(m) (((m) & 0xffff) == 0x23) /* __USER32_CS */
#endif

static __always_inline bool in_range(const volatile struct wk_range *r, u64 addr)
{
	return addr >= r->start && addr < r->end;
}

/* The idle task does interrupt work, which is somebody's time, and idles. Interrupt entry code and
 * softirqs lie in sections of their own; a swapper stack without a frame there is the idle loop. */
__noinline u32 is_idle_loop(void)
{
	struct walk *w = this_walk();

	if (!w)
		return 1;
	for (u32 i = 0; i < WK_KERNEL_FRAMES; i++) {
		if (i >= w->nr_kernel)
			break;
		if (in_range(&marks.irq_text, w->kernel[i]) ||
		    in_range(&marks.softirq_text, w->kernel[i]))
			return false;
	}
	return true;
}

struct bpf_perf_event_data {	/* by its name the verifier knows a context; read as CTX_READ says */
	u64 sample_period;
};

/* Kernel frames; all but the first are return addresses (wick_abi.h: minus one). */
__noinline u32 kernel_stack(struct bpf_perf_event_data *ctx)
{
	struct walk *w = this_walk();
	long n;

	if (!w)
		return 0;
	n = bpf_get_stack(ctx, w->kernel, WK_KERNEL_FRAMES * sizeof(u64), 0);

	w->nr_kernel = n > 0 ? (u32)n / sizeof(u64) : 0;
	hash_start(w->kernel_hash);
	for (u32 i = 0; i < WK_KERNEL_FRAMES; i++) {
		if (i >= w->nr_kernel)
			break;
		if (i)
			w->kernel[i]--;
		hash_word(w->kernel_hash, w->kernel[i]);
	}
	return w->nr_kernel;
}

static __always_inline bool fill_identity(struct walk *w, struct task_struct *t)
{
	struct wk_sample *s = &w->sample;
	u32 tid = pid_in_namespace(BPF_CORE_READ(t, thread_pid));
	struct cgroup *cgroup = task_cgroup(t);

	s->pid = pid_in_namespace(thread_group(t));
	s->global_pid = BPF_CORE_READ(t, tgid);
	s->start_time = BPF_CORE_READ(t, group_leader, start_boottime);
	s->exec_id = BPF_CORE_READ(t, self_exec_id);
	s->cgroup_id = cgroup_id(cgroup);
	s->tid = cfg.keep_tid ? tid : 0;
	s->pad = 0;
	s->exe = WK_FILE_NONE;	/* wick_walk looks it up */
	if (cfg.keep_exe && BPF_CORE_READ(t, flags) & PF_KTHREAD)
		s->exe = WK_EXE_KERNEL;
	s->uid = cfg.keep_exe ? (u32)bpf_get_current_uid_gid() : 0;
	BPF_CORE_READ_INTO(&s->comm, t, comm);
	if (cfg.skip && is_skipped(s))
		return false;
	if ((cfg.by_pid || cfg.by_tid) &&
	    !(cfg.by_pid && is_target(s->pid)) && !(cfg.by_tid && is_target(tid)))
		return false;
	return !cfg.cgroup_id || in_selected_cgroup(cgroup);
}

/* User registers when the tick hit kernel code: as saved on entry, at the top of the kernel stack. */
static __always_inline u32 saved_registers(struct walk *w, struct task_struct *t)
{
	struct pt_regs regs, *p;
	u64 mode, nr;

	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		p = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	else
		p = BPF_CORE_READ(t, stack) + cfg.thread_size - bpf_core_type_size(struct pt_regs);
	if (bpf_probe_read_kernel(&regs, sizeof(regs), p))
		return WK_USER_NO_REGS;
#if defined(__TARGET_ARCH_arm64)
	w->regs.pc = regs.user_regs.pc;
	w->regs.sp = regs.user_regs.sp;
	w->regs.fp = regs.user_regs.regs[29];
	w->regs.lr = regs.user_regs.regs[30];
	mode = regs.user_regs.pstate;
	nr = (u32)regs.syscallno;
	w->in_exec = nr == 221 || nr == 281;
	w->regs.exact = (s32)nr < 0;
#else
	w->regs.pc = regs.ip;
	w->regs.sp = regs.sp;
	w->regs.fp = regs.bp;
	w->regs.general[0] = regs.ax;
	w->regs.general[1] = regs.dx;
	w->regs.general[2] = regs.cx;
	w->regs.general[3] = regs.bx;
	w->regs.general[4] = regs.si;
	w->regs.general[5] = regs.di;
	w->regs.general[8] = regs.r8;
	w->regs.general[9] = regs.r9;
	w->regs.general[10] = regs.r10;
	w->regs.general[11] = regs.r11;
	w->regs.general[12] = regs.r12;
	w->regs.general[13] = regs.r13;
	w->regs.general[14] = regs.r14;
	w->regs.general[15] = regs.r15;
	mode = regs.cs;
	nr = regs.orig_ax;
	w->in_exec = nr == 59 || nr == 322;	/* execve, execveat */
	/* in a system call pc is behind the syscall instruction, like a return address */
	w->regs.exact = (s64)nr < 0;
#endif
	if (!MODE_IS_USER(mode))
		return WK_USER_NO_REGS;
	return MODE_IS_COMPAT(mode) ? WK_USER_COMPAT : 0;
}

static __always_inline void context_registers(void *ctx, struct wk_regs *r)
{
	r->pc = CTX_READ(ctx, CTX_PC);
	r->sp = CTX_READ(ctx, CTX_SP);
	r->fp = CTX_READ(ctx, CTX_FP);
#if defined(__TARGET_ARCH_arm64)
	r->lr = CTX_READ(ctx, 240);
#else
	/* struct pt_regs to DWARF numbers (psABI figure 3.36) */
	r->general[0] = CTX_READ(ctx, 80);
	r->general[1] = CTX_READ(ctx, 96);
	r->general[2] = CTX_READ(ctx, 88);
	r->general[3] = CTX_READ(ctx, 40);
	r->general[4] = CTX_READ(ctx, 104);
	r->general[5] = CTX_READ(ctx, 112);
	r->general[8] = CTX_READ(ctx, 72);
	r->general[9] = CTX_READ(ctx, 64);
	r->general[10] = CTX_READ(ctx, 56);
	r->general[11] = CTX_READ(ctx, 48);
	r->general[12] = CTX_READ(ctx, 24);
	r->general[13] = CTX_READ(ctx, 16);
	r->general[14] = CTX_READ(ctx, 8);
	r->general[15] = CTX_READ(ctx, 0);
#endif
}

/* 0 when the user stack can be walked, else its outcome. */
static __always_inline u32 start_user(void *ctx, struct walk *w, struct task_struct *t, u64 mode)
{
	w->mm = (u64)BPF_CORE_READ(t, mm);
	w->in_exec = 0;
	if (!w->mm || BPF_CORE_READ(t, flags) & (PF_KTHREAD | PF_IO_WORKER))
		return WK_USER_NONE;
	w->regs.leaf = w->regs.exact = 1;
	w->regs.kept = w->regs.chained = w->regs.guessed = 0;
	w->regs.bx_at = 0;
	w->regs.pac_mask = cfg.pac_mask;
	if (!MODE_IS_USER(mode))
		return saved_registers(w, t);
	context_registers(ctx, &w->regs);
	return MODE_IS_COMPAT(mode) ? WK_USER_COMPAT : 0;
}

SEC("perf_event")
int wick_tick(void *ctx)
{
	struct task_struct *t = (void *)bpf_get_current_task();
	struct walk *w = this_walk();
	u64 mode = CTX_READ(ctx, CTX_MODE);

	count(WK_TICKS);
	if (!w) {
		count(WK_LOST_INTERNAL);
		return 0;
	}
	if (!fill_identity(w, t)) {
		count(WK_UNSELECTED);
		return 0;
	}
	w->nr_kernel = w->nr_user = w->nr_vmas = w->calls = 0;
	w->no_capture = !cfg.capture;
	if (!MODE_IS_USER(mode))
		kernel_stack(ctx);
	if (!w->sample.global_pid && !cfg.keep_idle && is_idle_loop()) {
		count(WK_IDLE);
		return 0;
	}
	hash_start(w->hash);
	w->sample.user_outcome = start_user(ctx, w, t, mode);
	w->copy = COPY_NONE;
	if (cfg.ground_truth && !w->sample.user_outcome)
		bpf_tail_call(ctx, &programs, PROG_CAPTURE);
	bpf_tail_call(ctx, &programs,
		      w->sample.user_outcome == WK_USER_NONE ? PROG_STORE : PROG_WALK);
	count(WK_LOST_INTERNAL);
	return 0;
}

/* Not an outcome: the rows of the file at hand are being compiled. */
enum { WALK_CAPTURE = WK_OUTCOME_MAX };

/* One frame: names pc, then finds the caller. 0 to go on, else the stack's outcome. */
__noinline u32 walk_frame(void)
{
	struct walk *w = this_walk();
	struct vma_entry *v = NULL;
	u64 addr;
	u32 r = WK_USER_NO_INFO, n;

	if (!w)
		return WK_USER_INTERNAL;
	addr = w->regs.pc - !w->regs.exact;
	n = vma_of(w, addr);
	if (n < VMA_CACHE)
		v = &w->vmas[BOUND(n, VMA_CACHE)];
	if (!v || !v->exec) {
		if (w->in_exec)		/* old registers, new memory: nothing is true */
			return WK_USER_EXEC;
		if (!w->nr_user)	/* keep the leaf, whatever it is */
			push_frame(w, addr & ~(0xfULL << WK_FRAME_TAG_SHIFT));
		return v ? WK_USER_NOT_EXECUTABLE : WK_USER_NO_MAPPING;
	}
	if (v->file.rows == WK_ROWS_COMING && v->file.id && !w->no_capture)
		return WALK_CAPTURE;	/* this frame is pushed when the walk goes on */
	__builtin_memset(&w->row, 0, sizeof(w->row));
	if (v->file.rows == WK_ROWS_HERE)
		r = find_row(n, v->frame == v->start ? addr : WK_FRAME_FILE_OFF(v->frame) + (addr - v->start));
	/* nobody called a signal trampoline: its address isn't a return address */
	push_frame(w, v->frame + (addr - v->start) + (w->row.cfa == WK_CFA_SIGNAL && !w->regs.leaf));
	if (w->sample.user_outcome == WK_USER_COMPAT)
		return WK_USER_COMPAT;
	if (r && r != WK_USER_NO_INFO)
		return r;
	return wk_find_caller(&w->regs, !r, w->row, &w->side);
}

static __always_inline u32 known_file(struct file *file)
{
	struct wk_file_key key = {};
	const struct wk_file *known;

	file_key(file, &key);
	known = bpf_map_lookup_elem(&files, &key);
	return known ? known->id : WK_FILE_NONE;
}

/* The id of the current process's executable. When it is new it is met by its code, as any file is, and
 * announced. Global, so verified once. */
__noinline u32 exe_file(void)
{
	struct walk *w = this_walk();
	struct mm_struct *mm;
	struct file *file;
	u32 id;

	if (!w || !w->mm)
		return WK_FILE_NONE;
	mm = (void *)w->mm;
	file = BPF_CORE_READ(mm, exe_file);
	if (!file)
		return WK_FILE_NONE;
	id = known_file(file);
	if (id)
		return id;
	vma_learn(BPF_CORE_READ(mm, start_code));
	return known_file(file);
}

SEC("perf_event")
int wick_walk(void *ctx)
{
	struct walk *w = this_walk();
	u32 r = 0;

	if (!w) {
		count(WK_LOST_INTERNAL);
		return 0;
	}
	if (cfg.keep_exe && !w->calls)
		w->sample.exe = exe_file();
	for (u32 i = 0; i < WALK_STEP && !r; i++)
		r = walk_frame();
	if (!r && ++w->calls >= WALK_CALLS)
		r = WK_USER_DEPTH;
	if (r && r != WALK_CAPTURE)
		w->sample.user_outcome = r;
	bpf_tail_call(ctx, &programs, r == WALK_CAPTURE ? PROG_CAPTURE : r ? PROG_STORE : PROG_WALK);
	count(WK_LOST_INTERNAL);
	return 0;
}

SEC("perf_event")
int wick_capture(void *ctx)
{
	struct walk *w = this_walk();

	if (w && cfg.ground_truth && w->copy == COPY_NONE) {
		w->copy = capture_state(w) ? COPY_MADE : COPY_GONE;
	} else if (w && !w->no_capture) {
		w->copy = COPY_GONE;
		w->sample.count = 1;
		w->sample.weight = CTX_READ(ctx, CTX_PERIOD);
		if (capture_walk(w)) {
			count(WK_RECORDED);
			count(WK_NOTE_CAPTURED);
			return 0;
		}
		w->no_capture = 1;
	}
	bpf_tail_call(ctx, &programs, PROG_WALK);
	count(WK_LOST_INTERNAL);
	return 0;
}

SEC("perf_event")
int wick_store(void *ctx)
{
	struct walk *w = this_walk();

	if (w && cfg.ground_truth && w->copy == COPY_MADE)
		capture_send(w, 1);
	count(w ? store_walk(w, CTX_READ(ctx, CTX_PERIOD)) : WK_LOST_INTERNAL);
	return 0;
}

/* A target's fork becomes a target (--inherit). args: parent, child (include/trace/events/sched.h). */
SEC("raw_tp/sched_process_fork")
int wick_fork(u64 *args)
{
	struct task_struct *parent = (void *)args[0], *child = (void *)args[1];
	u32 from = cfg.by_tid ? pid_in_namespace(BPF_CORE_READ(parent, thread_pid)) :
				pid_in_namespace(thread_group(parent));
	u32 to = cfg.by_tid ? pid_in_namespace(BPF_CORE_READ(child, thread_pid)) :
			      pid_in_namespace(thread_group(child));
	const struct wk_target *t = bpf_map_lookup_elem(&targets, &from);
	struct wk_target copy;

	if (!t || !t->inherit || !to || to == from)
		return 0;
	copy = *t;
	if (bpf_map_update_elem(&targets, &to, &copy, BPF_ANY))
		count(WK_NOTE_TARGETS_FULL);
	return 0;
}

/* The command of `-- COMMAND` has been started: its samples count from here. args: task, old pid,
 * binprm. */
SEC("raw_tp/sched_process_exec")
int wick_exec(u64 *args)
{
	u32 pid = pid_in_namespace(thread_group((struct task_struct *)args[0]));
	struct wk_target *t = bpf_map_lookup_elem(&targets, &pid);

	if (t)
		t->after_exec = 0;
	return 0;
}

/* A dead target's id may be given to a stranger. */
SEC("raw_tp/sched_process_exit")
int wick_exit(u64 *args)
{
	struct task_struct *t = (void *)args[0];
	u32 tid = pid_in_namespace(BPF_CORE_READ(t, thread_pid));
	u32 pid = pid_in_namespace(thread_group(t));

	if (cfg.by_tid)
		bpf_map_delete_elem(&targets, &tid);
	else if (!BPF_CORE_READ(t, signal, live.counter))	/* its last thread */
		bpf_map_delete_elem(&targets, &pid);
	return 0;
}

/* A cgroup has been made; of all hierarchies only the one that samples go by is of interest. args: cgroup,
 * path from the hierarchy's root (include/trace/events/cgroup.h). */
SEC("raw_tp/cgroup_mkdir")
int wick_cgroup(u64 *args)
{
	struct cgroup *made = (void *)args[0];
	struct cgroup *mine = task_cgroup((struct task_struct *)bpf_get_current_task());
	struct wk_cgroup_event *e;
	long n;

	if (BPF_CORE_READ(made, root) != BPF_CORE_READ(mine, root))
		return 0;
	e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	if (!e) {
		count(WK_NOTE_CGROUP_UNSEEN);
		return 0;
	}
	n = bpf_probe_read_kernel_str(e->path, sizeof(e->path), (void *)args[1]);
	e->type = WK_EVENT_CGROUP;
	e->path_len = n > 0 ? n : 0;
	e->id = cgroup_id(made);
	bpf_ringbuf_submit(e, 0);
	return 0;
}
