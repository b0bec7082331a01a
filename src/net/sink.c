/* sink.c - see sink.h. Top to bottom: options, making a sink, requests, answers. */
#include "net/sink.h"

#include <limits.h>
#include <zlib.h>

#include "net/address.h"
#include "net/connect_error.h"
#include "net/protocol.h"

#define ACCEPTED "pyroscope+http://HOST:4040, pyroscope-ingest+http, profefe+http, parca+grpc, " \
		 "otlp+http (with TLS: +https, +grpcs), file:///DIR"

static const struct protocol *const protocols[] = {
	&protocol_pyroscope, &protocol_ingest, &protocol_profefe, &protocol_parca,
	&protocol_otlp,	     &protocol_file,
};

static int no_memory(struct err *e)
{
	return err_set(e, -ENOMEM, "out of memory");
}

void sink_redact(const char *url, char *ret, size_t size)
{
	address_redact(url, ret, size);
}

static int bad_url(const char *url, const char *why, struct err *e)
{
	char shown[ADDRESS_SHOWN];

	address_redact(url, shown, sizeof(shown));
	return err_set(e, -EINVAL, "'%s' %s: use " ACCEPTED, shown, why);
}

/* ---- options ---- */

static bool parse_number(const char *s, uint64_t max, uint64_t *ret, const char **ret_end)
{
	uint64_t v = 0;

	if (*s < '0' || *s > '9')
		return false;
	for (; *s >= '0' && *s <= '9'; s++) {
		if (v > (max - (uint64_t)(*s - '0')) / 10)
			return false;
		v = v * 10 + (uint64_t)(*s - '0');
	}
	*ret = v;
	*ret_end = s;
	return true;
}

/* "500ms", "30s" or "30", "15m", "12h", "7d". */
static bool parse_time(const char *s, uint64_t *ret_ns)
{
	static const struct {
		const char *unit;
		uint64_t ns;
	} units[] = { { "", 1000000000 }, { "s", 1000000000 }, { "ms", 1000000 },
		      { "m", 60000000000 }, { "h", 3600000000000 }, { "d", 86400000000000 } };
	const char *end;
	uint64_t v;

	if (!parse_number(s, 1000000, &v, &end) || !v)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (!strcmp(end, units[i].unit)) {
			*ret_ns = MIN(v, 10000 * 86400000000000 / units[i].ns) * units[i].ns;
			return true;
		}
	return false;
}

/* Bytes; K, M, G, T are powers of 1024. */
static bool parse_size(const char *s, uint64_t *ret)
{
	static const char units[] = "KMGT";
	const char *end, *unit;
	uint64_t v;

	if (!parse_number(s, 1ULL << 50, &v, &end) || !v)
		return false;
	if (*end) {
		unit = strchr(units, *end);
		if (!unit || end[1] || v > (1ULL << 60) >> 10 * (unit - units + 1))
			return false;
		v <<= 10 * (unit - units + 1);
	}
	*ret = v;
	return true;
}

/* What an address says about itself, over what was given beside it. */
struct merged {
	struct sink_options o;	/* borrowed from options and address */
	struct file_sink file;
	uint32_t otlp_minor;
};

static bool set_batch(struct merged *m, const struct protocol *p, const char *v)
{
	const char *end;
	uint64_t n;

	if (!p->batches || !parse_number(v, SINK_BATCH_MAX, &n, &end) || *end || !n)
		return false;
	m->o.batch = (uint32_t)n;
	return true;
}

/* False: the value is wrong. */
static bool set_transfer_option(struct merged *m, const struct protocol *p, const char *name,
				char *value, bool *ret_known)
{
	const struct {
		const char *name;
		char **field;
	} texts[] = { { "tenant", &m->o.tenant },
		      { "password-file", &m->o.password_file },
		      { "bearer-file", &m->o.bearer_file },
		      { "ca-file", &m->o.ca_file },
		      { "cert-file", &m->o.cert_file },
		      { "key-file", &m->o.key_file } };

	*ret_known = true;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (!strcmp(name, texts[i].name)) {
			*texts[i].field = value;
			return true;
		}
	if (!strcmp(name, "timeout"))
		return parse_time(value, &m->o.timeout_ns);
	if (!strcmp(name, "batch"))
		return set_batch(m, p, value);
	if (!strcmp(name, "insecure")) {
		m->o.insecure = !strcmp(value, "yes");
		return m->o.insecure || !strcmp(value, "no");
	}
	if (!strcmp(name, "proto") && !strcmp(p->name, "otlp")) {
		m->otlp_minor = !strcmp(value, "1.9") ? 9 : 10;
		return !strcmp(value, "1.9") || !strcmp(value, "1.10");
	}
	*ret_known = false;
	return true;
}

static bool set_option(struct merged *m, const struct protocol *p, const char *name, char *value,
		       bool *ret_known)
{
	*ret_known = true;
	if (p->transport != TRANSPORT_FILE)
		return set_transfer_option(m, p, name, value, ret_known);
	if (!strcmp(name, "max-bytes"))
		return parse_size(value, &m->file.max_bytes);
	if (!strcmp(name, "max-age"))
		return parse_time(value, &m->file.max_age_ns);
	*ret_known = false;
	return true;
}

static int merge_options(struct merged *m, const struct protocol *p, const struct address *a,
			 const char *url, struct err *e)
{
	char shown[ADDRESS_SHOWN];
	bool known;

	address_redact(url, shown, sizeof(shown));
	m->otlp_minor = 10;
	for (size_t i = 0; i < a->noptions; i++) {
		if (!set_option(m, p, a->options[i].name, a->options[i].value, &known))
			return err_set(e, -EINVAL, "'%s': option '%.40s' doesn't accept "
						   "this value", shown, a->options[i].name);
		if (!known)
			return err_set(e, -EINVAL, "'%s': there is no option '%.40s' for %s",
				       shown, a->options[i].name, p->name);
	}
	if (a->user)
		m->o.user = a->user;
	if (a->password) {
		m->o.password = a->password;
		m->o.password_file = NULL;
	}
	if (m->o.password_file)
		m->o.password = NULL;
	if (m->o.bearer_file)
		m->o.bearer_token = NULL;
	if ((m->o.bearer_file || m->o.bearer_token) &&
	    (m->o.user || m->o.password || m->o.password_file))
		return err_set(e, -EINVAL, "'%s': a user and a bearer token exclude each other",
			       shown);
	return 0;
}

/* ---- making one ---- */

static const struct protocol *find_protocol(const char *url, bool *ret_tls)
{
	const size_t n = address_scheme(url);

	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
		const struct protocol *p = protocols[i];
		const char *transport = p->transport == TRANSPORT_GRPC ? "grpc" : "http";
		char scheme[64];

		*ret_tls = false;
		if (p->transport == TRANSPORT_FILE)
			snprintf(scheme, sizeof(scheme), "%s", p->name);
		else
			snprintf(scheme, sizeof(scheme), "%s+%s", p->name, transport);
		if (n == strlen(scheme) && !strncmp(url, scheme, n))
			return p;
		if (p->transport != TRANSPORT_FILE && n == strlen(scheme) + 1 && url[n - 1] == 's' &&
		    !strncmp(url, scheme, n - 1)) {
			*ret_tls = true;
			return p;
		}
	}
	return NULL;
}

static int copy_text(const char *from, char **ret)
{
	if (!from)
		return 0;
	*ret = strdup(from);
	return *ret ? 0 : -ENOMEM;
}

static bool is_header(const char *line)
{
	size_t name = strspn(line, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				   "!#$%&'*+-.^_`|~");	/* RFC 9110 section 5.6.2 */

	if (!name || line[name] != ':' || !line[name + 1 + strspn(line + name + 1, " \t")])
		return false;
	for (line += name; *line; line++)
		if ((unsigned char)*line < 0x20 && *line != '\t')
			return false;
	return true;
}

static bool is_tenant(const char *s)
{
	for (; *s; s++)
		if (*s <= 0x20 || *s == 0x7f)
			return false;
	return true;
}

static int fill_headers(struct sink *s, const struct sink_options *o, struct err *e)
{
	if (o->tenant && !is_tenant(o->tenant))
		return err_set(e, -EINVAL, "a tenant is printable ASCII without spaces");
	if (o->tenant)
		buf_printf(&s->headers, "X-Scope-OrgID: %s\n", o->tenant);
	for (size_t i = 0; i < o->headers.n; i++) {
		if (!is_header(o->headers.v[i]))	/* its value may be a secret */
			return err_set(e, -EINVAL, "header %zu is not 'Name: value'", i + 1);
		buf_printf(&s->headers, "%s\n", o->headers.v[i]);
	}
	return s->headers.err ? no_memory(e) : 0;
}

static int check_files(const struct sink_options *o, struct err *e)
{
	const char *const files[] = { o->ca_file, o->cert_file, o->key_file };

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (files[i] && access(files[i], R_OK) < 0)
			return err_set(e, -errno, "can't read %.200s: %s", files[i],
				       strerror(errno));
	if (!!o->cert_file != !!o->key_file)
		return err_set(e, -EINVAL, "a client certificate and its key go together");
	return 0;
}

static int fill(struct sink *s, const struct merged *m, const struct address *a, struct err *e)
{
	const struct sink_options *o = &m->o;
	int r = fill_headers(s, o, e);

	if (!r)
		r = check_files(o, e);
	if (!r)
		r = secret_set(&s->password, o->password, o->password_file, e);
	if (!r)
		r = secret_set(&s->bearer, o->bearer_token, o->bearer_file, e);
	if (r)
		return r;
	s->insecure = o->insecure;
	s->timeout_ns = o->timeout_ns ? o->timeout_ns : SINK_TIMEOUT_MS * 1000000ULL;
	s->batch = s->protocol->batches ? MIN(o->batch, SINK_BATCH_MAX) : 1;
	s->otlp_minor = m->otlp_minor;
	s->file = m->file;
	if (copy_text(o->user, &s->user) || copy_text(o->ca_file, &s->ca_file) ||
	    copy_text(o->cert_file, &s->cert_file) || copy_text(o->key_file, &s->key_file) ||
	    copy_text(a->base, &s->base))
		return no_memory(e);
	if (s->protocol->transport == TRANSPORT_FILE) {
		s->file.dir = s->base;
		return asprintf(&s->name, "file://%s", s->base) < 0 ? no_memory(e) : 0;
	}
	/* the tenant belongs to what tells sinks apart, and is no secret */
	return asprintf(&s->name, "%s%s%s%s", a->scheme, strstr(a->base, "://"),
			o->tenant ? "?tenant=" : "", o->tenant ? o->tenant : "") < 0
		       ? no_memory(e)
		       : 0;
}

int sink_new(const struct sink_options *o, struct sink **ret, struct err *e)
{
	cleanup(sink_cleanup) struct sink *s = calloc(1, sizeof(*s));
	struct merged m = { .o = *o };
	struct address a;
	const char *why;
	int r;

	if (!s)
		return no_memory(e);
	s->headers = (struct buf)BUF_INIT(64 << 10);
	s->protocol = find_protocol(o->url, &s->tls);
	if (!s->protocol)
		return bad_url(o->url, address_scheme(o->url) && strchr(o->url, '+')
					       ? "has a protocol that isn't supported"
					       : "has no protocol", e);
	r = address_parse(o->url, s->tls, s->protocol->port, &a, &why);
	if (r == -ENOMEM)
		r = no_memory(e);
	else if (r)
		r = bad_url(o->url, why, e);
	if (!r)
		r = merge_options(&m, s->protocol, &a, o->url, e);
	if (!r)
		r = fill(s, &m, &a, e);
	address_done(&a);
	if (!r)
		*ret = take(s);
	return r;
}

void sink_free(struct sink *s)
{
	if (!s)
		return;
	if (s->headers.data)
		explicit_bzero(s->headers.data, s->headers.len);
	buf_free(&s->headers);
	secret_done(&s->password);
	secret_done(&s->bearer);
	free(s->name);
	free(s->base);
	free(s->user);
	free(s->ca_file);
	free(s->cert_file);
	free(s->key_file);
	free(s);
}

const char *sink_name(const struct sink *s)
{
	return s->name;
}

uint32_t sink_batch(const struct sink *s, uint64_t waiting)
{
	if (s->batch)
		return s->batch;
	return s->protocol->stores_once ? (uint32_t)MIN(MAX(waiting / 4, 1), SINK_BATCH_AUTO) : 1;
}

bool sink_is_local(const struct sink *s)
{
	return s->protocol->store;
}

void sink_store(struct sink *s, const struct item *it, struct sink_verdict *ret)
{
	*ret = (struct sink_verdict){ .fate = SINK_STORED };
	s->protocol->store(s, it, ret);
}

/* ---- requests ---- */

int sink_encode(struct sink *s, struct item *const *items, size_t n, struct sink_request *ret)
{
	cleanup(buf_cleanup) struct buf url = BUF_INIT(4 << 20);
	struct sink_request request = { .headers = BUF_INIT(64 << 10),
					.body = BUF_INIT((size_t)256 << 20) };
	size_t len;
	int r;

	buf_str(&url, s->base);
	for (size_t i = 0; i < n; i++)
		request.counted = MAX(request.counted, item_counted_bytes(items[i]));
	r = s->protocol->encode(s, items, n, &url, &request);
	if (!r)
		r = request.headers.err ? request.headers.err : request.body.err;
	if (!r)
		r = buf_take(&url, &request.url, &len);
	if (r)
		sink_request_done(&request);
	else
		*ret = request;
	return r;
}

void sink_request_done(struct sink_request *r)
{
	free(r->url);
	buf_free(&r->headers);
	buf_free(&r->body);
	*r = (struct sink_request){ 0 };
}

void request_header(struct sink_request *r, const char *name, const char *value)
{
	buf_printf(&r->headers, "%s: %s\n", name, value);
}

void url_escape(struct buf *b, const char *s)
{
	for (; *s; s++) {
		bool plain = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ||
			     (*s >= '0' && *s <= '9') || strchr("-._~", *s);

		if (plain)	/* RFC 3986 section 2.3 */
			buf_char(b, *s);
		else
			buf_printf(b, "%%%02X", (unsigned char)*s);
	}
}

int gzip_bytes(const void *in, size_t n, struct buf *out)
{
	z_stream z = { 0 };
	uint8_t chunk[16384];
	int r;

	if (n > UINT_MAX)
		return -E2BIG;
	if (deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, 16 + 15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	z.next_in = (uint8_t *)(uintptr_t)in;	/* zlib only reads it */
	z.avail_in = (uInt)n;
	do {
		z.next_out = chunk;
		z.avail_out = sizeof(chunk);
		r = deflate(&z, Z_FINISH);
		buf_bytes(out, chunk, sizeof(chunk) - z.avail_out);
	} while (r == Z_OK);
	deflateEnd(&z);
	return out->err;
}

/* ---- answers ---- */

void sink_judge(const struct sink *s, const struct sink_request *r, const struct sink_answer *a,
		struct sink_verdict *ret)
{
	*ret = (struct sink_verdict){ .fate = SINK_STORED, .retry_after_ns = a->retry_after_ns };
	s->protocol->judge(s, r, a, ret);
}

void verdict_set(struct sink_verdict *v, const struct sink *s, enum sink_fate fate, int err,
		 const char *fmt, ...)
{
	char text[sizeof(v->why.msg)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	v->fate = fate;
	v->err = err;
	snprintf(v->why.msg, sizeof(v->why.msg), "%.*s %.380s", ADDRESS_SHOWN, s->name, text);
}

static const struct meaning {
	long status;
	int err;
	enum sink_fate fate;
	const char *text;	/* for answers that don't say why */
} meanings[] = {
	{ 400, -EINVAL, SINK_REFUSED, "it doesn't accept the profile or its labels" },
	{ 401, -EACCES, SINK_REFUSED, "it wants a user and a password (//USER:PASSWORD@HOST), a "
				      "bearer token or a tenant" },
	{ 403, -EACCES, SINK_REFUSED, "access denied" },
	{ 404, -ENOENT, SINK_REFUSED, NULL },
	{ 405, -ENOENT, SINK_REFUSED, NULL },
	{ 408, -EAGAIN, SINK_LATER, "it didn't get all of the profile in time" },
	{ 413, -E2BIG, SINK_REFUSED, "the profile is too large for it" },
	{ 415, -EREMOTEIO, SINK_REFUSED, "it doesn't take profiles of this content type" },
	{ 422, -EINVAL, SINK_REFUSED, "it doesn't accept the profile or its labels" },
	{ 425, -EAGAIN, SINK_LATER, "it takes no more at the moment" },
	{ 429, -EAGAIN, SINK_LATER, "it takes no more at the moment" },
	{ 500, -EREMOTEIO, SINK_LATER, NULL },
	{ 502, -EAGAIN, SINK_LATER, "the server behind it is not available" },
	{ 503, -EAGAIN, SINK_LATER, "it is not available at the moment" },
	{ 504, -EAGAIN, SINK_LATER, "the server behind it doesn't answer" },
};

static struct meaning meaning_of(long status)
{
	for (size_t i = 0; i < ARRAY_SIZE(meanings); i++)
		if (meanings[i].status == status)
			return meanings[i];
	return (struct meaning){ status, -EREMOTEIO, status > 500 ? SINK_LATER : SINK_REFUSED, NULL };
}

void judge_http(const struct sink *s, const struct sink_request *r, const struct sink_answer *a,
		struct sink_verdict *ret)
{
	struct meaning m = meaning_of(a->status);
	struct connect_error ce = { "", "" };
	char none[96];
	const char *why = m.text;

	(void)r;
	if (a->status == 200)
		return;
	if (a->status >= 300 && a->status < 400 && a->redirect[0]) {
		verdict_set(ret, s, SINK_REFUSED, m.err, "answered %ld: it sends us to %s", a->status,
			    a->redirect);
		return;
	}
	if (m.err == -ENOENT) {
		snprintf(none, sizeof(none), "there is no %s at this address, check its port and path",
			 s->protocol->product);
		why = none;
	}
	_Static_assert(sizeof(ret->message) == sizeof(ce.message), "a server's message is whole");
	if (connect_error_parse(a->body, a->len, &ce)) {
		memcpy(ret->message, ce.message, sizeof(ret->message));
		why = ce.message[0] ? ce.message : why;
	} else if (a->len) {
		clean_text(a->body, a->len, ret->message, sizeof(ret->message));
		/* it may be a page of HTML, which says less than we can */
		why = m.text && strncmp(a->type, "text/plain", 10) ? m.text : why ? why : ret->message;
	}
	verdict_set(ret, s, m.fate, m.err, "answered %ld%s%s%s: %.300s", a->status,
		    ce.code[0] ? " (" : "", ce.code, ce.code[0] ? ")" : "",
		    why && why[0] ? why : "it didn't say why");
}

void judge_stray(const struct sink *s, const struct sink_answer *a, struct sink_verdict *ret)
{
	verdict_set(ret, s, SINK_REFUSED, -EPROTO,
		    "answered %ld, but not as %s does (with Content-Type '%s')", a->status,
		    s->protocol->product, a->type);
}
