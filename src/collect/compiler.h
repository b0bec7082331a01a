/* compiler.h - compile unwind tables in the background, most wanted for its size first.
 *
 *	r = compiler_new(&c);
 *	r = compiler_submit(c, id, fd, path);	// a file was met; fd stays the caller's
 *	compiler_want(c, id, n);		// n more samples lay in it
 *	... poll(compiler_fd(c)) ...
 *	while (compiler_take(c, &done))		// finished ones; the caller owns done.table
 *
 * Two threads, one of them for small files only, so that libc never waits for a browser. Slightly
 * below normal priority and no lower: it is a few tenths of a second once, stacks wait for the
 * result, and beside four busy processes a CPU nice 5 gets 7 % of it, nice 1 gets 17 %. They only read files and their own queue. compiler_free
 * waits for the files at hand.
 */
#ifndef WICK_COMPILER_H
#define WICK_COMPILER_H

#include "base/base.h"

struct compiler;
struct unwtab;

enum { COMPILER_NICE = 1 };

struct compiled {
	uint32_t id;
	int error;		/* -ENOENT: the file has no unwind information; others: broken */
	struct unwtab *table;	/* NULL on error */
};

int must_check compiler_new(struct compiler **ret);
void compiler_free(struct compiler *c);
DEFINE_CLEANUP(compiler, struct compiler *, compiler_free)

/* Copies fd (dup) and path. path helps to find the separate debug file, for code that the file itself
 * doesn't describe; NULL: not known on this host, then only the build id does. 0, -ENOMEM, -EMFILE. */
int must_check compiler_submit(struct compiler *c, uint32_t id, int fd, const char *path);
void compiler_want(struct compiler *c, uint32_t id, uint64_t samples);
int compiler_fd(const struct compiler *c);	/* readable when something is finished */
bool compiler_take(struct compiler *c, struct compiled *ret);
/* Files submitted and not yet taken. */
uint32_t compiler_pending(struct compiler *c);

/* What a worker does with one file, in the calling thread; path as above. held may only name it (foreign.h). 0, or
 * errors of foreign_readable(), elf_open_fd() and unwtab_compile(). */
int must_check compile_file(int held, const char *path, struct unwtab **ret);

#endif
