/* Tests of symbol/lines.h: files come and go within the budgets, and what they cost is counted. */
#include "lines_corpus.h"

#include "symbol/lines.h"

static unsigned int opened;

static int open_corpus(void *ctx)
{
	char path[256];

	opened++;
	snprintf(path, sizeof(path), CORPUS "%s", (const char *)ctx);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static int open_nothing(void *ctx)
{
	(void)ctx;
	opened++;
	return -ESRCH;
}

static uint64_t text_of(const char *name)
{
	struct corpus c cleanup(corpus_close) = corpus_open(name);

	return c.text;
}

static int look(struct lines *l, uint32_t number, const char *name, struct line_chain *ret)
{
	const struct debugfile_where where = { .process = -1 };
	struct lines_file f = { .number = number, .where = &where, .open = open_corpus,
				.ctx = (void *)name };

	return lines_lookup(l, &f, text_of(name) + 7, ret);
}

static struct lines *new_lines(uint64_t max_bytes, uint64_t max_ns)
{
	struct lines_options o = { .inlines = true, .max_bytes = max_bytes, .max_ns = max_ns };
	struct lines *l = NULL;

	opened = 0;
	ck_assert_int_eq(lines_new(&o, &l), 0);
	return l;
}

START_TEST(several_files)
{
	struct lines *l cleanup(lines_cleanup) = new_lines(LINES_BYTES_DEFAULT, LINES_NS_DEFAULT);
	struct line_chain c;

	ck_assert_int_eq(look(l, 3, "clang-5", &c), 0);
	ck_assert_str_eq(chain_text(&c), "f:1<g:2<h:5");
	ck_assert_int_eq(look(l, 0, "cxx-5", &c), 0);
	ck_assert_str_eq(chain_text(&c), "_ZN2ns2goEi:2");
	ck_assert_int_eq(look(l, 3, "clang-5", &c), 0);
	ck_assert_uint_eq(opened, 2);
	ck_assert(lines_state(l, 3).found && !lines_state(l, 3).error);
	ck_assert_int_eq(lines_state(l, 4).error, -ENOENT);
	lines_forget(l, 3);	/* the number may stand for another file now */
	ck_assert_int_eq(look(l, 3, "cxx-4", &c), 0);
	ck_assert_str_eq(chain_text(&c), "_ZN2ns2goEi:2");
	ck_assert_uint_gt(lines_stats(l).bytes, 0);
}
END_TEST

START_TEST(nothing_there)
{
	struct lines *l cleanup(lines_cleanup) = new_lines(LINES_BYTES_DEFAULT, LINES_NS_DEFAULT);
	const struct debugfile_where where = { .process = -1 };
	struct lines_file f = { .where = &where, .open = open_nothing };
	struct line_chain c;

	ck_assert_int_eq(lines_lookup(l, &f, 1, &c), -ENOENT);
	ck_assert_int_eq(lines_lookup(l, &f, 1, &c), -ENOENT);
	ck_assert_uint_eq(opened, 1);
	ck_assert_int_eq(lines_state(l, 0).error, -ESRCH);
	ck_assert_uint_eq(lines_state(l, 0).refused, 0);
	f.number = LINES_FILES_MAX;
	ck_assert_int_eq(lines_lookup(l, &f, 1, &c), -ENOENT);
}
END_TEST

START_TEST(memory)
{
	struct lines *l cleanup(lines_cleanup) = new_lines(9000, LINES_NS_DEFAULT);
	struct lines *none cleanup(lines_cleanup) = new_lines(500, LINES_NS_DEFAULT);
	struct line_chain c;

	for (int i = 0; i < 3; i++) {	/* there is room for one of them */
		ck_assert_int_eq(look(l, 0, "c-5", &c), 0);
		ck_assert_int_eq(look(l, 1, "clang-5", &c), 0);
		ck_assert_str_eq(chain_text(&c), "f:1<g:2<h:5");
	}
	ck_assert_uint_eq(lines_stats(l).evicted, 5);
	ck_assert_uint_eq(lines_stats(l).refused, 0);
	ck_assert_int_eq(look(none, 0, "c-5", &c), -ENOENT);
	ck_assert_int_eq(look(none, 0, "c-5", &c), -ENOENT);
	ck_assert_int_eq(lines_state(none, 0).error, -E2BIG);
	ck_assert_uint_eq(lines_state(none, 0).refused, 2);
	ck_assert_uint_eq(lines_stats(none).refused, 2);
	ck_assert_ptr_nonnull(strstr(lines_state(none, 0).hint, "--lines-bytes"));
}
END_TEST

START_TEST(time_is_over)
{
	struct lines *l cleanup(lines_cleanup) = new_lines(LINES_BYTES_DEFAULT, 4);
	struct line_chain c;

	ck_assert_int_eq(look(l, 0, "c-5", &c), -ENOENT);
	ck_assert_int_eq(lines_state(l, 0).error, -ETIME);
	ck_assert_uint_eq(lines_state(l, 0).refused, 1);
	ck_assert_ptr_nonnull(strstr(lines_state(l, 0).hint, "--lines-time"));
	ck_assert_int_eq(look(l, 0, "c-5", &c), -ENOENT);
	opened = 0;
	lines_begin(l);		/* another try, that ends alike */
	ck_assert_int_eq(lines_state(l, 0).error, 0);
	ck_assert_int_eq(look(l, 0, "c-5", &c), -ENOENT);
	ck_assert_uint_eq(opened, 1);
}
END_TEST

START_TEST(split_files_missing)
{
	struct lines *l cleanup(lines_cleanup) = new_lines(LINES_BYTES_DEFAULT, LINES_NS_DEFAULT);
	struct line_chain c;

	ck_assert_int_eq(look(l, 0, "split", &c), 0);
	ck_assert_ptr_nonnull(strstr(lines_state(l, 0).hint, ".dwo"));
	ck_assert_uint_eq(lines_state(l, 0).refused, 1);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { several_files, nothing_there, memory, time_is_over,
				       split_files_missing };

	return made_run("lines", tests, ARRAY_SIZE(tests));
}
