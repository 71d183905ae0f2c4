// Under a limit on address space: NULL and ENOMEM, never a crash, and life goes
// on as soon as something is freed.
#include "common.h"
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { MOST = 1 << 20 };
static char *block[MOST];

static void limit(size_t n)
{
	struct rlimit l = {n, n};
	CHECK(setrlimit(RLIMIT_AS, &l) == 0);
}

static void soft_limit(size_t n)
{
	struct rlimit l = {n, RLIM_INFINITY};
	CHECK(setrlimit(RLIMIT_AS, &l) == 0);
}

static size_t hide_size(size_t n) { return (size_t)hide((void *)n); }

static int fill_most(int most, size_t n)
{
	int i = 0;
	for (; i < most; i++) {
		errno = 0;
		block[i] = malloc(n);
		if (block[i] == NULL) {
			CHECK(errno == ENOMEM);
			break;
		}
		block[i][0] = 1;
	}
	return i;
}

static int fill(size_t n) { return fill_most(MOST, n); }

static void drop(int n)
{
	for (int i = 0; i < n; i++)
		free(block[i]);
}

// Fills all there is with blocks of one size after the other.
static void sizes(void)
{
	static const size_t all[] = {300, 64, 5000, 100000, MIB, 3 * MIB, 9 * MIB, 200, 70 * MIB, 1000};
	limit(256 * MIB);
	for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
		size_t n = all[i];
		int got = fill(n);
		CHECK(got == MOST || got * n > 130 * MIB, "only %d blocks of %zu", got, n);
		drop(got);
		void *p = malloc(100 * MIB); // what was freed serves any other size
		CHECK(p != NULL, "100 MiB after %d blocks of %zu", got, n);
		free(p);
	}
}

// Every function without memory, with old blocks intact.
static void functions(void)
{
	limit(256 * MIB);
	char *mine = malloc(5000), *large = malloc(2 * MIB), *huge = malloc(8 * MIB);
	memset(mine, 7, 5000), memset(large, 7, 2 * MIB), memset(huge, 7, 8 * MIB);
	int a = fill(MIB), b = 0;
	for (; b < 5000 && a + b < MOST && (block[a + b] = malloc(3000)) != NULL; b++)
		;
	void *none = (void *)1;
	errno = 0;
	CHECK(calloc(1, 200 * MIB) == NULL && errno == ENOMEM);
	errno = 0;
	CHECK(realloc(hide(mine), 200 * MIB) == NULL && errno == ENOMEM);
	errno = 0;
	CHECK(realloc(hide(large), 200 * MIB) == NULL && errno == ENOMEM);
	errno = 0;
	CHECK(realloc(hide(huge), 200 * MIB) == NULL && errno == ENOMEM);
	errno = 0;
	CHECK(aligned_alloc(4096, 200 * MIB) == NULL && errno == ENOMEM);
	errno = 0;
	CHECK(pvalloc(200 * MIB) == NULL && errno == ENOMEM);
	CHECK(posix_memalign(&none, 1 << 20, 100 * MIB) == ENOMEM && none == (void *)1);
	for (int i = 0; i < 5000; i++)
		CHECK(mine[i] == 7);
	for (unsigned i = 0; i < 2 * MIB; i++)
		CHECK(large[i] == 7 && huge[i] == 7 && huge[i + 6 * MIB] == 7);
	char *less = realloc(huge, 5 * MIB), *least = realloc(large, 100);
	CHECK(less != NULL && less[5 * MIB - 1] == 7 && least != NULL && least[99] == 7,
		"shrinking needs no memory");
	drop(a + b);
	free(less), free(least), free(mine);
	free(calloc(1, 60 * MIB));
}

static pthread_barrier_t all_made; // the first must not leave the last without a stack

static void *greedy(void *seed)
{
	pthread_barrier_wait(&all_made);
	unsigned x = (unsigned)(long)seed;
	void *p[200] = {0};
	int failed = 0;
	for (int i = 0; i < 20000; i++) {
		x = x * 1664525 + 1013904223;
		int k = (x >> 8) % 200;
		size_t n = x >> 28 == 0 ? (x >> 4) % (16 * MIB) : (x >> 4) % 8000;
		free(p[k]);
		p[k] = malloc(n);
		if (p[k] == NULL)
			failed++;
		else if (n > 0)
			*(char *)p[k] = ((char *)p[k])[n - 1] = 1;
	}
	for (int k = 0; k < 200; k++)
		free(p[k]);
	return (void *)(long)failed;
}

static void threads(void)
{
	pthread_t t[4];
	limit(256 * MIB);
	long failed = 0;
	pthread_barrier_init(&all_made, NULL, 4);
	for (long i = 0; i < 4; i++)
		CHECK(pthread_create(&t[i], NULL, greedy, (void *)i) == 0);
	for (int i = 0; i < 4; i++) {
		void *f;
		pthread_join(t[i], &f);
		failed += (long)f;
	}
	CHECK(failed > 0, "the limit was never met");
	void *p = malloc(60 * MIB);
	CHECK(p != NULL);
	free(p);
}

// With TA_SECURE=1: large blocks take what the limit leaves, though each had guards at first; and
// guards leave a part of the limit to the program's own mappings.
static void guards(void)
{
	limit(512 * MIB);
	int first = fill_most(20, 300000);
	CHECK(first == 20);
	void *own = mmap(NULL, 100 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(own != MAP_FAILED && munmap(own, 100 * MIB) == 0);
	drop(first);
	int got = fill(300000);
	CHECK(got * 300000ul > 350 * MIB, "only %d blocks of 300000", got);
	for (int i = 0; i < got; i++)
		CHECK(block[i][0] == 1 && block[i][299999] == 0);
	drop(got);
}

// A limit that comes while the library's log and background thread run leaves the host what it has.
// Under one below what is in use nobody gets any more, and much is logged.
static void lowered(void)
{
	soft_limit(512 * MIB);
	int got = fill(MIB);
	CHECK(got > 300, "only %d MiB", got);
	drop(got);
	soft_limit(16 * MIB);
	for (int i = 0; i < 50000; i++) {
		CHECK(malloc(hide_size(1ul << 40)) == NULL && errno == ENOMEM);
		if (i % 500 == 0)
			usleep(1000); // for the log
	}
	soft_limit(RLIM_INFINITY);
	got = fill_most(100, MIB);
	CHECK(got == 100);
	drop(got);
}

// What the heap has reserved to grow into does not stand in the way of a limit that comes later.
static void reserved(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	CHECK(f != NULL && fscanf(f, "%ld", &pages) == 1 && fclose(f) == 0);
	soft_limit((unsigned long)pages * 4096 + 6 * MIB);
	char *p = malloc(10 * MIB);
	CHECK(p != NULL, "10 MiB with 6 MiB of addresses, and 8 MiB reserved");
	memset(p, 1, 10 * MIB);
	soft_limit(RLIM_INFINITY);
	free(p);
}

static const struct test tests[] = {{"lowered", lowered}, {"guards", guards}, {"sizes", sizes},
	{"functions", functions}, {"threads", threads}, {"reserved", reserved}};

int main(int argc, char **argv) { RUN(tests); }
