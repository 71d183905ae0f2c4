// Threads that would borrow a heap for each call if they did not keep one.
#include "common.h"
#include "../../../interpose/tieralloc.h"
#include <pthread.h>
#pragma weak ta_stats_json
#pragma weak ta_set_hint

static char text[1 << 20];

static long thread_heaps(void)
{
	static const char key[] = "\"thread_heaps\":";
	CHECK(ta_stats_json(text, sizeof text) < sizeof text);
	const char *at = strstr(text, key);
	CHECK(at != NULL, "%s", text);
	return atol(at + sizeof key - 1);
}

static pthread_barrier_t freed, counted;

static void *frees_null(void *n)
{
	for (long i = 0; i < (long)n; i++)
		free(hide(NULL));
	pthread_barrier_wait(&freed);
	pthread_barrier_wait(&counted);
	return NULL;
}

// The number of heaps that a thread owns after n calls of free(NULL).
static long heaps_after(long n)
{
	pthread_t t;
	long before = thread_heaps();
	CHECK(pthread_create(&t, NULL, frees_null, (void *)n) == 0);
	pthread_barrier_wait(&freed);
	long more = thread_heaps() - before;
	pthread_barrier_wait(&counted);
	CHECK(pthread_join(t, NULL) == 0);
	CHECK(thread_heaps() == before);
	return more;
}

static void nulls(void)
{
	pthread_barrier_init(&freed, NULL, 2);
	pthread_barrier_init(&counted, NULL, 2);
	CHECK(heaps_after(4) == 0);
	CHECK(heaps_after(1000) == 1);
}

static pthread_key_t keys[4];
static int left = 2; // rounds

// A hint that a thread has set holds as long as the thread keeps its heap.
static void destructor(void *v)
{
	CHECK(ta_set_hint(TA_COLD) == TA_COLD);
	free(hide(malloc(100)));
	CHECK(ta_set_hint(TA_COLD) == TA_COLD);
	if (--left != 0)
		pthread_setspecific(keys[3], v);
}

static void *sets_key(void *v)
{
	ta_set_hint(TA_COLD);
	free(hide(malloc(100)));
	pthread_setspecific(keys[3], v);
	return NULL;
}

static void destructors(void) // of a key that is later than the library's
{
	pthread_t t;
	for (int i = 0; i < 4; i++)
		CHECK(pthread_key_create(&keys[i], destructor) == 0);
	long before = thread_heaps();
	CHECK(pthread_create(&t, NULL, sets_key, text) == 0);
	CHECK(pthread_join(t, NULL) == 0);
	CHECK(left == 0);
	CHECK(thread_heaps() == before);
}

static const struct test tests[] = {{"nulls", nulls}, {"destructors", destructors}};

int main(int argc, char **argv)
{
	free(hide(malloc(1)));
	RUN(tests);
}
