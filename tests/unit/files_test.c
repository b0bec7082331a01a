/* Tests of symbol/files.h: files that this process maps, announced as BPF would, after somebody
 * deleted, replaced or rewrote them. What needs privileges (map_files, mounts) is left out where
 * there are none; each test runs in a process of its own (Check forks), with its own mounts. */
#include <check.h>
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "file_event.h"
#include "symbol/files.h"

static char dir[4096], path[4096 + 32];	/* of the test at hand; a file in it */

static void set_up(void)
{
	snprintf(dir, sizeof(dir), "/tmp/files_test.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/code", dir);
	copy_file("/proc/self/exe", path);
}

static void tear_down(void)
{
	umount2(dir, MNT_DETACH);	/* of the tests that mount something there */
	unlink(path);
	rmdir(dir);
}

/* map_files needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE. */
static bool can_open_mappings(void)
{
	struct wk_file_event e = file_event(2, own_path(), (void *)(uintptr_t)can_open_mappings);
	char link[128];
	int fd;

	snprintf(link, sizeof(link), "/proc/self/map_files/%llx-%llx", e.vm_start, e.vm_end);
	fd = open(link, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* A process id that was and is no more. */
static uint32_t gone(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	return (uint32_t)pid;
}

static int descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	ck_assert_ptr_nonnull(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static struct files *some_files(uint32_t max)
{
	struct files *f = NULL;

	ck_assert_int_eq(files_new(max, &f), 0);
	return f;
}

static const struct file *announce(struct files *f, const struct wk_file_event *e)
{
	const struct file *ret = NULL;

	ck_assert_int_eq(files_announce(f, e, &ret), 0);
	ck_assert_ptr_eq(ret, files_get(f, e->id));
	ck_assert_ptr_nonnull(ret->path);
	ck_assert_mem_eq(&ret->key, &e->key, sizeof(e->key));
	ck_assert_int_eq(ret->fd < 0, ret->open_error < 0);
	if (ret->fd < 0)
		ck_assert_int_eq(ret->fd, -1);
	return ret;
}

static void ck_opened(const struct file *f, const struct wk_file_event *e)
{
	struct stat st;

	ck_assert_msg(f->fd >= 0, "%s", strerror(-f->open_error));
	ck_assert_int_eq(f->open_error, 0);
	ck_assert_int_eq(fstat(f->fd, &st), 0);
	ck_assert_uint_eq(st.st_ino, e->key.ino);
	ck_assert_int_eq(fcntl(f->fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	ck_assert(fcntl(f->fd, F_GETFD) & FD_CLOEXEC);
}

static void ck_unopened(const struct file *f, int error)
{
	ck_assert_int_eq(f->fd, -1);
	ck_assert_int_eq(f->open_error, error);
}

/* The id's file, opened once more, is the one that was announced. */
static void ck_reopens(struct files *f, uint32_t id, const struct wk_file_event *e)
{
	cleanup(fd_cleanup) int fd = files_open(f, id);
	struct stat st;

	ck_assert_msg(fd >= 0, "%s", strerror(-fd));
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_uint_eq(st.st_ino, e->key.ino);
}

/* ---- through the mapping ---- */

START_TEST(through_the_mapping)
{
	struct files *f cleanup(files_cleanup) = some_files(10);
	struct wk_file_event e = file_event(2, path, map_file(path));
	const struct file *file;

	if (!can_open_mappings())
		return;
	e.path_len = 0;		/* not needed */
	ck_assert_ptr_null(files_get(f, 2));
	file = announce(f, &e);
	ck_opened(file, &e);
	ck_assert_str_eq(file->path, path);
	ck_assert(file->on_host && !file->deleted);
	ck_assert_uint_eq(files_count(f), 1);
	ck_assert_uint_eq(files_unopened(f), 0);
	ck_assert_ptr_null(files_get(f, 3));
	ck_assert_ptr_null(files_get(f, 0));
	ck_assert_ptr_null(files_get(f, UINT32_MAX));
}
END_TEST

START_TEST(by_thread)
{
	struct files *f cleanup(files_cleanup) = some_files(10);
	struct wk_file_event e = file_event(2, path, map_file(path));

	if (!can_open_mappings())
		return;
	e.path_len = 0;
	e.pid = gone();		/* its main thread has exited, the one that ran has not */
	ck_opened(announce(f, &e), &e);
	e.pid = 0;
	ck_opened(announce(f, &e), &e);
	e.tid = 0;		/* not visible from here */
	ck_unopened(announce(f, &e), -ESRCH);
}
END_TEST

START_TEST(deleted)
{
	struct files *f cleanup(files_cleanup) = some_files(10);
	struct wk_file_event e = file_event(2, path, map_file(path));
	const struct file *file;

	if (!can_open_mappings())
		return;
	unlink(path);
	file = announce(f, &e);
	ck_opened(file, &e);
	ck_assert_str_eq(file->path, path);
	ck_assert(file->deleted && !file->on_host);
}
END_TEST

/* What package managers do: a new file under the old name. The code that runs is the old one. */
START_TEST(replaced)
{
	struct files *f cleanup(files_cleanup) = some_files(10);
	struct wk_file_event e = file_event(2, path, map_file(path));
	const struct file *file;
	char other[sizeof(path) + 8];

	if (!can_open_mappings())
		return;
	snprintf(other, sizeof(other), "%s.new", path);
	copy_file("/proc/self/exe", other);
	ck_assert_int_eq(rename(other, path), 0);
	file = announce(f, &e);
	ck_opened(file, &e);
	ck_assert_str_eq(file->path, path);
	ck_assert(file->deleted && !file->on_host);
}
END_TEST

START_TEST(renamed)
{
	struct files *f cleanup(files_cleanup) = some_files(10);
	struct wk_file_event e = file_event(2, path, map_file(path));
	const struct file *file;
	char other[sizeof(path) + 8];

	if (!can_open_mappings())
		return;
	snprintf(other, sizeof(other), "%s.moved", path);
	ck_assert_int_eq(rename(path, other), 0);
	file = announce(f, &e);
	unlink(other);
	ck_opened(file, &e);
	ck_assert_str_eq(file->path, other);
	ck_assert(file->on_host && !file->deleted);
}
END_TEST

/* Same inode, other contents: names and rows of the new ones would be wrong. */
START_TEST(rewritten_in_place)
{
	struct files *f cleanup(files_cleanup) = some_files(10);
	struct wk_file_event e = file_event(2, path, map_file(path));
	struct timespec times[] = { { .tv_nsec = UTIME_OMIT },
				    { .tv_sec = 1000000000, .tv_nsec = 1 } };
	const struct file *file;

	ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
	file = announce(f, &e);
	ck_unopened(file, can_open_mappings() ? -ESTALE : -EPERM);
	ck_assert_str_eq(file->path, path);
	ck_assert_uint_eq(files_unopened(f), 1);
	e.key.mtime_ns = 1000000000ull * 1000000000 + 1;	/* met again, as it is now */
	e.id = 3;
	ck_opened(announce(f, &e), &e);
	ck_assert_uint_eq(files_count(f), 2);
	ck_assert_uint_eq(files_unopened(f), 1);
}
END_TEST

/* Another file has been mapped where the announced one was: neither its contents nor its name. */
START_TEST(mapping_reused)
{
	struct files *f cleanup(files_cleanup) = some_files(10);
	struct wk_file_event e = file_event(2, path, map_file(path));
	char other[sizeof(path) + 8];
	const struct file *file;
	int fd;

	if (!can_open_mappings())
		return;
	snprintf(other, sizeof(other), "%s.other", path);
	copy_file("/proc/self/exe", other);
	fd = open(other, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert(mmap((void *)(uintptr_t)e.vm_start, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd,
		       0) != MAP_FAILED);
	close(fd);
	unlink(path);
	file = announce(f, &e);
	unlink(other);
	ck_unopened(file, -ESTALE);
	ck_assert_str_eq(file->path, path);
}
END_TEST

/* ---- by path: the process has died meanwhile ---- */

/* A file system of our own at dir, with the test's file in it. False: not allowed to mount. */
static bool mount_own(void)
{
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", dir, "tmpfs", 0, NULL))
		return false;
	copy_file("/proc/self/exe", path);
	return true;
}

static struct wk_file_event event_of_the_dead(const char *file, const char *in_fs)
{
	struct wk_file_event e = file_event(2, file, (void *)(uintptr_t)gone);

	e.pid = e.tid = gone();
	event_set_path(&e, in_fs);
	return e;
}

START_TEST(process_gone)
{
	struct files *f cleanup(files_cleanup) = some_files(10);
	struct wk_file_event e;
	const struct file *file;

	if (!mount_own())
		return;
	e = event_of_the_dead(path, "/code");
	file = announce(f, &e);
	ck_opened(file, &e);
	ck_assert_str_eq(file->path, path);
	ck_assert(file->on_host && !file->deleted);
}
END_TEST

/* The path leads below the mount of another directory, whose name is escaped in mountinfo. */
START_TEST(beneath_a_bind_mount)
{
	struct files *f cleanup(files_cleanup) = some_files(10);
	char sub[sizeof(dir) + 16], at[sizeof(dir) + 32], file_at[sizeof(at) + 16];
	struct wk_file_event e;
	const struct file *file;

	if (!mount_own())
		return;
	snprintf(sub, sizeof(sub), "%s/sub dir", dir);
	snprintf(at, sizeof(at), "%s-at \\040 it", dir);
	snprintf(file_at, sizeof(file_at), "%s/code", at);
	ck_assert_int_eq(mkdir(sub, 0755), 0);
	ck_assert_int_eq(mkdir(at, 0755), 0);
	ck_assert_int_eq(mount(sub, at, NULL, MS_BIND, NULL), 0);
	ck_assert_int_eq(umount2(dir, MNT_DETACH), 0);
	copy_file("/proc/self/exe", file_at);
	e = event_of_the_dead(file_at, "/sub dir/code");
	file = announce(f, &e);
	e.id = 3;
	event_set_path(&e, "/sub dirty/code");	/* not below the mount's root */
	ck_unopened(announce(f, &e), -ENOENT);
	e.id = 4;
	event_set_path(&e, "/code");
	ck_unopened(announce(f, &e), -ENOENT);
	umount2(at, MNT_DETACH);
	rmdir(at);
	ck_opened(file, &e);
	ck_assert_str_eq(file->path, file_at);
}
END_TEST

START_TEST(another_file_under_that_path)
{
	struct files *f cleanup(files_cleanup) = some_files(10);
	struct wk_file_event e;
	const struct file *file;

	if (!mount_own())
		return;
	e = event_of_the_dead(path, "/code");
	e.key.ino++;
	file = announce(f, &e);
	ck_unopened(file, -ENOENT);	/* of the way through the mapping */
	ck_assert_str_eq(file->path, "/code");
	ck_assert(!file->on_host);
	e = event_of_the_dead(path, "/code");
	e.key.mtime_ns++;
	ck_unopened(announce(f, &e), -ENOENT);
	e = event_of_the_dead(path, "/code");
	e.key.dev++;
	ck_unopened(announce(f, &e), -ENOENT);
}
END_TEST

/* Even if number and time agree; a FIFO would block us, a link lead anywhere. */
START_TEST(only_regular_files)
{
	struct files *f cleanup(files_cleanup) = some_files(10);
	char other[sizeof(path) + 8];
	struct wk_file_event e;
	struct stat st;

	if (!mount_own())
		return;
	snprintf(other, sizeof(other), "%s.other", path);
	e = event_of_the_dead(path, "/code.other");
	ck_assert_int_eq(mkfifo(other, 0644), 0);
	ck_assert_int_eq(lstat(other, &st), 0);
	e.key = file_key(&st);
	ck_unopened(announce(f, &e), -ENOENT);
	unlink(other);

	ck_assert_int_eq(mkdir(other, 0755), 0);
	ck_assert_int_eq(lstat(other, &st), 0);
	e.key = file_key(&st);
	ck_unopened(announce(f, &e), -ENOENT);
	rmdir(other);

	ck_assert_int_eq(symlink(path, other), 0);
	ck_assert_int_eq(stat(other, &st), 0);
	e.key = file_key(&st);		/* followed, it would be the right one */
	ck_unopened(announce(f, &e), -ENOENT);
	ck_assert_int_eq(lstat(other, &st), 0);
	e.key = file_key(&st);
	ck_unopened(announce(f, &e), -ENOENT);

	ck_assert_int_eq(stat(path, &st), 0);
	e.key = file_key(&st);
	event_set_path(&e, "/code");
	ck_opened(announce(f, &e), &e);
}
END_TEST

/* Nothing that BPF can't write, but the bytes come from the ring: no reading past them. */
START_TEST(strange_paths)
{
	struct files *f cleanup(files_cleanup) = some_files(10);
	struct wk_file_event e = event_of_the_dead(path, path);
	const struct file *file;

	e.path_len = 0;
	file = announce(f, &e);
	ck_assert_int_eq(file->fd, -1);
	ck_assert_str_eq(file->path, "[unknown]");
	for (unsigned int fill = 0; fill < 2; fill++) {
		memset(e.path, fill ? 'x' : 0, sizeof(e.path));
		e.path_len = UINT32_MAX;
		file = announce(f, &e);
		ck_assert_int_eq(file->fd, -1);
		ck_assert_int_eq(file->path[0], '/');
		ck_assert_uint_le(strlen(file->path), WK_PATH_BYTES);
		e.path_len = 1;
		file = announce(f, &e);
		ck_assert_str_eq(file->path, "/");
	}
	memcpy(e.path, "leaf\0mid\0top", 13);
	e.path_len = 13;
	file = announce(f, &e);
	ck_assert_str_eq(file->path, "/top/mid/leaf");
}
END_TEST

/* ---- limits and ids ---- */

START_TEST(descriptor_limit)
{
	struct files *f cleanup(files_cleanup) = some_files(1);
	struct wk_file_event e = file_event(2, path, map_file(path));
	const struct file *file;

	if (!can_open_mappings())
		return;
	ck_opened(announce(f, &e), &e);
	e.id = 3;
	file = announce(f, &e);
	ck_opened(file, &e);
	file = files_get(f, 2);		/* closed for the other's sake */
	ck_assert_int_eq(file->fd, -1);
	ck_assert_int_eq(file->open_error, 0);
	ck_assert_str_eq(file->path, path);
	ck_assert_uint_eq(files_count(f), 2);
	ck_assert_uint_eq(files_unopened(f), 0);
	ck_assert_uint_eq(files_stats(f).closed, 1);
	ck_assert_uint_eq(files_stats(f).fds, 1);
	ck_reopens(f, 2, &e);
}
END_TEST

/* Of two open files the one goes that was sampled less lately, but never a deleted one before. */
START_TEST(who_is_closed)
{
	struct files *f cleanup(files_cleanup) = some_files(2);
	struct wk_file_event e = file_event(2, path, map_file(path));
	struct wk_file_event own = file_event(3, own_path(), (void *)(uintptr_t)descriptors);

	if (!can_open_mappings())
		return;
	announce(f, &e);
	announce(f, &own);
	files_next_epoch(f);
	files_touch(f, 2);
	own.id = 4;
	announce(f, &own);
	ck_assert_int_ge(files_get(f, 2)->fd, 0);
	ck_assert_int_eq(files_get(f, 3)->fd, -1);
	unlink(path);
	e.id = 5;
	announce(f, &e);
	ck_assert(files_get(f, 5)->deleted);
	files_next_epoch(f);
	files_touch(f, 2);
	own.id = 6;
	announce(f, &own);
	ck_assert_int_ge(files_get(f, 5)->fd, 0);
	ck_assert_int_eq(files_get(f, 2)->fd, -1);
}
END_TEST

/* ---- eviction ---- */

struct evicted {
	uint32_t left, released, last;
	bool busy;
};

static bool on_leave(void *ctx, uint32_t id, const struct wk_file_key *key)
{
	struct evicted *v = ctx;

	ck_assert_uint_ne(key->ino, 0);
	v->left += !v->busy;
	v->last = id;
	return !v->busy;
}

static void on_release(void *ctx, uint32_t id)
{
	struct evicted *v = ctx;

	v->released++;
	v->last = id;
}

START_TEST(evicted_in_two_steps)
{
	struct files *f cleanup(files_cleanup) = some_files(10);
	struct wk_file_event e = file_event(7, path, map_file(path));
	struct evicted v = { 0 };
	struct files_evictor how = { &v, on_leave, on_release };

	announce(f, &e);
	e.id = 8;
	announce(f, &e);
	ck_assert_uint_eq(files_next_epoch(f), 1);
	ck_assert_uint_eq(files_epoch(f), 2);
	files_touch(f, 8);
	files_touch(f, 12345);
	ck_assert_uint_eq(files_evict(f, 1, &how), 0);
	ck_assert_uint_eq(v.left, 0);
	v.busy = true;
	ck_assert_uint_eq(files_evict(f, 2, &how), 0);
	v.busy = false;
	ck_assert_uint_eq(files_evict(f, 2, &how), 0);
	ck_assert_uint_eq(v.left, 1);
	ck_assert_uint_eq(v.last, 7);
	files_touch(f, 8);
	files_next_epoch(f);		/* 3 */
	files_touch(f, 8);
	ck_assert_uint_eq(files_evict(f, 3, &how), 0);	/* 2, in which it left, may still be drained */
	ck_assert_ptr_nonnull(files_get(f, 7));
	files_touch(f, 7);		/* by a sample that was on its way */
	files_next_epoch(f);		/* 4 */
	files_touch(f, 8);
	ck_assert_uint_eq(files_evict(f, 3, &how), 0);
	ck_assert_uint_eq(files_evict(f, 4, &how), 1);
	ck_assert_uint_eq(v.left, 1);
	ck_assert_uint_eq(v.released, 1);
	ck_assert_uint_eq(v.last, 7);
	ck_assert_ptr_null(files_get(f, 7));
	ck_assert_int_eq(files_open(f, 7), -ENOENT);
	ck_assert_ptr_nonnull(files_get(f, 8));
	ck_assert_uint_eq(files_count(f), 1);
	ck_assert_uint_eq(files_stats(f).evicted, 1);
}
END_TEST

/* One that BPF has forgotten needs no leave. */
START_TEST(forgotten_and_evicted)
{
	struct files *f cleanup(files_cleanup) = some_files(10);
	struct wk_file_event e = file_event(7, path, map_file(path));
	struct evicted v = { 0 };
	struct files_evictor how = { &v, on_leave, on_release };

	e.pid = e.tid = e.path_len = 0;
	announce(f, &e);
	files_forgotten(f, 7);
	files_forgotten(f, 12345);
	files_next_epoch(f);
	files_next_epoch(f);
	ck_assert_uint_eq(files_evict(f, 3, &how), 1);
	ck_assert_uint_eq(v.left, 0);
	ck_assert_uint_eq(files_unopened(f), 0);
	ck_assert_uint_eq(files_stats(f).bytes % sizeof(void *), 0);
}
END_TEST

START_TEST(idle_ones_closed_and_opened_again)
{
	struct files *f cleanup(files_cleanup) = some_files(10);
	struct wk_file_event e = file_event(2, path, map_file(path));
	int before = descriptors(), fd;

	if (!can_open_mappings())
		return;
	announce(f, &e);
	files_next_epoch(f);
	files_close_idle(f, 1);
	ck_assert_int_eq(descriptors(), before + 1);
	files_close_idle(f, 2);
	ck_assert_int_eq(descriptors(), before);
	ck_reopens(f, 2, &e);
	ck_assert_int_eq(files_open(f, 3), -ENOENT);
	/* rewritten meanwhile: another version, never to be taken for it */
	fd = open(path, O_WRONLY | O_CLOEXEC);
	ck_assert_int_eq(pwrite(fd, "x", 1, 0), 1);
	ck_assert_int_eq(futimens(fd, NULL), 0);
	close(fd);
	ck_assert_int_eq(files_open(f, 2), -ESTALE);
}
END_TEST

/* ---- threads ---- */

struct opener {
	struct files *files;
	atomic_bool stop;
	uint32_t opened;
};

static void *open_and_get(void *arg)
{
	struct opener *o = arg;

	while (!atomic_load(&o->stop))
		for (uint32_t id = 2; id < 40; id++) {
			int fd = files_open(o->files, id);

			o->opened += fd >= 0;
			if (fd >= 0)
				close(fd);
			(void)files_get(o->files, id);
			(void)files_stats(o->files);
		}
	return NULL;
}

/* The builder's thread reads while files come and their descriptors go. */
START_TEST(builder_beside_sampler)
{
	struct opener o = { .files = some_files(5) };
	struct wk_file_event e = file_event(2, path, map_file(path));
	pthread_t thread;

	if (!can_open_mappings())
		return;
	ck_assert_int_eq(pthread_create(&thread, NULL, open_and_get, &o), 0);
	for (int round = 0; round < 20; round++)
		for (e.id = 2 + round; e.id < 40; e.id++) {
			if (!files_get(o.files, e.id))
				announce(o.files, &e);
			files_touch(o.files, e.id - 1);
			if (e.id % 8 == 0)
				files_close_idle(o.files, files_next_epoch(o.files));
		}
	atomic_store(&o.stop, true);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_uint_eq(files_count(o.files), 38);
	files_free(o.files);
}
END_TEST

START_TEST(out_of_descriptors)
{
	struct files *f cleanup(files_cleanup) = some_files(10);
	struct wk_file_event e = file_event(2, path, map_file(path));
	struct rlimit none = { 0, 0 }, old;
	const struct file *file = NULL;
	int r;

	if (!can_open_mappings())
		return;
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
	none.rlim_max = old.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	r = files_announce(f, &e, &file);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
	ck_assert_int_eq(r, 0);
	ck_unopened(file, -EMFILE);
	ck_assert_str_eq(file->path, path);
}
END_TEST

START_TEST(ids_out_of_range)
{
	static const uint32_t bad[] = { WK_FILE_NONE, WK_FILE_VDSO, WK_FILE_ID_MAX + 1,
					UINT32_MAX };
	struct files *f cleanup(files_cleanup) = some_files(10);
	struct wk_file_event e = file_event(2, path, map_file(path));
	const struct file *file = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		e.id = bad[i];
		ck_assert_int_eq(files_announce(f, &e, &file), -EINVAL);
		ck_assert_ptr_null(file);
		ck_assert_ptr_null(files_get(f, bad[i]));
	}
	ck_assert_uint_eq(files_count(f), 0);
	files_free(NULL);
}
END_TEST

START_TEST(announced_again)
{
	struct files *f = some_files(10);
	struct wk_file_event e = file_event(500, path, map_file(path));
	struct wk_file_event own = file_event(500, own_path(), (void *)(uintptr_t)descriptors);
	int before = descriptors();

	if (!can_open_mappings()) {
		files_free(f);
		return;
	}
	for (unsigned int i = 0; i < 5; i++) {
		ck_opened(announce(f, &e), &e);
		ck_opened(announce(f, &own), &own);
		ck_assert_str_eq(files_get(f, 500)->path, own_path());
		ck_assert_uint_eq(files_count(f), 1);
		ck_assert_uint_eq(files_unopened(f), 0);
		ck_assert_int_eq(descriptors(), before + 1);
		own.key.mtime_ns++;
		announce(f, &own);
		own.key.mtime_ns--;
		ck_assert_uint_eq(files_count(f), 1);
		ck_assert_uint_eq(files_unopened(f), 1);
		ck_assert_int_eq(descriptors(), before);
	}
	for (e.id = 2; e.id < 50; e.id++)
		announce(f, &e);
	ck_assert_uint_eq(files_count(f), 49);
	ck_assert_uint_eq(files_unopened(f), 1);
	ck_assert_uint_eq(files_stats(f).closed, 48 - 10);
	ck_assert_int_eq(descriptors(), before + 10);
	files_free(f);
	ck_assert_int_eq(descriptors(), before);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("files");
	TCase *t = tcase_create("files");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, through_the_mapping);
	tcase_add_test(t, by_thread);
	tcase_add_test(t, deleted);
	tcase_add_test(t, replaced);
	tcase_add_test(t, renamed);
	tcase_add_test(t, rewritten_in_place);
	tcase_add_test(t, mapping_reused);
	tcase_add_test(t, process_gone);
	tcase_add_test(t, beneath_a_bind_mount);
	tcase_add_test(t, another_file_under_that_path);
	tcase_add_test(t, only_regular_files);
	tcase_add_test(t, strange_paths);
	tcase_add_test(t, descriptor_limit);
	tcase_add_test(t, who_is_closed);
	tcase_add_test(t, evicted_in_two_steps);
	tcase_add_test(t, forgotten_and_evicted);
	tcase_add_test(t, idle_ones_closed_and_opened_again);
	tcase_add_test(t, builder_beside_sampler);
	tcase_add_test(t, out_of_descriptors);
	tcase_add_test(t, ids_out_of_range);
	tcase_add_test(t, announced_again);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
