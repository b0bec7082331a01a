/* unit.h - numbers as people read them: "1.20s", "35.5MiB", "99".
 *
 * Times (unit "nanoseconds", "microseconds", "milliseconds", "seconds") are shown in the unit from
 * ns to h, sizes ("bytes") in that from B to TiB, in which they are at least 1; three or more
 * digits. Anything else, "count" above all, is the plain number.
 */
#ifndef WICK_PROFILE_UNIT_H
#define WICK_PROFILE_UNIT_H

#include "base/buf.h"

enum { UNIT_TEXT_MAX = 32 };

/* Writes the text, with its NUL, and returns it. */
const char *unit_format(int64_t value, const char *unit, char ret_text[static UNIT_TEXT_MAX]);
/* "12.3%"; "-" if total is 0. */
const char *unit_percent(int64_t value, int64_t total, char ret_text[static UNIT_TEXT_MAX]);

#endif
