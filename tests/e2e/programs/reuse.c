/* reuse SECONDS FIRST SECOND - runs the program FIRST, and when it is gone SECOND under the same
 * process id (clone3 with set_tid: CAP_CHECKPOINT_RESTORE). Prints that id. */
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

/* pid 0: any. */
static pid_t run(pid_t pid, const char *program, const char *seconds)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = pid ? (uintptr_t)&pid : 0,
		.set_tid_size = pid ? 1 : 0,
	};
	pid_t child = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	int status;

	if (!child) {
		execl(program, program, seconds, (char *)NULL);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		return -1;
	return child;
}

int main(int argc, char **argv)
{
	pid_t pid;

	if (argc < 4)
		return 2;
	pid = run(0, argv[2], argv[1]);
	if (pid < 0 || run(pid, argv[3], argv[1]) != pid)
		return 1;
	printf("%d\n", (int)pid);
	return 0;
}
