// grown: blocks that grow by realloc, large ones that another thread frees, and aligned ones. It
// prints for each site what it has allocated and what of it is in use at the end, in bytes.
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define APART __attribute__((noinline, noclone))

enum { ROUNDS = 300, KEPT = 20, MOST = 3 << 20 };

static double allocated[4], in_use[4];

// The bytes of a realloc that counts as a request: the block has no room for n.
static double wanted(char *p, size_t n) { return malloc_usable_size(p) < n ? n : 0; }

// A block that grows from one size to another, by steps.
APART static char *site_grown(size_t n, size_t to)
{
	char *p = malloc(n);
	for (allocated[0] += n; n < to; p = realloc(p, n)) {
		memset(p, 7, 64);
		n += n / 2;
		allocated[0] += wanted(p, n);
	}
	return p;
}

// The same, of which nothing is freed.
APART static char *site_kept(size_t n, size_t to)
{
	char *p = malloc(n);
	for (allocated[1] += n; n < to; p = realloc(p, n)) {
		n += n / 2;
		allocated[1] += wanted(p, n);
	}
	in_use[1] += n;
	return p;
}

APART static void *site_passed(size_t n)
{
	allocated[2] += n;
	return malloc(n);
}

APART static void *site_aligned(size_t align, size_t n)
{
	void *p = NULL;
	allocated[3] += n;
	return posix_memalign(&p, align, n) == 0 ? p : NULL;
}

static void *release(void *p)
{
	free(p);
	return NULL;
}

static void *work(void *sum)
{
	char *kept[KEPT];
	for (int i = 0; i < ROUNDS; i++) {
		char *p = site_grown(2000 + 16 * i, i % 10 == 0 ? MOST : 600 << 10);
		*(char *)sum += p[63];
		free(p);
		free(site_aligned(64 << i % 8, 20000 + 700 * i));
	}
	for (int i = 0; i < KEPT; i++)
		kept[i] = site_kept(10000, 20000 << i % 8);
	return memcpy(malloc(sizeof kept), kept, sizeof kept); // so that they are not unreachable
}

int main(void)
{
	static char sum;
	pthread_t thread;
	void *volatile ends[2];
	for (int i = 0; i < ROUNDS; i++) {
		void *p = site_passed(1000 * (i + 1));
		pthread_create(&thread, NULL, release, p);
		pthread_join(thread, NULL);
	}
	ends[0] = work(&sum);
	pthread_create(&thread, NULL, work, &sum);
	pthread_join(thread, (void **)&ends[1]);
	const char *names[] = {"site_grown", "site_kept", "site_passed", "site_aligned"};
	for (int i = 0; i < 4; i++)
		printf("%s %.0f %.0f\n", names[i], allocated[i], in_use[i]);
	return 0;
}
