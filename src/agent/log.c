/* log.c - see log.h. */
#include "agent/log.h"

#include <stdatomic.h>

static atomic_int shown = AGENT_LOG_INFO;

void log_level(enum agent_log_level level)
{
	atomic_store(&shown, (int)level);
}

void log_line(enum agent_log_level level, const char *fmt, ...)
{
	static const char *const words[] = { "error: ", "warning: ", "", "debug: " };
	char text[1024], line[1100];
	va_list args;
	int n;

	if ((int)level > atomic_load(&shown))
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	n = snprintf(line, sizeof(line), "wick: %s%s\n", words[level], text);
	(void)!write(STDERR_FILENO, line, (size_t)n);
}
