/* Tests of symbol/demangle.h, hostile names in a small thread among them. */
#include <check.h>
#include <pthread.h>
#include <time.h>

#include "symbol/demangle.h"

#ifndef __has_feature		/* clang's way to say what gcc says with a macro */
#define __has_feature(x) 0
#endif
#ifdef __SANITIZE_ADDRESS__
#define ADDRESS_SANITIZER 1
#else
#define ADDRESS_SANITIZER __has_feature(address_sanitizer)
#endif

/* NULL: shown as it is. */
static void ck_text(const char *mangled, enum demangle_mode mode, const char *expected)
{
	char *text cleanup(freep_cleanup) = NULL;
	int r = demangle(mangled, mode, &text);

	if (!expected) {
		ck_assert_msg(r == -ENOENT, "'%s' became '%s'", mangled, text);
		return;
	}
	ck_assert_msg(r == 0, "'%s' isn't demangled", mangled);
	ck_assert_str_eq(text, expected);
}

START_TEST(spellings)
{
	static const struct {
		const char *mangled, *simple, *full;
	} cases[] = {
		{ "_D3app4mainFZv", "app.main", "app.main()" },
		{ "_Dmain", "D main", "D main" },
		{ "_D3app__T3mapTiZQhFNaNbiZi", "app.map.map", "app.map!(int).map(int)" },
		{ "_D3foo3barFiZ3bazMFNaNbNiNfZv", "foo.bar.baz", "foo.bar(int).baz()" },
		{ "_D6object9Throwable8toStringMxFZAya", "object.Throwable.toString",
		  "object.Throwable.toString() const" },
		{ "_D3std5stdio__T7writelnTAyaZQnFNfQjZv", "std.stdio.writeln.writeln",
		  "std.stdio.writeln!(immutable(char)[]).writeln(immutable(char)[])" },
		{ "_Data", NULL, NULL },
		{ "_D3ap", NULL, NULL },
		{ "camlStdlib__List__map_287", "Stdlib.List.map", "Stdlib.List.map_287" },
		{ "camlStdlib__List.map_287", "Stdlib.List.map", "Stdlib.List.map_287" },
		{ "camlDune__exe__Main__entry", "Dune.exe.Main.entry", "Dune.exe.Main.entry" },
		{ "camlMain__$3e$3e$3d_12", "Main.>>=", "Main.>>=_12" },
		{ "camlMain__$0a$zz$4", "Main.$0a$zz$4", "Main.$0a$zz$4" },
		{ "camlMain", NULL, NULL },
		{ "caml_alloc_small__dispatch", NULL, NULL },	/* the runtime, in C */
		{ "camlA__", NULL, NULL },
		{ "_ada_hello", "hello", "hello" },
		{ "ada__text_io__put_line", NULL, NULL },
		{ "$s4main3fooyyF", NULL, NULL },		/* Swift */
		{ "_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector::push_back",
		  "std::vector<int, std::allocator<int> >::push_back(int const&)" },
		{ "_Z3fooIiEvT_", "foo", "void foo<int>(int)" },
		{ "_ZZ3fooiENKUlvE_clEv", "foo::{lambda()#1}::operator()",
		  "foo(int)::{lambda()#1}::operator()() const" },
		{ "_ZNK3FooptEv", "Foo::operator->", "Foo::operator->() const" },
		{ "_ZltIiEbRK3FooIT_E", "operator<", "bool operator< <int>(Foo<int> const&)" },
		{ "_ZN3FoolsERKS_", "Foo::operator<<", "Foo::operator<<(Foo const&)" },
		{ "_ZN1XIiEcvT_IfEEv", "X<int>::operator float<float>",
		  "X<int>::operator float<float>()" },
		{ "_ZN1AcvT_IiEEv", "A::operator int<int>", "A::operator int<int>()" },
		{ "_ZNSt6vectorIiSaIiEEC2Ev", "std::vector::vector",
		  "std::vector<int, std::allocator<int> >::vector()" },
		{ "_ZNSsC2Ev", "std::basic_string::basic_string",
		  "std::basic_string<char, std::char_traits<char>, std::allocator<char> >::"
		  "basic_string()" },
		{ "_ZN12_GLOBAL__N_13barEv", "(anonymous namespace)::bar",
		  "(anonymous namespace)::bar()" },
		{ "_ZThn16_N3Foo3barEv", "non-virtual thunk to Foo::bar",
		  "non-virtual thunk to Foo::bar()" },
		{ "_Z3foov.part.0.cold", "foo", "foo() [clone .part.0] [clone .cold]" },
		{ "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt",
		  "core::fmt::Write::write_fmt::h0123456789abcdef" },
		{ "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE.llvm.123",
		  "core::fmt::Write::write_fmt",
		  "core::fmt::Write::write_fmt::h0123456789abcdef [clone .llvm.123]" },
		{ "_ZN45_$LT$foo..Bar$u20$as$u20$core..fmt..Debug$GT$3fmt17h0123456789abcdefE",
		  "<foo::Bar as core::fmt::Debug>::fmt",
		  "<foo::Bar as core::fmt::Debug>::fmt::h0123456789abcdef" },
		{ "_RNvCs1234_7mycrate3foo", "mycrate::foo", "mycrate[3c1c0]::foo" },
		{ "_RINvNtC3std3mem8align_ofjEC3foo.llvm.9", "std::mem::align_of::<usize>",
		  "std[0]::mem::align_of::<usize> [clone .llvm.9]" },
		{ "_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y",
		  "utf8_idents::საჭმელად_გემრიელი_სადილი",
		  "utf8_idents[317d481089b8c8fe]::საჭმელად_გემრიელი_სადილი" },
		{ "_Z3foov.lto_priv.0", "foo", "foo() [clone .lto_priv.0]" },
		{ "_Z3foov.avx2", "foo", "foo() [clone .avx2]" },
		{ "_RNvCs1234_7mycrate3foo.cold", "mycrate::foo", "mycrate[3c1c0]::foo [clone .cold]" },
		{ "_D3app4mainFZv.cold", "app.main", "app.main() [clone .cold]" },
		{ "_D3app4mainFZv.constprop.0.isra.1", "app.main",
		  "app.main() [clone .constprop.0] [clone .isra.1]" },
		{ "_Dmain.cold", "D main", "D main [clone .cold]" },
		{ "_Data.cold", "_Data", "_Data [clone .cold]" },
		{ "_Zfoo.cold", "_Zfoo", "_Zfoo [clone .cold]" },
		{ "camlStdlib__List__map_287.llvm.12", "Stdlib.List.map", "Stdlib.List.map_287 [clone .llvm.12]" },
		{ "caml_alloc_small.part.0", "caml_alloc_small", "caml_alloc_small [clone .part.0]" },
		{ "_ada_hello.cold", "hello", "hello [clone .cold]" },
		{ "_ada_hello.lto_priv.0", "hello", "hello [clone .lto_priv.0]" },
		{ "$s4main3fooyyF.cold.1", "$s4main3fooyyF", "$s4main3fooyyF [clone .cold.1]" },
		{ "foo.part.0.cold", "foo", "foo [clone .part.0] [clone .cold]" },
		{ "foo.cold", "foo", "foo [clone .cold]" },
		{ "main.cold", NULL, NULL },
		{ "main.part.0", "main", "main [clone .part.0]" },
		{ "main.(*T).cold", NULL, NULL },
		{ "example.com/x.cold", NULL, NULL },
		{ "main.init.0", NULL, NULL },
		{ "slices.Max[go.shape.int]", "slices.Max[...]", NULL },
		{ "main.(*box[int]).add.func1", "main.(*box[...]).add.func1", NULL },
		{ "a.b[x[y]].c[z]", "a.b[...]", NULL },		/* as Go does */
		{ "slices.Max[...]", "slices.Max[...]", NULL },
		{ "type..eq.[4]string", NULL, NULL },
		{ "type:.eq.struct { a.b = a.b[int]; c [2]int }", "type:.eq.struct { a.b = a.b[...]int }", NULL },
		{ "int[] a.b(int)", NULL, NULL },
		{ "java.lang.String[] a.b()", NULL, NULL },
		{ "int a.b(long[x])", NULL, NULL },
		{ "java.lang.String[] a.b(byte[])", NULL, NULL },
		{ "instance void [a.b] c.d::e(int32[])[Tier0]", NULL, NULL },
		{ "RegExp:a.[b-c]", NULL, NULL },
		{ "py::f.<locals>[0]:/x.py", NULL, NULL },
		{ "a.b[", NULL, NULL },
		{ "a.b", NULL, NULL },
		{ "a[b]", NULL, NULL },
		{ "a.]b[", NULL, NULL },
		{ "_Zfoo", NULL, NULL },
		{ "_Z", NULL, NULL },
		{ "_R", NULL, NULL },
		{ "_", NULL, NULL },
		{ "", NULL, NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		ck_text(cases[i].mangled, DEMANGLE_SIMPLE, cases[i].simple);
		ck_text(cases[i].mangled, DEMANGLE_FULL, cases[i].full);
		ck_text(cases[i].mangled, DEMANGLE_NONE, NULL);
	}
}
END_TEST

/* Builds "before", n times part, "middle", n times close, "after". The caller frees. */
static char *nest(const char *before, const char *part, size_t n, const char *middle,
		  const char *close, const char *after)
{
	size_t size = strlen(before) + strlen(middle) + strlen(after) + 1 +
		      n * (strlen(part) + strlen(close));
	char *s = malloc(size), *p;

	ck_assert_ptr_nonnull(s);
	p = stpcpy(s, before);
	for (size_t i = 0; i < n; i++)
		p = stpcpy(p, part);
	p = stpcpy(p, middle);
	for (size_t i = 0; i < n; i++)
		p = stpcpy(p, close);
	stpcpy(p, after);
	return s;
}

/* Rust: each tuple holds the one before it twice, by back-references. */
static char *rust_doubling(int n)
{
	static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz"
				     "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char *s = calloc(1, 4096);
	size_t len = 6, prev = 4;	/* "_R" isn't counted */

	ck_assert_ptr_nonnull(s);
	memcpy(s, "_RIC1au", 7);
	len = 7;
	for (int i = 0; i < n; i++) {
		char ref[8];
		size_t at = len - 2, v = prev - 1;

		if (v < 62)
			snprintf(ref, sizeof(ref), "B%c_", digits[v]);
		else
			snprintf(ref, sizeof(ref), "B%c%c_", digits[v / 62], digits[v % 62]);
		len += (size_t)snprintf(s + len, 4096 - len, "T%s%sE", ref, ref);
		prev = at;
	}
	snprintf(s + len, 4096 - len, "E");
	return s;
}

/* C++: each function type has the one before it as result and parameter, by substitutions. */
static char *cplus_doubling(const char *after)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char *s = calloc(1, 4096);
	size_t len;

	ck_assert_ptr_nonnull(s);
	len = (size_t)snprintf(s, 4096, "_Z1fIiEvP1A");
	for (int i = 0; i < 34; i++)
		len += (size_t)snprintf(s + len, 4096 - len, "FS%c_S%c_E", digits[i], digits[i]);
	snprintf(s + len, 4096 - len, "%s", after);
	return s;
}

static void *hostile(void *arg)
{
	char *names[] = {
		nest("_Z1f", "P", 4000, "i", "", ""),
		nest("_Z", "N1A", 1000, "", "E", ""),
		nest("_Z1f", "1AI", 900, "i", "E", ""),
		nest("_Z1fI", "J", 1500, "", "E", "Evv"),
		nest("_Z1fI", "L_ZN1AcvT_I", 24, "i", "EEvE", "Evv"),
		nest("_ZN1AcvT_I", "XcvT_I", 24, "i", "EE", "EEv"),
		nest("_Z1fIiEv", "RT_", 600, "", "1AIiE", ""),
		nest("_Z1fIX", "ng", 1900, "Li1E", "", "Evv"),
		nest("_Z", "Z1fvE", 700, "1x", "", ""),
		nest("_ZN", "1a", 2000, "", "", "Ev"),
		nest("_RIC1a", "T", 2000, "", "E", "E"),
		nest("_RMC1a", "R", 3900, "u", "", ""),
		nest("_RNvC1a", "Nv", 1, "1a", "", ""),
		rust_doubling(5), rust_doubling(60), rust_doubling(300),
		cplus_doubling(""), cplus_doubling("DpSX_"),
		nest("_D1a", "1b", 500, "", "FZv", ""),
		nest("_D1aF", "A", 900, "i", "Zv", ""),
		nest("_D1aF", "QbQd", 6, "i", "Zv", ""),
		nest("_D1aF", "HQbQd", 200, "i", "Zv", ""),
		nest("camlA__", "$41", 1300, "", "_1", ""),
		nest("_Z1f", "i", 5000, "", "", ""),	/* over DEMANGLE_MAX_MANGLED */
	};

	(void)arg;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		for (int mode = DEMANGLE_SIMPLE; mode <= DEMANGLE_FULL; mode++) {
			char *text cleanup(freep_cleanup) = NULL;
			int r = demangle(names[i], (enum demangle_mode)mode, &text);

			ck_assert(r == 0 || r == -ENOENT);
			ck_assert(r || strlen(text) <= DEMANGLE_MAX_TEXT);
		}
		free(names[i]);
	}
	return NULL;
}

/* 1 MiB of stack is promised; sanitizers need several times as much for the same calls. */
START_TEST(hostile_names)
{
	size_t stack = ADDRESS_SANITIZER ? 16u << 20 : 1u << 20;
	struct timespec begin, end;
	pthread_attr_t attr;
	pthread_t thread;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	ck_assert_int_eq(pthread_attr_init(&attr), 0);
	ck_assert_int_eq(pthread_attr_setstacksize(&attr, stack), 0);
	ck_assert_int_eq(pthread_create(&thread, &attr, hostile, NULL), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	pthread_attr_destroy(&attr);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	ck_assert_int_lt(end.tv_sec - begin.tv_sec, 2);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("demangle");
	TCase *t = tcase_create("demangle");
	SRunner *runner;
	int failed;

	tcase_set_timeout(t, 30);
	tcase_add_test(t, spellings);
	tcase_add_test(t, hostile_names);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
