/* naming_test.c - labels of pods, containers, units and processes. */
#include <check.h>

#include "workload/naming.h"

static struct labels l;

static void teardown(void)
{
	labels_free(&l);
}

static void expect(const char *text)
{
	struct buf b = BUF_INIT(1 << 20);

	labels_text(&l, &b);
	ck_assert_str_eq(b.data, text);
	buf_free(&b);
	labels_free(&l);
	l = (struct labels)LABELS_INIT;
}

START_TEST(pods)
{
	char name[] = "web-1", ns[] = "shop", owner[] = "web", kind[] = "StatefulSet",
	     service[] = "sales";
	struct pod p = { .name = name, .namespace = ns };

	ck_assert_int_eq(label_pod(&l, &p, NULL), 0);
	expect("{namespace=\"shop\",pod=\"web-1\",service_name=\"web-1\"}");
	ck_assert_int_eq(label_pod(&l, &p, "api"), 0);
	expect("{container=\"api\",namespace=\"shop\",pod=\"web-1\",service_name=\"api\"}");
	p.service = service;
	p.workload = owner;
	p.workload_kind = kind;
	/* what is wished for doesn't replace what a label means */
	ck_assert_int_eq(labels_set(&p.extra, "namespace", "mine"), 0);
	ck_assert_int_eq(labels_set(&p.extra, "tier", "front"), 0);
	ck_assert_int_eq(label_pod(&l, &p, "api"), 0);
	expect("{container=\"api\",namespace=\"shop\",pod=\"web-1\",service_name=\"sales\","
	       "tier=\"front\",workload=\"web\",workload_kind=\"StatefulSet\"}");
	labels_free(&p.extra);
}
END_TEST

START_TEST(too_many)
{
	char name[] = "web-1", ns[] = "shop", key[32];
	struct pod p = { .name = name, .namespace = ns };

	for (int i = 0; i < LABELS_MAX - 1; i++) {
		snprintf(key, sizeof(key), "k%02d", i);
		ck_assert_int_eq(labels_set(&p.extra, key, "x"), 0);
	}
	ck_assert_int_eq(label_pod(&l, &p, "api"), 0);
	ck_assert_str_eq(labels_get(&l, "pod"), "web-1");
	ck_assert_str_eq(labels_get(&l, "k00"), "x");
	ck_assert_uint_le(l.n, LABELS_MAX + 1);
	labels_free(&p.extra);
}
END_TEST

START_TEST(containers)
{
	const char *id = "3f2a9c0d1e4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1";

	ck_assert_int_eq(label_container(&l, id, NULL), 0);
	expect("{container=\"3f2a9c0d1e4b\",service_name=\"3f2a9c0d1e4b\"}");
	ck_assert_int_eq(label_container(&l, id, "web"), 0);
	expect("{container=\"web\",service_name=\"web\"}");
	ck_assert_int_eq(label_container(&l, "an-lxc-container", NULL), 0);
	expect("{container=\"an-lxc-container\",service_name=\"an-lxc-container\"}");
}
END_TEST

START_TEST(units)
{
	ck_assert_int_eq(label_unit(&l, "/system.slice/cron.service"), 0);
	expect("{service_name=\"cron\",unit=\"cron.service\"}");
	ck_assert_int_eq(label_unit(&l, "/user.slice/user-7.slice/session-1.scope"), 0);
	expect("{unit=\"session-1.scope\"}");
	ck_assert_int_eq(label_unit(&l, "/user.slice/user@7.service/app.slice/x.scope"), 0);
	expect("{unit=\"user@7.service\",user_unit=\"x.scope\"}");
	ck_assert_int_eq(label_unit(&l, "/user.slice/user@7.service/app.slice/x.service"), 0);
	expect("{service_name=\"x\",unit=\"user@7.service\",user_unit=\"x.service\"}");
	ck_assert_int_eq(label_unit(&l, "/none"), 0);
	expect("{}");
}
END_TEST

START_TEST(processes)
{
	ck_assert_int_eq(label_process(&l, "/usr/bin/app", false), 0);
	expect("{exe=\"/usr/bin/app\",service_name=\"app\"}");
	ck_assert_int_eq(label_process(&l, "memfd:x", false), 0);
	expect("{exe=\"memfd:x\",service_name=\"memfd:x\"}");
	ck_assert_int_eq(label_process(&l, "/x/", false), 0);
	expect("{exe=\"/x/\",service_name=\"unknown\"}");
	ck_assert_int_eq(label_process(&l, "", false), 0);
	expect("{service_name=\"unknown\"}");
	ck_assert_int_eq(label_process(&l, "", true), 0);
	expect("{service_name=\"kernel\"}");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("naming");
	TCase *t = tcase_create("naming");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, NULL, teardown);
	tcase_add_test(t, pods);
	tcase_add_test(t, too_many);
	tcase_add_test(t, containers);
	tcase_add_test(t, units);
	tcase_add_test(t, processes);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
