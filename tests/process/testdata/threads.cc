// The ends of threads: destructors that allocate, before and after ours.
#include "common.h"
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <vector>

static void work(unsigned seed)
{
	void *p[64];
	for (unsigned i = 0; i < 64; i++) {
		size_t n = (seed * 31 + i * 97) % 3000;
		p[i] = i % 5 == 0 ? calloc(1, n) : malloc(n);
		CHECK(p[i] != NULL);
		memset(p[i], (int)i, n);
	}
	for (unsigned i = 0; i < 64; i++)
		free(p[i]);
}

static pthread_key_t key[30];
static int ran[30];

static void ends(void *v)
{
	int i = (int)(long)v - 1;
	work((unsigned)i);
	__atomic_add_fetch(&ran[i], 1, __ATOMIC_SEQ_CST);
	if (i % 3 == 0)
		pthread_setspecific(key[i], v); // again, until the library's patience ends
}

struct Local {
	std::vector<char *> all;
	~Local()
	{
		for (char *p : all)
			free(p);
		work(7);
		all.assign(100, nullptr);
	}
};
static thread_local Local local;
static std::vector<char *> given; // blocks that the dead thread left

static void *with_keys(void *)
{
	for (long i = 0; i < 30; i++)
		pthread_setspecific(key[i], (void *)(i + 1));
	for (int i = 0; i < 100; i++)
		local.all.push_back((char *)malloc(100 + i));
	for (int i = 0; i < 1000; i++)
		given.push_back((char *)malloc(i));
	work(1);
	return NULL;
}

static void destructors()
{
	for (int i = 0; i < 30; i++)
		pthread_key_create(&key[i], ends);
	for (int round = 0; round < 20; round++) {
		memset(ran, 0, sizeof ran);
		pthread_t t;
		pthread_create(&t, NULL, with_keys, NULL);
		pthread_join(t, NULL);
		for (int i = 0; i < 30; i++)
			CHECK(ran[i] == (i % 3 == 0 ? 4 : 1), "key %d ran %d times", i, ran[i]);
		for (char *p : given)
			free(p);
		given.clear();
	}
	with_keys(NULL); // the main thread's own end is in exit
}

static void *small(void *v)
{
	work((unsigned)(long)v);
	char *big = (char *)malloc(6 * MIB), *lines = NULL;
	big[5] = 1;
	big = (char *)realloc(big, 9 * MIB);
	free(big);
	free(memalign(1 << 20, 100));
	CHECK(asprintf(&lines, "%d", 5) == 1);
	free(lines);
	malloc_trim(0);
	return mallinfo2().arena > 0 ? v : NULL;
}

static void small_stacks()
{
	pthread_attr_t a;
	pthread_attr_init(&a);
	CHECK(pthread_attr_setstacksize(&a, 16384) == 0);
	for (int round = 0; round < 10; round++) {
		pthread_t t[16];
		for (long i = 0; i < 16; i++)
			CHECK(pthread_create(&t[i], &a, small, (void *)(i + 1)) == 0);
		for (int i = 0; i < 16; i++)
			pthread_join(t[i], NULL);
	}
}

static sem_t running;

static void *brief(void *v)
{
	work((unsigned)(long)v);
	return v ? malloc(200) : NULL; // freed by whoever joins
}

static void *brief_detached(void *v)
{
	free(brief(v));
	sem_post(&running);
	return NULL;
}

// 6000 threads, at most 8 at a time: what they leave is what 8 leave.
static void many()
{
	sem_init(&running, 0, 8);
	long base = 0;
	for (long i = 0; i < 4000; i++) {
		pthread_t t;
		sem_wait(&running);
		CHECK(pthread_create(&t, NULL, brief_detached, (void *)i) == 0);
		pthread_detach(t);
		if (i == 500)
			base = rss();
	}
	for (long i = 0; i < 2000; i++) {
		pthread_t t;
		void *p;
		CHECK(pthread_create(&t, NULL, brief, (void *)i) == 0);
		pthread_join(t, &p);
		free(p);
	}
	for (int i = 0; i < 8; i++)
		sem_wait(&running);
	CHECK(rss() - base < (long)(4 * MIB), "%ld KiB more", (rss() - base) / 1024);
}

// The last thread ends the process.
static void main_first() { pthread_t t; pthread_create(&t, NULL, with_keys, NULL); pthread_exit(NULL); }

static const struct test tests[] = {{"destructors", destructors}, {"small stacks", small_stacks}, {"many", many},
	{"main first", main_first}};

int main(int argc, char **argv) { RUN(tests); }
