/* Tests of symbol/debugcache.h: where it is, what is opened, who goes first. */
#include "made_elf.h"

#include <limits.h>
#include <sys/stat.h>
#include <time.h>

#include "symbol/debugcache.h"

static char dir[64];

static void setup(void)
{
	strcpy(dir, "/tmp/debugcache-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void teardown(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ck_assert_int_eq(system(command), 0);
}

static const char *path_of(const char *hex, const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s%s", dir, hex, name);
	return path;
}

static void put(const char *hex, size_t n, time_t age)
{
	static char bytes[64 << 10];
	struct timespec when[2] = { { .tv_sec = time(NULL) - age }, { .tv_sec = time(NULL) - age } };
	int fd;

	memset(bytes, 'x', sizeof(bytes));
	ck_assert_int_eq(mkdir(path_of(hex, ""), 0700), 0);
	fd = open(path_of(hex, "/debuginfo"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_eq(write(fd, bytes, n), (ssize_t)n);
	ck_assert_int_eq(futimens(fd, when), 0);
	close(fd);
}

static bool is_there(const char *hex)
{
	return !access(path_of(hex, ""), F_OK);
}

START_TEST(the_directory)
{
	char got[PATH_MAX], state[128];
	struct err e = { "" };

	setup();
	unsetenv("DEBUGINFOD_CACHE_PATH");
	snprintf(state, sizeof(state), "%s/a/b:/elsewhere", dir);
	setenv("STATE_DIRECTORY", state, 1);
	ck_assert_int_eq(debugcache_directory(NULL, got, sizeof(got), &e), 0);
	ck_assert_str_eq(got, path_of("a/b", "/debuginfod"));
	ck_assert(!access(got, W_OK));
	setenv("DEBUGINFOD_CACHE_PATH", path_of("own", ""), 1);
	ck_assert_int_eq(debugcache_directory(NULL, got, sizeof(got), &e), 0);
	ck_assert_str_eq(got, path_of("own", ""));
	ck_assert_int_eq(debugcache_directory(path_of("third", ""), got, sizeof(got), &e), 0);
	ck_assert_str_eq(got, path_of("third", ""));
	ck_assert_int_eq(debugcache_directory("relative", got, sizeof(got), &e), -EINVAL);
	ck_assert_int_eq(debugcache_directory("/proc/1/nothing", got, sizeof(got), &e), -ENOENT);
	ck_assert_ptr_nonnull(strstr(e.msg, "DEBUGINFOD_CACHE_PATH"));
	unsetenv("DEBUGINFOD_CACHE_PATH");
	unsetenv("STATE_DIRECTORY");
	teardown();
}
END_TEST

START_TEST(one_file)
{
	int fd;

	setup();
	put("ab12", 100, 0);
	put("ab13", 0, 0);
	ck_assert_int_eq(mkdir(path_of("ab14", ""), 0700), 0);
	ck_assert_int_eq(symlink("/etc/passwd", path_of("ab14", "/debuginfo")), 0);
	ck_assert_int_eq(mkdir(path_of("ab15", ""), 0700), 0);
	ck_assert_int_eq(mkfifo(path_of("ab15", "/debuginfo"), 0600), 0);
	fd = debugcache_open(dir, "ab12");
	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(debugcache_open(dir, "ab13"), -ENOENT);
	ck_assert_int_lt(debugcache_open(dir, "ab14"), 0);
	ck_assert_int_lt(debugcache_open(dir, "ab15"), 0);
	ck_assert_int_eq(debugcache_open(dir, "ab16"), -ENOENT);
	debugcache_drop(dir, "ab12");
	debugcache_drop(dir, "ab16");
	ck_assert(!is_there("ab12"));
	ck_assert_int_eq(debugcache_open(dir, "ab12"), -ENOENT);
	teardown();
}
END_TEST

START_TEST(the_limit)
{
	uint64_t left;
	int fd;

	setup();
	put("aa", 64 << 10, 400);
	put("bb", 64 << 10, 300);
	put("cc", 64 << 10, 200);
	put("dd", 64 << 10, 100);
	put("not-hex", 64 << 10, 500);
	ck_assert_uint_eq(debugcache_limit(dir, 1 << 20, NULL), 256 << 10);
	fd = debugcache_open(dir, "aa");	/* read now: no longer the oldest */
	close(fd);
	left = debugcache_limit(dir, 200 << 10, NULL);
	ck_assert_uint_eq(left, 192 << 10);
	ck_assert(is_there("aa") && !is_there("bb") && is_there("cc") && is_there("dd"));
	ck_assert_uint_eq(debugcache_limit(dir, 1, "cc"), 64 << 10);
	ck_assert(!is_there("aa") && is_there("cc") && !is_there("dd") && is_there("not-hex"));
	ck_assert_uint_eq(debugcache_limit("/nonexistent", 1, NULL), 0);
	teardown();
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { the_directory, one_file, the_limit };

	return made_run("debugcache", tests, ARRAY_SIZE(tests));
}
