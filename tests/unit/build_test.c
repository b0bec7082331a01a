/* Tests of collect/build.h: samples whose frames lie in this very program, in libc, in a small
 * kernel and nowhere, and the profile that is made of them. */
#include <link.h>

#include "collect/build.h"
#include "file_event.h"
#include "kernel/outcome.h"

int build_test_known(int x);
__attribute__((noinline)) int build_test_known(int x)
{
	return x * 3 + 1;
}

enum { SELF = 2, LIBC = 3, STRANGE = 4 };	/* file ids */

#define KERNEL_A 0xffffffff81000123
#define KERNEL_B 0xffffffff81000234
#define NO_INFO	 WK_FRAME_MAKE_MARK(WK_USER_NO_INFO)
#define ANON	 0x7f0012345678
#define NOBODYS	 WK_FRAME_MAKE_FILE(STRANGE, 0x42)

static const char kernel_text[] = "ffffffff81000000 T _stext\n"
				  "ffffffff81000100 T do_one_thing\n"
				  "ffffffff81000200 t do_another\n"
				  "ffffffff81001000 T _etext\n";

static struct files *files;
static struct symbolizer *sym;
static struct kallsyms *kallsyms;
static struct samples samples;
static uint64_t known, nameless;	/* frames of our program; of its ELF header */
static bool readable;			/* our program could be opened */

static void new_symbolizer(const struct kallsyms *k)
{
	struct symbolizer_options o = { .demangle = DEMANGLE_SIMPLE, .kallsyms = k };

	symbolizer_free(take(sym));
	ck_assert_int_eq(symbolizer_new(&o, files, &sym), 0);
}

static void set_up(void)
{
	struct wk_file_event e = file_event(SELF, own_path(), (void *)(uintptr_t)build_test_known);
	const struct file *f = NULL;

	ck_assert_int_eq(files_new(10, &files), 0);
	ck_assert_int_eq(kallsyms_parse(kernel_text, strlen(kernel_text), NULL, &kallsyms, NULL),
			 0);
	ck_assert_int_eq(files_announce(files, &e, &f), 0);
	readable = f->fd >= 0;
	known = event_frame(&e, (void *)(uintptr_t)build_test_known);
	nameless = WK_FRAME_MAKE_FILE(SELF, 0);
	new_symbolizer(kallsyms);
	samples = (struct samples)SAMPLES_INIT;
}

static void tear_down(void)
{
	samples_free(&samples);
	symbolizer_free(take(sym));
	kallsyms_free(take(kallsyms));
	files_free(take(files));
}

static struct wk_sample of(uint32_t pid, uint32_t tid, const char *comm, uint64_t count)
{
	struct wk_sample s = { .count = count, .weight = 10101010 * count, .pid = pid, .tid = tid,
			       .user_outcome = WK_USER_ROOT };

	memcpy(s.comm, comm, strnlen(comm, WK_COMM_LEN));
	return s;
}

/* Adds a stack, leaf first; it ends at the first 0. */
static void add(struct wk_sample s, const uint64_t *frames)
{
	size_t n = 0;

	while (frames[n])
		n++;
	ck_assert_int_eq(samples_add(&samples, &s, frames, n, NULL, 0), 0);
}
#define FRAMES(...) ((const uint64_t[]){ __VA_ARGS__, 0 })

static struct profile *build(const char *event, uint32_t freq, struct build_stats *stats)
{
	struct build_options o = { .event = event_by_name(event), .freq = freq,
				   .time_nanos = 1700000000123456789, .duration_nanos = 15000000000 };
	struct build_stats ignored;
	struct profile *p = NULL;

	ck_assert_int_eq(build_profile(&samples, sym, &o, &p, stats ? stats : &ignored), 0);
	return p;
}

/* Frame i of a sample, leaf first. */
static uint32_t location(const struct profile *p, uint32_t sample, size_t i)
{
	ck_assert_uint_lt(i, profile_depth(p, sample));
	return profile_frame(p, sample, i);
}

/* The name of its function. */
static const char *name(const struct profile *p, uint32_t sample, size_t i)
{
	uint32_t loc = location(p, sample, i);

	ck_assert_uint_eq(profile_line_count(p, loc), 1);
	return profile_str(p, profile_function_get(p, profile_line_get(p, loc, 0).function).name);
}

static struct profile_mapping mapping(const struct profile *p, uint32_t sample, size_t i)
{
	uint32_t id = profile_location_get(p, location(p, sample, i)).mapping;

	ck_assert_uint_ne(id, 0);
	return profile_mapping_get(p, id);
}

static const char *type(const struct profile *p, size_t i)
{
	return profile_str(p, p->types[i].type);
}

static const char *unit(const struct profile *p, size_t i)
{
	return profile_str(p, p->types[i].unit);
}

/* ---- types and values ---- */

START_TEST(clock_profile)
{
	struct profile *p cleanup(profile_cleanup) = NULL;

	add(of(1, 0, "a", 3), FRAMES(ANON));
	p = build("cpu-clock", 99, NULL);
	ck_assert_uint_eq(p->ntypes, 2);
	ck_assert_str_eq(type(p, 0), "samples");
	ck_assert_str_eq(unit(p, 0), "count");
	ck_assert_str_eq(type(p, 1), "cpu");
	ck_assert_str_eq(unit(p, 1), "nanoseconds");
	ck_assert_uint_eq(profile_default_type(p), 1);
	ck_assert_str_eq(profile_str(p, p->default_sample_type), "cpu");
	ck_assert_str_eq(profile_str(p, p->period_type.type), "cpu");
	ck_assert_str_eq(profile_str(p, p->period_type.unit), "nanoseconds");
	ck_assert_int_eq(p->period, 10101010);
	ck_assert_int_eq(p->time_nanos, 1700000000123456789);
	ck_assert_int_eq(p->duration_nanos, 15000000000);
	ck_assert_uint_eq(profile_sample_count(p), 1);
	ck_assert_int_eq(profile_values(p, 0)[0], 3);
	ck_assert_int_eq(profile_values(p, 0)[1], 3 * 10101010);
}
END_TEST

START_TEST(counted_events)
{
	struct profile *p cleanup(profile_cleanup) = NULL;

	add(of(1, 0, "a", 3), FRAMES(ANON));
	p = build("page-faults", 99, NULL);
	ck_assert_uint_eq(p->ntypes, 2);
	ck_assert_str_eq(type(p, 1), "page-faults");
	ck_assert_str_eq(unit(p, 1), "count");
	ck_assert_str_eq(profile_str(p, p->default_sample_type), "page-faults");
	ck_assert_str_eq(profile_str(p, p->period_type.type), "page-faults");
	ck_assert_str_eq(profile_str(p, p->period_type.unit), "count");
	ck_assert_int_eq(p->period, 1);
	ck_assert_int_eq(profile_values(p, 0)[0], 3);
	ck_assert_int_eq(profile_values(p, 0)[1], 3 * 10101010);	/* what the events weigh */
}
END_TEST

START_TEST(some_entries)
{
	struct profile *p cleanup(profile_cleanup) = NULL;
	struct build_options o = { .event = event_clock(), .freq = 99,
				   .entries = (const uint32_t[]){ 2, 0 }, .nentries = 2 };
	struct build_stats stats;

	for (uint32_t pid = 1; pid <= 3; pid++)
		add(of(pid, 0, "a", pid), FRAMES(ANON));
	ck_assert_int_eq(build_profile(&samples, sym, &o, &p, &stats), 0);
	ck_assert_uint_eq(profile_sample_count(p), 2);
	ck_assert_int_eq(profile_values(p, 0)[0], 3);
	ck_assert_int_eq(profile_values(p, 1)[0], 1);
	ck_assert_uint_eq(stats.frames, 4);
}
END_TEST

START_TEST(nothing_sampled)
{
	struct profile *p cleanup(profile_cleanup) = NULL;
	struct build_stats stats;

	p = build("cpu-clock", 19, &stats);
	ck_assert_uint_eq(profile_sample_count(p), 0);
	ck_assert_uint_eq(p->ntypes, 2);
	ck_assert_int_eq(p->period, 1000000000 / 19);
	ck_assert_uint_eq(stats.frames, 0);
	ck_assert_uint_eq(stats.worst[0].unnamed, 0);
}
END_TEST

/* ---- labels ---- */

static struct profile_label label(const struct profile *p, uint32_t sample, const char *key)
{
	struct profile_label l = { 0 };
	uint32_t id = profile_find_string(p, key);

	ck_assert_uint_ne(id, MAP_NONE);
	ck_assert(profile_label_find(p, profile_labels_id(p, sample), id, &l));
	return l;
}

START_TEST(labels)
{
	struct profile *p cleanup(profile_cleanup) = NULL;
	struct profile_label l;

	add(of(7, 0, "main", 1), FRAMES(ANON));
	add(of(7, 8, "worker", 2), FRAMES(ANON));
	add(of(7, 9, "worker", 4), FRAMES(ANON));
	add(of(0, 0, "b\xff" "d", 8), FRAMES(ANON));	/* another pid namespace's; not UTF-8 */
	p = build("cpu-clock", 100, NULL);
	ck_assert_uint_eq(profile_sample_count(p), 4);
	for (uint32_t i = 0; i < 4; i++) {
		l = label(p, i, "pid");
		ck_assert_int_eq(l.num, i < 3 ? 7 : 0);
		ck_assert_uint_eq(l.str, 0);
		ck_assert_int_eq(profile_values(p, i)[0], 1 << i);
	}
	ck_assert_str_eq(profile_str(p, label(p, 0, "comm").str), "main");
	ck_assert_str_eq(profile_str(p, label(p, 1, "comm").str), "worker");
	ck_assert_str_eq(profile_str(p, label(p, 3, "comm").str), "b\xef\xbf\xbd" "d");
	ck_assert_int_eq(label(p, 1, "tid").num, 8);
	ck_assert_int_eq(label(p, 2, "tid").num, 9);
	ck_assert(!profile_label_find(p, profile_labels_id(p, 0), profile_find_string(p, "tid"),
				      &l));
}
END_TEST

/* Entries that differ in nothing a profile shows are one sample of it. */
START_TEST(incarnations_fall_together)
{
	struct profile *p cleanup(profile_cleanup) = NULL;
	struct wk_sample a = of(7, 0, "sh", 1), b = of(7, 0, "sh", 2);

	b.exec_id = 1;
	add(a, FRAMES(ANON));
	add(b, FRAMES(ANON));
	ck_assert_uint_eq(samples_entries(&samples), 2);
	p = build("cpu-clock", 100, NULL);
	ck_assert_uint_eq(profile_sample_count(p), 1);
	ck_assert_int_eq(profile_values(p, 0)[0], 3);
}
END_TEST

/* ---- frames ---- */

START_TEST(named_and_unnamed)
{
	struct profile *p cleanup(profile_cleanup) = NULL;
	struct profile_mapping with, without;
	char expected[300];

	if (!readable)
		return;
	add(of(1, 0, "a", 1), FRAMES(known, nameless, known));
	p = build("cpu-clock", 99, NULL);
	ck_assert_uint_eq(profile_depth(p, 0), 3);
	ck_assert_str_eq(name(p, 0, 0), "build_test_known");
	snprintf(expected, sizeof(expected), "%s+0x0", strrchr(own_path(), '/') + 1);
	ck_assert_str_eq(name(p, 0, 1), expected);
	ck_assert_uint_eq(location(p, 0, 0), location(p, 0, 2));
	with = mapping(p, 0, 0);
	without = mapping(p, 0, 1);
	ck_assert_uint_eq(with.has, PROFILE_HAS_FUNCTIONS);
	ck_assert_uint_eq(without.has, 0);
	ck_assert_uint_eq(profile_mapping_count(p), 2);
	ck_assert_str_eq(profile_str(p, with.file), own_path());
	ck_assert_uint_eq(with.file, without.file);
	ck_assert_uint_eq(with.build_id, without.build_id);
	ck_assert_uint_eq(with.start, without.start);
	ck_assert_uint_eq(with.limit, without.limit);
	ck_assert_uint_gt(with.limit, with.start);
	ck_assert(profile_location_get(p, location(p, 0, 0)).address >= with.start &&
		  profile_location_get(p, location(p, 0, 0)).address < with.limit);
}
END_TEST

START_TEST(in_square_brackets)
{
	struct profile *p cleanup(profile_cleanup) = NULL;

	add(of(1, 0, "a", 1), FRAMES(ANON, NOBODYS, 0xffffffffff600400));
	p = build("cpu-clock", 99, NULL);
	ck_assert_str_eq(name(p, 0, 0), "[unknown]");
	ck_assert_str_eq(profile_str(p, mapping(p, 0, 0).file), "//anon");
	ck_assert_uint_eq(profile_location_get(p, location(p, 0, 0)).address, ANON);
	ck_assert_str_eq(name(p, 0, 1), "[unknown]");
	ck_assert_str_eq(name(p, 0, 2), "[vsyscall]");
	for (size_t i = 0; i < 3; i++)
		ck_assert_uint_eq(mapping(p, 0, i).has, 0);
}
END_TEST

START_TEST(markers)
{
	struct profile *p cleanup(profile_cleanup) = NULL;
	struct build_stats stats;
	char expected[128];

	for (unsigned int o = 0; o < WK_OUTCOME_MAX; o++)
		add(of(1, 0, "a", 1), FRAMES(ANON, WK_FRAME_MAKE_MARK((uint64_t)o)));
	add(of(1, 0, "a", 1), FRAMES(ANON, WK_FRAME_MAKE_MARK(0xffffffffULL)));
	p = build("cpu-clock", 99, &stats);
	for (uint32_t i = 0; i <= WK_OUTCOME_MAX; i++) {
		struct profile_location loc = profile_location_get(p, location(p, i, 1));

		snprintf(expected, sizeof(expected), "[truncated: %s]",
			 i < WK_OUTCOME_MAX ? outcome_text(i) : "unknown reason");
		ck_assert_str_eq(name(p, i, 1), expected);
		ck_assert_uint_eq(loc.mapping, 0);
		ck_assert_uint_eq(loc.address, 0);
	}
	ck_assert_uint_eq(stats.frames, WK_OUTCOME_MAX + 1);	/* the others */
	ck_assert_uint_eq(stats.named, 0);
}
END_TEST

START_TEST(kernel_with_names)
{
	struct profile *p cleanup(profile_cleanup) = NULL;

	add(of(1, 0, "a", 1), FRAMES(KERNEL_B, KERNEL_A, 0xffffffff90000000, ANON));
	p = build("cpu-clock", 99, NULL);
	ck_assert_uint_eq(profile_depth(p, 0), 4);
	ck_assert_str_eq(name(p, 0, 0), "do_another");
	ck_assert_str_eq(name(p, 0, 1), "do_one_thing");
	ck_assert_str_eq(name(p, 0, 2), "[kernel.kallsyms]+0xffffffff90000000");
	ck_assert_uint_eq(profile_location_get(p, location(p, 0, 0)).address, KERNEL_B);
	ck_assert_str_eq(profile_str(p, mapping(p, 0, 0).file), "[kernel.kallsyms]");
	ck_assert_uint_eq(mapping(p, 0, 0).has, PROFILE_HAS_FUNCTIONS);
	ck_assert_uint_eq(mapping(p, 0, 2).has, 0);
}
END_TEST

START_TEST(kernel_without_names)
{
	struct profile *p cleanup(profile_cleanup) = NULL;
	struct build_stats stats;

	new_symbolizer(NULL);
	add(of(1, 0, "a", 1), FRAMES(ANON));		/* so that [kernel] isn't module 0 */
	add(of(1, 0, "b", 1), FRAMES(KERNEL_B, KERNEL_A, KERNEL_B, ANON, NO_INFO));
	add(of(1, 0, "c", 1), FRAMES(KERNEL_A));
	p = build("cpu-clock", 99, &stats);
	ck_assert_uint_eq(profile_depth(p, 1), 3);
	ck_assert_str_eq(name(p, 1, 0), "[kernel]");
	ck_assert_str_eq(name(p, 1, 1), "[unknown]");
	ck_assert_str_eq(name(p, 1, 2), "[truncated: no unwind info]");
	ck_assert_uint_eq(mapping(p, 1, 0).has, 0);
	ck_assert_uint_eq(profile_depth(p, 2), 1);
	ck_assert_str_eq(name(p, 2, 0), "[kernel]");
}
END_TEST

/* The same where [kernel] is the first module there is. */
START_TEST(kernel_first)
{
	struct profile *p cleanup(profile_cleanup) = NULL;

	new_symbolizer(NULL);
	add(of(1, 0, "a", 1), FRAMES(KERNEL_A, KERNEL_B));
	add(of(1, 0, "b", 1), FRAMES(KERNEL_B, KERNEL_A, ANON));
	p = build("cpu-clock", 99, NULL);
	ck_assert_uint_eq(profile_depth(p, 0), 1);
	ck_assert_uint_eq(profile_depth(p, 1), 2);
}
END_TEST

START_TEST(no_frames_at_all)
{
	struct profile *p cleanup(profile_cleanup) = NULL;

	add(of(1, 0, "a", 5), (const uint64_t[]){ 0 });
	p = build("cpu-clock", 99, NULL);
	ck_assert_uint_eq(profile_sample_count(p), 1);
	ck_assert_uint_eq(profile_depth(p, 0), 0);
	ck_assert_int_eq(profile_values(p, 0)[0], 5);
}
END_TEST

/* Deeper than any stack, and every frame another one. */
START_TEST(deep_stacks)
{
	enum { DEEP = 3000 };
	struct profile *p cleanup(profile_cleanup) = NULL;
	cleanup(freep_cleanup) uint64_t *frames = calloc(DEEP + 1, sizeof(*frames));

	ck_assert_ptr_nonnull(frames);
	for (uint64_t i = 0; i < DEEP; i++)
		frames[i] = ANON + i;
	add(of(1, 0, "a", 1), frames);
	p = build("cpu-clock", 99, NULL);
	ck_assert_uint_eq(profile_depth(p, 0), DEEP);
	for (uint64_t i = 0; i < DEEP; i++)
		ck_assert_uint_eq(profile_location_get(p, location(p, 0, i)).address, ANON + i);
}
END_TEST

/* ---- what is said about the whole ---- */

static int announce_libc(struct dl_phdr_info *info, size_t size, void *ret)
{
	const struct file *f = NULL;
	struct wk_file_event e;
	char real[4096];

	(void)size;
	if (!strstr(info->dlpi_name, "/libc.so.6") || !realpath(info->dlpi_name, real))
		return 0;
	e = file_event(LIBC, real, info->dlpi_phdr);
	ck_assert_int_eq(files_announce(files, &e, &f), 0);
	*(bool *)ret = f->fd >= 0;
	return 1;
}

/* The program is the main binary, even if all its time goes to libraries and the kernel. */
START_TEST(main_mapping)
{
	struct profile *p cleanup(profile_cleanup) = NULL;
	struct profile_mapping m;
	bool libc = false;

	dl_iterate_phdr(announce_libc, &libc);
	if (!readable || !libc)
		return;
	add(of(1, 0, "a", 50), FRAMES(KERNEL_A, known));
	add(of(1, 0, "a", 100), FRAMES(WK_FRAME_MAKE_FILE(LIBC, 0), known));
	p = build("cpu-clock", 99, NULL);
	m = profile_mapping_get(p, profile_main_mapping(p));
	ck_assert_str_eq(profile_str(p, m.file), own_path());
	ck_assert_uint_eq(m.has, PROFILE_HAS_FUNCTIONS);
}
END_TEST

START_TEST(counts)
{
	struct profile *p cleanup(profile_cleanup) = NULL;
	struct build_stats stats;
	const struct module *m;

	if (!readable)
		return;
	add(of(1, 0, "a", 10), FRAMES(known, nameless));	/* its leaf has a name */
	add(of(1, 0, "b", 20), FRAMES(nameless, known, NO_INFO));
	add(of(1, 0, "c", 40), FRAMES(ANON, known));
	add(of(1, 0, "d", 5), FRAMES(KERNEL_A));
	add(of(1, 0, "e", 3), FRAMES(NOBODYS));
	add(of(1, 0, "f", 2), FRAMES(0xffffffff90000000));
	add(of(1, 0, "g", 100), FRAMES(NO_INFO));
	p = build("cpu-clock", 99, &stats);
	ck_assert_uint_eq(stats.frames, 2 * 10 + 2 * 20 + 2 * 40 + 5 + 3 + 2);
	ck_assert_uint_eq(stats.named, 10 + 20 + 40 + 5);
	m = symbolizer_module(sym, stats.worst[0].module);
	ck_assert_int_eq(m->kind, MODULE_ANON);
	ck_assert_uint_eq(stats.worst[0].unnamed, 40);
	m = symbolizer_module(sym, stats.worst[1].module);
	ck_assert_str_eq(m->path, own_path());
	ck_assert_uint_eq(stats.worst[1].unnamed, 20);
	m = symbolizer_module(sym, stats.worst[2].module);
	ck_assert_str_eq(m->path, "[unknown]");
	ck_assert_uint_eq(stats.worst[2].unnamed, 3);
}
END_TEST

struct seen {
	uint32_t calls, last, total;
};

static void progress(void *ctx, uint32_t done, uint32_t total)
{
	struct seen *s = ctx;

	ck_assert(done < total && (!s->calls || done > s->last));
	s->calls++;
	s->last = done;
	s->total = total;
}

START_TEST(progress_told)
{
	struct profile *p cleanup(profile_cleanup) = NULL;
	struct seen seen = { 0 };
	struct build_options o = { .event = event_clock(), .freq = 99, .progress = progress,
				   .ctx = &seen };
	struct build_stats stats;

	for (uint32_t i = 1; i <= 2000; i++)
		add(of(i, 0, "a", 1), FRAMES(ANON));
	ck_assert_int_eq(build_profile(&samples, sym, &o, &p, &stats), 0);
	ck_assert_uint_eq(seen.total, 2000);
	ck_assert_uint_gt(seen.calls, 1);
	ck_assert_uint_lt(seen.calls, 100);
	ck_assert_uint_eq(profile_sample_count(p), 2000);
	ck_assert_uint_eq(profile_location_count(p), 1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("build");
	TCase *t = tcase_create("build");
	SRunner *runner;
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, clock_profile);
	tcase_add_test(t, counted_events);
	tcase_add_test(t, some_entries);
	tcase_add_test(t, nothing_sampled);
	tcase_add_test(t, labels);
	tcase_add_test(t, incarnations_fall_together);
	tcase_add_test(t, named_and_unnamed);
	tcase_add_test(t, in_square_brackets);
	tcase_add_test(t, markers);
	tcase_add_test(t, kernel_with_names);
	tcase_add_test(t, kernel_without_names);
	tcase_add_test(t, kernel_first);
	tcase_add_test(t, no_frames_at_all);
	tcase_add_test(t, deep_stacks);
	tcase_add_test(t, main_mapping);
	tcase_add_test(t, counts);
	tcase_add_test(t, progress_told);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
