/* spool_test.c - profiles on disk (spool.h). */
#include "sink_check.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "net/spool.h"

static char dir[64];
static struct spool *s;
static struct err e;

static void open_again(uint64_t max_bytes, uint64_t max_age_ns)
{
	spool_close(s);
	s = NULL;
	ck_assert_msg(!spool_open(&(struct spool_options){ dir, max_bytes, max_age_ns }, &s, &e), "%s",
		      e.msg);
}

static void begin(void)
{
	snprintf(dir, sizeof(dir), "/tmp/wick-spool-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	s = NULL;
	open_again(SPOOL_MIN_BYTES, 0);
}

static void end(void)
{
	char command[128];

	spool_close(s);
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	ck_assert_int_eq(system(command), 0);
}

/* An item of size bytes that n tells apart. */
static struct item *numbered(int64_t n, size_t size)
{
	struct labels none = LABELS_INIT;
	struct item_profile p = { .pprof = calloc(size, 1), .len = size, .time_nanos = n };
	struct item *it;

	MUST(item_new(&none, "cpu", &p, &it));
	it->put_nanos = n;
	return it;
}

static struct spool_pos put(int64_t n, size_t size, bool hold)
{
	struct item *it = numbered(n, size);
	struct spool_pos pos;

	MUST(spool_append(s, it, hold, &pos));
	item_unref(it);
	return pos;
}

/* The number of the next one, -1: there is none. */
static int64_t next(struct spool_pos *pos)
{
	struct item *it;
	int64_t n;
	int r = spool_next(s, 0, &it, pos);

	ck_assert(!r || r == -ENOENT);
	if (r)
		return -1;
	n = it->time_nanos;
	item_unref(it);
	return n;
}

static size_t segments(void)
{
	DIR *d = opendir(dir);
	size_t n = 0;
	struct dirent *de;

	while ((de = readdir(d)))
		n += de->d_name[0] != '.';
	closedir(d);
	return n;
}

/* found + appended = done + items + lost */
static void accounts(uint64_t appended, uint64_t done)
{
	struct spool_stats st = spool_get_stats(s);

	ck_assert_uint_eq(st.found + appended, done + st.items + st.torn + st.expired + st.evicted);
}

START_TEST(gives_the_oldest_first)
{
	struct spool_pos pos;

	begin();
	for (int i = 0; i < 100; i++)
		put(i, 10000, false);
	ck_assert_uint_gt(segments(), 2);
	for (int i = 0; i < 100; i++) {
		ck_assert_int_eq(next(&pos), i);
		spool_done(s, &pos);
	}
	ck_assert_int_eq(next(&pos), -1);
	accounts(100, 100);
	ck_assert_uint_le(segments(), 1);	/* the one that is written to stays */
	put(100, 10, false);
	ck_assert_int_eq(next(&pos), 100);
	end();
}
END_TEST

START_TEST(remembers)
{
	struct spool_pos pos[10];

	begin();
	for (int i = 0; i < 10; i++)
		put(i, 100, false);
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(next(&pos[i]), i);
	spool_done(s, &pos[1]);
	spool_done(s, &pos[3]);
	open_again(SPOOL_MIN_BYTES, 0);
	ck_assert_uint_eq(spool_get_stats(s).found, 8);
	for (int i = 0; i < 10; i++)
		if (i != 1 && i != 3) {
			ck_assert_int_eq(next(&pos[i]), i);
			spool_done(s, &pos[i]);
		}
	accounts(0, 8);
	open_again(SPOOL_MIN_BYTES, 0);
	ck_assert_uint_eq(spool_get_stats(s).found, 0);
	ck_assert_uint_eq(segments(), 0);
	end();
}
END_TEST

START_TEST(holds_and_releases)
{
	struct spool_pos held, pos, first;

	begin();
	held = put(0, 10, true);
	put(1, 10, false);
	put(2, 10, false);
	ck_assert_int_eq(next(&first), 1);	/* 0 is being sent already */
	first.blamed = 3;
	spool_release(s, &first);
	ck_assert_int_eq(next(&pos), 2);	/* by turns */
	spool_done(s, &pos);
	ck_assert_int_eq(next(&pos), 1);
	ck_assert_uint_eq(pos.blamed, 3);
	spool_done(s, &pos);
	spool_done(s, &pos);			/* once is enough */
	ck_assert_int_eq(next(&pos), -1);
	spool_release(s, &held);
	ck_assert_int_eq(next(&pos), 0);
	spool_done(s, &pos);
	accounts(3, 3);
	end();
}
END_TEST

START_TEST(keeps_within_bytes)
{
	struct spool_pos held, pos;
	struct spool_stats st;
	int64_t n;

	begin();
	held = put(0, 100000, true);
	for (int i = 1; i < 100; i++) {
		put(i, 100000, false);
		ck_assert_uint_le(spool_get_stats(s).bytes, SPOOL_MIN_BYTES);
	}
	st = spool_get_stats(s);
	ck_assert_uint_gt(st.evicted, 80);
	accounts(100, 0);
	n = next(&pos);
	ck_assert_int_gt(n, 80);		/* the oldest went */
	spool_done(s, &pos);
	spool_done(s, &held);			/* its record is gone, but it was delivered */
	accounts(100, 2);
	end();
}
END_TEST

START_TEST(drops_what_is_too_old)
{
	struct spool_pos pos;
	struct item *it;

	begin();
	open_again(SPOOL_MIN_BYTES, 1000);
	put(1, 10, false);
	put(500, 10, false);
	MUST(spool_next(s, 1400, &it, &pos));
	ck_assert_int_eq(it->time_nanos, 500);
	ck_assert_uint_eq(spool_get_stats(s).expired, 1);
	item_unref(it);
	spool_release(s, &pos);
	ck_assert_int_eq(spool_next(s, 1600, &it, &pos), -ENOENT);
	ck_assert_uint_eq(spool_get_stats(s).expired, 2);
	accounts(2, 0);
	end();
}
END_TEST

static int only_segment(int flags)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/0000000000000000.seg", dir);
	return open(path, flags);
}

/* Cuts the file behind each byte of the last of three records, as a crash may. */
START_TEST(skips_torn_ends)
{
	struct spool_pos pos, last;
	struct stat st;
	int fd;

	begin();
	put(0, 50, false);
	put(1, 50, false);
	last = put(2, 50, false);
	fd = only_segment(O_RDWR);
	fstat(fd, &st);
	for (off_t size = st.st_size - 1; size > (off_t)last.offset; size--) {
		ck_assert_int_eq(ftruncate(fd, size), 0);
		open_again(SPOOL_MIN_BYTES, 0);
		ck_assert_uint_eq(spool_get_stats(s).torn, 1);
		ck_assert_uint_eq(spool_get_stats(s).items, 2);
	}
	ck_assert_int_eq(next(&pos), 0);
	ck_assert_int_eq(next(&pos), 1);
	put(3, 50, false);	/* goes to a segment of its own */
	ck_assert_int_eq(next(&pos), 3);
	ck_assert_int_eq(next(&pos), -1);
	accounts(1, 0);
	close(fd);
	end();
}
END_TEST

/* Damages each byte of the middle record in turn. */
START_TEST(skips_damage)
{
	struct spool_pos middle, last, pos;
	unsigned char byte, bad;
	int fd;

	begin();
	put(0, 50, false);
	middle = put(1, 50, false);
	last = put(2, 50, false);
	fd = only_segment(O_RDWR);
	for (off_t at = (off_t)middle.offset; at < (off_t)last.offset; at++) {
		if (at - (off_t)middle.offset >= 4 && at - (off_t)middle.offset < 8)
			continue;	/* its state isn't covered by the CRC */
		ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
		bad = byte ^ 0x55;
		ck_assert_int_eq(pwrite(fd, &bad, 1, at), 1);
		open_again(SPOOL_MIN_BYTES, 0);
		ck_assert_uint_eq(spool_get_stats(s).torn, 1);
		ck_assert_int_eq(next(&pos), 0);
		ck_assert_int_eq(next(&pos), 2);
		ck_assert_int_eq(next(&pos), -1);
		ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
	}
	close(fd);
	end();
}
END_TEST

START_TEST(counts_damage_done_while_it_runs)
{
	struct spool_pos first, pos;
	int fd;

	begin();
	first = put(0, 200000, false);
	put(1, 10, false);	/* sealed the first */
	put(2, 10, false);
	fd = only_segment(O_RDWR);
	ck_assert_int_eq(pwrite(fd, "x", 1, (off_t)first.offset + 100), 1);
	close(fd);
	ck_assert_int_eq(next(&pos), 1);
	ck_assert_uint_eq(spool_get_stats(s).torn, 1);
	accounts(3, 0);
	end();
}
END_TEST

START_TEST(belongs_to_one_process)
{
	struct spool *other = NULL;

	begin();
	ck_assert_int_eq(spool_open(&(struct spool_options){ dir, SPOOL_MIN_BYTES, 0 }, &other, &e),
			 -EBUSY);
	ck_assert(strstr(e.msg, "used by another"));
	ck_assert_int_eq(spool_open(&(struct spool_options){ dir, 1, 0 }, &other, &e), -EINVAL);
	ck_assert_int_eq(spool_open(&(struct spool_options){ "/nonexistent/x", SPOOL_MIN_BYTES, 0 },
				    &other, &e), -ENOENT);
	end();
}
END_TEST

START_TEST(refuses_what_is_too_large)
{
	struct item *it;
	struct spool_pos pos;

	begin();
	it = numbered(0, SPOOL_MIN_BYTES);
	ck_assert_int_eq(spool_append(s, it, false, &pos), -E2BIG);
	item_unref(it);
	end();
}
END_TEST

RUN_ALL("spool", gives_the_oldest_first, remembers, holds_and_releases, keeps_within_bytes,
	drops_what_is_too_old, skips_torn_ends, skips_damage, counts_damage_done_while_it_runs,
	belongs_to_one_process, refuses_what_is_too_large)
