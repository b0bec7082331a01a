/* connect_error_test.c - the reason in a refusal (connect_error.h). */
#include <check.h>

#include "net/connect_error.h"

static struct connect_error ce;

/* Parses a copy of exactly n bytes, so that a sanitizer sees a read behind them. */
static bool parse(const char *s, size_t n)
{
	cleanup(freep_cleanup) char *exact = malloc(n ? n : 1);

	memcpy(exact, s, n);
	ce = (struct connect_error){ "-", "-" };
	return connect_error_parse(exact, n, &ce);
}

static void expect(const char *json, const char *code, const char *message)
{
	ck_assert(parse(json, strlen(json)));
	ck_assert_str_eq(ce.code, code);
	ck_assert_str_eq(ce.message, message);
}

START_TEST(reads_both_texts_wherever_they_stand)
{
	expect("{\"code\":\"unknown\",\"message\":\"no\"}", "unknown", "no");
	expect(" {\n\"message\" : \"no\" ,\t\"code\":\"unknown\"} trailing", "unknown", "no");
	expect("{\"message\":\"only\"}", "", "only");
	expect("{\"code\":400,\"error\":\"bad request: missing\"}", "", "bad request: missing");
	expect("{\"details\":[{\"message\":\"deep\",\"x\":[1,{}]},\"}\"],\"n\":-1.5e3,\"t\":true,"
	       "\"z\":null,\"code\":\"aborted\"}",
	       "aborted", "");
	expect("{\"code\":{\"message\":\"not this\"},\"message\":\"this\"}", "", "this");
	expect("{\"m\\u0065ssage\":\"escaped key\"}", "", "escaped key");
}
END_TEST

START_TEST(unescapes)
{
	expect("{\"message\":\"a\\\"b\\\\c\\/d\\ne\\tf\"}", "", "a\"b\\c/d e f");
	expect("{\"message\":\"\\u00e9 \\u20AC \\ud83d\\ude00\"}", "", "\u00e9 \u20ac \U0001f600");
	expect("{\"message\":\"\\ud83d \\ude00 \\ud83d\\u0041 \\uzzzz\"}", "",
	       "\ufffd \ufffd \ufffdA \ufffdzzzz");
	expect("{\"message\":\"bell \\u0007\\b\\u001b[31m \\u009b \x1b\"}", "", "bell ???[31m ? ?");
	expect("{\"message\":\"\xc3\xa9 \xff \xc0\x80 \xed\xa0\x80 \xf4\x90\x80\x80\"}", "",
	       "\u00e9 \ufffd \ufffd\ufffd \ufffd\ufffd\ufffd \ufffd\ufffd\ufffd\ufffd");
}
END_TEST

START_TEST(cuts_between_characters)
{
	char json[1024] = "{\"message\":\"";
	size_t n;

	for (int i = 0; i < 200; i++)
		strcat(json, "\u20ac");
	strcat(json, "\",\"code\":\"0123456789012345678901234567890123456789\"}");
	ck_assert(parse(json, strlen(json)));
	n = strlen(ce.message);
	ck_assert_uint_eq(n, (sizeof(ce.message) - 1) / 3 * 3);
	ck_assert_uint_eq(strlen(ce.code), sizeof(ce.code) - 1);
}
END_TEST

START_TEST(keeps_what_came_before_a_break)
{
	static const char json[] = "{\"code\":\"unknown\",\"message\":\"whole text\",\"x\":[1,2";

	expect(json, "unknown", "whole text");
	expect("{\"code\":\"unknown\",\"message\":\"brok", "unknown", "brok");
	expect("{\"code\":\"unknown\",\"message\":\"back\\", "unknown", "back");
}
END_TEST

START_TEST(refuses_what_is_no_error)
{
	static const char *const bad[] = {
		"",
		" ",
		"{",
		"{}",
		"[]",
		"null",
		"<html>404</html>",
		"404 page not found",
		"{\"message\":7}",
		"{\"fault\":\"other protocol\"}",
		"{message:\"x\"}",
		"{\"",
		"{\"code",
		"{\"code\"",
		"{\"code\":",
		"{\"x\":]",
		"{\"x\":\"",
		"{\"x\":1,}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		ck_assert_msg(!parse(bad[i], strlen(bad[i])), "%s", bad[i]);
		ck_assert_str_eq(ce.code, "-");
	}
	ck_assert(!connect_error_parse(NULL, 0, &ce));
}
END_TEST

/* Every prefix, and bytes changed at random: nothing but bounds and valid output is expected. */
START_TEST(survives_anything)
{
	static const char json[] =
	    "{\"a\":[{\"b\":\"\\u20ac\\\"\"},[]],\"code\":\"x\\ud83d\\ude00\","
	    "\"message\":\"\xe2\x82\xac\\n\"}";
	char copy[sizeof(json)];
	unsigned int seed = 1;

	for (size_t n = 0; n < sizeof(json); n++)
		parse(json, n);
	for (int i = 0; i < 20000; i++) {
		memcpy(copy, json, sizeof(json));
		for (int k = 0; k < 3; k++)
			copy[(size_t)rand_r(&seed) % sizeof(json)] = (char)rand_r(&seed);
		parse(copy, sizeof(copy));
		ck_assert_uint_lt(strlen(ce.message), sizeof(ce.message));
	}
}
END_TEST

START_TEST(cleans_text)
{
	char s[8];

	clean_text(" \n a\nb\033 \t", 9, s, sizeof(s));
	ck_assert_str_eq(s, "a b?");
	clean_text("", 0, s, sizeof(s));
	ck_assert_str_eq(s, "");
	clean_text("abc", 3, s, 1);
	ck_assert_str_eq(s, "");
	clean_text("123456\u00e9", 8, s, sizeof(s));
	ck_assert_str_eq(s, "123456");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("connect_error");
	TCase *t = tcase_create("all");
	SRunner *r;
	int failed;

	tcase_add_test(t, reads_both_texts_wherever_they_stand);
	tcase_add_test(t, unescapes);
	tcase_add_test(t, cuts_between_characters);
	tcase_add_test(t, keeps_what_came_before_a_break);
	tcase_add_test(t, refuses_what_is_no_error);
	tcase_add_test(t, survives_anything);
	tcase_add_test(t, cleans_text);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
