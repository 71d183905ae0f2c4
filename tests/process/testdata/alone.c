// Calls that a program must make while it has one thread. The first argument is the call. The
// control plane has not started: it waits until the heap has grown, and at least for 0.2 s.
#include "common.h"
#include "begun.h"
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void grow(void) { CHECK(memset(malloc(3 << 20), 1, 3 << 20)); }

static void check_alone(void)
{
	CHECK(threads() == 1, "%d threads", threads());
	grow();
	usleep(500000);
	CHECK(threads() == 1, "%d threads later", threads());
}

static void keeps(void)
{
	CHECK(prctl(PR_SET_KEEPCAPS, 1) == 0);
	check_alone();
}

static void unshares(void)
{
	int e = unshare(CLONE_NEWUSER) == 0 ? 0 : errno;
	CHECK(e != EINVAL); // EPERM, ENOSPC: the system lets nobody
	check_alone();
}

static void unshares_raw(void)
{
	int e = syscall(SYS_unshare, CLONE_NEWUSER) == 0 ? 0 : errno;
	CHECK(e != EINVAL);
	check_alone();
}

// This one may have several threads.
static void unshares_folder(void)
{
	int before = threads();
	CHECK(unshare(CLONE_FS) == 0);
	CHECK(threads() >= before);
}

// libc interrupts all threads. That does not start the control plane early.
static void changes_user(void)
{
	grow();
	CHECK(setresuid(-1, -1, -1) == 0);
	usleep(50000);
	int n = threads();
	CHECK(n <= 2 || now() - begun > 0.2, "%d threads", n);
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
	grow();
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
	{"unshares raw", unshares_raw}, {"unshares folder", unshares_folder},
	{"changes user", changes_user}, {"enters", enters}, {"enters raw", enters_raw},
	{"filters", filters}, {"in child", in_child}, {"in forked", in_forked}};

int main(int argc, char **argv) { RUN(tests); }
