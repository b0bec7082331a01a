/* summary.h - what `wick record` tells about a recording, on standard error. */
#ifndef WICK_SUMMARY_H
#define WICK_SUMMARY_H

#include "collect/build.h"
#include "collect/recorder.h"
#include "symbol/debuginfod.h"

/* Ticks and their fates, losses with reasons, share of stacks that reached their root, share of
 * frames with a name, and the heaviest modules without symbols with a hint how to get them. */
void summary_print(FILE *out, const struct recorder *rec, const struct symbolizer *sym,
		   const struct build_stats *stats);

/* What became of the debug files that servers were asked for; nothing if there were none. */
void summary_servers(FILE *out, struct debuginfod *servers);

/* One line that overwrites itself, for terminals; summary_progress_end removes it. */
void summary_progress(FILE *out, const struct recorder *rec);
void summary_naming(FILE *out, uint32_t done, uint32_t total);
void summary_fetching(FILE *out, uint32_t waiting);
void summary_progress_end(FILE *out);

#endif
