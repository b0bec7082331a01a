/* file_event.h - announcements of files for tests, as BPF would make them, from a mapping of the
 * test's own process. */
#ifndef FILE_EVENT_H
#define FILE_EVENT_H

#include <check.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/base.h"
#include "wick_abi.h"

static inline struct wk_file_key file_key(const struct stat *st)
{
	return (struct wk_file_key){
		.ino = st->st_ino,
		.mtime_ns = (uint64_t)st->st_mtim.tv_sec * 1000000000 +
			    (uint64_t)st->st_mtim.tv_nsec,
		.dev = major(st->st_dev) << 20 | minor(st->st_dev),
	};
}

/* The names of an absolute path within its file system, leaf first, each with a NUL. */
static inline void event_set_path(struct wk_file_event *e, const char *path)
{
	const char *end = path + strlen(path);

	e->path_len = 0;
	while (end > path) {
		const char *name = end;
		size_t n;

		while (name > path && name[-1] != '/')
			name--;
		n = (size_t)(end - name);
		if (n) {
			ck_assert_uint_le(e->path_len + n + 1, WK_PATH_BYTES);
			memcpy(e->path + e->path_len, name, n);
			e->path[e->path_len + n] = '\0';
			e->path_len += (uint32_t)n + 1;
		}
		end = name > path ? name - 1 : path;
	}
}

/* The mapping that holds addr in our own process. */
static inline void event_set_mapping(struct wk_file_event *e, const void *addr)
{
	cleanup(file_cleanup) FILE *f = fopen("/proc/self/maps", "re");
	unsigned long long start, end, pgoff, at = (uintptr_t)addr;
	char line[8192];

	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx-%llx %*s %llx", &start, &end, &pgoff) == 3 && start <= at &&
		    at < end) {
			e->vm_start = start;
			e->vm_end = end;
			e->pgoff = pgoff;
			return;
		}
	ck_abort_msg("%p is not mapped", addr);
}

/* The announcement of the file at path, of which addr is a mapped byte. */
static inline struct wk_file_event file_event(uint32_t id, const char *path, const void *addr)
{
	struct wk_file_event e = { .type = WK_EVENT_FILE, .id = id };
	struct stat st;

	ck_assert_int_eq(stat(path, &st), 0);
	e.key = file_key(&st);
	e.pid = (uint32_t)getpid();
	e.tid = (uint32_t)gettid();
	event_set_mapping(&e, addr);
	event_set_path(&e, path);
	return e;
}

/* The frame word of an address in the file of e. */
static inline maybe_unused uint64_t event_frame(const struct wk_file_event *e, const void *addr)
{
	return WK_FRAME_MAKE_FILE(e->id, (uintptr_t)addr - e->vm_start + e->pgoff);
}

/* Maps the first page of a file. */
static inline maybe_unused void *map_file(const char *path)
{
	cleanup(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *p;

	ck_assert_int_ge(fd, 0);
	p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	ck_assert(p != MAP_FAILED);
	return p;
}

static inline maybe_unused void copy_file(const char *from, const char *to)
{
	cleanup(fd_cleanup) int in = open(from, O_RDONLY | O_CLOEXEC);
	cleanup(fd_cleanup) int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	char block[65536];
	ssize_t n;

	ck_assert_int_ge(in, 0);
	ck_assert_int_ge(out, 0);
	while ((n = read(in, block, sizeof(block))) > 0)
		ck_assert_int_eq(write(out, block, (size_t)n), n);
	ck_assert_int_eq(n, 0);
}

/* The path of our own program. */
static inline maybe_unused const char *own_path(void)
{
	static char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	ck_assert_int_gt(n, 0);
	path[n] = '\0';
	return path;
}

#endif
