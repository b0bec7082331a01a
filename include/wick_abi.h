/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* wick_abi.h - every byte that crosses the line between the BPF programs and userspace.
 *
 * Compiled by clang -target bpf and by the host compiler. Only fixed-width integers, no pointers,
 * no hidden padding: each size and each offset that anybody relies on is asserted below. All names
 * start with wk_ or WK_.
 *
 *	tick -> filter -> kernel stack -> user stack -> window (stacks and counts, per CPU) -> drain
 *	file met for the first time -> event ring -> userspace opens it
 */
#ifndef WICK_ABI_H
#define WICK_ABI_H

#ifdef __bpf__
#define WK_ASSERT _Static_assert
#else
#include <linux/types.h>
#include <stddef.h>
#define WK_ASSERT _Static_assert
#endif
#define WK_OFFSET(t, f) __builtin_offsetof(struct t, f)

/* ---- outcomes -------------------------------------------------------------------------------
 *
 * One enum is the counter's index in BPF, the reason in a special frame, and the label in metrics
 * and messages. X(constant, label, text). Over any period
 *	TICKS == RECORDED + IDLE + UNSELECTED + the sum of all LOST_*
 * and of the recorded samples each has exactly one USER_* outcome. The NOTE_* count events that
 * are no tick's fate. Order within a group is free; append only, labels are public.
 */
#define WK_OUTCOMES(X)                                                                             \
	/* what became of a tick */                                                                \
	X(WK_TICKS, "ticks", "perf events that fired")                                             \
	X(WK_RECORDED, "recorded", "sample stored")                                                \
	X(WK_IDLE, "idle", "the idle loop itself")                                                 \
	X(WK_UNSELECTED, "unselected", "outside the selected processes")                           \
	X(WK_LOST_WINDOW_FULL, "window_full", "stack window full")                                 \
	X(WK_LOST_NO_WINDOW, "no_window", "no window for this CPU")                                \
	X(WK_LOST_INTERNAL, "internal", "internal error in the BPF program")                       \
	/* how the user half of a recorded stack ended */                                          \
	X(WK_USER_NONE, "no_user_stack", "kernel thread")                                          \
	X(WK_USER_ROOT, "root", "root reached")                                                    \
	X(WK_USER_NO_REGS, "no_registers", "user registers unavailable")                           \
	X(WK_USER_EXEC, "exec", "inside exec")                                                     \
	X(WK_USER_COMPAT, "32_bit", "32-bit process")                                              \
	X(WK_USER_NO_MAPPING, "no_mapping", "address outside any mapping")                         \
	X(WK_USER_NOT_EXECUTABLE, "not_executable", "return address not in code")                  \
	X(WK_USER_BAD_FRAME, "bad_frame", "broken frame pointer chain")                            \
	X(WK_USER_FAULT, "unreadable_stack", "stack memory unreadable")                            \
	X(WK_USER_DEPTH, "depth", "too many frames")                                               \
	X(WK_USER_NO_INFO, "no_unwind_info", "no unwind info")                                     \
	X(WK_USER_BAD_RULE, "unsupported_rule", "unsupported unwind rule")                         \
	X(WK_USER_INTERNAL, "walk_error", "internal error in the stack walk")                      \
	/* events beside ticks */                                                                  \
	X(WK_CUT, "middle_cut", "middle of the stack left out")                                    \
	X(WK_NOTE_FILES_FULL, "file_table_full", "file table full, frames kept as addresses")      \
	X(WK_NOTE_RING_FULL, "ring_full", "event ring full")                                       \
	X(WK_NOTE_TREE_MISS, "vma_retry", "mapping look-up repeated")                              \
	X(WK_NOTE_CAPTURED, "captured", "stack copied until its unwind rows are there")            \
	X(WK_NOTE_CAPTURE_FULL, "capture_full", "no room to copy a stack, frame pointers used")    \
	X(WK_NOTE_TARGETS_FULL, "targets_full", "fork not followed, too many selected processes")      \
	X(WK_NOTE_CGROUP_UNSEEN, "cgroup_unseen", "new cgroup not announced, event ring full")

enum wk_outcome {
#define WK_ENUM(constant, label, text) constant,
	WK_OUTCOMES(WK_ENUM)
#undef WK_ENUM
		WK_OUTCOME_MAX
};
#define WK_LOST_FIRST WK_LOST_WINDOW_FULL
#define WK_LOST_LAST  WK_LOST_INTERNAL
#define WK_USER_FIRST WK_USER_NONE
#define WK_USER_LAST  WK_USER_INTERNAL

/* ---- frames ---------------------------------------------------------------------------------
 *
 * A frame is one 64-bit word. Its top byte 0xff: a kernel address as it is (also the x86
 * [vsyscall] page). Else the top four bits are a tag:
 *
 *	RAW	user address without a file behind it (anonymous memory: JIT code), 60 bits
 *	FILE	24-bit file id, 36-bit offset in the file: independent of process and ASLR
 *	INTERP	reserved: interpreter frame, 8-bit runtime; the next word is its cookie
 *	MARK	enum wk_outcome of a stop or cut, shown as "[truncated: ...]"
 *	CODE	never from BPF: what userspace makes of RAW, see symbol/process.h
 *
 * The address or offset always lies within the instruction being executed: a return address has
 * been made one less by whoever stored it, the sampled pc and a pc under a signal frame have not.
 * So every look-up is exact, whoever does it. Leaf first.
 */
#define WK_FRAME_TAG_SHIFT 60
#define WK_FRAME_RAW	   0x0ULL
#define WK_FRAME_FILE	   0x1ULL
#define WK_FRAME_INTERP	   0x2ULL
#define WK_FRAME_MARK	   0x3ULL
#define WK_FRAME_CODE	   0x4ULL
#define WK_FRAME_TAG(f)	   ((f) >> WK_FRAME_TAG_SHIFT)
#define WK_FRAME_IS_KERNEL(f) (((f) >> 56) == 0xff)

#define WK_FILE_OFF_BITS 36
#define WK_FILE_OFF_MAX	 ((1ULL << WK_FILE_OFF_BITS) - 1)
#define WK_FILE_ID_MAX	 ((1U << 24) - 1)
#define WK_FRAME_MAKE_FILE(id, off)                                                                \
	(WK_FRAME_FILE << WK_FRAME_TAG_SHIFT | (unsigned long long)(id) << WK_FILE_OFF_BITS | (off))
#define WK_FRAME_FILE_ID(f)    ((__u32)((f) >> WK_FILE_OFF_BITS) & WK_FILE_ID_MAX)
#define WK_FRAME_FILE_OFF(f)   ((f) & WK_FILE_OFF_MAX)
#define WK_FRAME_MAKE_MARK(o)  (WK_FRAME_MARK << WK_FRAME_TAG_SHIFT | (o))
#define WK_FRAME_MARK_OUTCOME(f) ((__u32)(f))

enum {
	WK_FILE_NONE = 0,	/* never a file */
	WK_FILE_VDSO = 1,	/* the [vdso] image; offset from its start */
	WK_FILE_FIRST = 2,	/* ids that userspace hands out through the free list */
};

/* ---- limits ---------------------------------------------------------------------------------
 * A stack keeps WK_LEAF_FRAMES at the leaf side and, when deeper, the last WK_ROOT_FRAMES at the
 * root side with a WK_CUT mark between: a ring, put in order by wk_stack users (see wk_stack).
 */
enum {
	WK_KERNEL_FRAMES = 127,		/* PERF_MAX_STACK_DEPTH, the kernel's own default */
	WK_LEAF_FRAMES = 1024,
	WK_ROOT_FRAMES = 256,		/* power of two */
	WK_USER_FRAMES = WK_LEAF_FRAMES + WK_ROOT_FRAMES,
	WK_COMM_LEN = 16,		/* TASK_COMM_LEN */
	WK_PATH_BYTES = 1024,
};

/* ---- windows --------------------------------------------------------------------------------
 *
 * Two halves; BPF fills the active one while userspace drains the other. Each half has a region
 * per CPU, written by that CPU alone, so nothing is locked: entries are bump-allocated from
 * words[] and found again through a small cache of content hashes. The cache may forget (the
 * entry is then stored twice, userspace adds up), it never confuses: 96 bits of a keyed hash are
 * compared. A region is cleared by userspace (used, slots) before it becomes active again.
 */
enum wk_entry_type { WK_ENTRY_STACK = 1, WK_ENTRY_SAMPLE = 2 };

struct wk_entry {		/* heads each entry; words[0] starts the first one */
	__u8 type;		/* enum wk_entry_type */
	__u8 pad;
	__u16 words;		/* of the whole entry, this head included */
	__u32 total;		/* STACK: frames walked, more than stored if the middle was cut */
};

/* STACK: wk_entry, then words-1 frames in walking order. When total > WK_LEAF_FRAMES the frames
 * from index WK_LEAF_FRAMES on are a ring of WK_ROOT_FRAMES: frame n lies at
 * WK_LEAF_FRAMES + (n - WK_LEAF_FRAMES) % WK_ROOT_FRAMES. */

struct wk_sample {		/* SAMPLE */
	struct wk_entry entry;
	__u64 count;		/* ticks */
	__u64 weight;		/* sum of the events' own periods */
	/* from here on: the key, hashed and compared as a whole */
	__u64 start_time;	/* of the process, ns since boot; with exec_id tells incarnations apart */
	__u64 exec_id;		/* task->self_exec_id */
	__u64 cgroup_id;	/* inode number of the cgroup's directory */
	__u32 pid;		/* process id in wick's pid namespace; 0: not visible from it */
	__u32 tid;		/* thread id likewise; 0 unless threads are told apart */
	__u32 global_pid;	/* process id in the initial namespace: identity only */
	__u16 user_outcome;	/* WK_USER_* */
	__u16 pad;
	__u32 user_stack;	/* index in words[] of a STACK entry, WK_NO_STACK for none */
	__u32 kernel_stack;
	char comm[WK_COMM_LEN];	/* of the thread */
	__u32 exe;		/* wk_config.keep_exe: id of the executable's file, WK_EXE_KERNEL for one
				 * of the kernel's threads, 0 if it isn't known; else 0 */
	__u32 uid;		/* wk_config.keep_exe: real user id in the initial namespace, else 0 */
};
#define WK_NO_STACK 0xffffffffU
#define WK_EXE_KERNEL 0xffffffffU	/* no file's id: those have 24 bits */
#define WK_SAMPLE_KEY_OFF  WK_OFFSET(wk_sample, start_time)
#define WK_SAMPLE_KEY_SIZE (sizeof(struct wk_sample) - WK_SAMPLE_KEY_OFF)

struct wk_slot {
	__u64 hash;		/* 0 with ref 0: free */
	__u32 hash2;
	__u32 ref;		/* index in words[] + 1 */
};

enum { WK_SLOTS = 2048, WK_SLOT_WAYS = 4 };

struct wk_region {
	__u32 used;		/* words in use */
	__u32 pad;
	__u64 pad2[7];
	struct wk_slot slots[WK_SLOTS];
	__u64 words[];		/* wk_config.region_words of them, then room for one largest entry */
};

/* ---- files ---------------------------------------------------------------------------------- */

struct wk_file_key {		/* one version of one file: a rewrite in place changes the mtime */
	__u64 ino;
	__u64 mtime_ns;
	__u32 dev;		/* kernel-internal: major << 20 | minor */
	__u32 generation;
};

/* dev of what may be a copy of a file's code: anonymous code beside a mapping of the file's, as programs have
 * that move their text onto huge pages. Of one process: ino is where it starts, generation its pages,
 * mtime_ns tells the process; the event's vm_* and pgoff are those of the mapping beside it. It is that code
 * if its bytes are the file's at the same distance. */
#define WK_DEV_COPIED 0xffffffffU

/* As dev: no file, but what a process has made itself. Userspace puts unwind rows there, by address, if its
 * code keeps no frame pointers. ino is the process's start_time, mtime_ns its exec_id, generation its pid,
 * as in struct wk_sample. */
#define WK_DEV_GENERATED 0xfffffffeU

/* Event ring. Each record starts with its type. */
enum wk_event_type {
	WK_EVENT_FILE = 1,	/* struct wk_file_event */
	WK_EVENT_PRESSURE = 2,	/* the type alone: a region of the active half is half full, drain now */
	WK_EVENT_CGROUP = 3,	/* struct wk_cgroup_event */
};

/* A file was met. Userspace opens it now: through the mapping of the process that was running, else
 * by its path; either way checks that it is the key's file. */
struct wk_file_event {
	__u32 type;
	__u32 id;
	struct wk_file_key key;
	__u64 vm_start, vm_end;	/* of the mapping, as in /proc/PID/map_files */
	__u64 pgoff;		/* file offset of vm_start, bytes */
	__u64 start_time;	/* of the process, as in wk_sample */
	__u32 pid, tid;		/* in wick's namespace; 0: not visible */
	__u32 path_len;		/* bytes used in path */
	__u32 pad;
	char path[WK_PATH_BYTES];/* names from the file up to its file system's root, each with a NUL */
};

/* A cgroup was made, in the hierarchy that samples go by. Announced so that what a short-lived container
 * is called is known when it has gone. */
struct wk_cgroup_event {
	__u32 type;
	__u32 path_len;		/* bytes used in path, its NUL included; a longer path is cut */
	__u64 id;		/* as in wk_sample */
	char path[WK_PATH_BYTES];/* from the hierarchy's root, "/docker/3f2a..." */
};

/* ---- copied stacks --------------------------------------------------------------------------
 *
 * A walk that meets a file whose unwind rows are still being compiled is not given up: what is
 * needed to go on is copied to the capture ring, and userspace walks on by the same step functions
 * once the rows are there. Such a tick counts as recorded; its USER_* outcome is userspace's to add.
 *
 * Tests of the walk ask for more (wk_config.ground_truth): each tick's registers and stack as they were
 * when the walk began, together with the frames and the outcome that it came to. `walked` tells such
 * a record; its sample is stored as well.
 */
enum {
	WK_CAPTURE_VMAS = 128,		/* executable mappings that the stack's words point into */
	WK_CAPTURE_CODE = 2,
	WK_CAPTURE_FRAMES = WK_LEAF_FRAMES,	/* walked before the capture; deeper ones aren't captured */
	WK_RED_ZONE = 128,		/* bytes below sp that code may use (x86-64 psABI 3.2.2) */
	WK_CAPTURE_CHUNK = 4096,	/* read at a time, aligned */
	WK_CAPTURE_STACK = 64 << 10,	/* bytes from the red zone upwards, at most to the end of the mapping */
};

struct wk_capture_vma {
	__u64 start, end;
	__u64 frame;			/* frame word of start, as in struct wk_sample's stacks */
};

/* Code that a leaf without rows is judged by (step.h): from pc - 1, and before what may be its return
 * address. */
struct wk_capture_code {
	__u64 addr;			/* 0: could not be read */
	__u8 bytes[8];
};

struct wk_capture {
	struct wk_sample sample;	/* without stacks and outcome */
	__u64 regs[20];			/* pc, sp, fp, lr, then 16 general registers by DWARF number */
	__u64 bx_at;			/* from here on as in struct wk_regs */
	__u32 exact, leaf, kept, chained, guessed;
	__u32 pad;
	__u32 nr_kernel, nr_user, nr_vmas, stack_bytes;
	__u64 kernel[WK_KERNEL_FRAMES + 1];
	__u64 user[WK_CAPTURE_FRAMES];
	struct wk_capture_vma vmas[WK_CAPTURE_VMAS];
	struct wk_capture_code code[WK_CAPTURE_CODE];
	__u64 stack_start;
	__u32 missing;			/* bit n: chunk n of the stack could not be read */
	__u32 walked;			/* wk_config.ground_truth: user[] is the walk of all this */
	__u8 stack[WK_CAPTURE_STACK];	/* the record ends after stack_bytes */
};

/* ---- selection ------------------------------------------------------------------------------ */

/* Map value; the key is a process id (-p) or thread id (-t) of wick's pid namespace. */
struct wk_target {
	__u32 inherit;		/* its forks are targets too */
	__u32 after_exec;	/* counts only once it has executed a program (-- COMMAND) */
};

/* Verdicts of userspace: nothing of this cgroup (itself, not those below it), or of a process under one
 * of its threads' names, is sampled. Such ticks are WK_UNSELECTED, before a stack is walked. */
struct wk_process_key {
	__u64 start_time, exec_id, cgroup_id;	/* these as in wk_sample */
	__u32 global_pid, uid;
	char comm[WK_COMM_LEN];			/* padded with NULs */
};

struct wk_range {
	__u64 start, end;	/* [start, end) */
};

/* Where the kernel's interrupt entry code lies; all 0: unknown. A swapper stack without such a frame is idle. */
struct wk_marks {
	struct wk_range irq_text, softirq_text;
};

/* ---- configuration: read-only data, fixed before load, so that the verifier prunes ---------- */

struct wk_config {
	__u64 hash_seed;	/* odd */
	__u64 pac_mask;		/* arm64: bits of a return address that hold its signature */
	__u64 pidns_ino;	/* inode of wick's pid namespace */
	__u64 cgroup_id;	/* only this cgroup and those below it; 0: all */
	__u32 pidns_initial;	/* it is the machine's own: every process has its number there */
	__u32 region_words;
	__s32 cgroup_subsys;	/* v1 subsystem index whose hierarchy identifies cgroups; -1: v2 */
	__u8 by_pid, by_tid;	/* look wick's targets up by process, by thread; neither: all */
	__u8 keep_tid;		/* samples of threads are told apart by id, not just by name */
	__u8 keep_idle;
	__u8 capture;		/* somebody compiles rows and reads the capture ring */
	__u8 ground_truth;	/* tests: every stack is copied, then walked, and both are sent */
	__u8 keep_exe;		/* samples name their executable and user */
	__u8 skip;		/* look verdicts up */
	__u32 thread_size;	/* kernel stack bytes, where bpf_task_pt_regs is missing */
	__u32 page_shift;	/* log2 of the page size */
	__u32 pad2;
};

WK_ASSERT(sizeof(struct wk_entry) == 8, "an entry's head is one word");
WK_ASSERT(sizeof(struct wk_sample) == 96, "samples are whole words");
WK_ASSERT(WK_OFFSET(wk_sample, start_time) == 24, "the key starts here");
WK_ASSERT(WK_OFFSET(wk_sample, comm) == 72, "no hidden padding");
WK_ASSERT(sizeof(struct wk_cgroup_event) == 16 + WK_PATH_BYTES, "no hidden padding");
WK_ASSERT(sizeof(struct wk_process_key) == 48, "no padding in a map key");
WK_ASSERT(sizeof(struct wk_slot) == 16, "four slots to a cache line");
WK_ASSERT(WK_OFFSET(wk_region, slots) == 64, "slots start on a cache line");
WK_ASSERT(WK_OFFSET(wk_region, words) % 64 == 0, "so do words");
WK_ASSERT(sizeof(struct wk_file_key) == 24, "no padding in a map key");
WK_ASSERT(sizeof(struct wk_file_event) == 80 + WK_PATH_BYTES, "no hidden padding");
WK_ASSERT(WK_OFFSET(wk_file_event, path) == 80, "no hidden padding");
WK_ASSERT(WK_OFFSET(wk_capture, kernel) == sizeof(struct wk_sample) + 160 + 8 + 40, "no hidden padding");
WK_ASSERT(WK_OFFSET(wk_capture, stack) % 8 == 0, "the copied stack is aligned");
WK_ASSERT(sizeof(struct wk_target) == 8, "no hidden padding");
WK_ASSERT(sizeof(struct wk_config) == 64, "no hidden padding");
WK_ASSERT((WK_ROOT_FRAMES & (WK_ROOT_FRAMES - 1)) == 0, "ring index is a mask");
WK_ASSERT(WK_OUTCOME_MAX <= 64, "fits one counter array");

#endif
