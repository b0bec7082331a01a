/* prom.h - metrics in Prometheus' text format (version 0.0.4).
 *
 *	prom_metric(&b, "wick_lost_total", PROM_COUNTER, "Ticks without a sample, by reason.");
 *	prom_count(&b, "wick_lost_total", lost[i], "reason", name, NULL);	// for each reason
 *	prom_metric(&b, "wick_push_seconds", PROM_HISTOGRAM, "Time of one push.");
 *	prom_histogram(&b, "wick_push_seconds", &h, "sink", url, NULL);
 *
 * Labels are pairs of name and value, ended by NULL. Names must be the format's own
 * ([a-zA-Z_:][a-zA-Z0-9_:]*, for labels without ':'): they are written by us. Values and help are
 * any bytes: made valid UTF-8 and escaped here. What belongs together is up to the caller: all
 * samples of a metric follow its prom_metric() at once, which is called once.
 */
#ifndef WICK_PROM_H
#define WICK_PROM_H

#include "base/buf.h"

#define PROM_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

enum prom_type {
	PROM_COUNTER,
	PROM_GAUGE,
	PROM_HISTOGRAM,
};

struct prom_histogram {
	const double *bounds;	/* upper ones, ascending, without +Inf */
	const uint64_t *counts;	/* n + 1: in each bucket alone, the last beyond every bound */
	size_t n;
	double sum;
};

void prom_metric(struct buf *b, const char *name, enum prom_type type, const char *help);
/* Counters are exact to the last of 64 bits; numbers have 17 digits, so they survive being read. */
void prom_count(struct buf *b, const char *name, uint64_t value, ...) __attribute__((sentinel));
void prom_number(struct buf *b, const char *name, double value, ...) __attribute__((sentinel));
/* _bucket for each bound and +Inf, cumulative, then _sum and _count. */
void prom_histogram(struct buf *b, const char *name, const struct prom_histogram *h, ...)
	__attribute__((sentinel));

#endif
