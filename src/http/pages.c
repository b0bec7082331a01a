/* pages.c - see pages.h. */
#include "http/pages.h"

void pages_root(struct buf *ret)
{
	buf_str(ret, "wick agent\n\n"
		     "/debug/pprof/profile  a CPU profile of any process of this node\n"
		     "/debug/pprof/         how to ask for it\n"
		     "/metrics              of the agent itself\n"
		     "/readyz               whether profiles are delivered\n"
		     "/healthz              whether the agent lives\n");
}

void pages_index(const struct query_limits *limits, struct buf *ret)
{
	static const char *const rows[][2] = {
		{ "hz", "samples per second and CPU; by default what the agent samples at" },
		{ "pid", "of one process" },
		{ "comm, exe", "name of a thread, path of an executable" },
		{ "container, pod, namespace", "as their labels have them" },
		{ "unit", "of systemd" },
		{ "event", "what to sample by, as for wick record" },
	};

	buf_str(ret, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		     "<title>/debug/pprof/</title>\n</head>\n<body>\n<h1>/debug/pprof/</h1>\n"
		     "<p>Profiles of this node, by wick:</p>\n<ul>\n"
		     "<li><a href=\"profile?seconds=10\">profile</a>: CPU profile of every "
		     "process and the kernel, for the time and target in its parameters</li>\n"
		     "</ul>\n<p>Parameters:</p>\n<table>\n");
	buf_printf(ret, "<tr><td>seconds</td><td>0.1 to %g; %d if not given</td></tr>\n",
		   (double)limits->max_duration_ns / 1e9, QUERY_SECONDS);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		buf_printf(ret, "<tr><td>%s</td><td>%s</td></tr>\n", rows[i][0], rows[i][1]);
	buf_str(ret, "</table>\n<p>For example: "
		     "<code>go tool pprof 'http://ADDRESS/debug/pprof/profile"
		     "?seconds=10&amp;container=api'</code></p>\n</body>\n</html>\n");
}

void pages_missing(const char *path, struct buf *ret)
{
	static const char *const of_go[] = { "allocs", "block", "cmdline", "goroutine", "heap",
					     "mutex", "symbol", "threadcreate", "trace" };
	const char *name = path + strlen("/debug/pprof/");

	if (!strncmp(path, "/debug/pprof/", strlen("/debug/pprof/")))
		for (size_t i = 0; i < ARRAY_SIZE(of_go); i++)
			if (!strcmp(name, of_go[i])) {
				buf_printf(ret, "There is no %s here: wick sees processes from "
						"outside. It has /debug/pprof/profile.\n", name);
				return;
			}
	buf_str(ret, "There is nothing at this address. / lists what there is.\n");
}
