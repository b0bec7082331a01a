/* main.c - chooses the command. What is true for all of them is here too: standard streams that
 * exist, an end without noise when nobody reads any more, a late error of standard output. */
#include "cli/commands.h"

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>

static const struct command *const commands[] = {
	&cmd_record_command, &cmd_report_command, &cmd_merge_command,
	&cmd_agent_command,  &cmd_check_command,  &cmd_version_command,
};

static const struct command *find_command(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(name, commands[i]->name))
			return commands[i];
	return NULL;
}

static void print_help(FILE *out)
{
	size_t i;

	fprintf(out,
		"Usage: wick COMMAND [OPTION...] [OPERAND...]\n"
		"Where does the CPU time go, in every process, down to the function?\n"
		"\nCommands:\n");
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(out, "  %-10s %s\n", commands[i]->name, commands[i]->help);
	fprintf(out, "\n`wick COMMAND --help` lists the options of one.\n"
		     "Begin with `sudo wick record`; if it doesn't work, `wick check` says why.\n");
}

static int unknown_command(const char *name)
{
	const char *names[ARRAY_SIZE(commands)], *near;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(commands); i++)
		names[i] = commands[i]->name;
	near = nearest_word(name, names, ARRAY_SIZE(names), sizeof(*names));
	fprintf(stderr, "wick: unknown %s '%.100s'%s%s%s\nTry `wick --help`.\n",
		name[0] == '-' ? "option" : "command", name, near ? " (did you mean " : "",
		near ? near : "", near ? "?)" : "");
	return EXIT_USAGE;
}

static int help(const char *name)
{
	const struct command *cmd;

	if (!name) {
		print_help(stdout);
		return EXIT_OK;
	}
	cmd = find_command(name);
	if (!cmd)
		return unknown_command(name);
	options_help(cmd, stdout);
	return EXIT_OK;
}

static int dispatch(int argc, char **argv)
{
	const struct command *cmd;
	char *version[] = { (char[]){ "version" }, NULL };

	if (argc < 2) {
		print_help(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
		return help(argv[2]); /* argv[argc] is NULL */
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))
		return cmd_version_command.run(1, version);
	cmd = find_command(argv[1]);
	return cmd ? cmd->run(argc - 1, argv + 1) : unknown_command(argv[1]);
}

/* A process may be started with some of 0, 1 and 2 closed. The next file opened would get that
 * number, and a message meant for standard error would end up in a profile or a perf event. */
static void open_standard_streams(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

static void ignore(int sig)
{
	(void)sig;
}

/* `wick record | head` must not die of its own summary before the profile is on the disk. A
 * handler rather than SIG_IGN: exec resets it, so a recorded command has the usual behaviour; one
 * that was already ignored stays so for it. */
static void survive_closed_pipes(void)
{
	struct sigaction sa;

	if (sigaction(SIGPIPE, NULL, &sa) || sa.sa_handler != SIG_DFL)
		return;
	sa = (struct sigaction){ .sa_handler = ignore, .sa_flags = SA_RESTART };
	sigaction(SIGPIPE, &sa, NULL);
}

/* A full disk behind standard output is a failure; a reader that has gone had what it wanted. */
static int close_stdout(int status)
{
	struct pollfd p = { .fd = STDOUT_FILENO };
	bool failed = ferror(stdout);

	if (!fflush(stdout) && !failed)
		return status;
	if (poll(&p, 1, 0) == 1 && p.revents & (POLLERR | POLLHUP))
		return status;
	fprintf(stderr, "wick: standard output can't be written\n");
	return status ? status : EXIT_FAIL;
}

int main(int argc, char **argv)
{
	/* Buffers that are freed go back to the system, instead of raising the threshold from which
	 * they would: symbol tables are large and short-lived (7 to 10 MiB less at the peak). */
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
	/* Threads come and go with requests: an arena for each would keep what they have freed. */
	mallopt(M_ARENA_MAX, 2);
	open_standard_streams();
	survive_closed_pipes();
	return close_stdout(dispatch(argc, argv));
}
