/* engine_test.c - names in the files of Podman and Docker, as they are, as they change, and as they
 * are not. */
#include "machine.h"

#include "workload/engine.h"

#define ID_A   "3f2a9c0d1e4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1"
#define ID_B   "4f2a9c0d1e4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1"
#define PODMAN "/var/lib/containers/storage/overlay-containers/containers.json"
#define OTHER  "/run/containers/storage/overlay-containers/volatile-containers.json"
#define DOCKER "/var/lib/docker/containers/" ID_A "/config.v2.json"

static struct engine *engine;
static char name[ENGINE_NAME_MAX];

static void setup(void)
{
	machine_setup();
	ck_assert_int_eq(engine_new(root, &engine), 0);
}

static void teardown(void)
{
	engine_free(engine);
	machine_teardown();
}

START_TEST(podman)
{
	ck_assert_int_eq(engine_name(engine, ID_A, name), -ENOENT);
	make_file(PODMAN, "[{\"id\":\"" ID_B "\",\"names\":[\"db\",\"x\"]},{\"id\":\"" ID_A
			  "\",\"names\":[\"web-1.a_b\"]}]");
	usleep(ENGINE_READ_NS / 1000 + 1000);
	ck_assert_int_eq(engine_name(engine, ID_A, name), 0);
	ck_assert_str_eq(name, "web-1.a_b");
	ck_assert_int_eq(engine_name(engine, ID_B, name), 0);
	ck_assert_str_eq(name, "db");
	ck_assert_int_eq(engine_name(engine, "3f2a9c0d1e4b", name), -ENOENT);
	ck_assert_int_eq(engine_name(engine, "../../../../etc/passwd", name), -ENOENT);
}
END_TEST

START_TEST(changes)
{
	make_file(PODMAN, "[{\"id\":\"" ID_A "\",\"names\":[\"one\"]}]");
	ck_assert_int_eq(engine_name(engine, ID_A, name), 0);
	make_file(PODMAN, "[{\"id\":\"" ID_B "\",\"names\":[\"another\"]}]");
	ck_assert_int_eq(engine_name(engine, ID_B, name), -ENOENT); /* too soon */
	usleep(ENGINE_READ_NS / 1000 + 1000);
	ck_assert_int_eq(engine_name(engine, ID_B, name), 0);
	ck_assert_str_eq(name, "another");
	ck_assert_int_eq(engine_name(engine, ID_A, name), -ENOENT);
	make_file(OTHER, "[{\"id\":\"" ID_A "\",\"names\":[\"volatile\"]}]");
	usleep(ENGINE_READ_NS / 1000 + 1000);
	ck_assert_int_eq(engine_name(engine, ID_A, name), 0);
	ck_assert_str_eq(name, "volatile");
}
END_TEST

START_TEST(docker)
{
	make_file(DOCKER, "{\"ID\":\"" ID_A "\",\"Name\":\"/web\",\"State\":{}}");
	ck_assert_int_eq(engine_name(engine, ID_A, name), 0);
	ck_assert_str_eq(name, "web");
	ck_assert_int_eq(engine_name(engine, ID_B, name), -ENOENT);
	make_file(DOCKER, "{\"ID\":\"" ID_B "\",\"Name\":\"/web\"}");
	ck_assert_int_eq(engine_name(engine, ID_A, name), -ENOENT);
}
END_TEST

START_TEST(odd_files)
{
	static const char *const bad[] = {
		"",
		"x",
		"{",
		"[1,null,{},[]]",
		"{\"ID\":\"" ID_A "\"}",
		"{\"ID\":\"" ID_A "\",\"Name\":3}",
		"{\"ID\":\"" ID_A "\",\"Name\":\"/\"}",
		"{\"ID\":\"" ID_A "\",\"Name\":\"/a b\"}",
		"[{\"id\":\"" ID_A "\",\"names\":[]}]",
		"[{\"id\":\"" ID_A "\",\"names\":\"x\"}]",
		"[{\"id\":\"" ID_A "\",\"names\":[\"a\\u0000b\"]}]",
		"[{\"id\":\"" ID_A "\",\"names\":[\"../x\"]}]",
		"[{\"id\":7,\"names\":[\"x\"]}]",
	};
	char from[PATH_MAX], to[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		engine_free(engine);
		ck_assert_int_eq(engine_new(root, &engine), 0);
		make_file(PODMAN, bad[i]);
		make_file(DOCKER, bad[i]);
		ck_assert_msg(engine_name(engine, ID_A, name) == -ENOENT, "%s: %s", bad[i], name);
	}
	/* a link isn't followed, a FIFO doesn't block */
	make_file("/outside", "[{\"id\":\"" ID_A "\",\"names\":[\"x\"]}]");
	snprintf(from, sizeof(from), "%s/outside", root);
	snprintf(to, sizeof(to), "%s" PODMAN, root);
	ck_assert(!unlink(to) && !symlink(from, to));
	snprintf(to, sizeof(to), "%s" DOCKER, root);
	ck_assert(!unlink(to) && !mkfifo(to, 0600));
	usleep(ENGINE_READ_NS / 1000 + 1000);
	ck_assert_int_eq(engine_name(engine, ID_A, name), -ENOENT);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("engine");
	TCase *t = tcase_create("engine");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, podman);
	tcase_add_test(t, changes);
	tcase_add_test(t, docker);
	tcase_add_test(t, odd_files);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
