/* sink_check.h - what the tests of sinks and delivery share: items, one request, one verdict. */
#ifndef SINK_CHECK_H
#define SINK_CHECK_H

#include <check.h>

#include "net/sink.h"
#include "net/split.h"
#include "small_profile.h"

#define RUN_ALL(suite, ...)                                                                        \
	int main(void)                                                                             \
	{                                                                                          \
		const TTest *const tests[] = { __VA_ARGS__ };                                      \
		Suite *suite_ = suite_create(suite);                                               \
		TCase *t = tcase_create("all");                                                    \
		SRunner *r;                                                                        \
		int failed;                                                                        \
                                                                                                   \
		tcase_set_timeout(t, 20);                                                          \
		for (size_t i = 0; i < ARRAY_SIZE(tests); i++)                                     \
			tcase_add_test(t, tests[i]);                                               \
		suite_add_tcase(suite_, t);                                                        \
		r = srunner_create(suite_);                                                        \
		srunner_run_all(r, CK_ENV);                                                        \
		failed = srunner_ntests_failed(r);                                                 \
		srunner_free(r);                                                                   \
		return failed ? EXIT_FAILURE : EXIT_SUCCESS;                                       \
	}

/* A profile that may be sent, with so many samples of different stacks. */
static inline maybe_unused struct profile *sendable(uint32_t samples)
{
	struct profile *p = small_profile();
	uint32_t m = small_mapping(p, "/usr/bin/x", 0x1000);
	char name[32];

	p->time_nanos = 1796100000123456789;
	p->duration_nanos = 15000000000;
	for (uint32_t i = 0; i < samples; i++) {
		uint32_t ids[3] = { 0 };

		snprintf(name, sizeof(name), "function_%u", i);
		ids[0] = small_location(p, m, 0x2000 + 16 * (uint64_t)i, name);
		ids[1] = small_location(p, m, 0x1000, "main");
		small_sample(p, ids, "comm", 7, 0, 1);
	}
	return p;
}

static inline maybe_unused int take_part(void *ctx, struct item_profile *part)
{
	struct item_profile *out = ctx;

	ck_assert_ptr_null(out->pprof);
	*out = *part;
	return 0;
}

/* An item of a sendable profile; labels are "name=value" words, ended by NULL. */
static inline maybe_unused struct item *make_item(const char *type, const char *const *labels)
{
	cleanup(labels_cleanup) struct labels l = LABELS_INIT;
	cleanup(profile_cleanup) struct profile *p = sendable(3);
	struct item_profile part = { 0 };
	struct split_stats st;
	struct item *it;
	char name[64];

	for (; labels && *labels; labels++) {
		size_t n = strcspn(*labels, "=");

		snprintf(name, sizeof(name), "%.*s", (int)n, *labels);
		MUST(labels_set(&l, name, *labels + n + 1));
	}
	MUST(split_profile(p, &(struct split_limits){ 0 }, take_part, &part, &st));
	MUST(item_new(&l, type, &part, &it));
	return it;
}

static inline maybe_unused struct sink *make_sink(const char *url)
{
	char copy[512];
	struct sink *s = NULL;
	struct err e;

	snprintf(copy, sizeof(copy), "%s", url);
	ck_assert_msg(!sink_new(&(struct sink_options){ .url = copy }, &s, &e), "%s: %s", url, e.msg);
	return s;
}

/* What an answer means; counted: bytes before gzip of what was sent. */
static inline maybe_unused struct sink_verdict judge(const char *url, struct sink_answer a,
						     size_t counted)
{
	cleanup(sink_cleanup) struct sink *s = make_sink(url);
	struct sink_request r = { .counted = counted };
	struct sink_verdict v;

	if (a.body && !a.len)
		a.len = strlen(a.body);
	sink_judge(s, &r, &a, &v);
	ck_assert_int_eq(v.fate == SINK_STORED, v.err == 0);
	ck_assert(v.fate == SINK_STORED || strstr(v.why.msg, sink_name(s)));
	return v;
}

/* The fate of HTTP's status with this type and body. */
static inline maybe_unused enum sink_fate fate(const char *url, long status, const char *type,
					       const char *body)
{
	struct sink_answer a = { .status = status, .body = body, .grpc_status = -1 };

	snprintf(a.type, sizeof(a.type), "%s", type);
	return judge(url, a, 1000).fate;
}

/* Encodes one item; the caller is done with *ret by sink_request_done. */
static inline maybe_unused void encode_one(const char *url, struct item *it,
					   struct sink_request *ret)
{
	cleanup(sink_cleanup) struct sink *s = make_sink(url);

	MUST(sink_encode(s, &it, 1, ret));
}

#endif
