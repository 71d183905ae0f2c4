// Random sizes and lives in a large set, after node.js' alloc-test (OLPC's by Ignatchenko): a
// slot of 40,000 is replaced at random. Nearly every block is cold when it is freed.
#include "work.h"

#define SLOTS 40000

struct hand {
	APART struct block slot[SLOTS];
	uint64_t random, sum;
};

static void *work(void *arg)
{
	struct hand *h = arg;
	long steps = scaled(2600000);
	for (long i = 0; i < steps; i++) {
		uint64_t r = next(&h->random);
		struct block *b = &h->slot[(r >> 20) % SLOTS];
		h->sum += put(b);
		*b = get(skewed(r, 3, 11), r);
	}
	for (int k = 0; k < SLOTS; k++)
		h->sum += put(&h->slot[k]);
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t sum = 0;
	begin(argc, argv);
	struct hand *hands = table((size_t)threads, sizeof *hands);
	for (int i = 0; i < threads; i++)
		hands[i].random = seed((uint64_t)i);
	if (threads == 1) // in a process that never had another thread
		work(hands);
	else
		crew(threads, work, hands, sizeof *hands);
	for (int i = 0; i < threads; i++)
		sum += hands[i].sum;
	return finish(sum);
}
