/* labels_test.c - series labels: sorted, unique, fit for servers. */
#include <check.h>
#include "base/labels.h"

static void is(const struct labels *l, const char *text)
{
	struct buf b = BUF_INIT(1 << 20);

	labels_text(l, &b);
	ck_assert_str_eq(b.data, text);
	buf_free(&b);
}

START_TEST(sorted_and_unique)
{
	struct labels l = LABELS_INIT;

	ck_assert_int_eq(labels_set(&l, "pod", "a"), 0);
	ck_assert_int_eq(labels_set(&l, "container", "b"), 0);
	ck_assert_int_eq(labels_set(&l, "pod", "c"), 0);
	ck_assert_int_eq(labels_default(&l, "pod", "d"), 0);
	ck_assert_int_eq(labels_default(&l, "unit", "e"), 0);
	is(&l, "{container=\"b\",pod=\"c\",unit=\"e\"}");
	ck_assert_int_eq(labels_set(&l, "pod", ""), 0);
	labels_remove(&l, "unit");
	is(&l, "{container=\"b\"}");
	ck_assert_ptr_null(labels_get(&l, "pod"));
	labels_free(&l);
	is(&l, "{}");
}
END_TEST

START_TEST(names)
{
	static const char *const cases[][2] = {
		{ "app.kubernetes.io/name", "app_kubernetes_io_name" }, { "9lives", "_9lives" },
		{ "__name__", "_name__" }, { "..a", "_a" }, { "_", "_" }, { "\xc3\xa4", "_" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct labels l = LABELS_INIT;

		ck_assert_int_eq(labels_set(&l, cases[i][0], "v"), 0);
		ck_assert_str_eq(l.v[0].name, cases[i][1]);
		ck_assert_str_eq(labels_get(&l, cases[i][0]), "v");
		labels_free(&l);
	}
	ck_assert_int_eq(labels_set(&(struct labels)LABELS_INIT, "", "v"), -EINVAL);
}
END_TEST

START_TEST(values)
{
	struct labels l = LABELS_INIT;
	char big[LABEL_VALUE_MAX + 10];

	ck_assert_int_eq(labels_set(&l, "a", "x\ny\xff\"\\"), 0);
	is(&l, "{a=\"x y\xef\xbf\xbd\\\"\\\\\"}");
	memset(big, 'x', sizeof(big));
	memcpy(big + LABEL_VALUE_MAX - 2, "\xe2\x82\xac", 4);
	ck_assert_int_eq(labels_set(&l, "a", big), 0);
	ck_assert_uint_eq(strlen(labels_get(&l, "a")), LABEL_VALUE_MAX - 2);
	labels_free(&l);
}
END_TEST

START_TEST(bounded)
{
	struct labels l = LABELS_INIT, copy;
	char name[8];

	for (int i = 0; i < LABELS_MAX; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		ck_assert_int_eq(labels_set(&l, name, "v"), 0);
	}
	ck_assert_int_eq(labels_set(&l, "more", "v"), -E2BIG);
	ck_assert_int_eq(labels_copy(&l, &copy), 0);
	ck_assert_int_eq(labels_compare(&l, &copy), 0);
	labels_remove(&copy, "n7");
	ck_assert_int_ne(labels_compare(&l, &copy), 0);
	labels_free(&copy);
	labels_free(&l);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("labels");
	TCase *t = tcase_create("labels");
	SRunner *runner;
	int failed;

	tcase_add_test(t, sorted_and_unique);
	tcase_add_test(t, names);
	tcase_add_test(t, values);
	tcase_add_test(t, bounded);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
