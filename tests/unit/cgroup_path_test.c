/* cgroup_path_test.c - containers, pods and units in paths as each runtime and driver writes them,
 * and in paths that only look like it. */
#include <check.h>

#include "proc/cgroup_path.h"

#define ID_A "3f2a9c0d1e4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1"
#define ID_B "3f2a9c0d1e4bffff788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1"
#define UID  "b2d8b1a0-5f0e-4b8e-9d57-2f0d1c8e7a11"
#define UID_ "b2d8b1a0_5f0e_4b8e_9d57_2f0d1c8e7a11" /* in a slice's name */
#define HASH "0123456789abcdef0123456789abcdef"	    /* of a static pod */

START_TEST(ids_in_paths)
{
	static const struct {
		const char *path, *want;
	} cases[] = {
		{ "/docker/" ID_A, ID_A },
		{ "/system.slice/docker-" ID_A ".scope", ID_A },
		{ "/system.slice/docker-" ID_A ".scope/init.scope", ID_A },
		{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice/"
		  "cri-containerd-" ID_A ".scope",
		  ID_A },
		{ "/kubepods/burstable/pod5d-7/" ID_A, ID_A },
		{ "/kubepods.slice/x.slice/crio-" ID_A ".scope", ID_A },
		{ "/kubepods.slice/x.slice/crio-" ID_A, ID_A },
		{ "/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:" ID_A,
		  ID_A },
		{ "/machine.slice/libpod-" ID_A ".scope/container", ID_A },
		{ "/libpod_parent/libpod-" ID_A, ID_A },
		{ "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID_A ".scope",
		  ID_A },
		/* kind: a node that is a container, with containers in it */
		{ "/docker/" ID_B "/kubelet/kubepods/pod1/" ID_A, ID_A },
		{ "/docker/" ID_B "/system.slice/kubelet.service", ID_B },
		{ "/ecs/0123456789abcdef0123456789abcdef/"
		  "0123456789abcdef0123456789abcdef-2531612879",
		  "0123456789abcdef0123456789abcdef-2531612879" },
		{ "/lxc.payload.web-1", "web-1" },
		{ "/lxc.payload.web/system.slice/x.service", "web" },
		{ "/lxc/web", "web" },
		{ "/lxc.payload/web/x", "web" },
		{ "/machine.slice/machine-deb\\x2dian.scope/payload", "deb-ian" },
		{ "/system.slice/web.service/libpod-payload-" ID_A, ID_A },
		{ "/machine.slice/systemd-nspawn@my-box.service/payload", "my-box" },
		{ "/default/" ID_A, ID_A },
		{ "/system.slice/nerdctl-" ID_A ".scope", ID_A },
		{ "/ecs/0123456789abcdef0123456789abcdef/" ID_A, ID_A },
		/* kind with the systemd driver */
		{ "/system.slice/docker-" ID_B ".scope/kubelet.slice/kubelet-kubepods.slice/"
		  "kubelet-kubepods-podb2d8b1a0_5f0e_4b8e_9d57_2f0d1c8e7a11.slice/"
		  "cri-containerd-" ID_A ".scope",
		  ID_A },
		{ ID_A, ID_A },
		{ "/x/" ID_A "/", ID_A },
	};
	static const char *const none[] = {
		"",
		"/",
		"//",
		"/system.slice/nginx.service",
		"/user.slice",
		"/docker",
		"/libpod_parent/libpod-conmon-" ID_A ".scope",
		"/machine.slice/crio-conmon-" ID_A ".scope",
		"/system.slice/" ID_A ".service", /* podman's health check timer */
		"/docker/" ID_A "0",
		"/x" ID_A,
		"/docker/3F2A"
		"9c0d1e4b5a69788796a5b4c3d2e1f00f1e2d3c4b"
		"5a69788796a5b4c3d2e1",
		"/lxc.payload.",
		"/lxc.monitor.web",
		"/lxc.payload.a b",
		"/machine.slice/machine-.scope",
		"/machine.slice/machine-a\\x00b.scope",
		"/machine.slice/machine-a\\x2fb.scope",
		"/lxc.payload.\x1b[31m",
		"/ecs/x/0123456789abcdef0123456789abcdef-",
		"/ecs/x/0123456789abcdef0123456789abcdef-1x",
	};
	char id[CGROUP_CONTAINER_MAX], path[1024];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		ck_assert_msg(!cgroup_container_id(cases[i].path, id), "%s", cases[i].path);
		ck_assert_str_eq(id, cases[i].want);
	}
	strcpy(id, "untouched");
	for (i = 0; i < ARRAY_SIZE(none); i++)
		ck_assert_msg(cgroup_container_id(none[i], id) == -ENOENT, "%s: %s", none[i], id);
	snprintf(path, sizeof(path), "/lxc.payload.%0300d", 1); /* longer than a file name can be */
	ck_assert_int_eq(cgroup_container_id(path, id), -ENOENT);
	ck_assert_str_eq(id, "untouched");
}
END_TEST

START_TEST(pods_in_paths)
{
	static const struct {
		const char *path, *want;
	} cases[] = {
		{ "/kubepods/burstable/pod" UID "/" ID_A, UID },
		{ "/kubepods/pod" UID, UID },
		{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_
		  ".slice/cri-containerd-" ID_A ".scope",
		  UID },
		{ "/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" ID_A ".scope/container", UID },
		{ "/system.slice/containerd.service/kubepods-besteffort-pod" UID_
		  ".slice:cri-containerd:" ID_A,
		  UID },
		{ "/kubepods/besteffort/pod" HASH "/" ID_A, HASH },
		{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" HASH ".slice",
		  HASH },
		{ "/docker/" ID_B "/kubelet/kubepods/pod" UID "/" ID_A, UID },
		/* a cluster in a pod: the inner one */
		{ "/kubepods/pod" HASH "/" ID_B "/kubelet/kubepods/pod" UID "/" ID_A, UID },
		{ "/../../kubepods/pod" UID "/" ID_A "/", UID },
	};
	static const char *const none[] = {
		"",
		"/",
		"/kubepods/burstable",
		"/docker/" ID_A,
		"/libpod_parent/libpod-" ID_A,
		"/kubepods/pod",
		"/kubepods/podB2D8B1A0-5f0e-4b8e-9d57-2f0d1c8e7a11",
		"/kubepods/pod" UID "0",
		"/kubepods/pod" UID "x",
		"/kubepods/pod" HASH "0",
		"/kubepods/pod" HASH "x",
		"/kubepods/xpod" UID,
		"/kubepods/pod" UID_ ".slicex",
		"/kubepods/pod b2d8b1a0-5f0e-4b8e-9d57-2f0d1c8e7a11",
		"/kubepods/podb2d8b1a0-5f0e-4b8e-9d57-2f0d1c8e7a1",
	};
	char uid[CGROUP_POD_UID_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		ck_assert_msg(!cgroup_pod_uid(cases[i].path, uid), "%s", cases[i].path);
		ck_assert_str_eq(uid, cases[i].want);
	}
	strcpy(uid, "untouched");
	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		ck_assert_msg(cgroup_pod_uid(none[i], uid) == -ENOENT, "%s: %s", none[i], uid);
	ck_assert_str_eq(uid, "untouched");
}
END_TEST

START_TEST(units_in_paths)
{
	static const struct {
		const char *path, *unit, *user_unit;
	} cases[] = {
		{ "/system.slice/nginx.service", "nginx.service", "" },
		{ "/system.slice/nginx.service/worker/1", "nginx.service", "" },
		/* what a service makes below itself isn't another service */
		{ "/system.slice/docker.service/nginx.service", "docker.service", "" },
		{ "/system.slice/system-getty.slice/getty@tty1.service", "getty@tty1.service", "" },
		{ "/system.slice/dev-disk\\x2d1.service", "dev-disk\\x2d1.service", "" },
		{ "/init.scope", "init.scope", "" },
		{ "/user.slice/user-1000.slice/session-3.scope", "session-3.scope", "" },
		{ "/user.slice/user-1000.slice/user@1000.service/app.slice/app-x.scope",
		  "user@1000.service", "app-x.scope" },
		{ "/user.slice/user-1000.slice/user@1000.service/app.slice/a.service/b.service",
		  "user@1000.service", "a.service" },
		{ "/user.slice/user-1000.slice/user@1000.service/session.slice",
		  "user@1000.service", "session.slice" },
		{ "/user.slice/user-1000.slice/user@1000.service", "user@1000.service", "" },
		{ "/user.slice/user-1000.slice", "user-1000.slice", "" },
		{ "/system.slice", "system.slice", "" },
		{ "/system.slice/what", "system.slice", "" },
		/* a node that is a container; a service in a machine */
		{ "/docker/" ID_B "/system.slice/kubelet.service", "kubelet.service", "" },
		{ "/machine.slice/machine-deb.scope/system.slice/cron.service", "cron.service",
		  "" },
	};
	static const char *const none[] = {
		"",
		"/",
		"/docker",
		"/a/nginx.service", /* not below slices: systemd didn't make it */
		"/system.slice/docker-" ID_A ".scope",
		"/machine.slice/machine-deb.scope",
		"/docker/" ID_A,
		"/.service",
		"/a b.service",
		"/a\nb.service",
		"/a\xffz.service",
	};
	char unit[CGROUP_UNIT_MAX], user_unit[CGROUP_UNIT_MAX], path[1024];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		ck_assert_msg(!cgroup_unit(cases[i].path, unit, user_unit), "%s", cases[i].path);
		ck_assert_msg(!strcmp(unit, cases[i].unit), "%s: %s", cases[i].path, unit);
		ck_assert_msg(!strcmp(user_unit, cases[i].user_unit), "%s: %s", cases[i].path,
			      user_unit);
	}
	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		ck_assert_msg(cgroup_unit(none[i], unit, user_unit) == -ENOENT, "%s: %s", none[i],
			      unit);
	snprintf(path, sizeof(path), "/%0300d.service", 1);
	ck_assert_int_eq(cgroup_unit(path, unit, user_unit), -ENOENT);
	ck_assert_str_eq(user_unit, "");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cgroup_path");
	TCase *t = tcase_create("cgroup_path");
	SRunner *r;
	int failed;

	tcase_add_test(t, ids_in_paths);
	tcase_add_test(t, pods_in_paths);
	tcase_add_test(t, units_in_paths);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
