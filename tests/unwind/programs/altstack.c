/* altstack.c - a signal handler on an alternate stack, interrupting computations that have no frame to
 * speak of. The alternate stack lies below the thread's own in one mapping, so that a copy from the
 * handler upwards has both. The argument is the number of seconds. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

enum { ALTERNATE = 16 << 10, STACK = 32 << 10 };

static volatile unsigned long sink;
static char *stacks;
static time_t end;

static unsigned int work(unsigned int n)
{
	return n < 2 ? n : work(n - 1) + work(n - 2);
}

static void on_alarm(int sig, siginfo_t *si, void *context)
{
	char text[200];

	(void)si;
	(void)context;
	memset(text, sig, sizeof(text));
	sink += work(19) + (unsigned long)text[sink % sizeof(text)];
}

static int compare(const void *a, const void *b)
{
	return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

static void *run(void *arg)
{
	stack_t s = { .ss_sp = stacks, .ss_size = ALTERNATE };
	int v[200];

	(void)arg;
	sigaltstack(&s, NULL);
	while (time(NULL) < end) {
		for (int i = 0; i < 200; i++)
			v[i] = (i * 7919) % 211;
		qsort(v, 200, sizeof(*v), compare);
		sink += work(12) + strlen("interrupted in a library, too");
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_sigaction = on_alarm, .sa_flags = SA_ONSTACK | SA_SIGINFO | SA_RESTART };
	struct itimerval t = { { 0, 500 }, { 0, 500 } };
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t set;

	end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);
	stacks = mmap(NULL, ALTERNATE + STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stacks == MAP_FAILED)
		return 1;
	sigaction(SIGPROF, &sa, NULL);
	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, stacks + ALTERNATE, STACK);
	if (pthread_create(&thread, &attr, run, NULL))
		return 1;
	sigemptyset(&set);	/* for the thread alone */
	sigaddset(&set, SIGPROF);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	setitimer(ITIMER_PROF, &t, NULL);
	pthread_join(thread, NULL);
	return 0;
}
