/* deliver.c - drives src/net/delivery.h for the tests: makes windows of profiles, delivers them, and
 * says what became of them.
 *
 *	deliver [--spool DIR] [--spool-bytes N] [--queue-bytes N] [--age MS] [--concurrency N]
 *		[--window MS] [--windows N] [--series N] [--samples N] [--profile-bytes N]
 *		[--type NAME] [--label NAME=VALUE]... [--linger MS] [--grace MS] URL...
 *
 * Each window of each series is a profile with --samples stacks whose samples/count add up to a number
 * that tells it from all others: 1000 * window + series + 1 on the first stack, 1 on the rest.
 * The label "series" is "s.SERIES.w.WINDOW.". After the last window it waits up to
 * --linger until queues and spools are empty.
 * Prints a line of JSON for each sink after every window and at the end (with "final": true).
 */
#include <getopt.h>
#include <inttypes.h>
#include <time.h>

#include "net/delivery.h"

enum { PERIOD = 10000000 };

static struct options {
	struct delivery_options d;
	struct labels labels;
	uint64_t window_ms, windows, series, samples, grace_ms, linger_ms;
	const char *type;
} o = { .window_ms = 0, .windows = 1, .series = 1, .samples = 1, .type = "cpu" };

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void die(const char *what, int r)
{
	fprintf(stderr, "deliver: %s: %s\n", what, strerror(-r));
	exit(1);
}

static void must(const char *what, int r)
{
	if (r)
		die(what, r);
}

/* ---- profiles ---- */

static uint32_t text(struct profile *p, const char *s)
{
	uint32_t id;

	must("string", profile_string(p, s, &id));
	return id;
}

static uint32_t location(struct profile *p, uint32_t mapping, uint64_t n)
{
	struct profile_location l = { .mapping = mapping, .address = 0x1000 + 16 * n };
	struct profile_line line = { 0 };
	uint32_t id;
	char name[64];

	snprintf(name, sizeof(name), "function_%" PRIu64, n);
	must("function", profile_function(p, &(struct profile_function){ .name = text(p, name) },
					  &line.function));
	must("location", profile_location(p, &l, &line, 1, &id));
	return id;
}

static void fill(struct profile *p, uint64_t mark)
{
	struct profile_mapping m = { .start = 0x1000, .limit = 1ULL << 40,
				     .has = PROFILE_HAS_FUNCTIONS };
	uint32_t mapping, ids[3];

	m.file = text(p, "/usr/bin/driver");
	must("mapping", profile_mapping(p, &m, &mapping));
	ids[2] = location(p, mapping, 0);
	for (uint64_t i = 0; i < o.samples; i++) {
		const int64_t n = i ? 1 : (int64_t)mark;
		struct profile_label label = { .key = text(p, "comm"), .str = text(p, "driver") };

		ids[1] = location(p, mapping, 1 + i % 100);
		ids[0] = location(p, mapping, 101 + i);
		must("sample", profile_sample(p, &(struct profile_stack){ ids, 3 }, &label, 1,
					      (int64_t[]){ n, strcmp(o.type, "cpu") ? n : n * PERIOD }, NULL));
	}
}

static struct profile *make_profile(uint64_t window, uint64_t series)
{
	const char *unit = strcmp(o.type, "cpu") ? "count" : "nanoseconds";
	struct profile *p;

	must("profile", profile_new(&p));
	must("type", profile_sample_type(p, "samples", "count"));
	must("type", profile_sample_type(p, o.type, unit));
	must("type", profile_set_period_type(p, o.type, unit));
	p->default_sample_type = text(p, o.type);
	p->period = PERIOD;
	p->duration_nanos = 1000000000;
	p->time_nanos = (int64_t)clock_ns(CLOCK_REALTIME);
	fill(p, 1000 * window + series + 1);
	return p;
}

/* ---- statistics ---- */

static void print_stats(struct delivery *d, bool final)
{
	for (size_t i = 0; i < delivery_sinks(d); i++) {
		struct sink_stats s;

		delivery_stats(d, i, &s);
		printf("{\"sink\": %zu, \"final\": %s, \"put\": %" PRIu64 ", \"sent\": %" PRIu64
		       ", \"refused\": %" PRIu64 ", \"requests\": %" PRIu64 ", \"retried\": %" PRIu64
		       ", \"queued\": %" PRIu64 ", \"queued_bytes\": %" PRIu64
		       ", \"spooled\": %" PRIu64 ", \"spool_bytes\": %" PRIu64 ", \"found\": %" PRIu64
		       ", \"spool_errors\": %" PRIu64 ", \"unsendable\": %" PRIu64
		       ", \"last_ok\": %" PRId64,
		       i, final ? "true" : "false", s.put, s.sent, s.refused, s.requests, s.retried,
		       s.queued, s.queued_bytes, s.spooled, s.spool_bytes, s.spool_found,
		       s.spool_errors, delivery_unsendable(d), s.last_ok);
		for (int j = 0; j < DELIVERY_DROPS; j++)
			printf(", \"%s\": %" PRIu64, delivery_drop_name(j), s.dropped[j]);
		printf(", \"error\": \"");
		for (const char *c = s.last_error; *c; c++)
			printf(*c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
		printf("\"}\n");
	}
	fflush(stdout);
}

/* ---- options ---- */

static void set_label(char *arg)
{
	char *equal = strchr(arg, '=');

	if (!equal)
		die(arg, -EINVAL);
	*equal = '\0';
	must("label", labels_set(&o.labels, arg, equal + 1));
}

static void parse(int argc, char **argv)
{
	static const struct {
		const char *name;
		uint64_t *to;
		uint64_t unit;
	} numbers[] = { { "spool-bytes", &o.d.spool_bytes, 1 }, { "queue-bytes", &o.d.queue_bytes, 1 },
			{ "age", &o.d.spool_age_ns, 1000000 },	{ "window", &o.window_ms, 1 },
			{ "windows", &o.windows, 1 },		{ "series", &o.series, 1 },
			{ "samples", &o.samples, 1 },		{ "grace", &o.grace_ms, 1 },
			{ "linger", &o.linger_ms, 1 },
			{ "profile-bytes", &o.d.profile_bytes, 1 } };
	static struct sink_options sinks[16];
	int i = 1;

	for (; i + 1 < argc && !strncmp(argv[i], "--", 2); i += 2) {
		const char *name = argv[i] + 2;

		for (size_t j = 0; j < ARRAY_SIZE(numbers); j++)
			if (!strcmp(name, numbers[j].name))
				*numbers[j].to = strtoull(argv[i + 1], NULL, 10) * numbers[j].unit;
		if (!strcmp(name, "spool"))
			o.d.spool_dir = argv[i + 1];
		else if (!strcmp(name, "concurrency"))
			o.d.concurrency = (uint32_t)strtoul(argv[i + 1], NULL, 10);
		else if (!strcmp(name, "type"))
			o.type = argv[i + 1];
		else if (!strcmp(name, "label"))
			set_label(argv[i + 1]);
	}
	for (; i < argc && o.d.nsinks < ARRAY_SIZE(sinks); i++)
		sinks[o.d.nsinks++].url = argv[i];
	o.d.sinks = sinks;
}

static void put_window(struct delivery *d, uint64_t window)
{
	for (uint64_t s = 0; s < o.series; s++) {
		cleanup(profile_cleanup) struct profile *p = make_profile(window, s);
		char number[64];

		snprintf(number, sizeof(number), "s.%" PRIu64 ".w.%" PRIu64 ".", s, window);
		must("label", labels_set(&o.labels, "series", number));
		must("put", delivery_put(d, &o.labels, p));
	}
}

static bool is_empty(struct delivery *d)
{
	struct sink_stats s;
	bool empty = true;

	for (size_t i = 0; i < delivery_sinks(d); i++) {
		delivery_stats(d, i, &s);
		empty &= !s.queued && !s.spooled;
	}
	return empty;
}

static void linger(struct delivery *d)
{
	const uint64_t until = clock_ns(CLOCK_MONOTONIC) + o.linger_ms * 1000000;

	while (!is_empty(d) && clock_ns(CLOCK_MONOTONIC) < until)
		usleep(20000);
}

int main(int argc, char **argv)
{
	struct delivery *d;
	struct err e;

	parse(argc, argv);
	if (delivery_new(&o.d, &d, &e)) {
		fprintf(stderr, "deliver: %s\n", e.msg);
		return 1;
	}
	for (uint64_t w = 0; w < o.windows; w++) {
		put_window(d, w);
		if (o.window_ms)
			usleep((useconds_t)(o.window_ms * 1000));
		print_stats(d, false);
	}
	linger(d);
	delivery_finish(d, clock_ns(CLOCK_MONOTONIC) + o.grace_ms * 1000000);
	print_stats(d, true);
	delivery_free(d);
	labels_free(&o.labels);
	return 0;
}
