// Active false sharing, after Berger et al., "Hoard" (ASPLOS 2000), cache-thrash: threads
// that allocate, write to and free a small object each, at the same time. An allocator that
// gives two threads one cache line makes both slow.
#include "work.h"

struct hand {
	APART uint64_t random, sum;
};

static void *work(void *arg)
{
	struct hand *h = arg;
	long rounds = scaled(600000);
	for (long i = 0; i < rounds; i++) {
		uint64_t r = next(&h->random);
		struct block b = get(between(r, 1, 9), r);
		volatile char *bytes = b.p;
		for (int k = 0; k < 400; k++)
			bytes[0] = (char)(bytes[0] + 1);
		bytes[0] = (char)(bytes[0] - 400); // nobody else may have written to it
		h->sum += put(&b);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static struct hand hands[MAX_THREADS];
	uint64_t sum = 0;
	begin(argc, argv);
	for (int i = 0; i < threads; i++)
		hands[i].random = seed((uint64_t)i);
	crew(threads, work, hands, sizeof *hands);
	for (int i = 0; i < threads; i++)
		sum += hands[i].sum;
	return finish(sum);
}
