/* fileopen.h - the very file whose code was sampled, opened by what BPF says of it.
 *
 *	char path[PATH_MAX];
 *	int fd = fileopen(&event, path, sizeof(path));	// the process is running, or was
 *
 * First through the mapping itself (/proc/PID/map_files/START-END), which survives deletion,
 * replacement, mount namespaces and memfd; if the process is gone, by the path that BPF read from the
 * dentries, beneath each mount of that device. Either way the opened file must be the one that was
 * running: same inode and device, or, where the file system shows other numbers to stat(2) than to
 * the kernel (overlayfs, btrfs), same modification time.
 *
 * Of what may be a copy of a file's code in anonymous memory (WK_DEV_COPIED) it is the file that is opened, if
 * the bytes are its own: of up to FILEOPEN_COPY_PAGES pages, the first and the last among them.
 *
 * Hostile input: only regular files are opened, without following a final link, so that a FIFO can't
 * block us and a device can't be poked. Nothing is read. A file that somebody serves (mounts.h) isn't opened, as
 * that may take for ever: what is returned then only names it (O_PATH), see foreign.h. A process of another user
 * namespace is looked at by a worker (offload.h): it can hold up who asks for its mappings.
 * Cost: about five system calls through the mapping; by path also /proc/self/mountinfo.
 * Threads: any.
 */
#ifndef WICK_SYMBOL_FILEOPEN_H
#define WICK_SYMBOL_FILEOPEN_H

#include <sys/stat.h>

#include "base/base.h"
#include "wick_abi.h"

#define FILEOPEN_COPY_PAGES 256

/* A descriptor that the caller closes (or a name, as above), or -errno of the way through the mapping: -ESRCH (no
 * process to ask), -ENOENT, -EPERM, -ESTALE (another file is there now), -EINVAL (not a regular file), -EMFILE,
 * -ETIMEDOUT or -EBUSY (offload.h), -ENOEXEC (no copy of a local file's code). path gets the file's name as the process
 * sees it, also when it can't be opened; "" if nothing is known. */
int must_check fileopen(const struct wk_file_event *e, char *path, size_t size);

/* Opens a path for reading if it leads to a regular file, without any effect on whatever else it may
 * lead to. flags: O_NOFOLLOW or 0. A descriptor and its *ret_st, or -errno; -EINVAL: not a regular
 * file. */
int must_check fileopen_regular(const char *path, int flags, struct stat *ret_st);

/* Whether a file of these numbers is the key's; not where stat(2) shows other numbers. */
bool fileopen_same_inode(const struct wk_file_key *key, const struct stat *st);

/* Whether a path leads to the file from our root, as far as that is known without asking anybody: whose file is in
 * use, its directories are, too. opened: of the file, if it is open; of a copied one only that tells. */
bool fileopen_on_host(const struct wk_file_key *key, const struct stat *opened, const char *path);

/* Whether the file is no longer under the path that map_files shows for it: then " (deleted)" is
 * cut off the path. By its link count and its directory entry's name, as a file may be called so. */
bool fileopen_deleted(const struct wk_file_event *e, const struct stat *st, char *path);

/* The path within its file system, from the names that BPF sent; "" if there are none. */
void fileopen_event_path(const struct wk_file_event *e, char *ret, size_t size);

#endif
