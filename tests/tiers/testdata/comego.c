// Threads come and go, one after the other: some use every hint, some allocate
// nothing, some only free, some begin with a realloc of another thread's block. Arguments: how
// many, and what they do. It prints how many thread heaps there are at the end, of running threads
// and of none, and how many bytes the tiers are charged with.
#include "common.h"
#include <malloc.h>

static const char *what;

static void *come(void *arg)
{
	if (strcmp(what, "hints") == 0) {
		for (int h = TA_HOT; h <= TA_PREFER_FAST; h++) {
			void *p = ta_alloc(3000, (ta_hint)h), *q = ta_alloc(300 * KIB, (ta_hint)h);
			CHECK(p != NULL && q != NULL, "errno %d", errno);
			free(p);
			free(q);
			ta_set_hint((ta_hint)h);
			free(malloc(50));
		}
	} else if (strcmp(what, "frees") == 0) {
		free(arg);
	} else if (strcmp(what, "resizes") == 0) {
		CHECK(realloc(arg, 90) == arg, "a block of 100 bytes has moved");
		free(malloc(300 * KIB));
		free(arg);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static char json[256 << 10];
	CHECK(argc == 3, "arguments");
	what = argv[2];
	for (int i = 0; i < atoi(argv[1]); i++) {
		void *p = strcmp(what, "frees") == 0 || strcmp(what, "resizes") == 0 ? malloc(100) : NULL;
		pthread_t thread;
		CHECK(pthread_create(&thread, NULL, come, p) == 0, "pthread_create");
		pthread_join(thread, NULL);
	}
	malloc_trim(0);
	CHECK(ta_stats_json(json, sizeof json) < sizeof json, "the report is long");
	dprintf(1, "%ju %ju %ju\n", (uintmax_t)figure(json, NULL, "thread_heaps"),
		(uintmax_t)figure(json, NULL, "thread_heaps_abandoned"),
		(uintmax_t)(figure(json, "fast", "bytes_current") +
			figure(json, "normal", "bytes_current") + figure(json, "slow", "bytes_current")));
	return 0;
}
