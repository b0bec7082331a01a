/* pods.c - see pods.h. */
#include "workload/pods.h"

#include "base/map.h"

struct entry {
	struct lru_node node;
	struct pod *pod;
};

static bool same_uid(const struct lru_node *n, const void *uid)
{
	return !strcmp(((const struct entry *)n)->pod->uid, uid);
}

static void free_entry(void *ctx, struct lru_node *n)
{
	(void)ctx;
	pod_free(((struct entry *)n)->pod);
	free(n);
}

void pods_init(struct pods *p, size_t max_bytes)
{
	*p = (struct pods){ .lru = LRU_INIT(max_bytes, same_uid, free_entry, NULL) };
}

void pods_free(struct pods *p)
{
	lru_free(&p->lru);
}

int pods_put(struct pods *p, struct pod *pod)
{
	uint64_t hash = hash_bytes(pod->uid, strlen(pod->uid));
	struct entry *e = lru_find(&p->lru, hash, pod->uid);

	if (e && pod_equal(e->pod, pod)) { /* as most events of a watch are */
		pod_free(pod);
		return 0;
	}
	p->generation++;
	if (e) {
		pod_free(e->pod);
		e->pod = pod;
		lru_resize(&p->lru, &e->node, sizeof(*e) + pod->bytes);
		return 0;
	}
	e = calloc(1, sizeof(*e));
	if (!e) {
		pod_free(pod);
		return -ENOMEM;
	}
	e->pod = pod;
	return lru_add(&p->lru, &e->node, hash, sizeof(*e) + pod->bytes);
}

const struct pod *pods_find(struct pods *p, const char *uid, const char *container,
			    const char **ret_name)
{
	struct entry *e = uid[0] ? lru_find(&p->lru, hash_bytes(uid, strlen(uid)), uid) : NULL;
	struct lru_node *n = e || !container ? NULL : p->lru.newest;
	const char *name;

	if (e) {
		*ret_name = container ? pod_container(e->pod, container) : NULL;
		return e->pod;
	}
	for (; n; n = n->older) {
		e = (struct entry *)n;
		name = pod_container(e->pod, container);
		if (name) {
			*ret_name = name;
			return e->pod;
		}
	}
	return NULL;
}
