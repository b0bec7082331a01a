/* folded_test.c - folded stacks (folded.h). */
#include <check.h>

#include "profile/folded.h"
#include "small_profile.h"

static void expect(const struct profile *p, const char *want)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(1 << 20);

	MUST(folded_write(p, &b));
	ck_assert_str_eq(b.data ? b.data : "", want);
}

START_TEST(stacks)
{
	cleanup(profile_cleanup) struct profile *p = small_profile();
	const uint32_t lib = small_mapping(p, "/usr/lib/libc.so.6", 0);
	const uint32_t start = small_location(p, lib, 0x10, "_start");
	const uint32_t inlined = small_location(p, lib, 0x20, "inner<outer");
	const uint32_t bare = small_location(p, lib, 0x1234, NULL);
	const uint32_t kernel = small_location(p, 0, 0xffffffff81000000, "do_read");

	small_sample(p, STACK(inlined, start), "app", 1, 0, 2);
	small_sample(p, STACK(inlined, start), "app", 2, 0, 3);	/* reads the same: adds up */
	small_sample(p, STACK(kernel, bare, start), "app", 1, 0, 7);
	small_sample(p, STACK(start), NULL, 0, 0, 1);
	small_sample(p, STACK(), "idle", 0, 0, 1);
	small_sample(p, STACK(bare), NULL, 0, 0, 0);
	expect(p, "app;_start;libc.so.6+0x1234;do_read_[k] 7\n"
		  "app;_start;outer;inner 5\n"
		  "_start 1\n"
		  "idle;[unknown] 1\n");
}
END_TEST

START_TEST(hostile_names)
{
	cleanup(profile_cleanup) struct profile *p = small_profile();
	const uint32_t f = small_location(p, 0, 1, "a;b\nc \x1b[31m 7");

	small_sample(p, STACK(f), "x;\ny", 1, 0, 2);
	expect(p, "x:?y;a:b?c ?[31m 7 2\n");
}
END_TEST

START_TEST(other_types)
{
	cleanup(profile_cleanup) struct profile *p = NULL;
	uint32_t f;

	MUST(profile_new(&p));
	MUST(profile_sample_type(p, "alloc_space", "bytes"));
	MUST(profile_sample_type(p, "inuse_space", "bytes"));
	expect(p, "");
	f = small_location(p, 0, 1, "f");
	MUST(profile_sample(p, &(struct profile_stack){ &f, 1 }, NULL, 0, (int64_t[]){ 1, 4096 },
			    NULL));
	expect(p, "f 4096\n");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("folded");
	TCase *t = tcase_create("folded");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_test(t, stacks);
	tcase_add_test(t, hostile_names);
	tcase_add_test(t, other_types);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
