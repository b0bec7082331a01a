/* spool_fuzz.c - any bytes as a segment of the spool: records are found where they are and nowhere else,
 * the scan comes to its end, and what a record holds is an item with fit labels, or none. */
#include <assert.h>

#include "net/spool.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_item(const unsigned char *p, size_t n)
{
	cleanup(buf_cleanup) struct buf again = BUF_INIT(ITEM_MAX_BYTES);
	struct item *it, *copy;

	if (item_decode(p, n, &it))
		return;
	assert(labels_get(&it->labels, LABELS_SERVICE));
	assert(it->labels.n <= LABELS_MAX + 1);
	item_encode(it, &again);
	assert(!again.err);
	assert(!item_decode(again.data, again.len, &copy));
	assert(!labels_compare(&it->labels, &copy->labels) && copy->len == it->len);
	item_unref(it);
	item_unref(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t at = 0, before = 0, records = 0;
	struct spool_record rec;
	uint64_t torn = 0;

	while (spool_scan(data, size, &at, &rec, &torn)) {
		assert(rec.offset >= before && at == rec.offset + rec.size && at <= size);
		assert(rec.payload == data + rec.offset + SPOOL_HEADER);
		assert(rec.len == rec.size - SPOOL_HEADER);
		check_item(rec.payload, rec.len);
		before = at;
		records++;
	}
	assert(at == size && torn <= records + 1);
	check_item(data, size);	/* a CRC is hard to guess */
	return 0;
}
