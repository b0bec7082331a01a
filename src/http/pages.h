/* pages.h - the fixed texts of the HTTP side: the index that a Go program has at /debug/pprof/, and
 * what stands at /. */
#ifndef WICK_PAGES_H
#define WICK_PAGES_H

#include "base/buf.h"
#include "http/query.h"

void pages_root(struct buf *ret);	/* text */
void pages_index(const struct query_limits *limits, struct buf *ret);	/* HTML */
/* Why /debug/pprof/NAME isn't there, in a sentence: Go's other profiles are of its own heap,
 * goroutines and so on, which nobody sees from outside. */
void pages_missing(const char *path, struct buf *ret);

#endif
