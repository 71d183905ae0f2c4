// Overwrites its environment, as programs do that change their title, and waits.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

int main(void)
{
	for (char **e = environ; *e; e++)
		memset(*e, 'x', strlen(*e));
	for (int i = 0; i < 50; i++) { // so that the page has figures
		void *volatile p = malloc(1 << 20);
		memset(p, 1, 1 << 20);
		usleep(10000);
	}
	puts("ready");
	fflush(stdout);
	sleep(100);
	return 0;
}
