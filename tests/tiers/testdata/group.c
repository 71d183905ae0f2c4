// Does what the lines of standard input say and answers each with a line:
//
//	get N    allocates N MiB and writes to them: ok, or null
//	put      frees what it got last
//	fork     forks, clone without libc's handlers; the child reads on until leave
//	vfork    starts /bin/true and waits for it
//	exec     starts itself anew
//	files    opens all files that it may
//	root     makes a folder its root
//	user     becomes another user
//	filter   lets the kernel end it for the call that opens files
//	threads  eight threads get and put 1 MiB each, a hundred times
//	leave    ends
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { mib = 1 << 20 };

static void *got[1000];
static int n;

// next reads a line byte by byte, so that what follows is left for a child.
static int next(char *line, int size)
{
	int i = 0;
	while (i < size - 1 && read(0, line + i, 1) == 1 && line[i] != '\n')
		i++;
	line[i] = 0;
	return i > 0;
}

static void *churn(void *unused)
{
	(void)unused;
	for (int i = 0; i < 100; i++) {
		char *p = malloc(mib);
		if (p)
			memset(p, 1, mib);
		free(p);
	}
	return NULL;
}

static void say(const char *text)
{
	char line[64];
	int len = snprintf(line, sizeof line, "%s\n", text);
	if (write(1, line, len) != len)
		_exit(3);
}

static int filter(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof f / sizeof *f, f};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// give_up makes the process unable to open the group's file.
static int give_up(const char *what)
{
	struct rlimit few = {16, 16};
	if (!strcmp(what, "user"))
		return setgid(65534) == 0 && setuid(65534) == 0;
	if (!strcmp(what, "root"))
		return chroot("/proc/sys/kernel") == 0;
	if (!strcmp(what, "filter"))
		return filter();
	setrlimit(RLIMIT_NOFILE, &few);
	while (dup(0) >= 0)
		;
	return 1;
}

int main(int argc, char **argv)
{
	(void)argc;
	char line[64];
	pthread_t threads[8];
	pid_t pid;
	int status;
	say("ready");
	while (next(line, sizeof line)) {
		long size = atol(line + 4);
		if (!strncmp(line, "get", 3)) {
			char *p = malloc(size * mib);
			if (p)
				memset(got[n++] = p, 1, size * mib);
			say(p ? "ok" : "null");
		} else if (!strcmp(line, "put")) {
			free(got[--n]);
			say("ok");
		} else if (!strcmp(line, "fork") || !strcmp(line, "clone")) {
			pid = line[0] == 'f' ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
			if (pid == 0)
				say("child");
			else if (waitpid(pid, &status, 0) == pid && WIFSIGNALED(status))
				say("killed");
		} else if (!strcmp(line, "vfork")) {
			char *args[] = {"true", NULL};
			posix_spawn(&pid, "/bin/true", NULL, NULL, args, environ);
			waitpid(pid, NULL, 0);
			say("ok");
		} else if (!strcmp(line, "exec")) {
			execv("/proc/self/exe", argv);
		} else if (!strcmp(line, "threads")) {
			for (int i = 0; i < 8; i++)
				pthread_create(&threads[i], NULL, churn, NULL);
			for (int i = 0; i < 8; i++)
				pthread_join(threads[i], NULL);
			say("ok");
		} else if (strstr("files root user filter", line)) {
			say(give_up(line) ? "ok" : "cannot");
		} else if (!strcmp(line, "leave")) {
			break;
		}
	}
	say("left");
	return 0;
}
