/* cmd_merge.c - `wick merge`: add profiles up, or convert one. */
#include "cli/commands.h"
#include "profile/format.h"
#include "profile/merge.h"
#include "profile/output.h"
#include "profile/pprof.h"

struct options {
	char *output;
	uint32_t format;
};

static const struct option_row rows[] = {
	{ OPT_STRING, 'o', "output", "FILE", "where to write the sum; \"-\" is standard output",
	  .offset = offsetof(struct options, output) },
	{ OPT_CHOICE, 0, "format", "FORMAT", "instead of what FILE's ending says",
	  .offset = offsetof(struct options, format), .def = "auto", .choices = format_names },
	{ .type = OPT_END }
};

static int run(int argc, char **argv);

const struct command cmd_merge_command = {
	.name = "merge",
	.operands = "FILE... -o FILE",
	.help = "add profiles up",
	.notes = "The inputs are pprof profiles, gzipped or not, of any tool, with the same\n"
		 "sample types; \"-\" is standard input. One input is converted.\n"
		 "Endings: .pb.gz .pb .folded .speedscope.json .txt; \"-\" is pb.gz.\n",
	.rows = rows,
	.run = run,
};

static int merge(const struct options *o, enum format format, const struct operands *files)
{
	cleanup(profile_cleanup) struct profile *p = NULL;
	cleanup(buf_cleanup) struct buf out = BUF_INIT(PPROF_MAX_BYTES);
	struct err e = { "" };
	int r = merge_files((const char *const *)files->v, (size_t)files->n, &p, &e);

	if (!r)
		r = format_write(p, format, &out);
	if (!r)
		r = output_write(o->output, out.data, out.len, &e);
	if (r && !e.msg[0])
		err_set(&e, r, "%s", strerror(-r));
	return r ? run_error(&cmd_merge_command, &e) : EXIT_OK;
}

static int run(int argc, char **argv)
{
	struct options o = { 0 };
	struct operands files = { 0 };
	struct err e = { "" };
	enum format format = FORMAT_AUTO;
	int status, r = options_parse(&cmd_merge_command, &o, argc, argv, &files, &e);

	if (r == 1) {
		options_free(rows, &o);
		return EXIT_OK;
	}
	if (!r && !files.n)
		r = err_set(&e, -EINVAL, "which FILE?");
	if (!r && !o.output)
		r = err_set(&e, -EINVAL, "where to? Say -o FILE");
	if (!r && o.format != FORMAT_AUTO)
		format = (enum format)o.format;
	else if (!r)
		r = format_from_path(o.output, &format, &e);
	status = r ? usage_error(&cmd_merge_command, &e) : merge(&o, format, &files);
	options_free(rows, &o);
	return status;
}
