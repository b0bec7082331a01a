/* process.c - see process.h. Frames are kept in order of their numbers, those of one process in a
 * chain; a hash map leads from (process, address) to the frame in force. */
#include "symbol/process.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/map.h"
#include "symbol/runtime.h"
#include "symbol/runtime_rows.h"

#define NONE UINT32_MAX

enum {
	DRAIN_NS = 50000000,	/* that one drain takes at most */
	ROWS_CHECKS = 1024,	/* functions of a process whose frames are looked at, without finding any */
	ASK_PAUSE_US = 10000,	/* between two looks at whether an answer is there */
};

struct frame {
	uint64_t number;
	uint64_t address, start;
	uint64_t last;		/* epoch in which it was drained */
	uint64_t met;		/* drained for the first time, monotonic ns */
	struct runtime_place place;
	uint32_t process;	/* index */
	uint32_t next;		/* of the same process, or NONE */
	uint32_t name, file;	/* in its strings; 0: none yet */
	uint32_t line;
	bool superseded;	/* other code lies there now */
};

struct process {
	struct process_key key;
	struct runtime *runtime;
	struct strtab names;
	uint32_t first;		/* frame, or NONE */
	struct runtime_rows *rows;	/* NULL: its frames are found by frame pointers */
	uint32_t checked;	/* functions, for whether that is so */
	bool has_rows;		/* handed out */
	bool news;		/* it has told what frames weren't bound to yet */
};

struct spot {			/* key of `spots` */
	uint64_t address;
	uint64_t process;
};

struct processes {
	pthread_mutex_t lock;
	struct processes_options o;
	struct map keys;	/* struct process_key -> all[] */
	struct process *all;
	size_t all_cap;
	struct map spots;	/* struct spot -> current[] */
	uint32_t *current;	/* frame in force, or NONE */
	size_t current_cap;
	struct frame *frames;	/* in order of their numbers */
	size_t nframes, frames_cap;
	uint64_t next_number, epoch;
	uint64_t met;		/* see meeting_time() */
	uint32_t turn;		/* the process to refresh next */
	uint64_t refused_processes;
};

int processes_new(const struct processes_options *o, struct processes **ret)
{
	struct processes *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->o = *o;
	if (!p->o.max_bytes)
		p->o.max_bytes = PROCESSES_BYTES_DEFAULT;
	if (!p->o.max_processes)
		p->o.max_processes = PROCESSES_DEFAULT;
	pthread_mutex_init(&p->lock, NULL);
	p->keys = (struct map)MAP_INIT(sizeof(struct process_key));
	p->spots = (struct map)MAP_INIT(sizeof(struct spot));
	p->next_number = 1;
	*ret = p;
	return 0;
}

static void process_done(struct process *x)
{
	runtime_free(x->runtime);
	runtime_rows_free(x->rows);
	strtab_free(&x->names);
}

void processes_free(struct processes *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->keys.n; i++)
		process_done(&p->all[i]);
	free(p->all);
	free(p->current);
	free(p->frames);
	map_free(&p->keys);
	map_free(&p->spots);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

static void unlock_cleanup(pthread_mutex_t **lock)
{
	pthread_mutex_unlock(*lock);
}

/* For the rest of the scope. */
#define HOLD(p)                                                                                    \
	pthread_mutex_t *held cleanup(unlock_cleanup) = &(p)->lock;                                \
	pthread_mutex_lock(held)

static uint64_t own_bytes(const struct process *x)
{
	return runtime_bytes(x->runtime) + runtime_rows_bytes(x->rows);
}

static uint64_t table_bytes(const struct processes *p)
{
	uint64_t n = 0;

	for (size_t i = 0; i < p->keys.n; i++)
		n += own_bytes(&p->all[i]);
	return n;
}

/* What the tables of one process may take: its own and what is left of all. Names come first: rows make room
 * for them at their next update. */
static uint64_t allowance(const struct processes *p, const struct process *x)
{
	uint64_t all = table_bytes(p);
	uint64_t left = own_bytes(x) + (all < p->o.max_bytes ? p->o.max_bytes - all : 0);

	return MAX(MIN(left, p->o.max_bytes / PROCESSES_SHARE), p->o.max_bytes / p->o.max_processes);
}

/* ---- frames ---- */

/* Asks the runtime what lies at the frame's address. That is the frame's name unless it has another
 * one: then it isn't the code there any more. */
static int bind_frame(struct process *x, struct frame *f)
{
	struct runtime_code code;
	uint32_t name;
	int r;

	if (!runtime_find(x->runtime, f->address, &f->place, &code))
		return 0;	/* unknown, as before, or silence about what was known: no news */
	r = strtab_puts(&x->names, code.name, &name);
	if (r)
		return r;
	if (f->name && (f->name != name || f->start != code.start)) {
		f->superseded = true;
		return 0;
	}
	r = strtab_puts(&x->names, code.file, &f->file);
	if (r)
		return r;
	f->name = name;
	f->start = code.start;
	f->line = code.line;
	if (!x->rows && x->checked < ROWS_CHECKS) {
		x->checked++;
		r = runtime_rows_needed(x->runtime, f->address);
		if (r > 0)
			return runtime_rows_new(&x->rows);
		if (r < 0)
			x->checked = ROWS_CHECKS;	/* nobody reads this process's memory again */
	}
	return 0;
}

/* After the runtime has told more, all of it from before `until`: what was met later and has no name
 * yet may get another one. */
static int bind_all(struct processes *p, uint32_t index, uint64_t until)
{
	struct process *x = &p->all[index];

	for (uint32_t i = x->first; i != NONE; i = p->frames[i].next) {
		struct frame *f = &p->frames[i];
		struct spot spot = { f->address, index };
		uint32_t n = map_find(&p->spots, &spot);
		int r;

		if (f->superseded || (!f->name && f->met > until))
			continue;
		r = bind_frame(x, f);
		if (r)
			return r;
		if (f->superseded && n != MAP_NONE)
			p->current[n] = NONE;	/* the next sample there makes another frame */
	}
	return 0;
}

/* When what is being drained was sampled at the latest. Frames of one drain have one time, so that
 * refresh() has few to stop at. */
static uint64_t meeting_time(struct processes *p)
{
	uint64_t now = clock_monotonic();

	if (now - p->met > DRAIN_NS)
		p->met = now;
	return p->met;
}

static int new_frame(struct processes *p, uint32_t index, uint64_t address, uint32_t *ret)
{
	struct process *x = &p->all[index];
	int r = array_grow(&p->frames, &p->frames_cap, p->nframes + 1, sizeof(*p->frames));

	if (r || p->nframes >= NONE)
		return r ? r : -ENOMEM;
	p->frames[p->nframes] = (struct frame){
		.number = p->next_number,
		.address = address,
		.met = meeting_time(p),
		.process = index,
		.next = x->first,
	};
	r = bind_frame(x, &p->frames[p->nframes]);
	if (r)
		return r;
	p->next_number++;
	x->first = *ret = (uint32_t)p->nframes++;
	return 0;
}

static int frame_at(struct processes *p, uint32_t index, uint64_t address, uint32_t *ret)
{
	struct spot spot = { address, index };
	uint32_t n;
	bool added;
	int r = array_grow(&p->current, &p->current_cap, p->spots.n + 1, sizeof(*p->current));

	if (!r)
		r = map_put(&p->spots, &spot, &n, &added);
	if (r)
		return r;
	if (added)
		p->current[n] = NONE;
	if (p->current[n] == NONE)
		r = new_frame(p, index, address, &p->current[n]);
	if (r)
		return r;
	*ret = p->current[n];
	return 0;
}

/* ---- processes ---- */

/* An exec has replaced the former program of the same process: its files are no longer its own. */
static void end_former(struct processes *p, const struct process_key *key)
{
	for (size_t i = 0; i < p->keys.n; i++)
		if (p->all[i].key.pid == key->pid && memcmp(&p->all[i].key, key, sizeof(*key)))
			runtime_end(p->all[i].runtime);
}

/* -E2BIG: one too many. */
static int find_process(struct processes *p, const struct process_key *key, uint32_t *ret)
{
	struct process fresh = { .key = *key, .first = NONE, .names = STRTAB_INIT };
	uint32_t none;
	int r;

	*ret = map_find(&p->keys, key);
	if (*ret != MAP_NONE)
		return 0;
	if (p->keys.n >= p->o.max_processes)
		return -E2BIG;
	end_former(p, key);
	r = array_grow(&p->all, &p->all_cap, p->keys.n + 1, sizeof(*p->all));
	if (!r)
		r = strtab_puts(&fresh.names, "", &none);	/* so that no name is 0 */
	if (!r)
		r = runtime_new(key->pid, key->start_time, p->o.java_perfmap, &fresh.runtime);
	if (!r)
		r = map_put(&p->keys, key, ret, NULL);
	if (r) {
		process_done(&fresh);
		return r;
	}
	p->all[*ret] = fresh;
	return 0;
}

int processes_frame(struct processes *p, const struct process_key *key, uint64_t raw, uint64_t *ret)
{
	HOLD(p);
	uint32_t index, frame;
	size_t before = p->keys.n;
	bool changed;
	int r;

	*ret = raw;
	if (!key->pid)
		return 0;
	r = find_process(p, key, &index);
	if (r == -E2BIG) {
		p->refused_processes++;
		return 0;
	}
	if (!r && p->keys.n > before) {	/* at once: it may not live much longer */
		runtime_look(p->all[index].runtime);
		r = runtime_update(p->all[index].runtime, allowance(p, &p->all[index]), UINT64_MAX,
				   clock_monotonic() + PROCESSES_FIRST_NS, &changed);
	}
	if (!r || r == -EAGAIN)
		r = frame_at(p, index, raw, &frame);
	if (r)
		return r;
	p->frames[frame].last = p->epoch;
	*ret = WK_FRAME_CODE << WK_FRAME_TAG_SHIFT | p->frames[frame].number;
	return 0;
}

/* The earliest time, from `since` on, at which a frame was met that has no name. */
static uint64_t first_nameless(const struct processes *p, const struct process *x, uint64_t since)
{
	uint64_t first = UINT64_MAX;

	for (uint32_t i = x->first; i != NONE; i = p->frames[i].next)
		if (!p->frames[i].name && p->frames[i].met >= since)
			first = MIN(first, p->frames[i].met);
	return first;
}

/* Reads on in what one runtime tells, stopping at the times when frames were met. */
static int refresh(struct processes *p, uint32_t index, uint64_t deadline)
{
	struct process *x = &p->all[index];
	uint64_t next, until = 0;
	bool more = true;
	int r = 0;

	runtime_look(x->runtime);
	while (!r && more && until != UINT64_MAX) {
		next = runtime_next_time(x->runtime);
		if (next != UINT64_MAX && x->news)
			r = bind_all(p, index, next - 1);	/* what comes was later than these */
		until = next == UINT64_MAX ? next : first_nameless(p, x, next);
		if (!r)
			r = runtime_update(x->runtime, allowance(p, x), until, deadline, &more);
		x->news |= more;
	}
	if (!r && x->news) {
		r = bind_all(p, index, UINT64_MAX);
		x->news = false;
	}
	return r;
}

int processes_refresh(struct processes *p, uint64_t deadline)
{
	HOLD(p);
	int r = 0;

	for (size_t i = 0; i < p->keys.n && r != -ENOMEM; i++) {
		r = refresh(p, p->turn++ % (uint32_t)p->keys.n, deadline);
		if (clock_monotonic() >= deadline)
			break;
	}
	return r == -ENOMEM ? r : 0;
}

static int end_rows(struct process *x, processes_rows_fn *each, void *ctx)
{
	bool had = x->has_rows;

	runtime_rows_free(take(x->rows));
	x->checked = ROWS_CHECKS;
	x->has_rows = false;
	return had ? each(ctx, &x->key, NULL) : 0;
}

static int hand_out(struct processes *p, struct process *x, uint64_t deadline, processes_rows_fn *each,
		    void *ctx)
{
	uint64_t max = allowance(p, x), names = runtime_bytes(x->runtime);
	struct unwtab *table = NULL;
	int r;

	if (runtime_is_over(x->runtime))
		return end_rows(x, each, ctx);
	r = runtime_rows_update(x->rows, x->runtime, max - MIN(names, max), deadline, &table);
	if (table && (!r || r == -EAGAIN)) {
		x->has_rows = true;
		r = each(ctx, &x->key, table);
	}
	unwtab_free(table);
	if (r == -ETIMEDOUT)
		return end_rows(x, each, ctx);
	return r == -EAGAIN ? 0 : r;
}

int processes_rows(struct processes *p, uint64_t deadline, processes_rows_fn *each, void *ctx)
{
	HOLD(p);
	int r = 0;

	for (size_t i = 0; i < p->keys.n && !r; i++)
		if (p->all[i].rows)
			r = hand_out(p, &p->all[i], deadline, each, ctx);
	return r;
}

static bool anyone_is_asked(struct processes *p)
{
	HOLD(p);

	for (size_t i = 0; i < p->keys.n; i++)
		if (runtime_is_asked(p->all[i].runtime))
			return true;
	return false;
}

static void ask_all(struct processes *p)
{
	HOLD(p);

	for (size_t i = 0; i < p->keys.n; i++)
		(void)runtime_ask(p->all[i].runtime);
}

int processes_finish(struct processes *p, uint64_t deadline)
{
	int r;

	ask_all(p);
	r = processes_refresh(p, deadline);
	while (!r && anyone_is_asked(p) && clock_monotonic() < deadline) {
		usleep(ASK_PAUSE_US);
		r = processes_refresh(p, deadline);
	}
	return r;
}

/* ---- forgetting ---- */

void processes_epoch(struct processes *p, uint64_t epoch)
{
	HOLD(p);

	p->epoch = epoch;
}

static bool is_kept(const struct frame *f, uint64_t before)
{
	return f->last >= before;
}

/* Moves the processes that still have frames together; moved[] is where each went, or NONE. */
static int keep_processes(struct processes *p, const bool *used, uint32_t *moved)
{
	struct map keys = MAP_INIT(sizeof(struct process_key));
	size_t n = p->keys.n;
	uint32_t to;
	int r;

	for (size_t i = 0; i < n; i++) {
		moved[i] = NONE;
		if (!used[i])
			continue;
		r = map_put(&keys, &p->all[i].key, &moved[i], NULL);
		if (r) {
			map_free(&keys);
			return r;
		}
	}
	for (size_t i = 0; i < n; i++) {
		to = moved[i];
		if (to == NONE) {
			process_done(&p->all[i]);
			continue;
		}
		p->all[to] = p->all[i];
		p->all[to].first = NONE;
	}
	map_free(&p->keys);
	p->keys = keys;
	return 0;
}

/* Moves the frames together; fills the chains and `spots` anew: the newest frame of an address is the
 * one in force. */
static int keep_frames(struct processes *p, uint64_t before, const uint32_t *moved)
{
	size_t kept = 0;
	uint32_t n;
	int r;

	map_clear(&p->spots);
	for (size_t i = 0; i < p->nframes; i++) {
		struct frame f = p->frames[i];
		struct spot spot;

		if (!is_kept(&f, before))
			continue;
		f.process = moved[f.process];
		f.next = p->all[f.process].first;
		p->all[f.process].first = (uint32_t)kept;
		spot = (struct spot){ f.address, f.process };
		r = map_put(&p->spots, &spot, &n, NULL);	/* fewer than before: there is room */
		if (r)
			return r;
		p->current[n] = f.superseded ? NONE : (uint32_t)kept;
		p->frames[kept++] = f;
	}
	p->nframes = kept;
	return 0;
}

int processes_forget(struct processes *p, uint64_t before)
{
	HOLD(p);
	bool *used cleanup(freep_cleanup) = calloc(p->keys.n + 1, sizeof(*used));
	uint32_t *moved cleanup(freep_cleanup) = calloc(p->keys.n + 1, sizeof(*moved));
	int r;

	if (!used || !moved)
		return -ENOMEM;
	for (size_t i = 0; i < p->keys.n; i++)
		used[i] = p->all[i].has_rows;
	for (size_t i = 0; i < p->nframes; i++)
		if (is_kept(&p->frames[i], before))
			used[p->frames[i].process] = true;
	r = keep_processes(p, used, moved);
	return r ? r : keep_frames(p, before, moved);
}

/* ---- answers ---- */

static const struct frame *by_number(const struct processes *p, uint64_t number)
{
	size_t lo = 0, hi = p->nframes, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (p->frames[mid].number < number)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < p->nframes && p->frames[lo].number == number ? &p->frames[lo] : NULL;
}

int processes_lookup(struct processes *p, uint64_t frame, struct process_symbol *ret)
{
	HOLD(p);
	const struct frame *f = by_number(p, frame & ((1ULL << WK_FRAME_TAG_SHIFT) - 1));
	const struct process *x;

	if (WK_FRAME_TAG(frame) != WK_FRAME_CODE || !f)
		return -ENOENT;
	x = &p->all[f->process];
	ret->pid = x->key.pid;
	ret->address = f->address;
	ret->start = f->start;
	ret->line = f->line;
	snprintf(ret->name, sizeof(ret->name), "%s", strtab_get(&x->names, f->name));
	snprintf(ret->file, sizeof(ret->file), "%s", strtab_get(&x->names, f->file));
	return 0;
}

void processes_stats(struct processes *p, struct processes_stats *ret)
{
	HOLD(p);
	struct processes_stats s = { .processes = (uint32_t)p->keys.n, .frames = p->nframes,
				     .refused_processes = p->refused_processes };

	for (size_t i = 0; i < p->keys.n; i++) {
		s.with_names += runtime_speaks(p->all[i].runtime);
		s.with_rows += p->all[i].has_rows;
		s.refused_rows += runtime_rows_left_out(p->all[i].rows);
		s.refused_code += runtime_refused(p->all[i].runtime);
		s.bytes += own_bytes(&p->all[i]);
	}
	*ret = s;
}
