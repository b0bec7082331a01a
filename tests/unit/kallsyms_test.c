/* Tests of symbol/kallsyms.h: small texts, and the running kernel's own list if it can be read. */
#include <check.h>

#include "symbol/kallsyms.h"

static const char kernel[] =
	"0000000000001000 A fixed_percpu_data\n"
	"0000000000002000 t percpu_looks_like_text\n"
	"ffffffff81000000 T _stext\n"
	"ffffffff81000000 T _text\n"
	"ffffffff81000000 T startup_64\n"
	"ffffffff81000100 t __pfx_do_one_initcall\n"
	"ffffffff81000110 T do_one_initcall\n"
	"ffffffff81000200 W __weak_one\n"
	"ffffffff81000200 t a_local_alias\n"
	"ffffffff81000300 T __irqentry_text_start\n"
	"ffffffff81000400 t last_of_core\n"
	"ffffffff81001000 T _etext\n"
	"ffffffff82000000 D init_task\n"
	"ffffffff83000000 T _sinittext\n"
	"ffffffff83000010 t early_setup\n"
	"ffffffffc0010000 t b_first\t[mod_b]\n"
	"ffffffffc0010100 T b_last\t[mod_b]\n"
	"ffffffffc0010180 d b_data\t[mod_b]\n"
	"ffffffffc0000000 t a_first\t[mod_a]\n"
	"ffffffffc0000100 t a_last\t[mod_a]\n"
	"ffffffffc0020000 t bpf_prog_0123456789abcdef_tick\t[bpf]\n"
	"ffffffffc0028000 t bpf_prog_fedcba9876543210\t[bpf]\n";

static struct kallsyms *parsed(const char *text)
{
	static const char *const extra[] = { "init_task", "__irqentry_text_start", "absent",
					     "b_data", NULL };
	struct kallsyms *k = NULL;

	ck_assert_int_eq(kallsyms_parse(text, strlen(text), extra, &k, NULL), 0);
	return k;
}

static void ck_sym(const struct kallsyms *k, uint64_t addr, const char *name, const char *module,
		   uint64_t start)
{
	struct kallsym s = { 0 };

	ck_assert_msg(kallsyms_lookup(k, addr, &s), "%llx has no name", (unsigned long long)addr);
	ck_assert_str_eq(s.name, name);
	ck_assert_uint_eq(s.start, start);
	ck_assert(addr < s.end);
	if (module)
		ck_assert_str_eq(s.module, module);
	else
		ck_assert_ptr_null(s.module);
}

static void ck_none(const struct kallsyms *k, uint64_t addr)
{
	struct kallsym s;

	ck_assert(!kallsyms_lookup(k, addr, &s));
}

START_TEST(core_kernel)
{
	struct kallsyms *k cleanup(kallsyms_cleanup) = parsed(kernel);

	ck_sym(k, 0xffffffff81000000, "startup_64", NULL, 0xffffffff81000000);
	ck_sym(k, 0xffffffff81000105, "__pfx_do_one_initcall", NULL, 0xffffffff81000100);
	ck_sym(k, 0xffffffff810001ff, "do_one_initcall", NULL, 0xffffffff81000110);
	ck_sym(k, 0xffffffff81000200, "__weak_one", NULL, 0xffffffff81000200);
	ck_sym(k, 0xffffffff81000fff, "last_of_core", NULL, 0xffffffff81000400);
	ck_none(k, 0xffffffff80ffffff);
	ck_none(k, 0xffffffff81001000);	/* _etext */
	ck_none(k, 0xffffffff83000010);	/* init code is gone */
	ck_none(k, 0x2000);
	ck_none(k, 0);
	ck_none(k, UINT64_MAX);
}
END_TEST

START_TEST(modules)
{
	struct kallsyms *k cleanup(kallsyms_cleanup) = parsed(kernel);

	ck_sym(k, 0xffffffffc0000000, "a_first", "mod_a", 0xffffffffc0000000);
	ck_sym(k, 0xffffffffc00010ff, "a_last", "mod_a", 0xffffffffc0000100);
	ck_none(k, 0xffffffffc0001100);	/* KALLSYMS_MODULE_TAIL, then nobody's */
	ck_none(k, 0xffffffffc000ffff);
	ck_sym(k, 0xffffffffc001017f, "b_last", "mod_b", 0xffffffffc0010100);
	ck_none(k, 0xffffffffc0010180);	/* data ends the text */
}
END_TEST

START_TEST(bpf_programs)
{
	struct kallsyms *k cleanup(kallsyms_cleanup) = parsed(kernel);

	ck_sym(k, 0xffffffffc0027fff, "bpf_prog_0123456789abcdef_tick", "bpf",
	       0xffffffffc0020000);
	ck_sym(k, 0xffffffffc0028000, "bpf_prog_fedcba9876543210", "bpf", 0xffffffffc0028000);
	ck_none(k, 0xffffffffc0028000 + KALLSYMS_BPF_MAX);
}
END_TEST

START_TEST(names_remembered)
{
	struct kallsyms *k cleanup(kallsyms_cleanup) = parsed(kernel);
	uint64_t addr = 0;

	ck_assert(kallsyms_find(k, "init_task", &addr));
	ck_assert_uint_eq(addr, 0xffffffff82000000);
	ck_assert(kallsyms_find(k, "__irqentry_text_start", &addr));
	ck_assert_uint_eq(addr, 0xffffffff81000300);
	ck_assert(kallsyms_find(k, "b_data", &addr));
	ck_assert(!kallsyms_find(k, "absent", &addr));
	ck_assert(!kallsyms_find(k, "do_one_initcall", &addr));	/* nobody asked for it */
	ck_assert_uint_eq(kallsyms_count(k), 12);
	ck_assert_uint_gt(kallsyms_bytes(k), 0);
}
END_TEST

START_TEST(core_before_modules)
{
	struct kallsyms *k cleanup(kallsyms_cleanup) =
		parsed("ffffffffc0000000 t init_task\t[m]\nffffffff81000000 D init_task\n"
		       "ffffffffc0000100 t init_task\t[n]\nffffffff81000000 T x\n");
	uint64_t addr = 0;

	ck_assert(kallsyms_find(k, "init_task", &addr));
	ck_assert_uint_eq(addr, 0xffffffff81000000);
	/* Without marks there is nothing that bounds the core. */
	ck_sym(k, 0xffffffff90000000, "x", NULL, 0xffffffff81000000);
	ck_sym(k, 0xffffffffc0000000, "init_task", "m", 0xffffffffc0000000);
}
END_TEST

START_TEST(hidden_addresses)
{
	static const char text[] = "0000000000000000 T _stext\n0000000000000000 t f\t[mod]\n"
				   "0000000000000000 D data\n";
	struct kallsyms *k = NULL;
	struct err err = { 0 };

	ck_assert_int_eq(kallsyms_parse(text, strlen(text), NULL, &k, &err), -EPERM);
	ck_assert_ptr_nonnull(strstr(err.msg, "kptr_restrict"));
	ck_assert_ptr_null(k);
}
END_TEST

START_TEST(other_files)
{
	static const char *const texts[] = {
		"", "\n", "root:x:0:0\n", "ffffffff81000000 T\n", "ffffffff81000000 T \n",
		"ffffffff81000000  name\n", "ffffffff8100000 T name\n", "zfffffff81000000 T name\n",
		"ffffffff81000000 T name\t\n", "ffffffff81000000 T name\t[]\n",
		"ffffffff81000000 T name", "ffffffff81000000 D only_data\n",
	};
	struct kallsyms *k = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		ck_assert_int_eq(kallsyms_parse(texts[i], strlen(texts[i]), NULL, &k, NULL),
				 -EBADMSG);
	ck_assert_int_eq(kallsyms_load("/nonexistent/kallsyms", NULL, &k, NULL), -ENOENT);
	ck_assert_int_eq(kallsyms_load("/dev/zero", NULL, &k, NULL), -EBADMSG);
	ck_assert_ptr_null(k);
	kallsyms_free(NULL);
}
END_TEST

/* A file larger than one read, whose lines are cut everywhere, without a final newline. */
START_TEST(read_in_pieces)
{
	char path[] = "/tmp/kallsyms_test.XXXXXX";
	int fd cleanup(fd_cleanup) = mkstemp(path);
	FILE *f cleanup(file_cleanup) = fdopen(dup(fd), "w");
	struct kallsyms *k cleanup(kallsyms_cleanup) = NULL;
	char name[32];

	ck_assert_ptr_nonnull(f);
	for (unsigned int i = 0; i < 10000; i++)
		fprintf(f, "%s%016llx t function_%u", i ? "\n" : "",
			0xffffffff81000000ull + 16 * (9999 - i), i);
	fflush(f);
	ck_assert_int_eq(kallsyms_load(path, NULL, &k, NULL), 0);
	unlink(path);
	ck_assert_uint_eq(kallsyms_count(k), 10000);
	for (unsigned int i = 0; i < 10000; i++) {
		snprintf(name, sizeof(name), "function_%u", i);
		ck_sym(k, 0xffffffff81000000 + 16 * (9999 - i) + 15, name, NULL,
		       0xffffffff81000000 + 16 * (9999 - i));
	}
}
END_TEST

START_TEST(this_kernel)
{
	static const char *const extra[] = { "_stext", NULL };
	struct kallsyms *k cleanup(kallsyms_cleanup) = NULL;
	struct kallsym s;
	uint64_t stext;
	int r = kallsyms_load("/proc/kallsyms", extra, &k, NULL);

	ck_assert(r == 0 || r == -EPERM || r == -ENOENT || r == -EACCES);
	if (r)
		return;
	ck_assert_uint_gt(kallsyms_count(k), 1000);
	ck_assert(kallsyms_find(k, "_stext", &stext));
	ck_assert(kallsyms_lookup(k, stext, &s));
	ck_assert(!kallsyms_lookup(k, stext - 1, &s));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kallsyms");
	TCase *t = tcase_create("kallsyms");
	SRunner *runner;
	int failed;

	tcase_add_test(t, core_kernel);
	tcase_add_test(t, modules);
	tcase_add_test(t, bpf_programs);
	tcase_add_test(t, names_remembered);
	tcase_add_test(t, core_before_modules);
	tcase_add_test(t, hidden_addresses);
	tcase_add_test(t, other_files);
	tcase_add_test(t, read_in_pieces);
	tcase_add_test(t, this_kernel);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
