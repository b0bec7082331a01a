/* merge_test.c - profiles add up as by Go's profile.Merge (merge.h). */
#include <check.h>

#include "profile/merge.h"
#include "profile/pprof.h"
#include "small_profile.h"

static struct profile *a, *b, *sum;

static void setup(void)
{
	a = small_profile();
	b = small_profile();
	MUST(profile_new(&sum));
}

static void teardown(void)
{
	profile_free(a);
	profile_free(b);
	profile_free(sum);
}

static void merge_both(void)
{
	MUST(profile_merge(sum, a, NULL));
	MUST(profile_merge(sum, b, NULL));
}

START_TEST(header)
{
	a->time_nanos = 0;
	b->time_nanos = 500;
	a->duration_nanos = 7;
	b->duration_nanos = 8;
	b->period = 20000000;
	MUST(profile_comment(a, "one"));
	MUST(profile_comment(b, "one"));
	MUST(profile_comment(b, "two"));
	b->default_sample_type = small_string(b, "cpu");
	merge_both();
	ck_assert_int_eq(sum->time_nanos, 500);
	ck_assert_int_eq(sum->duration_nanos, 15);
	ck_assert_int_eq(sum->period, 20000000);
	ck_assert_uint_eq(sum->ncomments, 2);
	ck_assert_str_eq(profile_str(sum, sum->default_sample_type), "cpu");
	ck_assert_uint_eq(sum->ntypes, 2);
}
END_TEST

START_TEST(libraries_that_lie_elsewhere_become_one)
{
	uint32_t ma = small_mapping(a, "/lib/x.so", 0x1000), mb;

	small_mapping(b, "/bin/other", 0);
	mb = small_mapping(b, "/lib/x.so", 0x70000);
	small_sample(a, STACK(small_location(a, ma, 0x1010, "f")), "c", 1, 0, 2);
	small_sample(b, STACK(small_location(b, mb, 0x70010, "f")), "c", 1, 0, 3);
	small_sample(b, STACK(small_location(b, mb, 0x70011, "f")), "c", 1, 0, 0);
	merge_both();
	ck_assert_uint_eq(profile_sample_count(sum), 1);	/* the one of 0 is gone */
	ck_assert_int_eq(profile_values(sum, 0)[0], 5);
	ck_assert_uint_eq(profile_location_count(sum), 1);
	ck_assert_uint_eq(profile_location_get(sum, 1).address, 0x1010);
	ck_assert_uint_eq(profile_mapping_count(sum), 2);
	ck_assert_str_eq(profile_str(sum, profile_mapping_get(sum, profile_main_mapping(sum)).file),
			 "/lib/x.so");
}
END_TEST

START_TEST(build_ids_tell_files_apart)
{
	struct profile_mapping m = { .limit = 0x1000, .file = small_string(a, "/a") };
	uint32_t id;

	m.build_id = small_string(a, "11");
	MUST(profile_mapping(a, &m, &id));
	m = (struct profile_mapping){ .limit = 0xfff, .file = small_string(b, "/renamed") };
	m.build_id = small_string(b, "11");
	MUST(profile_mapping(b, &m, &id));
	m.build_id = small_string(b, "22");
	MUST(profile_mapping(b, &m, &id));
	m.has = PROFILE_HAS_FUNCTIONS;
	MUST(profile_mapping(b, &m, &id));
	merge_both();
	ck_assert_uint_eq(profile_mapping_count(sum), 3);
}
END_TEST

START_TEST(labels_are_kept)
{
	uint32_t la = small_location(a, 0, 1, "f"), lb = small_location(b, 0, 1, "f");

	small_sample(a, STACK(la), "x", 1, 0, 1);
	small_sample(b, STACK(lb), "y", 1, 0, 1);
	small_sample(b, STACK(lb), "x", 1, 0, 1);
	merge_both();
	ck_assert_uint_eq(profile_sample_count(sum), 2);
	ck_assert_int_eq(profile_values(sum, 0)[0], 2);
	ck_assert_uint_eq(profile_stack_id(sum, 0), profile_stack_id(sum, 1));
}
END_TEST

START_TEST(different_types_are_refused)
{
	struct profile *heap = NULL, *other = small_profile();
	struct err e;

	MUST(profile_new(&heap));
	MUST(profile_sample_type(heap, "inuse_space", "bytes"));
	MUST(profile_merge(sum, a, &e));
	ck_assert_int_eq(profile_merge(sum, heap, &e), -EINVAL);
	ck_assert_str_eq(e.msg, "sample types differ: samples/count cpu/nanoseconds and "
				"inuse_space/bytes");
	MUST(profile_set_period_type(other, "wall", "nanoseconds"));
	ck_assert_int_eq(profile_merge(sum, other, &e), -EINVAL);
	ck_assert_str_eq(e.msg, "period types differ: cpu/nanoseconds and wall/nanoseconds");
	profile_free(heap);
	profile_free(other);
}
END_TEST

/* Merging in any order gives the same sums, and twice the same gives twice each value. */
START_TEST(random_sums)
{
	struct prng r = prng_new();

	for (int i = 0; i < 20; i++) {
		cleanup(profile_cleanup) struct profile *x = random_profile(&r), *y = NULL;
		size_t zero = 0;

		MUST(profile_new(&y));
		for (uint32_t n = 0; n < profile_sample_count(x); n++) {
			bool all = true;

			for (size_t t = 0; t < x->ntypes; t++)
				all = all && !profile_values(x, n)[t];
			zero += all;
		}
		MUST(profile_merge(y, x, NULL));
		ck_assert_uint_le(profile_sample_count(y), profile_sample_count(x) - zero);
		for (size_t t = 0; t < x->ntypes; t++) {
			uint64_t sx = 0, sy = 0;

			for (uint32_t n = 0; n < profile_sample_count(x); n++)
				sx += (uint64_t)profile_values(x, n)[t];
			for (uint32_t n = 0; n < profile_sample_count(y); n++)
				sy += (uint64_t)profile_values(y, n)[t];
			/* Two samples may become one and saturate. */
			if (profile_sample_count(y) == profile_sample_count(x) - zero)
				ck_assert_uint_eq(sx, sy);
		}
	}
}
END_TEST

START_TEST(files)
{
	char path[] = "/tmp/wick-merge-test-XXXXXX";
	int fd = mkstemp(path);
	cleanup(buf_cleanup) struct buf out = BUF_INIT(100000);
	cleanup(profile_cleanup) struct profile *p = NULL;
	const char *paths[] = { path, path, "/nonexistent" };
	struct err e;

	small_sample(a, STACK(small_location(a, 0, 1, "f")), "x", 1, 0, 21);
	MUST(pprof_write(a, true, &out));
	ck_assert_int_eq(write(fd, out.data, out.len), (ssize_t)out.len);
	close(fd);
	MUST(merge_files(paths, 2, &p, &e));
	ck_assert_int_eq(profile_values(p, 0)[0], 42);
	ck_assert_int_eq(merge_files(paths, 3, &p, &e), -ENOENT);
	ck_assert_str_eq(e.msg, "/nonexistent: No such file or directory");
	unlink(path);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("merge");
	TCase *t = tcase_create("merge");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, header);
	tcase_add_test(t, libraries_that_lie_elsewhere_become_one);
	tcase_add_test(t, build_ids_tell_files_apart);
	tcase_add_test(t, labels_are_kept);
	tcase_add_test(t, different_types_are_refused);
	tcase_add_test(t, random_sums);
	tcase_add_test(t, files);
	tcase_set_timeout(t, 60);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
