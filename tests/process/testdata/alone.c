// Calls that a program must make while it has one thread. The first argument is the call. Each is
// made in the first moments of the process, when the control plane has not started.
#include "common.h"
#include <dirent.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

static int threads(void)
{
	DIR *d = opendir("/proc/self/task");
	int n = -2; // . and ..
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static double begun; // before the library's constructor

static void begin(void) { begun = now(); }

static void (*const first_of_all)(void) __attribute__((section(".preinit_array"), used)) = begin;

// The control plane has started where the machine was too slow.
static int late(void) { return now() - begun > 0.2; }

static void check_alone(void)
{
	int n = threads(), excused = late();
	CHECK(n == 1 || excused, "%d threads", n);
	usleep(500000);
	n = threads();
	CHECK(n == 1 || excused, "%d threads later", n);
}

static void keeps(void)
{
	CHECK(prctl(PR_SET_KEEPCAPS, 1) == 0);
	check_alone();
}

static void unshares(void)
{
	int e = unshare(CLONE_NEWUSER) == 0 ? 0 : errno;
	CHECK(e != EINVAL || late()); // EPERM, ENOSPC: the system lets nobody
	check_alone();
}

static void unshares_raw(void)
{
	int e = syscall(SYS_unshare, CLONE_NEWUSER) == 0 ? 0 : errno;
	CHECK(e != EINVAL || late());
	check_alone();
}

static void enters(void)
{
	CHECK(setns(-1, 0) != 0 && errno == EBADF);
	check_alone();
}

static void enters_raw(void)
{
	CHECK(syscall(SYS_setns, -1, 0) != 0 && errno == EBADF);
	check_alone();
}

static void filters(void)
{
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	check_alone();
}

// A child of vfork has its parent's memory. What it does is nothing to its parent's threads.
static void in_child(void)
{
	int before = threads();
	pid_t pid = vfork();
	if (pid == 0) {
		prctl(PR_SET_KEEPCAPS, 1);
		_exit(0);
	}
	CHECK(waitpid(pid, NULL, 0) == pid);
	CHECK(threads() >= before);
	double until = now() + 20;
	while (threads() < 3 && now() < until) // the Go runtime has more than one
		usleep(1000);
	CHECK(threads() >= 3);
}

// A forked child has no thread of its parent's.
static void in_forked(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		keeps();
		_exit(0);
	}
	int status;
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static const struct test tests[] = {{"keeps", keeps}, {"unshares", unshares},
	{"unshares raw", unshares_raw}, {"enters", enters}, {"enters raw", enters_raw},
	{"filters", filters}, {"in child", in_child}, {"in forked", in_forked}};

int main(int argc, char **argv) { RUN(tests); }
