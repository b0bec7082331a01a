/* runtime.c - see runtime.h. */
#include "symbol/runtime.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "proc/pid.h"
#include "symbol/perfmap.h"

enum { PERFMAP = 1 };		/* sources */

enum { SLACK_NS = 100000000 };	/* time stamps of files are as coarse as the timer tick */

struct runtime {
	uint32_t pid;
	uint64_t start_time;
	int64_t started;	/* the same as CLOCK_REALTIME ns; 0: unknown */
	bool gone, ended;	/* the process; what it had to say */
	struct perfmap perfmap;
	struct codemap perf_codes;
	dev_t dev;		/* of the perf map */
	ino_t ino;
	uint32_t version;
};

static int64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int runtime_new(uint32_t pid, uint64_t start_time, struct runtime **ret)
{
	struct runtime *rt = calloc(1, sizeof(*rt));

	if (!rt)
		return -ENOMEM;
	rt->pid = pid;
	rt->start_time = start_time;
	if (start_time)
		rt->started = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME) +
			      (int64_t)start_time;
	perfmap_init(&rt->perfmap, -1);
	rt->perf_codes = (struct codemap)CODEMAP_INIT;
	*ret = rt;
	return 0;
}

void runtime_end(struct runtime *rt)
{
	perfmap_close(&rt->perfmap);
	rt->ended = true;
}

void runtime_free(struct runtime *rt)
{
	if (!rt)
		return;
	runtime_end(rt);
	codemap_free(&rt->perf_codes);
	free(rt);
}

/* ---- perf-PID.map ---- */

/* A file of an earlier process of that number was last written before this one began. */
static bool is_younger(const struct runtime *rt, const struct stat *st)
{
	int64_t written = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;

	return written >= rt->started - SLACK_NS;
}

/* Takes fd. Returns whether there is another file than before. */
static bool use_perfmap(struct runtime *rt, int fd, const struct stat *st)
{
	if (rt->perfmap.fd >= 0 && st->st_dev == rt->dev && st->st_ino == rt->ino) {
		close(fd);
		return false;
	}
	perfmap_close(&rt->perfmap);
	perfmap_init(&rt->perfmap, fd);
	codemap_clear(&rt->perf_codes);
	rt->dev = st->st_dev;
	rt->ino = st->st_ino;
	rt->version++;
	return true;
}

static bool find_perfmap(struct runtime *rt, int dir, const struct pid_info *info)
{
	char path[64];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "tmp/perf-%u.map", info->ns_pid);
	fd = pid_open_file(dir, path, &st);
	if (fd < 0)
		return false;
	if (pid_owns(info, &st) && is_younger(rt, &st))
		return use_perfmap(rt, fd, &st);
	close(fd);
	return false;
}

/* Of a process that was gone before we looked: whose it was can't be told any more, so only root's
 * word and our own user's count. */
static bool find_left_perfmap(struct runtime *rt)
{
	struct pid_info us = { .uids = { geteuid(), geteuid(), geteuid(), geteuid() } };
	int own cleanup(fd_cleanup) = pid_open((uint32_t)getpid(), 0);
	char path[64];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "tmp/perf-%u.map", rt->pid);
	fd = own < 0 || !rt->started ? -ESRCH : pid_open_file(own, path, &st);
	if (fd < 0)
		return false;
	if (pid_owns(&us, &st) && is_younger(rt, &st))
		return use_perfmap(rt, fd, &st);
	close(fd);
	return false;
}

/* ---- all of it ---- */

/* Looks for files that weren't there before. Returns whether there are any. */
static bool find_sources(struct runtime *rt)
{
	int dir cleanup(fd_cleanup) = pid_open(rt->pid, rt->start_time);
	struct pid_info info;

	if (dir < 0 || pid_read_info(dir, &info)) {
		rt->gone = true;
		return rt->perfmap.fd < 0 && find_left_perfmap(rt);
	}
	return find_perfmap(rt, dir, &info);
}

int runtime_update(struct runtime *rt, uint64_t max_bytes, uint64_t deadline, bool *ret_changed)
{
	uint32_t rewrites;
	bool changed = false;
	int r;

	*ret_changed = false;
	if (rt->ended)
		return 0;
	if (!rt->gone)
		*ret_changed = find_sources(rt);
	if (rt->perfmap.fd < 0) {
		rt->ended = rt->gone;
		return 0;
	}
	rt->perf_codes.max = max_bytes / sizeof(struct code_piece);
	rewrites = rt->perfmap.rewrites;
	r = perfmap_update(&rt->perfmap, &rt->perf_codes, deadline, &changed);
	if (rt->perfmap.rewrites != rewrites)
		rt->version++;
	*ret_changed |= changed;
	if (!r)
		rt->ended = rt->gone;	/* that was its last word */
	return r == -EAGAIN || r == -ENOMEM ? r : 0;
}

bool runtime_find(const struct runtime *rt, uint64_t addr, struct runtime_place *place,
		  struct runtime_code *ret)
{
	const struct code_piece *c = rt->perfmap.fd < 0 ? NULL : codemap_find(&rt->perf_codes, addr);
	struct runtime_place here;

	if (!c)
		return false;
	here = (struct runtime_place){ c->where, PERFMAP, rt->version };
	if (!memcmp(&here, place, sizeof(here)))
		return false;
	if (perfmap_name(&rt->perfmap, c->where, addr, &ret->start, ret->name, sizeof(ret->name)))
		return false;
	*place = here;
	return true;
}

bool runtime_speaks(const struct runtime *rt)
{
	return rt->version != 0;
}

uint64_t runtime_bytes(const struct runtime *rt)
{
	return codemap_bytes(&rt->perf_codes);
}

uint64_t runtime_refused(const struct runtime *rt)
{
	return rt->perf_codes.refused;
}
