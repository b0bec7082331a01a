/* maps.h - read the text of /proc/PID/maps (proc_pid_maps(5)).
 *
 *	struct buf text = BUF_INIT(MAPS_MAX_BYTES);
 *	struct maps_area a;
 *	r = maps_read(pid, &text);
 *	if (!r)
 *		r = maps_find(text.data, text.len, addr, &a);
 *	if (!r && a.kind == MAPS_FILE)
 *		maps_path(&a, path, sizeof(path));
 *
 * The text is hostile: the process chooses its paths and the names of its anonymous memory, and
 * the kernel escapes nothing but the newline (as \012). So a file really named "a\012b" can't be
 * told from "a<newline>b", nor one named "x (deleted)" from a deleted x. Paths are for people to
 * read; what a mapping contains is opened through /proc/PID/map_files, and compared with the key
 * from BPF. Device and inode numbers differ from those of BPF on overlayfs and btrfs.
 * Ownership: areas point into the text. Cost: linear in the text, about 200 ns a line; nothing is
 * allocated.
 */
#ifndef WICK_MAPS_H
#define WICK_MAPS_H

#include "base/buf.h"

enum {
	MAPS_MAX_BYTES = 64 << 20,	/* 65,530 areas (vm.max_map_count) with long paths */
	MAPS_PATH_MAX = 4096,		/* a longer path is cut by maps_path */
};

enum maps_kind {
	MAPS_ANON,	/* no name, or [anon:NAME] */
	MAPS_FILE,	/* has a file behind it, also a deleted one, memfd, shared memory */
	MAPS_SPECIAL,	/* [heap] [stack] [vdso] [vvar] [vsyscall] ... */
};

enum { MAPS_R = 1, MAPS_W = 2, MAPS_X = 4, MAPS_SHARED = 8 };

struct maps_area {
	uint64_t start, end;	/* [start, end), start < end */
	uint64_t offset;	/* in the file, bytes */
	uint64_t inode;
	uint32_t major, minor;	/* of the device */
	unsigned int perms;	/* MAPS_R | ... */
	enum maps_kind kind;
	bool deleted;		/* the kernel appended " (deleted)"; not part of path */
	const char *path;	/* as written, borrowed from the text, not NUL-terminated */
	size_t path_len;	/* 0: no name */
};

/* One line, without its newline. 0, or -EINVAL if it isn't one. */
int must_check maps_parse_line(const char *line, size_t len, struct maps_area *ret);

/* Calls fn for each area in turn until it returns something else than 0, and returns that. Lines
 * that can't be parsed are skipped; their number is added to *bad (may be NULL). */
int maps_each(const char *text, size_t len, int (*fn)(const struct maps_area *a, void *arg),
	      void *arg, size_t *bad);

/* The area around addr. 0, or -ENOENT. */
int must_check maps_find(const char *text, size_t len, uint64_t addr, struct maps_area *ret);

/* Writes the path, \012 undone, cut to size - 1 bytes, with its NUL, and returns its length. It may
 * hold any byte but NUL. size > 0. */
size_t maps_path(const struct maps_area *a, char *ret, size_t size);

/* Appends the whole text for a process. A kernel thread and a zombie have none: 0, nothing added.
 * -ENOENT, -ESRCH: no such process; -EACCES, -EPERM: not ours to read; -E2BIG over b's cap. Not
 * atomic: the process may change its mappings between two reads, so that an area may be missing or
 * appear twice. */
int must_check maps_read(int pid, struct buf *b);

#endif
