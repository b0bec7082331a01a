/* push.c - see push.h. Top to bottom: addresses, labels, the request, the transfer, the answer. */
#include "net/push.h"

#include <curl/curl.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "base/buf.h"
#include "net/connect_error.h"
#include "push.pb-c.h"

#define PROTOCOL      "pyroscope+"
#define METHOD	      "/push.v1.PusherService/Push"
#define DEFAULT_PORT  "4040"
#define ACCEPTED      "pyroscope+http://HOST:PORT or pyroscope+https://HOST"
#define NAME_LABEL    "__name__"
#define SERVICE_LABEL "service_name"

enum {
	URL_MAX = 4096,
	SHOWN_MAX = 120, /* of an address in a message */
	SCHEME_MAX = 32, /* of its scheme, where a password is left out behind it */
	TYPE_MAX = 64,	 /* of a Content-Type */
};

static int no_memory(struct err *e)
{
	return err_set(e, -ENOMEM, "out of memory");
}

/* ---- addresses ---- */

/* Bytes of the leading "SCHEME://" (RFC 3986 section 3.1), 0 if there is none. */
static size_t scheme_len(const char *url)
{
	size_t n = strspn(url, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			       "0123456789+-.");

	return n && !strncmp(url + n, "://", 3) ? n + 3 : 0;
}

/* An address for messages: without what may be user and password, whatever else is wrong with it.
 * Up to the last @, since a password may hold any of the characters that end an authority. */
static const char *redact(const char *url, char ret[static SHOWN_MAX])
{
	const char *at = strrchr(url, '@');
	int scheme = (int)MIN(scheme_len(url), SCHEME_MAX);
	char shown[SHOWN_MAX];

	if (at)
		snprintf(shown, sizeof(shown), "%.*s%s", scheme, url, at + 1);
	else
		snprintf(shown, sizeof(shown), "%s", url);
	clean_text(shown, strlen(shown), ret, SHOWN_MAX);
	return ret;
}

static int bad_url(const char *url, const char *why, struct err *e)
{
	char shown[SHOWN_MAX];

	return err_set(e, -EINVAL, "--push: '%s' %s: use " ACCEPTED, redact(url, shown), why);
}

static void curl_cleanup_url(CURLU **u)
{
	curl_url_cleanup(*u);
}

/* A part of the URL as a string of ours; NULL in *ret if it has no such part. */
static int url_part(CURLU *u, CURLUPart part, unsigned int flags, char **ret)
{
	char *s = NULL, *copy = NULL;
	CURLUcode c = curl_url_get(u, part, &s, flags);

	if (c == CURLUE_OUT_OF_MEMORY)
		return -ENOMEM;
	if (!c) {
		copy = strdup(s);
		curl_free(s);
		if (!copy)
			return -ENOMEM;
	} else if (c == CURLUE_URLDECODE) {
		return -EINVAL;
	}
	*ret = copy;
	return 0;
}

/* Parses what stands behind "pyroscope+". On -EINVAL *ret_why says what is wrong. */
static int parse_http(CURLU *u, const char *url, const char **ret_why)
{
	cleanup(freep_cleanup) char *scheme = NULL, *port = NULL, *query = NULL, *fragment = NULL;
	int r;

	*ret_why = "is not a URL";
	if (curl_url_set(u, CURLUPART_URL, url, 0))
		return -EINVAL;
	r = url_part(u, CURLUPART_SCHEME, 0, &scheme);
	if (!r)
		r = url_part(u, CURLUPART_PORT, 0, &port);
	if (!r)
		r = url_part(u, CURLUPART_QUERY, 0, &query);
	if (!r)
		r = url_part(u, CURLUPART_FRAGMENT, 0, &fragment);
	if (r)
		return r;
	if (query || fragment) {
		*ret_why = "has a query or a fragment";
		return -EINVAL;
	}
	if (!port && !strcmp(scheme, "http") && curl_url_set(u, CURLUPART_PORT, DEFAULT_PORT, 0))
		return -ENOMEM;
	return 0;
}

/* Moves user and password from the URL to the target, then makes name and url of the rest. */
static int fill_target(CURLU *u, struct push_target *t, const char **ret_why)
{
	cleanup(freep_cleanup) char *base = NULL;
	size_t len;
	int r = url_part(u, CURLUPART_USER, CURLU_URLDECODE, &t->user);

	*ret_why = "has a user or password that can't be decoded";
	if (!r)
		r = url_part(u, CURLUPART_PASSWORD, CURLU_URLDECODE, &t->password);
	if (r)
		return r;
	if (curl_url_set(u, CURLUPART_USER, NULL, 0) ||
	    curl_url_set(u, CURLUPART_PASSWORD, NULL, 0))
		return -ENOMEM;
	r = url_part(u, CURLUPART_URL, 0, &base);
	if (r || !base)
		return r ? r : -ENOMEM;
	len = strlen(base);
	while (len && base[len - 1] == '/')
		base[--len] = '\0';
	if (asprintf(&t->name, PROTOCOL "%s", base) < 0) {
		t->name = NULL;
		return -ENOMEM;
	}
	if (asprintf(&t->url, "%s" METHOD, base) < 0) {
		t->url = NULL;
		return -ENOMEM;
	}
	return 0;
}

/* Why this isn't an address of Pyroscope. Other protocols are PROTOCOL+TRANSPORT too, or a file. */
static const char *not_pyroscope(const char *url)
{
	const char *plus = memchr(url, '+', scheme_len(url));

	return plus || !strncmp(url, "file:", 5) ? "has a protocol that isn't supported"
						 : "has no protocol";
}

static void init_curl(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

int push_parse(const char *url, struct push_target **ret, struct err *e)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const size_t head = strlen(PROTOCOL);
	const char *why;
	int r;

	if (strncmp(url, PROTOCOL "http://", head + 7) &&
	    strncmp(url, PROTOCOL "https://", head + 8))
		return bad_url(url, not_pyroscope(url), e);
	if (strlen(url) > URL_MAX)
		return bad_url(url, "is too long", e);
	pthread_once(&once, init_curl);

	cleanup(push_target_cleanup) struct push_target *t = calloc(1, sizeof(*t));
	cleanup(curl_cleanup_url) CURLU *u = curl_url();

	if (!t || !u)
		return no_memory(e);
	t->connect_ms = PUSH_CONNECT_MS;
	t->total_ms = PUSH_TOTAL_MS;
	r = parse_http(u, url + head, &why);
	if (!r)
		r = fill_target(u, t, &why);
	if (r)
		return r == -EINVAL ? bad_url(url, why, e) : no_memory(e);
	*ret = take(t);
	return 0;
}

void push_target_free(struct push_target *t)
{
	if (!t)
		return;
	free(t->name);
	free(t->url);
	free(t->user);
	free(t->password);
	free(t);
}

const char *push_name(const struct push_target *t)
{
	return t->name;
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
	cleanup(buf_cleanup) struct buf b = BUF_INIT(3 * PUSH_VALUE_MAX);

	buf_utf8(&b, s, n);
	if (b.err)
		return b.err;
	*ret = b.len == n && !memcmp(b.data, s, n);
	return 0;
}

static int check_label(const char *name, size_t name_len, const char *value, struct err *e)
{
	size_t value_len = strlen(value);
	char shown[64];
	bool utf8;

	clean_text(name, name_len, shown, sizeof(shown));
	if (!is_label_name(name, name_len))
		return err_set(e, -EINVAL,
			       "--label: name '%s': a name is letters, digits and _, and "
			       "doesn't start with a digit",
			       shown);
	if (name_len >= 2 && !memcmp(name, "__", 2))
		return err_set(e, -EINVAL,
			       "--label: name '%s': names that start with __ are reserved", shown);
	if (name_len > PUSH_NAME_MAX)
		return err_set(e, -EINVAL, "--label: name '%s...' has %zu bytes, the limit is %d",
			       shown, name_len, PUSH_NAME_MAX);
	if (!value_len)
		return err_set(e, -EINVAL, "--label: '%s' has an empty value", shown);
	if (value_len > PUSH_VALUE_MAX)
		return err_set(e, -EINVAL,
			       "--label: the value of '%s' has %zu bytes, the limit is %d", shown,
			       value_len, PUSH_VALUE_MAX);
	if (check_utf8(value, value_len, &utf8))
		return no_memory(e);
	return utf8 ? 0 : err_set(e, -EINVAL, "--label: the value of '%s' is not UTF-8", shown);
}

int push_label_parse(const char *text, struct push_label *ret, struct err *e)
{
	const char *equal = strchr(text, '=');
	struct push_label l;
	char shown[64];
	int r;

	if (!equal) {
		clean_text(text, strlen(text), shown, sizeof(shown));
		return err_set(e, -EINVAL, "--label: '%s' is not NAME=VALUE", shown);
	}
	r = check_label(text, (size_t)(equal - text), equal + 1, e);
	if (r)
		return r;
	l.name = strndup(text, (size_t)(equal - text));
	l.value = strdup(equal + 1);
	if (!l.name || !l.value) {
		push_label_free(&l);
		return no_memory(e);
	}
	*ret = l;
	return 0;
}

void push_label_free(struct push_label *l)
{
	free(l->name);
	free(l->value);
	l->name = l->value = NULL;
}

static bool has_service(const struct push_label *labels, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(labels[i].name, SERVICE_LABEL))
			return true;
	return false;
}

int push_labels_check(const struct push_label *labels, size_t n, struct err *e)
{
	size_t total = n + 1 + !has_service(labels, n);
	int r;

	if (total > PUSH_LABELS_MAX)
		return err_set(e, -EINVAL,
			       "--label: with " NAME_LABEL " and " SERVICE_LABEL " there are "
			       "%zu labels, the limit is %d",
			       total, PUSH_LABELS_MAX);
	for (size_t i = 0; i < n; i++) {
		r = check_label(labels[i].name, strlen(labels[i].name), labels[i].value, e);
		if (r)
			return r;
		for (size_t j = 0; j < i; j++)
			if (!strcmp(labels[i].name, labels[j].name))
				return err_set(e, -EINVAL, "--label: '%.64s' is given twice",
					       labels[i].name);
	}
	return 0;
}

/* ---- the request ---- */

struct series {
	Push__V1__LabelPair pairs[PUSH_LABELS_MAX];
	Push__V1__LabelPair *p[PUSH_LABELS_MAX];
	size_t n;
};

static void add_pair(struct series *s, const char *name, const char *value)
{
	Push__V1__LabelPair *pair = &s->pairs[s->n];

	push__v1__label_pair__init(pair);
	/* protobuf-c has no const; packing doesn't write */
	pair->name = (char *)(uintptr_t)name;
	pair->value = (char *)(uintptr_t)value;
	s->p[s->n++] = pair;
}

/* The labels have been checked: they fit. */
static int encode(const struct push_label *labels, size_t n, const void *pprof_gz, size_t len,
		  uint8_t **ret, size_t *ret_len)
{
	Push__V1__PushRequest request = PUSH__V1__PUSH_REQUEST__INIT;
	Push__V1__RawProfileSeries raw = PUSH__V1__RAW_PROFILE_SERIES__INIT, *raws = &raw;
	Push__V1__RawSample sample = PUSH__V1__RAW_SAMPLE__INIT, *samples = &sample;
	struct series s = { .n = 0 };
	size_t size;

	add_pair(&s, NAME_LABEL, "process_cpu");
	if (!has_service(labels, n))
		add_pair(&s, SERVICE_LABEL, PUSH_DEFAULT_SERVICE);
	for (size_t i = 0; i < n; i++)
		add_pair(&s, labels[i].name, labels[i].value);
	sample.raw_profile.data = (uint8_t *)(uintptr_t)pprof_gz;
	sample.raw_profile.len = len;
	raw.n_labels = s.n;
	raw.labels = s.p;
	raw.n_samples = 1;
	raw.samples = &samples;
	request.n_series = 1;
	request.series = &raws;

	size = push__v1__push_request__get_packed_size(&request);
	*ret = malloc(size);
	if (!*ret)
		return -ENOMEM;
	*ret_len = push__v1__push_request__pack(&request, *ret);
	return 0;
}

/* ---- the transfer ---- */

struct answer {
	struct buf body;
	bool too_long; /* the body was cut, the transfer broken off */
	long status;
	char type[TYPE_MAX]; /* Content-Type */
	char redirect[SHOWN_MAX];
};

static void curl_cleanup_easy(CURL **c)
{
	curl_easy_cleanup(*c);
}

static void slist_cleanup(struct curl_slist **l)
{
	curl_slist_free_all(*l);
}

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
	struct answer *a = arg;
	size_t room = a->body.max - a->body.len;

	buf_bytes(&a->body, p, MIN(size * n, room));
	a->too_long = size * n > room;
	return a->body.err || a->too_long ? 0 : size * n;
}

static struct curl_slist *make_headers(void)
{
	static const char *const lines[] = {
		"Content-Type: application/proto", /* exactly, else 415 */
		"Connect-Protocol-Version: 1",
		"Accept:", "Expect:", /* no waiting for "100 Continue" */
	};
	struct curl_slist *l = NULL, *longer;

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		longer = curl_slist_append(l, lines[i]);
		if (!longer) {
			curl_slist_free_all(l);
			return NULL;
		}
		l = longer;
	}
	return l;
}

/* False if there is no memory. */
static bool set_options(CURL *c, const struct push_target *t, struct answer *a, char *error)
{
	bool bad = false;

	bad |= curl_easy_setopt(c, CURLOPT_ERRORBUFFER, error);
	bad |= curl_easy_setopt(c, CURLOPT_URL, t->url);
	bad |= curl_easy_setopt(c, CURLOPT_USERAGENT, "wick/" WICK_VERSION);
	bad |= curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	bad |= curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, t->connect_ms);
	bad |= curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, t->total_ms);
	bad |= curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
#if LIBCURL_VERSION_NUM >= 0x075500
	bad |= curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	bad |= curl_easy_setopt(c, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
	bad |= curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
	bad |= curl_easy_setopt(c, CURLOPT_WRITEDATA, a);
	if (t->user || t->password) {
		bad |= curl_easy_setopt(c, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
		bad |= curl_easy_setopt(c, CURLOPT_USERNAME, t->user ? t->user : "");
		bad |= curl_easy_setopt(c, CURLOPT_PASSWORD, t->password ? t->password : "");
	}
	return !bad;
}

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

static int transfer_error(CURLcode code)
{
	switch (code) {
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
		return -EHOSTUNREACH;
	case CURLE_COULDNT_CONNECT:
		return -ECONNREFUSED;
	case CURLE_OPERATION_TIMEDOUT:
		return -ETIMEDOUT;
	case CURLE_GOT_NOTHING:
	case CURLE_SEND_ERROR:
	case CURLE_RECV_ERROR:
	case CURLE_PARTIAL_FILE:
		return -ECONNRESET;
	case CURLE_OUT_OF_MEMORY:
		return -ENOMEM;
	default:
		return -EPROTO;
	}
}

static void read_answer(CURL *c, struct answer *a)
{
	const char *s = NULL;

	curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &a->status);
	if (!curl_easy_getinfo(c, CURLINFO_CONTENT_TYPE, &s) && s)
		clean_text(s, strlen(s), a->type, sizeof(a->type));
	s = NULL;
	if (!curl_easy_getinfo(c, CURLINFO_REDIRECT_URL, &s) && s)
		redact(s, a->redirect);
}

static int post(const struct push_target *t, const uint8_t *body, size_t len, struct answer *ret,
		struct err *e)
{
	cleanup(curl_cleanup_easy) CURL *c = curl_easy_init();
	cleanup(slist_cleanup) struct curl_slist *headers = make_headers();
	char error[CURL_ERROR_SIZE] = "", clean[CURL_ERROR_SIZE];
	CURLcode code;

	if (!c || !headers || !set_options(c, t, ret, error) ||
	    curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers) ||
	    curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len) ||
	    curl_easy_setopt(c, CURLOPT_POSTFIELDS, body))
		return no_memory(e);
	code = perform(c);
	if (ret->body.err)
		return no_memory(e);
	if (code && !ret->too_long) {
		if (!error[0])
			snprintf(error, sizeof(error), "%s", curl_easy_strerror(code));
		clean_text(error, strlen(error), clean, sizeof(clean));
		return err_set(e, transfer_error(code), "can't push to %.*s: %s", SHOWN_MAX,
			       t->name, clean);
	}
	read_answer(c, ret);
	return 0;
}

/* ---- the answer ---- */

static const struct verdict {
	long status;
	int err;
	const char *text; /* for answers that don't say why */
} verdicts[] = {
	{ 400, -EINVAL, "it doesn't accept the profile or its labels" },
	{ 401, -EACCES, "it wants a user and a password: pyroscope+https://USER:PASSWORD@HOST" },
	{ 403, -EACCES, "access denied" },
	{ 404, -ENOENT, "there is no Pyroscope at this address, check its port and path" },
	{ 405, -ENOENT, "there is no Pyroscope at this address, check its port and path" },
	{ 408, -EAGAIN, "it didn't get all of the profile in time" },
	{ 413, -EINVAL, "the profile is too large for it" },
	{ 415, -EREMOTEIO,
	  "it doesn't take profiles as application/proto, so it is no Pyroscope 1.0 "
	  "or later" },
	{ 422, -EINVAL, "it doesn't accept the profile or its labels" },
	{ 429, -EAGAIN, "it takes no more at the moment" },
	{ 502, -EAGAIN, "the server behind it is not available" },
	{ 503, -EAGAIN, "it is not available at the moment" },
	{ 504, -EAGAIN, "the server behind it doesn't answer" },
};

static struct verdict judge(long status)
{
	for (size_t i = 0; i < ARRAY_SIZE(verdicts); i++)
		if (verdicts[i].status == status)
			return verdicts[i];
	return (struct verdict){ status, -EREMOTEIO, NULL };
}

/* Bytes before gzip: the last four of a gzip member (RFC 1952 section 2.3.1). */
static uint32_t raw_size(const uint8_t *gz, size_t len)
{
	if (len < 18)
		return 0;
	gz += len - 4;
	return gz[0] | (uint32_t)gz[1] << 8 | (uint32_t)gz[2] << 16 | (uint32_t)gz[3] << 24;
}

/* 200 from whatever else listens there must not pass for a stored profile. A Connect server repeats
 * the request's type; a proxy may drop it where there is no body. */
static int check_ok(const struct push_target *t, const struct answer *a, struct err *e)
{
	if (!a->too_long &&
	    (!strcmp(a->type, "application/proto") || (!a->type[0] && !a->body.len)))
		return 0;
	return err_set(e, -EPROTO,
		       "can't push to %.*s: it answered 200, but not as a Pyroscope server "
		       "does (with Content-Type '%s')",
		       SHOWN_MAX, t->name, a->type);
}

/* size: what the server counts, bytes of the profile before gzip and of its labels. */
static int refused(const struct push_target *t, const struct answer *a, size_t size,
		   struct push_result *ret, struct err *e)
{
	struct verdict v = judge(a->status);
	struct connect_error ce = { "", "" };
	const char *why = v.text;

	if (a->status >= 300 && a->status < 400 && a->redirect[0])
		return err_set(e, v.err, "%.*s answered %ld: it sends us to %s", SHOWN_MAX, t->name,
			       a->status, a->redirect);
	_Static_assert(sizeof(ret->message) == sizeof(ce.message), "a server's message is whole");
	if (connect_error_parse(a->body.data, a->body.len, &ce)) {
		memcpy(ret->message, ce.message, sizeof(ret->message));
		why = ce.message[0] ? ce.message : v.text;
	} else if (a->body.len) {
		clean_text(a->body.data, a->body.len, ret->message, sizeof(ret->message));
		why = v.text ? v.text : ret->message; /* it may be a page of HTML */
	}
	if (a->status == 429 && size > PUSH_RAW_MAX)
		return err_set(e, -E2BIG,
			       "%.*s answered 429: profile and labels have %zu bytes before gzip, "
			       "and servers with default limits take %d%s%.200s",
			       SHOWN_MAX, t->name, size, PUSH_RAW_MAX, ret->message[0] ? ": " : "",
			       ret->message);
	return err_set(e, v.err, "%.*s answered %ld%s%s%s: %.300s", SHOWN_MAX, t->name, a->status,
		       ce.code[0] ? " (" : "", ce.code, ce.code[0] ? ")" : "",
		       why && why[0] ? why : "it didn't say why");
}

int push_send(const struct push_target *t, const struct push_label *labels, size_t n,
	      const void *pprof_gz, size_t len, struct push_result *ret, struct err *e)
{
	struct answer a = { .body = BUF_INIT(PUSH_REPLY_MAX) };
	cleanup(freep_cleanup) uint8_t *body = NULL;
	int r = push_labels_check(labels, n, e);
	size_t size;

	*ret = (struct push_result){ 0 };
	if (r)
		return r;
	if (encode(labels, n, pprof_gz, len, &body, &ret->sent))
		return no_memory(e);
	r = post(t, body, ret->sent, &a, e);
	ret->status = a.status;
	size = raw_size(pprof_gz, len) + (ret->sent - len); /* all but the profile is labels */
	if (!r)
		r = a.status == 200 ? check_ok(t, &a, e) : refused(t, &a, size, ret, e);
	buf_free(&a.body);
	return r;
}
