/* merge.h - add profiles up, by the rules of Go's profile.Merge.
 *
 *	cleanup(profile_cleanup) struct profile *sum = NULL;
 *	r = profile_new(&sum);
 *	for each file:	r = profile_merge(sum, one, &e);
 *
 * All must have the same sample types, in the same order, and the same period type. Of the rest:
 *	time		the earliest that is known (not 0)
 *	duration	the sum
 *	period		the largest
 *	comments	all, each once
 *	default sample type, documentation URL	the first that is set
 *	frames to drop and to keep		the first profile's
 *	main mapping	the first profile's that has mappings
 *	mappings	one for all that agree in size (in pages), file offset and build id
 *			(without one: file name): a library that lies elsewhere in each process
 *			becomes one, and the addresses of its locations move along. Unlike
 *			there, code with and without functions stays apart.
 *	samples		equal stack and labels add up; what is 0 in every value is left out
 */
#ifndef WICK_PROFILE_MERGE_H
#define WICK_PROFILE_MERGE_H

#include "profile/profile.h"

/* Adds src to `into`: a new profile, or the result of earlier merges; src, another profile, is
 * copied. 0; -EINVAL with a sentence that names both types if they can't be added; -ENOMEM;
 * -E2BIG. After the latter two `into` holds a part of src. Cost: linear in the mappings of both
 * and in src. */
int must_check profile_merge(struct profile *into, const struct profile *src, struct err *e);

/* Reads pprof files ("-": standard input) and adds them up, one after the other; a single one is
 * returned as it was read. n is at least 1. Errors: of pprof_read_file and profile_merge, with a
 * sentence that begins with the path. */
int must_check merge_files(const char *const *paths, size_t n, struct profile **ret,
			   struct err *e);

#endif
