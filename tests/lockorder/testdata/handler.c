// A signal handler that interrupts malloc while it holds the pool's lock, under which a new segment
// is mapped. A filter of system calls makes the call of mmap raise the signal. The argument names
// what the handler does.
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DONE = 3, UNTOUCHED = 4, WRONG = 5 };

static const char *what;
static int (*set_mode)(void *m, int mode);

static void *sleeps(void *v)
{
	pause();
	return v;
}

// Forks as a process of several threads, and allocates in the child.
static void forks(void)
{
	int status = -1;
	pid_t pid = fork();
	if (pid == 0)
		_exit(malloc(100000) != NULL ? DONE : WRONG);
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != DONE)
		_exit(WRONG);
}

static void handler(int sig)
{
	(void)sig;
	if (strcmp(what, "manager") == 0)
		set_mode(NULL, 0);
	else if (strcmp(what, "deepbind") == 0)
		dlopen("libc.so.6", RTLD_NOW | RTLD_DEEPBIND);
	else if (strcmp(what, "fork") == 0)
		forks();
	_exit(DONE);
}

static int trap_mmap(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 4),
		// the heap's own mappings lie anywhere, and have no file
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 4 << 20, 0, 2),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 64 << 20, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

int main(int argc, char **argv)
{
	pthread_t t;
	struct sigaction a = {.sa_handler = handler, .sa_flags = SA_NODEFER};
	what = argc > 1 ? argv[1] : "";
	set_mode = (int (*)(void *, int))dlsym(RTLD_DEFAULT, "ta_mm_set_mode");
	if (set_mode == NULL || pthread_create(&t, NULL, sleeps, NULL) != 0 ||
		sigaction(SIGSYS, &a, NULL) != 0 || !trap_mmap())
		return WRONG;
	for (int i = 0; i < 1000; i++)
		if (malloc(100000) == NULL)
			return WRONG;
	return UNTOUCHED;
}
