/* debugcache.h - fetched debug files on disk, laid out as libdebuginfod does: DIR/BUILD-ID/debuginfo.
 *
 *	r = debugcache_directory(NULL, path, sizeof(path), &e);	// made, if it wasn't there
 *	int fd = debugcache_open(path, hex);
 *	left = debugcache_limit(path, 1 << 30, hex);	// after another has come
 *
 * The directory is DEBUGINFOD_CACHE_PATH if that is set, so that gdb and others share it; else
 * "debuginfod" below the state directory, which is the first one of STATE_DIRECTORY (systemd.exec(5)), or
 * DEBUGCACHE_STATE. Beyond the limit the files that were read least lately go, whoever fetched them.
 *
 * Hostile input: no link is followed to a file; only regular files are opened; whether the content is what the
 * build id asks for is for the caller to check.
 * Threads: any. Cost: debugcache_limit looks at every entry.
 */
#ifndef WICK_SYMBOL_DEBUGCACHE_H
#define WICK_SYMBOL_DEBUGCACHE_H

#include "base/base.h"

#define DEBUGCACHE_STATE "/var/lib/wick"

/* wanted: another than the above, or NULL. 0; -ENAMETOOLONG, -errno with a sentence. */
int must_check debugcache_directory(const char *wanted, char *ret, size_t size, struct err *e);
/* A descriptor, and the file counts as read now. -ENOENT: it isn't there, or is empty (libdebuginfod notes
 * so what servers haven't got); -errno. */
int must_check debugcache_open(const char *directory, const char *hex);
void debugcache_drop(const char *directory, const char *hex);
/* Removes files until the others fill at most `bytes`; never that of `keep`. The bytes that are left. */
uint64_t debugcache_limit(const char *directory, uint64_t bytes, const char *keep);

#endif
