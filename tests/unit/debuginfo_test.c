/* Tests of symbol/debuginfo.h: the chains of every address of small programs, limits, and damage. */
#include "lines_corpus.h"

#include "symbol/debuginfo.h"

static struct debuginfo *opened(const struct corpus *c, bool inlines)
{
	struct debuginfo_options o = { .elf = c->e, .code = c->e, .max_bytes = 16 << 20,
				       .inlines = inlines, .deadline = in_a_minute() };
	struct debuginfo *d = NULL;

	ck_assert_int_eq(debuginfo_open(&o, &d), 0);
	return d;
}

/* Addresses of the code that have a chain of this text. */
static unsigned int count(struct debuginfo *d, const struct corpus *c, const char *text)
{
	unsigned int n = 0;
	struct line_chain chain;

	for (uint64_t at = c->text; at < c->text + c->size; at++)
		if (!debuginfo_lookup(d, at, in_a_minute(), &chain))
			n += !strcmp(chain_text(&chain), text);
	return n;
}

START_TEST(chains_of_gcc)
{
	static const char *const files[] = { "c-2", "c-4", "c-5", "zlib", "zlib-gnu" };
	static const struct {
		const char *text;
		unsigned int n;
	} expected[] = {
		{ "h:4", 2 }, { "h:5", 5 }, { "h:7", 10 },
		{ "f:1<g:2<h:5<h:3", 18 }, { "g:2<h:5<h:3", 4 }, { "h:5<h:3", 2 },
		{ "_start:8", 26 }, { "h:5<_start:8", 5 }, { "f:1<g:2<h:5<h:3<_start:8", 18 },
		{ "g:2<h:5<h:3<_start:8", 4 }, { "h:5<h:3<_start:8", 2 },
		{ "?:7", 7 },	/* padding */
	};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		struct corpus c cleanup(corpus_close) = corpus_open(files[i]);
		struct debuginfo *d cleanup(debuginfo_cleanup) = opened(&c, true);
		unsigned int sum = 0;

		for (size_t k = 0; k < ARRAY_SIZE(expected); k++) {
			unsigned int n = count(d, &c, expected[k].text);

			ck_assert_msg(n == expected[k].n, "%s: %u of %s", files[i], n, expected[k].text);
			sum += n;
		}
		ck_assert_uint_eq(sum, c.size);
	}
}
END_TEST

START_TEST(places_and_start_lines)
{
	struct corpus c cleanup(corpus_close) = corpus_open("clang-5");
	struct debuginfo *d cleanup(debuginfo_cleanup) = opened(&c, true);
	struct line_chain chain;

	ck_assert_int_eq(debuginfo_lookup(d, c.text + 7, in_a_minute(), &chain), 0);
	ck_assert_str_eq(chain_text(&chain), "f:1<g:2<h:5");
	for (size_t i = 0; i < chain.n; i++) {
		ck_assert_str_eq(chain.v[i].file, "/src/a.c");
		ck_assert_uint_eq(chain.v[i].start_line, i + 1);
		ck_assert_str_eq(chain.v[i].scope, "");
	}
	ck_assert_uint_eq(chain.v[0].column, 74);
	ck_assert_uint_eq(chain.v[1].column, 68);
	ck_assert_uint_eq(chain.v[2].column, 23);
}
END_TEST

START_TEST(mangled_names)
{
	static const char *const files[] = { "cxx-4", "cxx-5" };

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		struct corpus c cleanup(corpus_close) = corpus_open(files[i]);
		struct debuginfo *d cleanup(debuginfo_cleanup) = opened(&c, true);

		ck_assert_uint_eq(count(d, &c, "_ZN2ns2goEi:2"), 8);
		ck_assert_uint_eq(count(d, &c, "_start:3"), 39);
	}
}
END_TEST

START_TEST(without_inlines)
{
	struct corpus c cleanup(corpus_close) = corpus_open("c-5");
	struct debuginfo *d cleanup(debuginfo_cleanup) = opened(&c, false);

	ck_assert_uint_eq(count(d, &c, "h:1"), 18);
	ck_assert_uint_eq(count(d, &c, "_start:1"), 18);
}
END_TEST

START_TEST(split_units)
{
	struct corpus c cleanup(corpus_close) = corpus_open("split");
	struct debuginfo_options o = { .elf = c.e, .code = c.e, .max_bytes = 16 << 20,
				       .inlines = true, .deadline = in_a_minute() };
	cleanup(debuginfo_cleanup) struct debuginfo *whole = NULL, *without = NULL;
	char *path cleanup(freep_cleanup) = realpath(CORPUS "split", NULL);

	ck_assert_ptr_nonnull(path);
	ck_assert_int_eq(debuginfo_open(&o, &without), 0);
	ck_assert_uint_eq(count(without, &c, "?:1"), 36);
	ck_assert_uint_eq(debuginfo_split_missing(without), 1);
	o.path = path;
	o.process = -1;
	ck_assert_int_eq(debuginfo_open(&o, &whole), 0);
	ck_assert_uint_eq(count(whole, &c, "f:1<g:2<h:5<h:3"), 18);
	ck_assert_uint_eq(count(whole, &c, "f:1<g:2<h:5<h:3<_start:8"), 18);
	ck_assert_uint_eq(debuginfo_split_missing(whole), 0);
}
END_TEST

START_TEST(limits)
{
	struct corpus c cleanup(corpus_close) = corpus_open("c-5");
	struct debuginfo_options o = { .elf = c.e, .code = c.e, .max_bytes = 100, .inlines = true,
				       .deadline = in_a_minute() };
	cleanup(debuginfo_cleanup) struct debuginfo *d = NULL;
	struct line_chain chain;

	ck_assert_int_eq(debuginfo_open(&o, &d), -E2BIG);
	o.max_bytes = 1 << 20;
	ck_assert_int_eq(debuginfo_open(&o, &d), 0);
	ck_assert_int_eq(debuginfo_lookup(d, c.text - 1, in_a_minute(), &chain), -ENOENT);
	ck_assert_int_eq(debuginfo_lookup(d, c.text + c.size, in_a_minute(), &chain), -ENOENT);
	ck_assert_int_eq(debuginfo_lookup(d, 0, in_a_minute(), &chain), -ENOENT);
	ck_assert_int_eq(debuginfo_lookup(d, c.text, 1, &chain), -ETIME);
	ck_assert_int_eq(debuginfo_lookup(d, c.text, in_a_minute(), &chain), -ETIME);
	ck_assert_uint_gt(debuginfo_memory(d), 0);
}
END_TEST

/* Each byte of the debug sections turned around, one at a time: no crash, no answer without sense. */
START_TEST(damage)
{
	struct corpus c cleanup(corpus_close) = corpus_open("c-5");
	size_t size = elf_size(c.e);
	uint8_t *image cleanup(freep_cleanup) = malloc(size);

	ck_assert_int_eq(elf_read(c.e, 0, image, size), 0);
	for (size_t at = 400; at < size; at++) {
		struct corpus copy = { .text = c.text, .size = c.size };
		struct debuginfo_options o = { .max_bytes = 1 << 20, .inlines = true,
					       .deadline = in_a_minute() };
		struct debuginfo *d = NULL;
		struct line_chain chain;

		image[at] ^= 0xff;
		if (!elf_open_memory(image, size, &copy.e, NULL)) {
			o.elf = o.code = copy.e;
			if (!debuginfo_open(&o, &d))
				for (uint64_t pc = c.text; pc < c.text + c.size; pc += 9)
					if (!debuginfo_lookup(d, pc, in_a_minute(), &chain))
						ck_assert_uint_ge(chain.n, 1);
			debuginfo_free(d);
			elf_free(copy.e);
		}
		image[at] ^= 0xff;
	}
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { chains_of_gcc, places_and_start_lines, mangled_names,
				       without_inlines, split_units, limits, damage };

	return made_run("debuginfo", tests, ARRAY_SIZE(tests));
}
