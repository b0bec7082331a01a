/* kube_answer.h - what the Kubernetes API and kubelet answer: lists of pods, and events of a watch.
 *
 * Hostile: parsed by jansson (depth and syntax), sizes are the caller's to bound; what isn't as the
 * API defines it is -EBADMSG.
 */
#ifndef WICK_KUBE_ANSWER_H
#define WICK_KUBE_ANSWER_H

#include <jansson.h>

#include "base/base.h"

enum {
	KUBE_VERSION_MAX = 256,	  /* of resourceVersion, NUL included; opaque */
	KUBE_CONTINUE_MAX = 4096, /* of continue: opaque, base64 of a key */
	KUBE_MESSAGE_MAX = 200,	  /* of an error's text */
};

/* Gets each pod; object is borrowed for the call. */
struct kube_reader {
	void (*pod)(void *ctx, const json_t *object);
	void *ctx;
};

/* A PodList: its pods to the reader; resourceVersion and continue of its metadata, "" if there is
 * none (or one that is too long). 0, -EBADMSG. */
int must_check kube_read_list(const char *json, size_t len, const struct kube_reader *reader,
			      char version[static KUBE_VERSION_MAX],
			      char next[static KUBE_CONTINUE_MAX]);

/* A line of a watch: an added or modified pod to the reader; version becomes the event's, if it has
 * one. 0; -ESTALE: the server doesn't remember so far back, list anew; -EBADMSG: no event, or
 * another error. */
int must_check kube_read_event(const char *json, size_t len, const struct kube_reader *reader,
			       char version[static KUBE_VERSION_MAX]);

/* The message of a Status, cut, without control characters; "" if it is something else. */
void kube_read_message(const char *json, size_t len, char ret[static KUBE_MESSAGE_MAX]);

#endif
