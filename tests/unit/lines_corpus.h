/* lines_corpus.h - small programs with debug information, for tests: the seeds of tests/fuzz/lines_fuzz.c.
 * c-2, c-4, c-5 (the version of DWARF), clang-5, zlib, zlib-gnu (objcopy made it of zlib) and split are this, /src/a.c, with -O2:
 *
 *	1  static inline __attribute__((always_inline)) int f(int x) { return x * 3 + 1; }
 *	2  static inline __attribute__((always_inline)) int g(int x) { return f(x) ^ f(x + 1); }
 *	3  int h(int x)
 *	4  {
 *	5  	if (x > 3) { int y = g(x); return y + g(y); }
 *	6  	return x;
 *	7  }
 *	8  void _start(void) { volatile int s = h(5); for (;;) s = h(s); }
 *
 * vmlinux is the same behind a nop called _stext and _text, linked as a kernel is, at 0xffffffff81000000, with the
 * build id 01 02 ... 14 (ld -Ttext, --build-id).
 *
 * gcc made two functions of h, one inlined in the other and in _start. cxx-4 and cxx-5 are /src/b.cc:
 *
 *	1  namespace ns { template <class T> struct B { T v; ... T add(T x) { return [&](T y) { ... }(x); } };
 *	2  __attribute__((noinline)) int go(int x) { B<int> b{x}; return b.add(x) * 2; } }
 *	3  extern "C" void _start() { volatile int s = ns::go(5); for (;;) s = ns::go(s); }
 */
#ifndef WICK_TESTS_LINES_CORPUS_H
#define WICK_TESTS_LINES_CORPUS_H

#include "made_elf.h"

#include "base/clock.h"
#include "symbol/linechain.h"

#define CORPUS "tests/fuzz/corpus/lines/"

struct corpus {
	int fd;
	struct elf *e;
	uint64_t text, size;	/* its code */
};

static inline struct corpus corpus_open(const char *name)
{
	struct corpus c;
	const struct elf_section *s;
	char path[256];

	snprintf(path, sizeof(path), CORPUS "%s", name);
	c.fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_msg(c.fd >= 0, "%s: run this from the root of the sources", path);
	ck_assert_int_eq(elf_open_fd(c.fd, &c.e, NULL), 0);
	s = elf_section_by_name(c.e, ".text");
	c.text = s ? s->addr : 0;
	c.size = s ? s->size : 0;
	return c;
}

static inline void corpus_close(struct corpus *c)
{
	elf_free(c->e);
	close(c->fd);
}

static inline uint64_t in_a_minute(void)
{
	return clock_monotonic() + UINT64_C(60000000000);
}

/* "f:1<g:2<h:5" */
static inline const char *chain_text(const struct line_chain *c)
{
	static char text[4096];
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s:%u", i ? "<" : "",
				      c->v[i].name ? c->v[i].name : "?", c->v[i].line);
	return text;
}

#endif
