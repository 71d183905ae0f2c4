// Fork in every way while other threads allocate like mad.
#include "common.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern pid_t _Fork(void);
extern char **environ;

static volatile int stop;

// Few large blocks are zeroed: each page of one is a page fault after each fork.
static void churn(unsigned *x, void **p, int many, int turns)
{
	for (int i = 0; i < turns; i++) {
		*x = *x * 1664525 + 1013904223;
		int k = (*x >> 8) % many;
		size_t n = *x >> 24 == 0 ? 5 * MIB : *x >> 28 == 0 ? (*x >> 4) % 300000 : (*x >> 4) % 2000;
		free(p[k]);
		p[k] = *x & 1 || (n > MIB && (*x >> 16 & 7) != 0) ? malloc(n) : calloc(1, n);
		CHECK(p[k] != NULL, "%zu", n);
		if (n > 0)
			*(char *)p[k] = 1;
	}
}

static void *mad(void *seed)
{
	unsigned x = (unsigned)(long)seed;
	void *p[300] = {0};
	while (!stop)
		churn(&x, p, 300, 1000);
	for (int i = 0; i < 300; i++)
		free(p[i]);
	return NULL;
}

static void *once(void *v)
{
	unsigned x = 5;
	void *p[100] = {0};
	churn(&x, p, 100, 500);
	for (int i = 0; i < 100; i++)
		free(p[i]);
	return v;
}

static void ended_well(pid_t pid, int want)
{
	int status = -1;
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == want, "status %#x", status);
}

static void **given;
enum { GIVEN = 500 };

static void give(void)
{
	given = malloc(GIVEN * sizeof *given);
	for (int i = 0; i < GIVEN; i++)
		given[i] = strcpy(malloc(10 + i * 37), "parent");
	given[0] = realloc(given[0], 9 * MIB);
	strcpy(given[0], "parent");
}

// What a child does: frees what the parent made, allocates, makes threads, forks.
static void be_a_child(int depth)
{
	alarm(120); // a child that hangs dies
	for (int i = 0; i < GIVEN; i++) {
		CHECK(strcmp(given[i], "parent") == 0);
		if (i % 3 == 0)
			given[i] = realloc(given[i], 3000);
		free(given[i]);
		given[i] = strcpy(malloc(500), "parent");
	}
	once(NULL);
	pthread_t t[3];
	for (int i = 0; i < 3; i++)
		CHECK(pthread_create(&t[i], NULL, once, NULL) == 0);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	if (depth > 0) {
		pid_t pid = fork();
		if (pid == 0)
			be_a_child(depth - 1);
		ended_well(pid, 3);
	}
	_exit(3);
}

static pthread_t thread[3];

static void start(void)
{
	give();
	for (long i = 0; i < 3; i++)
		CHECK(pthread_create(&thread[i], NULL, mad, (void *)i) == 0);
}

static void finish(void)
{
	stop = 1;
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
}

static void threads(void)
{
	start();
	for (int i = 0; i < 60; i++) {
		pid_t pid = fork();
		if (pid == 0)
			be_a_child(i % 8 == 0 ? 2 : 0);
		ended_well(pid, 3);
	}
	finish();
}

// _Fork and a raw clone skip the fork handlers. The parent has one thread.
static void unprepared(void)
{
	give();
	for (int i = 0; i < 20; i++) {
		pid_t pid = i % 2 ? _Fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
		if (pid == 0) {
			unsigned x = (unsigned)i;
			void *p[100] = {0};
			churn(&x, p, 100, 3000);
			for (int k = 0; k < GIVEN; k++)
				free(given[k]);
			_exit(3);
		}
		ended_well(pid, 3);
		once(NULL);
	}
}

static void vforks(void)
{
	start();
	for (int i = 0; i < 100; i++) {
		pid_t pid = vfork();
		if (pid == 0) {
			if (i % 2)
				execl("/no/such/program", "x", NULL);
			else
				execl("/bin/true", "true", NULL);
			_exit(44);
		}
		ended_well(pid, i % 2 ? 44 : 0);
		char *bad[] = {"x", NULL}, *good[] = {"true", NULL};
		CHECK(posix_spawn(&pid, "/no/such/program", NULL, NULL, bad, environ) == ENOENT);
		CHECK(posix_spawnp(&pid, "true", NULL, NULL, good, environ) == 0);
		ended_well(pid, 0);
		if (i % 10 == 0)
			CHECK(system("exit 5") == 5 << 8);
	}
	finish();
}

static const struct test tests[] = {
	{"threads", threads}, {"unprepared", unprepared}, {"vfork", vforks}};

int main(int argc, char **argv) { RUN(tests); }
