// The way in which Chromium and Electron make the process that all their sandboxed ones are forked
// from: a child in a user and a process namespace of its own, made by a raw clone; in it a helper
// that shares its memory and its root directory, has another thread's storage, moves the root into
// a folder that vanishes with it, and leaves by _exit. Last come the system call filter and what a
// renderer does under it.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void check(int ok, const char *what)
{
	if (!ok) {
		dprintf(2, "%s: %s\n", what, strerror(errno));
		_exit(1);
	}
}

static void put(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY);
	check(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), file);
	close(fd);
}

// chroot_helper runs on the storage of no thread.
static int chroot_helper(void *unused)
{
	(void)unused;
	if (chroot("/proc/self/fdinfo/") || chdir("/"))
		_exit(2);
	_exit(0);
}

static int end_of(pid_t pid)
{
	int status;
	check(waitpid(pid, &status, 0) == pid, "waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void drop_root(void)
{
	static char stack[64 << 10] __attribute__((aligned(16)));
	// all zero, even the pointer to itself
	static char storage[16 << 10] __attribute__((aligned(64)));
	void *tls = storage + sizeof storage / 2;
	pid_t pid = clone(chroot_helper, stack + sizeof stack,
		CLONE_VM | CLONE_VFORK | CLONE_FS | CLONE_SETTLS | SIGCHLD, NULL, NULL, tls);
	check(pid > 0, "clone of the helper");
	printf("helper: %d\n", end_of(pid));
}

static void filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_openat, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof code / sizeof *code, code};
	check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
	check(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "seccomp");
}

static void *churn(void *seed)
{
	unsigned sum = 0, n = (unsigned)(uintptr_t)seed;
	for (int i = 0; i < 20000; i++) {
		n = n * 1103515245 + 12345;
		size_t size = n >> 16 & 4095;
		unsigned char *p = malloc(size + 1);
		memset(p, (int)i, size + 1);
		sum += p[size] ^ n >> 24;
		free(p);
	}
	return (void *)(uintptr_t)sum;
}

static void renderer(void)
{
	pthread_t other;
	void *sum;
	check(pthread_create(&other, NULL, churn, (void *)7) == 0, "pthread_create");
	printf("here: %lu\n", (unsigned long)(uintptr_t)churn((void *)3));
	pthread_join(other, &sum);
	printf("thread: %lu, file: %d\n", (unsigned long)(uintptr_t)sum, open("/etc/passwd", O_RDONLY));
	fflush(stdout);
}

static void zygote(unsigned uid, unsigned gid)
{
	char text[64];
	put("/proc/self/setgroups", "deny");
	snprintf(text, sizeof text, "%u %u 1\n", gid, gid);
	put("/proc/self/gid_map", text);
	snprintf(text, sizeof text, "%u %u 1\n", uid, uid);
	put("/proc/self/uid_map", text);
	drop_root();
	printf("process %d in its namespace\n", (int)syscall(SYS_getpid));
	fflush(stdout);
	filter();
	pid_t pid = fork();
	check(pid >= 0, "fork");
	if (pid == 0) {
		renderer();
		_exit(5);
	}
	printf("renderer: %d\n", end_of(pid));
	fflush(stdout);
	_exit(6);
}

int main(void)
{
	unsigned uid = getuid(), gid = getgid();
	free(malloc(100));
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD | CLONE_NEWUSER | CLONE_NEWPID, 0, 0, 0, 0);
	check(pid >= 0, "clone of the zygote");
	if (pid == 0)
		zygote(uid, gid);
	printf("zygote: %d\n", end_of(pid));
}
