/* cmd_report.c - `wick report`: print profiles as text. */
#include "cli/commands.h"
#include "profile/merge.h"
#include "profile/output.h"
#include "profile/pprof.h"
#include "profile/report.h"

enum { DEFAULT_ROWS = 30 };
static const double DEFAULT_TREE_PERCENT = 0.5;

struct options {
	char *by, *sample_type, *min_percent, *focus, *ignore;
	uint32_t limit;
	bool tree;
};

static const struct option_row rows[] = {
	{ OPT_STRING, 0, "by", "WHAT", "rows: function, module, process, thread or a label's name",
	  .offset = offsetof(struct options, by), .def = "function" },
	{ OPT_FLAG, 0, "tree", NULL, "a call tree instead of a table (of functions or modules)",
	  .offset = offsetof(struct options, tree) },
	{ OPT_STRING, 0, "sample-type", "NAME",
	  "what to count (default: the profile's default, else its last)",
	  .offset = offsetof(struct options, sample_type) },
	{ OPT_U32, 'n', "limit", "N", "rows at most (default: 30 for a table, all for a tree)",
	  .offset = offsetof(struct options, limit), .min = 1, .max = UINT32_MAX },
	{ OPT_STRING, 0, "min-percent", "P",
	  "leave out what is below P % of the total, 0 to 100 (default: 0; 0.5 for a tree)",
	  .offset = offsetof(struct options, min_percent) },
	{ OPT_STRING, 0, "focus", "REGEX", "only samples with a matching function or mapped file",
	  .offset = offsetof(struct options, focus) },
	{ OPT_STRING, 0, "ignore", "REGEX", "no samples with a matching function or mapped file",
	  .offset = offsetof(struct options, ignore) },
	{ .type = OPT_END }
};

static int run(int argc, char **argv);

const struct command cmd_report_command = {
	.name = "report",
	.operands = "FILE...",
	.help = "print a profile as text",
	.notes = "FILE is a pprof profile, gzipped or not, of any tool; \"-\" is standard input.\n"
		 "Several are added up first, as by `wick merge`.\n"
		 "REGEX is a POSIX extended regular expression.\n",
	.rows = rows,
	.run = run,
};

static int get_percent(const struct options *o, double *ret, struct err *e)
{
	char *end;
	double v;

	*ret = o->tree ? DEFAULT_TREE_PERCENT : 0;
	if (!o->min_percent)
		return 0;
	v = strtod(o->min_percent, &end);
	if (end == o->min_percent || *end || !(v >= 0 && v <= 100))
		return err_set(e, -EINVAL, "--min-percent: '%.100s' is not a number from 0 to 100",
			       o->min_percent);
	*ret = v;
	return 0;
}

static int print(const struct options *o, double min_percent, const struct operands *files)
{
	const struct report_options ro = {
		.by = o->by,
		.sample_type = o->sample_type,
		.tree = o->tree,
		.limit = o->limit || o->tree ? o->limit : DEFAULT_ROWS,
		.min_percent = min_percent,
		.focus = o->focus,
		.ignore = o->ignore,
	};
	cleanup(profile_cleanup) struct profile *p = NULL;
	cleanup(buf_cleanup) struct buf out = BUF_INIT(PPROF_MAX_BYTES);
	struct err e = { "" };
	int r = merge_files((const char *const *)files->v, (size_t)files->n, &p, &e);

	if (r)
		return run_error(&cmd_report_command, &e);
	r = report_write(p, &ro, &out, &e);
	if (r == -EINVAL)
		return usage_error(&cmd_report_command, &e);
	if (!r)
		r = output_write("-", out.data, out.len, &e);
	if (r && !e.msg[0])
		err_set(&e, r, "%s", strerror(-r));
	return r ? run_error(&cmd_report_command, &e) : EXIT_OK;
}

static int run(int argc, char **argv)
{
	struct options o = { 0 };
	struct operands files = { 0 };
	struct err e = { "" };
	double min_percent = 0;
	int status, r = options_parse(&cmd_report_command, &o, argc, argv, &files, &e);

	if (r == 1) {
		options_free(rows, &o);
		return EXIT_OK;
	}
	if (!r && !files.n)
		r = err_set(&e, -EINVAL, "which FILE?");
	if (!r)
		r = get_percent(&o, &min_percent, &e);
	status = r ? usage_error(&cmd_report_command, &e) : print(&o, min_percent, &files);
	options_free(rows, &o);
	return status;
}
