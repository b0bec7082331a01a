/* pod.c - see pod.h. Fields by the Kubernetes API reference, "Pod v1 core". */
#include "workload/pod.h"

#include <ctype.h>

/* ---- fields ---- */

static const json_t *member(const json_t *object, const char *name)
{
	return json_object_get(object, name); /* NULL for whatever isn't an object */
}

static const char *text(const json_t *object, const char *name)
{
	const char *s = json_string_value(member(object, name));

	return s && s[0] ? s : NULL;
}

static int copy_text(const char *from, char **ret)
{
	char *copy = strndup(from, POD_TEXT_MAX - 1);

	if (!copy)
		return -ENOMEM;
	free(*ret);
	*ret = copy;
	return 0;
}

/* ---- identity ---- */

static bool is_uid(const char *s)
{
	size_t len = strlen(s);

	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)s[i]) && s[i] != '-')
			return false;
	return len && len < POD_UID_MAX;
}

/* The API's copy of a static pod has a uid of its own; kubelet names the cgroup by the manifest's
 * hash. */
static int read_identity(const json_t *meta, struct pod *p)
{
	const json_t *annotations = member(meta, "annotations");
	const char *name = text(meta, "name"), *namespace = text(meta, "namespace");
	const char *uid = text(meta, "uid"), *hash = text(annotations, "kubernetes.io/config.hash");
	int r;

	if (hash && text(annotations, "kubernetes.io/config.mirror"))
		uid = hash;
	if (!name || !namespace || !uid || !is_uid(uid))
		return -EINVAL;
	strcpy(p->uid, uid);
	r = copy_text(name, &p->name);
	return r ? r : copy_text(namespace, &p->namespace);
}

/* ---- owner ---- */

static const json_t *controller(const json_t *meta)
{
	const json_t *owners = member(meta, "ownerReferences"), *owner;

	for (size_t i = 0; i < json_array_size(owners); i++) {
		owner = json_array_get(owners, i);
		if (json_is_true(member(owner, "controller")))
			return owner;
	}
	return NULL;
}

/* The length of "api" in "api-7d9f8": what precedes "-" and a suffix; 0: name doesn't end so. */
static size_t without_suffix(const char *name, const char *suffix)
{
	size_t len = strlen(name), n = strlen(suffix);

	if (!n || len < n + 2 || strcmp(name + len - n, suffix) || name[len - n - 1] != '-')
		return 0;
	return len - n - 1;
}

/* A CronJob names its jobs "backup-28912345": minutes since 1970, so eight digits until 2160. */
static size_t without_minutes(const char *name)
{
	const char *dash = strrchr(name, '-');

	if (!dash || strlen(dash) != 9 || strspn(dash + 1, "0123456789") != 8)
		return 0;
	return (size_t)(dash - name);
}

/* A Deployment owns its pods through a ReplicaSet "NAME-HASH", the hash being in a label of the
 * pod; a CronJob through a Job. */
static int read_owner(const json_t *meta, struct pod *p)
{
	const json_t *owner = controller(meta);
	const char *kind = text(owner, "kind"), *name = text(owner, "name");
	const char *hash = text(member(meta, "labels"), "pod-template-hash");
	size_t len = 0;
	int r;

	if (!kind || !name)
		return 0;
	if (!strcmp(kind, "ReplicaSet") && hash && (len = without_suffix(name, hash)))
		kind = "Deployment";
	else if (!strcmp(kind, "Job") && (len = without_minutes(name)))
		kind = "CronJob";
	r = copy_text(kind, &p->workload_kind);
	if (!r)
		r = copy_text(name, &p->workload);
	if (!r && len && len < POD_TEXT_MAX)
		p->workload[len] = '\0';
	return r;
}

/* ---- what it says about itself ---- */

static int read_service(const json_t *meta, struct pod *p)
{
	const json_t *annotations = member(meta, "annotations"), *labels = member(meta, "labels");
	const char *const names[] = {
		text(annotations, "profiles.grafana.com/service_name"),
		text(annotations, "pyroscope.io/service_name"),
		text(labels, "app.kubernetes.io/name"),
		text(labels, "app"),
		p->workload,
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i])
			return copy_text(names[i], &p->service);
	return 0;
}

/* The first of these annotations that says true or false. */
static int read_asks(const json_t *meta)
{
	static const char *const names[] = {
		"profiles.grafana.com/cpu.ebpf.enabled",
		"pyroscope.io/profile-cpu-enabled",
		"pyroscope.io/scrape",
		"profefe.com/enable",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *value = text(member(meta, "annotations"), names[i]);

		if (value && !strcasecmp(value, "true"))
			return 1;
		if (value && !strcasecmp(value, "false"))
			return -1;
	}
	return 0;
}

/* Those that are wished for and there; beyond LABELS_MAX they are left out. */
static int read_extra(const json_t *from, const struct str_list *wished, struct pod *p)
{
	for (size_t i = 0; wished && i < wished->n; i++) {
		const char *value = text(from, wished->v[i]);
		int r = value ? labels_default(&p->extra, wished->v[i], value) : 0;

		if (r == -ENOMEM)
			return r;
	}
	return 0;
}

/* ---- containers ---- */

/* Adds an id as the API writes it, "containerd://3f2a...". */
static int add_container(struct pod *p, const char *name, const char *id)
{
	const char *bare = id ? strstr(id, "://") : NULL;
	struct pod_container c = { 0 };
	int r;

	bare = bare ? bare + 3 : id;
	if (!name || !bare || !bare[0] || p->ncontainers >= POD_CONTAINERS_MAX ||
	    pod_container(p, bare))
		return 0;
	r = array_grow(&p->containers, &p->cap, p->ncontainers + 1, sizeof(*p->containers));
	if (!r)
		r = copy_text(name, &c.name);
	if (!r)
		r = copy_text(bare, &c.id);
	if (r) {
		free(c.name);
		return r;
	}
	p->containers[p->ncontainers++] = c;
	return 0;
}

/* One that has ended and been started again is in lastState, under another id. */
static int read_status(const json_t *status, struct pod *p)
{
	const char *name = text(status, "name");
	const json_t *ended = member(member(status, "state"), "terminated");
	const json_t *before = member(member(status, "lastState"), "terminated");
	int r = add_container(p, name, text(status, "containerID"));

	if (!r)
		r = add_container(p, name, text(ended, "containerID"));
	return r ? r : add_container(p, name, text(before, "containerID"));
}

static int read_containers(const json_t *object, struct pod *p)
{
	static const char *const lists[] = {
		"containerStatuses",
		"initContainerStatuses",
		"ephemeralContainerStatuses",
	};
	const json_t *status = member(object, "status");
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		const json_t *list = member(status, lists[i]);

		for (size_t n = 0; n < json_array_size(list) && !r; n++)
			r = read_status(json_array_get(list, n), p);
	}
	return r;
}

const char *pod_container(const struct pod *p, const char *id)
{
	for (size_t i = 0; i < p->ncontainers; i++)
		if (!strcmp(p->containers[i].id, id))
			return p->containers[i].name;
	return NULL;
}

/* ---- the whole ---- */

static size_t text_bytes(const char *s)
{
	return s ? strlen(s) + 1 : 0;
}

static size_t pod_bytes(const struct pod *p)
{
	size_t bytes = sizeof(*p) + text_bytes(p->name) + text_bytes(p->namespace) +
		       text_bytes(p->workload) + text_bytes(p->workload_kind) +
		       text_bytes(p->service) + p->cap * sizeof(*p->containers) +
		       p->extra.cap * sizeof(*p->extra.v);

	for (size_t i = 0; i < p->ncontainers; i++)
		bytes += text_bytes(p->containers[i].name) + text_bytes(p->containers[i].id);
	for (size_t i = 0; i < p->extra.n; i++)
		bytes += text_bytes(p->extra.v[i].name) + text_bytes(p->extra.v[i].value);
	return bytes;
}

int pod_parse(const json_t *object, const struct pod_wishes *wishes, struct pod **ret)
{
	cleanup(pod_cleanup) struct pod *p = calloc(1, sizeof(*p));
	const json_t *meta = member(object, "metadata");
	int r = p ? read_identity(meta, p) : -ENOMEM;

	if (!r)
		r = read_owner(meta, p);
	if (!r)
		r = read_service(meta, p);
	if (!r)
		r = read_extra(member(meta, "labels"), wishes->labels, p);
	if (!r)
		r = read_extra(member(meta, "annotations"), wishes->annotations, p);
	if (!r)
		r = read_containers(object, p);
	if (r)
		return r;
	p->asks = read_asks(meta);
	p->bytes = pod_bytes(p);
	*ret = take(p);
	return 0;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

bool pod_equal(const struct pod *a, const struct pod *b)
{
	if (!same_text(a->name, b->name) || !same_text(a->namespace, b->namespace) ||
	    !same_text(a->workload, b->workload) ||
	    !same_text(a->workload_kind, b->workload_kind) || !same_text(a->service, b->service) ||
	    a->asks != b->asks || labels_compare(&a->extra, &b->extra) ||
	    a->ncontainers != b->ncontainers)
		return false;
	for (size_t i = 0; i < a->ncontainers; i++)
		if (!same_text(a->containers[i].name, b->containers[i].name) ||
		    !same_text(a->containers[i].id, b->containers[i].id))
			return false;
	return true;
}

void pod_free(struct pod *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->ncontainers; i++) {
		free(p->containers[i].name);
		free(p->containers[i].id);
	}
	free(p->containers);
	labels_free(&p->extra);
	free(p->name);
	free(p->namespace);
	free(p->workload);
	free(p->workload_kind);
	free(p->service);
	free(p);
}
