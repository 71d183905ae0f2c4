// A program in a sandbox: a filter of system calls refuses some of them.
//
//	sandbox ERRNO CALL,CALL,... here          works under the filter
//	sandbox ERRNO CALL,CALL,... COMMAND...    execs the command under it
//	sandbox large                             fills 64 MiB in blocks of several sizes
//
// With an ERRNO of 0 the filter ends the process.
#include "common.h"
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static const struct {
	const char *name;
	int number;
} calls[] = {
#define C(name) \
	{ \
#		name, SYS_##name \
	}
	C(madvise),
	C(mremap),
	C(munmap),
	C(mbind),
	C(get_mempolicy),
	C(set_mempolicy),
	C(move_pages),
	C(mincore),
	C(prlimit64),
	C(sysinfo),
	C(getcpu),
	C(sched_getaffinity),
	C(sched_yield),
	C(membarrier),
	C(clock_gettime),
	C(clock_nanosleep),
	C(nanosleep),
	C(getrandom),
	C(prctl),
	C(faccessat),
	C(renameat),
	C(unlinkat),
	C(write),
	C(pwrite64),
	C(fcntl),
	C(getpid),
	C(gettid),
	C(getcwd),
	C(fstat),
	C(newfstatat),
	C(epoll_create1),
	C(eventfd2),
	C(set_robust_list),
	C(rseq),
	C(rt_sigpending),
	C(openat),
};

enum { MOST = 64 };
static struct sock_filter code[4 * MOST];
static int length;

static void add(int what, unsigned k, int yes, int no)
{
	code[length++] = (struct sock_filter){.code = what, .k = k, .jt = yes, .jf = no};
}

static unsigned answer(int error)
{
	return error == 0 ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | (unsigned)error;
}

// A name of none is openat for a file to write.
static int refuse(const char *name, int error)
{
	int writing = strcmp(name, "writing") == 0;
	for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++) {
		if (strcmp(calls[i].name, writing ? "openat" : name) != 0)
			continue;
		if (writing) {
			add(BPF_JMP | BPF_JEQ | BPF_K, calls[i].number, 0, 4);
			add(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2]), 0, 0);
			add(BPF_JMP | BPF_JSET | BPF_K, O_WRONLY | O_RDWR, 0, 1);
			add(BPF_RET | BPF_K, answer(error), 0, 0);
			add(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
		} else {
			add(BPF_JMP | BPF_JEQ | BPF_K, calls[i].number, 0, 1);
			add(BPF_RET | BPF_K, answer(error), 0, 0);
		}
		return 1;
	}
	return 0;
}

static void filter(char *names, int error)
{
	add(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
	for (char *name = strtok(names, ","); name != NULL; name = strtok(NULL, ","))
		CHECK(refuse(name, error), "%s", name);
	add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
	struct sock_fprog all = {length, code};
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(
		syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &all) == 0, "%m");
}

static void *work(void *seed)
{
	unsigned x = (unsigned)(long)seed;
	char *p[100] = {0};
	size_t size[100] = {0};
	for (int i = 0; i < 4000; i++) {
		x = x * 1664525 + 1013904223;
		int k = (x >> 8) % 100;
		size_t n = x >> 24 == 0 ? (x >> 4) % (8 * MIB) : (x >> 4) % 8000;
		CHECK(size[k] == 0 || (p[k][0] == k && p[k][size[k] - 1] == k));
		if (i % 3 == 0)
			free(p[k]), p[k] = malloc(n + 1);
		else
			p[k] = realloc(p[k], n + 1);
		CHECK(p[k] != NULL, "%zu bytes", n);
		size[k] = n + 1;
		p[k][0] = p[k][n] = k;
	}
	for (int k = 0; k < 100; k++)
		free(p[k]);
	return NULL;
}

static void works(void)
{
	pthread_t t[3];
	for (long i = 0; i < 3; i++)
		CHECK(pthread_create(&t[i], NULL, work, (void *)(i + 1)) == 0);
	work(NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	pid_t child = fork();
	if (child == 0)
		work(NULL), exit(0);
	int status;
	CHECK(waitpid(child, &status, 0) == child && status == 0, "status %#x", status);
}

// The library looks which pages of such a heap are resident.
static void large(void)
{
	enum { ALL = 64 * MIB };
	static const size_t sizes[] = {200, 5000, MIB, 8 * MIB};
	for (int i = 0; i < 4; i++) {
		size_t n = ALL / sizes[i];
		char **p = malloc(n * sizeof *p);
		for (int round = 0; round < 3; round++) {
			for (size_t k = 0; k < n; k++) {
				p[k] = round == 1 ? calloc(1, sizes[i]) : malloc(sizes[i]);
				CHECK(p[k] != NULL);
				memset(p[k], 1, round == 2 ? 1 : sizes[i]);
			}
			for (size_t k = 0; k < n; k++)
				free(p[k]);
		}
		free(p);
	}
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "large") == 0)
		large();
	else if (argc < 4)
		works(); // under the filter of who execs it
	else {
		work(NULL);
		filter(argv[2], atoi(argv[1]));
		if (strcmp(argv[3], "here") == 0)
			works();
		else
			execv(argv[3], argv + 3), _exit(127);
	}
	return 0;
}
