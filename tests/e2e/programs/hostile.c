/* hostile SECONDS - the first process of a container that wants wick to come to grief.
 *
 * Runs all at once, each for so much CPU time, and waits for them:
 *	/progs/NAME	executed
 *	/maps/NAME	second page mapped as code and run, under the name NAME; "cut" is cut off meanwhile,
 *			"rewritten" written over
 *	/traps/NAME	as the perf map of a process that runs code of its own at CODE, under the name NAME
 *	and processes with a name for terminals, with 60,000 mappings, with an executable that moves and goes,
 *	one that lists functions for as long as it lives, and one whose path is longer than any path may be
 * What fails is left out: the caller looks at who was sampled. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

#define CODE ((void *)0x7e0000000000)
enum { PAGE = 4096, MAPPINGS = 60000, LIST_MAX = 64 << 20, LONG_NAME = 200, LONG_PATH = 60 };

/* mov $200000, %ecx; 1: dec %ecx; jnz 1b; ret */
static const unsigned char loop[] = { 0xb9, 0x40, 0x0d, 0x03, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0xc3 };

static double seconds;

static void run(void *code)
{
	while (seconds_worked() < seconds)
		((void (*)(void))code)();
}

static void *make_code(void)
{
	void *p = mmap(CODE, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (p == CODE)
		memcpy(p, loop, sizeof(loop));
	return p;
}

static void set_name(const char *name)
{
	prctl(PR_SET_NAME, name);
}

static void mapped(const char *path, const char *name)
{
	int fd = open(path, O_RDWR);
	void *p = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, PAGE);

	set_name(name);
	if (p == MAP_FAILED)
		_exit(1);
	if (!strcmp(name, "cut") && ftruncate(fd, PAGE + sizeof(loop)))
		_exit(1);
	while (seconds_worked() < seconds) {
		((void (*)(void))p)();
		if (!strcmp(name, "rewritten") && pwrite(fd, loop, sizeof(loop), 0) < 0)
			_exit(1);
	}
}

static void trapped(const char *path, const char *name)
{
	char map[64];

	snprintf(map, sizeof(map), "/tmp/perf-%d.map", (int)getpid());
	if (link(path, map) && symlink(path, map))
		_exit(1);
	utimensat(AT_FDCWD, map, NULL, 0);	/* older ones than the process are not for it */
	set_name(name);
	run(make_code());
}

static void executed(const char *path, const char *name)
{
	char argument[32];

	snprintf(argument, sizeof(argument), "%g", seconds);
	execl(path, name, argument, NULL);
}

static void colourful(void)
{
	set_name("a;b\n\x1b[31m\xff");
	run(make_code());
}

/* Executable pages between others, so that each is a mapping of its own. */
static void many_mappings(void)
{
	set_name("mappings");
	for (int i = 0; i < MAPPINGS / 2; i++) {
		char *p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED || mprotect(p, PAGE, PROT_READ | PROT_EXEC))
			break;
	}
	run(make_code());
}

static void copy(const char *from, const char *to)
{
	static char buffer[1 << 16];
	int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0755);
	ssize_t n;

	while ((n = read(in, buffer, sizeof(buffer))) > 0)
		if (write(out, buffer, (size_t)n) != n)
			_exit(1);
	close(in);
	close(out);
}

static void moving(void)
{
	pid_t child;

	copy("/progs/neighbour", "/tmp/mover");
	child = fork();
	if (!child) {
		executed("/tmp/mover", "mover");
		_exit(1);
	}
	usleep(50000);			/* it has been executed by now */
	for (int i = 0; i < 200; i++) {
		rename(i & 1 ? "/tmp/moved" : "/tmp/mover", i & 1 ? "/tmp/mover" : "/tmp/moved");
		usleep(1000);
	}
	unlink("/tmp/mover");
	mkdir("/tmp/mover", 0755);
	waitpid(child, NULL, 0);
}

static void deep_directory(void)
{
	char name[LONG_NAME + 1];

	memset(name, 'd', LONG_NAME);
	name[LONG_NAME] = '\0';
	if (chdir("/tmp"))
		_exit(1);
	for (int i = 0; i < LONG_PATH; i++)
		if (mkdir(name, 0755) || chdir(name))
			_exit(1);
	copy("/progs/neighbour", "deep");
	executed("./deep", "deep");
}

static void endless_list(void)
{
	static char lines[1 << 16];
	size_t size = 0, n = 0;
	char map[64];
	int fd;

	snprintf(map, sizeof(map), "/tmp/perf-%d.map", (int)getpid());
	fd = open(map, O_WRONLY | O_CREAT | O_APPEND, 0644);
	set_name("endless");
	make_code();
	while (seconds_worked() < seconds) {
		n = 0;
		while (n < sizeof(lines) - 64)
			n += (size_t)snprintf(lines + n, 64, "%zx 10 function_%zu\n", 0x7e0000000000 + size + n, size + n);
		size += n;
		if (size < LIST_MAX && write(fd, lines, n) < 0)
			_exit(1);
		((void (*)(void))CODE)();
	}
}

static void for_each(const char *directory, void (*what)(const char *path, const char *name))
{
	DIR *d = opendir(directory);
	const struct dirent *e;
	char path[512];

	while (d && (e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", directory, e->d_name);
		if (!fork()) {
			what(path, e->d_name);
			_exit(0);
		}
	}
	if (d)
		closedir(d);
}

int main(int argc, char **argv)
{
	static void (*const tricks[])(void) = { colourful, many_mappings, moving, endless_list, deep_directory };

	seconds = seconds_argument(argc, argv, 1, 0.3);
	for_each("/progs", executed);
	for_each("/maps", mapped);
	for_each("/traps", trapped);
	for (size_t i = 0; i < sizeof(tricks) / sizeof(*tricks); i++)
		if (!fork()) {
			tricks[i]();
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	return 0;
}
