/* pprof_fuzz.c - pprof_read on anything, and everything that is done with a profile afterwards.
 * What was read must be written, and read again, to the same bytes. */
#include "profile/folded.h"
#include "profile/merge.h"
#include "profile/pprof.h"
#include "profile/report.h"
#include "profile/speedscope.h"

enum { MAX_RAW = 1 << 20, MAX_OUTPUT = 16 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void stable(const struct profile *p)
{
	cleanup(profile_cleanup) struct profile *again = NULL;
	cleanup(buf_cleanup) struct buf a = BUF_INIT(MAX_OUTPUT), b = BUF_INIT(MAX_OUTPUT);

	if (pprof_write(p, false, &a))
		return;
	must(!pprof_read(a.data, a.len, MAX_OUTPUT, &again, NULL));
	must(!pprof_write(again, false, &b));
	must(a.len == b.len && !memcmp(a.data, b.data, a.len));
}

static void outputs(const struct profile *p)
{
	static const char *const by[] = { "function", "module", "process", "thread" };
	cleanup(profile_cleanup) struct profile *sum = NULL;
	cleanup(buf_cleanup) struct buf out = BUF_INIT(MAX_OUTPUT);
	int r = folded_write(p, &out);

	buf_reset(&out);
	r |= speedscope_write(p, &out);
	for (size_t i = 0; i < ARRAY_SIZE(by); i++) {
		buf_reset(&out);
		r |= report_write(p, &(struct report_options){ .by = by[i], .focus = "a" }, &out,
				  NULL);
	}
	buf_reset(&out);
	r |= report_write(p, &(struct report_options){ .tree = true }, &out, NULL);
	if (!profile_new(&sum)) {
		r |= profile_merge(sum, p, NULL);
		r |= profile_merge(sum, p, NULL);
	}
	(void)r;	/* -E2BIG is fine; a crash is not */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	cleanup(profile_cleanup) struct profile *p = NULL;
	struct err e;

	if (pprof_read(data, n, MAX_RAW, &p, &e))
		return 0;
	stable(p);
	outputs(p);
	return 0;
}
