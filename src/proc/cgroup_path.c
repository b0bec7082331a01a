/* cgroup_path.c - see cgroup_path.h. */
#include "proc/cgroup_path.h"

#include <ctype.h>

enum { ID_DIGITS = 64 };

/* ---- components ---- */

/* The component that begins at or after s, past slashes: its start, and *len, 0 at the end. */
static const char *component(const char *s, size_t *len)
{
	s += strspn(s, "/");
	*len = strcspn(s, "/");
	return s;
}

/* The component before `end`, in a path; *len is 0 when there is none. */
static const char *component_before(const char *path, const char *end, size_t *len)
{
	const char *s;

	while (end > path && end[-1] == '/')
		end--;
	for (s = end; s > path && s[-1] != '/'; s--)
		;
	*len = (size_t)(end - s);
	return s;
}

/* ---- containers ---- */

static bool is_hex(const char *s, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!isdigit((unsigned char)s[i]) && (s[i] < 'a' || s[i] > 'f'))
			return false;
	return true;
}

static bool ends_with(const char *s, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len >= n && !memcmp(s + len - n, end, n);
}

/* Copies a name, with systemd's \xHH (systemd.unit(5)) undone. -ENOENT for characters that no
 * engine allows: it is something else then. */
static int copy_name(const char *s, size_t len, char ret[static CGROUP_CONTAINER_MAX])
{
	char out[CGROUP_CONTAINER_MAX], hex[3] = "";
	size_t i, n = 0;
	char c;

	for (i = 0; i < len && n < sizeof(out) - 1; i++) {
		c = s[i];
		if (c == '\\' && len - i >= 4 && s[i + 1] == 'x' && is_hex(s + i + 2, 2)) {
			memcpy(hex, s + i + 2, 2);
			c = (char)strtol(hex, NULL, 16);
			i += 3;
		}
		if (!isalnum((unsigned char)c) && c != '_' && c != '.' && c != '-')
			return -ENOENT;
		out[n++] = c;
	}
	if (!n || i < len)
		return -ENOENT;
	memcpy(ret, out, n);
	ret[n] = '\0';
	return 0;
}

/* "<id>", "docker-<id>", "cri-containerd-<id>", "kubepods-...slice:cri-containerd:<id>", each with
 * or without ".scope". The monitor beside a container ("libpod-conmon-<id>") is not in it. */
static bool runtime_id(const char *s, size_t len, char ret[static CGROUP_CONTAINER_MAX])
{
	static const char monitor[] = "conmon-";
	const char *id;

	if (ends_with(s, len, ".scope"))
		len -= strlen(".scope");
	if (len < ID_DIGITS || !is_hex(s + len - ID_DIGITS, ID_DIGITS))
		return false;
	id = s + len - ID_DIGITS;
	if (id > s && id[-1] != '-' && id[-1] != ':')
		return false;
	if (ends_with(s, (size_t)(id - s), monitor))
		return false;
	memcpy(ret, id, ID_DIGITS);
	ret[ID_DIGITS] = '\0';
	return true;
}

/* ECS on Fargate: 32 hex digits, a dash, decimal digits. */
static bool fargate_id(const char *s, size_t len, char ret[static CGROUP_CONTAINER_MAX])
{
	enum { HEX = 32, MAX_DIGITS = 20 };
	size_t i;

	if (len < HEX + 2 || len > HEX + 1 + MAX_DIGITS || !is_hex(s, HEX) || s[HEX] != '-')
		return false;
	for (i = HEX + 1; i < len; i++)
		if (!isdigit((unsigned char)s[i]))
			return false;
	memcpy(ret, s, len);
	ret[len] = '\0';
	return true;
}

static bool is_word(const char *s, size_t len, const char *word)
{
	return len == strlen(word) && !memcmp(s, word, len);
}

/* Before version 4, LXC put a container below a cgroup of its own. */
static bool is_lxc_parent(const char *s, size_t len)
{
	return is_word(s, len, "lxc") || is_word(s, len, "lxc.payload");
}

int cgroup_component_container(const char *parent, size_t parent_len, const char *s, size_t len,
			       char ret[static CGROUP_CONTAINER_MAX])
{
	static const struct {
		const char *start, *end;
	} forms[] = {
		{ "lxc.payload.", "" },
		{ "machine-", ".scope" },
		{ "systemd-nspawn@", ".service" },
	};

	if (runtime_id(s, len, ret) || fargate_id(s, len, ret))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		size_t start = strlen(forms[i].start), end = strlen(forms[i].end);

		if (len > start + end && !memcmp(s, forms[i].start, start) &&
		    ends_with(s, len, forms[i].end))
			return copy_name(s + start, len - start - end, ret);
	}
	return is_lxc_parent(parent, parent_len) ? copy_name(s, len, ret) : -ENOENT;
}

/* Finds the innermost container, from the last component outwards: a container in a container
 * (kind) is the inner one. *ret_below: what follows it in the path. */
static int find_container(const char *path, char ret[static CGROUP_CONTAINER_MAX],
			  const char **ret_below)
{
	const char *s = path + strlen(path), *parent, *end;
	size_t len, parent_len;

	for (;;) {
		s = component_before(path, s, &len);
		if (!len)
			return -ENOENT;
		end = s + len;
		parent = component_before(path, s, &parent_len);
		if (!cgroup_component_container(parent, parent_len, s, len, ret)) {
			*ret_below = end;
			return 0;
		}
	}
}

int cgroup_container_id(const char *path, char ret[static CGROUP_CONTAINER_MAX])
{
	const char *below;

	return find_container(path, ret, &below);
}

/* ---- pods ---- */

/* 8-4-4-4-12 hex digits with dashes (systemd's driver writes them as underscores, since a dash
 * there means a level), or 32 hex digits: the length, 0 for neither. */
static size_t pod_uid(const char *s, size_t len, char ret[static CGROUP_POD_UID_MAX])
{
	enum { UUID = 36, HASH = 32 };
	char out[CGROUP_POD_UID_MAX];
	size_t i;

	if (len >= HASH && is_hex(s, HASH) && (len == HASH || !isxdigit((unsigned char)s[HASH]))) {
		memcpy(ret, s, HASH);
		ret[HASH] = '\0';
		return HASH;
	}
	if (len < UUID)
		return 0;
	for (i = 0; i < UUID; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? s[i] != '-' && s[i] != '_' : !is_hex(s + i, 1))
			return 0;
		out[i] = dash ? '-' : s[i];
	}
	memcpy(ret, out, UUID);
	ret[UUID] = '\0';
	return UUID;
}

/* "pod<uid>", "kubepods-burstable-pod<uid>.slice", the latter also with ":cri-containerd:<id>"
 * behind: containerd's name for a container when kubelet's driver is systemd and its own isn't. */
static bool component_pod(const char *s, size_t len, char ret[static CGROUP_POD_UID_MAX])
{
	static const char word[] = "pod", slice[] = ".slice";
	const size_t nword = sizeof(word) - 1, nslice = sizeof(slice) - 1;
	size_t i, n, left;

	for (i = 0; i + nword < len; i++) {
		if (memcmp(s + i, word, nword) || (i && s[i - 1] != '-'))
			continue;
		n = pod_uid(s + i + nword, len - i - nword, ret);
		left = len - i - nword - n;
		if (n && (!left || (left >= nslice && !memcmp(s + len - left, slice, nslice) &&
				    (left == nslice || s[len - left + nslice] == ':'))))
			return true;
	}
	return false;
}

int cgroup_pod_uid(const char *path, char ret[static CGROUP_POD_UID_MAX])
{
	const char *s = path + strlen(path);
	char uid[CGROUP_POD_UID_MAX];
	size_t len;

	do {
		s = component_before(path, s, &len);
		if (len && component_pod(s, len, uid)) {
			strcpy(ret, uid);
			return 0;
		}
	} while (len);
	return -ENOENT;
}

/* ---- units ---- */

/* systemd.unit(5): letters, digits and ":-_.\@". */
static bool is_unit(const char *s, size_t len, const char *type)
{
	if (len >= CGROUP_UNIT_MAX || len <= strlen(type) || !ends_with(s, len, type))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)s[i]) && !strchr(":-_.\\@", s[i]))
			return false;
	return true;
}

static void copy_unit(const char *s, size_t len, char ret[static CGROUP_UNIT_MAX])
{
	memcpy(ret, s, len);
	ret[len] = '\0';
}

/* The first component that isn't a slice, if it is a unit, else the last slice. Returns what
 * follows it, NULL if there is no unit. */
static const char *first_unit(const char *path, char ret[static CGROUP_UNIT_MAX])
{
	const char *s, *slice = NULL;
	size_t len, slice_len = 0;

	for (s = component(path, &len); len; s = component(s + len, &len)) {
		if (!is_unit(s, len, ".slice"))
			break;
		slice = s;
		slice_len = len;
	}
	if (len && (is_unit(s, len, ".service") || is_unit(s, len, ".scope"))) {
		copy_unit(s, len, ret);
		return s + len;
	}
	if (!slice)
		return NULL;
	copy_unit(slice, slice_len, ret);
	return slice + slice_len;
}

int cgroup_unit(const char *path, char ret[static CGROUP_UNIT_MAX],
		char user_unit[static CGROUP_UNIT_MAX])
{
	static const char manager[] = "user@";
	char container[CGROUP_CONTAINER_MAX];
	const char *below = path;

	user_unit[0] = '\0';
	(void)find_container(path, container, &below);
	below = first_unit(below, ret);
	if (!below)
		return -ENOENT;
	if (!strncmp(ret, manager, strlen(manager)))
		(void)first_unit(below, user_unit);
	return 0;
}
