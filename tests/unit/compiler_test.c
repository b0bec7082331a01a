/* Tests of collect/compiler.h: files of this machine and files that are none, compiled by the
 * background threads. */
#include "cfi_bytes.h"
#include "made_elf.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "collect/compiler.h"
#include "unwind/unwtab.h"

static int descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	ck_assert_ptr_nonnull(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static struct compiler *started(void)
{
	struct compiler *c = NULL;

	ck_assert_int_eq(compiler_new(&c), 0);
	return c;
}

/* A file in memory with these bytes. */
static int file_of(const void *bytes, size_t n)
{
	int fd = memfd_create("compiler_test", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, bytes, n), (ssize_t)n);
	return fd;
}

/* Submits it; the caller's descriptor isn't needed any more. */
static void submit(struct compiler *c, uint32_t id, int fd)
{
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(compiler_submit(c, id, fd, NULL), 0);
	close(fd);
}

/* Waits, as an event loop would, until something is finished. */
static struct compiled finished(struct compiler *c)
{
	struct pollfd p = { .fd = compiler_fd(c), .events = POLLIN };
	struct compiled d;

	while (!compiler_take(c, &d))
		ck_assert_int_eq(poll(&p, 1, 20000), 1);
	return d;
}

START_TEST(idle)
{
	struct compiler *c cleanup(compiler_cleanup) = started();
	struct pollfd p = { .fd = compiler_fd(c), .events = POLLIN };
	struct compiled d;

	ck_assert(!compiler_take(c, &d));
	ck_assert_uint_eq(compiler_pending(c), 0);
	ck_assert_int_eq(poll(&p, 1, 0), 0);
	compiler_want(c, 2, 100);	/* of no file that is waiting */
	compiler_free(NULL);
}
END_TEST

START_TEST(own_program)
{
	struct compiler *c cleanup(compiler_cleanup) = started();
	struct compiled d;

	submit(c, 17, open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
	ck_assert_uint_eq(compiler_pending(c), 1);
	d = finished(c);
	ck_assert_uint_eq(d.id, 17);
	ck_assert_int_eq(d.error, 0);
	ck_assert_ptr_nonnull(d.table);
	ck_assert_uint_gt(unwtab_stats(d.table)->rows, 100);
	ck_assert_uint_eq(compiler_pending(c), 0);
	compiler_free(take(c));		/* the table is ours */
	ck_assert_uint_gt(unwtab_stats(d.table)->bytes, 0);
	unwtab_free(d.table);
}
END_TEST

START_TEST(files_without_rows)
{
	struct compiler *c cleanup(compiler_cleanup) = started();
	const Elf64_Ehdr bare = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(Elf64_Ehdr),
	};
	static const int errors[] = { -ENOEXEC, -ENOEXEC, -ENOENT, -EINVAL };
	unsigned int seen = 0;

	submit(c, 0, file_of("", 0));
	submit(c, 1, file_of("#!/bin/sh\n", 10));
	submit(c, 2, file_of(&bare, sizeof(bare)));
	submit(c, 3, open("/dev/null", O_RDONLY | O_CLOEXEC));
	for (unsigned int i = 0; i < 4; i++) {
		struct compiled d = finished(c);

		ck_assert_uint_lt(d.id, 4);
		ck_assert_ptr_null(d.table);
		ck_assert_int_eq(d.error, errors[d.id]);
		seen |= 1u << d.id;
	}
	ck_assert_uint_eq(seen, 15);
}
END_TEST

/* What the file itself doesn't describe is found in its debug file, which the path leads to. */
START_TEST(separate_debug_file)
{
	static const char link[] = "program.debug\0\0\0\0\0\0\0", id[] = "12345678";
	cleanup(freep_cleanup) struct made *m = made_new(EM_X86_64), *d = made_new(EM_X86_64);
	struct compiler *c cleanup(compiler_cleanup) = started();
	struct section frames = { .debug = true };
	char dir[] = "/tmp/compiler_test.XXXXXX", path[64], debug[64];
	size_t text = made_section(m, ".text", SHT_PROGBITS, SHF_EXECINSTR, NULL, 64), cie;
	struct compiled with, without;
	int fd;

	cie = begin_cie(&frames, 3, "", 16);
	BYTES(&frames, 0x0c, 7, 8, 0x90, 1);
	end(&frames);
	begin(&frames);
	put_uint(&frames, cie, 4);
	put_uint(&frames, m->s[text].sh_addr, 8);
	put_uint(&frames, 64, 8);
	end(&frames);
	made_section(m, ".gnu_debuglink", SHT_PROGBITS, 0, link, sizeof(link) - 1);
	made_build_id(m, id, 8);
	made_symbols(d, SHT_SYMTAB, 1, m->s[text].sh_addr, (const char *const[]){ "f", NULL });
	made_section(d, ".debug_frame", SHT_PROGBITS, 0, frames.data, frames.n);
	made_build_id(d, id, 8);
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/program", dir);
	snprintf(debug, sizeof(debug), "%s/program.debug", dir);
	made_write(m, path);
	made_write(d, debug);

	fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(compiler_submit(c, 1, fd, path), 0);
	with = finished(c);
	ck_assert_int_eq(with.error, 0);
	ck_assert_uint_eq(unwtab_stats(with.table)->fdes, 1);
	ck_assert_int_eq(compiler_submit(c, 2, fd, NULL), 0);
	without = finished(c);
	ck_assert(without.error == -ENOENT || unwtab_stats(without.table)->fdes == 0);
	unwtab_free(with.table);
	unwtab_free(without.table);
	close(fd);
	unlink(path);
	unlink(debug);
	rmdir(dir);
}
END_TEST

/* More files than the lists hold at first: each comes back once. */
START_TEST(many_files)
{
	enum { N = 200 };
	struct compiler *c cleanup(compiler_cleanup) = started();
	bool seen[N] = { false };
	int before = descriptors();

	for (uint32_t i = 0; i < N; i++) {
		submit(c, i, i % 50 ? file_of("junk", 4)
				    : open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
		compiler_want(c, i, i);
	}
	for (uint32_t i = 0; i < N; i++) {
		struct compiled d = finished(c);

		ck_assert_uint_lt(d.id, N);
		ck_assert(!seen[d.id]);
		seen[d.id] = true;
		ck_assert_int_eq(d.error, d.id % 50 ? -ENOEXEC : 0);
		unwtab_free(d.table);
		ck_assert_uint_eq(compiler_pending(c), N - 1 - i);
	}
	ck_assert_int_eq(descriptors(), before);
}
END_TEST

/* What waits and what nobody took is given up cleanly: checked by the leak checker and by what is
 * open afterwards. */
START_TEST(freed_with_work_left)
{
	struct pollfd p = { .events = POLLIN };
	int before = descriptors();

	for (unsigned int round = 0; round < 5; round++) {
		struct compiler *c = started();

		for (uint32_t i = 0; i < 10; i++)
			submit(c, i, open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
		p.fd = compiler_fd(c);
		if (round % 2)
			ck_assert_int_eq(poll(&p, 1, 20000), 1);
		compiler_free(c);
		ck_assert_int_eq(descriptors(), before);
	}
}
END_TEST

START_TEST(bad_descriptors)
{
	struct compiler *c cleanup(compiler_cleanup) = started();
	struct rlimit few = { 4, 0 }, old;
	int r, fd = file_of("junk", 4);

	ck_assert_int_eq(compiler_submit(c, 2, -1, NULL), -EBADF);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
	few.rlim_max = old.rlim_max;
	while (dup(fd) < 3)
		;	/* until 3 is taken */
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	r = compiler_submit(c, 2, fd, NULL);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
	ck_assert_int_eq(r, -EMFILE);
	ck_assert_uint_eq(compiler_pending(c), 0);
	close(fd);
}
END_TEST

/* The threads leave signals to the main one, whose own mask is as it was. */
START_TEST(signals_left_alone)
{
	sigset_t before, after;
	struct compiler *c cleanup(compiler_cleanup) = NULL;
	unsigned int threads = 0, blocking = 0;
	struct dirent *d;
	DIR *dir;

	sigprocmask(SIG_SETMASK, NULL, &before);
	c = started();
	sigprocmask(SIG_SETMASK, NULL, &after);
	for (int sig = 1; sig < 32; sig++)
		ck_assert_int_eq(sigismember(&before, sig), sigismember(&after, sig));
	dir = opendir("/proc/self/task");
	ck_assert_ptr_nonnull(dir);
	while ((d = readdir(dir))) {
		cleanup(file_cleanup) FILE *f = NULL;
		char path[300], line[256];
		unsigned long long set;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status", d->d_name);
		f = d->d_name[0] == '.' ? NULL : fopen(path, "re");
		while (f && fgets(line, sizeof(line), f))
			if (sscanf(line, "SigBlk: %llx", &set) == 1) {
				threads++;
				blocking += set >> (SIGINT - 1) & set >> (SIGCHLD - 1) & 1;
			}
	}
	closedir(dir);
	ck_assert_uint_ge(threads, 3);		/* a sanitizer may have one of its own */
	ck_assert_uint_ge(blocking, 2);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("compiler");
	TCase *t = tcase_create("compiler");
	SRunner *runner;
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_test(t, idle);
	tcase_add_test(t, own_program);
	tcase_add_test(t, files_without_rows);
	tcase_add_test(t, separate_debug_file);
	tcase_add_test(t, many_files);
	tcase_add_test(t, freed_with_work_left);
	tcase_add_test(t, bad_descriptors);
	tcase_add_test(t, signals_left_alone);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
