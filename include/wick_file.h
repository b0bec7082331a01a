/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* wick_file.h - what BPF knows of a file: the value of map `files`, under struct wk_file_key.
 *
 * BPF makes it when it meets the file; userspace replaces it when the unwind rows are in tables[id].
 */
#ifndef WICK_FILE_H
#define WICK_FILE_H

#include "wick_rows.h"

enum wk_rows_state {
	WK_ROWS_COMING,		/* being compiled, or nobody compiles */
	WK_ROWS_HERE,
	WK_ROWS_NONE,		/* the file has no unwind information: frame pointers */
	WK_ROWS_ANON,		/* no file of code but memory with a name: shared anonymous memory, a memfd
				 * into which code is made. Frames keep their addresses, as in other
				 * anonymous memory */
};

struct wk_file {
	__u32 id;
	__u32 rows;		/* enum wk_rows_state */
	struct wk_table table;	/* of WK_ROWS_HERE */
};

WK_ASSERT(sizeof(struct wk_file) == 24, "no hidden padding");

#endif
