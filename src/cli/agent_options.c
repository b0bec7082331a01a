/* agent_options.c - see agent_options.h. */
#include "cli/agent_options.h"

#include <ctype.h>

#include "http/listen.h"
#include "kernel/event.h"
#include "kernel/sampler.h"
#include "net/delivery.h"
#include "net/push.h"
#include "net/sink.h"
#include "symbol/debuginfod.h"
#include "symbol/process.h"

#define SECOND	1000000000ULL
#define OPT(f)	.offset = offsetof(struct agent_config, o.f)
#define LISTEN_NONE "none"

static const char *const demangle_names[] = { "none", "simple", "full", NULL };
static const char *const kubernetes_names[] = { "off", "api", "kubelet", "auto", NULL };
static const char *const log_names[] = { "error", "warning", "info", "debug", NULL };

/* ---- what a type alone can't judge ---- */

static int check_event(const char *text, struct err *e)
{
	char names[400];

	if (event_by_name(text))
		return 0;
	event_names(names, sizeof(names));
	return err_set(e, -EINVAL, "'%.64s' is not one of %s", text, names);
}

static int check_label(const char *text, struct err *e)
{
	cleanup(labels_cleanup) struct labels one = LABELS_INIT;

	return push_label_add(&one, text, e);
}

static int check_push(const char *text, struct err *e)
{
	const struct sink_options o = { .url = (char *)text };	/* copied */
	struct sink *sink;
	int r = sink_new(&o, &sink, e);

	if (!r)
		sink_free(sink);
	return r == -ENOMEM ? r : r ? -EINVAL : 0;
}

/* The user and password of an address, without the '@' that ends them; 0 bytes if there are none
 * (RFC 3986, 3.2.1). */
static size_t userinfo(const char *url, const char **ret)
{
	const char *start = strstr(url, "://"), *at;
	size_t n;

	*ret = start ? start + 3 : url;
	n = strcspn(*ret, "/?#");
	at = start ? memrchr(*ret, '@', n) : NULL;
	return at ? (size_t)(at - *ret) : 0;
}

static void mask_url(const char *text, struct buf *ret)
{
	const char *user, *colon;
	size_t n = userinfo(text, &user);

	colon = n ? memchr(user, ':', n) : NULL;
	if (!colon) {
		buf_str(ret, text);
		return;
	}
	buf_bytes(ret, text, (size_t)(colon - text));
	buf_str(ret, ":********");
	buf_str(ret, user + n);
}

static int check_url(const char *text, struct err *e)
{
	if (!strncmp(text, "http://", 7) && text[7])
		return 0;
	if (!strncmp(text, "https://", 8) && text[8])
		return 0;
	return err_set(e, -EINVAL, "'%.100s' is not http://HOST[:PORT] or https://...", text);
}

/* RFC 9110, 5.1 and 5.5: a token, and a value without control characters. */
static int check_header(const char *text, struct err *e)
{
	const char *colon = strchr(text, ':');
	size_t n = colon ? (size_t)(colon - text) : 0;

	if (!n || strspn(text, "!#$%&'*+-.^_`|~0123456789"
			       "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != n)
		return err_set(e, -EINVAL, "not NAME: VALUE");
	for (; *colon; colon++)
		if (iscntrl((unsigned char)*colon) && *colon != '\t')
			return err_set(e, -EINVAL, "a control character in the value");
	if (n == strlen("authorization") && !strncasecmp(text, "authorization", n))
		return err_set(e, -EINVAL, "Authorization is made from user and password_file, or "
					   "bearer_token_file");
	return 0;
}

/* Values of headers are secrets more often than not. */
static void mask_header(const char *text, struct buf *ret)
{
	buf_bytes(ret, text, strcspn(text, ":"));
	buf_str(ret, ": ********");
}

static int check_listen(const char *text, struct err *e)
{
	struct listen_address a;

	return strcmp(text, LISTEN_NONE) ? listen_parse(text, &a, e) : 0;
}

static int check_uid(const char *text, struct err *e)
{
	if (strspn(text, "0123456789") == strlen(text) && strlen(text) <= 10)
		return 0;
	return err_set(e, -EINVAL, "'%.100s' is not a user id in decimal", text);
}

/* ---- the table ---- */

/* Of each server, and as push-* of all that don't say otherwise. */
#define SINK_ROWS(prefix, base, timeout)                                                           \
	{ OPT_STRING, 0, prefix "tenant", "ID", "X-Scope-OrgID of requests",                        \
	  .offset = (base) + offsetof(struct agent_sink, tenant), .live = true },          \
	{ OPT_STRING, 0, prefix "user", "NAME", "basic authentication, with password-file",       \
	  .offset = (base) + offsetof(struct agent_sink, user), .live = true },                    \
	{ OPT_FILE, 0, prefix "password-file", "FILE", "holds the password of user",               \
	  .offset = (base) + offsetof(struct agent_sink, password_file), .live = true },           \
	{ OPT_FILE, 0, prefix "bearer-token-file", "FILE", "its content is sent as Bearer",\
	  .offset = (base) + offsetof(struct agent_sink, bearer_token_file), .live = true },       \
	{ OPT_LIST, 0, prefix "headers", "NAME: VALUE", "header of requests (repeatable)",         \
	  .offset = (base) + offsetof(struct agent_sink, headers), .joint = ": ",                  \
	  .check = check_header, .mask = mask_header, .live = true },                              \
	{ OPT_FILE, 0, prefix "ca-file", "FILE", "certificates (PEM) instead of the system's",     \
	  .offset = (base) + offsetof(struct agent_sink, ca_file), .live = true },                 \
	{ OPT_FILE, 0, prefix "cert-file", "FILE", "client certificate (PEM), with key-file",      \
	  .offset = (base) + offsetof(struct agent_sink, cert_file), .live = true },               \
	{ OPT_FILE, 0, prefix "key-file", "FILE", "its private key (PEM)",                         \
	  .offset = (base) + offsetof(struct agent_sink, key_file), .live = true },                \
	{ OPT_FLAG, 0, prefix "insecure", NULL, "don't verify the server's certificate",           \
	  .offset = (base) + offsetof(struct agent_sink, insecure), .live = true },                \
	{ OPT_SECONDS, 0, prefix "timeout", "SECONDS", "of one request",                           \
	  .offset = (base) + offsetof(struct agent_sink, timeout_ns), .min = SECOND / 10,          \
	  .max = 600 * SECOND, .def = (timeout), .live = true }

static const struct option_row sink_rows[] = {
	{ OPT_STRING, 0, "url", "URL", "address of a server or directory",
	  .offset = offsetof(struct agent_sink, url), .check = check_push, .mask = mask_url },
	SINK_ROWS("", 0, NULL),
	{ .type = OPT_END },
};

#define RULE_ROW(member)                                                                           \
	{ OPT_STRING, 0, #member, "GLOB", NULL, offsetof(struct agent_rule, member) }

static const struct option_row rule_rows[] = {
	RULE_ROW(container),
	RULE_ROW(pod),
	RULE_ROW(namespace),
	RULE_ROW(unit),
	RULE_ROW(exe),
	RULE_ROW(comm),
	{ OPT_STRING, 0, "uid", "UID", NULL, offsetof(struct agent_rule, uid), .check = check_uid },
	{ .type = OPT_END },
};

const struct option_row agent_rows[] = {
	{ OPT_FILE, 0, "config", "FILE", "YAML file with any of these options",
	  .offset = offsetof(struct agent_config, file), .no_key = true },
	{ OPT_FLAG, 0, "check-config", NULL, "print the configuration, secrets masked, and exit",
	  .offset = offsetof(struct agent_config, check), .no_key = true },

	{ OPT_U32, 'F', "freq", "HZ", "samples per second and CPU", OPT(freq), .min = 1,
	  .max = 1000, .def = "19", .live = true },
	{ OPT_SECONDS, 0, "window", "SECONDS", "length of one profile", OPT(window_ns),
	  .min = SECOND, .max = 600 * SECOND, .def = "15s" },
	{ OPT_STRING, 'e', "event", "EVENT", "what to sample by", OPT(event), .def = "cpu-clock",
	  .check = check_event },
	{ OPT_FLAG, 0, "unsafe-kernel", NULL,
	  "run on a kernel that sampling can freeze (5.19 to 6.1.35, 6.2, 6.3 to 6.3.9)",
	  OPT(unsafe_kernel) },
	{ OPT_STRUCTS, 0, "targets-include", "NAME=GLOB,...", "profile only what matches "
	  "(repeatable), see below", OPT(include), .rows = rule_rows,
	  .size = sizeof(struct agent_rule), .pairs = true, .live = true },
	{ OPT_STRUCTS, 0, "targets-exclude", "NAME=GLOB,...", "profile nothing that matches "
	  "(repeatable)", OPT(exclude), .rows = rule_rows, .size = sizeof(struct agent_rule),
	  .pairs = true, .live = true },
	{ OPT_FLAG, 0, "targets-opt-in", NULL, "profile only pods whose annotations ask for it",
	  OPT(opt_in), .live = true },

	{ OPT_STRING, 0, "node-name", "NAME", "label node; by default the host's name",
	  OPT(node_name) },
	{ OPT_LIST, 0, "label", "NAME=VALUE", "label of every series (repeatable)", OPT(labels),
	  .key = "labels", .joint = "=", .check = check_label, .live = true },
	{ OPT_CHOICE, 0, "kubernetes-mode", "MODE",
	  "where pods are asked for; auto: the API server, if this is a pod",
	  OPT(kubernetes), .choices = kubernetes_names, .def = "auto" },
	{ OPT_STRING, 0, "kubernetes-api-url", "URL", "by default as a pod's environment says",
	  OPT(api_url), .check = check_url },
	{ OPT_FILE, 0, "kubernetes-token-file", "FILE", "by default the service account's",
	  OPT(api_token_file) },
	{ OPT_FILE, 0, "kubernetes-ca-file", "FILE", "by default the service account's",
	  OPT(api_ca_file) },
	{ OPT_STRING, 0, "kubernetes-kubelet-url", "URL", "by default https://NODE:10250",
	  OPT(kubelet_url), .check = check_url },
	{ OPT_FLAG, 0, "kubernetes-insecure", NULL, "don't verify its certificate (kubelet's is "
	  "often its own)", OPT(kubernetes_insecure) },
	{ OPT_LIST, 0, "kubernetes-pod-labels", "NAME", "label of pods that becomes one of "
	  "series (repeatable)", OPT(pod_labels) },
	{ OPT_LIST, 0, "kubernetes-pod-annotations", "NAME", "the same for an annotation",
	  OPT(pod_annotations) },

	{ OPT_STRUCTS, 0, "push", "URL", "deliver to a server or directory (repeatable)", OPT(push),
	  .rows = sink_rows, .size = sizeof(struct agent_sink), .live = true },
	SINK_ROWS("push-", offsetof(struct agent_config, o.push_defaults), "30s"),
	{ OPT_U32, 0, "push-concurrency", "N", "requests at a time, for each --push",
	  OPT(push_concurrency), .min = 1, .max = DELIVERY_CONCURRENCY_MAX, .def = "4" },
	{ OPT_STRING, 0, "spool-dir", "DIR", "keep here what can't be delivered yet; otherwise "
	  "in memory", OPT(spool_dir) },
	{ OPT_SIZE, 0, "spool-bytes", "BYTES", "of it at most, for each --push",
	  OPT(spool_bytes), .min = 1 << 20, .max = 1ULL << 40, .def = "256M" },
	{ OPT_SECONDS, 0, "spool-age", "SECONDS", "how long it is kept; Pyroscope takes one hour",
	  OPT(spool_age_ns), .min = SECOND, .max = 720 * 3600 * SECOND, .def = "1h" },
	{ OPT_SIZE, 0, "queue-bytes", "BYTES", "memory for what waits, for each --push",
	  OPT(queue_bytes), .min = 256 << 10, .max = 1ULL << 30, .def = "16M" },
	{ OPT_SECONDS, 0, "grace", "SECONDS", "for the last deliveries after SIGTERM",
	  OPT(grace_ns), .max = 600 * SECOND, .def = "10s" },

	{ OPT_STRING, 0, "listen", "ADDRESS:PORT", "HTTP side; \"none\": no such thing",
	  OPT(listen), .def = "127.0.0.1:9425", .check = check_listen },
	{ OPT_FILE, 0, "listen-token-file", "FILE", "holds the token that callers send as "
	  "Authorization: Bearer; needed beyond loopback", OPT(listen_token_file) },
	{ OPT_U32, 0, "listen-max-callers", "N", "profiles asked for at a time", OPT(max_callers),
	  .min = 1, .max = 64, .def = "4" },
	{ OPT_SECONDS, 0, "listen-max-time", "SECONDS", "length of such a profile",
	  OPT(max_profile_ns), .min = SECOND, .max = 3600 * SECOND, .def = "5m" },
	{ OPT_U32, 0, "listen-max-freq", "HZ", "frequency of such a profile", OPT(max_hz), .min = 1,
	  .max = 1000, .def = "499" },
	{ OPT_U32, 0, "listen-connections", "N", "connections at a time", OPT(max_connections),
	  .min = 8, .max = 1024, .def = "64" },

	{ OPT_CHOICE, 0, "demangle", "MODE", "names of C++, Rust, D, OCaml, Go", OPT(demangle), .def = "simple",
	  .choices = demangle_names, .key = "symbols-demangle" },
	{ OPT_FLAG, 0, "lines", NULL, "source lines and inlined calls, from debug information",
	  OPT(lines), .key = "symbols-lines" },
	{ OPT_FLAG, 0, "inlines", NULL, "of lines: inlined calls as frames of their own", OPT(inlines),
	  .def = "yes", .key = "symbols-inlines" },
	{ OPT_FLAG, 0, "java-perfmap", NULL, "ask Java machines to list their code (HotSpot, JDK 17 and later)",
	  OPT(java_perfmap), .key = "symbols-java-perfmap" },
	{ OPT_SIZE, 0, "jit-bytes", "BYTES", "names and unwind rules of the code that runtimes list, at most",
	  OPT(jit_bytes), .min = 1 << 20, .max = 1ULL << 30, .def = "16M", .key = "symbols-jit-bytes" },
	{ OPT_U32, 0, "jit-processes", "N", "processes with such code that are followed", OPT(jit_processes),
	  .min = 1, .max = PROCESSES_MAX, .def = "256", .key = "symbols-jit-processes" },
	{ OPT_SIZE, 0, "symbol-bytes", "BYTES", "memory for symbol tables and names at most",
	  OPT(symbol_bytes), .min = 1 << 20, .max = 64ULL << 30, .def = "8M", .key = "symbols-bytes" },
	{ OPT_SIZE, 0, "copy-bytes", "BYTES", "copies of files on file systems that somebody serves (FUSE, "
	  "NFS), at most; 0: not read", OPT(copy_bytes), .max = 4ULL << 30, .def = "32M",
	  .key = "symbols-copy-bytes" },
	{ OPT_SIZE, 0, "lines-bytes", "BYTES", "memory for debug information at most",
	  OPT(lines_bytes), .min = 1 << 20, .max = 64ULL << 30, .def = "32M",
	  .key = "symbols-lines-bytes" },
	{ OPT_SECONDS, 0, "lines-time", "SECONDS", "time for debug information at most, of a window; a "
	  "quarter of it for one file", OPT(lines_ns), .min = SECOND / 100, .max = 3600 * SECOND,
	  .def = "1", .key = "symbols-lines-time" },

	{ OPT_FILE, 0, "vmlinux", "FILE", "of lines: the running kernel's, with debug information",
	  OPT(vmlinux), .key = "symbols-vmlinux" },
	{ OPT_FLAG, 0, "debuginfod", NULL, "fetch missing debug files from the servers of DEBUGINFOD_URLS; "
	  "sends them build ids", OPT(debuginfod), .key = "symbols-debuginfod" },
	{ OPT_SECONDS, 0, "debuginfod-time", "SECONDS", "of fetching one file at most", OPT(debuginfod_ns),
	  .min = SECOND, .max = 3600 * SECOND, .def = "60", .key = "symbols-debuginfod-time" },
	{ OPT_SIZE, 0, "debuginfod-bytes", "BYTES", "of one file at most", OPT(debuginfod_bytes),
	  .min = 1 << 20, .max = 64ULL << 30, .def = "512M", .key = "symbols-debuginfod-bytes" },
	{ OPT_SIZE, 0, "debuginfod-cache-bytes", "BYTES", "of fetched files on disk "
	  "(DEBUGINFOD_CACHE_PATH) at most", OPT(debuginfod_cache_bytes), .min = 1 << 20,
	  .max = 1ULL << 44, .def = "1G", .key = "symbols-debuginfod-cache-bytes" },
	{ OPT_U32, 0, "debuginfod-queue", "N", "files waiting to be fetched at most",
	  OPT(debuginfod_queue), .min = 1, .max = 65536, .def = "256",
	  .key = "symbols-debuginfod-queue" },

	{ OPT_U32, 0, "cpu-budget", "MILLICPUS", "CPU of wick itself, in thousandths of one; above "
	  "it the frequency falls; by default 10 for each CPU", OPT(cpu_budget), .min = 1,
	  .max = 1000000, .live = true },
	{ OPT_SIZE, 0, "memory-budget", "BYTES", "memory of wick itself, maps included; above it "
	  "caches shrink and the frequency falls", OPT(memory_budget), .min = 32 << 20,
	  .max = 1ULL << 40, .def = "192M", .live = true },
	{ OPT_SIZE, 0, "workload-bytes", "BYTES", "memory for what is known of containers and "
	  "processes", OPT(workload_bytes), .min = 1 << 20, .max = 1ULL << 30, .def = "16M" },
	{ OPT_SIZE, 0, "unwind-bytes", "BYTES", "memory of unwind tables at most; by default 1/512 "
	  "of the machine's, 16M to 64M", OPT(unwind_bytes), .min = 1 << 20, .max = 4ULL << 30 },
	{ OPT_SIZE, 0, "copied-bytes", "BYTES", "memory of copied stacks that wait for unwind tables at most; "
	  "by default 1/1024 of the machine's, 4M to 32M", OPT(copied_bytes), .min = 1 << 20,
	  .max = 1ULL << 30 },
	{ OPT_SIZE, 0, "window-bytes", "BYTES", "stack window of a CPU, two of each; by default "
	  "chosen by the frequency", OPT(window_bytes), .min = SAMPLER_WINDOW_MIN,
	  .max = SAMPLER_WINDOW_MAX },
	{ OPT_U32, 0, "max-files", "N", "sampled files known at a time", OPT(max_files), .min = 16,
	  .max = SAMPLER_FILES_MAX, .def = "4096" },
	{ OPT_U32, 0, "max-series", "N", "label sets in one window; more become one",
	  OPT(max_series), .min = 16, .max = 100000, .def = "2000" },
	{ OPT_CHOICE, 0, "log-level", "LEVEL", "messages on standard error", OPT(log_level),
	  .choices = log_names, .def = "info", .live = true },
	{ .type = OPT_END },
};

/* ---- what options say together ---- */

/* Gives a sink what it doesn't say itself. */
static int inherit(const struct agent_sink *from, struct agent_sink *to, struct err *e)
{
	for (size_t i = 1; sink_rows[i].type != OPT_END; i++) {
		cleanup(buf_cleanup) struct buf text = BUF_INIT(CONFIG_MAX_BYTES);
		const struct option_row *row = &sink_rows[i];
		int r = 0;

		if (to->given & 1U << i)
			continue;
		for (size_t h = 0; row->type == OPT_LIST && h < from->headers.n && !r; h++)
			r = str_list_add(&to->headers, from->headers.v[h]);
		option_text(row, from, &text);
		if (!r && text.len)
			r = option_set(row, to, text.data, e);
		if (r)
			return r;
	}
	return 0;
}

static int check_sink(const struct agent_sink *s, struct err *e)
{
	const char *missing = NULL;
	char name[200];

	if (!s->user != !s->password_file)
		missing = "user and password_file go together";
	else if (!s->cert_file != !s->key_file)
		missing = "cert_file and key_file go together";
	else if (s->user && s->bearer_token_file)
		missing = "user and bearer_token_file exclude each other";
	if (!missing)
		return 0;
	sink_redact(s->url, name, sizeof(name));
	return err_set(e, -EINVAL, "push %s: %s", name, missing);
}

static enum option_source source_of(const struct agent_config *c, const char *name)
{
	return c->sources[option_by_name(agent_rows, name, strlen(name)) - agent_rows];
}

static int finish_push(struct agent_config *c, struct err *e)
{
	struct agent_sinks *push = &c->o.push;
	const char *user;
	size_t n;
	int r = 0;

	for (size_t i = 0; i < push->n && !r; i++) {
		r = inherit(&c->o.push_defaults, &push->v[i], e);
		if (!r)
			r = check_sink(&push->v[i], e);
		n = userinfo(push->v[i].url, &user);
		if (!r && n && memchr(user, ':', n) && source_of(c, "push") == SOURCE_FLAG)
			r = err_set(e, -EINVAL, "--push: everybody can read a password on the "
						"command line; put the address into the file or "
						"WICK_PUSH, or use --push-password-file");
	}
	return r;
}

static int finish(struct agent_config *c, struct err *e)
{
	struct agent_options *o = &c->o;
	struct listen_address a;
	int r = finish_push(c, e);

	if (!r && !strcmp(o->listen, LISTEN_NONE)) {
		free(take(o->listen));
	} else if (!r) {
		r = listen_parse(o->listen, &a, e);
		if (!r && !listen_is_loopback(&a) && !o->listen_token_file)
			r = err_set(e, -EINVAL,
				    "listen: %.100s can be reached from other hosts: that takes a "
				    "token (listen-token-file)", o->listen);
	}
	if (!r && o->vmlinux && !o->lines)
		r = err_set(e, -EINVAL, "vmlinux: it has lines, and goes with --lines (symbols: lines)");
	return !r && o->debuginfod ? debuginfod_check_urls(e) : r;
}

/* ---- sources ---- */

static int parse(const struct command *cmd, int argc, char *const *argv, char *const *variables,
		 const char *file, struct agent_config *c, struct err *e)
{
	struct option_values v = { .rows = agent_rows, .opts = c, .sources = c->sources };
	int r = options_defaults(&v, e);

	if (!r && file)
		r = config_file(&v, file, e);
	if (!r)
		r = config_environment(&v, variables, &c->unknown, e);
	if (!r)
		r = options_flags(cmd, &v, argc, argv, e);
	return r ? r : finish(c, e);
}

/* The file is named by the sources that go over it, so these are read once before. */
static int find_file(const struct command *cmd, int argc, char *const *argv, char *const *variables,
		     char **ret, struct err *e)
{
	struct agent_config c = { .unknown = BUF_INIT(0) };
	struct option_values v = { .rows = agent_rows, .opts = &c };
	cleanup(freep_cleanup) uint8_t *sources = calloc(options_count(agent_rows), 1);
	int r;

	if (!sources)
		return err_set(e, -ENOMEM, "out of memory");
	v.sources = sources;
	r = config_environment(&v, variables, NULL, e);
	if (!r)
		r = options_flags(cmd, &v, argc, argv, e);
	if (!r)
		*ret = take(c.file);
	options_free(agent_rows, &c);
	return r;
}

int agent_config_read(const struct command *cmd, int argc, char *const *argv,
		      char *const *variables, struct agent_config *ret, struct err *e)
{
	cleanup(freep_cleanup) char *file = NULL;
	int r;

	*ret = (struct agent_config){ .unknown = BUF_INIT(64 << 10) };
	ret->sources = calloc(options_count(agent_rows), 1);
	if (!ret->sources)
		return err_set(e, -ENOMEM, "out of memory");
	r = find_file(cmd, argc, argv, variables, &file, e);
	return r ? r : parse(cmd, argc, argv, variables, file, ret, e);
}

void agent_config_free(struct agent_config *c)
{
	options_free(agent_rows, c);
	buf_free(&c->unknown);
	free(c->sources);
	c->sources = NULL;
}

void agent_config_print(const struct agent_config *c, struct buf *ret)
{
	/* config_print only reads */
	struct option_values v = { .rows = agent_rows, .opts = (void *)c, .sources = c->sources };

	config_print(&v, ret);
}

void agent_config_changed(const struct agent_config *a, const struct agent_config *b,
			  struct buf *ret)
{
	for (const struct option_row *row = agent_rows; row->type != OPT_END; row++)
		if (!row->live && !row->no_key && !config_same(row, a, b))
			buf_printf(ret, "%s%s", ret->len ? ", " : "", row->name);
}
