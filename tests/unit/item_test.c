/* item_test.c - labels and a profile, shared and written down (item.h). */
#include "sink_check.h"

#include "net/item.h"

static const char *const words[] = { "service_name=web", "env=prod \u00e9", NULL };

START_TEST(is_shared)
{
	struct item *it = make_item("process_cpu", words);

	ck_assert_ptr_eq(item_ref(it), it);
	item_unref(it);
	ck_assert_str_eq(labels_get(&it->labels, "env"), "prod \u00e9");
	item_unref(it);
	item_unref(NULL);
}
END_TEST

START_TEST(has_a_service_and_a_clean_type)
{
	struct item *it = make_item("page-faults", NULL);

	ck_assert_str_eq(labels_get(&it->labels, "service_name"), ITEM_DEFAULT_SERVICE);
	ck_assert_str_eq(it->type, "page_faults");
	item_unref(it);
	it = make_item("", words);
	ck_assert_str_eq(labels_get(&it->labels, "service_name"), "web");
	ck_assert_str_eq(it->type, "profile");
	item_unref(it);
}
END_TEST

START_TEST(has_room_for_all_labels)
{
	cleanup(labels_cleanup) struct labels l = LABELS_INIT;
	struct item_profile none = { 0 };
	struct item *it;
	char name[16];

	for (int i = 0; i < LABELS_MAX; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		MUST(labels_set(&l, name, "v"));
	}
	MUST(item_new(&l, "cpu", &none, &it));
	ck_assert_uint_eq(it->labels.n, LABELS_MAX + 1);
	item_unref(it);
}
END_TEST

START_TEST(survives_the_spool)
{
	struct item *it = make_item("process_cpu", words), *again;
	cleanup(buf_cleanup) struct buf b = BUF_INIT(1 << 20);

	item_encode(it, &b);
	ck_assert_int_eq(b.err, 0);
	MUST(item_decode(b.data, b.len, &again));
	ck_assert_int_eq(labels_compare(&it->labels, &again->labels), 0);
	ck_assert_str_eq(again->type, it->type);
	ck_assert_int_eq(again->time_nanos, it->time_nanos);
	ck_assert_int_eq(again->put_nanos, it->put_nanos);
	ck_assert_uint_eq(again->raw, it->raw);
	ck_assert_uint_eq(item_counted_bytes(again), item_counted_bytes(it));
	ck_assert_uint_eq(again->len, it->len);
	ck_assert(!memcmp(again->pprof, it->pprof, it->len));
	item_unref(again);
	item_unref(it);
}
END_TEST

START_TEST(mistrusts_the_spool)
{
	struct item *it = make_item("process_cpu", words), *again;
	cleanup(buf_cleanup) struct buf b = BUF_INIT(1 << 20);

	item_encode(it, &b);
	item_unref(it);
	ck_assert_int_eq(item_decode("\x0a\xff", 2, &again), -EBADMSG);
	for (size_t n = 1; n < b.len; n++)	/* a cut one may happen to be whole */
		if (!item_decode(b.data, n, &again))
			item_unref(again);
	MUST(item_decode("", 0, &again));
	ck_assert_str_eq(labels_get(&again->labels, "service_name"), ITEM_DEFAULT_SERVICE);
	item_unref(again);
}
END_TEST

RUN_ALL("item", is_shared, has_a_service_and_a_clean_type, has_room_for_all_labels,
	survives_the_spool, mistrusts_the_spool)
