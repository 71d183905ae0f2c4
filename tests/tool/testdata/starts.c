/* Starts the program of its arguments in each of the ways that there are, from the first thread and
   from another, and ends with how many of them failed. */
#define _GNU_SOURCE
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char **args;

static int ended(pid_t pid)
{
	int status;
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static void *start(void *failed)
{
	pid_t pid = fork();
	if (pid == 0) {
		execv(args[0], args);
		_exit(127);
	}
	*(int *)failed += !ended(pid);
	pid = vfork();
	if (pid == 0) {
		execv(args[0], args);
		_exit(127);
	}
	*(int *)failed += !ended(pid);
	*(int *)failed += posix_spawn(&pid, args[0], NULL, NULL, args, environ) || !ended(pid);
	return NULL;
}

static void *turn(void *unused)
{
	execv(args[0], args); /* the first thread is gone then, and this one has its number */
	return unused;
}

int main(int argc, char **argv)
{
	int failed = argc < 2;
	pthread_t thread;
	args = argv + 1;
	start(&failed);
	if (pthread_create(&thread, NULL, start, &failed) || pthread_join(thread, NULL) || failed)
		return 1;
	pthread_create(&thread, NULL, turn, NULL);
	pause();
	return 1;
}
