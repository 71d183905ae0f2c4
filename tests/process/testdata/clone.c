// Children that clone makes with a thread pointer that leads to no thread of libc's, as sandboxes
// do. What they call is written without thread-local storage, so libc serves them.
#include "common.h"
#include <asm/prctl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static char stack[1 << 18] __attribute__((aligned(64)));
static char zeros[1 << 12] __attribute__((aligned(64)));

static int leaves(void *status)
{
	prctl(PR_SET_NAME, "child", 0, 0, 0);
	_exit((int)(long)status);
}

static int leaves_by_Exit(void *status) { _Exit((int)(long)status); }

static int loses_thread(void *status)
{
	syscall(SYS_arch_prctl, ARCH_SET_FS, 0);
	_exit((int)(long)status);
}

// Runs fn in a child, whose thread-local storage is a block of zeros where flags has CLONE_SETTLS.
static void child(int (*fn)(void *), int flags)
{
	int status;
	pid_t pid = clone(
		fn, stack + sizeof stack, flags | SIGCHLD, (void *)7, NULL, zeros + sizeof zeros / 2, NULL);
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7, "status %x", status);
}

static void exits_without_tls(void)
{
	free(hide(malloc(100)));
	for (int vm = 0; vm < 2; vm++) {
		int flags = CLONE_FS | (vm ? CLONE_VM | CLONE_VFORK : 0);
		child(leaves, flags | CLONE_SETTLS);
		child(leaves_by_Exit, flags | CLONE_SETTLS);
		// else it would be the parent's that it loses, and libc's clone needs it
		child(loses_thread, flags | CLONE_SETTLS);
		child(leaves, flags);
	}
	free(hide(malloc(100)));
}

// A thread of the process itself that libc knows nothing of ends it.
static void thread_without_tls(void)
{
	free(hide(malloc(100)));
	clone(leaves, stack + sizeof stack,
		CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SETTLS, (void *)7,
		NULL, zeros + sizeof zeros / 2, NULL);
	for (;;)
		pause();
}

static const struct test tests[] = {{"child", exits_without_tls}, {"thread", thread_without_tls}};

int main(int argc, char **argv) { RUN(tests); }
