/* Tests of kernel/event.h and kernel/outcome.h: tables that users, metrics and messages read. */
#include <check.h>
#include <linux/perf_event.h>

#include "kernel/event.h"
#include "kernel/outcome.h"

START_TEST(clock_is_the_default)
{
	const struct event *e = event_clock();

	ck_assert_str_eq(e->name, "cpu-clock");
	ck_assert(e->clock && !e->falls_back);
	ck_assert_uint_eq(e->type, PERF_TYPE_SOFTWARE);
	ck_assert_uint_eq(e->config, PERF_COUNT_SW_CPU_CLOCK);
	ck_assert_ptr_eq(event_by_name("cpu-clock"), e);
}
END_TEST

START_TEST(events_of_perf)
{
	static const struct {
		const char *name;
		uint32_t type;
		uint64_t config;
	} events[] = {
		{ "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
		{ "instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS },
		{ "cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES },
		{ "branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES },
		{ "page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS },
		{ "context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES },
	};

	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		const struct event *e = event_by_name(events[i].name);

		ck_assert_ptr_nonnull(e);
		ck_assert_str_eq(e->name, events[i].name);
		ck_assert_uint_eq(e->type, events[i].type);
		ck_assert_uint_eq(e->config, events[i].config);
		ck_assert(!e->clock);
		ck_assert_int_eq(e->falls_back, !strcmp(e->name, "cycles"));
	}
}
END_TEST

START_TEST(no_such_events)
{
	static const char *const names[] = { "", " ", "cycles ", "CYCLES", "cycle", "cycles,",
					     "cpu-clock:u", "raw_syscalls:sys_enter" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		ck_assert_ptr_null(event_by_name(names[i]));
}
END_TEST

/* The list of the message names events that are there, each once. */
START_TEST(names_listed)
{
	char list[512], *save = NULL;
	const struct event *seen[64];
	size_t n = 0;

	event_names(list, sizeof(list));
	ck_assert_uint_lt(strlen(list), sizeof(list) - 1);
	for (char *s = strtok_r(list, ", ", &save); s; s = strtok_r(NULL, ", ", &save)) {
		const struct event *e = event_by_name(s);

		ck_assert_ptr_nonnull(e);
		ck_assert_str_eq(e->name, s);
		ck_assert_int_eq(e->clock, e == event_clock());
		for (size_t i = 0; i < n; i++) {
			ck_assert_ptr_ne(seen[i], e);
			ck_assert(seen[i]->type != e->type || seen[i]->config != e->config);
		}
		ck_assert_uint_lt(n, ARRAY_SIZE(seen));
		seen[n++] = e;
	}
	ck_assert_uint_ge(n, 7);
	ck_assert_ptr_eq(seen[0], event_clock());
}
END_TEST

START_TEST(names_cut)
{
	char whole[512], part[512];

	event_names(whole, sizeof(whole));
	for (size_t size = 1; size < 64; size++) {
		memset(part, '#', sizeof(part));
		event_names(part, size);
		ck_assert_uint_eq(strlen(part), size - 1);
		ck_assert_mem_eq(part, whole, size - 1);
		ck_assert_int_eq(part[size], '#');
	}
}
END_TEST

START_TEST(outcomes)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";

	for (unsigned int i = 0; i < WK_OUTCOME_MAX; i++) {
		const char *label = outcome_label(i), *text = outcome_text(i);

		ck_assert_ptr_nonnull(label);
		ck_assert_ptr_nonnull(text);
		ck_assert(label[0] && text[0]);
		ck_assert_uint_eq(strspn(label, letters), strlen(label));
		ck_assert_uint_lt(strlen(text), 80);	/* a frame's name, a line's part */
		ck_assert_ptr_null(strpbrk(text, "[];\n"));
		ck_assert_str_ne(label, "unknown");
		for (unsigned int k = 0; k < i; k++) {
			ck_assert_str_ne(label, outcome_label(k));
			ck_assert_str_ne(text, outcome_text(k));
		}
	}
	ck_assert_str_eq(outcome_label(WK_LOST_WINDOW_FULL), "window_full");
	ck_assert_str_eq(outcome_text(WK_USER_NO_INFO), "no unwind info");
}
END_TEST

START_TEST(outcomes_out_of_range)
{
	static const unsigned int none[] = { WK_OUTCOME_MAX, WK_OUTCOME_MAX + 1, 1000, UINT32_MAX };

	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		ck_assert_str_eq(outcome_label(none[i]), "unknown");
		ck_assert_str_eq(outcome_text(none[i]), "unknown reason");
	}
}
END_TEST

/* The sums that accounting rests on go over ranges: each outcome is in exactly the group it is
 * named after. */
START_TEST(groups)
{
	ck_assert_int_lt(WK_UNSELECTED, WK_LOST_FIRST);
	ck_assert_int_le(WK_LOST_FIRST, WK_LOST_LAST);
	ck_assert_int_lt(WK_LOST_LAST, WK_USER_FIRST);
	ck_assert_int_lt(WK_USER_FIRST, WK_USER_LAST);
	ck_assert_int_lt(WK_USER_LAST, WK_CUT);
#define CHECK(constant, label, text)                                                               \
	ck_assert_int_eq(!strncmp(#constant, "WK_LOST_", 8),                                       \
			 constant >= WK_LOST_FIRST && constant <= WK_LOST_LAST);                   \
	ck_assert_int_eq(!strncmp(#constant, "WK_USER_", 8),                                       \
			 constant >= WK_USER_FIRST && constant <= WK_USER_LAST);
	WK_OUTCOMES(CHECK)
#undef CHECK
}
END_TEST

int main(void)
{
	Suite *s = suite_create("event");
	TCase *t = tcase_create("event");
	SRunner *runner;
	int failed;

	tcase_add_test(t, clock_is_the_default);
	tcase_add_test(t, events_of_perf);
	tcase_add_test(t, no_such_events);
	tcase_add_test(t, names_listed);
	tcase_add_test(t, names_cut);
	tcase_add_test(t, outcomes);
	tcase_add_test(t, outcomes_out_of_range);
	tcase_add_test(t, groups);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
