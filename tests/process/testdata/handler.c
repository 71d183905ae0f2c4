// Allocation and fork inside a signal handler that interrupts the heap itself.
// The interrupted code is malloc or free of the kind that the case names.
#include "common.h"
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

enum { WANTED = 300 };
static volatile sig_atomic_t forks, failed;
static char *given[20];

// One shot, armed again by the handler: an interval shorter than the handler would
// leave the interrupted code no time.
static void alarm_in(int microseconds)
{
	struct itimerval it = {{0, 0}, {0, microseconds}};
	setitimer(ITIMER_REAL, &it, NULL);
}

static void begin(void (*fn)(int))
{
	struct sigaction a = {.sa_handler = fn, .sa_flags = SA_RESTART};
	sigaction(SIGALRM, &a, NULL);
	alarm_in(100);
}

static void *little(void *v)
{
	for (int i = 0; i < 100; i++)
		free(malloc(i * 100));
	return v;
}

static void be_a_child(void)
{
	signal(SIGALRM, SIG_DFL);
	sigset_t s;
	sigemptyset(&s), sigaddset(&s, SIGALRM);
	sigprocmask(SIG_UNBLOCK, &s, NULL);
	alarm(120); // a child that hangs dies of it
	for (size_t n = 1; n < 10 * MIB; n *= 3) {
		char *p = malloc(n);
		if (p == NULL)
			_exit(4);
		p[n - 1] = 1;
		free(p);
	}
	for (int i = 0; i < 20; i++)
		free(given[i]);
	pthread_t t;
	if (pthread_create(&t, NULL, little, NULL) != 0)
		_exit(5);
	pthread_join(t, NULL);
	pid_t pid = fork();
	if (pid == 0)
		_exit(malloc(3 * MIB) == NULL ? 6 : 3);
	int status = 0;
	waitpid(pid, &status, 0);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 7);
}

static void on_alarm(int sig)
{
	(void)sig;
	int saved = errno, status = -1;
	pid_t pid = fork();
	if (pid == 0)
		be_a_child();
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
		WEXITSTATUS(status) != 3) {
		failed++;
		dprintf(1, "fork %d: the child's wait status is %#x\n", (int)forks, status);
	}
	if (++forks < WANTED)
		alarm_in(100 + forks * 7919 % 400);
	errno = saved;
}

static void run(size_t n, int many)
{
	static void *p[1000];
	for (int i = 0; i < 20; i++)
		given[i] = malloc(100 + i * 1000);
	begin(on_alarm);
	while (forks < WANTED && failed < 5) {
		for (int i = 0; i < many; i++)
			p[i] = malloc(n);
		for (int i = 0; i < many; i++)
			free(p[i]);
	}
	alarm_in(0);
	CHECK(failed == 0);
}

static void small(void) { run(48, 1000); }
static void medium(void) { run(20000, 1000); }
static void large(void) { run(MIB, 16); }
static void huge(void) { run(8 * MIB, 1); }

static volatile size_t handler_size;

// malloc in a handler is beyond the standard, but the heap must not wait for
// itself: sizes of the handler's own keep its blocks off the interrupted list.
static void allocates(int sig)
{
	(void)sig;
	int saved = errno;
	free(malloc(handler_size));
	forks++;
	alarm_in(20 + forks * 7919 % 50);
	errno = saved;
}

static void no_wait(void)
{
	handler_size = 6 * MIB;
	begin(allocates);
	while (forks < 20000)
		free(malloc(8 * MIB));
	alarm_in(0);
}

static const struct test tests[] = {
	{"small", small}, {"medium", medium}, {"large", large}, {"huge", huge}, {"no wait", no_wait}};

int main(int argc, char **argv) { RUN(tests); }
