/* mapped.c - see mapped.h. */
#include "collect/mapped.h"

#include <signal.h>
#include <time.h>

#include "base/clock.h"
#include "collect/compiler.h"
#include "collect/recorder.h"
#include "collect/setup.h"
#include "proc/maps.h"
#include "proc/pid.h"
#include "symbol/foreign.h"
#include "symbol/vdso.h"

enum { MAPPED_FREQ = 99 };

void mapped_free(struct mapped *m)
{
	for (size_t i = 0; i < m->n; i++)
		free(m->v[i].path);
	free(m->v);
	*m = (struct mapped){ 0 };
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Through the mapping; without the right to that, by the path beneath the process's root. */
static int open_area(uint32_t pid, const struct maps_area *a, const char *path, struct foreign_file *ret)
{
	cleanup(fd_cleanup) int process = pid_open(pid, 0);
	char link[64];
	int fd;

	if (process < 0)
		return process;
	snprintf(link, sizeof(link), "map_files/%llx-%llx", (unsigned long long)a->start,
		 (unsigned long long)a->end);
	fd = foreign_open(process, link, FOREIGN_LINK, ret);
	return fd >= 0 ? fd : foreign_open(process, path, FOREIGN_FOLLOW, ret);
}

/* The path helps only if it leads to that very file from our root. */
static bool is_on_host(const struct stat *st, const char *path)
{
	struct foreign_file here;
	cleanup(fd_cleanup) int fd = foreign_open(-1, path, FOREIGN_FOLLOW, &here);

	return fd >= 0 && here.st.st_dev == st->st_dev && here.st.st_ino == st->st_ino;
}

static void compile_area(uint32_t pid, const struct maps_area *a, struct mapped_file *f)
{
	struct foreign_file file;
	cleanup(fd_cleanup) int fd = open_area(pid, a, f->path, &file);
	cleanup(unwtab_cleanup) struct unwtab *t = NULL;
	uint64_t start = cpu_ns();

	f->error = fd < 0 ? fd : compile_file(fd, is_on_host(&file.st, f->path) ? f->path : NULL, &t);
	f->took_ns = cpu_ns() - start;
	if (!f->error)
		f->stats = *unwtab_stats(t);
}

static int add_file(struct mapped *m, const char *path, struct mapped_file **ret)
{
	int r = array_grow(&m->v, &m->cap, m->n + 1, sizeof(*m->v));

	if (r)
		return r;
	m->v[m->n] = (struct mapped_file){ .path = strdup(path) };
	if (!m->v[m->n].path)
		return -ENOMEM;
	*ret = &m->v[m->n++];
	return 0;
}

static int each_area(const struct maps_area *a, void *arg)
{
	struct mapped *m = arg;
	struct mapped_file *f;
	char path[MAPS_PATH_MAX];
	int r;

	if (a->kind != MAPS_FILE || !(a->perms & MAPS_X))
		return 0;
	for (size_t i = 0; i < m->n; i++)
		if (m->v[i].inode == a->inode && m->v[i].major == a->major && m->v[i].minor == a->minor)
			return 0;
	if (m->n == MAPPED_FILES_MAX) {
		m->left_out++;
		return 0;
	}
	maps_path(a, path, sizeof(path));
	r = add_file(m, path, &f);
	if (r)
		return r;
	f->major = a->major;
	f->minor = a->minor;
	f->inode = a->inode;
	compile_area(m->pid, a, f);
	return 0;
}

static int add_vdso(struct mapped *m)
{
	cleanup(freep_cleanup) void *image = NULL;
	cleanup(elf_cleanup) struct elf *elf = NULL;
	cleanup(unwtab_cleanup) struct unwtab *t = NULL;
	struct mapped_file *f;
	uint64_t start;
	int r;

	if (vdso_open(&elf, &image))
		return 0;
	start = cpu_ns();
	r = add_file(m, "[vdso]", &f);
	if (r)
		return r;
	f->error = unwtab_compile(elf, NULL, &UNWTAB_LIMITS_DEFAULT, &t);
	f->took_ns = cpu_ns() - start;
	if (!f->error)
		f->stats = *unwtab_stats(t);
	elf_free(take(elf));	/* before its image */
	return 0;
}

int mapped_read(uint32_t pid, struct mapped *m, struct err *e)
{
	cleanup(buf_cleanup) struct buf text = BUF_INIT(MAPS_MAX_BYTES);
	int r = maps_read((int)pid, &text);

	if (r == -ENOENT)
		r = -ESRCH;
	if (r == -ESRCH)
		return err_set(e, r, "there is no process %u (in this pid namespace)", pid);
	if (r)
		return err_set(e, r, "can't read the mappings of process %u: %s", pid, strerror(-r));
	m->pid = pid;
	r = maps_each(text.data, text.len, each_area, m, NULL);
	if (!r && m->n)
		r = add_vdso(m);
	if (!r && !m->n)
		return err_set(e, -ESRCH, "process %u runs no file: a kernel thread, or a zombie", pid);
	return r ? err_set(e, r, "%s", strerror(-r)) : 0;
}

/* ---- where walks end ---- */

struct tally {
	struct mapped *m;
	const struct files *files;
};

/* The file of a frame. Files that were mapped since the tables were read count as others. */
static struct mapped_file *file_of(const struct tally *t, uint64_t frame)
{
	const struct file *f = NULL;
	const char *path = "";

	if (!WK_FRAME_IS_KERNEL(frame) && WK_FRAME_TAG(frame) == WK_FRAME_FILE) {
		f = files_get(t->files, WK_FRAME_FILE_ID(frame));
		path = f ? f->path : WK_FRAME_FILE_ID(frame) == WK_FILE_VDSO ? "[vdso]" : "";
	}
	for (size_t i = 0; i < t->m->n; i++)
		if (!strcmp(t->m->v[i].path, path))
			return &t->m->v[i];
	return &t->m->other;
}

static bool is_mark(uint64_t frame)
{
	return !WK_FRAME_IS_KERNEL(frame) && WK_FRAME_TAG(frame) == WK_FRAME_MARK;
}

static int tally_stack(void *ctx, const struct wk_sample *sample, const uint64_t *user, size_t n,
		       const uint64_t *kernel, size_t nkernel)
{
	struct tally *t = ctx;
	struct mapped_file *last = &t->m->other;

	(void)kernel;
	(void)nkernel;
	if (sample->user_outcome == WK_USER_NONE)
		return 0;
	t->m->stacks += sample->count;
	t->m->rooted += sample->user_outcome == WK_USER_ROOT ? sample->count : 0;
	for (size_t i = 0; i < n; i++) {
		if (is_mark(user[i]))
			continue;
		last = file_of(t, user[i]);
		last->frames += sample->count;
	}
	if (sample->user_outcome != WK_USER_ROOT && sample->user_outcome < WK_OUTCOME_MAX)
		last->ended[sample->user_outcome] += sample->count;
	return 0;
}

static int record(struct recorder *rec, uint32_t pid, uint64_t duration, struct err *e)
{
	uint64_t until;
	bool ready;
	int r = recorder_start(rec, e);

	for (until = clock_monotonic() + duration; !r && clock_monotonic() < until;) {
		r = recorder_wait(rec, -1, until, &ready, e);
		if (kill((pid_t)pid, 0) && errno == ESRCH)
			break;
	}
	return r ? r : recorder_finish(rec, e);
}

int mapped_sample(struct mapped *m, uint64_t duration_ns, bool unsafe_kernel, struct err *e)
{
	cleanup(kallsyms_cleanup) struct kallsyms *kallsyms = NULL;
	cleanup(recorder_cleanup) struct recorder *rec = NULL;
	struct sampler_options so = { .event = event_clock(), .freq = MAPPED_FREQ, .by_pid = true };
	struct tally tally = { .m = m };
	int r = setup_recorder(unsafe_kernel, &so, &(struct recorder_options){ 0 }, &rec, &kallsyms, e);

	if (r)
		return r;
	tally.files = rec->files;
	rec->tap = tally_stack;
	rec->tap_ctx = &tally;
	r = sampler_add_target(rec->sampler, m->pid, false, false);
	if (r)
		return err_set(e, r, "process %u can't be selected: %s", m->pid, strerror(-r));
	return record(rec, m->pid, duration_ns, e);
}
