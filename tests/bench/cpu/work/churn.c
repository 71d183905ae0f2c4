// Many short threads that leave blocks behind, after mimalloc-bench's mleak: each allocates a
// few hundred, frees most, and ends. What it leaves is freed by another thread, much later.
#include "work.h"

#define BLOCKS      400
#define GENERATIONS 400
#define LIFE        64 // generations until what a thread left is freed

struct hand {
	APART struct parcel *left[LIFE][BLOCKS / 8];
	uint64_t random, sum;
	int generation;
};

static void *work(void *arg)
{
	struct hand *h = arg;
	struct parcel *item[BLOCKS], **left = h->left[h->generation++ % LIFE];
	for (int k = 0; k < BLOCKS; k++) {
		uint64_t r = next(&h->random);
		item[k] = pack(skewed(r, 4, 12), r);
	}
	for (int k = 0; k < BLOCKS; k++) {
		if (k % 8 == 3) {
			h->sum += unpack(left[k / 8]);
			left[k / 8] = item[k];
		} else {
			h->sum += unpack(item[k]);
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t sum = 0;
	begin(argc, argv);
	int n = threads * 4; // more than there are processors
	n = n > MAX_THREADS ? MAX_THREADS : n;
	struct hand *hands = table((size_t)n, sizeof *hands);
	for (int i = 0; i < n; i++)
		hands[i].random = seed((uint64_t)i);
	long generations = scaled(GENERATIONS);
	for (long g = 0; g < generations; g++)
		crew(n, work, hands, sizeof *hands);
	for (int i = 0; i < n; i++) {
		for (int g = 0; g < LIFE; g++)
			for (int k = 0; k < BLOCKS / 8; k++)
				sum += unpack(hands[i].left[g][k]);
		sum += hands[i].sum;
	}
	steady();
	return finish(sum);
}
