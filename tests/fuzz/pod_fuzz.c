/* pod_fuzz.c - any bytes as what the Kubernetes API answers: as a list, as an event, as an error;
 * the pods in it keep within their caps. */
#include "workload/kube_answer.h"
#include "workload/pods.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct pods pods;

static void check_label(const struct labels *l)
{
	for (size_t i = 0; i < l->n; i++)
		assert(l->v[i].name[0] && strlen(l->v[i].name) < LABEL_NAME_MAX &&
		       strlen(l->v[i].value) < LABEL_VALUE_MAX);
}

static void on_pod(void *ctx, const json_t *object)
{
	static char app[] = "app", team[] = "team", *names[] = { app, team };
	static const struct str_list wished = { names, 2, 2 };
	const struct pod_wishes wishes = { &wished, &wished };
	struct pod *pod;
	const char *name;

	(void)ctx;
	if (pod_parse(object, &wishes, &pod))
		return;
	assert(pod->uid[0] && strlen(pod->uid) < POD_UID_MAX && !strchr(pod->uid, '/'));
	assert(strlen(pod->name) < POD_TEXT_MAX && strlen(pod->namespace) < POD_TEXT_MAX);
	assert(pod->ncontainers <= POD_CONTAINERS_MAX);
	assert(!pod->workload == !pod->workload_kind);
	check_label(&pod->extra);
	assert(!pods_put(&pods, pod));
	assert(pods_find(&pods, pod->uid, "x", &name) == pod);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct kube_reader to = { on_pod, NULL };
	char version[KUBE_VERSION_MAX] = "", next[KUBE_CONTINUE_MAX] = "",
	     message[KUBE_MESSAGE_MAX];
	const char *json = (const char *)data;

	pods_init(&pods, 16 << 10);
	(void)!kube_read_list(json, size, &to, version, next);
	(void)!kube_read_event(json, size, &to, version);
	kube_read_message(json, size, message);
	assert(strlen(version) < sizeof(version) && strlen(next) < sizeof(next));
	assert(strlen(message) < sizeof(message));
	pods_free(&pods);
	return 0;
}
