// Threads move blocks between the tiers, and verify every byte of them. Arguments:
// operations per thread, seed, and the size in KiB above which a block must keep its
// address. It prints the report when all is freed.
#include "common.h"
#include <malloc.h>

enum { THREADS = 6, SLOTS = 12, SHARED = 16 };

struct slot {
	char *p;
	size_t n;
	uint64_t seed;
};

static struct slot shared[SHARED];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long operations;
static uint64_t first_seed, kept;

static size_t random_size(uint64_t *seed)
{
	static const size_t most[] = {200, 3000, 60 * KIB, 256 * KIB, 1200 * KIB, 6 * MIB};
	uint64_t r = next_random(seed);
	return 1 + (r >> 8) % most[r % 6];
}

static void verify(struct slot *s, size_t n)
{
	size_t at = pattern_wrong(s->p, s->n, n, s->seed);
	CHECK(at == n, "byte %zu of %zu at %p", at, s->n, (void *)s->p);
}

static void make(struct slot *s, uint64_t *seed)
{
	s->n = random_size(seed);
	s->seed = next_random(seed);
	s->p = ta_alloc(s->n, (ta_hint)(TA_HOT + next_random(seed) % 5));
	if (s->p != NULL)
		pattern_fill(s->p, s->n, s->seed);
	else
		CHECK(errno == ENOMEM, "errno %d", errno);
}

static void move(struct slot *s, uint64_t *seed)
{
	int dst = (int)(next_random(seed) % 3);
	char *p = ta_move(s->p, (ta_tier)dst);
	if (p == NULL) {
		CHECK(errno == ENOMEM || errno == EPERM || errno == EBUSY, "errno %d", errno);
		return;
	}
	CHECK(s->n <= kept || p == s->p, "a block of %zu bytes has moved", s->n);
	s->p = p;
	int tier = ta_tier_of(p);
	CHECK(tier >= 0, "moved to no tier"); // and maybe moved on by demotion since
}

static void resize(struct slot *s, uint64_t *seed)
{
	size_t n = random_size(seed);
	char *p = realloc(s->p, n);
	if (p == NULL)
		return;
	s->p = p;
	verify(s, n < s->n ? n : s->n);
	s->n = n;
	pattern_fill(p, n, s->seed);
}

static void drop(struct slot *s)
{
	if (s->p == NULL)
		return;
	verify(s, s->n);
	free(s->p);
	s->p = NULL;
}

static void *storm(void *arg)
{
	uint64_t seed = first_seed * 1000 + (uintptr_t)arg * 17 + 1;
	struct slot mine[SLOTS] = {{0}};
	for (int i = 0; i < 20; i++)
		next_random(&seed);
	for (unsigned long i = 0; i < operations; i++) {
		struct slot *s = &mine[next_random(&seed) % SLOTS];
		unsigned what = next_random(&seed) % 16;
		if (s->p == NULL) {
			make(s, &seed);
			continue;
		}
		if (what < 11) {
			move(s, &seed);
		} else if (what < 13) {
			verify(s, s->n);
			resize(s, &seed);
		} else if (what < 15) {
			pthread_mutex_lock(&lock);
			struct slot *k = &shared[next_random(&seed) % SHARED], t = *k;
			*k = *s;
			*s = t;
			pthread_mutex_unlock(&lock);
		} else {
			drop(s);
		}
	}
	for (int i = 0; i < SLOTS; i++)
		drop(&mine[i]);
	return NULL;
}

/* A report that is made while the library's thread returns memory has figures of before and after.
 */
static void wait_until_quiet(void)
{
	uint64_t before = UINT64_MAX;
	for (int same = 0, i = 0; same < 10 && i < 1000; i++) {
		ta_stats s = {.size = sizeof s};
		CHECK(ta_get_stats(&s) == 0, "errno %d", errno);
		same = s.bytes_committed == before ? same + 1 : 0;
		before = s.bytes_committed;
		usleep(10000);
	}
}

int main(int argc, char **argv)
{
	static char json[256 << 10];
	CHECK(argc == 4, "arguments");
	operations = strtoul(argv[1], NULL, 10);
	first_seed = strtoul(argv[2], NULL, 10);
	kept = strtoul(argv[3], NULL, 10) * KIB;
	pthread_t thread[THREADS];
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&thread[i], NULL, storm, (void *)i) == 0, "pthread_create");
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < SHARED; i++)
		drop(&shared[i]);
	wait_until_quiet();
	CHECK(ta_stats_json(json, sizeof json) < sizeof json, "the report is long");
	dprintf(1, "%s", json);
	return 0;
}
