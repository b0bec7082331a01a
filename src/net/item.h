/* item.h - one profile of one series, on its way: labels and a finished pprof profile.
 *
 *	r = item_new(&labels, "process_cpu", &part, &it);
 *	item_ref(it);				// one more queue holds it
 *	item_encode(it, &bytes);		// for the spool
 *	r = item_decode(bytes.data, bytes.len, &again);
 *	item_unref(it);
 *
 * An item never changes, so the queues of all sinks share one; the last item_unref frees it, in
 * whatever thread. Its labels include service_name (ITEM_DEFAULT_SERVICE if there was none), its
 * type stands apart: each protocol has a place of its own for it.
 */
#ifndef WICK_NET_ITEM_H
#define WICK_NET_ITEM_H

#include <stdatomic.h>

#include "base/labels.h"

#define ITEM_DEFAULT_SERVICE "wick"
#define ITEM_MAX_BYTES	     ((size_t)64 << 20) /* of an encoded item; a larger one is no item */

struct item {
	atomic_uint refs;
	struct labels labels;
	char *type;		/* [a-zA-Z_][a-zA-Z0-9_]* */
	unsigned char *pprof;	/* gzipped */
	size_t len;
	size_t raw;		/* bytes of the profile before gzip */
	int64_t time_nanos;	/* the profile's: kept whenever it is sent again */
	int64_t put_nanos;	/* when it came, nanoseconds since 1970: its age counts from here */
};

struct item_profile {
	void *pprof;		/* gzipped; malloc'ed */
	size_t len, raw;
	int64_t time_nanos;
};

/* Copies the labels and takes the bytes, also on failure. 0, -ENOMEM, -E2BIG: too many labels. */
int must_check item_new(const struct labels *labels, const char *type,
			const struct item_profile *profile, struct item **ret);
struct item *item_ref(struct item *it);	/* returns it */
void item_unref(struct item *it);
DEFINE_CLEANUP(item, struct item *, item_unref)

/* What the item takes in a queue. */
size_t item_bytes(const struct item *it);
/* What servers count: the raw profile and the texts of its labels. */
size_t item_counted_bytes(const struct item *it);

/* Appends the item as bytes (proto/spool.proto). */
void item_encode(const struct item *it, struct buf *out);
/* 0, -ENOMEM, -EBADMSG: these bytes are no item. Trusts nothing: labels are cleaned as always. */
int must_check item_decode(const void *bytes, size_t n, struct item **ret);

#endif
