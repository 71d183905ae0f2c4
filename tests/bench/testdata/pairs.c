// pairs MODE SIZE [COUNT] prints the nanoseconds of a malloc and a free of SIZE
// bytes, each block's first byte written in between.
//
//	lifo     malloc, free
//	random   256 live blocks: free one of them, allocate it anew
//	fifo     allocate 256, free them in the same order
//	reverse  allocate 256, free the last first
//	cross    one thread allocates, another frees, in batches of 64 through a ring
//	calloc   calloc, free
//	aligned  posix_memalign to 64 bytes, free
//	stays    realloc of a block, by turns to its size and to one byte less
//	usable   malloc_usable_size of a block
//
// It runs for some 30 ms, or for COUNT pairs. The time is the processor's, not the
// clock's, so that whoever else is on the machine has little part in it; but for cross,
// whose threads wait for each other. With MODE tier it prints the number of the
// tier that such a block lies in, by ta_tier_of, instead.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TABLE  256
#define RUN_NS 30000000

static size_t size;
static char *table[TABLE];
static clockid_t watch = CLOCK_THREAD_CPUTIME_ID;

static long now(void)
{
	struct timespec t;
	clock_gettime(watch, &t);
	return t.tv_sec * 1000000000l + t.tv_nsec;
}

static inline char *get(void)
{
	char *p = malloc(size);
	if (p == NULL)
		abort();
	*(volatile char *)p = 1;
	return p;
}

static void lifo(long n)
{
	for (long i = 0; i < n; i++)
		free(get());
}

static void zeroed(long n)
{
	for (long i = 0; i < n; i++) {
		char *p = calloc(1, size);
		if (p == NULL)
			abort();
		*(volatile char *)p = 1;
		free(p);
	}
}

static void aligned(long n)
{
	for (long i = 0; i < n; i++) {
		void *p;
		if (posix_memalign(&p, 64, size) != 0)
			abort();
		*(volatile char *)p = 1;
		free(p);
	}
}

static void stays(long n)
{
	char *p = get();
	for (long i = 0; i < n; i++)
		if ((p = realloc(p, size - (size_t)(i & 1))) == NULL)
			abort();
	free(p);
}

static void usable(long n)
{
	char *volatile p = get();
	for (long i = 0; i < n; i++)
		if (malloc_usable_size(p) < size)
			abort();
	free(p);
}

static void random_order(long n)
{
	static uint64_t state = 1;
	for (long i = 0; i < n; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		char **slot = &table[state >> 56];
		free(*slot);
		*slot = get();
	}
}

static void fifo(long n)
{
	for (long done = 0; done < n; done += TABLE) {
		for (int i = 0; i < TABLE; i++)
			table[i] = get();
		for (int i = 0; i < TABLE; i++)
			free(table[i]);
	}
}

static void reverse(long n)
{
	for (long done = 0; done < n; done += TABLE) {
		for (int i = 0; i < TABLE; i++)
			table[i] = get();
		for (int i = TABLE; i > 0; i--)
			free(table[i - 1]);
	}
}

// The ring has one producer and one consumer; each has its own count.
enum { BATCH = 64, RING = 16 };
static char *ring[RING][BATCH];
static _Atomic long made, freed;
static long batches;

// Waiting costs the other thread nothing while there is a processor for each, and
// gives way to it where there is not.
static void pause_or_yield(int *spins)
{
	if (++*spins % 1024 == 0)
		sched_yield();
	__builtin_ia32_pause();
}

static void *consume(void *unused)
{
	for (long i = 0; i < batches; i++) {
		for (int spins = 0; atomic_load_explicit(&made, memory_order_acquire) <= i;)
			pause_or_yield(&spins);
		for (int k = 0; k < BATCH; k++)
			free(ring[i % RING][k]);
		atomic_store_explicit(&freed, i + 1, memory_order_release);
	}
	return unused;
}

static void cross(long n)
{
	pthread_t t;
	made = freed = 0;
	batches = (n + BATCH - 1) / BATCH;
	if (pthread_create(&t, NULL, consume, NULL) != 0)
		abort();
	for (long i = 0; i < batches; i++) {
		for (int spins = 0; atomic_load_explicit(&freed, memory_order_acquire) + RING <= i;)
			pause_or_yield(&spins);
		for (int k = 0; k < BATCH; k++)
			ring[i % RING][k] = get();
		atomic_store_explicit(&made, i + 1, memory_order_release);
	}
	pthread_join(t, NULL);
}

// Doubles the number of pairs until a run is long enough, then measures a run.
static double measure(void (*run)(long))
{
	long n = 1024;
	for (;;) {
		long start = now();
		run(n);
		long took = now() - start;
		if (took > RUN_NS / 8 || n > 1 << 28) {
			n = (double)n * RUN_NS / (took + 1);
			break;
		}
		n *= 2;
	}
	n = (n + TABLE - 1) / TABLE * TABLE;
	long start = now();
	run(n);
	return (double)(now() - start) / n;
}

static int tier(void)
{
	int (*tier_of)(const void *) = (int (*)(const void *))dlsym(RTLD_DEFAULT, "ta_tier_of");
	return tier_of != NULL ? tier_of(get()) : -1;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(long);
	} modes[] = {{"lifo", lifo}, {"random", random_order}, {"fifo", fifo}, {"reverse", reverse},
		{"cross", cross}, {"calloc", zeroed}, {"aligned", aligned}, {"stays", stays},
		{"usable", usable}};
	if (argc == 3 && strcmp(argv[1], "tier") == 0) {
		size = strtoul(argv[2], NULL, 0);
		printf("%d\n", tier());
		return 0;
	}
	for (size_t i = 0; argc >= 3 && i < sizeof modes / sizeof *modes; i++) {
		if (strcmp(argv[1], modes[i].name) != 0)
			continue;
		size = strtoul(argv[2], NULL, 0);
		if (modes[i].run == cross)
			watch = CLOCK_MONOTONIC;
		if (argc > 3)
			modes[i].run(atol(argv[3]));
		else
			printf("%.3f\n", measure(modes[i].run));
		return 0;
	}
	fprintf(stderr,
		"usage: pairs lifo|random|fifo|reverse|cross|calloc|aligned|stays|usable SIZE [COUNT], or pairs tier SIZE\n");
	return 2;
}
