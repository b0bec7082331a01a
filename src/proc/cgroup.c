/* cgroup.c - see cgroup.h.
 *
 * Top to bottom: mounts to hierarchies, one bounded walk, and the questions asked of them. What the
 * paths mean is cgroup_path.c's.
 */
#include "proc/cgroup.h"
#include "proc/host.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

enum {
	MAX_TABLE_BYTES = 8 << 20, /* of mountinfo: a host with 10,000 containers has 4 MiB */
	MAX_HIERARCHIES = 32,
	ID_DIGITS = 64,
	ID_MIN_PREFIX = 12, /* what engines print as the short id */
	SHOWN_CANDIDATES = 4,
};

struct cgroups {
	char root[PATH_MAX];			    /* in front of each mount */
	struct cgroup_hierarchy v[MAX_HIERARCHIES]; /* in order of search */
	size_t n;
};

/* ---- mounts ---- */

/* Index of a controller: its line in /proc/cgroups, which the kernel prints in the order of its
 * table. -1: none. */
static int subsys_index(const char *table, const char *name, size_t len)
{
	int i = 0;

	while (*table) {
		if (*table != '#') {
			if (!strncmp(table, name, len) && table[len] == '\t')
				return i;
			i++;
		}
		table += strcspn(table, "\n");
		table += *table == '\n';
	}
	return -1;
}

/* Lower is better: what containers always have a cgroup of their own in. */
static int preference(const char *controller)
{
	static const char *const preferred[] = { "memory", "cpu", "pids" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(preferred); i++)
		if (!strcmp(controller, preferred[i]))
			break;
	return (int)i;
}

/* Chooses the controller among a mount's options, "rw,cpu,cpuacct". False: there is none. */
static bool choose_controller(const char *options, const char *table, struct cgroup_hierarchy *h)
{
	char name[sizeof(h->controller)];
	size_t len;
	int subsys;

	h->subsys = -1;
	for (; *options; options += len + (options[len] == ',')) {
		len = strcspn(options, ",");
		subsys = len && len < sizeof(name) ? subsys_index(table, options, len) : -1;
		if (subsys < 0)
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)len, options);
		if (h->subsys < 0 || preference(name) < preference(h->controller)) {
			h->subsys = subsys;
			memcpy(h->controller, name, sizeof(name));
		}
	}
	return h->subsys >= 0;
}

/* mountinfo writes space, tab, newline and backslash as \ooo: proc_pid_mountinfo(5). In place. */
static void undo_octal(char *s)
{
	char *out = s;

	while (*s) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' &&
		    s[3] >= '0' && s[3] <= '7') {
			*out++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 4;
		} else {
			*out++ = *s++;
		}
	}
	*out = '\0';
}

/* Adds a hierarchy, unless it is there already: then a mount of its root beats one of a part. */
static int add_mount(struct cgroups *cg, const struct cgroup_hierarchy *h, const char *mount,
		     bool whole, bool *is_whole)
{
	char *copy;
	size_t i;

	for (i = 0; i < cg->n; i++)
		if (cg->v[i].subsys == h->subsys)
			break;
	if (i == MAX_HIERARCHIES || (i < cg->n && (is_whole[i] || !whole)))
		return 0;
	copy = strdup(mount);
	if (!copy)
		return -ENOMEM;
	if (i < cg->n)
		free(cg->v[i].mount);
	else
		cg->n++;
	cg->v[i] = *h;
	cg->v[i].mount = copy;
	is_whole[i] = whole;
	return 0;
}

/* "36 35 0:31 ROOT MOUNT OPTIONS [...] - TYPE SOURCE SUPER_OPTIONS": a line, which is cut up. */
static int parse_mount(struct cgroups *cg, char *line, const char *table, bool *is_whole)
{
	struct cgroup_hierarchy h = { .version = 2, .subsys = CGROUP_V2 };
	char *field[5], *rest = strstr(line, " - "), *save = NULL, *type, *options;
	size_t i;

	if (!rest)
		return 0;
	*rest = '\0';
	type = strtok_r(rest + 3, " ", &save);
	if (!type || strncmp(type, "cgroup", 6))
		return 0;
	options = strtok_r(NULL, " ", &save) ? strtok_r(NULL, " ", &save) : NULL;
	for (i = 0, save = NULL; i < ARRAY_SIZE(field); i++) {
		field[i] = strtok_r(i ? NULL : line, " ", &save);
		if (!field[i])
			return 0;
	}
	if (!strcmp(type, "cgroup")) {
		h.version = 1;
		if (!options || !choose_controller(options, table, &h))
			return 0;
	} else if (strcmp(type, "cgroup2")) {
		return 0;
	}
	undo_octal(field[4]);
	return add_mount(cg, &h, field[4], !strcmp(field[3], "/"), is_whole);
}

static bool v2_has_memory(const struct cgroups *cg, const struct cgroup_hierarchy *h)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(4096);
	char path[PATH_MAX];
	const char *s;

	if (snprintf(path, sizeof(path), "%s/cgroup.controllers", h->mount) >= PATH_MAX ||
	    host_read_file(cg->root, path, &b) || !b.data)
		return false;
	s = strstr(b.data, "memory");
	return s && (s == b.data || s[-1] == ' ') && (!s[6] || isspace((unsigned char)s[6]));
}

/* Place of a hierarchy in the order of search, and the first one is the default. */
static int rank(const struct cgroups *cg, const struct cgroup_hierarchy *h)
{
	int p;

	if (h->version == 2)
		return v2_has_memory(cg, h) ? 0 : 4;
	p = 1 + preference(h->controller); /* 1 to 3, or 4: of no preference */
	return p < 4 ? p : 5;
}

/* The best first, then v2, then the others as they came. */
static void sort(struct cgroups *cg)
{
	struct cgroup_hierarchy h;
	size_t i, best = 0;

	for (i = 1; i < cg->n; i++)
		if (rank(cg, &cg->v[i]) < rank(cg, &cg->v[best]))
			best = i;
	h = cg->v[best];
	memmove(cg->v + 1, cg->v, best * sizeof(h));
	cg->v[0] = h;
	for (i = 1; i < cg->n; i++) {
		if (cg->v[i].version == 1)
			continue;
		h = cg->v[i];
		memmove(cg->v + 2, cg->v + 1, (i - 1) * sizeof(h));
		cg->v[1] = h;
	}
}

int cgroups_open(const char *root, struct cgroups **ret)
{
	cleanup(cgroups_cleanup) struct cgroups *cg = calloc(1, sizeof(*cg));
	cleanup(buf_cleanup) struct buf mounts = BUF_INIT(MAX_TABLE_BYTES);
	cleanup(buf_cleanup) struct buf table = BUF_INIT(MAX_TABLE_BYTES);
	bool is_whole[MAX_HIERARCHIES] = { false };
	char *line, *save = NULL;
	int r;

	if (!cg)
		return -ENOMEM;
	if (strlen(root) >= sizeof(cg->root))
		return -ENAMETOOLONG;
	strcpy(cg->root, root);
	r = host_read_file(root, "/proc/self/mountinfo", &mounts);
	if (r)
		return r;
	/* missing in kernels without v1 */
	if (host_read_file(root, "/proc/cgroups", &table))
		buf_reset(&table);
	line = mounts.data ? strtok_r(mounts.data, "\n", &save) : NULL;
	for (; line && !r; line = strtok_r(NULL, "\n", &save))
		r = parse_mount(cg, line, table.data ? table.data : "", is_whole);
	if (r)
		return r;
	if (cg->n)
		sort(cg);
	*ret = take(cg);
	return 0;
}

void cgroups_free(struct cgroups *cg)
{
	size_t i;

	if (!cg)
		return;
	for (i = 0; i < cg->n; i++)
		free(cg->v[i].mount);
	free(cg);
}

enum cgroup_mode cgroups_mode(const struct cgroups *cg)
{
	size_t i, n[3] = { 0 };

	for (i = 0; i < cg->n; i++)
		n[cg->v[i].version]++;
	if (n[1])
		return n[2] ? CGROUP_MODE_HYBRID : CGROUP_MODE_V1;
	return n[2] ? CGROUP_MODE_V2 : CGROUP_MODE_NONE;
}

const char *cgroup_mode_name(enum cgroup_mode mode)
{
	static const char *const names[] = { "none", "v1", "v2", "hybrid" };

	return names[mode];
}

const struct cgroup_hierarchy *cgroups_default(const struct cgroups *cg)
{
	return cg->n ? &cg->v[0] : NULL;
}

/* ---- the walk ---- */

enum step { STEP_INTO, STEP_OVER, STEP_END };

struct walk {
	enum step (*visit)(struct walk *w, const char *name, uint64_t id);
	void *arg;
	size_t dirs, depth;
	bool cut; /* a limit was met: not found is not certain */
	size_t len;
	char path[CGROUP_PATH_MAX]; /* of the directory being visited, below the mount */
};

static enum step walk_dir(struct walk *w, int fd);

static bool within_limits(struct walk *w, const char *name)
{
	bool ok = w->dirs < CGROUP_MAX_DIRS && w->depth < CGROUP_MAX_DEPTH &&
		  strlen(name) + 2 <= sizeof(w->path) - w->len;

	w->cut |= !ok;
	return ok;
}

static enum step walk_entry(struct walk *w, int dir, const char *name)
{
	cleanup(fd_cleanup) int fd =
	    openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	size_t before = w->len, n = strlen(name);
	struct stat st;
	enum step step;
	int child;

	if (fd < 0 || fstat(fd, &st) || !within_limits(w, name))
		return STEP_OVER; /* has gone, isn't ours to see, or is too much */
	w->dirs++;
	w->path[w->len] = '/';
	memcpy(w->path + w->len + 1, name, n + 1);
	w->len += n + 1;
	step = w->visit(w, name, st.st_ino);
	if (step == STEP_INTO) {
		child = fd;
		fd = -1;
		w->depth++;
		step = walk_dir(w, child);
		w->depth--;
	}
	w->len = before;
	w->path[before] = '\0';
	return step;
}

/* Visits what is below a directory; takes fd. */
static enum step walk_dir(struct walk *w, int fd)
{
	enum step step = STEP_OVER;
	struct dirent *d;
	DIR *dir = fdopendir(fd);

	if (!dir) {
		close(fd);
		return STEP_OVER;
	}
	while (step != STEP_END && (d = readdir(dir)))
		if (strcmp(d->d_name, ".") && strcmp(d->d_name, "..") &&
		    (d->d_type == DT_DIR || d->d_type == DT_UNKNOWN))
			step = walk_entry(w, dirfd(dir), d->d_name);
	closedir(dir);
	return step;
}

static int mount_path(const struct cgroups *cg, const struct cgroup_hierarchy *h, const char *path,
		      char ret[static PATH_MAX])
{
	int n = snprintf(ret, PATH_MAX, "%s%s%s%s", cg->root, h->mount,
			 path[0] == '/' || !path[0] ? "" : "/", path);

	return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

static int open_mount(const struct cgroups *cg, const struct cgroup_hierarchy *h)
{
	char path[PATH_MAX];
	int fd, r = mount_path(cg, h, "", path);

	if (r)
		return r;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int walk_hierarchy(const struct cgroups *cg, const struct cgroup_hierarchy *h,
			  struct walk *w)
{
	int fd = open_mount(cg, h);

	if (fd < 0)
		return fd;
	walk_dir(w, fd);
	return 0;
}

struct each {
	int (*fn)(void *ctx, uint64_t id, const char *path);
	void *ctx;
	int r;
};

static enum step call_each(struct walk *w, const char *name, uint64_t id)
{
	struct each *each = w->arg;

	(void)name;
	each->r = each->fn(each->ctx, id, w->path);
	return each->r ? STEP_END : STEP_INTO;
}

int cgroup_each(const struct cgroups *cg, const struct cgroup_hierarchy *h,
		int (*fn)(void *ctx, uint64_t id, const char *path), void *ctx, bool *ret_cut)
{
	struct each each = { fn, ctx, 0 };
	struct walk w = { .visit = call_each, .arg = &each };
	struct stat st;
	int fd = open_mount(cg, h);

	if (fd < 0)
		return fd;
	each.r = fstat(fd, &st) ? -errno : fn(ctx, st.st_ino, "/");
	if (each.r)
		close(fd);
	else
		walk_dir(&w, fd);
	if (ret_cut)
		*ret_cut = w.cut;
	return each.r;
}

/* ---- id to path ---- */

/* Copies what follows the mount's path in an absolute path, "/" for the mount itself. */
static int below_mount(const char *path, const char *mount, char *ret, size_t size)
{
	size_t n = strlen(mount), len;

	while (n && mount[n - 1] == '/')
		n--;
	if (strncmp(path, mount, n) || (path[n] && path[n] != '/'))
		return -EXDEV;
	path += n;
	if (!path[0])
		path = "/";
	len = strlen(path);
	if (len >= size)
		return -ENAMETOOLONG;
	memcpy(ret, path, len + 1);
	return 0;
}

/* The kernel finds a kernfs node by its id, given as a file handle (name_to_handle_at(2)). -ESTALE:
 * there is none. Anything else: this way is not open to us. */
static int path_by_handle(const struct cgroup_hierarchy *h, uint64_t id, char *ret, size_t size)
{
	enum { FILEID_KERNFS = 0xfe }; /* linux/exportfs.h */
	union {
		struct file_handle head;
		unsigned char bytes[sizeof(struct file_handle) + sizeof(id)];
	} handle = { .head = { .handle_bytes = sizeof(id), .handle_type = FILEID_KERNFS } };
	char link[32], path[PATH_MAX];
	ssize_t n;

	cleanup(fd_cleanup) int mount = open(h->mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (mount < 0)
		return -errno;
	memcpy(handle.bytes + offsetof(struct file_handle, f_handle), &id, sizeof(id));
	cleanup(fd_cleanup) int fd =
	    open_by_handle_at(mount, &handle.head, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0)
		return -errno;
	path[n] = '\0';
	return below_mount(path, h->mount, ret, size);
}

struct wanted_id {
	uint64_t id;
	char *path; /* result */
	size_t size;
	int r;
};

static enum step has_id(struct walk *w, const char *name, uint64_t id)
{
	struct wanted_id *want = w->arg;

	(void)name;
	if (id != want->id)
		return STEP_INTO;
	want->r = w->len < want->size ? 0 : -ENAMETOOLONG;
	if (!want->r)
		memcpy(want->path, w->path, w->len + 1);
	return STEP_END;
}

int cgroup_path_by_id(const struct cgroups *cg, const struct cgroup_hierarchy *h, uint64_t id,
		      char *ret, size_t size)
{
	struct wanted_id want = { id, ret, size, -ENOENT };
	struct walk w = { .visit = has_id, .arg = &want };
	char path[PATH_MAX];
	struct stat st;
	int r;

	if (!cg->root[0]) {
		r = path_by_handle(h, id, ret, size);
		if (!r || r == -ENAMETOOLONG)
			return r;
		if (r == -ESTALE)
			return -ENOENT;
	}
	r = mount_path(cg, h, "", path);
	if (r)
		return r;
	if (!stat(path, &st) && st.st_ino == id)
		return below_mount("/", "/", ret, size);
	r = walk_hierarchy(cg, h, &w);
	return r ? r : want.r;
}

/* ---- path to cgroup ---- */

/* The hierarchy a directory lies in, by its device: each hierarchy is a file system of its own. */
static const struct cgroup_hierarchy *hierarchy_of(const struct cgroups *cg, dev_t dev)
{
	char path[PATH_MAX];
	struct stat st;
	size_t i;

	for (i = 0; i < cg->n; i++)
		if (!mount_path(cg, &cg->v[i], "", path) && !stat(path, &st) && st.st_dev == dev)
			return &cg->v[i];
	return NULL;
}

/* Looks at one directory. -ENOTDIR: it's there, but isn't a cgroup that we can select by. */
static int try_directory(const struct cgroups *cg, const char *path, struct cgroup *ret)
{
	char real[PATH_MAX];
	struct statfs fs;
	struct cgroup c;
	struct stat st;
	int r;

	cleanup(fd_cleanup) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstatfs(fd, &fs) || fstat(fd, &st))
		return -errno;
	if (fs.f_type != CGROUP2_SUPER_MAGIC && fs.f_type != CGROUP_SUPER_MAGIC)
		return -ENOTDIR;
	c.hierarchy = hierarchy_of(cg, st.st_dev);
	if (!c.hierarchy)
		return -ENOTDIR;
	c.id = st.st_ino;
	if (!realpath(path, real))
		return -errno;
	r = below_mount(real, c.hierarchy->mount, c.path, sizeof(c.path));
	if (r == -EXDEV) /* seen through another mount of the same hierarchy */
		r = cgroup_path_by_id(cg, c.hierarchy, c.id, c.path, sizeof(c.path));
	if (!r)
		*ret = c;
	return r;
}

/* "memory (/sys/fs/cgroup/memory), v2 (...)" */
static void list_hierarchies(const struct cgroups *cg, struct buf *b)
{
	size_t i;

	for (i = 0; i < cg->n; i++)
		buf_printf(b, "%s%s (%s)", i ? ", " : "",
			   cg->v[i].version == 2 ? "v2" : cg->v[i].controller, cg->v[i].mount);
}

static int resolve_error(const struct cgroups *cg, const char *path, int r, struct err *e)
{
	cleanup(buf_cleanup) struct buf where = BUF_INIT(65536);

	if (r == -ENOTDIR)
		return err_set(e, r,
			       "'%.200s' is not a cgroup's directory (or one of a v1 hierarchy "
			       "without a controller)",
			       path);
	if (r != -ENOENT)
		return err_set(e, r, "cgroup '%.200s': %s", path, strerror(-r));
	if (!cg->n)
		return err_set(e, r, "cgroup '%.200s': no cgroup file system is mounted", path);
	list_hierarchies(cg, &where);
	return err_set(e, r, "no cgroup '%.200s'; looked in %.250s", path,
		       where.data ? where.data : "");
}

int cgroup_resolve(const struct cgroups *cg, const char *path, struct cgroup *ret, struct err *e)
{
	char full[PATH_MAX];
	size_t i;
	int r = -ENOENT;

	if (!path[0])
		return err_set(e, -ENOENT, "a cgroup's path must not be empty");
	if (path[0] == '/') {
		/* a directory that exists but is no cgroup may be a path below a root too */
		if (snprintf(full, sizeof(full), "%s%s", cg->root, path) >= PATH_MAX)
			return resolve_error(cg, path, -ENAMETOOLONG, e);
		r = try_directory(cg, full, ret);
	}
	for (i = 0; i < cg->n && (r == -ENOENT || r == -ENOTDIR); i++) {
		int next = mount_path(cg, &cg->v[i], path, full);

		if (!next)
			next = try_directory(cg, full, ret);
		if (next != -ENOENT)
			r = next;
	}
	return r ? resolve_error(cg, path, r, e) : 0;
}

/* ---- container to cgroup ---- */

struct search {
	const char *name;
	bool is_id; /* name can be the start of an id */
	size_t found, dirs;
	struct cgroup first;
	struct buf shown; /* the first few, for the message */
};

static bool is_wanted(const struct search *s, const char *parent_path, const char *component)
{
	const char *parent = strrchr(parent_path, '/');
	char id[CGROUP_CONTAINER_MAX];

	if (!strcmp(component, s->name))
		return true;
	parent = parent ? parent + 1 : parent_path;
	if (cgroup_component_container(parent, strlen(parent), component, strlen(component), id))
		return false;
	return s->is_id ? !strncmp(id, s->name, strlen(s->name)) : !strcmp(id, s->name);
}

/* Doesn't look into a match: what is below belongs to it. */
static enum step has_container(struct walk *w, const char *name, uint64_t id)
{
	struct search *s = w->arg;
	size_t parent_len = w->len - strlen(name) - 1;
	char parent[CGROUP_PATH_MAX];

	memcpy(parent, w->path, parent_len);
	parent[parent_len] = '\0';
	if (!is_wanted(s, parent, name))
		return STEP_INTO;
	if (!s->found++) {
		s->first.id = id;
		memcpy(s->first.path, w->path, w->len + 1);
	}
	if (s->found <= SHOWN_CANDIDATES)
		buf_printf(&s->shown, "%s%s", s->found > 1 ? ", " : "", w->path);
	return STEP_OVER;
}

static int not_found(const struct cgroups *cg, const struct search *s, bool cut, struct err *e)
{
	if (!cg->n)
		return err_set(e, -ENOENT, "container '%.100s': no cgroup file system is mounted",
			       s->name);
	return err_set(
	    e, -ENOENT,
	    "no container '%.100s': searched %zu cgroups in %zu hierarch%s%s for an id of 64 "
	    "hex digits that begins with it (at least 12 must be given), lxc.payload.NAME, "
	    "machine-NAME.scope, or just NAME; names that only the container engine knows "
	    "can't be seen here, ids can",
	    s->name, s->dirs, cg->n, cg->n == 1 ? "y" : "ies", cut ? ", not all," : "");
}

int cgroup_find_container(const struct cgroups *cg, const char *name, struct cgroup *ret,
			  struct err *e)
{
	struct search s = { .name = name, .shown = BUF_INIT(1 << 16) };
	size_t i, len = strlen(name);
	bool cut = false;
	int r = 0;

	if (!len || strchr(name, '/') || name[0] == '.')
		return err_set(e, -EINVAL, "'%.100s' is not a container's id or name", name);
	s.is_id = len >= ID_MIN_PREFIX && len <= ID_DIGITS &&
		  strspn(name, "0123456789abcdef") == len;
	for (i = 0; i < cg->n && !s.found; i++) {
		struct walk w = { .visit = has_container, .arg = &s };

		s.first.hierarchy = &cg->v[i];
		if (walk_hierarchy(cg, &cg->v[i], &w))
			continue;
		s.dirs += w.dirs;
		cut |= w.cut;
	}
	if (!s.found)
		r = not_found(cg, &s, cut, e);
	else if (s.found > 1)
		r = err_set(e, -ENOTUNIQ,
			    "container '%.64s' could be any of %zu: %.340s%s; use "
			    "--cgroup",
			    name, s.found, s.shown.data ? s.shown.data : "",
			    s.found > SHOWN_CANDIDATES ? ", ..." : "");
	else
		*ret = s.first;
	buf_free(&s.shown);
	return r;
}
