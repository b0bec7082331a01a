/* rules_test.c - which rule wins, what fits, and what is left open while something is unknown. */
#include <check.h>

#include "workload/rules.h"

static const struct rule_subject web = {
	.container = "web",
	.container_id = "3f2a",
	.pod = "web-7d9-x",
	.namespace = "shop",
	.exe = "/usr/sbin/nginx",
	.comm = "nginx",
	.uid = "101",
};
static const struct rule_subject cron = {
	.unit = "cron.service",
	.exe = "/usr/sbin/cron",
	.comm = "cron",
	.uid = "0",
};

static enum verdict decide(const struct workload_rule *include, const struct workload_rule *exclude,
			   bool opt_in, struct rule_subject s)
{
	const struct workload_rules r = { include, exclude, include ? 1 : 0, exclude ? 1 : 0,
					  opt_in };

	return rules_decide(&r, &s);
}

START_TEST(patterns)
{
	static const struct {
		struct workload_rule rule;
		bool web, cron;
	} cases[] = {
		{ { .container = "web" }, true, false },
		{ { .container = "w?b" }, true, false },
		{ { .container = "3f*" }, true, false }, /* by id */
		{ { .container = "we" }, false, false },
		{ { .container = "*" }, true, false }, /* not what isn't there */
		{ { .container = "" }, false, true },  /* only what isn't there */
		{ { .pod = "web-*" }, true, false },
		{ { .namespace = "[st]hop" }, true, false },
		{ { .unit = "cron.*" }, false, true },
		{ { .unit = "" }, true, false },
		{ { .exe = "nginx" }, true, false },
		{ { .exe = "/usr/sbin/*" }, true, true },
		{ { .exe = "/nginx" }, false, false },
		{ { .exe = "sbin" }, false, false },
		{ { .comm = "c*" }, false, true },
		{ { .uid = "0" }, false, true },
		{ { .uid = "10?" }, true, false },
		{ { .container = "web", .uid = "101" }, true, false },
		{ { .container = "web", .uid = "0" }, false, false },
		{ { 0 }, true, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		ck_assert_int_eq(decide(&cases[i].rule, NULL, false, web),
				 cases[i].web ? VERDICT_IN : VERDICT_OUT);
		ck_assert_int_eq(decide(&cases[i].rule, NULL, false, cron),
				 cases[i].cron ? VERDICT_IN : VERDICT_OUT);
		ck_assert_int_eq(decide(NULL, &cases[i].rule, false, web),
				 cases[i].web ? VERDICT_OUT : VERDICT_IN);
	}
}
END_TEST

START_TEST(user_units)
{
	struct rule_subject s = { .unit = "user@1000.service", .user_unit = "app.service" };
	const struct workload_rule app = { .unit = "app.*" }, user = { .unit = "user@*" };

	ck_assert_int_eq(decide(&app, NULL, false, s), VERDICT_IN);
	ck_assert_int_eq(decide(&user, NULL, false, s), VERDICT_IN);
}
END_TEST

/* The table of the README: what a pod asks for, by mode and rules. */
START_TEST(precedence)
{
	const struct workload_rule mine = { .container = "web" }, other = { .container = "db" };
	static const struct {
		int include, exclude; /* 1: fits, 0: none, -1: another */
		bool opt_in;
		int asks;
		bool in;
	} cases[] = {
		{ 0, 0, false, 0, true },   { 0, 0, false, -1, false }, { 0, 0, true, 0, false },
		{ 0, 0, true, 1, true },    { 0, 0, true, -1, false },	{ 1, 0, false, 0, true },
		{ -1, 0, false, 0, false }, { -1, 0, false, 1, true },	{ 1, 0, false, -1, false },
		{ 1, 0, true, 0, true },    { 1, 1, false, 1, false }, /* exclude wins over all */
		{ 0, 1, true, 1, false },   { 0, -1, false, 0, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct workload_rule *rules[] = { &other, NULL, &mine };
		struct rule_subject s = web;

		s.asks = cases[i].asks;
		ck_assert_msg(decide(rules[cases[i].include + 1], rules[cases[i].exclude + 1],
				     cases[i].opt_in,
				     s) == (cases[i].in ? VERDICT_IN : VERDICT_OUT),
			      "case %zu", i);
	}
}
END_TEST

START_TEST(unknown_fields)
{
	const struct workload_rule exe = { .exe = "nginx" }, pod = { .pod = "web-*" },
				   container = { .container = "web" },
				   both = { .container = "db", .exe = "nginx" };
	struct rule_subject s = web;

	s.unknown = RULE_PROCESS;
	ck_assert_int_eq(decide(NULL, &exe, false, s), VERDICT_DEPENDS);
	ck_assert_int_eq(decide(&exe, NULL, false, s), VERDICT_DEPENDS);
	ck_assert_int_eq(decide(&both, NULL, false, s), VERDICT_OUT); /* whatever its exe is */
	ck_assert_int_eq(decide(NULL, &both, false, s), VERDICT_IN);
	ck_assert_int_eq(decide(NULL, &container, false, s), VERDICT_OUT);
	ck_assert_int_eq(decide(NULL, NULL, false, s), VERDICT_IN);

	s.unknown = RULE_POD; /* it may turn out to want no profile */
	ck_assert_int_eq(decide(NULL, NULL, false, s), VERDICT_DEPENDS);
	ck_assert_int_eq(decide(NULL, NULL, true, s), VERDICT_DEPENDS);
	ck_assert_int_eq(decide(&pod, NULL, false, s), VERDICT_DEPENDS);
	ck_assert_int_eq(decide(NULL, &container, false, s), VERDICT_OUT);

	s.unknown = RULE_CONTAINER;
	ck_assert_int_eq(decide(&container, NULL, false, s), VERDICT_DEPENDS);
	ck_assert_int_eq(decide(&pod, NULL, false, s), VERDICT_IN);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("rules");
	TCase *t = tcase_create("rules");
	SRunner *r;
	int failed;

	tcase_add_test(t, patterns);
	tcase_add_test(t, user_units);
	tcase_add_test(t, precedence);
	tcase_add_test(t, unknown_fields);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
