/* Tests of symbol/answers.h. */
#include <check.h>

#include "symbol/answers.h"

START_TEST(names_once_a_function)
{
	struct answers a = ANSWERS_INIT;
	char text[] = "_ZN4wick4test7mangledILi3EEEii";
	struct symbol s = { text, 0x1000, 16 }, nested = { "inner", 0x1000, 8 };
	const struct answer_name *n, *again, *other;

	ck_assert_int_eq(answers_name(&a, &s, DEMANGLE_SIMPLE, &n), 0);
	ck_assert_str_eq(n->text, "wick::test::mangled");
	ck_assert_str_eq(n->system_name, text);
	memset(text, 'x', 5);		/* its symbol table is gone */
	ck_assert_int_eq(answers_name(&a, &s, DEMANGLE_SIMPLE, &again), 0);
	ck_assert_ptr_eq(n, again);
	ck_assert_str_eq(n->system_name, "_ZN4wick4test7mangledILi3EEEii");
	ck_assert_int_eq(answers_name(&a, &nested, DEMANGLE_SIMPLE, &other), 0);
	ck_assert_str_eq(other->text, "inner");
	ck_assert_ptr_eq(other->text, other->system_name);
	answers_free(&a);
}
END_TEST

START_TEST(stubs)
{
	struct answers a = ANSWERS_INIT;
	struct symbol s = { "_ZN1a1bEv@plt", 0x1000, 16 }, plain = { "read@plt", 0x1010, 16 };
	const struct answer_name *n;

	ck_assert_int_eq(answers_name(&a, &s, DEMANGLE_SIMPLE, &n), 0);
	ck_assert_str_eq(n->text, "a::b@plt");
	ck_assert_int_eq(answers_name(&a, &plain, DEMANGLE_SIMPLE, &n), 0);
	ck_assert_str_eq(n->text, "read@plt");
	answers_free(&a);
}
END_TEST

START_TEST(found_again)
{
	struct answers a = ANSWERS_INIT;
	struct answer x = { .address = 7, .function = 5, .module = 3 };
	const struct answer *got;
	size_t empty = answers_bytes(&a);

	ck_assert_ptr_null(answers_find(&a, 1));
	for (uint64_t key = 0; key < 1000; key++) {
		x.address = key + 1;
		ck_assert_int_eq(answers_add(&a, key, &x, &got), 0);
		ck_assert_uint_eq(got->address, key + 1);
	}
	got = answers_find(&a, 500);
	ck_assert_ptr_nonnull(got);
	ck_assert_uint_eq(got->address, 501);
	ck_assert_uint_eq(got->module, 3);
	ck_assert_uint_gt(answers_bytes(&a), empty + 1000 * sizeof(x));
	answers_free(&a);
	ck_assert_uint_eq(answers_bytes(&a), empty);
	ck_assert_ptr_null(answers_find(&a, 500));
	ck_assert_int_eq(answers_add(&a, 1, &x, &got), 0);
	answers_free(&a);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("answers");
	TCase *t = tcase_create("answers");
	SRunner *runner;
	int failed;

	tcase_add_test(t, names_once_a_function);
	tcase_add_test(t, stubs);
	tcase_add_test(t, found_again);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
