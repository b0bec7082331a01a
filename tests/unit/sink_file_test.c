/* sink_file_test.c - directories of .pb.gz files (sink_file.c). */
#include "sink_check.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

static char dir[64];

static void setup_dir(void)
{
	snprintf(dir, sizeof(dir), "/tmp/wick-file-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void remove_dir(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	ck_assert_int_eq(system(command), 0);
}

/* The number of files, and the name of one. */
static int files(char name[static 256])
{
	DIR *d = opendir(dir);
	struct dirent *de;
	int n = 0;

	while ((de = readdir(d)))
		if (strcmp(de->d_name, ".") && strcmp(de->d_name, "..")) {
			snprintf(name, 256, "%s", de->d_name);
			n++;
		}
	closedir(d);
	return n;
}

static struct sink_verdict store(const char *options, struct item *it)
{
	char url[128];
	struct sink_verdict v;
	struct sink *s;

	snprintf(url, sizeof(url), "file://%s%s", dir, options);
	s = make_sink(url);
	sink_store(s, it, &v);
	sink_free(s);
	return v;
}

START_TEST(names_files_by_time_and_labels)
{
	static const char *const labels[] = { "a=\u00e9/x", "service_name=web", NULL };
	struct item *it = make_item("process_cpu", labels);
	char name[256];
	struct stat st;

	setup_dir();
	ck_assert_int_eq(store("", it).fate, SINK_STORED);
	ck_assert_int_eq(store("", it).fate, SINK_STORED);	/* again: the same file */
	ck_assert_int_eq(files(name), 1);
	ck_assert_msg(!strncmp(name, "20261201T044000.123456789Z,service_name=web,a=___x,process_cpu-",
			       60), "%s", name);
	ck_assert_str_eq(name + strlen(name) - 6, ".pb.gz");
	ck_assert_int_eq(fstatat(open(dir, O_RDONLY), name, &st, 0), 0);
	ck_assert_uint_eq((size_t)st.st_size, it->len);
	item_unref(it);
	remove_dir();
}
END_TEST

START_TEST(cuts_names)
{
	char label[1500] = "service_name=", name[256];
	const char *labels[] = { label, NULL };
	struct item *it;

	setup_dir();
	memset(label + strlen(label), 'x', sizeof(label) - strlen(label) - 1);
	it = make_item("process_cpu", labels);
	ck_assert_int_eq(store("", it).fate, SINK_STORED);
	ck_assert_int_eq(files(name), 1);
	item_unref(it);
	remove_dir();
}
END_TEST

static void touch(const char *name, size_t size)
{
	char path[400];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
	close(fd);
}

START_TEST(removes_the_oldest)
{
	struct item *it = make_item("process_cpu", NULL);
	char name[256];

	setup_dir();
	touch("20200101T000000.000000000Z,a.pb.gz", 5000);
	touch("20200102T000000.000000000Z,a.pb.gz", 100);
	touch("notes.pb.gz", 100000);
	touch("20200103T000000.000000000Z,a.txt", 100000);
	ck_assert_int_eq(store("?max-bytes=4K", it).fate, SINK_STORED);
	ck_assert_int_eq(files(name), 4);	/* the largest and oldest is gone */
	ck_assert_int_eq(store("?max-age=30d", it).fate, SINK_STORED);
	ck_assert_int_eq(files(name), 3);
	item_unref(it);
	remove_dir();
}
END_TEST

START_TEST(says_why_it_cant)
{
	struct item *it = make_item("process_cpu", NULL);
	struct sink *s = make_sink("file:///dev/null/x");
	struct sink_verdict v;

	sink_store(s, it, &v);
	ck_assert_int_eq(v.fate, SINK_LATER);
	ck_assert_int_eq(v.err, -ENOTDIR);
	ck_assert(strstr(v.why.msg, "can't write to /dev/null/x"));
	sink_free(s);
	item_unref(it);
}
END_TEST

RUN_ALL("sink_file", names_files_by_time_and_labels, cuts_names, removes_the_oldest, says_why_it_cant)
