/* kube.c - see kube.h. Verbs and parameters by the Kubernetes API concepts, "Efficient detection of
 * changes" and "Retrieving large results sets in chunks". */
#include "workload/kube.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/clock.h"

#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount/"

enum {
	CONNECT_SECONDS = 10,
	LIST_SECONDS = 60,
	WATCH_SECONDS = 290, /* the server ends it then; a little later we do */
	WATCH_GRACE_SECONDS = 30,
	SHORT_WATCH_NS = 1000000000, /* one that ended sooner isn't repeated at once */
	FIRST_PAUSE_MS = 1000,
	LAST_PAUSE_MS = 60000,
	LONGEST_PAUSE_MS = 600000, /* that a server can ask for */
	HURRY_MS = 1000,	   /* between two polls of kubelet, at least */
};

struct kube {
	pthread_t thread;
	pthread_mutex_t lock;  /* for stats, stop, hurried */
	struct kube_options o; /* its strings are those below */
	char *node_name, *url, *token_file, *ca_file;
	CURLM *multi;
	CURL *easy;
	struct kube_stats stats;
	bool stop, hurried;
	/* the thread's own */
	char version[KUBE_VERSION_MAX];
	unsigned int page;	    /* pods of a page; 0: all at once, at resourceVersion 0 */
	char token[KUBE_TOKEN_MAX]; /* during a request */
};

/* A request and its answer. */
struct request {
	struct kube *k;
	bool watch;
	long seconds;
	struct buf body; /* of a watch: the line that isn't complete yet */
	long status;
	int r; /* of what was read */
	char error[CURL_ERROR_SIZE];
};

/* ---- what others see ---- */

static bool stopped(struct kube *k)
{
	bool stop;

	pthread_mutex_lock(&k->lock);
	stop = k->stop;
	pthread_mutex_unlock(&k->lock);
	return stop;
}

static void count(struct kube *k, uint64_t *counter)
{
	pthread_mutex_lock(&k->lock);
	++*counter;
	pthread_mutex_unlock(&k->lock);
}

static void succeeded(struct kube *k, uint64_t *counter)
{
	pthread_mutex_lock(&k->lock);
	++*counter;
	k->stats.synced = true;
	k->stats.error[0] = '\0';
	pthread_mutex_unlock(&k->lock);
}

/* The sentence of a failure. A server that says our own token back isn't quoted. */
static int failed(struct kube *k, const struct request *q, int r, const char *why)
{
	char message[KUBE_MESSAGE_MAX] = "";

	if (q->status && q->status != 200 && q->body.data)
		kube_read_message(q->body.data, q->body.len, message);
	if (k->token[0] && (strstr(message, k->token) || strstr(why, k->token)))
		message[0] = '\0';
	pthread_mutex_lock(&k->lock);
	k->stats.errors++;
	k->stats.synced = false;
	if (q->status && q->status != 200)
		snprintf(k->stats.error, sizeof(k->stats.error), "%.80s: HTTP status %ld%s%s",
			 k->url, q->status, message[0] ? ": " : "", message);
	else
		snprintf(k->stats.error, sizeof(k->stats.error), "%.80s: %.160s", k->url, why);
	pthread_mutex_unlock(&k->lock);
	return r;
}

static void on_pod(void *ctx, const json_t *object)
{
	struct kube *k = ctx;

	count(k, &k->stats.pods);
	k->o.reader.pod(k->o.reader.ctx, object);
}

static struct kube_reader reader(struct kube *k)
{
	return (struct kube_reader){ on_pod, k };
}

/* ---- one request ---- */

/* The events of all lines that are complete. */
static int read_lines(struct request *q)
{
	const struct kube_reader to = reader(q->k);
	const char *line = q->body.data, *end;
	size_t left = q->body.len;

	while (left && (end = memchr(line, '\n', left))) {
		size_t n = (size_t)(end - line);
		int r = n ? kube_read_event(line, n, &to, q->k->version) : 0;

		if (r)
			return r;
		left -= n + 1;
		line = end + 1;
	}
	if (left)
		memmove(q->body.data, line, left);
	q->body.len = left;
	return 0;
}

static size_t on_body(char *data, size_t one, size_t n, void *arg)
{
	struct request *q = arg;

	if (!q->status) {
		curl_easy_getinfo(q->k->easy, CURLINFO_RESPONSE_CODE, &q->status);
		if (q->watch && q->status == 200)
			succeeded(q->k, &q->k->stats.watches);
	}
	buf_bytes(&q->body, data, one * n);
	q->r = q->body.err;
	if (!q->r && q->watch && q->status == 200 && memchr(data, '\n', n))
		q->r = read_lines(q);
	return q->r ? 0 : n; /* 0 ends the transfer */
}

/* The token, read anew, as a header line. 0 also without one; -EINVAL: it isn't a token. */
static int add_token(struct kube *k, struct curl_slist **headers)
{
	char line[KUBE_TOKEN_MAX + 32];
	struct curl_slist *more;
	ssize_t n;

	k->token[0] = '\0';
	if (!k->token_file[0])
		return 0;
	cleanup(fd_cleanup) int fd = open(k->token_file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	n = read(fd, k->token, sizeof(k->token) - 1);
	if (n < 0)
		return -errno;
	while (n && (k->token[n - 1] == '\n' || k->token[n - 1] == '\r'))
		n--;
	k->token[n] = '\0';
	for (const char *s = k->token; *s; s++)
		if (*s <= ' ' || *s > '~')
			return -EINVAL;
	if (!n)
		return -EINVAL;
	snprintf(line, sizeof(line), "Authorization: Bearer %s", k->token);
	more = curl_slist_append(*headers, line);
	explicit_bzero(line, sizeof(line));
	if (!more)
		return -ENOMEM;
	*headers = more;
	return 0;
}

static void forget_token(struct kube *k, struct curl_slist *headers)
{
	for (struct curl_slist *h = headers; h; h = h->next)
		explicit_bzero(h->data, strlen(h->data));
	curl_slist_free_all(headers);
	explicit_bzero(k->token, sizeof(k->token));
}

static int set_up(struct request *q, const char *url, struct curl_slist *headers)
{
	struct kube *k = q->k;
	CURL *c = k->easy;
	int bad = 0;

	curl_easy_reset(c); /* keeps connections */
	bad |= curl_easy_setopt(c, CURLOPT_ERRORBUFFER, q->error);
	bad |= curl_easy_setopt(c, CURLOPT_URL, url);
	bad |= curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
	bad |= curl_easy_setopt(c, CURLOPT_USERAGENT, "wick/" WICK_VERSION);
	bad |= curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	bad |= curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	bad |= curl_easy_setopt(c, CURLOPT_TCP_KEEPALIVE, 1L);
	bad |= curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
	bad |= curl_easy_setopt(c, CURLOPT_TIMEOUT, q->seconds);
	bad |= curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
#if LIBCURL_VERSION_NUM >= 0x075500
	bad |= curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	bad |= curl_easy_setopt(c, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
	if (k->ca_file[0])
		bad |= curl_easy_setopt(c, CURLOPT_CAINFO, k->ca_file);
	if (k->o.insecure) {
		bad |= curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 0L);
		bad |= curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 0L);
	}
	bad |= curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
	bad |= curl_easy_setopt(c, CURLOPT_WRITEDATA, q);
	return bad ? -ENOMEM : 0;
}

/* Runs it to its end, or until we are to stop. */
static CURLcode run(struct kube *k)
{
	CURLcode code = CURLE_ABORTED_BY_CALLBACK;
	int running = 1, left;
	CURLMsg *m;

	if (curl_multi_add_handle(k->multi, k->easy))
		return CURLE_FAILED_INIT;
	while (running && !stopped(k)) {
		if (curl_multi_perform(k->multi, &running))
			break;
		if (running)
			curl_multi_poll(k->multi, NULL, 0, 1000, NULL);
	}
	while ((m = curl_multi_info_read(k->multi, &left)))
		if (m->msg == CURLMSG_DONE)
			code = m->data.result;
	curl_multi_remove_handle(k->multi, k->easy);
	return code;
}

/* GETs url into q->body. 0: answered with 200, whole; else the failure has been noted. */
static int get(struct request *q, const char *url)
{
	struct curl_slist *headers = curl_slist_append(NULL, "Accept: application/json");
	struct kube *k = q->k;
	CURLcode code;
	int r = headers ? add_token(k, &headers) : -ENOMEM;

	if (r) {
		r = failed(k, q, r, "the token file can't be read, or holds no token");
	} else if (!set_up(q, url, headers)) {
		code = run(k);
		curl_easy_getinfo(k->easy, CURLINFO_RESPONSE_CODE, &q->status);
		if (stopped(k))
			r = -ECANCELED;
		else if (q->r)
			r = failed(k, q, q->r,
				   q->r == -E2BIG ? "the answer is too large"
						  : "the answer makes no sense");
		else if (code)
			r = failed(k, q, -EIO, q->error[0] ? q->error : curl_easy_strerror(code));
		else if (q->status != 200)
			r = failed(k, q, q->status == 410 ? -ESTALE : -EPROTO, "");
	} else {
		r = failed(k, q, -ENOMEM, "out of memory");
	}
	forget_token(k, headers);
	return r;
}

/* ---- list, watch, poll ---- */

static void append_escaped(struct kube *k, struct buf *url, const char *name, const char *value)
{
	char *escaped = curl_easy_escape(k->easy, value, 0);

	if (escaped)
		buf_printf(url, "&%s=%s", name, escaped);
	else
		url->err = -ENOMEM;
	curl_free(escaped);
}

static void pods_url(struct kube *k, struct buf *url)
{
	char selector[512];

	snprintf(selector, sizeof(selector), "spec.nodeName=%s", k->node_name);
	buf_printf(url, "%s/api/v1/pods?", k->url);
	append_escaped(k, url, "fieldSelector", selector);
}

/* One page, or all; *next is "" after the last. */
static int list_page(struct kube *k, char next[static KUBE_CONTINUE_MAX])
{
	struct request q = { .k = k, .seconds = LIST_SECONDS, .body = BUF_INIT(KUBE_PAGE_MAX) };
	cleanup(buf_cleanup) struct buf url = BUF_INIT(16 << 10);
	const struct kube_reader to = reader(k);
	int r;

	pods_url(k, &url);
	if (k->page)
		buf_printf(&url, "&limit=%u", k->page);
	else
		buf_str(&url, "&resourceVersion=0");
	if (next[0])
		append_escaped(k, &url, "continue", next);
	r = url.err ? url.err : get(&q, url.data);
	if (!r) {
		r = kube_read_list(q.body.data ? q.body.data : "", q.body.len, &to, k->version,
				   next);
		if (r || !k->version[0])
			r = failed(k, &q, -EBADMSG, "the answer is no list of pods");
	}
	buf_free(&q.body);
	return r;
}

/* Pages of fewer pods from now on. False: there are no smaller ones. */
static bool shrink_pages(struct kube *k)
{
	if (k->page == 1)
		return false;
	k->page = k->page ? (k->page + 4) / 5 : (unsigned int)KUBE_PAGE_PODS;
	return true;
}

static int list(struct kube *k)
{
	char next[KUBE_CONTINUE_MAX] = "";
	bool more = true;
	int r;

	while (more && !stopped(k)) {
		r = list_page(k, next);
		if (r == -E2BIG && shrink_pages(k))
			continue;
		if (r) {
			k->version[0] = '\0';
			return r;
		}
		more = next[0];
	}
	succeeded(k, &k->stats.lists);
	return 0;
}

/* Until the server ends it, which it does after some minutes. */
static int watch(struct kube *k)
{
	struct request q = {
		.k = k,
		.watch = true,
		.seconds = WATCH_SECONDS + WATCH_GRACE_SECONDS,
		.body = BUF_INIT(KUBE_LINE_MAX),
	};
	cleanup(buf_cleanup) struct buf url = BUF_INIT(16 << 10);
	uint64_t begin = clock_monotonic();
	int r;

	pods_url(k, &url);
	buf_printf(&url, "&watch=true&allowWatchBookmarks=true&timeoutSeconds=%d", WATCH_SECONDS);
	append_escaped(k, &url, "resourceVersion", k->version);
	r = url.err ? url.err : get(&q, url.data);
	buf_free(&q.body);
	if (!r && clock_monotonic() - begin < SHORT_WATCH_NS)
		return -EAGAIN;
	return r;
}

/* From memory at first; after a 410 what is there must be newer than that. */
static int list_and_watch(struct kube *k)
{
	int r = k->version[0] ? 0 : list(k);

	if (!r)
		r = watch(k);
	if (r == -ESTALE) {
		count(k, &k->stats.expired);
		k->version[0] = '\0';
		if (!k->page)
			k->page = KUBE_PAGE_PODS;
	} else if (r == -EBADMSG || r == -E2BIG) {
		k->version[0] = '\0'; /* an event may have been missed */
	}
	return r;
}

/* Waits so long, or until it is to stop; also until somebody is in a hurry, if that counts. */
static void pause_for(struct kube *k, uint64_t ms, bool hurry)
{
	uint64_t begin = clock_monotonic(), end = begin + ms * 1000000, now = begin;
	bool done = false;

	while (!done && now < end) {
		curl_multi_poll(k->multi, NULL, 0, (int)((end - now + 999999) / 1000000), NULL);
		now = clock_monotonic();
		pthread_mutex_lock(&k->lock);
		done = k->stop || (hurry && k->hurried && now - begin >= HURRY_MS * 1000000ULL);
		if (hurry && k->hurried && !done) /* soon */
			end = MIN(end, begin + HURRY_MS * 1000000ULL);
		pthread_mutex_unlock(&k->lock);
	}
}

static int poll_kubelet(struct kube *k)
{
	struct request q = { .k = k, .seconds = LIST_SECONDS, .body = BUF_INIT(KUBE_PAGE_MAX) };
	char url[1024], version[KUBE_VERSION_MAX], next[KUBE_CONTINUE_MAX];
	const struct kube_reader to = reader(k);
	int r;

	pthread_mutex_lock(&k->lock);
	k->hurried = false;
	pthread_mutex_unlock(&k->lock);
	snprintf(url, sizeof(url), "%s/pods", k->url);
	r = get(&q, url);
	if (!r && kube_read_list(q.body.data ? q.body.data : "", q.body.len, &to, version, next))
		r = failed(k, &q, -EBADMSG, "the answer is no list of pods");
	buf_free(&q.body);
	if (r)
		return r;
	succeeded(k, &k->stats.lists);
	pause_for(k, KUBE_POLL_NS / 1000000, true);
	return 0;
}

/* ---- the thread ---- */

/* After so many failures in a row: doubled each time, at random between half and all of it, so that
 * the agents of a cluster don't come back together. */
static uint64_t back_off_ms(struct kube *k, unsigned int failures)
{
	uint64_t ms = (uint64_t)FIRST_PAUSE_MS << MIN(failures, 16u);
	curl_off_t asked = 0;
	uint32_t dice = 0;

	ms = MIN(ms, (uint64_t)LAST_PAUSE_MS);
	(void)!getrandom(&dice, sizeof(dice), GRND_NONBLOCK);
	ms = ms / 2 + dice % (ms / 2);
	if (!curl_easy_getinfo(k->easy, CURLINFO_RETRY_AFTER, &asked) && asked > 0)
		ms = MAX(ms, MIN((uint64_t)asked * 1000, (uint64_t)LONGEST_PAUSE_MS));
	return ms;
}

static void *kube_thread(void *arg)
{
	struct kube *k = arg;
	unsigned int failures = 0;
	uint64_t lists;
	int r;

	while (!stopped(k)) {
		lists = k->stats.lists + k->stats.watches; /* written by this thread alone */
		r = k->o.mode == KUBE_KUBELET ? poll_kubelet(k) : list_and_watch(k);
		if (!r || lists != k->stats.lists + k->stats.watches)
			failures = 0;
		if (r && !stopped(k))
			pause_for(k, back_off_ms(k, failures++), false);
	}
	return NULL;
}

/* ---- starting ---- */

static int default_url(struct kube *k, char **ret)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST"),
		   *port = getenv("KUBERNETES_SERVICE_PORT");
	int n = -1;

	if (k->o.mode == KUBE_KUBELET)
		n = asprintf(ret, "https://%s:10250", k->node_name);
	else if (host && host[0])
		n = asprintf(ret, strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s", host,
			     port && port[0] ? port : "443");
	else
		return -EINVAL;
	if (n < 0)
		*ret = NULL;
	return n < 0 ? -ENOMEM : 0;
}

/* Given, else the service account's if it can be read, else "". */
static int choose_file(const char *given, const char *account, char **ret)
{
	*ret = strdup(given ? given : access(account, R_OK) ? "" : account);
	return *ret ? 0 : -ENOMEM;
}

static int choose(struct kube *k, struct err *e)
{
	const struct kube_options *o = &k->o;
	size_t len;
	int r = (k->node_name = strdup(o->node_name)) ? 0 : -ENOMEM;
	const char *given = o->mode == KUBE_KUBELET ? o->kubelet_url : o->api_url;

	if (!r)
		r = choose_file(o->token_file, SERVICE_ACCOUNT "token", &k->token_file);
	if (!r)
		r = choose_file(o->ca_file, SERVICE_ACCOUNT "ca.crt", &k->ca_file);
	if (!r && given)
		r = (k->url = strdup(given)) ? 0 : -ENOMEM;
	else if (!r)
		r = default_url(k, &k->url);
	if (r == -EINVAL)
		return err_set(e, r,
			       "this is no pod (KUBERNETES_SERVICE_HOST isn't set): the API "
			       "server's URL must be given");
	if (r)
		return err_set(e, r, "out of memory");
	for (len = strlen(k->url); len && k->url[len - 1] == '/'; len--)
		k->url[len - 1] = '\0';
	return 0;
}

static bool is_pod(void)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST");

	return host && host[0] && !access(SERVICE_ACCOUNT "token", R_OK);
}

static void kube_free(struct kube *k)
{
	if (!k)
		return;
	curl_easy_cleanup(k->easy);
	curl_multi_cleanup(k->multi);
	pthread_mutex_destroy(&k->lock);
	free(k->node_name);
	free(k->url);
	free(k->token_file);
	free(k->ca_file);
	free(k);
}
DEFINE_CLEANUP(kube, struct kube *, kube_free)

int kube_start(const struct kube_options *o, struct kube **ret, struct err *e)
{
	cleanup(kube_cleanup) struct kube *k = NULL;
	int r;

	if (o->mode == KUBE_OFF || (o->mode == KUBE_AUTO && !o->api_url && !is_pod())) {
		*ret = NULL;
		return 0;
	}
	k = calloc(1, sizeof(*k));
	if (!k || curl_global_init(CURL_GLOBAL_DEFAULT))
		return err_set(e, -ENOMEM, "out of memory");
	k->o = *o;
	pthread_mutex_init(&k->lock, NULL);
	k->multi = curl_multi_init();
	k->easy = curl_easy_init();
	if (!k->multi || !k->easy)
		return err_set(e, -ENOMEM, "out of memory");
	r = choose(k, e);
	if (r)
		return r;
	r = pthread_create(&k->thread, NULL, kube_thread, k);
	if (r)
		return err_set(e, -r, "can't start the thread that asks for pods: %s", strerror(r));
	*ret = take(k);
	return 0;
}

static void wake(struct kube *k, bool *what)
{
	pthread_mutex_lock(&k->lock);
	*what = true;
	pthread_mutex_unlock(&k->lock);
	curl_multi_wakeup(k->multi);
}

void kube_stop(struct kube *k)
{
	if (!k)
		return;
	wake(k, &k->stop);
	pthread_join(k->thread, NULL);
	kube_free(k);
}

void kube_hurry(struct kube *k)
{
	if (k && k->o.mode == KUBE_KUBELET)
		wake(k, &k->hurried);
}

void kube_stats(struct kube *k, struct kube_stats *ret)
{
	pthread_mutex_lock(&k->lock);
	*ret = k->stats;
	pthread_mutex_unlock(&k->lock);
}
