/* pprof_test.c - what is written can be read: by us, by an independent decoder, by Go. And what
 * is wrong is refused with a sentence that says where. */
#include <check.h>
#include <sys/stat.h>
#include <zlib.h>

#include "profile/pprof.h"
#include "random_profile.h"

static struct buf text_of(const struct profile *p)
{
	struct buf b = BUF_INIT(SIZE_MAX / 4);

	dump_profile(p, &b);
	ck_assert_int_eq(b.err, 0);
	return b;
}

static struct buf bytes_of(const struct profile *p, bool gzip)
{
	struct buf b = BUF_INIT(SIZE_MAX / 4);

	MUST(pprof_write(p, gzip, &b));
	return b;
}

/* Shows where two long texts part. */
static void same_text(const char *got, const char *want)
{
	size_t n = 0;

	while (got[n] && got[n] == want[n])
		n++;
	ck_assert_msg(got[n] == want[n], "byte %zu: got '%.200s', want '%.200s'", n,
		      got + n - MIN(n, 80), want + n - MIN(n, 80));
}

START_TEST(written_and_read_back)
{
	struct prng r = prng_new();

	for (int i = 0; i < 30; i++) {
		cleanup(profile_cleanup) struct profile *p = random_profile(&r);
		cleanup(profile_cleanup) struct profile *q = NULL;
		cleanup(buf_cleanup) struct buf a = bytes_of(p, i % 2), want = text_of(p);
		struct err e;

		ck_assert_msg(!pprof_read(a.data, a.len, 0, &q, &e), "%s", e.msg);
		cleanup(buf_cleanup) struct buf b = bytes_of(q, i % 2), got = text_of(q);

		same_text(got.data, want.data);
		ck_assert_uint_eq(a.len, b.len);
		ck_assert_mem_eq(a.data, b.data, a.len);
	}
}
END_TEST

/* ---- other people's readers ---- */

static char *temporary(void)
{
	static char path[] = "/tmp/wick-pprof-test-XXXXXX";
	int fd;

	strcpy(path + strlen(path) - 6, "XXXXXX");
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	close(fd);
	return path;
}

static void put_file(const char *path, const struct buf *b)
{
	cleanup(file_cleanup) FILE *f = fopen(path, "w");

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(b->data, 1, b->len, f), b->len);
}

/* What a command prints, its errors included. */
static struct buf output_of(const char *command, const char *path)
{
	struct buf b = BUF_INIT(64 << 20);
	char line[512], chunk[4096];
	FILE *f;
	size_t n;

	snprintf(line, sizeof(line), "%s %s 2>&1", command, path);
	f = popen(line, "r");
	ck_assert_ptr_nonnull(f);
	while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
		buf_bytes(&b, chunk, n);
	buf_str(&b, "");
	ck_assert_msg(!pclose(f), "%s: %s", line, b.data);
	return b;
}

START_TEST(python_agrees)
{
	struct prng r = prng_new();

	if (access("tests/e2e/pprof.py", R_OK) < 0 || system("python3 -c '' 2>/dev/null"))
		return;
	for (int i = 0; i < 5; i++) {
		cleanup(profile_cleanup) struct profile *p = random_profile(&r);
		cleanup(buf_cleanup) struct buf bytes = bytes_of(p, true), want = text_of(p);
		const char *path = temporary();

		put_file(path, &bytes);
		cleanup(buf_cleanup) struct buf got =
			output_of("python3 tests/e2e/pprof.py", path);

		unlink(path);
		same_text(got.data, want.data);
	}
}
END_TEST

/* The lines of samples in `pprof -raw`: values, a colon, location ids. */
static struct buf raw_samples(const struct profile *p)
{
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	uint32_t *order;

	MUST(profile_sorted(p, profile_default_type(p), &order));
	for (uint32_t i = 0; i < profile_sample_count(p); i++) {
		for (size_t t = 0; t < p->ntypes; t++)
			buf_printf(&b, " %10" PRId64, profile_values(p, order[i])[t]);
		buf_str(&b, ": ");
		for (size_t f = 0; f < profile_depth(p, order[i]); f++)
			buf_printf(&b, "%" PRIu32 " ", profile_frame(p, order[i], f));
		buf_char(&b, '\n');
	}
	free(order);
	return b;
}

/* Keeps the lines of samples only; fails on anything before the header (warnings). */
static struct buf filter_raw(const struct buf *raw)
{
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	char *save, *line = strtok_r(raw->data, "\n", &save);
	bool in = false;

	ck_assert_msg(line && (!strncmp(line, "Comment", 7) || !strncmp(line, "PeriodType", 10) ||
			       !strncmp(line, "Doc", 3)), "%s", line ? line : "nothing");
	for (; line; line = strtok_r(NULL, "\n", &save)) {
		const char *s = line + strspn(line, " ");

		if (!strncmp(line, "Samples:", 8)) {
			in = true;
			strtok_r(NULL, "\n", &save);	/* the types */
		} else if (!strncmp(line, "Locations", 9)) {
			in = false;
		} else if (in && *s >= '0' && *s <= '9') {	/* else a label */
			buf_printf(&b, "%s\n", line);
		}
	}
	buf_str(&b, "");
	return b;
}

static void add_sample(struct profile *p, struct prng *r)
{
	const struct profile_label label = { .key = 1, .num = 5 };
	uint32_t ids[20];
	const size_t n = prng_below(r, ARRAY_SIZE(ids));

	for (size_t i = 0; i < n; i++)
		ids[i] = (uint32_t)prng_below(r, profile_location_count(p)) + 1;
	MUST(profile_sample(p, &(struct profile_stack){ ids, n }, &label, prng_below(r, 2),
			    (int64_t[]){ 1 + (int64_t)prng_below(r, 9),
					 1 + (int64_t)prng_below(r, 99) }, NULL));
}

START_TEST(go_agrees)
{
	struct prng r = prng_new();
	cleanup(profile_cleanup) struct profile *p = NULL;
	const char *path = temporary();

	if (system("go version >/dev/null 2>&1")) {
		unlink(path);
		return;
	}
	MUST(profile_new(&p));
	MUST(profile_sample_type(p, "samples", "count"));
	MUST(profile_sample_type(p, "cpu", "nanoseconds"));
	MUST(profile_set_period_type(p, "cpu", "nanoseconds"));
	p->period = 10101010;
	random_string(p, &r, "fn");
	for (int i = 0; i < 5; i++)
		random_mapping(p, &r);
	for (int i = 0; i < 50; i++)
		random_location(p, &r);
	for (int i = 0; i < 200; i++)
		add_sample(p, &r);
	cleanup(buf_cleanup) struct buf bytes = bytes_of(p, true), want = raw_samples(p);

	put_file(path, &bytes);
	cleanup(buf_cleanup) struct buf raw =
		output_of("go tool pprof -raw -symbolize=none", path);
	cleanup(buf_cleanup) struct buf got = filter_raw(&raw);

	unlink(path);
	same_text(got.data, want.data);
}
END_TEST

/* ---- what is refused, and why ---- */

static void put(struct buf *b, const char *bytes, size_t n)
{
	buf_bytes(b, bytes, n);
}
#define PUT(b, literal) put(b, literal, sizeof(literal) - 1)

#define TYPE	 "\x0a\x04\x08\x01\x10\x02"		/* sample_type { type: 1 unit: 2 } */
#define STRINGS	 "\x32\x00\x32\x03" "cpu\x32\x02" "ns"
#define FUNCTION "\x2a\x04\x08\x07\x10\x01"		/* function { id: 7 name: 1 } */
#define LOCATION "\x22\x06\x08\x09\x22\x02\x08\x07"	/* id: 9 line { function_id: 7 } */
#define SAMPLE	 "\x12\x04\x08\x09\x10\x05"		/* sample { location_id: 9 value: 5 } */

#define REFUSED(literal, sentence)                                                             \
	do {                                                                                   \
		struct profile *q_ = NULL;                                                     \
		struct err e_;                                                                 \
		ck_assert_int_eq(pprof_read(literal, sizeof(literal) - 1, 0, &q_, &e_),        \
				 -EBADMSG);                                                    \
		ck_assert_ptr_null(q_);                                                        \
		ck_assert_str_eq(e_.msg, sentence);                                            \
	} while (0)

START_TEST(refused_with_a_reason)
{
	REFUSED("", "empty, not a profile");
	REFUSED("hello", "byte 2: unknown wire type 4");
	REFUSED(TYPE, "there is no string table");
	REFUSED("\x32\x01x", "the first string is not empty");
	REFUSED(STRINGS "\x0a\x02\x08\x09",
		"sample type 1: string 9 doesn't exist, the table has 3");
	REFUSED(STRINGS FUNCTION LOCATION SAMPLE, "there are samples but no sample types");
	REFUSED(STRINGS TYPE FUNCTION LOCATION "\x12\x02\x08\x09",
		"sample 1: 0 values for 1 sample types");
	REFUSED(STRINGS TYPE SAMPLE, "sample 1: location id 9 doesn't exist");
	REFUSED(STRINGS TYPE LOCATION, "location 1: function id 7 doesn't exist");
	REFUSED(STRINGS TYPE FUNCTION FUNCTION, "function 2: id 7 is taken already");
	REFUSED(STRINGS TYPE "\x2a\x02\x10\x01", "function 1 has no id");
	REFUSED(STRINGS TYPE "\x2a\x04\x08\x07\x10\x63",
		"function 1: string 99 doesn't exist, the table has 3");
	REFUSED(STRINGS TYPE "\x12\x02\x08", "byte 17: a field ends beyond the data");
	REFUSED(STRINGS TYPE "\x12\x01\x08", "byte 17: sample 1 is malformed");
	REFUSED(STRINGS TYPE "\x17", "byte 17: unknown wire type 7");
	REFUSED(STRINGS TYPE "\x10\x01", "byte 17: field 2 is not a message");
}
END_TEST

START_TEST(accepts_what_others_write)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(1000);
	cleanup(profile_cleanup) struct profile *p = NULL;

	/* samples before all they refer to, sparse ids, an absent mapping, an unknown field */
	PUT(&b, SAMPLE TYPE "\x22\x0f\x08\x09\x10\x63\x22\x02\x08\x07\x18\x80\x80\x80\x80\x80\x01");
	PUT(&b, FUNCTION "\xa2\x06\x01x" STRINGS);
	MUST(pprof_read(b.data, b.len, 0, &p, NULL));
	ck_assert_uint_eq(profile_sample_count(p), 1);
	ck_assert_uint_eq(profile_frame(p, 0, 0), 1);
	ck_assert_uint_eq(profile_location_get(p, 1).mapping, 0);
	ck_assert_uint_eq(profile_location_get(p, 1).address, (uint64_t)1 << 35);
	ck_assert_int_eq(profile_values(p, 0)[0], 5);
}
END_TEST

static size_t deflate_member(const char *data, size_t n, uint8_t *out, size_t cap)
{
	z_stream z = { .next_in = (uint8_t *)(uintptr_t)data, .avail_in = (uInt)n,
		       .next_out = out, .avail_out = (uInt)cap };

	ck_assert_int_eq(deflateInit2(&z, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	return cap - z.avail_out;
}

START_TEST(gzip_members_and_damage)
{
	static const char raw[] = STRINGS TYPE FUNCTION LOCATION SAMPLE;
	uint8_t z[1000];
	size_t a = deflate_member(raw, 10, z, sizeof(z));
	size_t n = a + deflate_member(raw + 10, sizeof(raw) - 1 - 10, z + a, sizeof(z) - a);
	cleanup(profile_cleanup) struct profile *p = NULL;
	struct profile *q = NULL;
	struct err e;

	MUST(pprof_read(z, n, 0, &p, &e));
	ck_assert_uint_eq(profile_sample_count(p), 1);
	for (size_t cut = 2; cut < n; cut++)
		ck_assert_int_eq(pprof_read(z, cut, 0, &q, &e), -EBADMSG);
	ck_assert_str_eq(e.msg, "the gzip data ends early");
	z[a + 15] ^= 0xff;
	ck_assert_int_eq(pprof_read(z, n, 0, &q, &e), -EBADMSG);
}
END_TEST

START_TEST(limits)
{
	static char zeros[1 << 20];
	cleanup(freep_cleanup) uint8_t *z = malloc(1 << 20);
	size_t n = deflate_member(zeros, sizeof(zeros), z, 1 << 20);
	struct profile *q = NULL;
	struct err e;

	ck_assert_int_eq(pprof_read(z, n, 1000, &q, &e), -E2BIG);
	ck_assert_str_eq(e.msg, "larger than 1000 bytes, or too many parts");
	ck_assert_int_eq(pprof_read(zeros, sizeof(zeros), 1000, &q, &e), -E2BIG);
	ck_assert_int_eq(pprof_read_file("/dev/zero", 1000, &q, &e), -E2BIG);
	ck_assert_str_eq(e.msg, "/dev/zero: larger than 1000 bytes, or too many parts");
	ck_assert_int_eq(pprof_read_file("/nonexistent", 0, &q, &e), -ENOENT);
	ck_assert_str_eq(e.msg, "/nonexistent: No such file or directory");
	ck_assert_int_eq(pprof_read_file("/", 0, &q, &e), -EISDIR);
}
END_TEST

/* Two bytes for each label of one sample, 72 of memory: the budget ends it. */
START_TEST(greedy_message)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(16 << 20);
	struct profile *q = NULL;
	struct err e;

	PUT(&b, STRINGS TYPE "\x12\x80\x80\x80\x02");	/* a sample of 4 MiB */
	for (int i = 0; i < 2 << 20; i++)
		PUT(&b, "\x1a\x00");
	ck_assert_int_eq(pprof_read(b.data, b.len, 0, &q, &e), -E2BIG);
	ck_assert_str_eq(e.msg, "sample 1 takes more than 67108864 bytes");
}
END_TEST

START_TEST(main_mapping_first)
{
	cleanup(profile_cleanup) struct profile *p = NULL, *q = NULL;
	uint32_t ids[3], loc;

	MUST(profile_new(&p));
	MUST(profile_sample_type(p, "samples", "count"));
	for (uint32_t i = 0; i < 3; i++) {
		char name[] = "/bin/0";

		name[5] = (char)('0' + i);
		struct profile_mapping m = { .limit = 1000 };
		MUST(profile_string(p, name, &m.file));
		MUST(profile_mapping(p, &m, &ids[i]));
		MUST(profile_location(p, &(struct profile_location){ i, ids[i], false }, NULL, 0,
				      &loc));
	}
	MUST(profile_set_main_mapping(p, ids[2]));
	cleanup(buf_cleanup) struct buf b = bytes_of(p, false);

	MUST(pprof_read(b.data, b.len, 0, &q, NULL));
	ck_assert_str_eq(profile_str(q, profile_mapping_get(q, 1).file), "/bin/2");
	ck_assert_str_eq(profile_str(q, profile_mapping_get(q, 2).file), "/bin/0");
	ck_assert_uint_eq(profile_location_get(q, 3).mapping, 1);
	ck_assert_uint_eq(profile_location_get(q, 1).mapping, 2);
	ck_assert_uint_eq(profile_location_get(q, 2).mapping, 3);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("pprof");
	TCase *t = tcase_create("pprof"), *others = tcase_create("others");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_test(t, written_and_read_back);
	tcase_add_test(t, refused_with_a_reason);
	tcase_add_test(t, accepts_what_others_write);
	tcase_add_test(t, gzip_members_and_damage);
	tcase_add_test(t, limits);
	tcase_add_test(t, greedy_message);
	tcase_add_test(t, main_mapping_first);
	tcase_set_timeout(t, 60);
	tcase_add_test(others, python_agrees);
	tcase_add_test(others, go_agrees);
	tcase_set_timeout(others, 300);	/* go may have to build its tool first */
	suite_add_tcase(s, t);
	suite_add_tcase(s, others);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
