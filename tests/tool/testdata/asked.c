// Prints a line when it runs. "busy" allocates and keeps a tenth; "idle" has allocated; "forks" is
// busy and prints the number of a child that is, too.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void *kept[1 << 16];

__attribute__((noinline)) void *keeper(void) { return memset(malloc(100000), 1, 1000); }

__attribute__((noinline)) void *child_keeper(void) { return memset(malloc(100000), 2, 1000); }

static void run(void *(*get)(void))
{
	for (unsigned i = 0; i < 10 * (1 << 16); i++) {
		void *p = get();
		if (i % 10 == 0)
			kept[i / 10] = p;
		else
			free(p);
		nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	for (int i = 0; i < 200; i++)
		kept[i] = keeper();
	if (strcmp(mode, "forks") == 0) {
		pid_t child = fork();
		if (child == 0)
			run(child_keeper);
		printf("%d\n", (int)child);
	} else {
		puts("ready");
	}
	fflush(stdout);
	if (strcmp(mode, "idle") != 0)
		run(keeper);
	else
		pause();
	return 0;
}
