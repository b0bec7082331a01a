/* files.h - the files whose code was sampled: opened when BPF announces them, once each.
 *
 *	r = files_announce(files, &event);	// at once: a process may live 30 ms
 *	const struct file *f = files_get(files, WK_FRAME_FILE_ID(frame));
 *
 * A file is opened through the mapping itself (/proc/PID/map_files/START-END), which survives
 * deletion, replacement, mount namespaces and memfd; if the process is gone already, by the path
 * that BPF read from the dentries, beneath each mount of that device. Either way the opened file
 * must be the one that was running: same inode and device, or, where the file system shows other
 * numbers to stat(2) than to the kernel (overlayfs, btrfs), same modification time.
 *
 * Only regular files are opened, without following a final link, so that a FIFO can't block us and
 * a device can't be poked. Nothing is read here.
 *
 * Ownership: files own their descriptors until files_free or eviction.
 */
#ifndef WICK_FILES_H
#define WICK_FILES_H

#include "base/base.h"
#include "wick_abi.h"

struct files;

struct file {
	struct wk_file_key key;
	int fd;			/* -1: it could not be opened */
	int open_error;		/* 0, or the negative errno of the last try */
	char *path;		/* as the process sees it, never NULL; " (deleted)" is cut off */
	bool deleted;		/* no longer under that path */
	bool on_host;		/* the path leads to this very file from our root, too */
};

/* max_fds: descriptors to hold at most; beyond it files stay unopened (-EMFILE in open_error). */
int must_check files_new(uint32_t max_fds, struct files **ret);
void files_free(struct files *f);
DEFINE_CLEANUP(files, struct files *, files_free)

/* Opens what the event announces. 0 also when it can't be opened: *ret says how it went, and the
 * file keeps at least a name. -ENOMEM, -EINVAL (an id out of range). */
int must_check files_announce(struct files *f, const struct wk_file_event *event,
			      const struct file **ret);

/* NULL: never announced. Borrowed until files_free. */
const struct file *files_get(const struct files *f, uint32_t id);
uint32_t files_count(const struct files *f);	/* announced */
uint32_t files_unopened(const struct files *f);

#endif
