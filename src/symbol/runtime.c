/* runtime.c - see runtime.h. */
#include "symbol/runtime.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "proc/attach.h"
#include "proc/maps.h"
#include "proc/offload.h"
#include "proc/pid.h"
#include "symbol/foreign.h"
#include "symbol/jitdump.h"
#include "symbol/perfmap.h"

enum { PERFMAP = 1, JITDUMP = 2 };	/* sources */

enum { SLACK_NS = 100000000 };	/* time stamps of files are as coarse as the timer tick */

struct runtime {
	uint32_t pid;
	uint64_t start_time;
	int64_t started;	/* the same as CLOCK_REALTIME ns; 0: unknown */
	bool gone, ended;	/* the process; what it had to say */
	bool silent;		/* whoever serves its directories doesn't answer: it is asked no more */
	struct perfmap perfmap;
	struct codemap perf_codes;
	dev_t dev;		/* of the perf map */
	ino_t ino;
	uint32_t version;
	struct jitdump jitdump;
	struct codemap jit_codes;
	char jit_link[64];	/* to copy on from; "": it is read where it lies */
	uint32_t maps_wait, maps_pause;	/* looks to go without reading the mappings; the last pause */
	struct attach attach;
	bool java_perfmap, asking;
	int asked;		/* how that went the last time: 0, or why not */
	uint64_t ask_next;
	uint64_t changes;
};

static int64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int runtime_new(uint32_t pid, uint64_t start_time, bool java_perfmap, struct runtime **ret)
{
	struct runtime *rt = calloc(1, sizeof(*rt));

	if (!rt)
		return -ENOMEM;
	rt->pid = pid;
	rt->start_time = start_time;
	rt->java_perfmap = java_perfmap;
	attach_init(&rt->attach, "Compiler.perfmap");
	if (start_time)
		rt->started = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME) +
			      (int64_t)start_time;
	perfmap_init(&rt->perfmap, -1);
	rt->perf_codes = (struct codemap)CODEMAP_INIT;
	rt->jitdump.fd = -1;
	rt->jit_codes = (struct codemap)CODEMAP_INIT;
	*ret = rt;
	return 0;
}

void runtime_end(struct runtime *rt)
{
	perfmap_close(&rt->perfmap);
	jitdump_close(&rt->jitdump);
	attach_done(&rt->attach);
	rt->asking = false;
	rt->ended = true;
}

void runtime_free(struct runtime *rt)
{
	if (!rt)
		return;
	runtime_end(rt);
	codemap_free(&rt->perf_codes);
	codemap_free(&rt->jit_codes);
	free(rt);
}

/* ---- perf-PID.map ---- */

/* A file of an earlier process of that number was last written before this one began. */
static bool is_younger(const struct runtime *rt, const struct stat *st)
{
	int64_t written = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;

	return written >= rt->started - SLACK_NS;
}

/* Two descriptors of one file; of a copy, of the same one. */
static bool is_same(int a, int b)
{
	struct stat sa, sb;

	return !fstat(a, &sa) && !fstat(b, &sb) && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

/* Takes fd. */
static void use_perfmap(struct runtime *rt, int fd, const struct stat *st)
{
	if (rt->perfmap.fd >= 0 && st->st_dev == rt->dev && st->st_ino == rt->ino && is_same(fd, rt->perfmap.fd)) {
		close(fd);	/* as before */
		return;
	}
	perfmap_close(&rt->perfmap);
	perfmap_init(&rt->perfmap, fd);
	codemap_clear(&rt->perf_codes);
	rt->dev = st->st_dev;
	rt->ino = st->st_ino;
	rt->version++;
}

static void find_perfmap(struct runtime *rt, int dir, const struct pid_info *info)
{
	struct foreign_file f;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "tmp/perf-%u.map", info->ns_pid);
	fd = foreign_open(dir, path, FOREIGN_GROWS, &f);
	rt->silent |= fd == -ETIMEDOUT;
	if (fd < 0)
		return;
	if (pid_owns(info, &f.st) && is_younger(rt, &f.st))
		use_perfmap(rt, fd, &f.st);
	else
		close(fd);
}

/* Of a process that was gone before we looked: whose it was can't be told any more, so only root's
 * word and our own user's count. */
static void find_left_perfmap(struct runtime *rt)
{
	struct pid_info us = { .uids = { geteuid(), geteuid(), geteuid(), geteuid() } };
	int own cleanup(fd_cleanup) = pid_open((uint32_t)getpid(), 0);
	struct foreign_file f;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "tmp/perf-%u.map", rt->pid);
	fd = own < 0 || !rt->started ? -ESRCH : foreign_open(own, path, 0, &f);
	if (fd < 0)
		return;
	if (pid_owns(&us, &f.st) && is_younger(rt, &f.st))
		use_perfmap(rt, fd, &f.st);
	else
		close(fd);
}

/* ---- jit-PID.dump ---- */

struct wanted {
	char name[32];
	struct maps_area found;
};

/* The runtime has mapped a page of its dump as executable, to be found by that. */
static int is_marker(const struct maps_area *a, void *arg)
{
	struct wanted *w = arg;
	size_t n = strlen(w->name);

	if (a->kind != MAPS_FILE || !(a->perms & MAPS_X) || a->path_len <= n ||
	    a->path[a->path_len - n - 1] != '/' || memcmp(a->path + a->path_len - n, w->name, n))
		return 0;
	w->found = *a;
	return 1;
}

/* Who has mapped much, or is about to for long, lets others wait for the list of it. */
static int find_marker(const void *request, const int *fds, void *reply, int *ret_fd)
{
	cleanup(buf_cleanup) struct buf maps = BUF_INIT(RUNTIME_MAPS_BYTES);
	struct wanted w = { .found = { 0 } };
	int r = pid_read_text(fds[0], "maps", &maps);

	(void)ret_fd;
	memcpy(w.name, request, sizeof(w.name));
	if (r || !maps.data)
		return r ? r : -ENOENT;
	r = maps_each(maps.data, maps.len, is_marker, &w, NULL);
	if (r != 1)
		return r < 0 ? r : -ENOENT;
	snprintf(reply, sizeof(((struct runtime *)NULL)->jit_link), "map_files/%llx-%llx",
		 (unsigned long long)w.found.start, (unsigned long long)w.found.end);
	return 0;
}

/* Through the mapping itself: wherever the file lies, and if it has been deleted. */
static void find_jitdump(struct runtime *rt, int dir, const struct pid_info *info)
{
	char name[sizeof(((struct wanted *)NULL)->name)], link[sizeof(rt->jit_link)];
	struct foreign_file f;
	int fd, r;

	snprintf(name, sizeof(name), "jit-%u.dump", info->ns_pid);
	r = offload(&(struct offload_call){ .kind = pid_is_ours(dir) ? OFFLOAD_OURS : OFFLOAD_FOREIGN,
					    .fn = find_marker, .request = name, .request_size = sizeof(name),
					    .fds = { dir }, .nfds = 1,
					    .reply = link, .reply_size = sizeof(link) }, NULL);
	fd = r ? r : foreign_open(dir, link, FOREIGN_LINK | FOREIGN_GROWS, &f);
	rt->silent |= fd == -ETIMEDOUT;
	if (fd < 0)
		return;
	if (!pid_owns(info, &f.st))
		close(fd);
	else if (jitdump_open(&rt->jitdump, fd))
		rt->jitdump.fd = -1;
	else if (f.copied)
		memcpy(rt->jit_link, link, sizeof(link));
}

/* What has come since a copy was made. */
static void follow_jitdump(struct runtime *rt, int dir)
{
	struct foreign_file f;
	int fd = foreign_open(dir, rt->jit_link, FOREIGN_LINK | FOREIGN_GROWS, &f);

	if (fd >= 0)
		close(fd);
}

/* Mappings can be many: they are looked at after 1, 2, 4, ... seconds. */
static bool time_for_maps(struct runtime *rt)
{
	if (rt->jitdump.fd >= 0)
		return false;
	if (rt->maps_wait) {
		rt->maps_wait--;
		return false;
	}
	rt->maps_wait = rt->maps_pause;
	rt->maps_pause = MIN(2 * rt->maps_pause + 1, (uint32_t)RUNTIME_MAPS_PAUSE);
	return true;
}

/* ---- Java ---- */

static void ask_java(struct runtime *rt, int dir, const struct pid_info *info)
{
	int r;

	if (rt->java_perfmap && !rt->asking && clock_monotonic() >= rt->ask_next)
		(void)runtime_ask(rt);
	if (!rt->asking)
		return;
	r = attach_step(&rt->attach, dir, rt->pid, info);
	if (r == -EINPROGRESS)
		return;
	rt->asking = false;
	rt->asked = r;
	if (r && r != -ETIMEDOUT)
		rt->java_perfmap = false;	/* nor will it later */
}

bool runtime_ask(struct runtime *rt)
{
	if (!rt->java_perfmap || rt->gone || rt->ended)
		return false;
	if (!rt->asking) {
		attach_done(&rt->attach);
		attach_init(&rt->attach, "Compiler.perfmap");
		rt->ask_next = clock_monotonic() + RUNTIME_ASK_NS;
		rt->asking = true;
	}
	return true;
}

bool runtime_is_asked(const struct runtime *rt)
{
	return rt->asking && !rt->gone;
}

/* ---- all of it ---- */

void runtime_look(struct runtime *rt)
{
	int dir cleanup(fd_cleanup) = -1;
	struct pid_info info;

	if (rt->gone || rt->ended)
		return;
	dir = pid_open(rt->pid, rt->start_time);
	if (dir < 0 || pid_read_info(dir, &info)) {
		rt->gone = true;
		if (rt->perfmap.fd < 0 && rt->jitdump.fd < 0)
			find_left_perfmap(rt);
		return;
	}
	if (rt->silent)
		return;
	ask_java(rt, dir, &info);
	find_perfmap(rt, dir, &info);
	if (rt->silent)
		return;
	if (rt->jit_link[0])
		follow_jitdump(rt, dir);
	else if (time_for_maps(rt))
		find_jitdump(rt, dir, &info);
}

static int update_perfmap(struct runtime *rt, uint64_t max_bytes, uint64_t deadline,
			  bool *ret_changed)
{
	uint32_t rewrites = rt->perfmap.rewrites;
	int r;

	rt->perf_codes.max = max_bytes / sizeof(struct code_piece);
	r = perfmap_update(&rt->perfmap, &rt->perf_codes, deadline, ret_changed);
	if (rt->perfmap.rewrites != rewrites)
		rt->version++;
	return r == -EAGAIN || r == -ENOMEM ? r : 0;
}

int runtime_update(struct runtime *rt, uint64_t max_bytes, uint64_t until, uint64_t deadline,
		   bool *ret_changed)
{
	uint64_t own = runtime_bytes(rt), perf = codemap_bytes(&rt->perf_codes);
	bool changed = false;
	int r = 0;

	*ret_changed = false;
	if (rt->ended)
		return 0;
	if (rt->jitdump.fd >= 0) {
		rt->jit_codes.max = (max_bytes - MIN(perf, max_bytes)) / sizeof(struct code_piece);
		r = jitdump_update(&rt->jitdump, &rt->jit_codes, until, deadline, ret_changed);
	}
	if (!r && rt->perfmap.fd >= 0) {
		r = update_perfmap(rt, max_bytes - MIN(own - perf, max_bytes), deadline, &changed);
		*ret_changed |= changed;
	}
	rt->changes += *ret_changed;
	if (!r && until == UINT64_MAX)
		rt->ended = rt->gone;	/* that was its last word */
	return r;
}

uint64_t runtime_next_time(const struct runtime *rt)
{
	if (rt->ended || rt->jitdump.fd < 0 || !rt->jitdump.timed)
		return UINT64_MAX;
	return jitdump_next_time(&rt->jitdump);
}

static bool find_in_jitdump(const struct runtime *rt, uint64_t addr, struct runtime_place *place,
			    struct runtime_code *ret)
{
	const struct code_piece *c = codemap_find(&rt->jit_codes, addr);
	struct runtime_place here;
	struct jitdump_code code;

	if (!c)
		return false;
	here = (struct runtime_place){ c->where, JITDUMP, 0 };
	if (!memcmp(&here, place, sizeof(here)) || jitdump_name(&rt->jitdump, c, addr, &code))
		return false;
	ret->start = code.start;
	ret->line = code.line;
	snprintf(ret->name, sizeof(ret->name), "%s", code.name);
	snprintf(ret->file, sizeof(ret->file), "%s", code.file);
	*place = here;
	return true;
}

static bool find_in_perfmap(const struct runtime *rt, uint64_t addr, struct runtime_place *place,
			    struct runtime_code *ret)
{
	const struct code_piece *c = codemap_find(&rt->perf_codes, addr);
	struct runtime_place here;

	if (!c)
		return false;
	here = (struct runtime_place){ c->where, PERFMAP, rt->version };
	if (!memcmp(&here, place, sizeof(here)) ||
	    perfmap_name(&rt->perfmap, c->where, addr, &ret->start, ret->name, sizeof(ret->name)))
		return false;
	ret->file[0] = '\0';
	ret->line = 0;
	*place = here;
	return true;
}

bool runtime_find(const struct runtime *rt, uint64_t addr, struct runtime_place *place,
		  struct runtime_code *ret)
{
	if (rt->jitdump.fd >= 0 && codemap_find(&rt->jit_codes, addr))
		return find_in_jitdump(rt, addr, place, ret);	/* it knows times and lines */
	return rt->perfmap.fd >= 0 && find_in_perfmap(rt, addr, place, ret);
}

/* ---- pieces ---- */

bool runtime_piece(const struct runtime *rt, uint64_t addr, uint64_t *ret_start, uint64_t *ret_end)
{
	const struct code_piece *c = codemap_find(&rt->jit_codes, addr);

	if (!c)
		c = codemap_find(&rt->perf_codes, addr);
	if (!c)
		return false;
	*ret_start = c->start;
	*ret_end = c->end;
	return true;
}

int runtime_each_piece(const struct runtime *rt, runtime_piece_fn *each, void *arg)
{
	const struct codemap *jit = &rt->jit_codes, *perf = &rt->perf_codes;
	size_t i = 0, k = 0;
	uint64_t end = 0;
	int r = 0;

	while ((i < jit->n || k < perf->n) && !r) {
		bool first = k == perf->n || (i < jit->n && jit->v[i].start <= perf->v[k].start);
		const struct code_piece *c = first ? &jit->v[i++] : &perf->v[k++];

		if (c->start < end)
			continue;	/* both list it */
		end = c->end;
		r = each(arg, c->start, c->end, first ? c->where : ~c->where);
	}
	return r;
}

uint64_t runtime_changes(const struct runtime *rt)
{
	return rt->changes;
}

int runtime_open_process(const struct runtime *rt)
{
	return rt->gone || rt->ended ? -ESRCH : pid_open(rt->pid, rt->start_time);
}

bool runtime_is_over(const struct runtime *rt)
{
	return rt->gone || rt->ended;
}

bool runtime_speaks(const struct runtime *rt)
{
	return rt->version || rt->jitdump.loads;
}

uint64_t runtime_bytes(const struct runtime *rt)
{
	return codemap_bytes(&rt->perf_codes) + codemap_bytes(&rt->jit_codes);
}

uint64_t runtime_refused(const struct runtime *rt)
{
	return rt->perf_codes.refused + rt->jit_codes.refused;
}
