// The library's own thread works while the program's threads come and go, and one frees
// large blocks that are soon to be purged. Argument: for how long, in milliseconds. It
// prints how many threads there were.
#include "common.h"

static int stop;

static void *churn(void *unused)
{
	(void)unused;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		for (size_t i = 0; i < 5; i++) {
			char *p = malloc(5 * MIB + i * SLICE);
			CHECK(p != NULL, "malloc");
			p[i] = 1;
			free(p);
		}
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	return NULL;
}

static void *come(void *unused)
{
	free(malloc(10));
	return unused;
}

int main(int argc, char **argv)
{
	CHECK(argc == 2, "arguments");
	uint64_t end = now_ns() + strtoull(argv[1], NULL, 10) * 1000000;
	static char *kept[20000];
	for (int i = 0; i < 20000; i++)
		CHECK((kept[i] = malloc(60000)) != NULL, "malloc");
	pthread_t churner, t;
	CHECK(pthread_create(&churner, NULL, churn, NULL) == 0, "pthread_create");
	int threads = 0;
	for (; now_ns() < end; threads++) {
		CHECK(pthread_create(&t, NULL, come, NULL) == 0, "pthread_create");
		pthread_join(t, NULL);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(churner, NULL);
	printf("%d\n", threads);
	return 0;
}
