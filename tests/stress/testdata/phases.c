// phases THREADS PHASES SEED: threads that pass through phases of block sizes. Of each phase some
// blocks survive, until another thread, or another phase, comes upon them; so pages are sparse and
// at rest when the heap grows. Each block is full of a byte of its own, which is looked at whenever
// it is resized or freed. Now and then a child is forked, which does the same with what it has got.
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHARED      20000
#define PHASE_BYTES (2u << 20)
#define MOST        60000 // blocks of a phase

struct block {
	uint32_t size; // of the whole
	uint32_t key;  // its lowest byte is what it is full of
	unsigned char rest[];
};

static struct block *_Atomic shared[SHARED];
static int phases;

static const uint32_t sizes[] = {
	24, 40, 48, 64, 96, 120, 144, 200, 256, 320, 400, 500, 700, 1000, 1500, 2000, 4000};

static uint64_t next(uint64_t *s) // xorshift64*
{
	*s ^= *s >> 12;
	*s ^= *s << 25;
	*s ^= *s >> 27;
	return *s * 2685821657736338717u;
}

static void die(const char *what, const void *p, uint32_t size)
{
	fprintf(stderr, "phases: %s: block %p of %u bytes\n", what, p, size);
	abort();
}

static void fill(struct block *b, uint32_t size, uint32_t key)
{
	b->size = size;
	b->key = key;
	memset(b->rest, (int)(key & 255), size - sizeof *b);
}

static void check(const struct block *b, uint32_t size)
{
	for (uint32_t i = 0; i < size - sizeof *b; i++)
		if (b->rest[i] != (unsigned char)b->key)
			die("corrupt", b, b->size);
}

static void drop(struct block *b)
{
	if (b == NULL)
		return;
	check(b, b->size);
	if (malloc_usable_size(b) < b->size)
		die("too small", b, b->size);
	free(b);
}

static struct block *make(uint64_t *random, uint32_t size)
{
	uint64_t r = next(random);
	struct block *b;
	if (r % 16 == 0) {
		b = calloc(1, size);
		for (uint32_t i = 0; b != NULL && i < size; i++)
			if (((char *)b)[i] != 0)
				die("not zero", b, size);
	} else if (r % 16 == 1) {
		size_t align = (size_t)16 << (r >> 8) % 6;
		b = aligned_alloc(align, (size + align - 1) / align * align);
		if ((uintptr_t)b % align != 0)
			die("not aligned", b, size);
	} else {
		b = malloc(size);
	}
	if (b == NULL)
		die("no memory", b, size);
	fill(b, size, (uint32_t)(r >> 32));
	return b;
}

static struct block *resize(uint64_t *random, struct block *b, uint32_t size)
{
	uint32_t old = b->size, key = b->key;
	check(b, old);
	struct block *new = realloc(b, size);
	if (new == NULL || new->size != old || new->key != key)
		die("lost by realloc", new, size);
	check(new, old < size ? old : size);
	fill(new, size, (uint32_t)next(random));
	return new;
}

static void child(uint64_t *random, struct block **live)
{
	for (int i = 0; i < SHARED; i++)
		drop(atomic_exchange(&shared[i], NULL));
	for (int i = 0; i < 2000; i++)
		live[i] = make(random, (uint32_t)(16 + next(random) % 3000));
	for (int i = 0; i < 2000; i++)
		drop(live[i]);
	_exit(0);
}

static void *work(void *seed)
{
	uint64_t random = (uintptr_t)seed * 0x9e3779b97f4a7c15u | 1;
	struct block **live = malloc(MOST * sizeof *live);
	if (live == NULL)
		die("no memory", live, 0);
	for (int phase = 0; phase < phases; phase++) {
		uint32_t size = sizes[next(&random) % (sizeof sizes / sizeof *sizes)];
		size_t n = PHASE_BYTES / size < MOST ? PHASE_BYTES / size : MOST;
		uint64_t every = 4 + next(&random) % 40;
		for (size_t i = 0; i < n; i++)
			live[i] = make(&random, size - size / 8 + (uint32_t)(next(&random) % (size / 4)));
		for (size_t i = 0; i < n; i += 2)
			if (next(&random) % 4 == 0)
				live[i] = resize(&random, live[i], (uint32_t)(16 + next(&random) % (2 * size)));
		for (size_t i = 0; i < n; i++)
			drop(next(&random) % every == 0 ?
					atomic_exchange(&shared[next(&random) % SHARED], live[i]) :
					live[i]);
		if (next(&random) % 32 == 0) {
			pid_t pid = fork();
			int status = 0;
			if (pid == 0)
				child(&random, live);
			if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
				die("child", live, (uint32_t)status);
		}
		if (next(&random) % 64 == 0)
			malloc_trim(0);
	}
	free(live);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t id[64];
	int threads = argc == 4 ? atoi(argv[1]) : 0;
	if (threads < 1 || threads > 64) {
		fprintf(stderr, "usage: phases THREADS PHASES SEED, at most 64 threads\n");
		return 2;
	}
	phases = atoi(argv[2]);
	for (int round = 0; round < 2; round++) { // the second with the first's heaps
		for (int i = 0; i < threads; i++)
			if ((errno = pthread_create(&id[i], NULL, work,
					 (void *)((uintptr_t)atol(argv[3]) * 1000 +
						 (uintptr_t)(round * 100 + i + 1)))) != 0)
				die("thread", NULL, 0);
		for (int i = 0; i < threads; i++)
			pthread_join(id[i], NULL);
	}
	for (int i = 0; i < SHARED; i++)
		drop(shared[i]);
	puts("sound");
	return 0;
}
