// placed allocates at sites that differ in the first to the fourth caller of malloc: in the first
// thread, in a second one, and in a signal handler of each. It prints the tier of each block, if
// the library is there.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 3000, BLOCKS = 40 };

int ta_tier_of(const void *p) __attribute__((weak));

#define APART __attribute__((noinline, noclone))

// Each writes to its block, so that none makes a tail call.
APART void *xmalloc(size_t n) { return memset(malloc(n), 1, n); }
APART void *xnew(size_t n) { return memset(xmalloc(n), 2, n); }
APART void *xmake(size_t n) { return memset(xnew(n), 3, n); }
APART void *xalign(size_t n)
{
	void *p = NULL;
	return posix_memalign(&p, 64, n) == 0 ? memset(p, 4, n) : NULL;
}

// clang-format off
#define SITES(X) \
	X(first_hot, malloc(n)) X(first_cold, malloc(n)) X(first_none, malloc(n)) \
	X(zero_hot, calloc(1, n)) X(zero_cold, calloc(n, 1)) \
	X(new_hot, realloc(NULL, n)) X(new_cold, realloc(NULL, n)) \
	X(second_hot, xmalloc(n)) X(second_cold, xmalloc(n)) X(second_none, xmalloc(n)) \
	X(align_hot, xalign(n)) X(align_cold, xalign(n)) \
	X(third_hot, xnew(n)) X(third_cold, xnew(n)) X(third_none, xnew(n)) \
	X(fourth_hot, xmake(n)) X(fourth_cold, xmake(n)) X(fourth_none, xmake(n))
// clang-format on

#define DEFINE(name, call) \
	APART static void *site_##name(size_t n) { return memset(call, 5, n); }
SITES(DEFINE)

#define ENTRY(name, call) {#name, site_##name},
static const struct {
	const char *name;
	void *(*make)(size_t);
} sites[] = {SITES(ENTRY)};

static const char *where;

static void all(void)
{
	for (size_t i = 0; i < sizeof sites / sizeof *sites; i++) {
		int tiers[3] = {0};
		for (int k = 0; k < BLOCKS; k++) {
			void *p = sites[i].make(SIZE + i);
			if (ta_tier_of != NULL)
				tiers[ta_tier_of(p) % 3]++;
			if (k % 3 == 0)
				free(p);
		}
		printf("%s %s %d %d %d\n", where, sites[i].name, tiers[0], tiers[1], tiers[2]);
	}
}

static void handler(int signal)
{
	(void)signal;
	where = "handler";
	all();
}

static void *thread(void *none)
{
	where = "thread";
	all();
	raise(SIGUSR1);
	return none;
}

int main(void)
{
	signal(SIGUSR1, handler);
	where = "main";
	all();
	raise(SIGUSR1);
	pthread_t t;
	pthread_create(&t, NULL, thread, NULL);
	pthread_join(t, NULL);
	return 0;
}
