/* procinfo.c - see procinfo.h. */
#include "workload/procinfo.h"

#include <limits.h>

#include "proc/pid.h"

enum { FILE_BYTES = 64 << 10 };

/* To pid_open(), a start time of 0 would be anybody. */
static int open_process(uint32_t pid, uint64_t start_time)
{
	return pid && start_time ? pid_open(pid, start_time) : -ESRCH;
}

int procinfo_exe(uint32_t pid, uint64_t start_time, char *ret, size_t size)
{
	static const char deleted[] = " (deleted)";
	const size_t suffix = sizeof(deleted) - 1;
	char link[PATH_MAX];
	size_t len;
	ssize_t n;

	cleanup(fd_cleanup) int dir = open_process(pid, start_time);
	if (dir < 0)
		return dir;
	n = readlinkat(dir, "exe", link, sizeof(link) - 1);
	if (n < 0)
		return -errno;
	len = (size_t)n;
	link[len] = '\0';
	if (len > suffix && !strcmp(link + len - suffix, deleted))
		link[len -= suffix] = '\0';
	if (len >= size)
		return -ENAMETOOLONG;
	memcpy(ret, link, len + 1);
	return 0;
}

/* Whether a controller is in a list "cpu,cpuacct" of so many bytes. */
static bool lists(const char *list, size_t len, const char *controller)
{
	size_t n = strlen(controller), word;

	for (const char *s = list; s < list + len; s += word + 1) {
		word = strcspn(s, ",:");
		if (word == n && !memcmp(s, controller, n))
			return true;
	}
	return false;
}

/* "4:cpu,cpuacct:/path" or "0::/path" (cgroups(7)). NULL: another hierarchy's line. */
static const char *path_in_line(const char *line, const struct cgroup_hierarchy *h)
{
	const char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
	size_t len;

	if (!path)
		return NULL;
	len = (size_t)(path - ++list);
	if (h->version == 2 ? len || strtoul(line, NULL, 10) : !lists(list, len, h->controller))
		return NULL;
	return path + 1;
}

int procinfo_parse_cgroup(char *text, const struct cgroup_hierarchy *h, char *ret, size_t size)
{
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		const char *path = path_in_line(line, h);
		size_t len = path ? strlen(path) : 0;

		if (!path)
			continue;
		while (!strncmp(path, "/../", strlen("/../"))) {
			path += strlen("/..");
			len -= strlen("/..");
		}
		if (len >= size)
			return -ENAMETOOLONG;
		memcpy(ret, path, len + 1);
		return 0;
	}
	return -ENOENT;
}

int procinfo_cgroup(uint32_t pid, uint64_t start_time, const struct cgroup_hierarchy *h, char *ret,
		    size_t size)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(FILE_BYTES);
	int r;

	cleanup(fd_cleanup) int dir = open_process(pid, start_time);
	if (dir < 0)
		return dir;
	r = pid_read_text(dir, "cgroup", &b);
	if (r)
		return r;
	return b.data ? procinfo_parse_cgroup(b.data, h, ret, size) : -ENOENT;
}
