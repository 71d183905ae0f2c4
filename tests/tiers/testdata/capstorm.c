// Threads allocate, resize, move and free blocks of all sizes for all hints under hard
// caps, while another one looks at what the tiers are charged with and at what is
// resident. Arguments: operations per thread, seed, hard caps of the tiers in MiB (0:
// none), the largest block in MiB. It prints the samples taken, the most seen in each tier, the
// most resident above the start in KiB, the refused requests, and, on a line of its own, the report
// when all is freed and the threads have ended.
#include "common.h"
#include <malloc.h>

enum { THREADS = 16, SLOTS = 48, SHARED = 64, PAGE = 4096 };

struct slot {
	unsigned char *p;
	size_t n;
	unsigned char mark;
};

static struct slot shared[SHARED];
static pthread_mutex_t shared_lock[SHARED];
static unsigned long operations, refused;
static uint64_t first_seed, largest, cap[3], most[3], resident_most, samples;
static int over;

static const char *const names[] = {"fast", "normal", "slow"};

// Touches every page, so that what is charged is resident, too.
static void paint(struct slot *s)
{
	for (size_t at = 0; at < s->n; at += PAGE)
		s->p[at] = s->mark;
	s->p[s->n - 1] = s->mark;
}

static void look(struct slot *s, size_t n)
{
	size_t in[3];
	CHECK(ta_tier_of_range(s->p, 0, n, in) == 0 && in[0] + in[1] + in[2] == n,
		"%zu of %zu at %p in tiers", in[0] + in[1] + in[2], n, (void *)s->p);
	for (size_t at = 0; at < n; at += PAGE)
		CHECK(s->p[at] == s->mark, "byte %zu of %zu at %p", at, s->n, (void *)s->p);
}

static size_t random_size(uint64_t *seed)
{
	uint64_t r = next_random(seed);
	switch (r % 16) {
	case 0:
		return 4 * MIB + (r >> 8) % largest;
	case 1:
	case 2:
		return 256 * KIB + (r >> 8) % (3 * MIB);
	case 3:
	case 4:
	case 5:
		return 4096 + (r >> 8) % (100 * KIB);
	}
	return 1 + (r >> 8) % 2000;
}

static void make(struct slot *s, uint64_t *seed)
{
	size_t n = random_size(seed);
	unsigned how = next_random(seed) % 8;
	errno = 0;
	unsigned char *p = how < 5 ? ta_alloc(n, (ta_hint)(TA_HOT + how)) :
		how == 5               ? calloc(1, n) :
								 malloc(n);
	if (p == NULL) {
		CHECK(errno == ENOMEM, "errno %d", errno);
		__atomic_add_fetch(&refused, 1, __ATOMIC_RELAXED);
		return;
	}
	CHECK(how != 5 || (p[0] == 0 && p[n / 2] == 0 && p[n - 1] == 0), "calloc of %zu", n);
	*s = (struct slot){p, n, (unsigned char)next_random(seed)};
	paint(s);
}

static void resize(struct slot *s, uint64_t *seed)
{
	size_t n = random_size(seed);
	unsigned char *p = realloc(s->p, n);
	if (p == NULL) {
		look(s, s->n);
		return;
	}
	size_t both = s->n < n ? s->n : n;
	s->p = p;
	look(s, both);
	s->n = n;
	paint(s);
}

static void move(struct slot *s, uint64_t *seed)
{
	unsigned char *p = ta_move(s->p, (ta_tier)(next_random(seed) % 3));
	if (p != NULL)
		s->p = p;
	else
		CHECK(errno == ENOMEM || errno == EPERM || errno == EBUSY, "errno %d", errno);
	look(s, s->n);
}

static void drop(struct slot *s)
{
	if (s->p != NULL) {
		look(s, s->n);
		free(s->p);
		s->p = NULL;
	}
}

static void *storm(void *arg)
{
	uint64_t seed = first_seed * 1000 + (uintptr_t)arg + 1;
	struct slot mine[SLOTS] = {{0}};
	for (int i = 0; i < 20; i++)
		next_random(&seed);
	for (unsigned long i = 0; i < operations; i++) {
		uint64_t r = next_random(&seed);
		struct slot *s = &mine[r % SLOTS];
		r = r >> 8 & 15;
		if (s->p == NULL) {
			make(s, &seed);
		} else if (r < 2) {
			resize(s, &seed);
		} else if (r < 3) {
			move(s, &seed);
		} else if (r < 7) { // give it to another thread, and get one of another's
			unsigned k = next_random(&seed) % SHARED;
			pthread_mutex_lock(&shared_lock[k]);
			struct slot t = shared[k];
			shared[k] = *s;
			*s = t;
			pthread_mutex_unlock(&shared_lock[k]);
		} else {
			drop(s);
		}
	}
	for (int i = 0; i < SLOTS; i++)
		drop(&mine[i]);
	return NULL;
}

static uint64_t resident(void)
{
	char text[128] = {0};
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && read(fd, text, sizeof text - 1) > 0, "statm");
	close(fd);
	return strtoull(strchr(text, ' '), NULL, 10) * PAGE;
}

static void *sample(void *arg)
{
	static char json[256 << 10];
	uint64_t base = *(uint64_t *)arg;
	free(malloc(1));
	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
		for (int i = 0; i < 20; i++) {
			uint64_t now = resident();
			if (now > base && now - base > resident_most)
				resident_most = now - base;
		}
		CHECK(ta_stats_json(json, sizeof json) < sizeof json, "the report is long");
		for (int i = 0; i < 3; i++) {
			uint64_t n = figure(json, names[i], "bytes_current");
			if (n > most[i])
				most[i] = n;
			CHECK(cap[i] == 0 || n <= cap[i], "%s has %ju bytes", names[i], (uintmax_t)n);
		}
		samples++;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static char json[256 << 10];
	CHECK(argc == 7, "arguments");
	largest = strtoul(argv[6], NULL, 10) * MIB - 4 * MIB;
	operations = strtoul(argv[1], NULL, 10);
	first_seed = strtoul(argv[2], NULL, 10);
	for (int i = 0; i < 3; i++)
		cap[i] = strtoul(argv[3 + i], NULL, 10) * MIB;
	pthread_t thread[THREADS], sampler;
	for (int i = 0; i < SHARED; i++)
		pthread_mutex_init(&shared_lock[i], NULL);
	uint64_t base = resident();
	CHECK(pthread_create(&sampler, NULL, sample, &base) == 0, "pthread_create");
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&thread[i], NULL, storm, (void *)i) == 0, "pthread_create");
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	__atomic_store_n(&over, 1, __ATOMIC_RELEASE);
	pthread_join(sampler, NULL);
	for (int i = 0; i < SHARED; i++)
		drop(&shared[i]);
	malloc_trim(0);
	dprintf(1, "%ju %ju %ju %ju %ju %lu\n", (uintmax_t)samples, (uintmax_t)most[0],
		(uintmax_t)most[1], (uintmax_t)most[2], (uintmax_t)resident_most / 1024, refused);
	size_t n = ta_stats_json(json, sizeof json);
	for (size_t i = 0; i < n; i++)
		if (json[i] == '\n')
			json[i] = ' ';
	dprintf(1, "%s\n", json);
	return 0;
}
