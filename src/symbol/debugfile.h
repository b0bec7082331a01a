/* debugfile.h - the separate debug file of a stripped one, on this host or in its container.
 *
 *	struct debugfile d;
 *	int r = debugfile_open(elf, "/usr/bin/perl", DEBUGFILE_DIR, &d);
 *
 *	if (!r) {
 *		r = symtab_builder_add_elf(builder, d.elf);
 *		debugfile_close(&d);
 *	}
 *
 * Looked for, in this order, with DIR and LINK for the file's own directory and the name in its
 * .gnu_debuglink:
 *	DIRECTORY/.build-id/xx/yyyy.debug	of the build id xxyyyy
 *	DIR/LINK, DIR/.debug/LINK, DIRECTORY/DIR/LINK
 *	DIRECTORY/DIR/LINK once more without a leading /usr of DIR: packages built before /lib
 *						became a link to /usr/lib
 *
 * and if it is nowhere, by the build id from the servers of debuginfod.h, where that is wanted.
 *
 * First on this host, with DIR only if the file itself is here under that path; then, for a file
 * of a container, beneath the root of a process that maps it, no link leading out of there (pid.h).
 *
 * A file is taken if it has .symtab, is for the same machine, and is proven to belong: by an equal
 * build id, or, where one of the two has none, by the CRC-32 in .gnu_debuglink over the whole file
 * (GDB manual, "Separate Debug Files"). A file with another build id is never taken.
 *
 * Who may write a file of the same build id into a container can choose the names that its code is
 * shown with: its own, and those of others that map the very same file, such as replicas of an image.
 *
 * Hostile input: LINK is a plain file name or ignored. What lies beside a binary belongs to its
 * owner: only a regular file is opened (never a FIFO or a device), and no more than
 * DEBUGFILE_CRC_MAX bytes of it are summed up.
 *
 * Ownership: the debugfile owns its descriptor and its elf until debugfile_close.
 * Cost: up to five failed openat(2); the CRC about 1 ms a MiB, only without build ids.
 * Errors: -ENOENT (none found, or none that belongs), -ENOMEM.
 */
#ifndef WICK_SYMBOL_DEBUGFILE_H
#define WICK_SYMBOL_DEBUGFILE_H

#include "elf/elf.h"

#define DEBUGFILE_DIR	  "/usr/lib/debug"
#define DEBUGFILE_CRC_MAX (512u << 20)	/* bytes of a file that is only known by its CRC */

struct debuginfod;

struct debugfile {
	struct elf *elf;
	int fd;
};

struct debugfile_where {
	const char *path;	/* absolute, of the file as its process sees it; NULL: unknown */
	bool on_host;		/* it is here, too */
	int process;		/* pid_open(): of one that maps it; -1: none */
	uint64_t deadline;	/* clock_monotonic() for all sums; 0: none */
	const char *directory;	/* NULL: DEBUGFILE_DIR */
	struct debuginfod *servers;	/* NULL: none is asked */
	/* Gets the build id that servers were asked for and that isn't there yet; or left as it is. NULL:
	 * nobody waits for it. */
	struct debugfile_await *await;
};

/* A debug file that may come. */
struct debugfile_await {
	unsigned char id[ELF_BUILD_ID_MAX];
	size_t size;		/* 0: none is waited for */
};

int must_check debugfile_find(const struct elf *e, const struct debugfile_where *where,
			      struct debugfile *ret);

/* The same on this host alone. path: absolute, of the file behind e on this host; NULL: unknown, then
 * only the build id can help. directory: DEBUGFILE_DIR, or another that is laid out alike. */
int must_check debugfile_open(const struct elf *e, const char *path, const char *directory,
			      struct debugfile *ret);
void debugfile_close(struct debugfile *d);

/* The file to which dwz moved what several debug files share, of a file with .gnu_debugaltlink: by its
 * build id in DIRECTORY/.build-id, in DIRECTORY/.dwz, or where an absolute link says; always only if it
 * has that build id.
 * Errors as above; -ENOENT also without such a section. */
int must_check debugfile_alt(const struct elf *e, const struct debugfile_where *where,
			     struct debugfile *ret);

#endif
