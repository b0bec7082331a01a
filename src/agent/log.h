/* log.h - what the agent says of itself: one line an event, on stderr, for a journal to stamp.
 *
 *	log_level(AGENT_LOG_INFO);
 *	log_warning("%s: refused: %s", sink, message);
 *
 * The agent alone logs: it is who gives up, or goes on without. Lines of what persists are the
 * caller's to write once, at the change. Control characters of foreign texts become '?', so that nobody
 * can forge a line. Any thread; a line is one write.
 */
#ifndef WICK_AGENT_LOG_H
#define WICK_AGENT_LOG_H

#include "agent/options.h"
#include "base/base.h"

void log_level(enum agent_log_level level);	/* AGENT_LOG_INFO until it is called */
void printf_like(2, 3) log_line(enum agent_log_level level, const char *fmt, ...);

#define log_error(...)	 log_line(AGENT_LOG_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(AGENT_LOG_WARNING, __VA_ARGS__)
#define log_info(...)	 log_line(AGENT_LOG_INFO, __VA_ARGS__)
#define log_debug(...)	 log_line(AGENT_LOG_DEBUG, __VA_ARGS__)

#endif
