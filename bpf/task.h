/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* task.h - who is running: process ids as wick's pid namespace sees them, cgroup ids, targets. */
#ifndef WICK_TASK_H
#define WICK_TASK_H

#define PF_KTHREAD   0x00200000	/* include/linux/sched.h */
#define PF_IO_WORKER 0x00000010	/* io_uring worker: has an mm, never runs user code */

enum { PIDNS_DEPTH = 8 };	/* the kernel allows 32; containers in containers have 3 */

/* The number of a struct pid in wick's namespace, 0 if it isn't in it (pid_nr_ns()). */
static __noinline u32 pid_in_namespace(struct pid *p)
{
	u32 level = BPF_CORE_READ(p, level);
	struct upid *up = (void *)p + bpf_core_field_offset(struct pid, numbers);

	if (cfg.pidns_initial)
		return BPF_CORE_READ(up, nr);
	for (u32 i = 0; i < PIDNS_DEPTH && i <= level; i++) {
		if (BPF_CORE_READ(up, ns, ns.inum) == (u32)cfg.pidns_ino)
			return BPF_CORE_READ(up, nr);
		up = (void *)up + bpf_core_type_size(struct upid);
	}
	return 0;
}

static __always_inline struct pid *thread_group(struct task_struct *t)
{
	return BPF_CORE_READ(t, signal, pids[PIDTYPE_TGID]);
}

/* The cgroup of a task in the hierarchy that wick goes by: the v2 one, or that of a v1 controller
 * on hosts whose containers have no v2 cgroup. */
static __always_inline struct cgroup *task_cgroup(struct task_struct *t)
{
	struct css_set *set = BPF_CORE_READ(t, cgroups);
	struct cgroup_subsys_state *css;
	void *at;

	if (cfg.cgroup_subsys < 0)
		return BPF_CORE_READ(set, dfl_cgrp);
	/* not within one CO-RE read: that would relocate cfg as well */
	at = (void *)set + bpf_core_field_offset(struct css_set, subsys) +
	     (cfg.cgroup_subsys & 15) * sizeof(css);
	if (bpf_probe_read_kernel(&css, sizeof(css), at))
		return NULL;
	return BPF_CORE_READ(css, cgroup);
}

static __always_inline u64 cgroup_id(struct cgroup *c)
{
	return BPF_CORE_READ(c, kn, id);
}

enum { CGROUP_DEPTH = 24 };	/* kubelet's deepest trees have about ten levels */

static __noinline bool in_selected_cgroup(struct cgroup *c)
{
	for (int i = 0; i < CGROUP_DEPTH; i++) {
		struct cgroup_subsys_state *up;

		if (!c)
			return false;
		if (cgroup_id(c) == cfg.cgroup_id)
			return true;
		up = BPF_CORE_READ(c, self.parent);
		if (!up)
			return false;
		c = BPF_CORE_READ(up, cgroup);
	}
	return false;
}

static __always_inline bool is_target(u32 id)
{
	const struct wk_target *t = bpf_map_lookup_elem(&targets, &id);

	return t && !t->after_exec;
}

/* Whether userspace has turned the current task down (struct wk_process_key). */
static __always_inline bool is_skipped(const struct wk_sample *s)
{
	struct wk_process_key key = {
		.start_time = s->start_time,
		.exec_id = s->exec_id,
		.cgroup_id = s->cgroup_id,
		.global_pid = s->global_pid,
		.uid = s->uid,
	};

	if (bpf_map_lookup_elem(&skipped_cgroups, &key.cgroup_id))
		return true;
	/* not the bytes of task->comm: behind its end are those of longer names before */
	if (bpf_get_current_comm(key.comm, sizeof(key.comm)))
		return false;
	return bpf_map_lookup_elem(&skipped_processes, &key);
}

#endif
