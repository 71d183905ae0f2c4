// One thread allocates, the others free: each has a ring of its own, from which it takes one
// block after another. Memory must find its way back to the one that needs it.
#include "work.h"

#define RING 8192

struct ring {
	APART _Atomic(struct parcel *) place[RING];
	APART uint64_t sum;
};

static struct parcel last; // a ring ends with it

static void *take(void *arg)
{
	struct ring *ring = arg;
	for (unsigned at = 0;; at = (at + 1) % RING) {
		struct parcel *p;
		while ((p = atomic_load_explicit(&ring->place[at], memory_order_acquire)) == NULL)
			sched_yield();
		atomic_store_explicit(&ring->place[at], NULL, memory_order_release);
		if (p == &last)
			return NULL;
		ring->sum += unpack(p);
	}
}

static void give(struct ring *ring, long i, struct parcel *p)
{
	while (atomic_load_explicit(&ring->place[i % RING], memory_order_acquire) != NULL)
		sched_yield();
	atomic_store_explicit(&ring->place[i % RING], p, memory_order_release);
}

int main(int argc, char **argv)
{
	uint64_t sum = 0, random = seed(0);
	pthread_t id[MAX_THREADS];
	begin(argc, argv);
	int takers = threads > 1 ? threads - 1 : 1;
	struct ring *rings = table((size_t)takers, sizeof *rings);
	for (int i = 0; i < takers; i++)
		if ((errno = pthread_create(&id[i], NULL, take, &rings[i])) != 0)
			die("pthread_create");
	long rounds = scaled(4000000) / takers;
	for (long i = 0; i < rounds; i++)
		for (int k = 0; k < takers; k++) {
			uint64_t r = next(&random);
			give(&rings[k], i, pack(skewed(r, 4, 11), r));
		}
	for (int i = 0; i < takers; i++) {
		give(&rings[i], rounds, &last);
		pthread_join(id[i], NULL);
		sum += rings[i].sum;
	}
	return finish(sum);
}
