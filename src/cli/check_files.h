/* check_files.h - `wick check --files PID`: a table of unwind tables, for people. */
#ifndef WICK_CLI_CHECK_FILES_H
#define WICK_CLI_CHECK_FILES_H

#include "base/base.h"

/* Prints a line for each file that the process runs and, after sampling it for duration_ns (0: not at
 * all), where the walks of its stacks ended. 0, or -errno with a sentence. */
int must_check check_files(uint32_t pid, uint64_t duration_ns, bool unsafe_kernel, struct err *e);

#endif
