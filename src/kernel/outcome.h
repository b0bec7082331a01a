/* outcome.h - names of enum wk_outcome: labels for metrics, texts for people. */
#ifndef WICK_OUTCOME_H
#define WICK_OUTCOME_H

#include "wick_abi.h"

const char *outcome_label(unsigned int outcome);	/* "window_full"; "unknown" out of range */
const char *outcome_text(unsigned int outcome);		/* "stack window full" */

#endif
