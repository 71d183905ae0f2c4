// Passive false sharing, after Berger et al., "Hoard" (ASPLOS 2000), cache-scratch: small
// objects that the main thread allocated one after another go to one thread each, which
// frees its own and then writes over and over to what it gets. An allocator that gives the
// thread its neighbours' cache line again makes it wait for them.
#include "work.h"

struct hand {
	APART struct block first;
	uint64_t random, sum;
};

static void *work(void *arg)
{
	struct hand *h = arg;
	long rounds = scaled(100000);
	h->sum += put(&h->first);
	for (long i = 0; i < rounds; i++) {
		struct block b = get(8, next(&h->random));
		volatile uint64_t *word = (void *)b.p;
		for (int k = 0; k < 1500; k++)
			*word += 1;
		b.key += 1500;
		h->sum += put(&b);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static struct hand hands[MAX_THREADS];
	uint64_t sum = 0;
	begin(argc, argv);
	for (int i = 0; i < threads; i++) {
		hands[i].random = seed((uint64_t)i);
		hands[i].first = get(8, next(&hands[i].random));
	}
	crew(threads, work, hands, sizeof *hands);
	for (int i = 0; i < threads; i++)
		sum += hands[i].sum;
	return finish(sum);
}
