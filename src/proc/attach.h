/* attach.h - ask a Java virtual machine for something, by HotSpot's attach protocol, without waiting.
 *
 *	struct attach a;
 *	attach_init(&a, "Compiler.perfmap");
 *	r = attach_step(&a, dir, pid, &info);	// -EINPROGRESS: again in a while
 *	if (!r) ... it has written /tmp/perf-PID.map
 *	attach_done(&a);
 *
 * This is the only place where wick makes a profiled process do anything, so it is for users who ask
 * for it. The machine listens on a socket in /tmp beneath its root. One that nobody has attached to
 * yet opens it when it finds a file of a certain name there and gets SIGQUIT, which is why that is
 * sent only to a process that has libjvm.so mapped and a handler for it: any other would die or print
 * its threads. The file is removed afterwards. Signals go through a pidfd, files are opened as pid.h
 * does. It has to know us: the machine answers root and its own user only, and a root that its user
 * namespace doesn't have is neither.
 *
 * (OpenJDK: attachListener_posix.cpp; VirtualMachineImpl.java of jdk.attach)
 */
#ifndef WICK_PROC_ATTACH_H
#define WICK_PROC_ATTACH_H

#include "proc/pid.h"

enum {
	ATTACH_ANSWER_MAX = 4096,	/* bytes kept of an answer; the rest is read and dropped */
};
#define ATTACH_TIMEOUT_NS 5000000000ULL	/* for each of the two: to wake up, to answer */

enum attach_state { ATTACH_START, ATTACH_WAKING, ATTACH_ANSWERING, ATTACH_OVER };

struct attach {
	const char *command;	/* of jcmd; borrowed */
	enum attach_state state;
	int error;		/* when it is over */
	int socket;
	int tmp;		/* the machine's /tmp, while our file is in it */
	bool ours;		/* the machine is of our user namespace */
	uint64_t deadline;	/* of the state, CLOCK_MONOTONIC ns */
	char answer[ATTACH_ANSWER_MAX];
	size_t len;
};

void attach_init(struct attach *a, const char *command);
/* dir, info: of pid_open(), pid_read_info() of this process, alive now. 0: done, as answered.
 * -EINPROGRESS: call again. For good: -ENOTSUP: no such machine, or it doesn't want to be attached to;
 * -ETIMEDOUT; -EPROTO: it answered otherwise; -EREMOTEIO: it refused the command, attach_text() says
 * why; -errno of the system calls. */
int attach_step(struct attach *a, int dir, uint32_t pid, const struct pid_info *info);
const char *attach_text(const struct attach *a);	/* of its answer, "" */
void attach_done(struct attach *a);

/* Whether the text of /proc/PID/maps has a Java virtual machine in it. */
bool attach_is_jvm(const char *maps, size_t len);

#endif
