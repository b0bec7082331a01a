/* options.h - what `wick agent` is asked to do: the configuration, checked, without its texts.
 *
 * A plain struct. src/cli/agent_options.c fills it from flags, environment, file and defaults,
 * which are all described there, once, with their ranges; whoever uses it may rely on these.
 * src/cli owns every string and array in it; agent_run() borrows them. A NULL string and a 0 that
 * the comment doesn't explain mean "not asked for".
 *
 * SIGHUP reads all sources again and makes a second struct. What is marked [live] is taken from it
 * while the agent runs; the rest stays as it was (see struct agent_reread).
 */
#ifndef WICK_AGENT_OPTIONS_H
#define WICK_AGENT_OPTIONS_H

#include "base/list.h"

/* One server or directory to deliver to. Files are readable when the options are made; they may
 * change later and must be read again then. */
struct agent_sink {
	uint32_t given;		/* a bit for each option that it names itself: src/cli's */
	char *url;		/* scheme+transport://..., never NULL */
	char *tenant;		/* X-Scope-OrgID */
	char *user;		/* basic authentication, with the password in the file */
	char *password_file;
	char *bearer_token_file;
	struct str_list headers; /* "Name: value" */
	char *ca_file;		/* PEM; NULL: the system's authorities */
	char *cert_file, *key_file; /* client certificate, PEM; both or none */
	bool insecure;		/* don't verify the server's certificate */
	uint64_t timeout_ns;	/* of one request */
};

struct agent_sinks {
	struct agent_sink *v;
	size_t n, cap;
};

/* Matches what fits every pattern that isn't NULL; at least one isn't. Patterns are globs as
 * fnmatch(3) has them, without flags; uid is a decimal number as text. */
struct agent_rule {
	uint32_t given;		/* as above */
	char *container, *pod, *namespace, *unit, *exe, *comm, *uid;
};

struct agent_rules {
	struct agent_rule *v;
	size_t n, cap;
};

enum agent_kubernetes {
	AGENT_KUBERNETES_OFF,
	AGENT_KUBERNETES_API,
	AGENT_KUBERNETES_KUBELET,
	AGENT_KUBERNETES_AUTO,	/* the API server for a pod with a service account, else off */
};

enum agent_log_level {
	AGENT_LOG_ERROR,
	AGENT_LOG_WARNING,
	AGENT_LOG_INFO,
	AGENT_LOG_DEBUG,
};

struct agent_options {
	/* what is sampled */
	uint32_t freq;			/* 1..1000 Hz, also at its highest [live] */
	uint64_t window_ns;		/* 1 s..10 m, windows start at multiples of it */
	char *event;			/* known to event_by_name(); never NULL */
	bool unsafe_kernel;
	struct agent_rules include;	/* none: everything [live] */
	struct agent_rules exclude;	/* wins over include [live] */
	bool opt_in;			/* only pods whose annotations ask for it [live] */

	/* whose it is */
	char *node_name;		/* NULL: the host's name */
	struct str_list labels;		/* "name=value", on every series [live] */
	uint32_t kubernetes;		/* enum agent_kubernetes */
	char *api_url;			/* NULL: as the environment of a pod says */
	char *api_token_file, *api_ca_file; /* NULL: the service account's */
	char *kubelet_url;		/* NULL: https://NODE:10250 */
	bool kubernetes_insecure;	/* don't verify its certificate */
	struct str_list pod_labels, pod_annotations; /* names that become series labels */

	/* where it goes */
	struct agent_sinks push;	/* [live] */
	uint32_t push_concurrency;	/* requests at a time, to each */
	char *spool_dir;		/* NULL: memory only */
	uint64_t spool_bytes, spool_age_ns;
	uint64_t queue_bytes;		/* of each sink, in memory */
	uint64_t grace_ns;		/* for the last deliveries after SIGTERM */

	/* the HTTP side */
	char *listen;			/* ADDRESS:PORT; NULL: none */
	char *listen_token_file;	/* never NULL when listen is beyond loopback */
	uint32_t max_callers;		/* profiles that are being made at a time */
	uint32_t max_hz;		/* of one of them */
	uint64_t max_profile_ns;	/* length of one of them */
	uint32_t max_connections;

	/* names */
	bool lines, inlines, java_perfmap;
	uint64_t jit_bytes;		/* of the lists that runtimes make of their code */
	uint32_t jit_processes;
	uint64_t symbol_bytes, lines_bytes, lines_ns;
	uint64_t copy_bytes;		/* of files that aren't read where they lie */
	char *vmlinux;			/* of the running kernel, for lines; NULL */
	bool debuginfod;		/* ask the servers of DEBUGINFOD_URLS for debug files */
	uint64_t debuginfod_ns, debuginfod_bytes; /* of one file */
	uint64_t debuginfod_cache_bytes;
	uint32_t debuginfod_queue;
	uint32_t demangle;		/* enum demangle_mode */

	/* limits */
	uint32_t cpu_budget;		/* thousandths of a CPU; 0: 10 for each CPU [live] */
	uint64_t memory_budget;		/* bytes, resident and BPF maps [live] */
	uint64_t unwind_bytes;		/* 0: by the machine's memory */
	uint64_t copied_bytes;		/* likewise */
	uint64_t window_bytes;		/* 0: by the frequency */
	uint64_t workload_bytes;	/* what is known of containers and processes */
	uint32_t max_files;
	uint32_t max_series;		/* label sets in one window */

	uint32_t log_level;		/* enum agent_log_level [live] */

	/* What a sink is given unless it says otherwise; already in push.v. */
	struct agent_sink push_defaults;
};

/* How the agent reads its configuration again at SIGHUP. read() returns 0 and the new options,
 * which stay valid until the next call but one, so that old and new can be compared; or -EINVAL
 * with a sentence (a file with a mistake changes nothing), or -ENOMEM. Only what is [live] may be
 * taken from them. *ret_ignored, unless ret_ignored is NULL, names what differs from the start's
 * and isn't: "listen, window", or "". Borrowed until the next call. */
struct agent_reread {
	void *ctx;
	int (*read)(void *ctx, const struct agent_options **ret, const char **ret_ignored,
		    struct err *e);
};

#endif
