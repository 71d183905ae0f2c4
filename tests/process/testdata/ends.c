// The ways a process ends, with and without children. The first argument is the
// way; every case allocates 100 blocks of 208 bytes first.
#include "common.h"
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

extern pid_t _Fork(void);

static void leave(int n)
{
	for (int i = 0; i < n; i++)
		hide(malloc(208));
}

static void by_return(void) {}
static void by_exit(void) { exit(7); }
static void by_quick_exit(void) { quick_exit(7); }
static void by__exit(void) { _exit(7); }
static void by__Exit(void) { _Exit(7); }
static void by_pthread_exit(void) { pthread_exit(NULL); }
static void *lasts(void *v)
{
	usleep(400000); // the control plane has started
	return v;
}
static void by_detached(void) // main ends first
{
	pthread_t t;
	pthread_create(&t, NULL, lasts, NULL);
	pthread_detach(t);
	pthread_exit(NULL);
}
static void *exits(void *v)
{
	exit(7);
	return v;
}
static void by_thread(void)
{
	pthread_t t;
	pthread_create(&t, NULL, exits, NULL);
	pthread_join(t, NULL);
}
static void on_signal(int s) { _exit(s == SIGUSR1 ? 7 : 8); }
static void by_handler(void)
{
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
}
static void by_abort(void) { abort(); }
static void by_exec(void) { execl("/bin/sh", "sh", "-c", "exit 7", NULL); }
static void stray(void) // what is open or changed at the end must not matter
{
	CHECK(chdir("/") == 0);
	clearenv();
	for (int fd = 0; fd < 10; fd++)
		close(fd);
	exit(7);
}

static void *churns(void *v)
{
	static void *volatile p[1000]; // the threads free each other's, too
	for (unsigned x = (unsigned)(long)v;; x = x * 1664525 + 1013904223)
		free(__atomic_exchange_n(&p[(x >> 8) % 1000], malloc((x >> 4) % 100000), __ATOMIC_SEQ_CST));
}
static void busy(void) // the others never stop
{
	pthread_t t;
	for (long i = 0; i < 3; i++)
		pthread_create(&t, NULL, churns, (void *)i);
	usleep(30000);
	exit(7);
}

static void child_status(pid_t pid)
{
	int status;
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
		WEXITSTATUS(status) == 9);
}

static void print(const char *who) { dprintf(1, "%s %d\n", who, getpid()); }

// A child that makes 50 blocks more and a grandchild that makes 25 of its own,
// and frees one of its grandparent's.
static void forks(void)
{
	char *mine = malloc(208);
	pid_t pid = fork();
	if (pid == 0) {
		leave(50);
		pid_t grandchild = fork();
		if (grandchild == 0) {
			leave(25);
			free(mine);
			print("grandchild");
			_exit(9);
		}
		child_status(grandchild);
		print("child");
		exit(9);
	}
	child_status(pid);
	print("parent");
}

static void forks_raw(void)
{
	pid_t pid = _Fork();
	if (pid == 0) {
		leave(1000);
		print("child");
		_exit(9);
	}
	child_status(pid);
	print("parent");
}

static void vforks(void)
{
	extern char **environ;
	for (int i = 0; i < 5; i++) {
		pid_t pid = vfork();
		if (pid == 0) {
			execl("/no/such/program", "x", NULL);
			_exit(9);
		}
		child_status(pid);
		char *argv[] = {"x", NULL};
		CHECK(posix_spawn(&pid, "/no/such/program", NULL, NULL, argv, environ) == ENOENT);
	}
	print("parent");
	raise(SIGKILL); // so that whatever is written is a child's
}

static const struct test tests[] = {{"return", by_return}, {"exit", by_exit},
	{"quick_exit", by_quick_exit}, {"_exit", by__exit}, {"_Exit", by__Exit},
	{"pthread_exit", by_pthread_exit}, {"detached", by_detached}, {"thread", by_thread},
	{"handler", by_handler}, {"abort", by_abort}, {"exec", by_exec}, {"stray", stray},
	{"busy", busy}, {"fork", forks}, {"_Fork", forks_raw}, {"vfork", vforks}};

int main(int argc, char **argv)
{
	leave(100);
	RUN(tests);
}
