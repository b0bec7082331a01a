/* symbolizer.h - from a frame of the stack map to a name.
 *
 *	struct symbol_frame f;
 *	r = symbolizer_resolve(s, frame, &f);
 *	f.name ? f.name : module+0xfunction
 *
 * Where names come from, in this order:
 *	kernel address	/proc/kallsyms (functions, modules, BPF programs); unreadable: "[kernel]". Lines and
 *			inlined calls from vmlinux.h, if it is given
 *	file offset	PT_LOAD gives the ELF address; then .symtab and .dynsym of that file, its
 *			debug file, mini debug info, Go's table, PLT stubs: in the order of sources.h
 *	[vdso]		the same from the image in our own memory: one for the whole system
 *	raw address	none: it means something in its process only, so the recorder makes it
 *	code		a piece of code of one process, named by its runtime (process.h)
 * Lines and inlined calls come from debug information where it is at hand (lines.h). The outermost
 * function keeps the symbol table's name, which is that of the code; its debug information may have
 * another for it (aliases, clones). Code without a symbol is named by its debug information. An
 * inlined call is named by its linkage name, demangled like a symbol, else by its own name in its
 * scope: "ns::type::name".
 *
 * A name is given only inside a symbol's own bytes. Elsewhere .eh_frame tells where the function
 * begins (bounds.h), so that all of its addresses can be shown as one: module+0xfunction.
 *
 * Each unique (file, address) is resolved once, ELF files are read when the first of their frames is, and
 * both are kept within a budget of memory:
 *
 *	symbolizer_trim(s);		// after each profile, for as long as an agent runs
 *
 * Tables (symbols, function bounds) fill at most the budget, and SYMBOLIZER_FDS_MAX descriptors; when another is loaded the one asked
 * about least lately goes, and is read again when it has to answer for a new address. Answers
 * are given up for whole files, least lately asked first, when they are over half of the budget.
 *
 * A file whose debug file is being fetched (debuginfod.h) is named with what is there. When it has come, the next
 * symbolizer_trim forgets the file's answers, and all of it is named anew. A file that can't be opened any more
 * keeps what it has.
 *
 * Everything returned, numbers of modules too, is valid until the next symbolizer_trim. A module keeps its
 * number for as long as it is known.
 * Threads: one at a time; files may be announced meanwhile (files.h). Cost: a hash look-up; the first time a binary search, the first time of a file its
 * symbol tables (about 150 ns a symbol), the first time without a name its .eh_frame (30 ns an
 * FDE).
 */
#ifndef WICK_SYMBOLIZER_H
#define WICK_SYMBOLIZER_H

#include "base/base.h"
#include "elf/elf.h"
#include "symbol/chains.h"
#include "symbol/demangle.h"
#include "symbol/files.h"
#include "symbol/kallsyms.h"
#include "symbol/lines.h"
#include "symbol/process.h"
#include "symbol/sources.h"
#include "symbol/vmlinux.h"

struct symbolizer;

enum module_kind { MODULE_KERNEL, MODULE_FILE, MODULE_VDSO, MODULE_ANON, MODULE_SPECIAL };

/* What a frame lies in: one version of one file, the kernel or one of its modules, ... */
struct module {
	enum module_kind kind;
	const char *path;	/* "/usr/bin/perl", "[kernel.kallsyms]", "[ext4]", "[vdso]", "[jit]", "//anon" */
	const char *name;	/* its last part, for module+0xoffset */
	char build_id[ELF_BUILD_ID_HEX];	/* "" if it has none */
	bool executable;	/* a program rather than a library */
	bool has_symbols;	/* its own functions, not just those it exports, have names */
	int error;		/* why it could not be read, negative errno; 0 */
	int limited;		/* -E2BIG, -ETIME: symtab.h's limits or SYMBOLIZER_FILE_NS cost names; 0 */
	uint64_t start, limit, offset;	/* of its code: ELF addresses and file offset; 0 if unknown */
};

struct symbol_frame {
	uint32_t module;	/* symbolizer_module() */
	uint64_t address;	/* ELF address, kernel address, or as sampled for anonymous memory */
	uint64_t function;	/* where its function starts, in the same terms; 0: unknown */
	const char *name;	/* demangled; NULL: no name known */
	const char *system_name;/* as in the symbol table; NULL like name */
	/* From debug information: innermost inlined call first, last the function itself, named as
	 * above. Borrowed until the next symbolizer_resolve. n 0: there is none. */
	const struct symbol_line *lines;
	size_t nlines;
};

struct symbolizer_options {
	enum demangle_mode demangle;
	const struct kallsyms *kallsyms;	/* borrowed; NULL: kernel names unreadable */
	struct processes *processes;	/* borrowed; NULL: code of processes has no names */
	uint64_t bytes;		/* budget; 0: SYMBOLIZER_BYTES_DEFAULT */
	bool want_lines;
	struct lines_options lines;		/* if wanted; its budgets are lines.h's */
	const struct vmlinux *vmlinux;	/* borrowed; with lines: those of the core kernel. NULL: none */
	struct debuginfod *servers;	/* borrowed; NULL: debug files that aren't here are nowhere */
};

/* Holds the tables of what a busy host runs at a time: node has 1.5 MiB, cc1 0.4, libc 0.1; a browser with
 * a million functions 12. */
#define SYMBOLIZER_BYTES_DEFAULT (16ULL << 20)
#define SYMBOLIZER_FILE_NS	 3000000000ULL	/* to read the symbols of one file */
#define SYMBOLIZER_FDS_MAX	 128	/* descriptors of tables whose names stay in their files */

int must_check symbolizer_new(const struct symbolizer_options *o, struct files *files,
			      struct symbolizer **ret);
void symbolizer_free(struct symbolizer *s);
DEFINE_CLEANUP(symbolizer, struct symbolizer *, symbolizer_free)

/* Any frame word (wick_abi.h). 0; -ENOMEM. */
int must_check symbolizer_resolve(struct symbolizer *s, uint64_t frame, struct symbol_frame *ret);

const struct module *symbolizer_module(const struct symbolizer *s, uint32_t module);
/* Numbers are below this; those that are no module's have an empty path. */
uint32_t symbolizer_module_count(const struct symbolizer *s);

/* Whether a debug file has come for a file that was named without: symbolizer_trim has something to do. */
bool symbolizer_improvable(const struct symbolizer *s);
/* Brings memory below the budget. What was returned before is no longer valid. Budgets of time are
 * whole again. */
void symbolizer_trim(struct symbolizer *s);
/* Another table of the kernel's names, or NULL; borrowed. Like a trim for all kernel frames. */
void symbolizer_set_kallsyms(struct symbolizer *s, const struct kallsyms *k);

struct symbolizer_stats {
	uint32_t files;			/* known now; by where their names come from: */
	uint32_t by_source[SYMBOLS_COUNT];
	uint32_t unreadable;		/* of them: module.error is set */
	uint32_t limited;		/* module.limited is set */
	uint64_t symtabs_bytes, bounds_bytes, answers_bytes;	/* memory now */
	uint64_t loads, reloads;	/* tables read; of these again, after they were dropped */
	uint64_t tables_dropped, files_dropped;	/* for the budget */
	uint64_t improved;		/* files named anew, with a debug file that has come */
};
struct symbolizer_stats symbolizer_stats(const struct symbolizer *s);
/* How it stands with the lines of a module, and of all; zeros without want_lines. */
struct lines_state symbolizer_lines_state(const struct symbolizer *s, uint32_t module);
struct lines_stats symbolizer_lines_stats(const struct symbolizer *s);

#endif
