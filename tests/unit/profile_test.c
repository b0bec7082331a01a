/* profile_test.c - the profile in memory (profile.h), the names of its frames (names.h), units. */
#include <check.h>

#include "profile/names.h"
#include "profile/unit.h"
#include "random_profile.h"

static struct profile *p;

static void setup(void)
{
	MUST(profile_new(&p));
	MUST(profile_sample_type(p, "samples", "count"));
	MUST(profile_sample_type(p, "cpu", "nanoseconds"));
}

static void teardown(void)
{
	profile_free(p);
}

static uint32_t str(const char *s)
{
	uint32_t id;

	MUST(profile_string(p, s, &id));
	return id;
}

static uint32_t fn(const char *name)
{
	uint32_t id;

	MUST(profile_function(p, &(struct profile_function){ .name = str(name) }, &id));
	return id;
}

static uint32_t loc(uint64_t address, uint32_t mapping, const char *name)
{
	struct profile_line line = { .function = name ? fn(name) : 0 };
	uint32_t id;

	MUST(profile_location(p, &(struct profile_location){ address, mapping, false }, &line,
			      name ? 1 : 0, &id));
	return id;
}

START_TEST(same_things_have_one_id)
{
	struct profile_mapping m = { .start = 0x1000, .limit = 0x2000, .file = str("/lib/a") };
	uint32_t a, b;

	ck_assert_uint_eq(loc(1, 0, "main"), 1);
	ck_assert_uint_eq(loc(2, 0, "main"), 2);
	ck_assert_uint_eq(loc(1, 0, "main"), 1);
	ck_assert_uint_eq(loc(1, 0, NULL), 3);
	ck_assert_uint_eq(profile_function_count(p), 1);
	MUST(profile_mapping(p, &m, &a));
	m.has = PROFILE_HAS_LINE_NUMBERS;
	MUST(profile_mapping(p, &m, &b));
	ck_assert_uint_eq(a, b);
	m.has = PROFILE_HAS_FUNCTIONS;
	MUST(profile_mapping(p, &m, &b));
	ck_assert_uint_eq(b, 2);
	ck_assert_uint_eq(profile_mapping_get(p, 1).has, PROFILE_HAS_LINE_NUMBERS);
	ck_assert_uint_eq(profile_mapping_get(p, 2).has, PROFILE_HAS_FUNCTIONS);
}
END_TEST

START_TEST(equal_samples_add_up)
{
	uint32_t ids[2] = { loc(1, 0, "leaf"), loc(2, 0, "root") }, a, b, c;
	struct profile_stack stack = { ids, 2 };
	struct profile_label one[] = { { .key = str("pid"), .num = 1 },
				       { .key = str("comm"), .str = str("x") } };
	struct profile_label other[] = { one[1], one[0] };

	MUST(profile_sample(p, &stack, one, 2, (int64_t[]){ 1, 10 }, &a));
	MUST(profile_sample(p, &stack, other, 2, (int64_t[]){ 2, 20 }, &b));
	MUST(profile_sample(p, &stack, one, 1, (int64_t[]){ 4, 40 }, &c));
	ck_assert_uint_eq(a, b);
	ck_assert_uint_ne(a, c);
	ck_assert_int_eq(profile_values(p, a)[0], 3);
	ck_assert_int_eq(profile_values(p, a)[1], 30);
	ck_assert_uint_eq(profile_stack_id(p, a), profile_stack_id(p, c));
	ck_assert_uint_eq(profile_depth(p, a), 2);
	ck_assert_uint_eq(profile_frame(p, a, 0), ids[0]);
	ck_assert_uint_eq(profile_frame(p, a, 1), ids[1]);
	ck_assert_uint_eq(profile_label_count(p, profile_labels_id(p, a)), 2);
}
END_TEST

START_TEST(values_saturate)
{
	struct profile_stack none = { NULL, 0 };
	uint32_t id;

	MUST(profile_sample(p, &none, NULL, 0, (int64_t[]){ INT64_MAX, INT64_MIN }, NULL));
	MUST(profile_sample(p, &none, NULL, 0, (int64_t[]){ 1, -1 }, &id));
	ck_assert_int_eq(profile_values(p, id)[0], INT64_MAX);
	ck_assert_int_eq(profile_values(p, id)[1], INT64_MIN);
}
END_TEST

START_TEST(wrong_ids_are_refused)
{
	struct profile_line line = { .function = 1 };
	struct profile_stack stack = { (uint32_t[]){ 1 }, 1 };
	struct profile_label label = { .key = 1000 };
	uint32_t id = 77;

	ck_assert_int_eq(profile_location(p, &(struct profile_location){ .mapping = 1 }, NULL, 0,
					  &id), -EINVAL);
	ck_assert_int_eq(profile_location(p, &(struct profile_location){ 0 }, &line, 1, &id),
			 -EINVAL);
	ck_assert_int_eq(profile_function(p, &(struct profile_function){ .name = 1000 }, &id),
			 -EINVAL);
	ck_assert_int_eq(profile_mapping(p, &(struct profile_mapping){ .file = 1000 }, &id),
			 -EINVAL);
	ck_assert_int_eq(profile_sample(p, &stack, NULL, 0, (int64_t[]){ 1, 1 }, &id), -EINVAL);
	stack.n = 0;
	ck_assert_int_eq(profile_sample(p, &stack, &label, 1, (int64_t[]){ 1, 1 }, &id), -EINVAL);
	ck_assert_int_eq(profile_set_main_mapping(p, 1), -EINVAL);
	ck_assert_uint_eq(id, 77);
	MUST(profile_sample(p, &stack, NULL, 0, (int64_t[]){ 1, 1 }, NULL));
	ck_assert_int_eq(profile_sample_type(p, "late", "count"), -EINVAL);
}
END_TEST

START_TEST(strings_are_utf8)
{
	uint32_t a = str("caf\xe9"), b = str("caf\xff");

	ck_assert_str_eq(profile_str(p, a), "caf\xef\xbf\xbd");
	ck_assert_uint_eq(a, b);
	ck_assert_uint_eq(str(""), 0);
	ck_assert_uint_eq(profile_find_string(p, "cpu"), str("cpu"));
	ck_assert_uint_eq(profile_find_string(p, "nowhere"), MAP_NONE);
}
END_TEST

START_TEST(heaviest_first_then_first_come)
{
	static const int64_t cpu[] = { 5, 9, 5, -1 };
	uint32_t *order;

	for (uint32_t i = 0; i < 4; i++) {
		uint32_t id = loc(i + 1, 0, NULL);

		MUST(profile_sample(p, &(struct profile_stack){ &id, 1 }, NULL, 0,
				    (int64_t[]){ i, cpu[i] }, NULL));
	}
	MUST(profile_sorted(p, 1, &order));
	ck_assert_uint_eq(order[0], 1);
	ck_assert_uint_eq(order[1], 0);
	ck_assert_uint_eq(order[2], 2);
	ck_assert_uint_eq(order[3], 3);
	free(order);
}
END_TEST

START_TEST(default_type)
{
	ck_assert_uint_eq(profile_default_type(p), 1);
	p->default_sample_type = str("samples");
	ck_assert_uint_eq(profile_default_type(p), 0);
	ck_assert_int_eq(profile_find_type(p, "cpu"), 1);
	ck_assert_int_eq(profile_find_type(p, "wall"), -ENOENT);
}
END_TEST

static void expect_name(uint32_t location, const char *want)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(1000);

	name_frame(p, location, 0, &b);
	ck_assert_str_eq(b.data, want);
}

START_TEST(frames_have_names)
{
	struct profile_mapping m = { .limit = 0x9000, .file = str("/usr/lib/libc.so.6") };
	uint32_t id;

	MUST(profile_mapping(p, &m, &id));
	expect_name(loc(0x1234, id, "read"), "read");
	expect_name(loc(0x1234, id, NULL), "libc.so.6+0x1234");
	expect_name(loc(0x1234, 0, NULL), "0x1234");
	expect_name(loc(0, 0, NULL), "[unknown]");
	ck_assert(!name_is_kernel(p, loc(0x1234, id, NULL)));
	ck_assert(name_is_kernel(p, loc(0xffffffff81000000, 0, NULL)));
	m.file = str("[kernel.kallsyms]");
	MUST(profile_mapping(p, &m, &id));
	ck_assert(name_is_kernel(p, loc(0x10, id, NULL)));
	expect_name(loc(0x10, id, NULL), "[kernel.kallsyms]+0x10");
}
END_TEST

START_TEST(clean_names)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(1000);
	static const char nasty[] = "a\x1b[2J;\xc2\x9b" "b\x7f\n\xc3\xa9";

	name_clean(&b, nasty, sizeof(nasty) - 1);
	ck_assert_str_eq(b.data, "a?[2J;?b??\xc3\xa9");
}
END_TEST

START_TEST(units)
{
	static const struct {
		int64_t v;
		const char *unit, *want;
	} t[] = {
		{ 0, "nanoseconds", "0" }, { 999, "nanoseconds", "999ns" },
		{ 1200000000, "nanoseconds", "1.20s" }, { 990, "milliseconds", "990ms" },
		{ 7200, "seconds", "2.00h" }, { -1500000, "nanoseconds", "-1.50ms" },
		{ 1536, "bytes", "1.50KiB" }, { 12, "bytes", "12B" }, { 12345, "count", "12345" },
		{ INT64_MIN, "seconds", "-2562047788015216h" },
	};
	char text[UNIT_TEXT_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		ck_assert_str_eq(unit_format(t[i].v, t[i].unit, text), t[i].want);
	ck_assert_str_eq(unit_percent(1, 3, text), "33.3%");
	ck_assert_str_eq(unit_percent(1, 0, text), "-");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("profile");
	TCase *t = tcase_create("profile");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, same_things_have_one_id);
	tcase_add_test(t, equal_samples_add_up);
	tcase_add_test(t, values_saturate);
	tcase_add_test(t, wrong_ids_are_refused);
	tcase_add_test(t, strings_are_utf8);
	tcase_add_test(t, heaviest_first_then_first_come);
	tcase_add_test(t, default_type);
	tcase_add_test(t, frames_have_names);
	tcase_add_test(t, clean_names);
	tcase_add_test(t, units);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
