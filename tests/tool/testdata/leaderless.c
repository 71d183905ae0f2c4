// Its first thread ends, and another one stays with 2 MiB.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *stays(void *unused)
{
	char *volatile p = malloc(2 << 20);
	memset(p, 1, 2 << 20);
	puts("ready");
	fflush(stdout);
	pause();
	return unused;
}

int main(void)
{
	pthread_t t;
	pthread_create(&t, NULL, stays, NULL);
	pthread_exit(NULL);
}
