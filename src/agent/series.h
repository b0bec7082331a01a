/* series.h - the samples of a window, by the series they belong to.
 *
 *	r = series_split(&samples, labels_of, ctx, 500, &set);
 *	for (size_t i = 0; i < set.n; i++)
 *		... build_profile() of set.v[i].entries under set.v[i].labels ...
 *	series_free(&set);
 *
 * A series is a label set. Their number is bounded, since each costs the server memory for ever and
 * labels are chosen by whoever starts processes: once max_series are there, a sample of another joins
 * the one with service_name SERIES_OTHER. Samples are moved, never dropped.
 *
 * Cost: a labels look-up per process, thread name and cgroup; a hash look-up for each entry.
 */
#ifndef WICK_SERIES_H
#define WICK_SERIES_H

#include "base/labels.h"
#include "collect/samples.h"

#define SERIES_OTHER "_other_"

struct series {
	struct labels labels;
	uint32_t *entries;	/* of the samples */
	size_t n, cap;
	uint64_t samples;
};

struct series_set {
	struct series *v;
	size_t n, cap;
	uint64_t joined;	/* samples that went to SERIES_OTHER */
};

/* The labels of an entry's process: 0 with *ret to be freed; 1: it is not to be profiled; -ENOMEM. */
typedef int series_labels(void *ctx, const struct samples_key *key, struct labels *ret);

/* 0, -ENOMEM. On failure *ret is untouched. */
int must_check series_split(const struct samples *samples, series_labels *labels, void *ctx,
			    uint32_t max_series, struct series_set *ret);
void series_free(struct series_set *set);

static inline maybe_unused void series_cleanup(struct series_set *set)
{
	series_free(set);
}

#endif
