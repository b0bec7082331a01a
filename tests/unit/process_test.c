/* Tests of symbol/process.h (and runtime.h): this process and its children as runtimes that write
 * their perf map. */
#include <check.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "made_jitdump.h"
#include "proc/pid.h"
#include "symbol/process.h"

#define BASE 0x7f0000000000

static struct processes *ps;
static struct process_key self;
static char path[64];
static FILE *map;

static uint64_t start_of(pid_t pid)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(4096);
	int dir cleanup(fd_cleanup) = pid_open((uint32_t)pid, 0);
	uint64_t ticks;

	ck_assert_int_eq(pid_read_text(dir, "stat", &b), 0);
	ck_assert_int_eq(pid_parse_start(b.data, &ticks), 0);
	return ticks * (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK));
}

static FILE *open_map(pid_t pid)
{
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
	return fopen(path, "we");
}

static void set_up(void)
{
	struct processes_options o = { 0 };

	ck_assert_int_eq(processes_new(&o, &ps), 0);
	self = (struct process_key){ .start_time = start_of(getpid()), .exec_id = 1,
				     .pid = (uint32_t)getpid() };
	map = open_map(getpid());
	ck_assert_ptr_nonnull(map);
}

static void tear_down(void)
{
	processes_free(take(ps));
	fclose(map);
	unlink(path);
}

static void list(uint64_t start, uint64_t size, const char *name)
{
	fprintf(map, "%llx %llx %s\n", (unsigned long long)start, (unsigned long long)size, name);
	fflush(map);
}

static void refresh(void)
{
	ck_assert_int_eq(processes_refresh(ps, clock_monotonic() + 10000000000), 0);
}

static uint64_t frame_of(const struct process_key *k, uint64_t addr)
{
	uint64_t frame;

	ck_assert_int_eq(processes_frame(ps, k, addr, &frame), 0);
	return frame;
}

static void ck_name(uint64_t frame, const char *name)
{
	struct process_symbol sym;

	ck_assert_uint_eq(WK_FRAME_TAG(frame), WK_FRAME_CODE);
	ck_assert_int_eq(processes_lookup(ps, frame, &sym), 0);
	ck_assert_str_eq(sym.name, name);
}

START_TEST(named_when_met)
{
	struct process_symbol sym;
	uint64_t f;

	list(BASE, 0x100, "JS:*hot /x.js:1:2");
	f = frame_of(&self, BASE + 0x10);
	ck_assert_int_eq(processes_lookup(ps, f, &sym), 0);
	ck_assert_str_eq(sym.name, "JS:*hot /x.js:1:2");
	ck_assert_uint_eq(sym.address, BASE + 0x10);
	ck_assert_uint_eq(sym.start, BASE);
	ck_assert_uint_eq(sym.pid, (uint32_t)getpid());
	ck_assert_uint_eq(frame_of(&self, BASE + 0x10), f);
	ck_assert_uint_ne(frame_of(&self, BASE + 0x11), f);
	ck_name(frame_of(&self, BASE + 0x100), "");
}
END_TEST

START_TEST(named_later)
{
	uint64_t f = frame_of(&self, BASE + 0x10);

	ck_name(f, "");
	list(BASE, 0x100, "late");
	ck_name(f, "");
	refresh();
	ck_name(f, "late");
	ck_assert_uint_eq(frame_of(&self, BASE + 0x10), f);
}
END_TEST

/* Code that takes the place of other code: each sample keeps the one of its time. */
START_TEST(code_that_changes)
{
	uint64_t first, second;

	list(BASE, 0x100, "first");
	first = frame_of(&self, BASE + 0x10);
	refresh();
	ck_assert_uint_eq(frame_of(&self, BASE + 0x10), first);
	list(BASE, 0x80, "second");
	refresh();
	second = frame_of(&self, BASE + 0x10);
	ck_assert_uint_ne(second, first);
	ck_name(first, "first");
	ck_name(second, "second");
	list(BASE, 0x80, "second");	/* said twice: nothing new */
	refresh();
	ck_assert_uint_eq(frame_of(&self, BASE + 0x10), second);
	ck_name(frame_of(&self, BASE + 0x90), "first");
}
END_TEST

START_TEST(file_written_anew)
{
	uint64_t a, b;

	list(BASE, 0x100, "stays");
	list(BASE + 0x100, 0x100, "goes");
	a = frame_of(&self, BASE);
	b = frame_of(&self, BASE + 0x100);
	fclose(map);
	map = open_map(getpid());	/* truncates */
	list(BASE, 0x100, "stays");
	refresh();
	ck_assert_uint_eq(frame_of(&self, BASE), a);
	ck_name(a, "stays");
	ck_name(b, "goes");	/* as it was when it was sampled */
	fclose(map);
	unlink(path);
	map = open_map(getpid());	/* another inode */
	list(BASE, 0x100, "other");
	refresh();
	ck_name(a, "stays");
	ck_name(frame_of(&self, BASE), "other");
}
END_TEST

START_TEST(not_ones_own)
{
	struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	struct process_key k = self;

	list(BASE, 0x100, "name");
	k.start_time += 3000000000;	/* another process of that number: not this one */
	ck_name(frame_of(&k, BASE), "");
	ck_assert_int_eq(futimens(fileno(map), old), 0);	/* left by an earlier one */
	ck_name(frame_of(&self, BASE), "");
	k.pid = 0;	/* invisible */
	ck_assert_uint_eq(frame_of(&k, BASE), BASE);
	if (!geteuid()) {	/* planted by somebody else */
		k = self;
		k.exec_id = 2;
		ck_assert_int_eq(fchown(fileno(map), 12345, 12345), 0);
		list(BASE + 0x100, 0x100, "new");
		ck_name(frame_of(&k, BASE), "");
		ck_assert_int_eq(fchown(fileno(map), 0, 0), 0);
		refresh();
		ck_name(frame_of(&k, BASE), "name");
	}
}
END_TEST

START_TEST(hostile_files)
{
	fclose(map);
	unlink(path);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_name(frame_of(&self, BASE), "");
	unlink(path);
	ck_assert_int_eq(symlink("/etc/passwd", path), 0);
	refresh();
	unlink(path);
	map = open_map(getpid());
	ck_assert_int_eq(ftruncate(fileno(map), (off_t)1 << 40), 0);	/* a sparse terabyte */
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(processes_refresh(ps, clock_monotonic() + 10000000), 0);
	ck_name(frame_of(&self, BASE), "");
}
END_TEST

START_TEST(exec_is_another_program)
{
	struct process_key next = self;
	uint64_t f;

	list(BASE, 0x100, "before");
	f = frame_of(&self, BASE);
	next.exec_id++;
	fclose(map);
	map = open_map(getpid());
	list(BASE, 0x100, "after");
	ck_name(frame_of(&next, BASE), "after");
	refresh();
	ck_name(f, "before");
	ck_name(frame_of(&self, BASE + 1), "");	/* the former program's file is the new one's now */
}
END_TEST

/* Reads what was written until the end of a process, and of one that was never seen alive. */
START_TEST(processes_that_end)
{
	struct process_key k = { .exec_id = 1 };
	char byte = 0;
	int go[2];
	uint64_t f, g;
	FILE *theirs;
	pid_t child;

	ck_assert_int_eq(pipe(go), 0);
	child = fork();
	if (!child)
		_exit(read(go[0], &byte, 1) != 1);
	k.pid = (uint32_t)child;
	k.start_time = start_of(child);
	fclose(map);
	unlink(path);
	map = open_map(child);
	list(BASE, 0x100, "early");
	f = frame_of(&k, BASE);
	ck_name(f, "early");
	g = frame_of(&k, BASE + 0x100);
	list(BASE + 0x100, 0x100, "last words");
	ck_assert_int_eq(write(go[1], &byte, 1), 1);
	waitpid(child, NULL, 0);
	refresh();
	ck_name(g, "last words");
	list(BASE + 0x200, 0x100, "not its own");
	refresh();
	ck_name(frame_of(&k, BASE + 0x200), "");
	k.exec_id++;		/* as if it had never been met */
	theirs = fopen(path, "ae");
	ck_assert_ptr_nonnull(theirs);
	fclose(theirs);
	ck_name(frame_of(&k, BASE), "early");
	close(go[0]);
	close(go[1]);
}
END_TEST

/* Told late, as by a runtime that buffers: each address is named for the code of its own time. */
START_TEST(jitdump_with_times)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(1 << 20);
	static const struct jd_line lines[] = { { BASE, 3, "/src/a.c" } };
	uint64_t met[3], frames[3];
	struct process_symbol sym;
	char file[64];
	void *marker;
	int fd;

	snprintf(file, sizeof(file), "/tmp/jit-%d.dump", getpid());
	fd = open(file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	jd_header(&b, 0);
	ck_assert_int_eq(write(fd, b.data, b.len), (ssize_t)b.len);
	marker = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	ck_assert_ptr_ne(marker, MAP_FAILED);
	unlink(file);		/* the mapping leads to it all the same */
	for (int i = 0; i < 3; i++) {
		met[i] = clock_monotonic();
		usleep(1000);
		frames[i] = frame_of(&self, BASE + 8 * (uint64_t)i);
		usleep(120000);	/* longer than one drain takes */
	}
	buf_reset(&b);
	jd_lines(&b, met[0], BASE, lines, 1);
	jd_load(&b, met[0], BASE, 0x100, "first");
	jd_load(&b, met[1], BASE, 0x100, "second");
	jd_load(&b, met[2] + 60000000, BASE, 0x100, "after the last");
	ck_assert_int_eq(write(fd, b.data, b.len), (ssize_t)b.len);
	refresh();
	ck_name(frames[0], "first");
	ck_assert_int_eq(processes_lookup(ps, frames[0], &sym), 0);
	ck_assert_str_eq(sym.file, "/src/a.c");
	ck_assert_uint_eq(sym.line, 3);
	ck_name(frames[1], "second");
	ck_name(frames[2], "second");
	ck_name(frame_of(&self, BASE), "after the last");
	munmap(marker, 4096);
	close(fd);
}
END_TEST

START_TEST(limits)
{
	struct processes_options o = { .max_bytes = 24 * 10, .max_processes = 1 };
	struct processes_stats st;
	struct process_key other = self;

	processes_free(take(ps));
	ck_assert_int_eq(processes_new(&o, &ps), 0);
	for (uint64_t i = 0; i < 100; i++)
		list(BASE + 16 * i, 16, "one of many");
	ck_name(frame_of(&self, BASE), "one of many");
	ck_name(frame_of(&self, BASE + 16 * 99), "");
	other.exec_id = 77;
	ck_assert_uint_eq(frame_of(&other, BASE), BASE);
	processes_stats(ps, &st);
	ck_assert_uint_eq(st.processes, 1);
	ck_assert_uint_eq(st.with_names, 1);
	ck_assert_uint_eq(st.refused_processes, 1);
	ck_assert_uint_eq(st.refused_code, 90);
	ck_assert_uint_le(st.bytes, 24 * 10 * 2);
	ck_assert_uint_eq(st.frames, 2);
}
END_TEST

START_TEST(forgets)
{
	struct process_key other = self;
	struct process_symbol sym;
	struct processes_stats st;
	uint64_t a, b, c, again;

	other.exec_id = 0;
	list(BASE, 0x100, "a");
	c = frame_of(&other, BASE);
	a = frame_of(&self, BASE);
	b = frame_of(&self, BASE + 0x200);
	processes_epoch(ps, 5);
	ck_assert_uint_eq(frame_of(&self, BASE), a);
	ck_assert_int_eq(processes_forget(ps, 5), 0);
	processes_stats(ps, &st);
	ck_assert_uint_eq(st.processes, 1);
	ck_assert_uint_eq(st.frames, 1);
	ck_name(a, "a");
	ck_assert_int_eq(processes_lookup(ps, b, &sym), -ENOENT);
	ck_assert_int_eq(processes_lookup(ps, c, &sym), -ENOENT);
	ck_assert_uint_eq(frame_of(&self, BASE), a);
	again = frame_of(&self, BASE + 0x200);
	ck_assert_uint_gt(again, b);
	ck_assert_int_eq(processes_forget(ps, 6), 0);
	processes_stats(ps, &st);
	ck_assert_uint_eq(st.processes, 0);
	ck_assert_uint_eq(st.bytes, 0);
	ck_assert_int_eq(processes_lookup(ps, a, &sym), -ENOENT);
	ck_assert_int_eq(processes_lookup(ps, BASE, &sym), -ENOENT);
}
END_TEST

/* A word whose code was replaced doesn't come back into force by forgetting others. */
START_TEST(forgets_in_the_middle)
{
	uint64_t first, second;

	list(BASE, 0x100, "first");
	first = frame_of(&self, BASE);
	list(BASE, 0x100, "second");
	refresh();
	ck_assert_int_eq(processes_forget(ps, 0), 0);
	second = frame_of(&self, BASE);
	ck_assert_uint_ne(first, second);
	ck_name(first, "first");
	ck_name(second, "second");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("process");
	TCase *t = tcase_create("process");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, named_when_met);
	tcase_add_test(t, named_later);
	tcase_add_test(t, code_that_changes);
	tcase_add_test(t, file_written_anew);
	tcase_add_test(t, not_ones_own);
	tcase_add_test(t, hostile_files);
	tcase_add_test(t, exec_is_another_program);
	tcase_add_test(t, processes_that_end);
	tcase_add_test(t, jitdump_with_times);
	tcase_add_test(t, limits);
	tcase_add_test(t, forgets);
	tcase_add_test(t, forgets_in_the_middle);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
