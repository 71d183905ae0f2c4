/* Ends as its argument says. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static sigjmp_buf back;
static volatile int zero;

static void handler(int sig) { siglongjmp(back, sig); }

static void overflow(volatile char *above)
{
	volatile char frame[4096];
	frame[0] = above ? above[0] : 0;
	overflow(frame);
	frame[1] = frame[0];
}

/* A handler on its own stack catches a stack overflow, and malloc still works. */
static int caught(void)
{
	stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
	struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
	sigaltstack(&stack, NULL);
	sigaction(SIGSEGV, &sa, NULL);
	for (int i = 0; i < 3; i++) {
		int sig = sigsetjmp(back, 1);
		if (sig == 0)
			overflow(NULL);
		char *p = malloc(100000);
		memset(p, 1, 100000);
		free(p);
		printf("caught %d\n", sig);
	}
	return 21;
}

static void *raise_segv(void *arg)
{
	free(malloc(100));
	*(volatile int *)arg = 1;
	return NULL;
}

int main(int argc, char **argv)
{
	struct rlimit none = {0, 0};
	const char *how = argc > 1 ? argv[1] : "";
	setrlimit(RLIMIT_CORE, &none);
	char *held = strdup(how);
	if (!strcmp(how, "segv"))
		*(volatile int *)8 = 1;
	if (!strcmp(how, "thread")) {
		pthread_t t;
		pthread_create(&t, NULL, raise_segv, (void *)16);
		pthread_join(t, NULL);
	}
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "fpe"))
		return 7 / zero;
	if (!strcmp(how, "bus")) {
		char name[] = "busXXXXXX";
		int fd = mkstemp(name);
		unlink(name);
		*(volatile char *)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) = 1;
	}
	if (!strcmp(how, "pipe")) {
		int fd[2];
		if (pipe(fd) || close(fd[0]) || write(fd[1], "x", 1) != 1)
			return 1;
	}
	if (!strcmp(how, "urg")) /* ignored by default */
		raise(SIGURG);
	if (!strcmp(how, "caught"))
		return caught();
	if (!strcmp(how, "quick"))
		quick_exit(22);
	if (!strcmp(how, "exec") && argc > 2) { /* argv[2] more times */
		char left[12];
		snprintf(left, sizeof left, "%d", atoi(argv[2]) - 1);
		execl(argv[0], argv[0], atoi(left) ? "exec" : "done", left, (char *)NULL);
	}
	printf("%s\n", held);
	free(held);
	return 20;
}
