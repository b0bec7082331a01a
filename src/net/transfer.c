/* transfer.c - see transfer.h. */
#include "net/transfer.h"

#include <pthread.h>
#include <strings.h>

#include "net/address.h"
#include "net/connect_error.h"
#include "net/protocol.h"

static void init_curl(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

void transfer_global_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, init_curl);
}

/* ---- the answer, as it comes in ---- */

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	size_t room = t->body.max - t->body.len;

	buf_bytes(&t->body, p, MIN(size * n, room));
	t->answer.too_long |= size * n > room;
	return t->body.err || t->answer.too_long ? 0 : size * n;
}

/* Percent-decodes (gRPC over HTTP/2, "Responses"); a broken escape stands for itself. */
static size_t percent_decode(const char *s, size_t n, char *out, size_t size)
{
	size_t len = 0;

	for (size_t i = 0; i < n && len < size; i++) {
		char hex[3] = { 0 };

		if (s[i] == '%' && n - i > 2)
			memcpy(hex, s + i + 1, 2);
		if (strspn(hex, "0123456789abcdefABCDEF") == 2) {
			out[len++] = (char)strtoul(hex, NULL, 16);
			i += 2;
		} else {
			out[len++] = s[i];
		}
	}
	return len;
}

void transfer_header(struct sink_answer *a, const char *line, size_t n)
{
	static const char status[] = "grpc-status:", message[] = "grpc-message:";
	char text[3 * sizeof(a->grpc_message)];
	size_t len;

	while (n && (line[n - 1] == '\n' || line[n - 1] == '\r'))
		n--;
	if (n >= sizeof(message) - 1 && !strncasecmp(line, message, sizeof(message) - 1)) {
		len = percent_decode(line + sizeof(message) - 1, n - (sizeof(message) - 1), text,
				     sizeof(text));
		clean_text(text, len, a->grpc_message, sizeof(a->grpc_message));
		return;
	}
	if (n < sizeof(status) - 1 || strncasecmp(line, status, sizeof(status) - 1))
		return;
	line += sizeof(status) - 1;
	n -= sizeof(status) - 1;
	for (; n && *line == ' '; n--)
		line++;
	a->grpc_status = n ? 0 : -1;
	for (; n; n--, line++) {
		if (*line < '0' || *line > '9' || a->grpc_status > 999) {
			a->grpc_status = -1;
			return;
		}
		a->grpc_status = a->grpc_status * 10 + (*line - '0');
	}
}

static size_t on_header(char *p, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;

	transfer_header(&t->answer, p, size * n);
	return size * n;
}

/* ---- setting up ---- */

static int append(struct curl_slist **l, const char *line)
{
	struct curl_slist *longer = curl_slist_append(*l, line);

	if (!longer)
		return -ENOMEM;
	*l = longer;
	return 0;
}

/* Lines of "Name: value\n" to a list. */
static int append_lines(struct curl_slist **l, const struct buf *lines)
{
	cleanup(freep_cleanup) char *text = strdup(lines->data ? lines->data : "");
	char *rest = text, *line;
	int r = text ? 0 : -ENOMEM;

	while (!r && (line = strsep(&rest, "\n")))
		if (*line)
			r = append(l, line);
	if (text)
		explicit_bzero(text, strlen(text));
	return r;
}

static int make_headers(struct transfer *t, const struct sink *s)
{
	int r = append_lines(&t->headers, &t->request.headers);

	if (!r)
		r = append_lines(&t->headers, &s->headers);
	if (!r)
		r = append(&t->headers, "Accept:");
	return r ? r : append(&t->headers, "Expect:");	/* no waiting for "100 Continue" */
}

static bool set_credentials(CURL *c, const struct sink *s)
{
	const char *bearer = secret_value(&s->bearer), *password = secret_value(&s->password);
	bool bad = false;

	if (bearer) {
		bad |= curl_easy_setopt(c, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
		bad |= curl_easy_setopt(c, CURLOPT_XOAUTH2_BEARER, bearer);
	} else if (s->user || password) {
		bad |= curl_easy_setopt(c, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
		bad |= curl_easy_setopt(c, CURLOPT_USERNAME, s->user ? s->user : "");
		bad |= curl_easy_setopt(c, CURLOPT_PASSWORD, password ? password : "");
	}
	return !bad;
}

static bool set_tls(CURL *c, const struct sink *s)
{
	bool bad = false;

	if (s->insecure) {
		bad |= curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 0L);
		bad |= curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 0L);
	}
	if (s->ca_file)
		bad |= curl_easy_setopt(c, CURLOPT_CAINFO, s->ca_file);
	if (s->cert_file) {
		bad |= curl_easy_setopt(c, CURLOPT_SSLCERT, s->cert_file);
		bad |= curl_easy_setopt(c, CURLOPT_SSLKEY, s->key_file);
	}
	return !bad;
}

static long http_version(const struct sink *s)
{
	if (s->protocol->transport != TRANSPORT_GRPC)
		return s->tls ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1;
	return s->tls ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE;
}

/* From 7.87 to 7.88.1 (Debian 12) libcurl sends no HTTP/2 on a connection that it uses again, when
 * there was no TLS to agree on it; 8.0 does. There, each such request has a connection of its own. */
static bool forgets_http2(const struct sink *s)
{
	const unsigned int version = curl_version_info(CURLVERSION_NOW)->version_num;

	return s->protocol->transport == TRANSPORT_GRPC && !s->tls && version >= 0x075700 &&
	       version < 0x080000;
}

static bool set_behaviour(struct transfer *t, const struct sink *s)
{
	const long total_ms = (long)(s->timeout_ns / 1000000);
	CURL *c = t->curl;
	bool bad = false;

	bad |= curl_easy_setopt(c, CURLOPT_ERRORBUFFER, t->error);
	bad |= curl_easy_setopt(c, CURLOPT_USERAGENT, "wick/" WICK_VERSION);
	bad |= curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	bad |= curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, MIN(total_ms, SINK_CONNECT_MS));
	bad |= curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, total_ms);
	bad |= curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
	bad |= curl_easy_setopt(c, CURLOPT_HTTP_VERSION, http_version(s));
	if (forgets_http2(s)) {
		bad |= curl_easy_setopt(c, CURLOPT_FRESH_CONNECT, 1L);
		bad |= curl_easy_setopt(c, CURLOPT_FORBID_REUSE, 1L);
	}
#if LIBCURL_VERSION_NUM >= 0x075500
	bad |= curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	bad |= curl_easy_setopt(c, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
	/* a name server that doesn't answer must not hold up the end of the process */
	bad |= curl_easy_setopt(c, CURLOPT_QUICK_EXIT, 1L);
#endif
	bad |= curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
	bad |= curl_easy_setopt(c, CURLOPT_WRITEDATA, t);
	bad |= curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
	bad |= curl_easy_setopt(c, CURLOPT_HEADERDATA, t);
	return !bad;
}

static bool set_request(struct transfer *t)
{
	CURL *c = t->curl;
	bool bad = false;

	bad |= curl_easy_setopt(c, CURLOPT_URL, t->request.url);
	bad |= curl_easy_setopt(c, CURLOPT_HTTPHEADER, t->headers);
	bad |= curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->request.body.len);
	bad |= curl_easy_setopt(c, CURLOPT_POSTFIELDS,
				t->request.body.data ? t->request.body.data : "");
	return !bad;
}

static void forget_last(struct transfer *t)
{
	sink_request_done(&t->request);
	curl_slist_free_all(t->headers);
	t->headers = NULL;
	buf_reset(&t->body);
	t->answer = (struct sink_answer){ .grpc_status = -1 };
	t->error[0] = '\0';
}

int transfer_start(struct transfer *t, struct sink *s, struct item *const *items, size_t n,
		   struct err *e)
{
	int r;

	forget_last(t);
	secret_refresh(&s->password);
	secret_refresh(&s->bearer);
	r = sink_encode(s, items, n, &t->request);
	if (r)
		return err_set(e, r, "can't encode a profile for %.*s: %s", ADDRESS_SHOWN, s->name,
			       strerror(-r));
	if (!t->curl)
		t->curl = curl_easy_init();
	else
		curl_easy_reset(t->curl);	/* keeps its connections */
	if (!t->curl || make_headers(t, s) || !set_behaviour(t, s) || !set_credentials(t->curl, s) ||
	    !set_tls(t->curl, s) || !set_request(t))
		return err_set(e, -ENOMEM, "out of memory");
	return 0;
}

/* ---- its end ---- */

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
	case CURLE_HTTP2:
	case CURLE_HTTP2_STREAM:
		return -ECONNRESET;
	case CURLE_OUT_OF_MEMORY:
		return -ENOMEM;
	default:
		return -EPROTO;
	}
}

static void read_answer(struct transfer *t)
{
	struct sink_answer *a = &t->answer;
	curl_off_t seconds = 0;
	const char *s = NULL;

	curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &a->status);
	if (!curl_easy_getinfo(t->curl, CURLINFO_CONTENT_TYPE, &s) && s)
		clean_text(s, strlen(s), a->type, sizeof(a->type));
	s = NULL;
	if (!curl_easy_getinfo(t->curl, CURLINFO_REDIRECT_URL, &s) && s)
		address_redact(s, a->redirect, sizeof(a->redirect));
	if (!curl_easy_getinfo(t->curl, CURLINFO_RETRY_AFTER, &seconds) && seconds > 0)
		a->retry_after_ns = (uint64_t)MIN(seconds, 86400) * 1000000000;
	a->body = t->body.data;
	a->len = t->body.len;
}

void transfer_finish(struct transfer *t, const struct sink *s, CURLcode code,
		     struct sink_verdict *ret)
{
	char clean[CURL_ERROR_SIZE];

	*ret = (struct sink_verdict){ .fate = SINK_LATER, .err = -ENOMEM };
	if (t->body.err) {
		err_set(&ret->why, -ENOMEM, "out of memory");
		return;
	}
	if (!code || t->answer.too_long) {
		read_answer(t);
		sink_judge(s, &t->request, &t->answer, ret);
		return;
	}
	if (!t->error[0])
		snprintf(t->error, sizeof(t->error), "%s", curl_easy_strerror(code));
	clean_text(t->error, strlen(t->error), clean, sizeof(clean));
	ret->err = transfer_error(code);
	err_set(&ret->why, ret->err, "can't push to %.*s: %s", ADDRESS_SHOWN, s->name, clean);
}

void transfer_done(struct transfer *t)
{
	curl_easy_cleanup(t->curl);
	t->curl = NULL;
	forget_last(t);
	buf_free(&t->body);
}
