// A library whose constructor forks a process that goes on to main.
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((constructor)) static void begin(void)
{
	int status = -1;
	pid_t child = fork();
	if (child == 0)
		return;
	waitpid(child, &status, 0);
	printf("child status %d\n", status);
	fflush(stdout);
}
