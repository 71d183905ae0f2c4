// A thread makes its blocks grow out of their pages, again and again, while another gives
// the library occasion to move what has just grown. Argument: for how long, in
// milliseconds. Contents are checked.
#include "common.h"
#include <malloc.h>

static int stop;

static void *mover(void *unused)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		free(malloc(5 * MIB));
		char *p = malloc(2 * MIB);
		CHECK(p != NULL, "malloc");
		p[0] = 1;
		free(p);
	}
	return unused;
}

int main(int argc, char **argv)
{
	CHECK(argc == 2, "arguments");
	uint64_t end = now_ns() + strtoull(argv[1], NULL, 10) * 1000000;
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, mover, NULL) == 0, "pthread_create");
	for (size_t round = 0; now_ns() < end; round++) {
		size_t n = MIB + round % 8 * 128 * KIB;
		char *p = malloc(n);
		CHECK(p != NULL, "malloc");
		memset(p, (int)round, n);
		p = realloc(p, 6 * MIB);
		CHECK(p != NULL, "realloc");
		for (size_t i = 0; i < n; i += 4 * KIB)
			CHECK(p[i] == (char)round, "offset %zu of %zu", i, n);
		p = realloc(p, 9 * MIB);
		CHECK(p != NULL && p[n - 1] == (char)round, "the last byte of %zu", n);
		free(p);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
	malloc_trim(0);
	static char json[256 << 10];
	CHECK(ta_stats_json(json, sizeof json) < sizeof json, "the report is long");
	dprintf(1, "%ju %ju\n", (uintmax_t)figure(json, "normal", "bytes_current"),
		(uintmax_t)figure(json, "slow", "bytes_current"));
	return 0;
}
