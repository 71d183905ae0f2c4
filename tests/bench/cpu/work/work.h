// What the workloads have in common. Each is a program of its own, after a pattern that the
// literature on allocators knows:
//
//	PROGRAM THREADS SCALE REST
//
// THREADS work at once, each doing as much as one alone would; SCALE is the work in
// thousandths of the usual; REST is how many milliseconds an allocator has to give memory
// back before what is still resident counts as its steady figure (0: that is left out).
//
// Every block is written at its start, on each of its pages and at its end, and all that is
// checked before it is freed. The words written depend on nothing but the arguments, so that
// their sum, which the program prints, is the same under every allocator. A block that holds
// something else ends the program with status 1.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGE        4096ul
#define MAX_THREADS 1024

// With STILL defined a program is its pattern alone: once there are blocks for it, they are used
// again as they are, and malloc and free are not called. What that takes is not the allocator's.

// What one thread writes keeps this far from what another does: processors fetch lines of 64
// bytes in pairs, and lines that two write would be what is measured.
#define APART _Alignas(128)

static int threads;
static long scale, rest;

static _Noreturn __attribute__((unused)) void die(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
	exit(1);
}

static long argument(const char *text, long most)
{
	char *end;
	long n = strtol(text, &end, 10);
	if (*text == 0 || *end != 0 || n < 0 || n > most) {
		fprintf(stderr, "%s: %s: a number up to %ld is wanted\n", program_invocation_short_name,
			text, most);
		exit(2);
	}
	return n;
}

static void begin(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: %s THREADS SCALE REST\n", program_invocation_short_name);
		exit(2);
	}
	threads = (int)argument(argv[1], MAX_THREADS);
	scale = argument(argv[2], 1000000);
	rest = argument(argv[3], 60000);
	if (threads == 0)
		threads = 1;
}

// n at the usual scale; at least 1.
static inline long scaled(long n)
{
	n = n * scale / 1000;
	return n > 0 ? n : 1;
}

// The next of a sequence of random numbers (xorshift64*, by Vigna).
static inline uint64_t next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dul;
}

// The start of the sequence with this number.
static inline uint64_t seed(uint64_t number)
{
	uint64_t s = (number + 1) * 0x9e3779b97f4a7c15ul;
	s ^= s >> 29;
	return s != 0 ? s : 1;
}

// A size from least to most - 1.
static inline size_t between(uint64_t random, size_t least, size_t most)
{
	return least + (size_t)((random >> 16) % (most - least));
}

// A size from 1 << low to (1 << high) - 1; each power of two is as likely as any other.
static inline size_t skewed(uint64_t random, unsigned low, unsigned high)
{
	size_t power = 1ul << (low + (random >> 48) % (high - low));
	return power + ((random >> 8) & (power - 1));
}

static inline void write_word(char *p, uint64_t word) { __builtin_memcpy(p, &word, sizeof word); }

static inline uint64_t read_word(const char *p)
{
	uint64_t word;
	__builtin_memcpy(&word, p, sizeof word);
	return word;
}

static _Noreturn __attribute__((noinline, cold)) void corrupt(const void *p, size_t n, size_t at)
{
	fprintf(stderr,
		"%s: a block of %zu bytes at %p does not hold what was written at its byte %zu\n",
		program_invocation_short_name, n, p, at);
	_exit(1);
}

// Writes the key where check looks for it.
static inline void stamp(char *p, size_t n, uint64_t key)
{
	if (n < sizeof key) {
		for (size_t i = 0; i < n; i++)
			p[i] = (char)key;
		return;
	}
	for (size_t at = 0; at == 0 || at + 2 * sizeof key <= n; at += PAGE)
		write_word(p + at, key + at);
	if (n >= 2 * sizeof key)
		write_word(p + n - sizeof key, ~key);
}

static inline void check(const char *p, size_t n, uint64_t key)
{
	if (n < sizeof key) {
		for (size_t i = 0; i < n; i++)
			if (p[i] != (char)key)
				corrupt(p, n, i);
		return;
	}
	for (size_t at = 0; at == 0 || at + 2 * sizeof key <= n; at += PAGE)
		if (read_word(p + at) != key + at)
			corrupt(p, n, at);
	if (n >= 2 * sizeof key && read_word(p + n - sizeof key) != ~key)
		corrupt(p, n, n - sizeof key);
}

// A block and what it holds.
struct block {
	char *p;
	size_t n;
	uint64_t key;
};

static inline struct block get(size_t n, uint64_t key)
{
	struct block b = {malloc(n), n, key};
	if (b.p == NULL)
		die("malloc");
	stamp(b.p, n, key);
	return b;
}

// Frees the block, if there is one, and returns its key.
static inline uint64_t put(struct block *b)
{
	if (b->p == NULL)
		return 0;
	check(b->p, b->n, b->key);
	free(b->p);
	b->p = NULL;
	return b->key;
}

// Uses a block again for another key and returns the one that it had.
static inline uint64_t again(struct block *b, uint64_t key)
{
	uint64_t old = b->key;
	check(b->p, b->n, old);
	stamp(b->p, b->n, key);
	b->key = key;
	return old;
}

// A block that says itself what it holds, so that a pointer is all that others need.
struct parcel {
	uint64_t n, key, seal;
	char rest[];
};

static inline uint64_t seal(uint64_t n, uint64_t key) { return (key ^ n) * 0x9e3779b97f4a7c15ul; }

// Writes a parcel of n bytes in all.
static inline struct parcel *fill(struct parcel *p, size_t n, uint64_t key)
{
	p->n = n;
	p->key = key;
	p->seal = seal(n, key);
	stamp(p->rest, n - sizeof *p, key);
	return p;
}

// A parcel of n bytes in all, or of the least that there can be.
static inline struct parcel *pack(size_t n, uint64_t key)
{
	if (n < sizeof(struct parcel))
		n = sizeof(struct parcel);
	struct parcel *p = malloc(n);
	if (p == NULL)
		die("malloc");
	return fill(p, n, key);
}

// Returns the parcel's key.
static inline uint64_t key_of(const struct parcel *p)
{
	if (p->seal != seal(p->n, p->key))
		corrupt(p, p->n, 0);
	check(p->rest, p->n - sizeof *p, p->key);
	return p->key;
}

// Frees the parcel, if there is one, and returns its key.
static inline uint64_t unpack(struct parcel *p)
{
	if (p == NULL)
		return 0;
	uint64_t key = key_of(p);
	free(p);
	return key;
}

// Runs f on n threads, with the elements of an array, and waits for them.
static __attribute__((unused)) void crew(int n, void *(*f)(void *), void *array, size_t size)
{
	pthread_t id[MAX_THREADS];
	for (int i = 0; i < n; i++)
		if ((errno = pthread_create(&id[i], NULL, f, (char *)array + (size_t)i * size)) != 0)
			die("pthread_create");
	for (int i = 0; i < n; i++)
		pthread_join(id[i], NULL);
}

// An array of n zeroed elements, from the kernel: the program's own book-keeping is the
// same under all allocators.
static __attribute__((unused)) void *table(size_t n, size_t size)
{
	void *p = mmap(NULL, n * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

// Prints what is resident when an allocator has had time, and one more pair of calls, to
// give back what is free. The time is printed too: it is not the workload's.
static __attribute__((unused)) void steady(void)
{
	char text[4096], *rss;
	struct timespec t = {rest / 1000, rest % 1000 * 1000000};
	if (rest == 0)
		return;
	nanosleep(&t, NULL);
	free(malloc(64));
	int fd = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (fd >= 0)
		close(fd);
	printf("rested %ld\n", rest);
	if (n <= 0) // a kernel before 4.14
		return;
	text[n] = 0;
	if ((rss = strstr(text, "\nRss:")) != NULL)
		printf("steady %ld\n", strtol(rss + 5, NULL, 10));
}

static int finish(uint64_t sum)
{
	printf("sum %016lx\n", (unsigned long)sum);
	return 0;
}
