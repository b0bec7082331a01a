/* build.h - samples and a symbolizer make a profile (DESIGN, "Profile identity").
 *
 * Sample types, period and labels are set here and nowhere else: for a clock samples/count and
 * cpu/nanoseconds, value = the sum of the periods of the ticks (count x period, unless the frequency
 * was changed meanwhile); for another event samples/count and EVENT/count, value =
 * the events counted. Labels: pid (number), comm, and tid (number) where threads are told apart.
 *
 * A frame with a name has a line; one without is named module+0xSTART after the start of its function
 * (module+0xADDRESS where nothing tells the start) and lies in a second mapping of its file that says
 * has_functions = false, so that a server can name it later. What isn't a function is in square
 * brackets: [kernel], [unknown], [truncated: REASON].
 */
#ifndef WICK_BUILD_H
#define WICK_BUILD_H

#include "collect/samples.h"
#include "kernel/event.h"
#include "profile/profile.h"
#include "symbol/symbolizer.h"

struct build_options {
	const struct event *event;
	uint32_t freq;
	int64_t time_nanos, duration_nanos;
	/* Only these entries of the samples; NULL: all. */
	const uint32_t *entries;
	size_t nentries;
	/* Called now and then while frames are resolved; NULL: nobody watches. */
	void (*progress)(void *ctx, uint32_t done, uint32_t total);
	void *ctx;
};

struct build_module {		/* what the summary says of a module */
	uint32_t module;	/* symbolizer_module() */
	uint64_t unnamed;	/* samples whose leaf frame in it has no name */
};

struct build_stats {
	uint64_t frames, named;	/* frames of all samples, markers not counted; those with a name */
	struct build_module worst[3];	/* most unnamed leaf samples first; 0 samples: unused */
};

int must_check build_profile(const struct samples *samples, struct symbolizer *symbolizer,
			     const struct build_options *o, struct profile **ret,
			     struct build_stats *ret_stats);

#endif
