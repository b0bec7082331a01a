/* pods.h - the pods that are known, by uid and by container.
 *
 *	pods_init(&pods, 8 << 20);
 *	r = pods_put(&pods, pod);				// takes
 *	p = pods_find(&pods, uid, container_id, &name);		// borrowed until the next put
 *
 * Pods that have been deleted stay: samples of theirs still come. Uids and ids don't come back, so
 * nothing is ever wrong; what was asked for least recently goes when the bytes are used up. Not
 * thread-safe. Cost: a hash look-up; without a uid, a pass over all containers.
 */
#ifndef WICK_PODS_H
#define WICK_PODS_H

#include "base/lru.h"
#include "workload/pod.h"

struct pods {
	struct lru lru;
	uint64_t generation; /* goes up with each change */
};

void pods_init(struct pods *p, size_t max_bytes);
void pods_free(struct pods *p);
/* Adds or replaces; takes pod. 0, -ENOMEM. */
int must_check pods_put(struct pods *p, struct pod *pod);
/* The pod with that uid ("": unknown) or, failing that, with that container (NULL: unknown).
 * *ret_name: the container's name, NULL if the pod doesn't name it (yet). NULL: no such pod. */
const struct pod *pods_find(struct pods *p, const char *uid, const char *container,
			    const char **ret_name);

#endif
