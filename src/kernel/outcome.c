/* outcome.c - see outcome.h. */
#include "kernel/outcome.h"

static const char *const labels[] = {
#define LABEL(constant, label, text) [constant] = label,
	WK_OUTCOMES(LABEL)
};

static const char *const texts[] = {
#define TEXT(constant, label, text) [constant] = text,
	WK_OUTCOMES(TEXT)
};

const char *outcome_label(unsigned int outcome)
{
	return outcome < WK_OUTCOME_MAX ? labels[outcome] : "unknown";
}

const char *outcome_text(unsigned int outcome)
{
	return outcome < WK_OUTCOME_MAX ? texts[outcome] : "unknown reason";
}
