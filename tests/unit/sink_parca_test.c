/* sink_parca_test.c - Parca's WriteRaw (sink_parca.c). */
#include "sink_check.h"

#include "parca.pb-c.h"

#define URL "parca+grpc://x"

START_TEST(encodes)
{
	static const char *const labels[] = { "service_name=a", NULL };
	struct item *it = make_item("process_cpu", labels);
	Parca__Profilestore__V1alpha1__WriteRawRequest *m;
	const unsigned char *b;
	struct sink_request r;

	encode_one(URL, it, &r);
	ck_assert_str_eq(r.url, "http://x:7070/parca.profilestore.v1alpha1.ProfileStoreService/"
				"WriteRaw");
	ck_assert_str_eq(r.headers.data, "Content-Type: application/grpc+proto\nTE: trailers\n");
	b = (unsigned char *)r.body.data;
	ck_assert_uint_eq(b[0], 0);
	ck_assert_uint_eq((size_t)b[1] << 24 | b[2] << 16 | b[3] << 8 | b[4], r.body.len - 5);
	m = parca__profilestore__v1alpha1__write_raw_request__unpack(NULL, r.body.len - 5, b + 5);
	ck_assert_ptr_nonnull(m);
	ck_assert(m->normalized);
	ck_assert_uint_eq(m->n_series, 1);
	ck_assert_uint_eq(m->series[0]->labels->n_labels, 2);
	ck_assert_str_eq(m->series[0]->labels->labels[0]->value, "process_cpu");
	ck_assert_uint_eq(m->series[0]->samples[0]->raw_profile.len, it->len);
	parca__profilestore__v1alpha1__write_raw_request__free_unpacked(m, NULL);
	sink_request_done(&r);
	item_unref(it);
}
END_TEST

static struct sink_verdict grpc(int status, const char *message)
{
	struct sink_answer a = { .status = 200, .type = "application/grpc", .grpc_status = status };

	snprintf(a.grpc_message, sizeof(a.grpc_message), "%s", message);
	return judge(URL, a, 0);
}

START_TEST(judges)
{
	static const int later[] = { 1, 4, 8, 10, 13, 14 }, refused[] = { 2, 3, 5, 7, 9, 11, 12, 16, 99 };

	ck_assert_int_eq(grpc(0, "").fate, SINK_STORED);
	for (size_t i = 0; i < ARRAY_SIZE(later); i++)
		ck_assert_int_eq(grpc(later[i], "").fate, SINK_LATER);
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		ck_assert_int_eq(grpc(refused[i], "").fate, SINK_REFUSED);
	ck_assert_str_eq(grpc(3, "location id is not sequential").message,
			 "location id is not sequential");
	ck_assert(strstr(grpc(3, "no").why.msg, "answered INVALID_ARGUMENT (3): no"));
	ck_assert_int_eq(grpc(8, "grpc: received message larger than max (5 vs. 4)").err, -E2BIG);
	ck_assert_int_eq(grpc(8, "grpc: received message larger than max (5 vs. 4)").fate,
			 SINK_REFUSED);
	/* an answer without trailers broke off; one that isn't gRPC is somebody else's */
	ck_assert_int_eq(grpc(-1, "").fate, SINK_LATER);
	ck_assert_int_eq(fate(URL, 200, "text/html", "<html>"), SINK_REFUSED);
	ck_assert_int_eq(fate(URL, 503, "", ""), SINK_LATER);
	ck_assert_int_eq(fate(URL, 404, "", ""), SINK_REFUSED);
}
END_TEST

RUN_ALL("sink_parca", encodes, judges)
