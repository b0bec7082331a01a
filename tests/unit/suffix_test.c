/* Tests of symbol/suffix.h. */
#include "made_elf.h"

#include "symbol/suffix.h"

START_TEST(where_it_starts)
{
	static const struct {
		const char *name;	/* with a "|" where the suffix starts */
		bool is_mangled;
	} cases[] = {
		{ "_Z3foov|.cold", true },
		{ "_Z3foov|.part.0.cold", true },
		{ "_Z3foov|.avx2", true },
		{ "_Z3foov|", true },
		{ "_RNvC1a1b|.llvm.123", true },
		{ "_D3app4mainFZv|.lto_priv.0", true },
		{ "_ZN3a.b17h0123456789abcdefE|.llvm.1", true },
		{ "_ZN3a.b17h0123456789abcdefE|", true },
		{ "foo|.cold", false },
		{ "foo|.part.0", false },
		{ "foo|.constprop.0.isra.0.part.12.cold", false },
		{ "foo|.lto_priv.0.cold.3", false },
		{ "foo|.localalias", false },
		{ "foo|.llvm.4711", false },
		{ "foo|.__uniq.99.llvm.4711", false },
		{ "foo.part|", false },
		{ "foo.part.x|", false },
		{ "foo.avx2|", false },
		{ "foo.bar|", false },
		{ "foo.0|", false },
		{ "foo.cold.|", false },
		{ ".cold|", false },
		{ ".part.0|", false },
		{ "0|", false },
		{ "a.b|.part.0", false },
		{ "a.b.cold|", false },
		{ "main.cold|", false },
		{ "main|.part.0.cold", false },
		{ "main|.cold.1", false },
		{ "example.com/x.cold|", false },
		{ "main.(*T).cold|", false },
		{ "|", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char name[64];
		size_t at = strcspn(cases[i].name, "|");

		snprintf(name, sizeof(name), "%.*s%s", (int)at, cases[i].name, cases[i].name + at + 1);
		ck_assert_msg(suffix_at(name, cases[i].is_mangled) == at, "%s: %zu", cases[i].name,
			      suffix_at(name, cases[i].is_mangled));
	}
}
END_TEST

START_TEST(clones)
{
	static const char *const cases[][2] = {
		{ "", "" },
		{ ".cold", " [clone .cold]" },
		{ ".part.0.cold", " [clone .part.0] [clone .cold]" },
		{ ".llvm.12.34", " [clone .llvm.12.34]" },
		{ ".", " [clone .]" },
		{ "..1.", " [clone ..1] [clone .]" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct buf b cleanup(buf_cleanup) = BUF_INIT(256);

		suffix_clones(&b, cases[i][0]);
		ck_assert_str_eq(b.data ? b.data : "", cases[i][1]);
	}
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { where_it_starts, clones };

	return made_run("suffix", tests, ARRAY_SIZE(tests));
}
