/* commands.h - the commands, one in each cmd_NAME.c; main.c lists them in the order of its help. */
#ifndef WICK_COMMANDS_H
#define WICK_COMMANDS_H

#include "cli/options.h"

extern const struct command cmd_record_command;
extern const struct command cmd_report_command;
extern const struct command cmd_merge_command;
extern const struct command cmd_agent_command;
extern const struct command cmd_check_command;
extern const struct command cmd_version_command;

#endif
