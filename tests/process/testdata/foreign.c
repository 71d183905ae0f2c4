// Blocks that libc's own malloc made, by way of its name in libc.so.6.
#include "common.h"
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>

static void *(*libc_malloc)(size_t);

static void find(void)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW);
	CHECK(libc != NULL);
	libc_malloc = (void *(*)(size_t))dlvsym(libc, "malloc", "GLIBC_2.2.5");
	CHECK(libc_malloc != NULL && libc_malloc != (void *(*)(size_t))malloc);
	CHECK(dlsym(libc, "malloc") == (void *)libc_malloc);
}

static void small(void)
{
	find();
	for (size_t n = 1; n < 3000; n += 7) {
		void *p = libc_malloc(n);
		CHECK(malloc_usable_size(p) >= n);
		free(p);
		char *q = libc_malloc(n);
		memset(q, 3, n);
		q = realloc(q, n + 500);
		CHECK(q[0] == 3 && q[n - 1] == 3);
		free(q);
	}
}

static void large(void)
{
	find();
	void *p = libc_malloc(3 * MIB);
	free(p);
}

static void *in_arena(void *unused)
{
	free(libc_malloc(100));
	return unused;
}

static void thread(void)
{
	find();
	free(libc_malloc(100)); // the first thread to ask gets the main arena
	pthread_t t;
	pthread_create(&t, NULL, in_arena, NULL);
	pthread_join(t, NULL);
}

// Where a setting makes malloc libc's own, its blocks lie in the brk heap.
static void is_libcs(void)
{
	struct mallinfo2 a = mallinfo2();
	char *p = malloc(1000), *q = calloc(10, 100), *r = realloc(malloc(10), 2000),
		 *s = aligned_alloc(64, 640);
	struct mallinfo2 b = mallinfo2();
	uintptr_t top = (uintptr_t)sbrk(0);
	char *block[] = {p, q, r, s};
	for (int i = 0; i < 4; i++)
		CHECK((uintptr_t)block[i] > top - 16 * MIB && (uintptr_t)block[i] < top, "%p", block[i]);
	void *v;
	CHECK(posix_memalign(&v, 256, 100) == 0 && (uintptr_t)v % 256 == 0 &&
		malloc_usable_size(v) >= 100);
	free(p), free(q), free(r), free(s), free(v);
	printf("%d\n", b.uordblks >= a.uordblks + 4000);
}

static const struct test tests[] = {
	{"small", small}, {"large", large}, {"thread", thread}, {"is libc's", is_libcs}};

int main(int argc, char **argv) { RUN(tests); }
