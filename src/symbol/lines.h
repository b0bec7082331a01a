/* lines.h - source lines and inlined calls of sampled code, of all files, within budgets.
 *
 *	struct lines_options o = LINES_OPTIONS_DEFAULT;
 *	struct lines *l;
 *	struct line_chain c;
 *	r = lines_new(&o, &l);
 *	struct lines_file f = { .number = module, .where = &where, .open = open_it };
 *	r = lines_lookup(l, &f, vaddr, &c);	// 0: c has n >= 1 frames
 *
 * Where they come from, in this order: Go's function table (golines.h: quicker than Go's DWARF, and
 * stripping leaves it); the file's own DWARF; the DWARF of its separate debug file (debugfile.h). With what
 * was split off or moved away: .dwo, .dwp (splitdwarf.h), .gnu_debugaltlink.
 *
 * Budgets, because debug information may be larger than everything else on a host, and hostile:
 *	max_bytes	debug sections in memory, and what is made from them. A file that needs more
 *			has no lines; otherwise the file not asked for longest is closed
 *	max_ns		time since lines_begin for all files together; one file may use a quarter of
 * At most LINES_OPEN_MAX files are open at a time.
 * What was left out by a budget is counted and known by file: lines_state.
 *
 * Ownership: opens and closes files by itself. A chain is borrowed until the next call.
 * Threads:   one.
 * Cost:      debuginfo.h, golines.h.
 * Errors:    -ENOENT (nothing is known of the address, or a budget is used up), -ENOMEM.
 */
#ifndef WICK_SYMBOL_LINES_H
#define WICK_SYMBOL_LINES_H

#include "elf/elf.h"
#include "symbol/debugfile.h"
#include "symbol/linechain.h"

#define LINES_BYTES_DEFAULT (256u << 20)
#define LINES_NS_DEFAULT    UINT64_C(10000000000)
#define LINES_FILES_MAX	    65536		/* the rest has no lines */
#define LINES_OPEN_MAX	    64			/* with debug information; three descriptors each at most */

struct lines_options {
	bool inlines;		/* false: only the function itself, at the line of the address */
	uint64_t max_bytes, max_ns;
};

#define LINES_OPTIONS_DEFAULT                                                                      \
	{ .inlines = true, .max_bytes = LINES_BYTES_DEFAULT, .max_ns = LINES_NS_DEFAULT }

struct lines;

int must_check lines_new(const struct lines_options *o, struct lines **ret);
void lines_free(struct lines *l);
DEFINE_CLEANUP(lines, struct lines *, lines_free)

/* A new profile begins: the time budget is whole again, and files that ran out of it get another
 * try. */
void lines_begin(struct lines *l);

struct lines_file {
	uint32_t number;	/* any that stands for this file, below LINES_FILES_MAX, small ones first */
	const struct debugfile_where *where;	/* of its debug file; read after open, which may set it */
	int (*open)(void *ctx);	/* a descriptor for reading, taken; negative errno */
	void *ctx;
};

int must_check lines_lookup(struct lines *l, const struct lines_file *file, uint64_t vaddr,
			    struct line_chain *ret);
/* The number is about to stand for another file. */
void lines_forget(struct lines *l, uint32_t number);

/* The debug file that servers were asked for (debuginfod.h): when it is there, forget the file. */
const struct debugfile_await *lines_await(const struct lines *l, uint32_t number);

/* How it stands with a file. */
struct lines_state {
	bool found;		/* there are lines */
	int error;		/* why not: -ENOENT (no debug information), -ETIME, -E2BIG, -ENOTSUP
				 * (a compression), -EBADMSG, ...; 0 */
	uint64_t refused;	/* look-ups that a budget, or a missing split file, cost their answer */
	const char *hint;	/* what could be done about it, one phrase; NULL */
};
struct lines_state lines_state(const struct lines *l, uint32_t number);

struct lines_stats {
	uint64_t evicted;	/* files closed for memory */
	uint64_t refused;	/* lines_state.refused of all */
	uint64_t ns;		/* since lines_begin */
	uint64_t bytes;		/* in memory now */
};
struct lines_stats lines_stats(const struct lines *l);

#endif
