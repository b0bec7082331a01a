/* unwinder.c - see unwinder.h. */
#include "collect/unwinder.h"

#include <poll.h>
#include <time.h>

#include "base/clock.h"
#include "collect/compiler.h"
#include "collect/replay.h"
#include "symbol/vdso.h"
#include "unwind/unwtab.h"

enum file_state { FILE_UNKNOWN, FILE_COMPILING, FILE_ROWS, FILE_NONE, FILE_ANON };

struct file_use {
	enum file_state state;
	uint64_t last_used;	/* work round in which a sample had it */
};

struct generated {
	struct wk_file_key key;
	uint32_t id;
	uint64_t bytes;
};

struct waiting {
	struct wk_capture *capture;	/* only its used part */
	size_t size;
	uint64_t arrived;		/* CLOCK_MONOTONIC, ns */
};

struct unwinder {
	struct sampler *sampler;
	struct files *files;
	struct compiler *compiler;
	uint64_t rows_bytes, waiting_bytes, round;
	uint64_t copied_bytes;		/* of stacks that wait */
	struct file_use *use;	/* by file id */
	size_t use_cap;
	struct waiting *waiting;
	size_t nwaiting, waiting_cap;
	struct generated *generated;
	size_t ngenerated, generated_cap;
	const struct wk_capture *at_hand;	/* being walked */
	size_t tried;			/* so many of them can't go on before there are new rows */
	struct replay_walk walk;
	struct unwinder_stats stats;
	uint64_t copied_ns;	/* of the stack being delivered */
};

/* The vDSO isn't announced: it has no inode. Its rows stand under the zero key. */
static void add_vdso(struct unwinder *u)
{
	static const struct wk_file_key key;
	struct wk_file f = { .id = WK_FILE_VDSO };
	cleanup(freep_cleanup) void *image = NULL;
	cleanup(elf_cleanup) struct elf *elf = NULL;
	cleanup(unwtab_cleanup) struct unwtab *t = NULL;
	const uint64_t *words;
	size_t n;

	if (vdso_open(&elf, &image) || unwtab_compile(elf, NULL, &UNWTAB_LIMITS_DEFAULT, &t))
		return;		/* frame pointers: it is called directly, and has no callees */
	words = unwtab_words(t, &n);
	f.table = *unwtab_table(t);
	if (!sampler_set_rows(u->sampler, &key, &f, words, n))
		u->use[WK_FILE_VDSO].state = FILE_ROWS;
	elf_free(take(elf));	/* before its image */
}

static int know(struct unwinder *u, uint32_t id)
{
	size_t old = u->use_cap;
	int r = array_grow(&u->use, &u->use_cap, (size_t)id + 1, sizeof(*u->use));

	if (!r)
		memset(u->use + old, 0, (u->use_cap - old) * sizeof(*u->use));
	return r;
}

/* A share of the machine's memory. */
static uint64_t default_bytes(uint64_t share, uint64_t min, uint64_t max)
{
	uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

	return MIN(MAX(memory / share, min), max);
}

int unwinder_new(struct sampler *s, struct files *files, uint64_t rows_bytes, uint64_t copied_bytes,
		 struct unwinder **ret)
{
	cleanup(unwinder_cleanup) struct unwinder *u = calloc(1, sizeof(*u));
	int r;

	if (!u)
		return -ENOMEM;
	u->sampler = s;
	u->files = files;
	u->rows_bytes = rows_bytes ? rows_bytes :
			default_bytes(UNWINDER_ROWS_SHARE, UNWINDER_ROWS_MIN, UNWINDER_ROWS_MAX);
	u->copied_bytes = copied_bytes ? copied_bytes :
			  default_bytes(UNWINDER_COPIED_SHARE, UNWINDER_COPIED_MIN, UNWINDER_COPIED_MAX);
	r = know(u, WK_FILE_FIRST);
	if (!r)
		r = compiler_new(&u->compiler);
	if (r)
		return r;
	add_vdso(u);
	*ret = take(u);
	return 0;
}

void unwinder_free(struct unwinder *u)
{
	if (!u)
		return;
	compiler_free(u->compiler);
	for (size_t i = 0; i < u->nwaiting; i++)
		free(u->waiting[i].capture);
	free(u->waiting);
	free(u->generated);
	free(u->use);
	free(u);
}

/* ---- rows ---- */

/* Whether it is memory that has a name, but no file of code: what mmap(2) and shmget(2) share is called so
 * by the kernel (shmem_zero_setup() of mm/shmem.c, newseg() of ipc/shm.c); a memfd, or a file unlinked at
 * once, whose contents aren't ELF, is what runtimes map twice, to write code and to run it. */
static bool is_anonymous(const struct file *f, int error)
{
	if (f && f->key.dev == WK_DEV_COPIED && f->open_error)
		return true;	/* no copy of a file's code */
	if (!f || !f->deleted)
		return false;
	if (error == -ENOEXEC)
		return true;
	return !strcmp(f->path, "/dev/zero") || !strncmp(f->path, "/SYSV", 5);
}

static int set_none(struct unwinder *u, uint32_t id, int error)
{
	const struct file *f = files_get(u->files, id);
	bool anonymous = is_anonymous(f, error);
	struct wk_file wf = { .id = id, .rows = anonymous ? WK_ROWS_ANON : WK_ROWS_NONE };

	u->use[id].state = anonymous ? FILE_ANON : FILE_NONE;
	/* it may be gone from the table already, forgotten to be announced anew */
	if (f)
		(void)!sampler_set_rows(u->sampler, &f->key, &wf, NULL, 0);
	return 0;
}

int unwinder_file(struct unwinder *u, uint32_t id)
{
	const struct file *f = files_get(u->files, id);
	cleanup(fd_cleanup) int fd = -1;
	int r = know(u, id);

	if (r)
		return r;
	u->use[id].last_used = u->round;
	fd = files_open(u->files, id);
	if (fd < 0 || compiler_submit(u->compiler, id, fd, f && f->on_host ? f->path : NULL))
		return set_none(u, id, 0);
	u->use[id].state = FILE_COMPILING;
	return 0;
}

bool unwinder_may_forget(const struct unwinder *u, uint32_t id)
{
	return id >= u->use_cap || u->use[id].state != FILE_COMPILING;
}

void unwinder_forget(struct unwinder *u, uint32_t id)
{
	if (id < u->use_cap)
		u->use[id] = (struct file_use){ .state = FILE_UNKNOWN };
}

/* Makes room for `bytes`; false if that can't be done. */
static bool make_room(struct unwinder *u, uint64_t bytes)
{
	if (bytes > u->rows_bytes)
		return false;
	while (sampler_rows_bytes(u->sampler) + bytes > u->rows_bytes) {
		uint32_t oldest = 0;
		const struct file *f;

		for (uint32_t id = WK_FILE_FIRST; id < u->use_cap; id++)
			if (u->use[id].state == FILE_ROWS &&
			    (!oldest || u->use[id].last_used < u->use[oldest].last_used))
				oldest = id;
		f = oldest ? files_get(u->files, oldest) : NULL;
		if (!f)
			return false;
		sampler_drop_rows(u->sampler, &f->key, oldest);
		u->use[oldest].state = FILE_UNKNOWN;
		u->stats.evicted++;
	}
	return true;
}

static void install(struct unwinder *u, const struct compiled *c)
{
	const struct file *f = files_get(u->files, c->id);
	struct wk_file wf = { .id = c->id };
	const uint64_t *words;
	size_t n;

	if (!f || c->error) {
		u->stats.without += c->error == -ENOENT;
		u->stats.failed += c->error != -ENOENT && !is_anonymous(f, c->error);
		(void)set_none(u, c->id, c->error);
		return;
	}
	words = unwtab_words(c->table, &n);
	wf.table = *unwtab_table(c->table);
	if (!make_room(u, n * sizeof(*words)) ||
	    sampler_set_rows(u->sampler, &f->key, &wf, words, n)) {
		u->stats.failed++;
		(void)set_none(u, c->id, 0);
		return;
	}
	u->use[c->id].state = FILE_ROWS;
	u->stats.compiled++;
}

/* ---- code that processes make ---- */

static struct generated *find_generated(struct unwinder *u, const struct wk_file_key *key)
{
	for (size_t i = 0; i < u->ngenerated; i++)
		if (!memcmp(&u->generated[i].key, key, sizeof(*key)))
			return &u->generated[i];
	return NULL;
}

static void drop_generated(struct unwinder *u, struct generated *g)
{
	struct wk_file f = { .id = g->id };

	(void)!sampler_set_generated(u->sampler, &g->key, &f, NULL, 0);
	*g = u->generated[--u->ngenerated];
}

/* NULL: no memory, or no id. */
static struct generated *add_generated(struct unwinder *u, const struct wk_file_key *key)
{
	struct generated g = { .key = *key };

	if (array_grow(&u->generated, &u->generated_cap, u->ngenerated + 1, sizeof(g)) ||
	    sampler_take_id(u->sampler, &g.id))
		return NULL;
	u->generated[u->ngenerated++] = g;
	return &u->generated[u->ngenerated - 1];
}

int unwinder_generated(struct unwinder *u, const struct wk_file_key *key, const struct unwtab *table)
{
	struct generated *g = find_generated(u, key);
	struct wk_file f = { 0 };
	const uint64_t *words;
	uint64_t bytes;
	size_t n;

	if (!table) {
		if (g)
			drop_generated(u, g);
		return 0;
	}
	if (!g)
		g = add_generated(u, key);
	if (!g) {
		u->stats.generated_refused++;
		return 0;
	}
	words = unwtab_words(table, &n);
	bytes = n * sizeof(*words);
	f.id = g->id;
	f.table = *unwtab_table(table);
	if (!make_room(u, bytes > g->bytes ? bytes - g->bytes : 0) ||
	    sampler_set_generated(u->sampler, key, &f, words, n)) {
		u->stats.generated_refused++;
		drop_generated(u, g);
		return 0;
	}
	g->bytes = bytes;
	return 0;
}

/* Of the process whose stack is being walked. */
static struct replay_rows generated_rows(struct unwinder *u)
{
	const struct wk_sample *s = &u->at_hand->sample;
	const struct wk_file_key key = { .ino = s->start_time, .mtime_ns = s->exec_id,
					 .dev = WK_DEV_GENERATED, .generation = s->pid };
	const struct generated *g = find_generated(u, &key);
	struct replay_rows r = { .state = WK_ROWS_NONE };

	if (g)
		r.words = sampler_rows(u->sampler, g->id, &r.table, &r.n);
	if (r.words)
		r.state = WK_ROWS_HERE;
	return r;
}

/* ---- waiting stacks ---- */

static struct replay_rows rows_of(void *ctx, uint32_t id)
{
	static const enum wk_rows_state states[] = {
		[FILE_UNKNOWN] = WK_ROWS_COMING,
		[FILE_COMPILING] = WK_ROWS_COMING,
		[FILE_ROWS] = WK_ROWS_HERE,
		[FILE_NONE] = WK_ROWS_NONE,
		[FILE_ANON] = WK_ROWS_ANON,
	};
	struct unwinder *u = ctx;
	struct replay_rows r = { .state = WK_ROWS_NONE };

	if (id == WK_FILE_NONE)
		return generated_rows(u);
	if (id >= u->use_cap)
		return r;
	r.state = states[u->use[id].state];
	if (r.state == WK_ROWS_HERE)
		r.words = sampler_rows(u->sampler, id, &r.table, &r.n);
	return r;
}

/* Hands a walked stack out. */
static int deliver(struct unwinder *u, const struct wk_capture *c, const struct sampler_handler *h)
{
	struct wk_sample sample = c->sample;
	struct replay_walk *w = &u->walk;

	sample.user_outcome = (uint16_t)w->outcome;
	u->stats.captured++;
	u->stats.outcomes[w->outcome]++;
	if (w->outcome != WK_USER_ROOT)
		w->frames[w->n++] = WK_FRAME_MAKE_MARK(w->outcome);
	return h->sample(h->ctx, &sample, w->frames, w->n, (const uint64_t *)c->kernel, c->nr_kernel);
}

/* Tries each waiting stack, oldest first, but for the first so many, which were tried with the same rows. Those
 * that still can't go on do so without rows at the end (final), or while there are too many of them. */
static int replay_waiting(struct unwinder *u, const struct sampler_handler *h, bool final, size_t tried)
{
	size_t kept = 0;
	int ret = 0;

	for (size_t i = 0; i < u->nwaiting; i++) {
		struct waiting *w = &u->waiting[i];
		bool over = final || u->waiting_bytes > u->copied_bytes;
		int r;

		if (ret || (i < tried && !over)) {
			u->waiting[kept++] = *w;
			continue;
		}
		u->at_hand = w->capture;
		r = replay(w->capture, rows_of, u, false, &u->walk);
		if (r == -EAGAIN && over) {
			u->stats.hurried++;
			r = replay(w->capture, rows_of, u, true, &u->walk);
		} else if (r == -EAGAIN && u->use[u->walk.missing].state == FILE_UNKNOWN) {
			ret = unwinder_file(u, u->walk.missing);	/* evicted meanwhile */
		}
		if (r == -EAGAIN) {
			compiler_want(u->compiler, u->walk.missing, 1);
			u->waiting[kept++] = *w;
			continue;
		}
		u->copied_ns = w->arrived;
		ret = deliver(u, w->capture, h);
		u->copied_ns = 0;
		u->waiting_bytes -= w->size;
		free(w->capture);
	}
	u->nwaiting = u->tried = kept;
	if (!kept)
		sampler_unmap_rows(u->sampler);
	return ret;
}

uint64_t unwinder_copied_ns(const struct unwinder *u)
{
	return u->copied_ns;
}

int unwinder_capture(struct unwinder *u, const struct wk_capture *c, size_t size)
{
	struct wk_capture *copy = malloc(size);
	int r = copy ? array_grow(&u->waiting, &u->waiting_cap, u->nwaiting + 1,
				  sizeof(*u->waiting)) : -ENOMEM;

	if (r) {
		free(copy);
		return r;
	}
	memcpy(copy, c, size);
	u->waiting[u->nwaiting++] = (struct waiting){ copy, size, clock_monotonic() };
	u->waiting_bytes += size;
	return 0;
}

void unwinder_used(struct unwinder *u, uint64_t frame, uint64_t count)
{
	uint32_t id = WK_FRAME_FILE_ID(frame);

	if (WK_FRAME_IS_KERNEL(frame) || WK_FRAME_TAG(frame) != WK_FRAME_FILE || id >= u->use_cap)
		return;
	u->use[id].last_used = u->round;
	if (u->use[id].state == FILE_COMPILING)
		compiler_want(u->compiler, id, count);
}

void unwinder_waiting(const struct unwinder *u, void (*frame)(void *ctx, uint64_t frame), void *ctx)
{
	for (size_t i = 0; i < u->nwaiting; i++) {
		const struct wk_capture *c = u->waiting[i].capture;

		for (size_t n = 0; n < c->nr_user; n++)
			frame(ctx, c->user[n]);
		for (size_t n = 0; n < c->nr_vmas; n++)
			frame(ctx, c->vmas[n].frame);
	}
}

int unwinder_fd(const struct unwinder *u)
{
	return compiler_fd(u->compiler);
}

int unwinder_work(struct unwinder *u, const struct sampler_handler *h)
{
	struct compiled c;
	bool news = false;

	u->round++;
	while (compiler_take(u->compiler, &c)) {
		install(u, &c);
		unwtab_free(c.table);
		news = true;
	}
	/* until there is something new, those that couldn't go on still can't */
	return replay_waiting(u, h, false, news ? 0 : u->tried);
}

int unwinder_finish(struct unwinder *u, const struct sampler_handler *h)
{
	struct pollfd p = { .fd = unwinder_fd(u), .events = POLLIN };
	uint64_t end = clock_monotonic() + UNWINDER_FINISH_SECONDS * 1000000000ULL;
	int r = unwinder_work(u, h);

	while (!r && u->nwaiting && clock_monotonic() < end) {
		(void)poll(&p, 1, 100);
		r = unwinder_work(u, h);
	}
	return r ? r : replay_waiting(u, h, true, 0);
}

const struct unwinder_stats *unwinder_stats(const struct unwinder *u)
{
	return &u->stats;
}
