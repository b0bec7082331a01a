/* cgroup_test.c - hierarchies and containers in made-up trees; and the real file system where there is
 * one. */
#include <check.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <sys/stat.h>

#include "proc/cgroup.h"

#define ID_A "3f2a9c0d1e4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1"
#define ID_B "3f2a9c0d1e4bffff788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1"

static char root[] = "/tmp/cgroup_test.XXXXXX";
static struct cgroups *cg;
static struct cgroup found;
static struct err e;

/* ---- a made-up machine below root ---- */

static void make_dir(const char *path)
{
	char full[PATH_MAX];
	char *s;

	snprintf(full, sizeof(full), "%s%s/", root, path);
	for (s = full + strlen(root) + 1; (s = strchr(s, '/')); s++) {
		*s = '\0';
		ck_assert(!mkdir(full, 0755) || errno == EEXIST);
		*s = '/';
	}
}

static void make_file(const char *path, const char *text)
{
	char full[PATH_MAX];
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", root, path);
	f = fopen(full, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

static void setup(void)
{
	strcpy(root + strlen(root) - 6, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
	make_dir("/proc/self");
	make_file("/proc/cgroups",
		  "#subsys_name\thierarchy\tnum_cgroups\tenabled\n"
		  "cpuset\t3\t1\t1\ncpu\t1\t1\t1\ncpuacct\t1\t1\t1\nblkio\t7\t1\t1\n"
		  "memory\t4\t11\t1\npids\t8\t1\t1\n");
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static void teardown(void)
{
	cgroups_free(cg);
	cg = NULL;
	nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void machine(const char *mountinfo)
{
	make_file("/proc/self/mountinfo", mountinfo);
	cgroups_free(cg);
	cg = NULL;
	ck_assert_int_eq(cgroups_open(root, &cg), 0);
}

static const char v2_only[] =
    "24 30 0:22 / /proc rw - proc proc rw\n"
    "35 24 0:30 / /cg rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
static const char hybrid[] =
    "31 23 0:28 / /cg rw - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /cg/cpu,cpuacct rw shared:1 - cgroup cgroup rw,cpu,cpuacct\n"
    "34 31 0:31 / /cg/cpuset rw - cgroup cgroup rw,cpuset,clone_children\n"
    "35 31 0:32 / /cg/memory rw - cgroup cgroup rw,memory\n"
    "40 31 0:37 / /cg/systemd rw - cgroup cgroup rw,xattr,name=systemd\n"
    "41 31 0:38 / /cg/unified rw - cgroup2 cgroup2 rw\n";

/* ---- hierarchies ---- */

START_TEST(v2_identifies)
{
	machine(v2_only);
	ck_assert_int_eq(cgroups_mode(cg), CGROUP_MODE_V2);
	ck_assert_int_eq(cgroups_default(cg)->version, 2);
	ck_assert_int_eq(cgroups_default(cg)->subsys, CGROUP_V2);
	ck_assert_str_eq(cgroups_default(cg)->mount, "/cg");
}
END_TEST

START_TEST(hybrid_takes_memory)
{
	make_dir("/cg/unified");
	make_file("/cg/unified/cgroup.controllers", "hugetlb\n");
	machine(hybrid);
	ck_assert_int_eq(cgroups_mode(cg), CGROUP_MODE_HYBRID);
	ck_assert_str_eq(cgroups_default(cg)->controller, "memory");
	ck_assert_int_eq(cgroups_default(cg)->version, 1);
	ck_assert_int_eq(cgroups_default(cg)->subsys, 4);
}
END_TEST

START_TEST(v2_with_memory_wins)
{
	make_dir("/cg/unified");
	make_file("/cg/unified/cgroup.controllers", "cpu io memory\n");
	machine("1 1 0:1 / /cg/cpuset rw - cgroup c rw,cpuset\n"
		"2 1 0:2 / /cg/unified rw - cgroup2 c rw\n");
	ck_assert_int_eq(cgroups_default(cg)->version, 2);
	make_file("/cg/unified/cgroup.controllers", "cpu memory_x\n");
	machine("1 1 0:1 / /cg/pids rw - cgroup c rw,pids\n"
		"2 1 0:2 / /cg/unified rw - cgroup2 c rw\n");
	ck_assert_str_eq(cgroups_default(cg)->controller, "pids");
}
END_TEST

START_TEST(v1_preferences)
{
	machine("1 1 0:1 / /a rw - cgroup c rw,cpuset\n2 1 0:2 / /b rw - cgroup c rw,pids\n"
		"3 1 0:3 / /c rw - cgroup c rw,cpuacct,cpu\n");
	ck_assert_int_eq(cgroups_mode(cg), CGROUP_MODE_V1);
	ck_assert_str_eq(cgroups_default(cg)->controller, "cpu");
	ck_assert_int_eq(cgroups_default(cg)->subsys, 1);
	machine("1 1 0:1 / /a rw - cgroup c rw,cpuset\n");
	ck_assert_str_eq(cgroups_default(cg)->controller, "cpuset");
}
END_TEST

START_TEST(odd_mounts)
{
	machine("");
	ck_assert_int_eq(cgroups_mode(cg), CGROUP_MODE_NONE);
	ck_assert_ptr_null(cgroups_default(cg));
	machine("1 1 0:1 / /a rw - cgroup c rw,name=systemd\n- - -\ngarbage\n 1 - cgroup2\n"
		"1 1 0:1 / /x rw - cgroup3 c rw,memory\n");
	ck_assert_int_eq(cgroups_mode(cg), CGROUP_MODE_NONE);
	/* the mount of a part, then the whole, with a space in its name */
	machine("1 1 0:1 /docker/a /part rw - cgroup2 c rw\n"
		"2 1 0:1 / /the\\040whole\\134 rw - cgroup2 c rw\n"
		"3 1 0:1 / /again rw - cgroup2 c rw\n");
	ck_assert_str_eq(cgroups_default(cg)->mount, "/the whole\\");
	ck_assert_str_eq(cgroup_mode_name(CGROUP_MODE_HYBRID), "hybrid");
	ck_assert_int_eq(cgroups_open("/nonexistent", &cg), -ENOENT);
}
END_TEST

/* ---- search ---- */

static uint64_t inode_of(const char *path)
{
	char full[PATH_MAX];
	struct stat st;

	snprintf(full, sizeof(full), "%s%s", root, path);
	ck_assert_int_eq(stat(full, &st), 0);
	return st.st_ino;
}

START_TEST(finds_containers)
{
	static const char *const dirs[] = {
		"/cg/system.slice/docker-" ID_A ".scope/inner",
		"/cg/kubepods/pod1/" ID_B,
		"/cg/lxc.payload.web",
		"/cg/machine.slice/machine-my\\x2dbox.scope",
		"/cg/a/by-runc",
		"/cg/libpod_parent/libpod-conmon-" ID_A ".scope",
	};
	static const struct {
		const char *name, *path;
	} cases[] = {
		{ ID_A, "/system.slice/docker-" ID_A ".scope" },
		{ "3f2a9c0d1e4b5a", "/system.slice/docker-" ID_A ".scope" },
		{ "3f2a9c0d1e4bff", "/kubepods/pod1/" ID_B },
		{ "web", "/lxc.payload.web" },
		{ "my-box", "/machine.slice/machine-my\\x2dbox.scope" },
		{ "by-runc", "/a/by-runc" },
		{ "lxc.payload.web", "/lxc.payload.web" },
	};
	char full[PATH_MAX + 8];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(dirs); i++)
		make_dir(dirs[i]);
	machine(v2_only);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		ck_assert_msg(!cgroup_find_container(cg, cases[i].name, &found, &e), "%s: %s",
			      cases[i].name, e.msg);
		ck_assert_str_eq(found.path, cases[i].path);
		snprintf(full, sizeof(full), "/cg%s", found.path);
		ck_assert_uint_eq(found.id, inode_of(full));
		ck_assert_ptr_eq(found.hierarchy, cgroups_default(cg));
	}
}
END_TEST

START_TEST(says_why_not)
{
	static const char *const bad[] = { "", ".", "..", "a/b", "/" };
	size_t i;

	make_dir("/cg/system.slice/docker-" ID_A ".scope");
	make_dir("/cg/kubepods/pod1/" ID_B);
	machine(v2_only);
	ck_assert_int_eq(cgroup_find_container(cg, "3f2a9c0d1e4b", &found, &e), -ENOTUNIQ);
	ck_assert_ptr_nonnull(strstr(e.msg, "any of 2"));
	ck_assert_ptr_nonnull(strstr(e.msg, "docker-" ID_A));
	ck_assert_ptr_nonnull(strstr(e.msg, "pod1/" ID_B));
	/* fewer than 12 digits are a name */
	ck_assert_int_eq(cgroup_find_container(cg, "3f2a9c0d1e4", &found, &e), -ENOENT);
	ck_assert_ptr_nonnull(strstr(e.msg, "searched 5 cgroups in 1 hierarchy for"));
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		ck_assert_int_eq(cgroup_find_container(cg, bad[i], &found, &e), -EINVAL);
	machine("");
	ck_assert_int_eq(cgroup_find_container(cg, "web", &found, &e), -ENOENT);
	ck_assert_ptr_nonnull(strstr(e.msg, "no cgroup file system"));
	ck_assert_int_eq(cgroup_resolve(cg, "web", &found, &e), -ENOENT);
	ck_assert_ptr_nonnull(strstr(e.msg, "no cgroup file system"));
}
END_TEST

START_TEST(one_hierarchy_answers)
{
	make_dir("/cg/memory/docker/" ID_A);
	make_dir("/cg/cpuset/docker/" ID_A);
	make_dir("/cg/unified/only-here");
	make_dir("/cg/cpuset/cpuset-only");
	machine(hybrid);
	ck_assert_int_eq(cgroup_find_container(cg, ID_A, &found, &e), 0);
	ck_assert_str_eq(found.hierarchy->controller, "memory");
	ck_assert_int_eq(cgroup_find_container(cg, "only-here", &found, &e), 0);
	ck_assert_int_eq(found.hierarchy->version, 2);
	ck_assert_int_eq(cgroup_find_container(cg, "cpuset-only", &found, &e), 0);
	ck_assert_int_eq(found.hierarchy->subsys, 0);
}
END_TEST

START_TEST(links_and_depths)
{
	char deep[1024] = "/cg", from[PATH_MAX], to[PATH_MAX];
	int i;

	for (i = 0; i < CGROUP_MAX_DEPTH + 4; i++)
		strcat(deep, "/d");
	strcat(deep, "/needle");
	make_dir(deep);
	make_dir("/outside/web");
	snprintf(from, sizeof(from), "%s/outside", root);
	snprintf(to, sizeof(to), "%s/cg/link", root);
	ck_assert_int_eq(symlink(from, to), 0);
	machine(v2_only);
	ck_assert_int_eq(cgroup_find_container(cg, "web", &found, &e), -ENOENT);
	ck_assert_int_eq(cgroup_find_container(cg, "needle", &found, &e), -ENOENT);
	ck_assert_ptr_nonnull(strstr(e.msg, "not all"));
}
END_TEST

START_TEST(path_by_id)
{
	char path[CGROUP_PATH_MAX], small[4];
	const struct cgroup_hierarchy *h;

	make_dir("/cg/a/b");
	make_dir("/cg/c/d");
	machine(v2_only);
	h = cgroups_default(cg);
	ck_assert_int_eq(cgroup_path_by_id(cg, h, inode_of("/cg/c/d"), path, sizeof(path)), 0);
	ck_assert_str_eq(path, "/c/d");
	ck_assert_int_eq(cgroup_path_by_id(cg, h, inode_of("/cg"), path, sizeof(path)), 0);
	ck_assert_str_eq(path, "/");
	ck_assert_int_eq(cgroup_path_by_id(cg, h, 1, path, sizeof(path)), -ENOENT);
	ck_assert_int_eq(cgroup_path_by_id(cg, h, inode_of("/cg/c/d"), small, 4), -ENAMETOOLONG);
}
END_TEST

struct seen {
	uint64_t ids;	/* sum */
	size_t n, stop_at;
	char paths[256];
};

static int see(void *ctx, uint64_t id, const char *path)
{
	struct seen *s = ctx;

	s->ids += id;
	s->n++;
	strcat(strcat(s->paths, path), " ");
	return s->n == s->stop_at ? -ECANCELED : 0;
}

START_TEST(visits_each)
{
	struct seen s = { 0 };
	bool cut = true;

	make_dir("/cg/a/b");
	make_dir("/cg/c");
	machine(v2_only);
	ck_assert_int_eq(cgroup_each(cg, cgroups_default(cg), see, &s, &cut), 0);
	ck_assert_uint_eq(s.n, 4);
	ck_assert(!cut);
	ck_assert_uint_eq(s.ids, inode_of("/cg") + inode_of("/cg/a") + inode_of("/cg/a/b") +
				     inode_of("/cg/c"));
	ck_assert_msg(!strncmp(s.paths, "/ ", 2) && strstr(s.paths, " /a /a/b "), "%s", s.paths);
	for (size_t stop = 1; stop <= 4; stop++) {
		s = (struct seen){ .stop_at = stop };
		ck_assert_int_eq(cgroup_each(cg, cgroups_default(cg), see, &s, NULL), -ECANCELED);
		ck_assert_uint_eq(s.n, stop);
	}
}
END_TEST

START_TEST(only_cgroups_are_resolved)
{
	char long_path[PATH_MAX + 10];

	make_dir("/cg/a"); /* a directory, but of no cgroup file system */
	machine(v2_only);
	ck_assert_int_eq(cgroup_resolve(cg, "a", &found, &e), -ENOTDIR);
	ck_assert_int_eq(cgroup_resolve(cg, "/cg/a", &found, &e), -ENOTDIR);
	ck_assert_int_eq(cgroup_resolve(cg, "b", &found, &e), -ENOENT);
	ck_assert_str_eq(e.msg, "no cgroup 'b'; looked in v2 (/cg)");
	ck_assert_int_eq(cgroup_resolve(cg, "", &found, &e), -ENOENT);
	memset(long_path, 'x', sizeof(long_path));
	long_path[sizeof(long_path) - 1] = '\0';
	ck_assert_int_eq(cgroup_resolve(cg, long_path, &found, &e), -ENAMETOOLONG);
}
END_TEST

/* The machine's own root cgroup, and one below it if we may make one. */
START_TEST(real_file_system)
{
	char path[CGROUP_PATH_MAX], full[PATH_MAX];
	const struct cgroup_hierarchy *h;

	ck_assert_int_eq(cgroups_open("", &cg), 0);
	h = cgroups_default(cg);
	if (!h)
		return;
	ck_assert_int_eq(cgroup_resolve(cg, "/", &found, &e), 0);
	ck_assert_str_eq(found.path, "/");
	ck_assert_ptr_eq(found.hierarchy, h);
	ck_assert_int_eq(cgroup_path_by_id(cg, h, found.id, path, sizeof(path)), 0);
	ck_assert_str_eq(path, "/");
	ck_assert_int_eq(cgroup_path_by_id(cg, h, UINT64_MAX - 5, path, sizeof(path)), -ENOENT);
	ck_assert_int_eq(cgroup_resolve(cg, "/proc", &found, &e), -ENOTDIR);

	snprintf(full, sizeof(full), "%s/wick-test-%d", h->mount, getpid());
	if (mkdir(full, 0755))
		return;
	ck_assert_int_eq(cgroup_resolve(cg, full, &found, &e), 0);
	snprintf(path, sizeof(path), "/wick-test-%d", getpid());
	ck_assert_str_eq(found.path, path);
	ck_assert_int_eq(cgroup_find_container(cg, path + 1, &found, &e), 0);
	ck_assert_str_eq(found.path, path);
	memset(path, 0, sizeof(path));
	ck_assert_int_eq(cgroup_path_by_id(cg, h, found.id, path, sizeof(path)), 0);
	ck_assert_str_eq(found.path, path);
	ck_assert_int_eq(rmdir(full), 0);
	ck_assert_int_eq(cgroup_path_by_id(cg, h, found.id, path, sizeof(path)), -ENOENT);
	ck_assert_int_eq(cgroup_resolve(cg, full, &found, &e), -ENOENT);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cgroup");
	TCase *t = tcase_create("cgroup");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, v2_identifies);
	tcase_add_test(t, hybrid_takes_memory);
	tcase_add_test(t, v2_with_memory_wins);
	tcase_add_test(t, v1_preferences);
	tcase_add_test(t, odd_mounts);
	tcase_add_test(t, visits_each);
	tcase_add_test(t, finds_containers);
	tcase_add_test(t, says_why_not);
	tcase_add_test(t, one_hierarchy_answers);
	tcase_add_test(t, links_and_depths);
	tcase_add_test(t, path_by_id);
	tcase_add_test(t, only_cgroups_are_resolved);
	tcase_add_test(t, real_file_system);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
