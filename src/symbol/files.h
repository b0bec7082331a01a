/* files.h - the files whose code was sampled: opened when BPF announces them, forgotten when nobody
 * runs them any more.
 *
 *	r = files_announce(files, &event, &f);	// at once: a process may live 30 ms
 *	files_touch(files, id);			// each drained frame of a file
 *	window->epoch = files_next_epoch(files);// the samples until here are a profile to be built
 *	fd = files_open(files, id);		// the builder's thread reads the file
 *	n = files_evict(files, oldest_window_not_built->epoch - AGE, &evictor);
 *
 * fileopen.h says how the very file is found. Its descriptor is kept, as a process may be gone and
 * its file deleted when the first frame is named. At most max_fds are: beyond that the file not sampled
 * for longest is closed, those first that can be opened again by their path. files_open opens such a
 * file anew, through a process that maps it or by path, with its identity checked again.
 *
 * Ids come back. A file that was not sampled lately is first taken away from BPF (evictor.leave), so that
 * no new sample names its id. Samples drained meanwhile may; so the id is given back
 * (evictor.release) by a later files_evict, when all of them are in profiles that have been built. The
 * epochs tell: they count what the caller builds profiles of, from 1.
 *
 * Threads: announce, touch, forgotten, next_epoch, close_idle and evict belong to the thread that
 * samples. All else may be called by any thread at any time; a struct file doesn't change except for
 * `fd`, which is the sampling thread's.
 * Ownership: files own their descriptors. A struct file is borrowed until the files_evict that releases
 * it, i.e. for as long as a profile is to be built that has its id; or until its id is announced anew.
 * Memory: about 300 bytes a file and its path. Cost: files_touch is a few instructions.
 */
#ifndef WICK_FILES_H
#define WICK_FILES_H

#include "base/base.h"
#include "wick_abi.h"

struct files;

struct file {
	struct wk_file_key key;
	int fd;			/* the sampling thread's; -1: not open now. Others: files_open */
	int open_error;		/* 0, or the negative errno of the first try: it was never open */
	char *path;		/* as the process sees it, never NULL; " (deleted)" is cut off */
	bool deleted;		/* no longer under that path */
	bool on_host;		/* the path leads to this very file from our root, too */
};

/* max_fds: descriptors to hold at most. */
int must_check files_new(uint32_t max_fds, struct files **ret);
void files_free(struct files *f);
DEFINE_CLEANUP(files, struct files *, files_free)

/* Opens what the event announces. 0 also when it can't be opened: *ret says how it went, and the
 * file keeps at least a name. -ENOMEM, -EINVAL (an id out of range). */
int must_check files_announce(struct files *f, const struct wk_file_event *event,
			      const struct file **ret);
/* A drained sample has a frame in this file. Unknown ids are ignored. */
void files_touch(struct files *f, uint32_t id);
/* BPF doesn't know the file any more: it could not be opened, and is to be announced again. */
void files_forgotten(struct files *f, uint32_t id);

/* Samples drained from now on belong to the next epoch. Returns the one that has ended. */
uint64_t files_next_epoch(struct files *f);
uint64_t files_epoch(const struct files *f);	/* the current one */

/* What eviction does elsewhere. ctx is passed through. */
struct files_evictor {
	void *ctx;
	/* Makes BPF forget the file: no sample may get this id from now on, but for those that are in
	 * its windows already. False: not now (its unwind table is being compiled). */
	bool (*leave)(void *ctx, uint32_t id, const struct wk_file_key *key);
	/* Nothing refers to the id any more: it may be handed out again. */
	void (*release)(void *ctx, uint32_t id);
};

/* Evicts files that were last sampled before epoch `before`. No profile that is still to be built may
 * have samples of an earlier epoch, nor may copied stacks that wait for their unwind tables: touch
 * their files first. Returns the number of ids released. O(files). */
uint32_t files_evict(struct files *f, uint64_t before, const struct files_evictor *how);
/* Closes the descriptors of files last sampled before an epoch: an open file keeps a deleted one's
 * blocks and a file system busy. */
void files_close_idle(struct files *f, uint64_t before);

/* NULL: never announced, or released. */
const struct file *files_get(const struct files *f, uint32_t id);
/* A descriptor of the file, which the caller closes. -ENOENT: no such id; -errno as in open_error and
 * fileopen(): it was never open, or can't be opened again; those of foreign.h: it can't be copied. */
int must_check files_open(struct files *f, uint32_t id);
/* The same without a wait for whoever serves the file: then it only names it (foreign_readable()). */
int must_check files_hold(struct files *f, uint32_t id);

/* The process that BPF met it in, as pid_open() of pid.h: a descriptor that the caller closes, to look
 * beneath its root. -ENOENT: no such id; -ESRCH: it has gone; -errno. */
int must_check files_process(struct files *f, uint32_t id);

struct files_stats {
	uint32_t known;		/* ids in use */
	uint32_t unopened;	/* of these: never open */
	uint32_t fds;		/* descriptors held */
	uint64_t closed;	/* descriptors closed because of max_fds */
	uint64_t evicted;	/* ids released */
	uint64_t bytes;		/* memory */
};
struct files_stats files_stats(const struct files *f);
uint32_t files_count(const struct files *f);	/* ids in use */
uint32_t files_unopened(const struct files *f);

#endif
