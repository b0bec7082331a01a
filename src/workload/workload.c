/* workload.c - see workload.h.
 *
 * Two caches: `groups`, what is known of a cgroup, with the labels that all its processes share and
 * the verdict of the rules on it; and `processes`, for those that only a look at the process itself
 * can name or decide on.
 */
#include "workload/workload.h"

#include <limits.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/lru.h"
#include "base/map.h"
#include "proc/cgroup.h"
#include "workload/engine.h"
#include "workload/naming.h"
#include "workload/pods.h"
#include "workload/procinfo.h"

enum {
	MAX_HURRIES = 4, /* of a container; a pod's sandbox is never named */
	HURRY_NS = 1000000000,
};

struct group {
	struct lru_node node;
	uint64_t id;
	char *path;			  /* NULL: unknown */
	char *container;		  /* id; NULL: none */
	char *name;			  /* of the container, by its engine; NULL: not known */
	char pod_uid[CGROUP_POD_UID_MAX]; /* "": no pod, as far as the path says */
	uint64_t generation;		  /* of the pods when it was labelled */
	int asks;			  /* as in struct pod */
	unsigned int hurries; /* how often it was a reason to ask for pods, and when last (ns) */
	uint64_t hurried;
	bool retried;	      /* the engines have been asked a second time */
	struct labels labels; /* without exe */
	enum verdict verdict; /* on all of it, or VERDICT_DEPENDS */
	unsigned int unknown; /* RULE_*: may become known later */
	bool skipped;	      /* in BPF */
};

struct process {
	struct lru_node node;
	struct wk_process_key key;
	char *exe; /* "" for none, NULL: not asked for yet */
	bool skipped;
};

struct workloads {
	pthread_mutex_t lock;
	struct workload_options o;
	struct workload_rules rules; /* own copy: rule_storage */
	struct workload_rule *rule_storage;
	char *node_name;
	struct cgroups *cgroups;
	const struct cgroup_hierarchy *hierarchy; /* NULL: no cgroups here */
	struct lru groups, processes;
	struct pods pods;
	uint64_t refreshed; /* generation of the pods that workloads_refresh has seen */
	struct kube *kube;  /* NULL: off */
	struct engine *engine;
	struct workloads_stats stats;
};

static void unlock(pthread_mutex_t **lock)
{
	pthread_mutex_unlock(*lock);
}

/* Held until the scope ends. */
#define HOLD(w)                                                                                    \
	cleanup(unlock) maybe_unused pthread_mutex_t *held_ =                                      \
	    (pthread_mutex_lock(&(w)->lock), &(w)->lock)

/* ---- verdicts for BPF ---- */

static void skip_group(struct workloads *w, struct group *g, bool skip)
{
	if (g->skipped == skip || !w->o.skip_cgroup)
		return;
	if (w->o.skip_cgroup(w->o.ctx, g->id, skip)) {
		w->stats.skips_refused += skip;
		return;
	}
	g->skipped = skip;
	w->stats.cgroups_skipped += skip ? 1 : -1;
}

static void skip_process(struct workloads *w, struct process *p, bool skip)
{
	if (p->skipped == skip || !w->o.skip_process)
		return;
	if (w->o.skip_process(w->o.ctx, &p->key, skip)) {
		w->stats.skips_refused += skip;
		return;
	}
	p->skipped = skip;
	w->stats.processes_skipped += skip ? 1 : -1;
}

/* ---- the caches ---- */

static bool same_group(const struct lru_node *n, const void *id)
{
	return ((const struct group *)n)->id == *(const uint64_t *)id;
}

/* What isn't remembered can't be taken back later, so BPF forgets it as well. */
static void free_group(void *ctx, struct lru_node *n)
{
	struct group *g = (struct group *)n;

	skip_group(ctx, g, false);
	labels_free(&g->labels);
	free(g->path);
	free(g->container);
	free(g->name);
	free(g);
}

static bool same_process(const struct lru_node *n, const void *key)
{
	return !memcmp(&((const struct process *)n)->key, key, sizeof(struct wk_process_key));
}

static void free_process(void *ctx, struct lru_node *n)
{
	struct process *p = (struct process *)n;

	skip_process(ctx, p, false);
	free(p->exe);
	free(p);
}

static size_t text_bytes(const char *s)
{
	return s ? strlen(s) + 1 : 0;
}

static size_t group_bytes(const struct group *g)
{
	size_t bytes =
	    sizeof(*g) + text_bytes(g->path) + text_bytes(g->container) + text_bytes(g->name);

	for (size_t i = 0; i < g->labels.n; i++)
		bytes += sizeof(struct label) + text_bytes(g->labels.v[i].name) +
			 text_bytes(g->labels.v[i].value);
	return bytes;
}

/* ---- what a cgroup's processes have in common ---- */

static void set_labels(struct workloads *w, struct group *g, struct labels *l)
{
	labels_free(&g->labels);
	g->labels = *l;
	*l = (struct labels)LABELS_INIT;
	if (g->node.bytes) /* it is in the cache */
		lru_resize(&w->groups, &g->node, group_bytes(g));
}

/* Asked for when the cgroup is made and once more when it is sampled. */
static const char *container_name(struct workloads *w, struct group *g)
{
	char name[ENGINE_NAME_MAX];

	if (!g->name && !engine_name(w->engine, g->container, name))
		g->name = strdup(name);
	return g->name;
}

static int label_group(struct workloads *w, struct group *g)
{
	cleanup(labels_cleanup) struct labels l = LABELS_INIT;
	const struct pod *pod = NULL;
	const char *container = NULL;
	int r = labels_set(&l, "node", w->node_name);

	if (w->kube && (g->pod_uid[0] || g->container))
		pod = pods_find(&w->pods, g->pod_uid, g->container, &container);
	g->unknown = 0;
	if (w->kube && g->pod_uid[0])
		g->unknown = pod ? container ? 0 : RULE_CONTAINER : RULE_POD | RULE_CONTAINER;
	g->asks = pod ? pod->asks : 0;
	if (!r && pod)
		r = label_pod(&l, pod, container);
	else if (!r && g->container)
		r = label_container(&l, g->container, container_name(w, g));
	else if (!r && g->path)
		r = label_unit(&l, g->path);
	if (!r && g->container)
		r = labels_set(&l, "container_id", g->container);
	if (!r)
		set_labels(w, g, &l);
	return r;
}

static struct rule_subject group_subject(const struct group *g)
{
	return (struct rule_subject){
		.container = labels_get(&g->labels, "container"),
		.container_id = labels_get(&g->labels, "container_id"),
		.pod = labels_get(&g->labels, "pod"),
		.namespace = labels_get(&g->labels, "namespace"),
		.unit = labels_get(&g->labels, "unit"),
		.user_unit = labels_get(&g->labels, "user_unit"),
		.asks = g->asks,
		.unknown = g->unknown,
	};
}

static void judge_group(struct workloads *w, struct group *g)
{
	struct rule_subject s = group_subject(g);

	s.unknown |= RULE_PROCESS;
	g->verdict = rules_decide(&w->rules, &s);
	skip_group(w, g, g->verdict == VERDICT_OUT);
}

/* Kubelet says a container's name a second or two after its cgroup is made. */
static void hurry(struct workloads *w, struct group *g)
{
	uint64_t now;

	if (!g->unknown || g->hurries >= MAX_HURRIES)
		return;
	now = clock_monotonic();
	if (g->hurries && now - g->hurried < HURRY_NS)
		return;
	g->hurries++;
	g->hurried = now;
	kube_hurry(w->kube);
}

/* Labels and verdict by what is known of the pods now. One that has been forgotten meanwhile
 * changes nothing: what was known of it stays true. */
static int refresh_group(struct workloads *w, struct group *g)
{
	bool nameless = g->container && !g->name && !g->retried && !g->pod_uid[0];
	const char *name;
	int r;

	hurry(w, g);
	if ((g->generation == w->pods.generation && !nameless) || (!g->pod_uid[0] && !g->container))
		return 0;
	g->generation = w->pods.generation;
	g->retried = true;
	if (!nameless && !pods_find(&w->pods, g->pod_uid, g->container, &name))
		return 0;
	r = label_group(w, g);
	if (!r)
		judge_group(w, g);
	return r;
}

static int add_group(struct workloads *w, uint64_t id, const char *path, struct group **ret)
{
	struct group *g = calloc(1, sizeof(*g));
	char container[CGROUP_CONTAINER_MAX];
	int r;

	if (!g)
		return -ENOMEM;
	g->id = id;
	g->generation = w->pods.generation;
	if (path) {
		g->path = strdup(path);
		if (!cgroup_container_id(path, container))
			g->container = strdup(container);
		(void)!cgroup_pod_uid(path, g->pod_uid);
	} else {
		w->stats.cgroups_unknown++;
	}
	r = label_group(w, g);
	if (r) {
		free_group(w, &g->node);
		return r;
	}
	r = lru_add(&w->groups, &g->node, hash_bytes(&id, sizeof(id)), group_bytes(g));
	if (r)
		return r;
	judge_group(w, g);
	hurry(w, g);
	*ret = g;
	return 0;
}

static struct group *find_group(struct workloads *w, uint64_t id)
{
	return lru_find(&w->groups, hash_bytes(&id, sizeof(id)), &id);
}

/* The cgroup's path by its id, else as its process sees it. */
static int look_up_path(const struct workloads *w, const struct workload_key *k,
			char path[static CGROUP_PATH_MAX])
{
	if (!w->hierarchy)
		return -ENOENT;
	if (!cgroup_path_by_id(w->cgroups, w->hierarchy, k->cgroup_id, path, CGROUP_PATH_MAX))
		return 0;
	return procinfo_cgroup(k->pid, k->start_time, w->hierarchy, path, CGROUP_PATH_MAX);
}

static int group_of(struct workloads *w, const struct workload_key *k, struct group **ret)
{
	struct group *g = find_group(w, k->cgroup_id);
	char path[CGROUP_PATH_MAX];

	if (!g)
		return add_group(w, k->cgroup_id, look_up_path(w, k, path) ? NULL : path, ret);
	*ret = g;
	return refresh_group(w, g);
}

/* Known from now on, whatever was believed of that id before: ids don't come back soon. */
static int learn_group(void *ctx, uint64_t id, const char *path)
{
	struct workloads *w = ctx;
	struct group *g = find_group(w, id);

	if (g && g->path && !strcmp(g->path, path))
		return 0;
	if (g)
		lru_remove(&w->groups, &g->node);
	return add_group(w, id, path, &g);
}

/* ---- processes ---- */

static int process_of(struct workloads *w, const struct workload_key *k, struct process **ret)
{
	struct wk_process_key key = {
		.start_time = k->start_time,
		.exec_id = k->exec_id,
		.cgroup_id = k->cgroup_id,
		.global_pid = k->global_pid,
		.uid = k->uid,
	};
	uint64_t hash;
	struct process *p;
	int r;

	memcpy(key.comm, k->comm, strnlen(k->comm, sizeof(key.comm) - 1));
	hash = hash_bytes(&key, sizeof(key));
	p = lru_find(&w->processes, hash, &key);
	if (!p) {
		p = calloc(1, sizeof(*p));
		if (!p)
			return -ENOMEM;
		p->key = key;
		r = lru_add(&w->processes, &p->node, hash, sizeof(*p));
		if (r)
			return r;
	}
	*ret = p;
	return 0;
}

static int set_exe(struct workloads *w, struct process *p, const char *path)
{
	p->exe = strdup(path);
	if (!p->exe)
		return -ENOMEM;
	lru_resize(&w->processes, &p->node, sizeof(*p) + text_bytes(p->exe));
	return 0;
}

/* Its executable's path; "" if there's none to be found. Asks /proc once, at a time when the
 * process may be gone. */
static int exe_of(struct workloads *w, const struct workload_key *k, const char **ret)
{
	const char *exe = k->exe_path ? k->exe_path : "";
	char path[PATH_MAX];
	struct process *p;
	int r = 0;

	if (!k->kernel) {
		r = process_of(w, k, &p);
		if (!r && !p->exe && !k->exe_path &&
		    !procinfo_exe(k->pid, k->start_time, path, sizeof(path)))
			exe = path;
		if (!r && !p->exe)
			r = set_exe(w, p, exe);
		if (!r)
			exe = k->exe_path ? k->exe_path : p->exe;
	}
	if (!r)
		*ret = exe;
	return r;
}

/* The verdict on one process of a group that has none of its own. */
static bool judge_process(struct workloads *w, const struct workload_key *k, const struct group *g)
{
	struct rule_subject s = group_subject(g);
	struct process *p;
	char uid[16];
	enum verdict v;

	if (exe_of(w, k, &s.exe))
		return true;
	snprintf(uid, sizeof(uid), "%u", k->uid);
	s.uid = uid;
	s.comm = k->comm;
	v = rules_decide(&w->rules, &s);
	if (v == VERDICT_OUT && w->o.skip_process && !process_of(w, k, &p))
		skip_process(w, p, true);
	s.unknown = 0; /* now or never: what isn't known isn't there */
	return rules_decide(&w->rules, &s) == VERDICT_IN;
}

/* ---- rules ---- */

/* A rule is nothing but its patterns, which are gone through as an array. */
enum { RULE_PATTERNS = sizeof(struct workload_rule) / sizeof(char *) };

static void free_rules(struct workload_rules *r, struct workload_rule *storage)
{
	for (size_t i = 0; i < r->ninclude + r->nexclude; i++)
		for (size_t n = 0; n < RULE_PATTERNS; n++)
			free((void *)((const char **)&storage[i])[n]);
	free(storage);
}

static int copy_rule(const struct workload_rule *from, struct workload_rule *to)
{
	const char *const *text = (const char *const *)from;
	const char **copy = (const char **)to;

	for (size_t n = 0; n < RULE_PATTERNS; n++) {
		copy[n] = text[n] ? strdup(text[n]) : NULL;
		if (text[n] && !copy[n])
			return -ENOMEM;
	}
	return 0;
}

int workloads_set_rules(struct workloads *w, const struct workload_rules *rules)
{
	struct workload_rules copy = *rules;
	size_t n = rules->ninclude + rules->nexclude;
	struct workload_rule *storage = calloc(n + 1, sizeof(*storage));
	int r = storage ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !r; i++)
		r = copy_rule(i < rules->ninclude ? &rules->include[i]
						  : &rules->exclude[i - rules->ninclude],
			      &storage[i]);
	copy.include = storage;
	copy.exclude = storage + rules->ninclude;
	if (r) {
		if (storage)
			free_rules(&copy, storage);
		return r;
	}
	HOLD(w);
	free_rules(&w->rules, w->rule_storage);
	w->rules = copy;
	w->rule_storage = storage;
	for (struct lru_node *p = w->processes.newest; p; p = p->older)
		skip_process(w, (struct process *)p, false);
	for (struct lru_node *g = w->groups.newest; g; g = g->older)
		judge_group(w, (struct group *)g);
	return 0;
}

/* ---- the outside ---- */

const char *workloads_controller(const struct workloads *w)
{
	return w->hierarchy && w->hierarchy->version == 1 ? w->hierarchy->controller : NULL;
}

static int choose_node_name(struct workloads *w)
{
	const char *name = w->o.node_name ? w->o.node_name : getenv("NODE_NAME");
	char host[HOST_NAME_MAX + 1] = "";

	if (!name || !name[0]) {
		(void)gethostname(host, sizeof(host) - 1);
		name = host;
	}
	w->node_name = strdup(name);
	return w->node_name ? 0 : -ENOMEM;
}

/* In the thread that asks for pods. */
static void on_pod(void *ctx, const json_t *object)
{
	struct workloads *w = ctx;
	const struct pod_wishes wishes = { w->o.pod_labels, w->o.pod_annotations };
	struct pod *pod;
	int r = pod_parse(object, &wishes, &pod);

	HOLD(w);
	if (!r)
		r = pods_put(&w->pods, pod);
	w->stats.pods_refused += r != 0;
}

static int start_kube(struct workloads *w, struct err *e)
{
	const struct kube_options o = {
		.mode = w->o.kubernetes,
		.node_name = w->node_name,
		.api_url = w->o.api_url,
		.token_file = w->o.token_file,
		.ca_file = w->o.ca_file,
		.kubelet_url = w->o.kubelet_url,
		.insecure = w->o.insecure,
		.reader = { on_pod, w },
	};

	return kube_start(&o, &w->kube, e);
}

int workloads_new(const struct workload_options *o, struct workloads **ret, struct err *e)
{
	cleanup(workloads_cleanup) struct workloads *w = calloc(1, sizeof(*w));
	uint64_t bytes = o->cache_bytes ? o->cache_bytes : (uint64_t)WORKLOAD_CACHE_DEFAULT;
	int r;

	if (!w)
		return err_set(e, -ENOMEM, "out of memory");
	pthread_mutex_init(&w->lock, NULL);
	w->o = *o;
	w->o.root = o->root ? o->root : "";
	w->groups = (struct lru)LRU_INIT(bytes / 4, same_group, free_group, w);
	w->processes = (struct lru)LRU_INIT(bytes / 4, same_process, free_process, w);
	pods_init(&w->pods, bytes / 2);
	r = choose_node_name(w);
	if (!r)
		r = workloads_set_rules(w, &o->rules);
	if (!r)
		r = engine_new(w->o.root, &w->engine);
	if (r)
		return err_set(e, r, "out of memory");
	r = cgroups_open(w->o.root, &w->cgroups);
	if (r)
		return err_set(e, r, "can't tell which cgroup file systems are mounted: %s",
			       strerror(-r));
	w->hierarchy = cgroups_default(w->cgroups);
	r = start_kube(w, e);
	if (r)
		return r;
	*ret = take(w);
	return 0;
}

void workloads_free(struct workloads *w)
{
	if (!w)
		return;
	kube_stop(w->kube);
	/* whoever held the verdicts is going too */
	w->o.skip_cgroup = NULL;
	w->o.skip_process = NULL;
	lru_free(&w->groups);
	lru_free(&w->processes);
	pods_free(&w->pods);
	engine_free(w->engine);
	cgroups_free(w->cgroups);
	free_rules(&w->rules, w->rule_storage);
	free(w->node_name);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

int workloads_start(struct workloads *w)
{
	HOLD(w);
	return w->hierarchy ? cgroup_each(w->cgroups, w->hierarchy, learn_group, w, NULL) : 0;
}

int workloads_cgroup(struct workloads *w, const struct wk_cgroup_event *event)
{
	if (event->type != WK_EVENT_CGROUP || !memchr(event->path, '\0', sizeof(event->path)))
		return -EINVAL;
	HOLD(w);
	return learn_group(w, event->id, event->path);
}

/* From the oldest to the newest, which is how the pods that are looked up get to be ordered too. */
void workloads_refresh(struct workloads *w)
{
	HOLD(w);
	if (w->refreshed == w->pods.generation)
		return;
	w->refreshed = w->pods.generation;
	for (struct lru_node *g = w->groups.oldest; g; g = g->newer)
		(void)refresh_group(w, (struct group *)g); /* out of memory: next time */
}

int workloads_labels(struct workloads *w, const struct workload_key *k, struct labels *ret)
{
	cleanup(labels_cleanup) struct labels l = LABELS_INIT;
	const char *exe = NULL;
	struct group *g;
	int r;

	HOLD(w);
	r = group_of(w, k, &g);
	if (!r)
		r = labels_copy(&g->labels, &l);
	if (!r && !labels_get(&l, "service_name"))
		r = exe_of(w, k, &exe);
	if (!r && exe)
		r = label_process(&l, exe, k->kernel);
	if (r)
		return r;
	*ret = l;
	l = (struct labels)LABELS_INIT;
	return 0;
}

bool workloads_wanted(struct workloads *w, const struct workload_key *k)
{
	struct group *g;

	HOLD(w);
	if (group_of(w, k, &g))
		return true;
	return g->verdict == VERDICT_DEPENDS ? judge_process(w, k, g) : g->verdict == VERDICT_IN;
}

void workloads_trim(struct workloads *w)
{
	HOLD(w);
	lru_trim(&w->groups, w->groups.bytes / 2);
	lru_trim(&w->processes, w->processes.bytes / 2);
}

void workloads_stats(struct workloads *w, struct workloads_stats *ret)
{
	HOLD(w);
	*ret = w->stats;
	ret->cgroups = w->groups.n;
	ret->processes = w->processes.n;
	ret->pods = w->pods.lru.n;
	ret->bytes = w->groups.bytes + w->processes.bytes + w->pods.lru.bytes;
	ret->evicted = w->groups.evicted + w->processes.evicted + w->pods.lru.evicted;
	if (w->kube)
		kube_stats(w->kube, &ret->kube);
}
