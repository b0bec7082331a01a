/* base.h - the few words every file of wick uses.
 *
 * Errors:    functions return 0 or a negative errno; out-parameters come last, are named ret or
 *            ret_x and stay untouched on failure. Libraries neither print nor exit.
 * Messages:  where a number can't say what the user must change, the function also fills a
 *            struct err with one complete sentence ("--freq: '0' is not a number from 1 to
 *            1000"). Whoever gives up prints it, once. NULL is accepted: nobody wants the text.
 * Ownership: "copies" (caller keeps its own), "borrowed until X", "takes" (callee owns it now,
 *            even on failure). Destructors accept NULL and half-built objects.
 * Cleanup:   a local that owns something is declared with cleanup(name_cleanup) and assigned in
 *            the same statement; ownership leaves a scope through take(). Never with goto.
 */
#ifndef WICK_BASE_H
#define WICK_BASE_H

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define must_check	 __attribute__((warn_unused_result))
#define printf_like(f, a) __attribute__((format(printf, f, a)))
#define cleanup(f)	 __attribute__((cleanup(f)))
#define maybe_unused	 __attribute__((unused))

#define DEFINE_CLEANUP(name, type, release)                                                        \
	static inline maybe_unused void name##_cleanup(type *p)                                          \
	{                                                                                          \
		release(*p);                                                                       \
	}

/* Hands a pointer over: the scope no longer owns it. */
#define take(p)                                                                                    \
	({                                                                                         \
		__typeof__(p) taken_ = (p);                                                        \
		(p) = NULL;                                                                        \
		taken_;                                                                            \
	})

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)     ((a) < (b) ? (a) : (b))
#define MAX(a, b)     ((a) > (b) ? (a) : (b))

DEFINE_CLEANUP(free, void *, free)
static inline maybe_unused void freep_cleanup(void *p)	/* for a local of any pointer type */
{
	free(*(void **)p);
}
static inline maybe_unused void fd_cleanup(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}
static inline maybe_unused void file_cleanup(FILE **f)
{
	if (*f)
		fclose(*f);
}

/* One sentence for the user, without a final newline. Longer text is cut. */
struct err {
	char msg[512];
};

/* Formats into e (unless it is NULL) and returns r, so that "return err_set(e, -EINVAL, ...)"
 * says everything in one line. r must be negative. */
int printf_like(3, 4) err_set(struct err *e, int r, const char *fmt, ...);

/* Writes all n bytes, however many calls that takes. 0 or -errno; some may have been written then. */
int must_check write_all(int fd, const void *p, size_t n);

/* Grows an array of elements of `size` bytes to hold at least `need`: *ret_p and *cap change
 * only on success. Doubles, so that n appends cost O(n). 0, -ENOMEM, or -E2BIG when the bytes
 * would not fit in half the address space. */
int must_check array_grow(void *ret_p, size_t *cap, size_t need, size_t size);

#endif
