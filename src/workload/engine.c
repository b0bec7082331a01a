/* engine.c - see engine.h. */
#include "workload/engine.h"

#include <ctype.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/clock.h"

enum { ID_DIGITS = 64 };

struct name {
	char id[ID_DIGITS + 1];
	char *text;
};

/* A list of containers/storage, and which version of the file it is. */
struct list {
	const char *path;
	uint64_t read_at; /* monotonic ns, 0: never */
	struct stat st;
	struct name *v; /* sorted by id */
	size_t n, cap;
};

static const char *const list_paths[] = {
	"/var/lib/containers/storage/overlay-containers/containers.json",
	"/run/containers/storage/overlay-containers/volatile-containers.json",
	"/var/lib/containers/storage/vfs-containers/containers.json",
	"/run/containers/storage/vfs-containers/volatile-containers.json",
	"/var/lib/containers/storage/btrfs-containers/containers.json",
	"/run/containers/storage/btrfs-containers/volatile-containers.json",
};

struct engine {
	char root[PATH_MAX];
	struct list lists[ARRAY_SIZE(list_paths)];
};

/* ---- texts ---- */

static bool is_id(const char *s)
{
	return s && strlen(s) == ID_DIGITS && strspn(s, "0123456789abcdef") == ID_DIGITS;
}

static bool is_name(const char *s)
{
	size_t len = s ? strlen(s) : 0;

	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)s[i]) && !strchr("_.-", s[i]))
			return false;
	return len && len < ENGINE_NAME_MAX;
}

static void tell(const char *id, const char *name, engine_container *fn, void *ctx)
{
	if (is_id(id) && is_name(name))
		fn(ctx, id, name);
}

int engine_read_podman(const char *json, size_t len, engine_container *fn, void *ctx)
{
	json_t *list = json_loadb(json, len, 0, NULL);
	int r = json_is_array(list) ? 0 : -EBADMSG;

	for (size_t i = 0; i < json_array_size(list) && i < ENGINE_NAMES_MAX; i++) {
		const json_t *c = json_array_get(list, i);

		tell(json_string_value(json_object_get(c, "id")),
		     json_string_value(json_array_get(json_object_get(c, "names"), 0)), fn, ctx);
	}
	json_decref(list);
	return r;
}

/* Docker's names begin with a slash. */
int engine_read_docker(const char *json, size_t len, engine_container *fn, void *ctx)
{
	json_t *c = json_loadb(json, len, 0, NULL);
	const char *name = json_string_value(json_object_get(c, "Name"));
	int r = json_is_object(c) ? 0 : -EBADMSG;

	tell(json_string_value(json_object_get(c, "ID")), name && name[0] == '/' ? name + 1 : name,
	     fn, ctx);
	json_decref(c);
	return r;
}

/* ---- files ---- */

/* Reads a regular file; *st is that of what was read. */
static int read_file(const struct engine *e, const char *path, struct buf *b, struct stat *st)
{
	char full[PATH_MAX], chunk[16 << 10];
	ssize_t n;

	if (snprintf(full, sizeof(full), "%s%s", e->root, path) >= PATH_MAX)
		return -ENAMETOOLONG;
	cleanup(fd_cleanup) int fd = open(full, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, st))
		return -errno;
	if (!S_ISREG(st->st_mode))
		return -EINVAL;
	if (st->st_size > ENGINE_FILE_MAX)
		return -E2BIG;
	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		buf_bytes(b, chunk, (size_t)n);
	return n < 0 ? -errno : b->err;
}

static int by_id(const void *a, const void *b)
{
	return strcmp(((const struct name *)a)->id, ((const struct name *)b)->id);
}

static void clear_list(struct list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i].text);
	l->n = 0;
}

static void add_name(void *ctx, const char *id, const char *text)
{
	struct list *l = ctx;
	char *copy = strdup(text);

	if (!copy || array_grow(&l->v, &l->cap, l->n + 1, sizeof(*l->v))) {
		free(copy); /* nameless, then */
		return;
	}
	strcpy(l->v[l->n].id, id);
	l->v[l->n++].text = copy;
}

static bool has_changed(const struct engine *e, const struct list *l)
{
	char full[PATH_MAX];
	struct stat st;

	if (snprintf(full, sizeof(full), "%s%s", e->root, l->path) >= PATH_MAX || lstat(full, &st))
		return false; /* gone: what it said stays true of the containers that it named */
	return st.st_ino != l->st.st_ino || st.st_size != l->st.st_size ||
	       st.st_mtim.tv_sec != l->st.st_mtim.tv_sec ||
	       st.st_mtim.tv_nsec != l->st.st_mtim.tv_nsec;
}

static void read_list(const struct engine *e, struct list *l)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(ENGINE_FILE_MAX);
	struct stat st = l->st;
	int r;

	l->read_at = clock_monotonic();
	r = read_file(e, l->path, &b, &st);
	l->st = st; /* one that can't be read isn't tried again until it changes */
	if (r || !b.data)
		return;
	clear_list(l);
	(void)!engine_read_podman(b.data, b.len, add_name, l);
	if (l->n)
		qsort(l->v, l->n, sizeof(*l->v), by_id);
}

static const struct name *find(const struct list *l, const struct name *key)
{
	return l->n ? bsearch(key, l->v, l->n, sizeof(*l->v), by_id) : NULL;
}

/* ---- questions ---- */

struct answer {
	const char *id;
	char *name; /* of ENGINE_NAME_MAX */
	bool found;
};

static void take_answer(void *ctx, const char *id, const char *name)
{
	struct answer *a = ctx;

	a->found = !strcmp(id, a->id);
	if (a->found)
		strcpy(a->name, name);
}

static bool docker_name(const struct engine *e, const char *id, char *ret)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(ENGINE_FILE_MAX);
	struct answer a = { id, ret, false };
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "/var/lib/docker/containers/%s/config.v2.json", id);
	if (!read_file(e, path, &b, &st) && b.data)
		(void)!engine_read_docker(b.data, b.len, take_answer, &a);
	return a.found;
}

int engine_name(struct engine *e, const char *id, char ret[static ENGINE_NAME_MAX])
{
	const struct name *found;
	struct name key;

	if (!is_id(id))
		return -ENOENT;
	strcpy(key.id, id);
	for (size_t i = 0; i < ARRAY_SIZE(e->lists); i++) {
		struct list *l = &e->lists[i];

		found = find(l, &key);
		if (!found && clock_monotonic() - l->read_at >= ENGINE_READ_NS &&
		    has_changed(e, l)) {
			read_list(e, l);
			found = find(l, &key);
		}
		if (found) {
			strcpy(ret, found->text);
			return 0;
		}
	}
	return docker_name(e, id, ret) ? 0 : -ENOENT;
}

int engine_new(const char *root, struct engine **ret)
{
	struct engine *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	snprintf(e->root, sizeof(e->root), "%s", root);
	for (size_t i = 0; i < ARRAY_SIZE(e->lists); i++)
		e->lists[i].path = list_paths[i];
	*ret = e;
	return 0;
}

void engine_free(struct engine *e)
{
	for (size_t i = 0; e && i < ARRAY_SIZE(e->lists); i++) {
		clear_list(&e->lists[i]);
		free(e->lists[i].v);
	}
	free(e);
}
