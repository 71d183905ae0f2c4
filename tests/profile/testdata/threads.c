// threads allocates from one stack in two threads of different names, and frees half.
#include <pthread.h>
#include <stdlib.h>

__attribute__((noinline)) static void shared(int i)
{
	char *volatile p = malloc(100000);
	*p = 1;
	if (i % 2 == 0)
		free(p);
}

static void *work(void *name)
{
	pthread_setname_np(pthread_self(), name);
	for (int i = 0; i < 100; i++)
		shared(i);
	return NULL;
}

int main(void)
{
	static char *names[] = {"one", "two"};
	for (int i = 0; i < 2; i++) {
		pthread_t t;
		pthread_create(&t, NULL, work, names[i]);
		pthread_join(t, NULL);
	}
	return 0;
}
