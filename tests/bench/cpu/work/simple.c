// One size at a time, after glibc's bench-malloc-simple and bench-malloc-thread: 25, 100, 400
// and 1600 blocks are allocated and freed again.
#include "work.h"

#define MOST 1600

struct hand {
	APART uint64_t random, sum;
};

static const size_t sizes[] = {16, 128, 256, 48, 64, 384};

static void *work(void *arg)
{
	struct hand *h = arg;
	struct block block[MOST];
	long rounds = scaled(240);
	for (long i = 0; i < rounds; i++)
		for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
			for (int n = 25; n <= MOST; n *= 4)
				for (int again = 0; again < MOST / n; again++) {
					for (int k = 0; k < n; k++)
						block[k] = get(sizes[s], next(&h->random));
					for (int k = 0; k < n; k++)
						h->sum += put(&block[k]);
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
	if (threads == 1) // in a process that never had another thread
		work(&hands[0]);
	else
		crew(threads, work, hands, sizeof *hands);
	for (int i = 0; i < threads; i++)
		sum += hands[i].sum;
	return finish(sum);
}
