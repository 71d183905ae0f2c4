// A program that checks every byte it keeps while the kernel refuses. It ends with
// 0, or with 3 when it saw NULL and ENOMEM (or EAGAIN from pthread_create).
#include "common.h"
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>

static int refused;

static void missed(void)
{
	CHECK(errno == ENOMEM);
	__atomic_store_n(&refused, 1, __ATOMIC_RELAXED);
}

// Every byte up to a page, then a few of each page, and far inside one of every fourth page tell
// their place and the seed.
static size_t next(size_t i, size_t n)
{
	size_t step = i < 4096 ? 1 : i < 65536 ? 509 : 16381;
	return i + 1 == n || i + step < n ? i + step : n - 1;
}
static char mark(size_t i, int seed) { return (char)(i * 31 ^ i >> 9 ^ (size_t)seed * 77); }

static void fill(char *p, size_t n, int seed)
{
	for (size_t i = 0; i < n; i = next(i, n))
		p[i] = mark(i, seed);
}

// The first n bytes are those of the filled ones.
static void same(const char *p, size_t n, size_t filled, int seed)
{
	for (size_t i = 0; i < n; i = next(i, filled))
		CHECK(p[i] == mark(i, seed), "byte %zu of %zu, seed %d", i, n, seed);
}

static void mixed(int seed, int count)
{
	static const size_t sizes[] = {
		10, 100, 900, 5000, 30000, 100000, 400000, 900000, 3 * MIB, 6 * MIB};
	char *p[40];
	size_t size[40];
	for (int i = 0; i < count; i++) {
		size[i] = sizes[i % 10] + (size_t)i;
		errno = 0;
		p[i] = i % 3 ? malloc(size[i]) : calloc(1, size[i]);
		p[i] == NULL ? missed() : fill(p[i], size[i], seed + i);
	}
	for (int i = 0; i < count; i++)
		if (p[i] != NULL)
			same(p[i], size[i], size[i], seed + i), free(p[i]);
}

// Growth through the classes to huge blocks, with walls in between so that it moves.
static void growth(int seed, size_t most)
{
	size_t n = 1000;
	char *p = malloc(n);
	if (p == NULL)
		return missed();
	for (size_t to = 3000; to <= most; to = to * 2 + 100) {
		fill(p, n, seed);
		void *wall = malloc(to);
		errno = 0;
		char *q = realloc(p, to);
		same(q == NULL ? p : q, n, n, seed);
		if (q == NULL)
			missed();
		else
			p = q, n = to;
		free(wall);
	}
	fill(p, n, seed);
	char *q = realloc(p, 700000); // what shrinks may not fail
	CHECK(q != NULL || n < 700000);
	if (q != NULL)
		same(q, n < 700000 ? n : 700000, n, seed);
	free(q != NULL ? q : p);
}

static void *worker(void *v)
{
	int seed = (int)(long)v * 100;
	mixed(seed, 9);
	growth(seed, 2 * MIB);
	return NULL;
}

static void work(void)
{
	pthread_t t[4];
	int made = 0;
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 << 10); // libc may abort when it cannot unmap larger ones
	growth(1, 24 * MIB);
	while (made < 4 && pthread_create(&t[made], &attr, worker, (void *)(long)made) == 0)
		made++;
	if (made < 4)
		__atomic_store_n(&refused, 1, __ATOMIC_RELAXED);
	mixed(1000, 40);
	while (made > 0)
		pthread_join(t[--made], NULL);
	malloc_trim(0);
	for (int i = 0; i < 3; i++)
		mixed(2000 + i, 40);
	growth(2, 12 * MIB);
	exit(refused ? 3 : 0);
}

static size_t vm_size(void)
{
	size_t pages = 0;
	malloc_trim(0);
	FILE *f = fopen("/proc/self/statm", "r");
	CHECK(f != NULL && fscanf(f, "%zu", &pages) == 1);
	fclose(f);
	return pages * 4096;
}

static char *protect(char *p, int prot)
{
	char *page = (char *)(((uintptr_t)p + MIB + 4095) & ~4095ul);
	mprotect(page, 4096, prot); // a block that is gone may have taken it along
	return page;
}

// Grows a block that is several mappings to the kernel, since a page of it cannot be
// written; sometimes it is the first growth of many blocks, sometimes it goes on.
static void protected(size_t from, size_t by, int on)
{
	size_t before = vm_size(), n = from, live = 0;
	char *p = malloc(n);
	for (int i = 0; i < 50; i++) {
		fill(p, n, i);
		protect(p, PROT_READ);
		char *q = realloc(p, n + by), *old = hide(p);
		CHECK(q != NULL);
		protect(old, PROT_READ | PROT_WRITE), protect(q, PROT_READ | PROT_WRITE);
		same(q, n, n, i);
		p = q, n += by;
		if (!on)
			free(p), p = malloc(n = from);
	}
	live = malloc_usable_size(p);
	CHECK(vm_size() < before + live + 64 * MIB, "%zu MiB, before %zu, the block %zu",
		vm_size() >> 20, before >> 20, live >> 20);
	free(p);
}
static void huge_once(void) { protected(8 * MIB, 12 * MIB, 0); }
static void huge_on(void) { protected(8 * MIB, MIB / 2, 1); }
static void large_once(void) { protected(3 * MIB, 17 * MIB, 0); }

static const struct test tests[] = {
	{"work", work}, {"huge once", huge_once}, {"huge on", huge_on}, {"large once", large_once}};
int main(int argc, char **argv) { RUN(tests); }
