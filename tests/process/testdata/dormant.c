// Prints what a process is to the kernel: threads, signals, abilities. Or, as a
// guest, loads the library and looks for what has changed.
#include "common.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "../../../interpose/tieralloc.h"

static int dispositions(char *out, size_t n)
{
	int len = 0;
	for (int s = 1; s <= 64; s++) {
		uintptr_t a[4] = {0}; // handler, flags, restorer, mask
		long r = syscall(SYS_rt_sigaction, s, NULL, a, 8);
		len += snprintf(out + len, n - len, "%d: %ld %#lx %#lx %#lx %#lx\n", s, r,
			a[0] > 1 ? 2ul : a[0], a[1], a[2] != 0, a[3]);
	}
	return len;
}

static void state(char *out, size_t n)
{
	int len = dispositions(out, n);
	stack_t alt;
	sigaltstack(NULL, &alt);
	len += snprintf(out + len, n - len, "altstack %d dumpable %d nnp %d\n", alt.ss_flags,
		prctl(PR_GET_DUMPABLE), prctl(PR_GET_NO_NEW_PRIVS));
	for (int i = 0; i < RLIM_NLIMITS; i++) {
		struct rlimit l;
		getrlimit(i, &l);
		len += snprintf(out + len, n - len, "limit %d: %#lx %#lx\n", i, l.rlim_cur, l.rlim_max);
	}
	for (int fd = 0; fd < 100; fd++)
		len += snprintf(out + len, n - len, "%s", fcntl(fd, F_GETFD) >= 0 ? "o" : "-");
	FILE *f = fopen("/proc/self/status", "r");
	char line[300];
	while (fgets(line, sizeof line, f) != NULL)
		if (strncmp(line, "Sig", 3) == 0 || strncmp(line, "Cap", 3) == 0 ||
			strncmp(line, "Shd", 3) == 0 || strncmp(line, "Threads", 7) == 0 ||
			strncmp(line, "Seccomp:", 8) == 0)
			if (strncmp(line, "SigQ", 4) != 0)
				len += snprintf(out + len, n - len, "%s", line);
	fclose(f);
}

static void show(void)
{
	static char text[16384];
	state(text, sizeof text);
	fputs(text, stdout);
	pid_t pid = fork();
	if (pid == 0) // only a process with one thread may
		_exit(unshare(CLONE_NEWUSER) == 0 ? 1 : errno);
	int status;
	waitpid(pid, &status, 0);
	printf("unshare %d\n", WEXITSTATUS(status));
}

static void on_signal(int s) { (void)s; }

static void dispose(void)
{
	for (int s = 1; s <= 64; s++) {
		struct sigaction a = {.sa_handler = s % 5 == 0 ? SIG_IGN : on_signal,
			.sa_flags = s % 3 ? SA_RESTART : SA_NODEFER};
		sigaddset(&a.sa_mask, s % 30 + 1);
		sigaction(s, s % 4 ? &a : NULL, NULL);
	}
}

static void guest(void)
{
	static char before[16384], after[16384];
	dispose();
	void *old = malloc(1000), *(*was)(size_t) = malloc;
	state(before, sizeof before);
	void *lib = dlopen(getenv("LIB"), RTLD_NOW | (getenv("GLOBAL") ? RTLD_GLOBAL : RTLD_LOCAL));
	CHECK(lib != NULL, "%s", dlerror());
	state(after, sizeof after);
	CHECK(strcmp(before, after) == 0, "before:\n%s\nafter:\n%s", before, after);
	CHECK(was == malloc && dlsym(RTLD_DEFAULT, "malloc") == (void *)malloc);
	void *(*alloc)(size_t, ta_hint) = (void *(*)(size_t, ta_hint))dlsym(lib, "ta_alloc");
	void (*release)(void *) = (void (*)(void *))dlsym(lib, "ta_free");
	int (*stats)(ta_stats *) = (int (*)(ta_stats *))dlsym(lib, "ta_get_stats");
	ta_stats a = {.size = sizeof a}, b = a, c = a;
	CHECK(stats(&a) == 0);
	char *p = alloc(1000, TA_WARM), *q = alloc(10 * MIB, TA_COLD);
	CHECK(p != NULL && q != NULL && (uintptr_t)p % 16 == 0);
	memset(p, 1, 1000), memset(q, 1, 10 * MIB);
	errno = 0;
	CHECK(alloc(10, (ta_hint)9) == NULL && errno == EINVAL);
	CHECK(stats(&b) == 0 && b.blocks_live == a.blocks_live + 2 &&
		b.bytes_live >= a.bytes_live + 10 * MIB + 1000);
	void *mine = malloc(1000);
	uintptr_t top = (uintptr_t)sbrk(0);
	CHECK((uintptr_t)mine < top && (uintptr_t)mine > top - 16 * MIB, "malloc is the host's");
	release(p), release(q), release(NULL);
	release(old), release(mine), release(malloc(5 * MIB)); // go to the host's free
	CHECK(stats(&c) == 0 && c.blocks_live == a.blocks_live);
	pid_t pid = fork();
	if (pid == 0) {
		for (int i = 0; i < 1000; i++)
			free(malloc(i)), release(alloc(i, TA_HOT));
		exit(3);
	}
	int status;
	waitpid(pid, &status, 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	if (getenv("CLOSE"))
		dlclose(lib);
}

static void guest_misuse(void)
{
	void *lib = dlopen(getenv("LIB"), RTLD_NOW);
	void *(*alloc)(size_t, ta_hint) = (void *(*)(size_t, ta_hint))dlsym(lib, "ta_alloc");
	void (*release)(void *) = (void (*)(void *))dlsym(lib, "ta_free");
	void *p = alloc(100, TA_WARM);
	release(p);
	printf("%p\n", p), fflush(stdout);
	release(p);
}

static const struct test tests[] = {
	{"show", show}, {"guest", guest}, {"guest misuse", guest_misuse}};

int main(int argc, char **argv) { RUN(tests); }
