/* kube_answer.c - see kube_answer.h. Kubernetes API concepts, "Efficient detection of changes". */
#include "workload/kube_answer.h"

#include <ctype.h>

static void copy_member(const json_t *object, const char *name, char *ret, size_t size)
{
	const char *s = json_string_value(json_object_get(object, name));

	ret[0] = '\0';
	if (s && strlen(s) < size)
		strcpy(ret, s);
}

int kube_read_list(const char *json, size_t len, const struct kube_reader *reader,
		   char version[static KUBE_VERSION_MAX], char next[static KUBE_CONTINUE_MAX])
{
	json_t *list = json_loadb(json, len, 0, NULL);
	const json_t *items = json_object_get(list, "items");
	const json_t *meta = json_object_get(list, "metadata");

	if (!json_is_array(items) && !json_is_null(items)) { /* null is how Go writes none */
		json_decref(list);
		return -EBADMSG;
	}
	copy_member(meta, "resourceVersion", version, KUBE_VERSION_MAX);
	copy_member(meta, "continue", next, KUBE_CONTINUE_MAX);
	for (size_t i = 0; i < json_array_size(items); i++)
		reader->pod(reader->ctx, json_array_get(items, i));
	json_decref(list);
	return 0;
}

int kube_read_event(const char *json, size_t len, const struct kube_reader *reader,
		    char version[static KUBE_VERSION_MAX])
{
	json_t *event = json_loadb(json, len, 0, NULL);
	const char *type = json_string_value(json_object_get(event, "type"));
	const json_t *object = json_object_get(event, "object");
	char seen[KUBE_VERSION_MAX];
	int r = -EBADMSG;

	if (type && !strcmp(type, "ERROR")) { /* object is a Status */
		if (json_integer_value(json_object_get(object, "code")) == 410)
			r = -ESTALE;
	} else if (type && json_is_object(object)) {
		copy_member(json_object_get(object, "metadata"), "resourceVersion", seen,
			    sizeof(seen));
		if (seen[0])
			strcpy(version, seen);
		if (!strcmp(type, "ADDED") || !strcmp(type, "MODIFIED"))
			reader->pod(reader->ctx, object);
		r = 0;
	}
	json_decref(event);
	return r;
}

void kube_read_message(const char *json, size_t len, char ret[static KUBE_MESSAGE_MAX])
{
	json_t *status = json_loadb(json, len, 0, NULL);
	const char *s = json_string_value(json_object_get(status, "message"));
	size_t n = 0;

	for (; s && *s && n < KUBE_MESSAGE_MAX - 1; s++)
		ret[n++] = isprint((unsigned char)*s) ? *s : '?';
	ret[n] = '\0';
	json_decref(status);
}
