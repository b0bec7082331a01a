/* Tests of symbol/chains.h: what goes in comes out, names readable, in few bytes. */
#include "lines_corpus.h"

#include "symbol/chains.h"

static const struct line_frame frames[] = {
	{ .name = "_ZN2ns1fIiEEvT_", .scope = "", .file = "/a.h", .line = 3, .column = 7,
	  .start_line = 2 },
	{ .name = "helper", .scope = "ns::type", .file = "/a.cc", .line = 9 },
	{ .name = NULL, .scope = "", .file = "" },
};

START_TEST(in_and_out)
{
	const struct line_chain chain = { (struct line_frame *)frames, ARRAY_SIZE(frames) };
	struct chains c = CHAINS_INIT;
	struct symbol_line l;
	struct chain_ref ref, again;
	size_t bytes;

	ck_assert_int_eq(chains_add(&c, &chain, DEMANGLE_SIMPLE, &ref), 0);
	ck_assert_uint_eq(ref.n, 3);
	chains_get(&c, ref, 0, &l);
	ck_assert_str_eq(l.name, "ns::f");
	ck_assert_str_eq(l.system_name, "_ZN2ns1fIiEEvT_");
	ck_assert_str_eq(l.file, "/a.h");
	ck_assert(l.line == 3 && l.column == 7 && l.start_line == 2);
	chains_get(&c, ref, 1, &l);
	ck_assert_str_eq(l.name, "ns::type::helper");
	ck_assert_str_eq(l.system_name, "helper");
	chains_get(&c, ref, 2, &l);
	ck_assert_str_eq(l.name, "");
	ck_assert_str_eq(l.file, "");
	bytes = chains_bytes(&c);
	for (size_t i = 0; i < 1000; i++)
		ck_assert_int_eq(chains_add(&c, &chain, DEMANGLE_SIMPLE, &again), 0);
	ck_assert_uint_eq(again.first, 3000);
	ck_assert_uint_le(chains_bytes(&c), bytes + 4096 * 24);	/* texts are there once */
	chains_get(&c, again, 1, &l);
	ck_assert_str_eq(l.name, "ns::type::helper");
	chains_free(&c);
	ck_assert_uint_eq(chains_bytes(&c), 0);
}
END_TEST

START_TEST(modes)
{
	const struct line_chain chain = { (struct line_frame *)frames, 1 };
	struct chains c = CHAINS_INIT;
	struct symbol_line l;
	struct chain_ref ref;

	ck_assert_int_eq(chains_add(&c, &chain, DEMANGLE_NONE, &ref), 0);
	chains_get(&c, ref, 0, &l);
	ck_assert_str_eq(l.name, "_ZN2ns1fIiEEvT_");
	chains_free(&c);
	ck_assert_int_eq(chains_add(&c, &chain, DEMANGLE_FULL, &ref), 0);
	chains_get(&c, ref, 0, &l);
	ck_assert_str_eq(l.name, "void ns::f<int>(int)");
	chains_free(&c);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { in_and_out, modes };

	return made_run("chains", tests, ARRAY_SIZE(tests));
}
