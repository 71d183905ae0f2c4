// Hosts of a log. What they do must work as it does without one.
#include "common.h"
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

static void pause_ms(int ms) { nanosleep(&(struct timespec){0, ms * 1000000l}, NULL); }

static void *allocates(void *v)
{
	for (int i = 0; i < 50; i++)
		free(hide(malloc((size_t)i * 100)));
	return v;
}

static void *waits(void *v)
{
	allocates(v);
	for (;;)
		pause();
	return v;
}

// What a block has is purged whether it was touched or not, and a page fault takes long.
static void touch(char *p, size_t n)
{
	for (size_t i = 0; i < n; i += 64 << 10)
		p[i] = 1;
}

// Something of each kind that a log tells of.
static void events(int child)
{
	pthread_t t;
	CHECK(pthread_create(&t, NULL, allocates, NULL) == 0 && pthread_join(t, NULL) == 0);
	void *p = malloc(40 * MIB), *q = malloc(3 * MIB);
	touch(p, 40 * MIB), touch(q, 3 * MIB);
	free(p), free(q);
	if (!child)
		return;
	pid_t pid = fork();
	if (pid == 0) {
		events(0);
		exit(9);
	}
	int status;
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 9);
	dprintf(1, "child %d\n", pid);
}

static void work(void)
{
	for (int i = 0; i < 3; i++)
		events(1), pause_ms(20);
	dprintf(1, "parent %d\n", getpid());
}

static void small(void)
{
	pause_ms(30);
	allocates(NULL);
	pause_ms(30);
}

// A daemon: closes all it finds, and opens files of its own.
static void daemon_like(void)
{
	char name[32];
	pause_ms(30);
	closefrom(3);
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof name, "own.%d", i);
		int fd = open(name, O_CREAT | O_TRUNC | O_RDWR, 0600);
		CHECK(fd == i + 3 && write(fd, "mine", 4) == 4, "descriptor %d, %s", fd, strerror(errno));
	}
	for (int i = 0; i < 20; i++)
		events(i % 5 == 0), pause_ms(10);
	dprintf(1, "end\n");
}

static void sent(int s)
{
	sigset_t one;
	sigemptyset(&one), sigaddset(&one, s);
	CHECK(kill(getpid(), s) == 0);
	pause_ms(1);
	int got = sigtimedwait(&one, NULL, &(struct timespec){.tv_sec = 2});
	CHECK(got == s, "sent %d, got %d", s, got);
}

static int is_fault(int s)
{
	return s == SIGILL || s == SIGTRAP || s == SIGBUS || s == SIGFPE || s == SIGSEGV;
}

// Every signal, blocked in all threads and sent to the process, waits for sigwait.
static void blocked(void)
{
	pthread_t t;
	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	for (int i = 0; i < 2; i++)
		CHECK(pthread_create(&t, NULL, waits, NULL) == 0);
	pause_ms(30);
	for (int s = 1; s <= 64; s++) // 32 and 33 are libc's
		if (s != SIGKILL && s != SIGSTOP && s != 32 && s != 33 && !is_fault(s))
			sent(s);
	for (int s = 1; s <= 11; s++)
		if (is_fault(s))
			sent(s);
	_exit(0);
}

// libc changes the ids of all threads, by a signal to each, and waits for them.
static void ids(void)
{
	pthread_t t;
	alarm(120);
	CHECK(pthread_create(&t, NULL, waits, NULL) == 0);
	pause_ms(30);
	CHECK(setgid(getgid()) == 0 && setuid(getuid()) == 0);
	uid_t to = geteuid() == 0 ? 54300 : geteuid();
	if (geteuid() == 0)
		CHECK(setgroups(0, NULL) == 0 && setgid(54300) == 0 && setuid(to) == 0);
	DIR *d = opendir("/proc/self/task");
	for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
		char path[300];
		snprintf(path, sizeof path, "/proc/self/task/%s/status", e->d_name);
		FILE *f = e->d_name[0] == '.' ? NULL : fopen(path, "r");
		unsigned uid;
		while (f != NULL && fgets(path, sizeof path, f) != NULL)
			CHECK(sscanf(path, "Uid: %u", &uid) != 1 || uid == to, "task %s has uid %u", e->d_name,
				uid);
		if (f != NULL)
			fclose(f);
	}
	_exit(0);
}

static const struct test tests[] = {
	{"work", work}, {"small", small}, {"daemon", daemon_like}, {"blocked", blocked}, {"ids", ids}};

int main(int argc, char **argv) { RUN(tests); }
