// Allocates 256 MiB in blocks of 64 KiB, slowly enough for a profile now and then. With "kill" it
// is then killed; any other argument is an empty folder that it removes first.
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int die = argc > 1 && strcmp(argv[1], "kill") == 0;
	if (!die && rmdir(argv[1]) != 0)
		return 1;
	for (int i = 0; i < 4096; i++) {
		char *p = malloc(64 << 10);
		if (p == NULL)
			return 2;
		p[0] = 1;
		if (i % 16 == 0)
			nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
		if (i % 2)
			free(p);
	}
	if (die)
		kill(getpid(), SIGKILL);
	return 0;
}
