/* perfmap.h - perf-PID.map, the text file in which a runtime lists its code: a line for each function,
 * "START SIZE NAME", the numbers in hexadecimal with or without 0x, the name to the end of the line.
 * (linux/tools/perf/Documentation/jit-interface.txt)
 *
 *	struct perfmap m;
 *	perfmap_init(&m, fd);				// takes the descriptor
 *	r = perfmap_update(&m, &codes, deadline, &changed);	// what was appended since; again later
 *	r = perfmap_name(&m, piece->where, addr, &start, name, sizeof(name));
 *
 * The file belongs to the profiled process and is hostile: lines that make no sense are skipped and
 * counted, long names are cut, the file may shrink, grow or change at any moment. A file that was
 * written anew (it is shorter, or its bytes before the place where we stopped have changed) is read
 * from its start, into an empty map. A last line without its newline is read once it is complete.
 *
 * Cost: 100 to 200 MB/s; perfmap_name one pread.
 */
#ifndef WICK_SYMBOL_PERFMAP_H
#define WICK_SYMBOL_PERFMAP_H

#include "symbol/codemap.h"

enum {
	PERFMAP_NAME_MAX = 1023,	/* bytes; the rest is cut */
	PERFMAP_LINE_MAX = 16 << 10,	/* a longer line is skipped */
	PERFMAP_TAIL = 64,
};
#define PERFMAP_BYTES_MAX (256ULL << 20)	/* of a file; the rest isn't read */
#define PERFMAP_ADDR_MAX  (1ULL << 56)	/* user addresses of every architecture lie below */

struct perfmap {
	int fd;
	uint64_t read;		/* bytes, whole lines */
	char tail[PERFMAP_TAIL];/* the last of them */
	uint64_t lines, bad;	/* read; of them no entries */
	uint32_t rewrites;	/* times it was read anew */
	bool skipping;		/* inside of a line over PERFMAP_LINE_MAX */
	bool capped;		/* the file is larger than PERFMAP_BYTES_MAX */
};

struct perfmap_line {
	uint64_t start, end;
	const char *name;	/* borrowed from the line, not terminated; may hold any byte but a newline */
	size_t name_len;
};

/* One line, without its newline. 0, or -EINVAL: not an entry (an empty range too). */
int must_check perfmap_parse_line(const char *line, size_t len, struct perfmap_line *ret);

void perfmap_init(struct perfmap *m, int fd);	/* takes fd */
void perfmap_close(struct perfmap *m);
/* Reads on until the file's end or the deadline (CLOCK_MONOTONIC ns), adds what it finds to codes and
 * settles them. `where` is the line's place in the file. *ret_changed: codes have changed. 0; -EAGAIN:
 * the time was up, call again; -ENOMEM, -errno of reading. */
int must_check perfmap_update(struct perfmap *m, struct codemap *codes, uint64_t deadline,
			      bool *ret_changed);
/* The entry at `where`, if it still is one that holds addr. 0; -ESTALE: it isn't. */
int must_check perfmap_name(const struct perfmap *m, uint64_t where, uint64_t addr,
			    uint64_t *ret_start, char *name, size_t size);

#endif
