/* probe.h - a profile by another event than the agent's, with a sampler of its own for its time.
 *
 *	r = probe_run(&options, &profile, &e);	// blocks for options.duration_ns
 *
 * The agent samples by one event. A request for another (page faults, context switches, cycles) gets
 * BPF programs, maps and symbols of its own while it lasts, which costs about 20 MiB; so one probe
 * runs at a time.
 */
#ifndef WICK_AGENT_PROBE_H
#define WICK_AGENT_PROBE_H

#include "collect/recorder.h"
#include "profile/profile.h"
#include "symbol/symbolizer.h"

enum { PROBE_FREQ = 99 };	/* Hz, unless asked otherwise */

struct probe_options {
	struct sampler_options sampler;
	uint64_t rows_bytes, copied_bytes;	/* as in recorder_options */
	struct symbolizer_options symbols;
	uint64_t duration_ns;
	bool (*gone)(void *ctx);	/* asked about once a second; NULL: nobody goes */
	/* Whether an entry belongs to the profile; NULL: all. Its exe is one of these files, which are
	 * the probe's own. */
	bool (*wanted)(void *ctx, const struct files *files, const struct samples_key *key);
	void *gone_ctx, *wanted_ctx;
};

/* 0; -EBUSY: another probe is running; -ECANCELED: gone; else what recorder_new() and recorder_start()
 * say, with a sentence. Any thread. */
int must_check probe_run(const struct probe_options *o, struct profile **ret, struct err *e);

#endif
