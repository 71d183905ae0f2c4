// A host with handlers of its own, set at its start, and used all along.
#include "common.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

static volatile int pipes, children, others;
static _Thread_local sigjmp_buf back;

static void on_fault(int s, siginfo_t *info, void *context)
{
	(void)s, (void)context;
	siglongjmp(back, info->si_addr == (void *)0x40 ? 1 : 2);
}

static void on_signal(int s)
{
	if (s == SIGPIPE)
		pipes++;
	else if (s == SIGCHLD)
		children++;
	else
		others++;
}

static void *faults(void *v)
{
	for (int i = 0; i < 50; i++) {
		free(hide(malloc(1000)));
		int how = sigsetjmp(back, 1);
		if (how == 0)
			*(volatile char *)hide((void *)0x40) = 1;
		CHECK(how == 1);
	}
	return v;
}

static const int all[] = {SIGPIPE, SIGCHLD, SIGURG, SIGPROF, SIGUSR2, SIGTERM};
enum { ALL = sizeof all / sizeof *all, FLAGS = SA_RESTART | SA_ONSTACK | SA_SIGINFO | SA_NODEFER };

static void in_force(void)
{
	struct sigaction a;
	for (int i = 0; i < ALL; i++)
		CHECK(sigaction(all[i], NULL, &a) == 0 && a.sa_handler == on_signal &&
				(a.sa_flags & FLAGS) == SA_RESTART,
			"signal %d", all[i]);
	CHECK(sigaction(SIGSEGV, NULL, &a) == 0 && a.sa_sigaction == on_fault &&
		!(a.sa_flags & SA_ONSTACK));
	CHECK(sigaction(SIGBUS, NULL, &a) == 0 && a.sa_handler == SIG_DFL);
	CHECK(sigaction(SIGFPE, NULL, &a) == 0 && a.sa_handler == SIG_DFL);
}

static void once(int p)
{
	pthread_t t;
	int before = pipes, born = children, sent = others, status;
	CHECK(write(p, "x", 1) < 0 && errno == EPIPE && pipes == before + 1);
	pid_t pid = fork();
	if (pid == 0) {
		faults(NULL);
		in_force();
		_exit(4);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 4);
	CHECK(children == born + 1);
	for (int i = 2; i < ALL; i++)
		kill(getpid(), all[i]);
	CHECK(others == sent + ALL - 2, "%d of %d", others - sent, ALL - 2);
	CHECK(pthread_create(&t, NULL, faults, NULL) == 0 && pthread_join(t, NULL) == 0);
	faults(NULL);
	in_force();
}

int main(void)
{
	int p[2];
	struct sigaction a = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	for (int i = 0; i < ALL; i++)
		sigaction(all[i], &a, NULL);
	a.sa_sigaction = on_fault, a.sa_flags = SA_SIGINFO;
	sigaction(SIGSEGV, &a, NULL);
	CHECK(pipe(p) == 0 && close(p[0]) == 0);
	for (int i = 0; i < 40; i++) { // half a second and more
		once(p[1]);
		nanosleep(&(struct timespec){0, 10000000}, NULL);
	}
	return 0;
}
