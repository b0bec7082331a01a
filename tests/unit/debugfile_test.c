/* Tests of symbol/debugfile.h, in a directory of their own. */
#include "made_elf.h"

#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <zlib.h>

#include "proc/pid.h"
#include "symbol/debugfile.h"

static char dir[64];	/* the test's */
static char at[PATH_MAX], debug_dir[128];

static void setup(void)
{
	snprintf(dir, sizeof(dir), "/tmp/debugfile_test.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(debug_dir, sizeof(debug_dir), "%s/debug", dir);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void teardown(void)
{
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* dir/NAME, its directories made. */
static const char *place(const char *name)
{
	snprintf(at, sizeof(at), "%s/%s", dir, name);
	for (char *p = at + strlen(dir) + 1; (p = strchr(p, '/')); *p++ = '/') {
		*p = '\0';
		ck_assert(!mkdir(at, 0700) || errno == EEXIST);
	}
	return at;
}

/* A debug file: with .symtab, and a build id unless NULL. */
static struct made *debug_file(const char *id, const char *function)
{
	struct made *m = made_new(EM_X86_64);
	size_t text = made_section(m, ".text", SHT_PROGBITS, SHF_EXECINSTR, NULL, 64);

	if (id)
		made_build_id(m, id, strlen(id));
	made_symbols(m, SHT_SYMTAB, (uint16_t)text, m->s[text].sh_addr,
		     (const char *const[]){ function, NULL });
	return m;
}

static uint32_t crc_of(struct made *m)
{
	m->h.e_shnum = (uint16_t)m->nsections;
	return (uint32_t)crc32(0, (const Bytef *)m, sizeof(*m));
}

/* A stripped file with a build id and a link unless NULL. */
static struct made *stripped(const char *id, const char *link, uint32_t crc)
{
	struct made *m = made_new(EM_X86_64);
	char data[NAME_MAX + 16] = "";
	size_t n;

	if (id)
		made_build_id(m, id, strlen(id));
	if (link) {
		n = (strlen(link) + 4) & ~(size_t)3;
		strcpy(data, link);
		memcpy(data + n, &crc, 4);
		made_section(m, ".gnu_debuglink", SHT_PROGBITS, 0, data, n + 4);
	}
	return m;
}

/* Looks for the debug file of m, which takes part as dir/bin/prog, and frees m. */
static int find(struct made *m)
{
	struct elf *e cleanup(elf_cleanup) = made_open(m);
	struct debugfile d = { 0 };
	char path[128];
	int r;

	snprintf(path, sizeof(path), "%s/bin/prog", dir);
	r = debugfile_open(e, path, debug_dir, &d);
	if (!r) {
		ck_assert_ptr_nonnull(elf_section_by_type(d.elf, SHT_SYMTAB));
		debugfile_close(&d);
	}
	elf_free(take(e));
	free(m);
	return r;
}

static void put_debug(struct made *m, const char *name)
{
	made_write(m, place(name));
	free(m);
}

START_TEST(by_build_id)
{
	ck_assert_int_eq(find(stripped("abcd", NULL, 0)), -ENOENT);
	put_debug(debug_file("abcd", "f"), "debug/.build-id/61/626364.debug");
	ck_assert_int_eq(find(stripped("abcd", NULL, 0)), 0);
	ck_assert_int_eq(find(stripped("abce", NULL, 0)), -ENOENT);
	ck_assert_int_eq(find(stripped("a", NULL, 0)), -ENOENT);
	ck_assert_int_eq(find(stripped(NULL, NULL, 0)), -ENOENT);
}
END_TEST

START_TEST(another_build_id)
{
	put_debug(debug_file("abcx", "f"), "debug/.build-id/61/626364.debug");
	ck_assert_int_eq(find(stripped("abcd", NULL, 0)), -ENOENT);
}
END_TEST

/* The link is all that there is to say where; the build id proves it. */
START_TEST(by_link_with_build_id)
{
	static const char *const places[] = { "bin/prog.dbg", "bin/.debug/prog.dbg" };

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		put_debug(debug_file("abcd", "f"), places[i]);
		ck_assert_int_eq(find(stripped("abcd", "prog.dbg", 1)), 0);
		put_debug(debug_file("abcx", "f"), places[i]);
		ck_assert_int_eq(find(stripped("abcd", "prog.dbg", 1)), -ENOENT);
	}
}
END_TEST

START_TEST(by_link_beneath_the_debug_directory)
{
	char name[128];

	snprintf(name, sizeof(name), "debug%s/bin/prog.dbg", dir);
	put_debug(debug_file("abcd", "f"), name);
	ck_assert_int_eq(find(stripped("abcd", "prog.dbg", 1)), 0);
}
END_TEST

/* /usr/lib is where /lib was when the package was made. */
START_TEST(by_link_less_usr)
{
	struct made *m cleanup(freep_cleanup) = stripped("abcd", "x.dbg", 0);
	struct elf *e cleanup(elf_cleanup) = made_open(m);
	struct debugfile d;

	put_debug(debug_file("abcd", "f"), "debug/lib/x.dbg");
	ck_assert_int_eq(debugfile_open(e, "/lib/x", debug_dir, &d), 0);
	debugfile_close(&d);
	ck_assert_int_eq(debugfile_open(e, "/usr/lib/x", debug_dir, &d), 0);
	debugfile_close(&d);
	ck_assert_int_eq(debugfile_open(e, "/usr/x", debug_dir, &d), -ENOENT);
	ck_assert_int_eq(debugfile_open(e, "/x", debug_dir, &d), -ENOENT);
	ck_assert_int_eq(debugfile_open(e, "lib/x", debug_dir, &d), -ENOENT);
	ck_assert_int_eq(debugfile_open(e, NULL, debug_dir, &d), -ENOENT);
}
END_TEST

START_TEST(by_crc)
{
	struct made *m = debug_file(NULL, "f");
	uint32_t crc = crc_of(m);

	put_debug(m, "bin/prog.dbg");
	ck_assert_int_eq(find(stripped(NULL, "prog.dbg", crc)), 0);
	ck_assert_int_eq(find(stripped("abcd", "prog.dbg", crc)), 0);
	ck_assert_int_eq(find(stripped(NULL, "prog.dbg", crc ^ 1)), -ENOENT);
	ck_assert_int_eq(find(stripped("abcd", "prog.dbg", crc ^ 1)), -ENOENT);
}
END_TEST

START_TEST(hostile_links)
{
	static const char *const links[] = { "../prog.dbg", "/etc/passwd", "..", ".", "" };
	struct made *m = debug_file("abcd", "f"), *cut;

	put_debug(m, "prog.dbg");
	for (size_t i = 0; i < ARRAY_SIZE(links); i++)
		ck_assert_int_eq(find(stripped("abcd", links[i], 0)), -ENOENT);
	put_debug(debug_file("abcd", "f"), "bin/prog");
	cut = stripped("abcd", "prog", 0);
	cut->s[cut->nsections - 1].sh_size = 7;	/* the CRC is cut off */
	ck_assert_int_eq(find(cut), -ENOENT);
	ck_assert_int_eq(find(stripped("abcd", "prog", 0)), 0);
}
END_TEST

START_TEST(what_is_no_debug_file)
{
	ck_assert_int_eq(mkfifo(place("bin/prog.dbg"), 0600), 0);
	ck_assert_int_eq(find(stripped("abcd", "prog.dbg", 0)), -ENOENT);
	ck_assert_int_eq(remove(at), 0);
	ck_assert_int_eq(mkdir(at, 0700), 0);
	ck_assert_int_eq(find(stripped("abcd", "prog.dbg", 0)), -ENOENT);
	ck_assert_int_eq(remove(at), 0);
	put_debug(stripped("abcd", NULL, 0), "bin/prog.dbg");	/* no .symtab */
	ck_assert_int_eq(find(stripped("abcd", "prog.dbg", 0)), -ENOENT);
	ck_assert_int_eq(truncate(place("bin/prog.dbg"), 32), 0);
	ck_assert_int_eq(find(stripped("abcd", "prog.dbg", 0)), -ENOENT);
}
END_TEST

START_TEST(another_machine)
{
	struct made *m = debug_file("abcd", "f");

	m->h.e_machine = EM_AARCH64;
	put_debug(m, "bin/prog.dbg");
	ck_assert_int_eq(find(stripped("abcd", "prog.dbg", 0)), -ENOENT);
}
END_TEST

/* A process whose root is dir; its descriptor. 0: not allowed to. */
static pid_t in_container(int *ret_dir)
{
	int ready[2];
	char c;
	pid_t pid;

	ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		c = chroot(dir) || chdir("/") ? 'n' : 'y';
		(void)!write(ready[1], &c, 1);
		pause();
		_exit(0);
	}
	ck_assert_int_eq(read(ready[0], &c, 1), 1);
	close(ready[0]);
	close(ready[1]);
	*ret_dir = c == 'y' ? pid_open((uint32_t)pid, 0) : -1;
	if (*ret_dir >= 0)
		return pid;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return 0;
}

static int find_in(int process, struct made *m, bool on_host)
{
	struct elf *e cleanup(elf_cleanup) = made_open(m);
	struct debugfile_where w = { .path = "/bin/prog", .on_host = on_host, .process = process };
	struct debugfile d = { 0 };
	int r = debugfile_find(e, &w, &d);

	if (!r)
		debugfile_close(&d);
	elf_free(take(e));
	free(m);
	return r;
}

START_TEST(in_a_container)
{
	char outside[128], link[128];
	int process;
	pid_t pid = in_container(&process);

	if (!pid)
		return;
	put_debug(debug_file("abcd", "f"), "usr/lib/debug/.build-id/61/626364.debug");
	ck_assert_int_eq(find_in(process, stripped("abcd", NULL, 0), false), 0);
	ck_assert_int_eq(find_in(-1, stripped("abcd", NULL, 0), false), -ENOENT);
	ck_assert_int_eq(find_in(process, stripped("abce", NULL, 0), false), -ENOENT);
	put_debug(debug_file("abce", "f"), "bin/.debug/prog.dbg");
	ck_assert_int_eq(find_in(process, stripped("abce", "prog.dbg", 0), false), 0);
	/* links lead to where they do for the process: never to the host's files */
	put_debug(debug_file("abcf", "f"), "outside");
	snprintf(outside, sizeof(outside), "%s", place("outside"));
	snprintf(link, sizeof(link), "%s", place("usr/lib/debug/.build-id/61/626366.debug"));
	ck_assert_int_eq(symlink(outside, link), 0);
	ck_assert_int_eq(find_in(process, stripped("abcf", NULL, 0), false), -ENOENT);
	unlink(link);
	ck_assert_int_eq(symlink("/outside", link), 0);
	ck_assert_int_eq(find_in(process, stripped("abcf", NULL, 0), false), 0);
	unlink(link);
	ck_assert_int_eq(mkfifo(link, 0644), 0);
	ck_assert_int_eq(find_in(process, stripped("abcf", NULL, 0), false), -ENOENT);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ck_assert_int_eq(find_in(process, stripped("abcd", NULL, 0), false), -ENOENT);
	close(process);
}
END_TEST

/* A file whose CRC takes longer than there is time. */
START_TEST(no_time)
{
	struct made *m cleanup(freep_cleanup) = debug_file(NULL, "f");
	struct made *s cleanup(freep_cleanup) = stripped(NULL, "prog.dbg", crc_of(m));
	struct elf *e cleanup(elf_cleanup) = made_open(s);
	struct debugfile_where w = { .on_host = true, .process = -1, .deadline = 1 };
	struct debugfile d;

	made_write(m, place("bin/prog.dbg"));
	w.path = place("bin/prog");
	ck_assert_int_eq(debugfile_find(e, &w, &d), -ENOENT);
	w.deadline = 0;
	ck_assert_int_eq(debugfile_find(e, &w, &d), 0);
	debugfile_close(&d);
}
END_TEST

/* What dwz makes: ET_REL, without symbols. Nothing but its build id makes it belong. */
START_TEST(shared_by_several)
{
	static const char link[] = "../.dwz/x\0\xab\xcd\x01";
	const struct debugfile_where where = { .process = -1, .directory = debug_dir };
	struct made *m cleanup(freep_cleanup) = made_new(EM_X86_64);
	struct made *common cleanup(freep_cleanup) = made_new(EM_X86_64);
	struct made *other cleanup(freep_cleanup) = made_new(EM_X86_64);
	struct elf *e cleanup(elf_cleanup) = NULL, *none cleanup(elf_cleanup) = NULL;
	struct debugfile d = { 0 };

	none = made_open(other);
	ck_assert_int_eq(debugfile_alt(none, &where, &d), -ENOENT);
	made_section(m, ".gnu_debugaltlink", SHT_PROGBITS, 0, link, sizeof(link) - 1);
	e = made_open(m);
	ck_assert_int_eq(debugfile_alt(e, &where, &d), -ENOENT);
	made_build_id(other, "\xab\xcd\x02", 3);
	made_write(other, place("debug/.build-id/ab/cd01.debug"));
	ck_assert_int_eq(debugfile_alt(e, &where, &d), -ENOENT);
	made_build_id(common, "\xab\xcd\x01", 3);
	common->h.e_type = ET_REL;
	made_write(common, place("debug/.build-id/ab/cd01.debug"));
	ck_assert_int_eq(debugfile_alt(e, &where, &d), 0);
	ck_assert_int_eq(elf_type(d.elf), ET_REL);
	debugfile_close(&d);
	ck_assert_int_eq(unlink(place("debug/.build-id/ab/cd01.debug")), 0);
	made_write(common, place("debug/.dwz/x"));	/* where the link leads, of distributions */
	ck_assert_int_eq(debugfile_alt(e, &where, &d), 0);
	debugfile_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("debugfile");
	TCase *t = tcase_create("debugfile");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, by_build_id);
	tcase_add_test(t, another_build_id);
	tcase_add_test(t, by_link_with_build_id);
	tcase_add_test(t, by_link_beneath_the_debug_directory);
	tcase_add_test(t, by_link_less_usr);
	tcase_add_test(t, by_crc);
	tcase_add_test(t, hostile_links);
	tcase_add_test(t, what_is_no_debug_file);
	tcase_add_test(t, another_machine);
	tcase_add_test(t, in_a_container);
	tcase_add_test(t, no_time);
	tcase_add_test(t, shared_by_several);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
