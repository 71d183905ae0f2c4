// Allocates in every way, in threads and forked children, so that all of the library's paths are
// taken.
#include "common.h"
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>

static void work(void)
{
	void *p[200] = {NULL};
	for (unsigned i = 0, x = 1; i < 6000; i++, x = x * 1664525 + 1013904223) {
		size_t n = (x >> 4) % (i % 50 == 0 ? 3 << 20 : 3000);
		void **q = &p[(x >> 20) % 200];
		switch (x >> 30) {
		case 0:
			free(*q);
			*q = hide(malloc(n));
			break;
		case 1:
			free(*q);
			*q = hide(calloc(1, n));
			break;
		case 2:
			*q = realloc(*q, n + 1);
			break;
		default:
			free(*q);
			*q = NULL;
			CHECK(posix_memalign(q, 4096, n) == 0);
		}
	}
	for (int i = 0; i < 200; i++)
		free(p[i]);
}

static void *thread(void *v)
{
	work();
	return v;
}

int main(void)
{
	pthread_t t[4];
	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&t[i], NULL, thread, NULL) == 0);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	CHECK(dlopen("libm.so.6", RTLD_NOW | RTLD_DEEPBIND) != NULL);
	pid_t child = fork();
	work();
	if (child == 0)
		_exit(5);
	int status;
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 5);
	printf("done\n");
	return 0;
}
