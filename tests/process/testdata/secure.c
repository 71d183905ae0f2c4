// Wrong use of memory, one kind a case, that TA_SECURE=1 finds. The pointer is printed
// first, then the damaged block; whoever comes to the end of main was not caught.
#include "common.h"
#include <malloc.h>
#include <pthread.h>

void *_Znwm(size_t n);
void *_Znam(size_t n);
void _ZdlPv(void *p);
void _ZdaPv(void *p);
void _ZdlPvm(void *p, size_t n);
void _ZdaPvm(void *p, size_t n);
__attribute__((weak)) void free_sized(void *p, size_t n); // the C library may not have them
__attribute__((weak)) void free_aligned_sized(void *p, size_t align, size_t n);

static size_t size;

static void say(void *p, void *block)
{
	char line[64]; // dprintf would allocate
	if (write(1, line, snprintf(line, sizeof line, "%#lx %#lx\n", (long)p, (long)block)) < 0)
		_exit(3);
}

static char *made(void)
{
	char *p = malloc(size);
	say(p, p);
	return hide(p);
}

static void past(size_t n)
{
	char *p = made();
	p[n] ^= 'A';
	free(p);
}
static void overflow(void) { past(size); }
static void string_end(void)
{
	char *p = made();
	p[size] = 0;
	free(p);
}
static void underflow(void) { past(-1); }
static void overflow_realloc(void)
{
	char *p = made();
	p[size] ^= 1;
	say(p, realloc(p, size + 1000));
}
static void after_grown(void)
{
	char *p = realloc(malloc(size - 1), size);
	say(p, p);
	p[size] ^= 1;
	free(hide(p));
}
// What is freed is whole, what lies beside it is not.
static void neighbour(size_t at)
{
	char *p[64];
	for (int i = 0; i < 64; i++)
		p[i] = malloc(size);
	size_t slot = (size + 9 + 15) / 16 * 16;
	for (int i = 0; i < 63; i++)
		for (int j = 0; j < 63; j++)
			if (p[j] == p[i] + slot) {
				say(p[j], p[i]);
				p[i][at] ^= 1;
				free(hide(p[j]));
			}
}
static void neighbour_end(void) { neighbour(size); }
static void at_malloc(void)
{
	char *p = made();
	p[size] ^= 1;
	malloc(500);
}
static void *busy(void *started)
{
	for (;;) {
		free(malloc(500));
		__atomic_store_n((int *)started, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}
// The same while other threads are in calls of theirs.
static void at_malloc_busy(void)
{
	int started[3] = {0};
	for (int i = 0; i < 3; i++) {
		pthread_t t;
		pthread_create(&t, NULL, busy, &started[i]);
		while (!__atomic_load_n(&started[i], __ATOMIC_RELAXED))
			;
	}
	at_malloc();
}
static void at_calloc(void)
{
	char *p = made();
	p[size] ^= 1;
	calloc(5, 100);
}
static void written_freed(size_t at)
{
	char *p = made();
	free(p);
	p[at] = 1;
	for (int i = 0; i < 4000; i++)
		free(malloc(size));
}
static void freed_start(void) { written_freed(0); }
static void freed_end(void) { written_freed(size - 1); }
// Written so late that it is not the last one freed any more.
static void freed_late(void)
{
	char *p = made();
	free(p);
	for (int i = 0; i < 50; i++)
		free(malloc(size));
	p[size / 2] = 1;
	for (int i = 0; i < 8000; i++)
		free(malloc(size));
}
static void twice(void)
{
	char *p = made();
	free(p), free(p);
}
static void twice_late(void)
{
	char *p = made();
	free(p);
	for (int i = 0; i < 100; i++)
		free(malloc(size + 64));
	free(p);
}
static void *free_it(void *p) { return free(p), NULL; }
static void twice_other(void)
{
	char *p = made();
	pthread_t t;
	pthread_create(&t, NULL, free_it, p);
	pthread_join(t, NULL);
	free(p);
}
static void *spoil_it(void *p) { return ((char *)p)[size] ^= 1, free_it(p); }
static void overflow_other(void)
{
	char *p = made();
	pthread_t t;
	pthread_create(&t, NULL, spoil_it, p);
	pthread_join(t, NULL);
}
static void inside(void)
{
	char *p = malloc(size);
	say(p + 16, p), free(hide(p + 16));
}

static void new_free(void)
{
	void *p = _Znwm(size);
	say(p, p), free(hide(p));
}
static void new_realloc(void)
{
	void *p = _Znwm(size);
	say(p, p), realloc(hide(p), size);
}
static void malloc_delete(void) { _ZdlPv(made()); }
static void new_array_delete(void)
{
	void *p = _Znam(size);
	say(p, p), _ZdlPv(hide(p));
}
static void new_delete_array(void)
{
	void *p = _Znwm(size);
	say(p, p), _ZdaPv(hide(p));
}
static void delete_size(void)
{
	void *p = _Znwm(size);
	say(p, p), _ZdlPvm(hide(p), size + 1);
}
static void delete_array_size(void)
{
	void *p = _Znam(size);
	say(p, p), _ZdaPvm(hide(p), size - 1);
}
static void sized(void) { free_sized(made(), size / 2); }
static void sized_aligned(void)
{
	void *p = memalign(64, size);
	say(p, p), free_aligned_sized(hide(p), 64, size + 8);
}

// All that is right.
static void fine(void)
{
	static char *p[3000];
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 3000; i++) {
			size_t n = i * 7 % size + 1;
			p[i] = i % 5 == 0 ? _Znwm(n) :
				i % 5 == 1    ? _Znam(n) :
				i % 5 == 2    ? memalign(64 << i % 7, n) :
								malloc(n);
			CHECK(malloc_usable_size(p[i]) == n, "%zu bytes, of %zu", malloc_usable_size(p[i]), n);
			for (size_t k = 0; k < n; k++)
				CHECK(p[i][k] == 0, "%zu of %zu", k, n);
			memset(p[i], 'x', n);
		}
		for (int i = 0; i < 3000; i++) {
			size_t n = i * 7 % size + 1;
			for (size_t k = 0; k < n; k++)
				CHECK(p[i][k] == 'x');
			if (i % 5 == 0)
				round & 1 ? _ZdlPvm(p[i], n) : _ZdlPv(p[i]);
			else if (i % 5 == 1)
				round & 1 ? _ZdaPvm(p[i], n) : _ZdaPv(p[i]);
			else if (i % 5 == 3)
				free_sized(p[i], n);
			else if (i % 5 == 4) {
				char *q = realloc(p[i], n + i % 100);
				CHECK(q && q[0] == 'x' && q[n - 1] == 'x' && malloc_usable_size(q) == n + i % 100);
				free(q);
			} else
				free(p[i]);
		}
	}
	printf("fine\n");
}

#define T(name) \
	{ \
#		name, name \
	}
static const struct test tests[] = {T(overflow), T(string_end), T(underflow), T(overflow_realloc),
	T(after_grown), T(neighbour_end), T(at_malloc), T(at_malloc_busy), T(at_calloc), T(freed_start),
	T(freed_end), T(freed_late), T(twice), T(twice_late), T(twice_other), T(overflow_other),
	T(inside), T(new_free), T(new_realloc), T(malloc_delete), T(new_array_delete),
	T(new_delete_array), T(delete_size), T(delete_array_size), T(sized), T(sized_aligned), T(fine)};

int main(int argc, char **argv)
{
	size = argc > 2 ? strtoul(argv[2], NULL, 0) : 0;
	RUN(tests);
}
