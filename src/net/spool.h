/* spool.h - profiles on disk that a server couldn't take yet.
 *
 *	r = spool_open(&(struct spool_options){ "/var/lib/wick/x", 64 << 20, 3600 s }, &s, &e);
 *	r = spool_append(s, it, &pos);			// newest
 *	r = spool_next(s, now_ns, &it, &pos);		// oldest that nobody holds
 *	spool_done(s, &pos);				// delivered: never again
 *	spool_release(s, &pos);				// not yet: give it to the next who asks
 *
 * A directory holds segments, NUMBER.seg in order of time, that are only appended to; a segment with
 * nothing undelivered in it is removed. A record is a header (a magic number, its state, length, time,
 * a CRC-32 over all but the state) and an item (item.h). Delivered is one byte of the state, written
 * in place. So whenever wick dies, each record is there whole, or torn at the end of a segment: it is
 * recognised, counted and skipped, and what follows damage within a segment is found again by the
 * magic number. What was delivered but not yet marked so is sent twice, with the same time.
 *
 * fsync: a segment is synced when it is full, the last one at spool_close. kill -9 loses nothing that
 * was appended, a power cut what came since.
 *
 * Limits: over max_bytes the oldest segment goes, counted in `evicted` (what is held of it counts when it
 * is released); what is older than max_age is dropped when it is met, counted in `expired`.
 *
 * One process at a time (a lock on the directory), one thread at a time.
 * Cost: an append is one write; a segment of up to 4 MiB is in memory while it is being drained.
 */
#ifndef WICK_NET_SPOOL_H
#define WICK_NET_SPOOL_H

#include "net/item.h"

struct spool_options {
	const char *dir;	/* made if its parent exists */
	uint64_t max_bytes;	/* at least SPOOL_MIN_BYTES */
	uint64_t max_age_ns;	/* of an item, by its put_nanos; 0: no limit */
};

#define SPOOL_MIN_BYTES (1 << 20)

struct spool_pos {
	uint64_t segment;
	uint64_t offset;
	uint64_t seen_ok;	/* these two are the holder's own, kept while it is released */
	uint32_t blamed;
};

struct spool_stats {
	uint64_t items, bytes;		/* undelivered records; bytes of all segments */
	uint64_t found;			/* records at spool_open, the torn ones included */
	uint64_t torn, expired, evicted;	/* records lost: found + appended - done - items */
};

struct spool;

/* 0; -EBUSY: another process has it; -EINVAL, -ENOMEM, -errno of the directory; with a sentence. */
int must_check spool_open(const struct spool_options *o, struct spool **ret, struct err *e);
/* hold: the caller is sending it already; spool_next won't return it until it is released. 0, -ENOMEM,
 * -E2BIG: larger than a whole spool may be; -ENOSPC and other errors of write(2): nothing is kept. */
int must_check spool_append(struct spool *s, const struct item *it, bool hold, struct spool_pos *ret);
/* now_ns: nanoseconds since 1970. The caller holds the record afterwards. 0; -ENOENT: there is none;
 * -ENOMEM; -EIO and other errors of read(2). */
int must_check spool_next(struct spool *s, int64_t now_ns, struct item **ret,
			  struct spool_pos *ret_pos);
void spool_done(struct spool *s, const struct spool_pos *pos);
void spool_release(struct spool *s, const struct spool_pos *pos);
struct spool_stats spool_get_stats(const struct spool *s);
void spool_close(struct spool *s);
DEFINE_CLEANUP(spool, struct spool *, spool_close)

/* ---- the format, for tests ---- */

enum spool_state {
	SPOOL_LIVE = 'L',
	SPOOL_DONE = 'D',
};

struct spool_record {
	size_t offset, size;	/* in the segment, header included */
	enum spool_state state;
	const unsigned char *payload;
	size_t len;
};

enum { SPOOL_HEADER = 24 };	/* bytes */

/* The first whole record at or after *offset of a segment's n bytes. True: *offset is behind it then;
 * false: there is none, *offset is n. *torn grows by one for each stretch that is no record. */
bool spool_scan(const unsigned char *p, size_t n, size_t *offset, struct spool_record *ret,
		uint64_t *torn);

#endif
