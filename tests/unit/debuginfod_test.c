/* Tests of symbol/debuginfod.h, with a library that does what the id's first byte says; and of the files that come
 * by it, in debugfile.h. */
#include "made_elf.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "symbol/debugfile.h"
#include "symbol/debuginfod.h"

static char dir[64];
static atomic_int asked, running;
static _Thread_local debuginfod_progress *progress;

static void *begin(void)
{
	atomic_fetch_add(&running, 1);
	return &asked;
}

static void end(void *client)
{
	ck_assert_ptr_eq(client, &asked);
	atomic_fetch_sub(&running, 1);
}

static void set_progress(void *client, debuginfod_progress *fn)
{
	(void)client;
	progress = fn;
}

static void put(const unsigned char *id, size_t n, const char *content_id)
{
	struct made *m cleanup(freep_cleanup) = made_new(EM_X86_64);
	char hex[ELF_BUILD_ID_HEX], path[256];
	size_t text = made_section(m, ".text", SHT_PROGBITS, SHF_EXECINSTR, NULL, 64);

	elf_build_id_hex(id, n, hex);
	made_symbols(m, SHT_SYMTAB, (uint16_t)text, m->s[text].sh_addr, (const char *const[]){ "f", NULL });
	made_build_id(m, content_id, n);
	snprintf(path, sizeof(path), "%s/%s", dir, hex);
	(void)mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/%s/debuginfo", dir, hex);
	made_write(m, path);
}

static int hang(long a, long b)
{
	while (!progress(&asked, a, b))
		usleep(1000);
	return -ENOENT;		/* as libdebuginfod says then */
}

static int find(void *client, const unsigned char *id, int n, char **ret)
{
	char hex[ELF_BUILD_ID_HEX], path[256];

	ck_assert_ptr_eq(client, &asked);
	atomic_fetch_add(&asked, 1);
	elf_build_id_hex(id, (size_t)n, hex);
	switch (id[0]) {
	case 'n':
		return -ENOENT;
	case 'd':
		return -ECONNREFUSED;
	case 'h':
		return hang(1, 0);
	case 'l':		/* its size is told; and that of one that never ends isn't */
		return hang(1, 1L << 40);
	case 'e':
		return hang(1L << 40, 0);
	case 'w':
		put(id, (size_t)n, "anotherid");
		break;
	default:
		put(id, (size_t)n, (const char *)id);
	}
	snprintf(path, sizeof(path), "%s/%s/debuginfo", dir, hex);
	*ret = strdup(path);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static const struct debuginfod_library library = { begin, end, find, set_progress };

static struct debuginfod *made(uint64_t file_ns, uint32_t queue)
{
	struct debuginfod_options o = DEBUGINFOD_OPTIONS_DEFAULT;
	struct debuginfod *d = NULL;

	strcpy(dir, "/tmp/debuginfod-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1", 1);
	o.library = &library;
	o.cache = dir;
	o.file_ns = file_ns;
	o.queue = queue;
	asked = 0;
	ck_assert_int_eq(debuginfod_new(&o, &d, NULL), 0);
	return d;
}

static void remove_files(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ck_assert_int_eq(system(command), 0);
}

static uint64_t in_a_minute(void)
{
	return clock_monotonic() + UINT64_C(60000000000);
}

static int open_id(struct debuginfod *d, const char *id)
{
	return debuginfod_open(d, (const unsigned char *)id, strlen(id));
}

static void expect(struct debuginfod *d, const char *id, enum debuginfod_result r)
{
	uint64_t before = debuginfod_stats(d).results[r];

	ck_assert_int_eq(open_id(d, id), -EAGAIN);
	ck_assert(debuginfod_wait(d, in_a_minute()));
	ck_assert_uint_eq(debuginfod_stats(d).results[r], before + 1);
	if (r != DEBUGINFOD_FETCHED)
		ck_assert_int_eq(open_id(d, id), -ENOENT);
}

START_TEST(what_becomes_of_it)
{
	struct debuginfod *d = made(100000000, 8);
	uint64_t sum = 0;
	int fd;

	expect(d, "good12345", DEBUGINFOD_FETCHED);
	fd = open_id(d, "good12345");
	ck_assert_int_ge(fd, 0);
	close(fd);
	expect(d, "none12345", DEBUGINFOD_NOT_FOUND);
	expect(d, "down12345", DEBUGINFOD_FAILED);
	ck_assert_str_eq(debuginfod_stats(d).error, strerror(ECONNREFUSED));
	expect(d, "hang12345", DEBUGINFOD_TIMED_OUT);
	expect(d, "large1234", DEBUGINFOD_TOO_LARGE);
	expect(d, "endless12", DEBUGINFOD_TOO_LARGE);
	expect(d, "wrong1234", DEBUGINFOD_WRONG);
	ck_assert_int_eq(asked, 7);	/* refused ones aren't asked for again at once */
	ck_assert_int_eq(open_id(d, "short12"), -ENOENT);
	ck_assert_int_eq(debuginfod_ask(d, (const unsigned char *)"good12345", 9), 0);
	for (size_t i = 0; i < DEBUGINFOD_COUNT; i++)
		sum += debuginfod_stats(d).results[i];
	ck_assert_uint_eq(sum, 7);
	ck_assert_uint_eq(debuginfod_stats(d).bytes, sizeof(struct made));
	ck_assert_uint_ge(debuginfod_stats(d).cache_bytes, sizeof(struct made));
	debuginfod_free(d);
	ck_assert_int_eq(running, 0);
	remove_files();
}
END_TEST

START_TEST(what_is_there_already)
{
	struct debuginfod *d = made(100000000, 8);
	char path[256], hex[ELF_BUILD_ID_HEX];
	int fd;

	put((const unsigned char *)"good12345", 9, "good12345");
	put((const unsigned char *)"nope12345", 9, "different");
	fd = open_id(d, "good12345");
	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(asked, 0);
	ck_assert_uint_eq(debuginfod_stats(d).results[DEBUGINFOD_CACHED], 1);
	expect(d, "nope12345", DEBUGINFOD_NOT_FOUND);	/* not what it is called: asked for */
	elf_build_id_hex((const unsigned char *)"good12345", 9, hex);
	snprintf(path, sizeof(path), "%s/%s/debuginfo", dir, hex);
	ck_assert_int_eq(unlink(path), 0);	/* removed for others: asked for */
	expect(d, "good12345", DEBUGINFOD_FETCHED);
	debuginfod_free(d);
	remove_files();
}
END_TEST

/* Nobody waits for a server that hangs: neither who asks, nor the end. */
START_TEST(a_queue_that_is_full)
{
	struct debuginfod *d = made(UINT64_C(3600000000000), 2);

	ck_assert_int_eq(open_id(d, "hang12345"), -EAGAIN);
	while (!asked)
		usleep(1000);
	ck_assert_int_eq(open_id(d, "good00001"), -EAGAIN);
	ck_assert_int_eq(open_id(d, "good00002"), -EAGAIN);
	ck_assert_int_eq(open_id(d, "good00003"), -EAGAIN);
	ck_assert_int_eq(open_id(d, "good00001"), -EAGAIN);
	ck_assert_uint_eq(debuginfod_stats(d).results[DEBUGINFOD_QUEUE_FULL], 1);
	ck_assert_uint_eq(debuginfod_stats(d).waiting, 3);
	ck_assert(!debuginfod_wait(d, clock_monotonic()));
	debuginfod_free(d);
	ck_assert_int_eq(asked, 1);
	ck_assert_int_eq(running, 0);
	remove_files();
}
END_TEST

START_TEST(not_without_servers)
{
	struct debuginfod_options o = DEBUGINFOD_OPTIONS_DEFAULT;
	struct debuginfod *d = NULL;
	struct err e = { "" };

	unsetenv("DEBUGINFOD_URLS");
	ck_assert_int_eq(debuginfod_new(&o, &d, &e), -EINVAL);
	ck_assert_ptr_nonnull(strstr(e.msg, "DEBUGINFOD_URLS"));
	setenv("DEBUGINFOD_URLS", " ", 1);
	ck_assert_int_eq(debuginfod_check_urls(&e), -EINVAL);
	setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1", 1);
	ck_assert_int_eq(debuginfod_check_urls(&e), 0);
}
END_TEST

/* debugfile.h asks for what is nowhere else, says what it waits for, and takes it when it is there. */
START_TEST(a_debug_file)
{
	struct debuginfod *d = made(100000000, 8);
	struct debugfile_await await = { .size = 0 };
	struct debugfile_where w = { .process = -1, .directory = "/nonexistent", .servers = d,
				     .await = &await };
	struct made *m cleanup(freep_cleanup) = made_new(EM_X86_64);
	struct elf *e cleanup(elf_cleanup) = NULL;
	struct debugfile found;

	made_build_id(m, "good12345", 9);
	e = made_open(m);
	ck_assert_int_eq(debugfile_find(e, &w, &found), -ENOENT);
	ck_assert(await.size == 9 && !memcmp(await.id, "good12345", 9));
	ck_assert(debuginfod_wait(d, in_a_minute()));
	await.size = 0;
	ck_assert_int_eq(debugfile_find(e, &w, &found), 0);
	ck_assert_uint_eq(await.size, 0);
	ck_assert_ptr_nonnull(elf_section_by_name(found.elf, ".symtab"));
	debugfile_close(&found);
	debuginfod_free(d);
	remove_files();
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { what_becomes_of_it, what_is_there_already,
				       a_queue_that_is_full, not_without_servers, a_debug_file };

	return made_run("debuginfod", tests, ARRAY_SIZE(tests));
}
