/* Four threads allocate, resize and free blocks of 16 bytes to 20 MiB, also each other's, each full
 * of a pattern that is checked. So many times they pause, and the main thread adds up what of the
 * memory with a policy, which is the library's under a cap, is on node 0.
 *
 *   torture MIB SAMPLES
 *
 * keeps about so many MiB, and prints the most and the last of the sums in bytes, and how many
 * blocks were resized:
 *
 *   most BYTES
 *   last BYTES
 *   resized COUNT */
#include "guest.h"
#include <pthread.h>

#define THREADS 4
#define SLOTS   256

static struct {
	pthread_mutex_t lock;
	char *at;
	long size;
	uint64_t seed;
} slot[SLOTS];

static long limit, held, resized;
static int pausing, paused, stop;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static uint64_t next(uint64_t *r)
{
	*r = *r * 6364136223846793005u + 1442695040888963407u;
	return *r >> 33;
}

/* Small ones mostly: half of the sizes are below 20 KiB. */
static long size(uint64_t *r)
{
	long n = 16L << next(r) % 21;
	return n + next(r) % n * (n > 8 * MIB ? 1 : 2) / 2;
}

static void drop(int i)
{
	MUST(holds(slot[i].at, slot[i].size, slot[i].seed));
	free(slot[i].at);
	__atomic_fetch_sub(&held, slot[i].size, __ATOMIC_RELAXED);
	slot[i].at = NULL;
}

static void make(int i, uint64_t *r)
{
	long n = size(r);
	if (__atomic_load_n(&held, __ATOMIC_RELAXED) + n > limit)
		return;
	if (next(r) % 4) {
		MUST(slot[i].at = malloc(n));
	} else {
		MUST(slot[i].at = calloc(1, n));
		for (long k = 0; k < n; k += 512)
			MUST(slot[i].at[k] == 0);
	}
	slot[i].size = n, slot[i].seed = next(r);
	fill(slot[i].at, n, slot[i].seed);
	__atomic_fetch_add(&held, n, __ATOMIC_RELAXED);
}

static void resize(int i, uint64_t *r)
{
	long old = slot[i].size, n = old > MIB ? old / 2 + next(r) % old : size(r);
	long both = (n < old ? n : old) / 8 * 8;
	if (__atomic_load_n(&held, __ATOMIC_RELAXED) + n - old > limit)
		return;
	MUST(holds(slot[i].at, old, slot[i].seed));
	MUST(slot[i].at = realloc(slot[i].at, n));
	MUST(holds(slot[i].at, both, slot[i].seed));
	slot[i].size = n;
	fill(slot[i].at, n, slot[i].seed);
	__atomic_fetch_add(&held, n - old, __ATOMIC_RELAXED);
	__atomic_fetch_add(&resized, 1, __ATOMIC_RELAXED);
}

static void wait_if_pausing(void)
{
	pthread_mutex_lock(&gate);
	if (pausing) {
		paused++;
		pthread_cond_broadcast(&changed);
		while (pausing)
			pthread_cond_wait(&changed, &gate);
		paused--;
	}
	pthread_mutex_unlock(&gate);
}

static void *churn(void *arg)
{
	uint64_t r = (uint64_t)arg * 0x9e3779b97f4a7c15u + 1;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		if (__atomic_load_n(&pausing, __ATOMIC_RELAXED))
			wait_if_pausing();
		int i = next(&r) % SLOTS;
		if (pthread_mutex_trylock(&slot[i].lock))
			continue;
		if (!slot[i].at)
			make(i, &r);
		else if (next(&r) % 3 == 0)
			resize(i, &r);
		else if (next(&r) % 4 == 0)
			MUST(holds(slot[i].at, slot[i].size, slot[i].seed));
		else
			drop(i);
		pthread_mutex_unlock(&slot[i].lock);
	}
	return NULL;
}

/* The bytes on node 0 by numa_maps. It allocates nothing. */
static long on_node_0(void)
{
	static char text[4 << 20];
	long n = 0, pages = 0;
	int fd = open("/proc/self/numa_maps", O_RDONLY);
	MUST(fd >= 0);
	for (long k; (k = read(fd, text + n, sizeof text - 1 - n)) > 0;)
		n += k;
	close(fd);
	MUST(n < (long)sizeof text - 1);
	text[n] = 0;
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		char *at = strstr(line, " N0=");
		if (at && !strstr(line, " default"))
			pages += atol(at + 4);
	}
	return pages * PAGE;
}

/* on_node_0 while no thread of the program runs. The library's own may move memory between two
 * mappings that are read, and the sum is then wrong: the least of three is not. */
static long sample(void)
{
	pthread_mutex_lock(&gate);
	pausing = 1;
	while (paused < THREADS)
		pthread_cond_wait(&changed, &gate);
	pthread_mutex_unlock(&gate);
	long least = on_node_0();
	for (int k = 0; k < 2; k++) {
		long n = on_node_0();
		least = n < least ? n : least;
	}
	pthread_mutex_lock(&gate);
	pausing = 0;
	pthread_cond_broadcast(&changed);
	while (paused)
		pthread_mutex_unlock(&gate), usleep(100), pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	return least;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	long most = 0, last = 0;
	MUST(argc == 3);
	limit = atol(argv[1]) * MIB;
	for (int i = 0; i < SLOTS; i++)
		pthread_mutex_init(&slot[i].lock, NULL);
	for (long i = 0; i < THREADS; i++)
		MUST(pthread_create(&threads[i], NULL, churn, (void *)i) == 0);
	for (long k = atol(argv[2]); k > 0; k--) {
		usleep(30000);
		last = sample();
		most = last > most ? last : most;
	}
	stop = 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("most %ld\nlast %ld\n", most, last);
	printf("resized %ld\n", resized);
	return 0;
}
