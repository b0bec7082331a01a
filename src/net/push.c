/* push.c - see push.h. Top to bottom: targets, labels, sending. */
#include "net/push.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "net/address.h"
#include "net/connect_error.h"
#include "net/split.h"
#include "net/transfer.h"

struct push_target {
	struct sink *sink;
	struct transfer transfer;
};

/* ---- targets ---- */

int push_parse(const char *url, struct push_target **ret, struct err *e)
{
	cleanup(push_target_cleanup) struct push_target *t = calloc(1, sizeof(*t));
	cleanup(freep_cleanup) char *copy = strdup(url);
	int r;

	if (!t || !copy)
		return err_set(e, -ENOMEM, "out of memory");
	transfer_global_init();
	t->transfer = (struct transfer)TRANSFER_INIT;
	r = sink_new(&(struct sink_options){ .url = copy }, &t->sink, e);
	if (!r)
		*ret = take(t);
	return r;
}

void push_target_free(struct push_target *t)
{
	if (!t)
		return;
	transfer_done(&t->transfer);
	sink_free(t->sink);
	free(t);
}

const char *push_name(const struct push_target *t)
{
	return sink_name(t->sink);
}

void push_mask(char *arg)
{
	address_mask(arg);
}

/* ---- labels ---- */

static bool is_label_name(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool letter = (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z');

		if (!letter && s[i] != '_' && (!i || s[i] < '0' || s[i] > '9'))
			return false;
	}
	return n;
}

static int check_utf8(const char *s, size_t n, bool *ret)
{
	cleanup(buf_cleanup) struct buf b = BUF_INIT(3 * LABEL_VALUE_MAX);

	buf_utf8(&b, s, n);
	if (b.err)
		return b.err;
	*ret = b.len == n && !memcmp(b.data, s, n);
	return 0;
}

static int check_value(const char *shown, const char *value, struct err *e)
{
	size_t len = strlen(value);
	bool utf8;

	if (!len)
		return err_set(e, -EINVAL, "'%s' has an empty value", shown);
	if (len >= LABEL_VALUE_MAX)
		return err_set(e, -EINVAL, "the value of '%s' has %zu bytes, the limit is %d",
			       shown, len, LABEL_VALUE_MAX - 1);
	if (check_utf8(value, len, &utf8))
		return err_set(e, -ENOMEM, "out of memory");
	return utf8 ? 0 : err_set(e, -EINVAL, "the value of '%s' is not UTF-8", shown);
}

static int check_label(const char *name, size_t len, const char *value, struct err *e)
{
	char shown[64];

	clean_text(name, len, shown, sizeof(shown));
	if (!is_label_name(name, len))
		return err_set(e, -EINVAL,
			       "name '%s': a name is letters, digits and _, and doesn't start with "
			       "a digit", shown);
	if (len >= 2 && !memcmp(name, "__", 2))
		return err_set(e, -EINVAL,
			       "name '%s': names that start with __ are reserved", shown);
	if (len >= LABEL_NAME_MAX)
		return err_set(e, -EINVAL, "name '%s...' has %zu bytes, the limit is %d",
			       shown, len, LABEL_NAME_MAX - 1);
	return check_value(shown, value, e);
}

int push_label_add(struct labels *l, const char *text, struct err *e)
{
	const char *equal = strchr(text, '=');
	cleanup(freep_cleanup) char *name = NULL;
	char shown[64];
	int r;

	if (!equal) {
		clean_text(text, strlen(text), shown, sizeof(shown));
		return err_set(e, -EINVAL, "'%s' is not NAME=VALUE", shown);
	}
	r = check_label(text, (size_t)(equal - text), equal + 1, e);
	if (r)
		return r;
	name = strndup(text, (size_t)(equal - text));
	if (!name)
		return err_set(e, -ENOMEM, "out of memory");
	if (labels_get(l, name))
		return err_set(e, -EINVAL, "'%.64s' is given twice", name);
	r = labels_set(l, name, equal + 1);
	if (r == -E2BIG)
		return err_set(e, -EINVAL, "there are more than %d labels besides service_name",
			       LABELS_MAX);
	return r ? err_set(e, r, "out of memory") : 0;
}

/* ---- sending ---- */

/* TLS libraries write to sockets in a way that raises SIGPIPE when the peer is gone. It is held
 * back here and swallowed, unless the caller had one pending. */
static CURLcode perform(CURL *c)
{
	static const struct timespec now = { 0 };
	sigset_t sigpipe, before, pending;
	CURLcode code;

	sigemptyset(&sigpipe);
	sigaddset(&sigpipe, SIGPIPE);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &sigpipe, &before);
	code = curl_easy_perform(c);
	if (!sigismember(&pending, SIGPIPE))
		while (sigtimedwait(&sigpipe, NULL, &now) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return code;
}

struct sending {
	struct push_target *t;
	const struct labels *labels;
	const char *type;
	struct push_result *result;
	struct err *e;
};

static int send_item(struct sending *s, struct item *it)
{
	struct push_target *t = s->t;
	struct sink_verdict v;
	size_t size = it->len;
	int r;

	if (sink_is_local(t->sink)) {
		sink_store(t->sink, it, &v);
	} else {
		r = transfer_start(&t->transfer, t->sink, &it, 1, s->e);
		if (r)
			return r;
		transfer_finish(&t->transfer, t->sink, perform(t->transfer.curl), &v);
		size = t->transfer.request.body.len;
		s->result->status = t->transfer.answer.status;
	}
	memcpy(s->result->message, v.message, sizeof(v.message));
	if (v.fate != SINK_STORED)
		return err_set(s->e, v.err, "%s", v.why.msg);
	s->result->sent += size;
	s->result->parts++;
	return 0;
}

static int send_part(void *ctx, struct item_profile *part)
{
	struct sending *s = ctx;
	cleanup(item_cleanup) struct item *it = NULL;
	int r = item_new(s->labels, s->type, part, &it);

	return r ? err_set(s->e, r, "out of memory") : send_item(s, it);
}

int push_send(struct push_target *t, const struct labels *labels, const struct profile *p,
	      struct push_result *ret, struct err *e)
{
	struct sending s = { t, labels, split_type(p), ret, e };
	struct split_stats st = { 0 };
	int r;

	*ret = (struct push_result){ 0 };
	err_set(e, -EINVAL, "the profile can't be pushed: it lacks types, a period or a time");
	r = split_profile(p, &(struct split_limits){ 0 }, send_part, &s, &st);
	ret->unsendable = st.unsendable;
	return r;
}
