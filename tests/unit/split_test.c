/* split_test.c - profiles in parts that servers take (split.h). */
#include "sink_check.h"

#include "net/split.h"
#include "profile/pprof.h"

struct parts {
	uint32_t n, samples;
	int64_t total, last_time;
	struct split_limits limits;
	int fail;
	struct profile *last;
};

static int part(void *ctx, struct item_profile *ip)
{
	struct parts *ps = ctx;
	struct profile *p = NULL;
	struct err e;

	if (ps->fail) {
		free(ip->pprof);
		return ps->fail;
	}
	ck_assert_uint_le(ip->raw, ps->limits.raw);
	ck_assert_msg(!pprof_read(ip->pprof, ip->len, 0, &p, &e), "%s", e.msg);
	ck_assert_int_eq(p->time_nanos, ip->time_nanos);
	ck_assert_uint_le(profile_sample_count(p), ps->limits.samples);
	ck_assert_int_gt(p->time_nanos, ps->last_time);
	ps->last_time = p->time_nanos;
	ps->n++;
	ps->samples += profile_sample_count(p);
	for (uint32_t i = 0; i < profile_sample_count(p); i++)
		ps->total += profile_values(p, i)[0];
	free(ip->pprof);
	profile_free(ps->last);
	ps->last = p;
	return 0;
}

static struct split_stats split(const struct profile *p, struct parts *ps)
{
	struct split_stats st;

	MUST(split_profile(p, &ps->limits, part, ps, &st));
	ck_assert_uint_eq(st.parts, ps->n);
	ck_assert_uint_eq(st.unsendable, profile_sample_count(p) - ps->samples);
	return st;
}

START_TEST(leaves_small_ones_whole)
{
	cleanup(profile_cleanup) struct profile *p = sendable(100);
	struct parts ps = { .limits = { 1 << 20, 16000 } };
	cleanup(buf_cleanup) struct buf a = BUF_INIT(1 << 20), b = BUF_INIT(1 << 20);

	split(p, &ps);
	ck_assert_uint_eq(ps.n, 1);
	MUST(pprof_write(p, false, &a));
	MUST(pprof_write(ps.last, false, &b));
	ck_assert_uint_eq(a.len, b.len);
	profile_free(ps.last);
}
END_TEST

START_TEST(splits_by_samples)
{
	cleanup(profile_cleanup) struct profile *p = sendable(1000);
	struct parts ps = { .limits = { 1 << 20, 300 } };

	split(p, &ps);
	ck_assert_uint_ge(ps.n, 4);
	ck_assert_uint_eq(ps.samples, 1000);
	ck_assert_int_eq(ps.total, 1000);
	ck_assert_int_eq(ps.last_time, p->time_nanos + ps.n - 1);
	ck_assert_int_eq(ps.last->duration_nanos, p->duration_nanos);
	ck_assert_str_eq(profile_str(ps.last, ps.last->period_type.type), "cpu");
	profile_free(ps.last);
}
END_TEST

START_TEST(splits_by_bytes)
{
	cleanup(profile_cleanup) struct profile *p = sendable(2000);
	struct parts ps = { .limits = { 20000, 16000 } };
	struct profile_mapping m;
	size_t known = 0;

	split(p, &ps);
	ck_assert_uint_gt(ps.n, 4);
	ck_assert_int_eq(ps.total, 2000);
	/* what a part doesn't need isn't in it */
	ck_assert_uint_le(profile_function_count(ps.last), profile_sample_count(ps.last) + 1);
	m = profile_mapping_get(ps.last, 1);
	ck_assert_str_eq(profile_str(ps.last, m.file), "/usr/bin/x");
	for (uint32_t i = 1; i <= profile_function_count(ps.last); i++) {
		struct profile_function f = profile_function_get(ps.last, i);

		known += !strcmp(profile_str(ps.last, f.name), "main");
		ck_assert_str_eq(profile_str(ps.last, f.file), "src.c");
	}
	ck_assert_uint_eq(known, 1);
	profile_free(ps.last);
}
END_TEST

START_TEST(counts_what_fits_nowhere)
{
	cleanup(profile_cleanup) struct profile *p = sendable(5);
	struct parts ps = { .limits = { 50, 16000 } };
	struct split_stats st = split(p, &ps);

	ck_assert_uint_eq(st.parts, 0);
	ck_assert_uint_eq(st.unsendable, 5);
}
END_TEST

START_TEST(mends_names_of_types)
{
	cleanup(profile_cleanup) struct profile *p = NULL;
	struct parts ps = { .limits = { 1 << 20, 16000 } };
	uint32_t ids[2] = { 0 };

	MUST(profile_new(&p));
	MUST(profile_sample_type(p, "page-faults", "a b:c"));
	MUST(profile_set_period_type(p, "page-faults", "count"));
	MUST(profile_string(p, "page-faults", &p->default_sample_type));
	p->period = p->time_nanos = p->duration_nanos = 1;
	ids[0] = small_location(p, 0, 1, "f");
	MUST(profile_sample(p, &(struct profile_stack){ ids, 1 }, NULL, 0, (int64_t[]){ 3 }, NULL));
	split(p, &ps);
	ck_assert_str_eq(profile_str(ps.last, ps.last->types[0].type), "page_faults");
	ck_assert_str_eq(profile_str(ps.last, ps.last->types[0].unit), "a_b_c");
	ck_assert_str_eq(profile_str(ps.last, ps.last->period_type.type), "page_faults");
	ck_assert_str_eq(profile_str(ps.last, ps.last->default_sample_type), "page_faults");
	ck_assert_str_eq(split_type(p), "page-faults");
	profile_free(ps.last);
}
END_TEST

static const char *frame_name(const struct profile *p, size_t i)
{
	struct profile_line line = profile_line_get(p, profile_frame(p, 0, i), 0);

	return profile_str(p, profile_function_get(p, line.function).name);
}

START_TEST(cuts_the_middle_of_deep_stacks)
{
	for (uint32_t depth = SPLIT_FRAMES; depth < SPLIT_FRAMES + 3; depth++) {
		cleanup(profile_cleanup) struct profile *p = sendable(0);
		struct parts ps = { .limits = { 1 << 20, 16000 } };
		uint32_t ids[SPLIT_FRAMES + 3] = { 0 };
		char name[32];

		for (uint32_t i = 0; i < depth; i++) {
			snprintf(name, sizeof(name), "f%u", i);
			ids[i] = small_location(p, 0, 16 + i, name);
		}
		small_sample(p, ids, "comm", 1, 0, 5);
		split(p, &ps);
		ck_assert_int_eq(ps.total, 5);
		ck_assert_uint_eq(profile_depth(ps.last, 0), SPLIT_FRAMES);
		ck_assert_str_eq(frame_name(ps.last, 0), "f0");
		ck_assert_str_eq(frame_name(ps.last, SPLIT_FRAMES - 1), name);
		ck_assert_int_eq(strcmp(frame_name(ps.last, SPLIT_FRAMES - SPLIT_ROOT - 1), SPLIT_CUT) == 0,
				 depth > SPLIT_FRAMES);
		profile_free(ps.last);
	}
}
END_TEST

START_TEST(refuses_what_breaks_servers)
{
	struct parts ps = { .limits = { 1 << 20, 16000 } };
	struct split_stats st;

	for (int i = 0; i < 4; i++) {
		cleanup(profile_cleanup) struct profile *p = sendable(1);

		if (i == 0)
			p->time_nanos = 0;
		else if (i == 1)
			p->duration_nanos = 0;
		else if (i == 2)
			p->period = 0;
		else
			p->period_type.unit = 0;
		ck_assert_int_eq(split_profile(p, &ps.limits, part, &ps, &st), -EINVAL);
	}
	ck_assert_uint_eq(ps.n, 0);
}
END_TEST

START_TEST(sends_nothing_of_nothing_and_stops_when_told)
{
	cleanup(profile_cleanup) struct profile *empty = sendable(0), *p = sendable(10);
	struct parts ps = { .limits = { 1 << 20, 3 }, .fail = -EPIPE };
	struct split_stats st;

	MUST(split_profile(empty, &ps.limits, part, &ps, &st));
	ck_assert_uint_eq(st.parts, 0);
	ck_assert_int_eq(split_profile(p, &ps.limits, part, &ps, &st), -EPIPE);
	ck_assert_str_eq(split_type(p), "process_cpu");
}
END_TEST

RUN_ALL("split", leaves_small_ones_whole, splits_by_samples, splits_by_bytes,
	counts_what_fits_nowhere, mends_names_of_types, cuts_the_middle_of_deep_stacks,
	refuses_what_breaks_servers,
	sends_nothing_of_nothing_and_stops_when_told)
