/* cmd_version.c - `wick version`: the first line is for scripts, the rest for a bug report. */
#include "cli/commands.h"

#include <bpf/libbpf.h>
#include <sys/utsname.h>

static const struct option_row rows[] = { { .type = OPT_END } };

static int run(int argc, char **argv);

const struct command cmd_version_command = {
	.name = "version",
	.operands = "",
	.help = "say which wick this is",
	.rows = rows,
	.run = run,
};

static int run(int argc, char **argv)
{
	struct operands none;
	struct err e = { "" };
	struct utsname u;
	int r = options_parse(&cmd_version_command, NULL, argc, argv, &none, &e);

	if (r < 0)
		return usage_error(&cmd_version_command, &e);
	if (r)
		return EXIT_OK;
	printf("wick %s\nlibbpf %s\n", WICK_VERSION, libbpf_version_string());
	if (!uname(&u))
		printf("%s %s %s\n", u.sysname, u.release, u.machine);
	return EXIT_OK;
}
