/* split.h - a profile as pprof bytes that every server takes, in several parts if it must be.
 *
 *	static int part(void *ctx, struct item_profile *p) { ... owns p->pprof now ... }
 *	struct split_stats st;
 *	r = split_profile(p, &(struct split_limits){ 0 }, part, ctx, &st);
 *
 * Servers refuse what is too large, and some say "try again later" for ever instead
 * (SPLIT_RAW_BYTES). The parts have the same types and period, samples of their own, and the
 * mappings, locations and functions that these need, numbered from 1 as always. Labels and
 * time_nanos are a profile's identity to servers, so the parts' times differ by a nanosecond each,
 * from the profile's own upwards.
 * Stacks are at most SPLIT_FRAMES deep.
 * Names of sample and period types that servers choke on ('-', ':' and spaces; they end up in names
 * of metrics) get '_' instead, e.g. page_faults.
 *
 * Cost: one pprof_write() for a profile below the limits; one copy and one more pprof_write() for
 * each halving.
 */
#ifndef WICK_NET_SPLIT_H
#define WICK_NET_SPLIT_H

#include "net/item.h"
#include "profile/profile.h"

enum {
	/* Pyroscope's default burst is 2 MiB a tenant, of all that come at a time: what has more
	 * can't pass, what has half of it can. */
	SPLIT_RAW_BYTES = 1 << 20,
	SPLIT_SAMPLES = 16000,
	/* Of a deeper stack Pyroscope leaves out the 500 frames that matter most, those at the leaf. So
	 * here it loses its middle: a frame SPLIT_CUT stands for it, SPLIT_ROOT ones are behind that. */
	SPLIT_FRAMES = 1000,
	SPLIT_ROOT = 200,
};

#define SPLIT_CUT "[truncated: middle of the stack left out]"

struct split_limits {
	size_t raw;		/* bytes before gzip; 0: SPLIT_RAW_BYTES */
	uint32_t samples;	/* 0: SPLIT_SAMPLES */
};

struct split_stats {
	uint32_t parts;
	uint32_t unsendable;	/* samples that are over the limit alone: left out */
};

/* Takes p->pprof. A negative result ends the splitting and is returned. */
typedef int split_part_fn(void *ctx, struct item_profile *p);

/* A profile without samples has no parts. 0; -EINVAL: without types, period type, period, duration
 * or time there are servers that lose data of others over it, so it isn't sent; -ENOMEM, -E2BIG,
 * or what the callback returned. */
int must_check split_profile(const struct profile *p, const struct split_limits *limits,
			     split_part_fn *each, void *ctx, struct split_stats *ret);

/* The name of the metric, e.g. process_cpu; borrowed from the profile until it changes. */
const char *split_type(const struct profile *p);

#endif
