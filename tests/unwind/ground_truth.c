/* ground_truth.c - compares the stacks that BPF walks with libdwfl's, for the same ticks.
 *
 *	ground_truth [-f HZ] [-d SECONDS] [-n SHOWN] [--] COMMAND [ARG...]
 *
 * Runs the command, samples it and what it starts (struct sampler_options, ground_truth): of every tick
 * come registers and stack as they were, and the frames and the outcome that the walk of wick came to.
 * When the command has ended, or SECONDS are over, each stack is unwound a second time by libdwfl over
 * the copied registers and bytes, with modules made from the mappings of that tick, and a third time by
 * replay(), the walk of stacks that wait for their rows. Nothing of wick is used to find libdwfl's
 * frames but the copy, the list of mappings and the open files: not its ELF reader, nor its rows.
 *
 * Frames are compared as addresses inside the instruction (return addresses less one). What counts:
 *	whole	libdwfl came to the outermost frame: same frames, same length, and wick says root
 *	prefix	libdwfl can't go on: all its frames must be the first ones of wick. Why it can't:
 *		no CFI (JIT code, hand-written assembly, musl), a switch of stacks that CFI doesn't
 *		describe (Go, landing exceptions), the copy ends (64 KiB; another stack above a
 *		signal handler), or it is lost: an error, or an end that isn't the outermost frame
 * From the first frame without CFI on libdwfl guesses by frame pointers. That is no proof, but where the
 * two still agree up to libdwfl's end is counted beside ("by frame pointers").
 *
 * A stack is rooted if wick's outcome is root and its last frame is an outermost one by other evidence:
 * libdw finds the return address undefined there, or it is at the file's entry point, or its
 * symbol is one of those below, or libdwfl ends at it too, with a frame pointer of zero, or it is clone's
 * child about to begin. Samples inside exec have no user stack and are left out.
 *
 * Output: lines "name value", and up to SHOWN stacks of a kind that differ or are truncated. Exit
 * status 0 if something was compared, 1 if not, 2 on usage. Judging the figures is the caller's (ground_truth.py).
 */
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <gelf.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "base/map.h"
#include "collect/replay.h"
#include "collect/unwinder.h"
#include "kernel/sampler.h"
#include "proc/child.h"
#include "symbol/files.h"

enum {
	FREQ_DEFAULT = 397,
	SHOWN_DEFAULT = 3,
	SPACES = 16,			/* address spaces that libdwfl knows at a time */
	SPACE_MAPPINGS = 1024,		/* of one of them */
	ENTRY_BYTES = 64,		/* length of _start, more or less */
	CLONE_BYTES = 16,		/* from clone's system call to the child's code */
	RAX = 4,			/* in wk_capture.regs */
	VDSO_BYTES = 64 << 10,
	WORK_MS = 100,
	PAGE = 4096,
	REGS = 17,			/* DWARF numbers 0 to 16 (x86-64 psABI, figure 3.36) */
};
#define KEPT_MAX (2ULL << 30)		/* bytes of copied stacks */

/* ---- recording ------------------------------------------------------------------------------ */

struct recording {
	struct sampler *sampler;
	struct files *files;
	struct unwinder *unwinder;
	struct child child;
	struct wk_capture **kept;
	size_t nkept, cap;
	uint64_t kept_bytes, refused;
	uint64_t counters[WK_OUTCOME_MAX];
};

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int on_file(void *ctx, const struct wk_file_event *event)
{
	struct recording *rec = ctx;
	const struct file *f;
	int r = files_announce(rec->files, event, &f);

	return r ? r : unwinder_file(rec->unwinder, event->id);
}

static int on_capture(void *ctx, const struct wk_capture *c, size_t size)
{
	struct recording *rec = ctx;
	struct wk_capture *copy;
	int r;

	if (!c->walked)
		return unwinder_capture(rec->unwinder, c, size);
	if (rec->kept_bytes + size > KEPT_MAX) {
		rec->refused++;
		return 0;
	}
	copy = malloc(size);
	r = copy ? array_grow(&rec->kept, &rec->cap, rec->nkept + 1, sizeof(*rec->kept)) : -ENOMEM;
	if (r) {
		free(copy);
		return r;
	}
	memcpy(copy, c, size);
	rec->kept[rec->nkept++] = copy;
	rec->kept_bytes += size;
	return 0;
}

static int on_sample(void *ctx, const struct wk_sample *sample, const uint64_t *user, size_t nuser,
		     const uint64_t *kernel, size_t nkernel)
{
	struct recording *rec = ctx;

	(void)kernel;
	(void)nkernel;
	for (size_t i = 0; i < nuser; i++)
		unwinder_used(rec->unwinder, user[i], sample->count);
	return 0;
}

static struct sampler_handler handler(struct recording *rec)
{
	return (struct sampler_handler){
		.ctx = rec, .file = on_file, .capture = on_capture, .sample = on_sample,
	};
}

static int work(struct recording *rec, bool drain)
{
	struct sampler_handler h = handler(rec);
	bool pressure = false;
	int r = sampler_events(rec->sampler, &h, &pressure);

	if (!r)
		r = unwinder_work(rec->unwinder, &h);
	if (!r && (drain || pressure))
		r = sampler_drain(rec->sampler, &h);
	return r;
}

static int record_loop(struct recording *rec, uint64_t seconds)
{
	uint64_t end = now_ms() + seconds * 1000, next_drain = 0;
	int r = 0;

	while (!r && !child_reap(&rec->child) && (!seconds || now_ms() < end)) {
		struct pollfd p[] = {
			{ .fd = sampler_fd(rec->sampler), .events = POLLIN },
			{ .fd = unwinder_fd(rec->unwinder), .events = POLLIN },
		};
		bool drain = now_ms() >= next_drain;

		if (drain)
			next_drain = now_ms() + 1000;
		(void)poll(p, ARRAY_SIZE(p), WORK_MS);
		r = work(rec, drain);
	}
	return r;
}

static int record_open(struct recording *rec, uint32_t freq, struct err *e)
{
	struct sampler_options o = {
		.event = event_clock(), .freq = freq, .by_pid = true, .ground_truth = true,
		.window_bytes = SAMPLER_WINDOW_MAX,
	};
	struct rlimit l;
	int r;

	if (!getrlimit(RLIMIT_NOFILE, &l)) {	/* each space of libdwfl's opens its files again */
		l.rlim_cur = l.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &l);
	}
	r = files_new(SAMPLER_FILES_DEFAULT, &rec->files);
	if (!r)
		r = sampler_open(&o, &rec->sampler, e);
	if (!r)
		r = unwinder_new(rec->sampler, rec->files, UNWINDER_ROWS_MAX, 0, &rec->unwinder);
	return r;
}

static int record(struct recording *rec, char **argv, uint64_t seconds, struct err *e)
{
	struct sampler_handler h = handler(rec);
	int r = child_start(argv, &rec->child, e);

	if (!r)
		r = sampler_add_target(rec->sampler, (uint32_t)rec->child.pid, true, true);
	if (!r)
		r = sampler_start(rec->sampler, e);
	if (!r)
		r = child_go(&rec->child, e);
	if (!r)
		r = record_loop(rec, seconds);
	sampler_stop(rec->sampler);
	if (!r)
		child_stop(&rec->child);
	if (!r)
		r = work(rec, true);
	if (!r)
		r = unwinder_finish(rec->unwinder, &h);
	sampler_counters(rec->sampler, rec->counters);
	for (unsigned int i = 0; i < WK_OUTCOME_MAX; i++)
		rec->counters[i] += unwinder_stats(rec->unwinder)->outcomes[i];
	return r;
}

static void record_done(struct recording *rec)
{
	child_done(&rec->child);
	unwinder_free(rec->unwinder);
	sampler_free(rec->sampler);
	files_free(rec->files);
	for (size_t i = 0; i < rec->nkept; i++)
		free(rec->kept[i]);
	free(rec->kept);
}

/* ---- address spaces, as libdwfl knows them --------------------------------------------------- */

struct mapping {			/* what one of struct wk_capture_vma says, without its gaps */
	uint64_t start, end, frame;
};

/* One load of a file, however many executable mappings it has. */
struct load {
	uint32_t id;
	uint64_t bias;
};

/* A process, as far as its stacks have shown: a capture lists only the mappings that its own stack
 * mentions, so later ones may add to it. */
struct space {
	Dwfl *dwfl;
	struct mapping known[SPACE_MAPPINGS];	/* those with files */
	size_t nknown;
	struct load loads[SPACE_MAPPINGS];
	size_t nloads;
	/* of the unwind at hand */
	const struct wk_capture *c;
	bool beyond;				/* it wanted bytes that weren't copied */
};

struct spaces {
	const struct files *files;
	struct space v[SPACES];
	size_t next;				/* to be reused */
};

/* The stack's bytes. x86-64: unaligned words are words too. */
static bool read_copied(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *ret, void *arg)
{
	struct space *s = arg;
	const struct wk_capture *c = s->c;
	uint64_t at = addr - c->stack_start;

	(void)dwfl;
	if (addr < c->stack_start || at > c->stack_bytes || c->stack_bytes - at < sizeof(*ret) ||
	    c->missing & 1u << at / WK_CAPTURE_CHUNK ||
	    c->missing & 1u << (at + sizeof(*ret) - 1) / WK_CAPTURE_CHUNK) {
		s->beyond = true;
		return false;
	}
	memcpy(ret, c->stack + at, sizeof(*ret));
	return true;
}

static bool initial_registers(Dwfl_Thread *thread, void *arg)
{
	const struct space *s = arg;
	Dwarf_Word regs[REGS];

	for (int i = 0; i < 16; i++)
		regs[i] = s->c->regs[4 + i];
	regs[6] = s->c->regs[2];
	regs[7] = s->c->regs[1];
	regs[16] = s->c->regs[0];
	return dwfl_thread_state_registers(thread, 0, REGS, regs);
}

static pid_t only_thread(Dwfl *dwfl, void *arg, void **threadp)
{
	(void)dwfl;
	if (*threadp)
		return 0;
	*threadp = arg;
	return 1;
}

static bool the_thread(Dwfl *dwfl, pid_t tid, void *arg, void **threadp)
{
	(void)dwfl;
	(void)tid;
	*threadp = arg;
	return true;
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = only_thread,
	.get_thread = the_thread,
	.memory_read = read_copied,
	.set_initial_registers = initial_registers,
};

/* Separate debug files are left alone: their .debug_frame says what .eh_frame does. */
static int no_debuginfo(Dwfl_Module *m, void **u, const char *name, Dwarf_Addr base, const char *file,
			const char *link, GElf_Word crc, char **ret)
{
	(void)m;
	(void)u;
	(void)name;
	(void)base;
	(void)file;
	(void)link;
	(void)crc;
	(void)ret;
	return -1;
}

static const Dwfl_Callbacks dwfl_callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = no_debuginfo,
	.section_address = dwfl_offline_section_address,
};

/* What is added to the file's own addresses, from the segment that a mapping begins in. */
static bool load_bias(int fd, const struct mapping *m, uint64_t *ret)
{
	uint64_t off = WK_FRAME_FILE_OFF(m->frame);
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	bool found = false;
	GElf_Phdr ph;
	size_t n;

	if (elf && !elf_getphdrnum(elf, &n))
		for (size_t i = 0; i < n && !found; i++) {
			found = gelf_getphdr(elf, (int)i, &ph) && ph.p_type == PT_LOAD &&
				off >= (ph.p_offset & ~(PAGE - 1ULL)) && off < ph.p_offset + ph.p_filesz &&
				ph.p_flags & PF_X;
			if (found)
				*ret = m->start - off + ph.p_offset - ph.p_vaddr;
		}
	elf_end(elf);
	return found;
}

static int vdso_file(void)
{
	const void *image = (const void *)getauxval(AT_SYSINFO_EHDR);
	int fd = image ? memfd_create("vdso", MFD_CLOEXEC) : -1;
	ssize_t n = 0;

	/* it is followed by nothing: the write ends at its last page */
	if (fd >= 0)
		n = write(fd, image, VDSO_BYTES);
	if (fd >= 0 && n <= 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool is_reported(const struct space *s, const struct load *l)
{
	for (size_t i = 0; i < s->nloads; i++)
		if (s->loads[i].id == l->id && s->loads[i].bias == l->bias)
			return true;
	return false;
}

static void report_module(const struct spaces *spaces, struct space *s, const struct mapping *m)
{
	uint32_t id = WK_FRAME_FILE_ID(m->frame);
	const struct file *f = id == WK_FILE_VDSO ? NULL : files_get(spaces->files, id);
	const char *path = f ? f->path : "[vdso]";
	int fd = f ? (f->fd < 0 ? -1 : fcntl(f->fd, F_DUPFD_CLOEXEC, 0)) :
		     id == WK_FILE_VDSO ? vdso_file() : -1;
	struct load load = { .id = id };
	char name[64];

	if (fd < 0)
		return;
	if (!load_bias(fd, m, &load.bias) || is_reported(s, &load)) {
		close(fd);
		return;
	}
	s->loads[s->nloads++] = load;
	snprintf(name, sizeof(name), "%u at %" PRIx64, id, load.bias);
	if (!dwfl_report_elf(s->dwfl, name, path, fd, load.bias, true))
		close(fd);
}

/* How a capture's mappings stand to a space's. */
enum fit { FIT_NO, FIT_SOME, FIT_ALL };

static bool is_file(const struct wk_capture_vma *v)
{
	return WK_FRAME_TAG(v->frame) == WK_FRAME_FILE;
}

static enum fit fits(const struct space *s, const struct wk_capture *c)
{
	size_t same = 0, all = 0;

	for (uint32_t i = 0; i < c->nr_vmas; i++) {
		const struct wk_capture_vma *v = &c->vmas[i];

		all += is_file(v);
		for (size_t j = 0; j < s->nknown && is_file(v); j++) {
			const struct mapping *m = &s->known[j];

			if (m->start == v->start && m->end == v->end && m->frame == v->frame)
				same++;
			else if (m->start < v->end && v->start < m->end)
				return FIT_NO;
		}
	}
	if (same == all)
		return FIT_ALL;
	/* the vDSO alone proves nothing, but its address is as random as that of any other */
	return same && s->nknown + all - same <= SPACE_MAPPINGS ? FIT_SOME : FIT_NO;
}

/* Tells libdwfl of the mappings that it doesn't know yet. False: it can't. */
static bool extend(const struct spaces *spaces, struct space *s, const struct wk_capture *c)
{
	bool fresh = !s->dwfl;

	if (fresh)
		s->dwfl = dwfl_begin(&dwfl_callbacks);
	if (!s->dwfl)
		return false;
	dwfl_report_begin_add(s->dwfl);
	for (uint32_t i = 0; i < c->nr_vmas && s->nknown < SPACE_MAPPINGS; i++) {
		struct mapping m = { c->vmas[i].start, c->vmas[i].end, c->vmas[i].frame };
		bool known = false;

		for (size_t j = 0; j < s->nknown && !known; j++)
			known = s->known[j].start == m.start;
		if (known || !is_file(&c->vmas[i]))
			continue;
		s->known[s->nknown++] = m;
		report_module(spaces, s, &m);
	}
	if (!dwfl_report_end(s->dwfl, NULL, NULL) &&
	    (!fresh || dwfl_attach_state(s->dwfl, NULL, 1, &thread_callbacks, s)))
		return true;
	dwfl_end(take(s->dwfl));
	return false;
}

/* The space with the mappings of a capture; NULL: libdwfl can't. */
static struct space *space_of(struct spaces *spaces, const struct wk_capture *c)
{
	struct space *some = NULL;

	for (size_t i = 0; i < SPACES; i++) {
		struct space *s = &spaces->v[i];
		enum fit fit = s->dwfl ? fits(s, c) : FIT_NO;

		if (fit == FIT_ALL)
			return s;
		if (fit == FIT_SOME)
			some = s;
	}
	if (!some) {
		some = &spaces->v[spaces->next++ % SPACES];
		if (some->dwfl)
			dwfl_end(take(some->dwfl));
		some->nknown = some->nloads = 0;
	}
	return extend(spaces, some, c) ? some : NULL;
}

static void spaces_done(struct spaces *spaces)
{
	for (size_t i = 0; i < SPACES; i++)
		if (spaces->v[i].dwfl)
			dwfl_end(spaces->v[i].dwfl);
}

/* ---- libdwfl's walk -------------------------------------------------------------------------- */

enum end { END_ROOT, END_NO_CFI, END_SWITCH, END_COPY, END_ERROR, END_MAX };
static const char *const end_names[] = {
	"whole", "prefix_no_cfi", "prefix_switch", "prefix_copy", "prefix_error",
};

struct truth {
	uint64_t addr[WK_CAPTURE_FRAMES];
	size_t n;		/* all */
	size_t proven;		/* found by CFI, and the one that has none */
	enum end end;
	bool full;		/* no room */
	uint64_t fp;		/* of the last frame */
	Dwarf_Frame *rule;	/* of the frame before, while all are proven */
	const struct space *space;
	const struct spaces *spaces;
};

/* The rule for addr, or NULL; freed by the caller. *ret_debug: it is of .debug_frame. */
static Dwarf_Frame *rule_of(Dwfl *dwfl, uint64_t addr, bool *ret_debug)
{
	Dwfl_Module *m = dwfl_addrmodule(dwfl, addr);
	Dwarf_Frame *frame = NULL;
	Dwarf_Addr bias;
	Dwarf_CFI *cfi = m ? dwfl_module_eh_cfi(m, &bias) : NULL;

	*ret_debug = false;
	if (cfi && !dwarf_cfi_addrframe(cfi, addr - bias, &frame))
		return frame;
	*ret_debug = true;
	cfi = m ? dwfl_module_dwarf_cfi(m, &bias) : NULL;
	if (cfi && !dwarf_cfi_addrframe(cfi, addr - bias, &frame))
		return frame;
	return NULL;
}

static const char *const roots[] = {
	"_start", "clone", "__clone", "clone3", "__clone3", "_dl_start_user", "start_thread",
	"runtime.goexit", "runtime.goexit.abi0", "runtime.mstart", "runtime.mstart.abi0",
	"runtime.mcall", "runtime.mcall.abi0", "runtime.morestack", "runtime.morestack.abi0",
	"runtime.rt0_go", "runtime.rt0_go.abi0", "runtime.clone", "runtime.clone.abi0",
	"_rt0_amd64_linux", "_rt0_amd64",
};

static bool is_outermost(Dwfl *dwfl, uint64_t addr)
{
	bool debug;
	Dwarf_Frame *rule = rule_of(dwfl, addr, &debug);
	Dwfl_Module *m = dwfl_addrmodule(dwfl, addr);
	Dwarf_Op mem[3], *ops;
	size_t n = 1;
	/* libdw.h: no operations are undefined with ops == mem, the same value with NULL */
	bool undefined = rule && !dwarf_frame_register(rule, 16, mem, &ops, &n) && !n && ops == mem;
	const char *name = m ? dwfl_module_addrname(m, addr) : NULL;
	GElf_Addr bias;
	GElf_Ehdr eh;
	Elf *elf;

	free(rule);
	if (undefined)
		return true;
	for (size_t i = 0; name && i < ARRAY_SIZE(roots); i++)
		if (!strcmp(name, roots[i]))
			return true;
	elf = m ? dwfl_module_getelf(m, &bias) : NULL;
	return elf && gelf_getehdr(elf, &eh) && addr - (eh.e_entry + bias) < ENTRY_BYTES;
}

/* A thread that has just been made, behind clone's system call: glibc has no CFI between the call and the
 * child's first instruction, where the return address is undefined. The parent has rax != 0 there. */
static bool is_new_thread(Dwfl *dwfl, const struct wk_capture *c, uint64_t addr)
{
	bool debug, has_rule;

	for (uint64_t at = addr; c->nr_user == 1 && !c->regs[RAX] && at < addr + CLONE_BYTES; at++) {
		Dwarf_Frame *rule = rule_of(dwfl, at, &debug);

		has_rule = rule;
		free(rule);
		if (has_rule)
			return at > addr && is_outermost(dwfl, at);
	}
	return false;
}

static bool is_mapped(const struct wk_capture *c, uint64_t addr)
{
	for (uint32_t i = 0; i < c->nr_vmas; i++)
		if (addr >= c->vmas[i].start && addr < c->vmas[i].end)
			return true;
	return false;
}

/* Bytes of code, as the file has them. */
static bool read_file(const struct spaces *spaces, const struct wk_capture *c, uint64_t addr,
		      void *buf, size_t n)
{
	for (uint32_t i = 0; i < c->nr_vmas; i++) {
		const struct wk_capture_vma *v = &c->vmas[i];
		const struct file *f = is_file(v) ? files_get(spaces->files, WK_FRAME_FILE_ID(v->frame)) :
						    NULL;

		if (f && addr >= v->start && addr < v->end)
			return pread(f->fd, buf, n, (off_t)(WK_FRAME_FILE_OFF(v->frame) +
							    (addr - v->start))) == (ssize_t)n;
	}
	return false;
}

/* Go's .debug_frame is silent about these moving to another stack: libdwfl goes on in the wrong one. */
static bool switches_stacks(Dwfl *dwfl, uint64_t addr)
{
	static const char *const names[] = {
		"runtime.systemstack", "runtime.mcall", "runtime.morestack", "runtime.asmcgocall",
		"runtime.cgocallback", "crosscall2",
		"runtime.nanotime1", "runtime.walltime", "time.now",	/* call the vDSO */
	};
	Dwfl_Module *m = dwfl_addrmodule(dwfl, addr);
	const char *name = m ? dwfl_module_addrname(m, addr) : NULL;

	for (size_t i = 0; name && i < ARRAY_SIZE(names); i++) {
		size_t n = strlen(names[i]);

		if (!strncmp(name, names[i], n) && (!name[n] || !strcmp(name + n, ".abi0")))
			return true;
	}
	return false;
}

/* A function that ends by __builtin_eh_return overwrites what it has saved by the registers of the frame
 * that it is going to: libdwfl finds the right address there, but not the right frame. Such a function
 * saves rax; and the call before the address that is found is one of another function. */
static bool lands_elsewhere(Dwfl *dwfl, const struct truth *t, uint64_t pc)
{
	Dwfl_Module *m = dwfl_addrmodule(dwfl, pc);
	Dwarf_Op mem[3], *ops;
	uint8_t code[5];
	int32_t distance;
	GElf_Off off;
	GElf_Sym sym;
	size_t n = 0;

	if (!t->rule || dwarf_frame_register(t->rule, 0, mem, &ops, &n) || !n || !m ||
	    !read_file(t->spaces, t->space->c, pc + 1 - sizeof(code), code, sizeof(code)) ||
	    code[0] != 0xe8)
		return false;
	memcpy(&distance, code + 1, sizeof(distance));
	return dwfl_module_addrinfo(m, pc + 1 + (uint64_t)(int64_t)distance, &off, &sym, NULL, NULL,
				    NULL) && !off;
}

static int on_frame(Dwfl_Frame *frame, void *arg)
{
	struct truth *t = arg;
	const struct wk_capture *c = t->space->c;
	Dwfl *dwfl = dwfl_thread_dwfl(dwfl_frame_thread(frame));
	Dwarf_Frame *rule;
	Dwarf_Addr pc;
	bool activation, debug;

	if (!dwfl_frame_pc(frame, &pc, &activation))
		return DWARF_CB_ABORT;
	if (t->n == ARRAY_SIZE(t->addr)) {
		t->full = true;
		return DWARF_CB_ABORT;
	}
	pc -= t->n ? !activation : !c->exact;
	t->addr[t->n++] = pc;
	if (dwfl_frame_reg(frame, 6, &t->fp))
		t->fp = UINT64_MAX;
	if (!t->proven) {
		rule = rule_of(dwfl, pc, &debug);
		if (!rule && !is_mapped(c, pc)) {	/* lost: it isn't code */
			t->n--;
			return DWARF_CB_ABORT;
		}
		/* looking for a name takes long */
		if (!rule || (debug && switches_stacks(dwfl, pc)) || lands_elsewhere(dwfl, t, pc)) {
			t->proven = t->n;
			t->end = rule ? END_SWITCH : END_NO_CFI;
		}
		free(t->rule);
		t->rule = rule;
	}
	return DWARF_CB_OK;
}

static void unwind(const struct spaces *spaces, struct space *s, const struct wk_capture *c,
		   struct truth *ret)
{
	int r;

	ret->n = ret->proven = 0;
	ret->full = false;
	ret->space = s;
	ret->spaces = spaces;
	ret->rule = NULL;
	s->c = c;
	s->beyond = false;
	r = dwfl_getthread_frames(s->dwfl, 1, on_frame, ret);
	free(take(ret->rule));
	if (ret->proven)	/* on_frame has seen why */
		return;
	ret->proven = ret->n;
	if (!r && ret->n && is_outermost(s->dwfl, ret->addr[ret->n - 1]))
		ret->end = END_ROOT;
	else
		ret->end = s->beyond || ret->full ? END_COPY : END_ERROR;
}

/* ---- comparing ------------------------------------------------------------------------------- */

enum {	/* figures, by name below */
	N_STACKS, N_AGREE, N_DIFFER, N_FRAMES, N_PROVEN, N_TAIL, N_TAIL_AGREE, N_ROOTED, N_ROOT_CLAIMED,
	N_REPLAY, N_REPLAY_DIFFER, N_UNOPENED, N_MAX
};
static const char *const number_names[] = {
	"stacks", "agree", "differ", "frames", "frames_proven", "tails", "tails_agree", "rooted",
	"root_claimed", "replayed", "replay_differ", "no_space",
};

enum shown { SHOW_DIFFERS, SHOW_REPLAY, SHOW_TRUNCATED, SHOW_MAX };

struct comparison {
	struct recording *rec;
	struct spaces spaces;
	uint64_t n[N_MAX], ends[END_MAX], differ_by_end[END_MAX];
	unsigned int shown[SHOW_MAX], show;	/* most of each */
	struct strtab odd_roots;
	struct truth truth;
	struct replay_walk replayed;
};

/* A frame word of wick as an address of the captured process. 0: not in its mappings. */
static uint64_t address_of(const struct wk_capture *c, uint64_t frame)
{
	if (WK_FRAME_TAG(frame) != WK_FRAME_FILE)
		return frame;
	for (uint32_t i = 0; i < c->nr_vmas; i++) {
		const struct wk_capture_vma *v = &c->vmas[i];

		if (frame >= v->frame && frame - v->frame < v->end - v->start)
			return v->start + (frame - v->frame);
	}
	return 0;
}

/* An address of the captured process as wick's frame word: a file may be mapped twice (V8 does that). */
static uint64_t frame_of(const struct wk_capture *c, uint64_t addr)
{
	for (uint32_t i = 0; i < c->nr_vmas; i++)
		if (addr >= c->vmas[i].start && addr < c->vmas[i].end)
			return c->vmas[i].frame + (addr - c->vmas[i].start);
	return addr;
}

static void describe(Dwfl *dwfl, uint64_t addr, char *buf, size_t size)
{
	Dwfl_Module *m = dwfl_addrmodule(dwfl, addr);
	const char *path = NULL, *symbol;
	Dwarf_Addr start = 0;
	GElf_Off off = 0;
	GElf_Sym sym;

	if (!m) {
		snprintf(buf, size, "%#" PRIx64, addr);
		return;
	}
	symbol = dwfl_module_addrinfo(m, addr, &off, &sym, NULL, NULL, NULL);
	(void)dwfl_module_info(m, NULL, &start, NULL, NULL, NULL, &path, NULL);
	snprintf(buf, size, "%s+%#" PRIx64 " %s+%#" PRIx64, path ? basename(path) : "?", addr - start,
		 symbol ? symbol : "?", symbol ? (uint64_t)off : 0);
}

static void check_root(struct comparison *cmp, const struct space *s, const struct wk_capture *c,
		       size_t same)
{
	char text[256];
	uint64_t addr;
	uint32_t id;

	if (c->sample.user_outcome != WK_USER_ROOT || !c->nr_user)
		return;
	cmp->n[N_ROOT_CLAIMED]++;
	addr = address_of(c, c->user[c->nr_user - 1]);
	if (c->nr_user == WK_CAPTURE_FRAMES || is_outermost(s->dwfl, addr) ||
	    is_new_thread(s->dwfl, c, addr) ||
	    (same == cmp->truth.n && same == c->nr_user && !cmp->truth.fp)) {
		cmp->n[N_ROOTED]++;	/* deeper ones: the record doesn't have the last frame */
		return;
	}
	describe(s->dwfl, addr, text, sizeof(text));
	(void)!strtab_puts(&cmp->odd_roots, text, &id);
}

static void show_frame(const struct comparison *cmp, const struct wk_capture *c, size_t i)
{
	const struct truth *t = &cmp->truth;
	char mine[256] = "-", theirs[256] = "-";
	uint64_t a = i < c->nr_user ? address_of(c, c->user[i]) : 0;
	uint64_t b = i < t->n ? t->addr[i] : 0;

	if (a)
		describe(t->space->dwfl, a, mine, sizeof(mine));
	if (b)
		describe(t->space->dwfl, b, theirs, sizeof(theirs));
	printf("    %3zu %s", i, mine);
	if (i >= t->n || i >= c->nr_user || c->user[i] != frame_of(c, b))
		printf("   <> libdwfl %s", theirs);
	putchar('\n');
}

static void show(struct comparison *cmp, const struct wk_capture *c, size_t at, enum shown why)
{
	static const char *const whys[] = { "differs", "replay", "truncated" };
	static const char *const labels[] = {
#define LABEL(constant, label, text) label,
		WK_OUTCOMES(LABEL)
#undef LABEL
	};
	const struct truth *t = &cmp->truth;

	if (cmp->shown[why] >= cmp->show)
		return;
	cmp->shown[why]++;
	printf("  %s: %.16s, wick %u frames (%s), libdwfl %zu frames, %zu by CFI (%s), sp %#" PRIx64
	       " copied %#" PRIx64 "+%u missing %x\n",
	       whys[why], c->sample.comm, c->nr_user, labels[c->sample.user_outcome], t->n,
	       t->proven, end_names[t->end], (uint64_t)c->regs[1], (uint64_t)c->stack_start, c->stack_bytes,
	       c->missing);
	for (size_t i = at > 3 ? at - 3 : 0; i < at + 4 && (i < t->n || i < c->nr_user); i++)
		show_frame(cmp, c, i);
}

/* The same frame. Without CFI libdwfl can't know a signal trampoline (Go's) from a function that was
 * called, and so takes one from its address. */
static bool is_same(const struct wk_capture *c, const struct truth *t, size_t i)
{
	return c->user[i] == frame_of(c, t->addr[i]) ||
	       (t->end == END_NO_CFI && i + 1 == t->proven && c->user[i] == frame_of(c, t->addr[i] + 1));
}

/* Frames that both have, up to the first that differs. */
static size_t common(const struct wk_capture *c, const struct truth *t)
{
	size_t i = 0;

	while (i < t->n && i < c->nr_user && is_same(c, t, i))
		i++;
	return i;
}

static struct replay_rows rows_of(void *ctx, uint32_t id)
{
	struct comparison *cmp = ctx;
	struct replay_rows r = { .state = WK_ROWS_NONE };

	r.words = sampler_rows(cmp->rec->sampler, id, &r.table, &r.n);
	if (r.words)
		r.state = WK_ROWS_HERE;
	return r;
}

/* The third walk. It sees only the copy, and no code: where it stops for that, the frames so far count. */
static void check_replay(struct comparison *cmp, struct wk_capture *c)
{
	struct replay_walk *w = &cmp->replayed;
	uint32_t n = c->nr_user, outcome;
	bool stopped;
	size_t i = 0;

	c->nr_user = 0;
	if (replay(c, rows_of, cmp, true, w))
		w->n = 0;
	c->nr_user = n;
	outcome = w->outcome;
	stopped = outcome == WK_USER_FAULT ||
		  (outcome == WK_USER_NO_MAPPING && c->nr_vmas == WK_CAPTURE_VMAS);
	while (i < w->n && i < n && w->frames[i] == c->user[i])
		i++;
	cmp->n[N_REPLAY]++;
	if (i == w->n && (stopped || n == WK_CAPTURE_FRAMES ||
			  (i == n && outcome == c->sample.user_outcome)))
		return;
	/* a last frame outside of any mapping is named by BPF alone */
	if (i == w->n && outcome == c->sample.user_outcome && outcome != WK_USER_ROOT)
		return;
	cmp->n[N_REPLAY_DIFFER]++;
	show(cmp, c, i, SHOW_REPLAY);
}

static void compare(struct comparison *cmp, struct wk_capture *c)
{
	struct space *s = c->sample.user_outcome == WK_USER_EXEC ? NULL : space_of(&cmp->spaces, c);
	struct truth *t = &cmp->truth;
	size_t same;
	bool agree;

	if (!s) {
		cmp->n[N_UNOPENED] += c->sample.user_outcome != WK_USER_EXEC;
		return;
	}
	unwind(&cmp->spaces, s, c, t);
	same = common(c, t);
	agree = same >= t->proven;
	if (t->end == END_ROOT)
		agree &= c->nr_user == t->n && c->sample.user_outcome == WK_USER_ROOT;
	cmp->n[N_STACKS]++;
	cmp->ends[t->end]++;
	cmp->n[N_FRAMES] += c->nr_user;
	cmp->n[N_PROVEN] += MIN(same, t->proven);
	if (t->n > t->proven) {
		cmp->n[N_TAIL]++;
		cmp->n[N_TAIL_AGREE] += same == t->n;
	}
	cmp->n[agree ? N_AGREE : N_DIFFER]++;
	if (!agree) {
		cmp->differ_by_end[t->end]++;
		show(cmp, c, same, SHOW_DIFFERS);
	}
	if (c->sample.user_outcome != WK_USER_ROOT)
		show(cmp, c, c->nr_user, SHOW_TRUNCATED);
	check_root(cmp, s, c, same);
	check_replay(cmp, c);
}

/* ---- the program ----------------------------------------------------------------------------- */

static void print_figures(const struct comparison *cmp)
{
	static const char *const labels[] = {
#define LABEL(constant, label, text) label,
		WK_OUTCOMES(LABEL)
#undef LABEL
	};
	const struct recording *rec = cmp->rec;

	for (unsigned int i = 0; i < N_MAX; i++)
		printf("%s %" PRIu64 "\n", number_names[i], cmp->n[i]);
	for (unsigned int i = 0; i < END_MAX; i++) {
		printf("%s %" PRIu64 "\n", end_names[i], cmp->ends[i]);
		printf("%s_differ %" PRIu64 "\n", end_names[i], cmp->differ_by_end[i]);
	}
	for (unsigned int i = 0; i < WK_OUTCOME_MAX; i++)
		if (rec->counters[i])
			printf("counter_%s %" PRIu64 "\n", labels[i], rec->counters[i]);
	printf("not_kept %" PRIu64 "\n", rec->refused);
	for (uint32_t i = 1; i < strtab_count(&cmp->odd_roots) && i <= cmp->show; i++)
		printf("  root in %s\n", strtab_get(&cmp->odd_roots, i));
}

static int usage(void)
{
	fprintf(stderr, "usage: ground_truth [-f HZ] [-d SECONDS] [-n SHOWN] [--] COMMAND [ARG...]\n");
	return 2;
}

int main(int argc, char **argv)
{
	struct recording rec = { .child = CHILD_INIT };
	cleanup(freep_cleanup) struct comparison *cmp = calloc(1, sizeof(*cmp));
	unsigned long freq = FREQ_DEFAULT, seconds = 0, show_max = SHOWN_DEFAULT;
	struct err e = { "" };
	int c, r;

	while ((c = getopt(argc, argv, "+f:d:n:")) != -1) {
		if (c == '?')
			return usage();
		*(c == 'f' ? &freq : c == 'd' ? &seconds : &show_max) = strtoul(optarg, NULL, 10);
	}
	if (optind == argc || !freq || freq > 10000 || !cmp)
		return usage();
	elf_version(EV_CURRENT);
	r = record_open(&rec, (uint32_t)freq, &e);
	if (!r)
		r = record(&rec, argv + optind, seconds, &e);
	if (r) {
		fprintf(stderr, "ground_truth: %s (%s)\n", e.msg, strerror(-r));
	} else {
		cmp->rec = &rec;
		cmp->spaces.files = rec.files;
		cmp->show = (unsigned int)show_max;
		cmp->odd_roots = (struct strtab)STRTAB_INIT;
		for (size_t i = 0; i < rec.nkept; i++)
			compare(cmp, rec.kept[i]);
		print_figures(cmp);
		r = !cmp->n[N_STACKS];
		spaces_done(&cmp->spaces);
		strtab_free(&cmp->odd_roots);
	}
	record_done(&rec);
	return r ? 1 : 0;
}
