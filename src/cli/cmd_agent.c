/* cmd_agent.c - `wick agent`: profile a node continuously and deliver it. */
#include "agent/agent.h"

#include "cli/agent_options.h"
#include "cli/commands.h"
#include "proc/offload.h"
#include "symbol/foreign.h"

extern char **environ;

static int run(int argc, char **argv);

const struct command cmd_agent_command = {
	.name = "agent",
	.operands = "",
	.help = "profile a node continuously and deliver it",
	.notes = "Every option but --config is also a key of the file (--spool-dir is spool_dir, or dir in\n"
		 "the section spool) and a variable (WICK_SPOOL_DIR; elements of lists are separated by\n"
		 "\";\"). A flag goes before a variable, a variable before the file. WICK_CONFIG names the\n"
		 "file too. In the file, an element of push may be a mapping: url and what --push-* are.\n"
		 "SIGHUP reads all of it again; options marked SIGHUP take effect then, others at the\n"
		 "next start. Files with secrets are read again whenever they change. SIGTERM and SIGINT\n"
		 "deliver what is there and end.\n"
		 "Targets: container, pod, namespace, unit, exe, comm = GLOB (* ? [...]), uid = NUMBER;\n"
		 "what stands in one rule must all match, one rule of several is enough.\n"
		 "Push: pyroscope+http://HOST:4040, pyroscope-ingest+http://HOST:4040,\n"
		 "profefe+http://HOST:10100, otlp+http://HOST:4318 (each also +https://),\n"
		 "parca+grpc://HOST:7070, parca+grpcs://HOST, file:///DIR\n"
		 "Events: as for `wick record`.\n",
	.rows = agent_rows,
	.run = run,
};

/* ---- SIGHUP ---- */

/* Two generations beside the first: the agent may use the older one until it has taken over the
 * newer. */
struct rereader {
	int argc;
	char **argv;
	const struct agent_config *first;
	struct agent_config generation[2];
	unsigned int newest;		/* of generation; the next reading replaces the other one */
	struct buf ignored;
};

static int reread(void *ctx, const struct agent_options **ret, const char **ret_ignored,
		  struct err *e)
{
	struct rereader *rr = ctx;
	struct agent_config c;
	int r = agent_config_read(&cmd_agent_command, rr->argc, rr->argv, environ, &c, e);

	if (r) {
		agent_config_free(&c);
		return r;
	}
	rr->newest = !rr->newest;
	agent_config_free(&rr->generation[rr->newest]);
	rr->generation[rr->newest] = c;
	buf_reset(&rr->ignored);
	agent_config_changed(rr->first, &c, &rr->ignored);
	*ret = &rr->generation[rr->newest].o;
	if (ret_ignored)
		*ret_ignored = rr->ignored.data ? rr->ignored.data : "";
	return 0;
}

/* ---- the command ---- */

/* A variable with a slip in its name would otherwise be a wish that nobody hears. */
static void warn_unknown(const struct agent_config *c)
{
	const char *line = c->unknown.data ? c->unknown.data : "";

	for (; *line; line += strcspn(line, "\n") + 1)
		fprintf(stderr, "wick agent: %.*s is no option's variable\n",
			(int)strcspn(line, "\n"), line);
}

static int print_config(const struct agent_config *c, struct err *e)
{
	cleanup(buf_cleanup) struct buf text = BUF_INIT(4 * CONFIG_MAX_BYTES);

	agent_config_print(c, &text);
	if (text.err)
		return err_set(e, text.err, "out of memory");
	fwrite(text.data, 1, text.len, stdout);
	fprintf(stderr, "wick agent: the configuration is valid\n");
	return 0;
}

static int run_agent(int argc, char **argv, const struct agent_config *c, struct err *e)
{
	struct rereader rr = { .argc = argc, .argv = argv, .first = c,
			       .ignored = BUF_INIT(CONFIG_MAX_BYTES) };
	struct agent_reread hook = { .ctx = &rr, .read = reread };
	int r = offload_start(e);

	foreign_limit(c->o.copy_bytes);
	if (!r)
		r = agent_run(&c->o, &hook, e);
	agent_config_free(&rr.generation[0]);
	agent_config_free(&rr.generation[1]);
	buf_free(&rr.ignored);
	return r;
}

static int run(int argc, char **argv)
{
	struct agent_config c;
	struct err e = { "" };
	int r = agent_config_read(&cmd_agent_command, argc, argv, environ, &c, &e);
	int status = EXIT_OK;

	if (r < 0) {
		status = usage_error(&cmd_agent_command, &e);
	} else if (!r) {
		warn_unknown(&c);
		r = c.check ? print_config(&c, &e) : run_agent(argc, argv, &c, &e);
		if (r)
			status = run_error(&cmd_agent_command, &e);
	}
	agent_config_free(&c);
	return status;
}
