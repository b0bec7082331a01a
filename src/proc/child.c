/* child.c - see child.h. */
#include "proc/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

static void wait_and_exec(char **argv, int go, int failed) __attribute__((noreturn));
static void wait_and_exec(char **argv, int go, int failed)
{
	sigset_t none;
	char byte;
	int r;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	while ((r = (int)read(go, &byte, 1)) < 0 && errno == EINTR)
		;
	if (r == 1) {
		execvp(argv[0], argv);
		r = errno;
		if (write(failed, &r, sizeof(r)) < 0)
			_exit(126);
	}
	_exit(127);
}

int child_start(char **argv, struct child *ret, struct err *e)
{
	int go[2], failed[2];
	pid_t pid;

	if (pipe2(go, O_CLOEXEC))
		return err_set(e, -errno, "can't make a pipe: %s", strerror(errno));
	if (pipe2(failed, O_CLOEXEC)) {
		int r = -errno;

		close(go[0]);
		close(go[1]);
		return err_set(e, r, "can't make a pipe: %s", strerror(-r));
	}
	pid = fork();
	if (!pid) {
		close(go[1]);
		wait_and_exec(argv, go[0], failed[1]);
	}
	close(go[0]);
	close(failed[1]);
	*ret = (struct child){ .pid = pid, .go = go[1], .failed = failed[0] };
	if (pid < 0) {
		int r = -errno;

		ret->pid = 0;
		child_done(ret);
		return err_set(e, r, "can't fork: %s", strerror(-r));
	}
	return 0;
}

int child_go(struct child *c, struct err *e)
{
	int err = 0;
	ssize_t n;

	if (write(c->go, "", 1) != 1)
		return err_set(e, -errno, "the command has died before it ran: %s", strerror(errno));
	/* closed by a successful exec: then nothing arrives */
	while ((n = read(c->failed, &err, sizeof(err))) < 0 && errno == EINTR)
		;
	return n == sizeof(err) ? err_set(e, -err, "%s", strerror(err)) : 0;
}

bool child_reap(struct child *c)
{
	if (c->pid && waitpid(c->pid, &c->status, WNOHANG) == c->pid)
		c->pid = 0;
	return !c->pid;
}

int child_exit_status(const struct child *c)
{
	return WIFSIGNALED(c->status) ? 128 + WTERMSIG(c->status) : WEXITSTATUS(c->status);
}

void child_stop(struct child *c)
{
	if (child_reap(c))
		return;
	kill(c->pid, SIGTERM);
	for (int i = 0; i < 200 && !child_reap(c); i++)
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	if (c->pid) {
		kill(c->pid, SIGKILL);
		while (waitpid(c->pid, &c->status, 0) < 0 && errno == EINTR)
			;
		c->pid = 0;
	}
}

void child_done(struct child *c)
{
	if (c->go >= 0)
		close(c->go);
	if (c->failed >= 0)
		close(c->failed);
	if (c->pid)
		child_stop(c);
	*c = (struct child)CHILD_INIT;
}
