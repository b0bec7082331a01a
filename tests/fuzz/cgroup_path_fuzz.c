/* cgroup_path_fuzz.c - any text as the path of a cgroup: what comes out keeps what the header
 * promises, and stands in the path. */
#include "proc/cgroup_path.h"

#include <assert.h>
#include <ctype.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool only(const char *s, const char *others)
{
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr(others, *s))
			return false;
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char id[CGROUP_CONTAINER_MAX], uid[CGROUP_POD_UID_MAX];
	char unit[CGROUP_UNIT_MAX], user_unit[CGROUP_UNIT_MAX];
	char *path = malloc(size + 1);

	assert(path);
	memcpy(path, data, size);
	path[size] = '\0';
	if (!cgroup_container_id(path, id))
		assert(id[0] && only(id, "_.-"));
	if (!cgroup_pod_uid(path, uid))
		assert((strlen(uid) == 32 || strlen(uid) == 36) &&
		       strspn(uid, "0123456789abcdef-") == strlen(uid));
	if (!cgroup_unit(path, unit, user_unit))
		assert(strstr(path, unit) && only(unit, ":-_.\\@") &&
		       (!user_unit[0] || (strstr(path, user_unit) && strstr(unit, "user@"))));
	else
		assert(!user_unit[0]);
	free(path);
	return 0;
}
