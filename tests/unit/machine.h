/* machine.h - a made-up machine in a directory: cgroup file systems, files below /var. */
#ifndef TEST_MACHINE_H
#define TEST_MACHINE_H

#include <check.h>
#include <ftw.h>
#include <limits.h>
#include <sys/stat.h>

#include "base/base.h"

static char root[64];

static void make_dir(const char *path)
{
	char full[PATH_MAX];

	snprintf(full, sizeof(full), "%s%s/", root, path);
	for (char *s = full + strlen(root) + 1; (s = strchr(s, '/')); s++) {
		*s = '\0';
		ck_assert(!mkdir(full, 0755) || errno == EEXIST);
		*s = '/';
	}
}

static maybe_unused void make_file(const char *path, const char *text)
{
	char full[PATH_MAX];
	FILE *f;

	snprintf(full, sizeof(full), "%s", path);
	*strrchr(full, '/') = '\0';
	make_dir(full);
	snprintf(full, sizeof(full), "%s%s", root, path);
	f = fopen(full, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

static maybe_unused uint64_t inode_of(const char *path)
{
	char full[PATH_MAX];
	struct stat st;

	snprintf(full, sizeof(full), "%s%s", root, path);
	ck_assert_int_eq(stat(full, &st), 0);
	return st.st_ino;
}

/* Of this process, ns since boot, as BPF would have it: some time within the clock tick that /proc
 * shows. */
static maybe_unused uint64_t own_start_time(void)
{
	char line[1024];
	const char *s;
	FILE *f = fopen("/proc/self/stat", "r");

	ck_assert_ptr_nonnull(f);
	ck_assert_ptr_nonnull(fgets(line, sizeof(line), f));
	fclose(f);
	s = strrchr(line, ')') + 1;
	for (int field = 3; field < 22; field++)
		s = strchr(s + 1, ' ');
	return strtoull(s, NULL, 10) * (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK)) + 5;
}

static maybe_unused void machine_setup(void)
{
	strcpy(root, "/tmp/wick_machine.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
	make_file("/proc/self/mountinfo",
		  "35 24 0:30 / /cg rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
	make_dir("/cg");
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static maybe_unused void machine_teardown(void)
{
	nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
